package citizens_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/internal/citizens"
	"quittance/internal/operation"
	"quittance/internal/postgres"
	"quittance/money"
)

func (o *office) prove(c citizens.Citizen, subject citizens.Subject) citizens.Proof {
	o.t.Helper()
	code, err := o.LinkCode(o.t.Context(), subject)
	if err != nil {
		o.t.Fatal(err)
	}
	p, err := o.Prove(o.t.Context(), c.ID, subject, code)
	if err != nil {
		o.t.Fatal(err)
	}
	return p
}

// links are the references of an account with their proofs, sorted.
func (o *office) links(c citizens.Citizen) (out []string) {
	o.t.Helper()
	links, err := o.Links(o.t.Context(), c.ID)
	if err != nil {
		o.t.Fatal(err)
	}
	for _, l := range links {
		out = append(out, l.Subject.Ref+" "+l.Proof)
	}
	slices.Sort(out)
	return out
}

func (o *office) imports(contacts ...citizens.Contact) int64 {
	o.t.Helper()
	done, err := o.Import(o.t.Context(), actor, agency, false, contacts, false)
	if err != nil {
		o.t.Fatal(err)
	}
	return done.New
}

// An account that has not signed in for 90 days must prove again, because numbers are
// recycled: also what an agency's verified contact had proven.
func TestRecycledNumbers(t *testing.T) {
	t.Parallel()
	o := open(t)
	a := phone(t, 1)
	verified := citizens.Contact{SubjectRef: "NIU-1", Address: a}
	if n := o.imports(verified); n != 1 {
		t.Errorf("%d contacts are new", n)
	}
	if n := o.imports(verified); n != 0 { // it may be repeated
		t.Errorf("%d contacts are new", n)
	}
	_, c := o.signIn(a)
	other := citizens.Subject{AgencyID: agency, Ref: "NIU-2"}
	o.prove(c, other)
	if got := o.links(c); !slices.Equal(got, []string{"NIU-1 contact", "NIU-2 code"}) {
		t.Errorf("links %v", got)
	}
	o.wait(90*24*time.Hour - time.Second)
	o.signIn(a)
	if got := o.links(c); len(got) != 2 {
		t.Errorf("links %v before 90 days", got)
	}
	o.wait(90 * 24 * time.Hour)
	_, again := o.signIn(a)
	if again.ID == c.ID || !again.First {
		t.Errorf("after 90 days the number opens the account with the payments of before: %+v", again)
	}
	if got := append(o.links(c), o.links(again)...); len(got) != 0 {
		t.Errorf("links %v after 90 days", got)
	}
	c = again
	// The proofs count again when they are given again.
	o.prove(c, other)
	o.imports(verified)
	o.signIn(a)
	if got := o.links(c); len(got) != 2 {
		t.Errorf("links %v after new proofs", got)
	}
}

// A link that its account has ended stays ended, although an agency had verified the address.
func TestContactsLinkOnce(t *testing.T) {
	t.Parallel()
	o := open(t)
	verified := citizens.Contact{SubjectRef: "NIU-1", Address: email(t, 1)}
	o.imports(verified)
	_, c := o.signIn(verified.Address)
	links, err := o.Links(t.Context(), c.ID)
	if err != nil || len(links) != 1 {
		t.Fatalf("%+v, %v", links, err)
	}
	if ok, err := o.Unlink(t.Context(), c.ID, links[0].ID); !ok || err != nil {
		t.Fatal(ok, err)
	}
	o.wait(time.Hour)
	o.signIn(verified.Address)
	if got := o.links(c); len(got) != 0 {
		t.Errorf("links %v", got)
	}
}

// A contact that nobody signed in with linked whoever had the number 24 months later, although
// numbers are given to others after 90 days. It links for 90 days after the last import that
// names it.
func TestContactsLinkFor90Days(t *testing.T) {
	t.Parallel()
	o := open(t)
	contact := func(n int) citizens.Contact { return citizens.Contact{SubjectRef: "NIU-1", Address: phone(t, n)} }
	o.imports(contact(1), contact(2), contact(3), contact(3))
	o.wait(90*24*time.Hour - time.Second)
	if _, c := o.signIn(phone(t, 1)); len(o.links(c)) != 1 {
		t.Error("a contact does not link before 90 days")
	}
	if n := o.imports(contact(3)); n != 0 {
		t.Errorf("%d contacts are new", n)
	}
	o.wait(time.Second)
	if _, c := o.signIn(phone(t, 2)); len(o.links(c)) != 0 {
		t.Error("a contact links after 90 days")
	}
	o.wait(89 * 24 * time.Hour)
	if err := citizens.Sweep(t.Context(), o.pool, o.cfg.Now()); err != nil {
		t.Fatal(err)
	}
	if _, c := o.signIn(phone(t, 3)); len(o.links(c)) != 1 {
		t.Error("a contact that was imported again does not link")
	}
}

// A whole file that was imported again revived the contacts that an operator or a holder had
// ended, those that had linked and those that had not. They stay ended until they are imported
// with the word for it.
func TestRevokedContactsStayRevoked(t *testing.T) {
	t.Parallel()
	o := open(t)
	ctx := t.Context()
	contact := func(ref string, n int) citizens.Contact {
		return citizens.Contact{SubjectRef: ref, Address: phone(t, n)}
	}
	// 1 has linked and 2 has not when the operator revokes NIU-A; 3 removes NIU-B; 4 keeps NIU-C.
	file := []citizens.Contact{contact("NIU-A", 1), contact("NIU-A", 2), contact("NIU-B", 3), contact("NIU-B", 3), contact("NIU-C", 4)}
	o.imports(file...)
	_, one := o.signIn(phone(t, 1))
	_, three := o.signIn(phone(t, 3))
	_, four := o.signIn(phone(t, 4))
	if r, err := o.Revoke(ctx, actor, citizens.Subject{AgencyID: agency, Ref: "NIU-A"}); err != nil || r.Links != 1 || r.Contacts != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	links, err := o.Links(ctx, three.ID)
	if err != nil || len(links) != 1 {
		t.Fatal(links, err)
	}
	if ok, err := o.Unlink(ctx, three.ID, links[0].ID); !ok || err != nil {
		t.Fatal(ok, err)
	}
	importing := func(again bool, contacts ...citizens.Contact) citizens.Imported {
		t.Helper()
		done, err := o.Import(ctx, actor, agency, false, contacts, again)
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	o.wait(time.Hour)
	// A new contact of a subject that was revoked before is not one of those that were revoked.
	if got := importing(false, append(file, contact("NIU-A", 5))...); got != (citizens.Imported{New: 1, Revoked: 2, Removed: 1}) {
		t.Errorf("%+v", got)
	}
	linked := func(want ...int) {
		t.Helper()
		o.wait(time.Hour)
		for i, c := range []citizens.Citizen{one, {}, three, four, {}} {
			_, c2 := o.signIn(phone(t, i+1))
			if c.ID != "" && c2.ID != c.ID {
				t.Fatal("another account")
			}
			if got := len(o.links(c2)); got != want[i] {
				t.Errorf("%d has %d links, want %d", i+1, got, want[i])
			}
		}
	}
	linked(0, 0, 0, 1, 1)
	// Nothing forgets what was revoked.
	o.wait(2 * 366 * 24 * time.Hour)
	if err := citizens.Sweep(ctx, o.pool, o.cfg.Now()); err != nil {
		t.Fatal(err)
	}
	if got := importing(false, file...); got != (citizens.Imported{New: 1, Revoked: 2, Removed: 1}) {
		t.Errorf("%+v", got)
	}
	if got := importing(true, file...); got != (citizens.Imported{Revived: 3}) {
		t.Errorf("%+v", got)
	}
	one, three, four = citizens.Citizen{}, citizens.Citizen{}, citizens.Citizen{}
	linked(1, 1, 1, 1, 0)
	var detail string
	if err := o.pool.QueryRow(ctx, `SELECT string_agg(concat_ws(' ', action, detail->>'subject', detail->>'new', detail->>'skipped_revoked', detail->>'skipped_removed', detail->>'revived', detail->>'again'), ', ' ORDER BY at, action)
		FROM audit WHERE action LIKE 'links.%'`).Scan(&detail); err != nil {
		t.Fatal(err)
	}
	if want := "links.import 4 0 0 0 false, links.remove ***, links.revoke ***, links.import 1 2 1 0 false, links.import 1 2 1 0 false, links.import 0 0 0 3 true"; detail != want {
		t.Errorf("records %s", detail)
	}
}

// The contact of a link that is older than what Sweep keeps is revoked with the link.
func TestOldLinkedContactIsRevoked(t *testing.T) {
	t.Parallel()
	o := open(t)
	verified := citizens.Contact{SubjectRef: "NIU-1", Address: phone(t, 1)}
	o.imports(verified)
	_, c := o.signIn(verified.Address)
	for range 10 {
		o.wait(80 * 24 * time.Hour)
		o.signIn(verified.Address)
		_ = o.links(c)
	}
	if err := citizens.Sweep(t.Context(), o.pool, o.cfg.Now()); err != nil {
		t.Fatal(err)
	}
	if r, err := o.Renew(t.Context(), actor, citizens.Subject{AgencyID: agency, Ref: "NIU-1"}); err != nil || r.Links != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if done, err := o.Import(t.Context(), actor, agency, false, []citizens.Contact{verified}, false); err != nil || done != (citizens.Imported{Revoked: 1}) {
		t.Errorf("%+v, %v", done, err)
	}
}

// A big import is stored whole, or nothing of it.
func TestBigImport(t *testing.T) {
	t.Parallel()
	o := open(t)
	var contacts []citizens.Contact
	for n := range 25_000 {
		contacts = append(contacts, citizens.Contact{SubjectRef: fmt.Sprint("NIU-", n), Address: phone(t, n)})
	}
	if n := o.imports(contacts...); n != 25_000 {
		t.Errorf("%d contacts are new", n)
	}
	contacts = append(contacts, citizens.Contact{SubjectRef: "x\x00", Address: phone(t, 1)})
	contacts[0].SubjectRef = "another"
	var refused *operation.Error
	if _, err := o.Import(t.Context(), actor, agency, false, contacts, false); !errors.As(err, &refused) || refused.Field != "subject" {
		t.Errorf("%v", err)
	}
	var n int
	if err := o.pool.QueryRow(t.Context(), `SELECT count(*) FROM subject_contacts`).Scan(&n); err != nil || n != 25_000 {
		t.Errorf("%d contacts, %v", n, err)
	}
}

func TestLinkCodesInBulk(t *testing.T) {
	t.Parallel()
	o := open(t)
	ctx := t.Context()
	renewed := citizens.Subject{AgencyID: agency, Ref: "NIU-2"}
	if _, err := o.Renew(ctx, actor, renewed); err != nil {
		t.Fatal(err)
	}
	refs := []string{"NIU-1", "NIU-2", "NIU-1", "référence à espaces"}
	codes, err := o.LinkCodes(ctx, agency, false, refs)
	if err != nil || len(codes) != len(refs) {
		t.Fatalf("%v, %v", codes, err)
	}
	for i, ref := range refs {
		if one, err := o.LinkCode(ctx, citizens.Subject{AgencyID: agency, Ref: ref}); err != nil || one != codes[i] {
			t.Errorf("%s has the codes %s and %s, %v", ref, one, codes[i], err)
		}
	}
	live, err := o.LinkCodes(ctx, agency, true, refs)
	if err != nil || live[0] == codes[0] {
		t.Errorf("%v, %v", live, err)
	}
	for _, ref := range []string{"", " a", "a\n", "a\x00", "\xff", strings.Repeat("a", 201)} {
		var refused *operation.Error
		if _, err := o.LinkCodes(ctx, agency, false, []string{"NIU-1", ref}); !errors.As(err, &refused) || refused.Field != "subject" {
			t.Errorf("%q: %v", ref, err)
		}
		if _, err := o.Prove(ctx, uuid.NewString(), citizens.Subject{AgencyID: agency, Ref: ref}, "0000000000"); !errors.Is(err, citizens.ErrLinkRefused) {
			t.Errorf("%q: %v", ref, err)
		}
	}
}

// told takes the notices that wait: kind, subject and number of addresses, by account.
func (o *office) told() map[string]string {
	o.t.Helper()
	got := map[string]string{}
	if _, err := o.Tell(o.t.Context(), func(_ context.Context, n citizens.Notice) error {
		got[n.Addresses[0].Text()] += fmt.Sprintf("%s %s %s %s;", n.Kind, n.AgencyID, n.Subject, n.Locale)
		return nil
	}); err != nil {
		o.t.Fatal(err)
	}
	return got
}

// Holders are told of each new link, by code and by contact, and of nothing else. The message
// never has the whole reference.
func TestHoldersAreTold(t *testing.T) {
	t.Parallel()
	o := open(t)
	ctx := t.Context()
	subject := citizens.Subject{AgencyID: agency, Ref: "NIU-77001001"}
	_, first := o.signIn(phone(t, 1))
	o.prove(first, subject)
	if got := o.told(); len(got) != 0 {
		t.Errorf("the only holder is told of %v", got)
	}
	_, second := o.signIn(email(t, 2))
	o.prove(second, subject)
	want := "new_link " + agency + " ***1001 fr;"
	if got := o.told(); len(got) != 1 || got[phone(t, 1).Text()] != want {
		t.Errorf("told %v", got)
	}
	o.prove(second, subject) // again
	if got := o.told(); len(got) != 0 {
		t.Errorf("a repeated proof told %v", got)
	}
	o.imports(citizens.Contact{SubjectRef: subject.Ref, Address: email(t, 3)})
	_, third := o.signIn(email(t, 3))
	// One of the two messages fails: it does not hold up the other, and is sent later.
	failed := ""
	sent, err := o.Tell(ctx, func(_ context.Context, n citizens.Notice) error {
		if failed == "" {
			failed = n.Addresses[0].Text()
			return errors.New("Kafka is away")
		}
		return nil
	})
	if err == nil || sent != 1 {
		t.Errorf("%d were sent, %v", sent, err)
	}
	if s, err := citizens.ReadState(ctx, o.pool, o.cfg.Now().Add(time.Minute), citizens.DefaultSMSPerHour, citizens.DefaultMailPerHour); err != nil || s.OldestNotice < time.Minute {
		t.Errorf("%+v, %v", s, err)
	}
	if got := o.told(); len(got) != 1 || got[failed] != want {
		t.Errorf("told %v later, want %s", got, failed)
	}
	// They see each other, masked, and may ask for a new code.
	links, _ := o.Links(ctx, third.ID)
	others, ok, err := o.CoHolders(ctx, third.ID, links[0].ID)
	if err != nil || !ok || len(others) != 2 || others[0].CitizenID+others[0].LinkID != "" || others[0].Addresses[0] != phone(t, 1).Masked() || others[1].Addresses[0] != email(t, 2).Masked() {
		t.Errorf("%+v, %v, %v", others, ok, err)
	}
	if _, ok, err := o.CoHolders(ctx, first.ID, links[0].ID); ok || err != nil {
		t.Errorf("the link of another account: %v, %v", ok, err)
	}
	person := operation.Actor{Kind: operation.ActorPerson, Name: third.ID}
	for range 2 {
		if ok, err := o.AskRenewal(ctx, person, third.ID, links[0].ID); !ok || err != nil {
			t.Errorf("%v, %v", ok, err)
		}
	}
	if ok, err := o.AskRenewal(ctx, person, first.ID, links[0].ID); ok || err != nil {
		t.Errorf("another account asks: %v, %v", ok, err)
	}
	var asked int
	if err := o.pool.QueryRow(ctx, `SELECT count(*) FROM audit WHERE action = 'links.ask_renewal' AND detail->>'subject' = '***1001'`).Scan(&asked); err != nil || asked != 1 {
		t.Errorf("%d records, %v", asked, err)
	}
	if s, err := citizens.ReadState(ctx, o.pool, o.cfg.Now().Add(time.Hour), citizens.DefaultSMSPerHour, citizens.DefaultMailPerHour); err != nil || s.OldestRenewal != time.Hour {
		t.Errorf("%+v, %v", s, err)
	}
	list, err := o.Attentions(ctx, agency, false)
	if err != nil || len(list) != 1 || list[0] != (citizens.Attention{SubjectRef: subject.Ref, AskedAt: o.cfg.Now(), Holders: 3}) {
		t.Errorf("%+v, %v", list, err)
	}
	if r, err := o.Revoke(ctx, actor, subject); err != nil || r.Code != "" || r.Links != 3 {
		t.Errorf("%+v, %v", r, err)
	}
	if list, err := o.Attentions(ctx, agency, false); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if s := (citizens.Subject{Ref: "1234567"}); s.Masked() != "***" {
		t.Errorf("a short reference is shown as %s", s.Masked())
	}
}

// A link that is ended and made again is told once a day, and nobody is told more than ten
// notices a day.
func TestNoticesAreBounded(t *testing.T) {
	t.Parallel()
	o := open(t)
	subject := citizens.Subject{AgencyID: agency, Ref: "NIU-77001001"}
	_, owner := o.signIn(phone(t, 1))
	o.prove(owner, subject)
	again := func(c citizens.Citizen) int {
		t.Helper()
		p := o.prove(c, subject)
		n := len(o.told())
		if ok, err := o.Unlink(t.Context(), c.ID, p.Link.ID); !ok || err != nil {
			t.Fatal(ok, err)
		}
		return n
	}
	_, other := o.signIn(email(t, 2))
	for i := range 3 {
		if n := again(other); (n == 1) != (i == 0) {
			t.Errorf("link %d told %d", i, n)
		}
	}
	told := 1
	for i := range 12 {
		_, c := o.signIn(email(t, 10+i))
		told += again(c)
	}
	if told != 10 {
		t.Errorf("%d notices in a day", told)
	}
	o.wait(24*time.Hour + time.Second)
	if n := again(other); n != 1 {
		t.Errorf("told %d on the next day", n)
	}
}

// A proof with the old code, at the moment in which the code is renewed, leaves no link. Two
// proofs at the same moment tell one of the two holders.
func TestProofsAtTheSameMoment(t *testing.T) {
	t.Parallel()
	o := open(t)
	ctx := t.Context()
	pool, err := postgres.Open(ctx, o.dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	another := o.instance(pool)
	_, one := o.signIn(phone(t, 1))
	_, two := o.signIn(phone(t, 2))
	together := func(do ...func() error) {
		var wg sync.WaitGroup
		for _, f := range do {
			wg.Go(func() {
				if err := f(); err != nil && !errors.Is(err, citizens.ErrLinkRefused) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	for n := range 4 { // five wrong codes a day
		subject := citizens.Subject{AgencyID: agency, Ref: fmt.Sprint("NIU-", n)}
		code, err := o.LinkCode(ctx, subject)
		if err != nil {
			t.Fatal(err)
		}
		together(func() error { _, err := o.Prove(ctx, one.ID, subject, code); return err },
			func() error { _, err := another.Prove(ctx, two.ID, subject, code); return err })
		if got := o.told(); len(got) != 1 {
			t.Errorf("told %v", got)
		}
		together(func() error { _, err := another.Renew(ctx, actor, subject); return err },
			func() error { _, err := o.Prove(ctx, one.ID, subject, code); return err },
			func() error { _, err := o.Prove(ctx, two.ID, subject, code); return err })
		if holders, err := o.Holders(ctx, subject); err != nil || len(holders) != 0 {
			t.Errorf("holders with a code that has ended: %+v, %v", holders, err)
		}
		_ = o.told()
	}
}

// A citizen's account and address are erased; what others have stays.
func TestErase(t *testing.T) {
	t.Parallel()
	o := open(t)
	ctx := t.Context()
	a, other := phone(t, 1), phone(t, 2)
	token, c := o.signIn(a)
	_, stays := o.signIn(other)
	subject := citizens.Subject{AgencyID: agency, Ref: "NIU-1"}
	p := o.prove(c, subject)
	o.prove(stays, subject)
	if _, err := o.AskRenewal(ctx, actor, c.ID, p.Link.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Prove(ctx, c.ID, subject, "wrong"); !errors.Is(err, citizens.ErrLinkRefused) {
		t.Fatal(err)
	}
	o.imports(citizens.Contact{SubjectRef: "NIU-2", Address: a}, citizens.Contact{SubjectRef: "NIU-2", Address: other})
	o.wait(time.Minute)
	code := o.want(a, citizens.Sent)
	if erased, err := o.Erase(ctx, actor, a, "request 7"); err != nil || !erased {
		t.Fatalf("%v, %v", erased, err)
	}
	if _, err := o.Session(ctx, token); !errors.Is(err, citizens.ErrSignedOut) {
		t.Errorf("the session: %v", err)
	}
	if err := o.enter(a, browser, code.Reveal()); !errors.Is(err, citizens.ErrCodeInvalid) {
		t.Errorf("a code of before: %v", err)
	}
	for table, want := range map[string]int{"citizens": 1, "citizen_addresses": 1, "citizen_links": 1, "citizen_notices": 0, "link_renewals": 0, "link_failures": 0, "subject_contacts": 1, "sign_in_codes": 0} {
		var n int
		if err := o.pool.QueryRow(ctx, `SELECT count(*) FROM `+table).Scan(&n); err != nil || n != want {
			t.Errorf("%s has %d rows, want %d, %v", table, n, want, err)
		}
	}
	if erased, err := o.Erase(ctx, actor, a, "request 7"); err != nil || erased {
		t.Errorf("again: %v, %v", erased, err)
	}
	var records int
	if err := o.pool.QueryRow(ctx, `SELECT count(*) FROM audit WHERE action = 'citizen.erase' AND detail->>'reason' = 'request 7'`).Scan(&records); err != nil || records != 1 {
		t.Errorf("%d records, %v", records, err)
	}
	o.wait(time.Hour)
	if _, c2, err := o.Enter(ctx, a, browser, o.want(a, citizens.Sent).Reveal(), money.English); err != nil || !c2.First || c2.ID == c.ID {
		t.Errorf("%+v, %v", c2, err)
	}
}
