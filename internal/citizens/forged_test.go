package citizens_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/internal/citizens"
	"quittance/internal/contact"
	"quittance/internal/passkeys"
	"quittance/internal/secret"
	"quittance/money"
)

// refusals counts what a Store says of rows that are not ours, by table.
type refusals struct {
	mu    sync.Mutex
	count map[string]int
}

func (r *refusals) take() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.count
	r.count = map[string]int{}
	return out
}

// watched is an office whose refusals are counted.
func watched(t *testing.T) (*office, *refusals) {
	t.Helper()
	o := open(t)
	r := &refusals{count: map[string]int{}}
	o.cfg.Refused = func(_ context.Context, table, row string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.count[table]++
		if row == "" || strings.ContainsAny(row, "@+") {
			t.Errorf("%s: the row is %q", table, row)
		}
	}
	o.Store = o.instance(o.pool)
	return o, r
}

func (o *office) exec(sql string, args ...any) int64 {
	o.t.Helper()
	done, err := o.pool.Exec(o.t.Context(), sql, args...)
	if err != nil {
		o.t.Fatalf("%s: %v", sql, err)
	}
	return done.RowsAffected()
}

func subjectOf(ref string) citizens.Subject { return citizens.Subject{AgencyID: agency, Ref: ref} }

// pair is two accounts with everything that an account can have, and a third address that an agency has verified for
// the reference of the first one and that has no account.
type pair struct {
	*office
	names    map[string]string
	sessions map[string]secret.Text
	devices  map[string]*device
	phones   map[string]contact.Address
}

func newPair(o *office) pair {
	o.t.Helper()
	p := pair{o, map[string]string{}, map[string]secret.Text{}, map[string]*device{}, map[string]contact.Address{"third": phone(o.t, 3)}}
	for i, name := range []string{"owner", "thief"} {
		p.phones[name] = phone(o.t, i+1)
		token, c := o.signIn(p.phones[name])
		p.names[c.ID], p.sessions[name] = name, token
		p.devices[name] = newDevice(o.t, o.passkeys())
		p.devices[name].add(token)
		o.prove(c, subjectOf("of the "+name))
		o.choose(c, contact.Phone)
		if _, err := o.Remember(o.t.Context(), c.ID, p.phones[name], secret.Text{}); err != nil {
			o.t.Fatal(err)
		}
	}
	o.imports(citizens.Contact{SubjectRef: "of the third", Address: p.phones["third"]})
	if _, err := o.Revoke(o.t.Context(), actor, subjectOf("revoked")); err != nil {
		o.t.Fatal(err)
	}
	o.exec(`INSERT INTO subject_contacts (agency_id, livemode, subject_ref, address, imported_at, revoked_at, revoked_by) SELECT agency_id, livemode, 'revoked', address, imported_at, imported_at, 'operator' FROM subject_contacts`)
	return p
}

func (p pair) id(name string) string {
	for id, n := range p.names {
		if n == name {
			return id
		}
	}
	p.t.Fatalf("no account of %s", name)
	return ""
}

func (p pair) name(id string) string {
	if name, ok := p.names[id]; ok {
		return name
	}
	return "a new account"
}

// opens returns everything that the credentials of the pair open, what the accounts see and where messages go.
func (p pair) opens() map[string]bool {
	p.t.Helper()
	out, ctx := map[string]bool{}, p.t.Context()
	say := func(format string, args ...any) { out[fmt.Sprintf(format, args...)] = true }
	known := func(err error) {
		if err != nil && !errors.Is(err, citizens.ErrSignedOut) && !errors.Is(err, passkeys.ErrRefused) {
			p.t.Log(err)
			say("an error")
		}
	}
	sees := func(name, id string) {
		links, err := p.Links(ctx, id)
		known(err)
		for _, l := range links {
			say("%s sees %s", name, l.Subject.Ref)
		}
		addresses, err := p.Addresses(ctx, id)
		known(err)
		for _, a := range addresses {
			say("%s is written to at %s", name, a.Text())
		}
	}
	for id, name := range p.names {
		c, err := p.Session(ctx, p.sessions[name])
		known(err)
		if err == nil {
			say("the session of the %s opens %s", name, p.name(c.ID))
		}
		list, err := p.devices[name].keys.List(ctx, id)
		known(err)
		for range list {
			say("%s has a passkey", name)
		}
		_, c, err = p.devices[name].signIn()
		known(err)
		if err == nil {
			say("the passkey of the %s opens %s", name, p.name(c.ID))
		}
		sees(name, id)
	}
	if c, err := p.Session(ctx, secret.NewText("known to the thief")); err == nil {
		say("a token of nobody opens %s", p.name(c.ID))
	}
	reminded, err := p.Remind(ctx, false, 10, lease)
	known(err)
	for _, r := range reminded {
		for _, l := range r.Links {
			say("%s is reminded of %s at %s", p.name(r.CitizenID), l.Subject.Ref, r.Address.Text())
		}
	}
	for name, address := range p.phones {
		code, _, err := p.Begin(ctx, citizens.Request{Address: address, Browser: browser, Client: uuid.NewString()})
		if err != nil || code.Empty() {
			say("no code for the %s: %v", name, err)
			continue
		}
		_, c, err := p.Enter(ctx, address, browser, code.Reveal(), money.French)
		if known(err); err != nil {
			continue
		}
		say("a code of the %s opens %s", name, p.name(c.ID))
		if p.name(c.ID) == "a new account" {
			sees("a new account of the "+name, c.ID)
		}
	}
	return out
}

// walked are the tables of accounts. For each column that is not refused there is the reason why what somebody writes
// into it opens nothing of another account.
var walked = map[string]map[string]string{
	"citizen_addresses": {
		"sealed":    "its seal is bound to the id; one that does not open is an error",
		"proven_at": "mac_at decides; it chooses whose reminders `tidy` ends",
	},
	"citizen_links":    {"used_at": "a link of the account itself ends earlier or later"},
	"citizen_passkeys": {"used_at": "shown only"},
	"citizen_sessions": {"used_at": "a session of the account itself ends earlier, or at its end of 12 hours"},
	"subject_contacts": {
		"linked_at": "a contact links less, not more: one that has linked has no proof", "revoked_at": "as linked_at", "revoked_by": "who is named",
		"mac": "of a contact that was revoked; without one it links nobody", "imported_at": "of a contact that was revoked",
		"agency_id": "of a contact that was revoked", "livemode": "of a contact that was revoked", "subject_ref": "of a contact that was revoked", "address": "of a contact that was revoked",
	},
	"citizens": {
		"id": "rows that name the account are its own no more", "locale": "a language", "created_at": "not read",
		"signed_in_at": "an account loses its own links or keeps them",
	},
	"citizen_reminders": {
		"citizen_id": "the address must be the account's", "address_id": "the address must be the account's",
		"chosen_at": "not read", "next_at": "reminders come earlier or later",
	},
	"known_browsers": {
		"key": "limits only: a code is needed", "address": "limits only", "citizen_id": "limits only", "used_at": "limits only",
	},
	"subject_epochs": { // left: rights.md says so
		"agency_id": "a code that was printed before a renewal is valid again, for whoever has it", "livemode": "as agency_id", "subject_ref": "as agency_id", "epoch": "as agency_id",
	},
}

var others = map[string][]string{
	"uuid": {`'018f0000-0000-7000-8000-0000000000ff'`}, "boolean": {`NOT %s`}, "integer": {`%s + 1`}, "text": {`%s || 'x'`, `'code'`, `'contact'`, `'email'`, `'of the owner'`},
	"bytea": {`%s || '\x00'`, `sha256('known to the thief')`}, "timestamp with time zone": {`%s + interval '1 us'`, `%s + interval '200 days'`}, "jsonb": {`'{}'`},
}

// Somebody writes another value, NULL and the value of another row into every column of every table of accounts. No
// credential opens another account by it, no account sees more, and no message goes elsewhere. A column that a
// migration adds is tried without a change of this test.
func TestTamperedAccounts(t *testing.T) {
	t.Parallel()
	o, refused := watched(t)
	p := newPair(o)
	tables := slices.Sorted(maps.Keys(walked))
	for _, table := range tables {
		o.exec(`CREATE TABLE kept_` + table + ` AS TABLE ` + table)
	}
	// Without foreign keys: the thief moves all that refers to a row. TRUNCATE makes a file for each table and index.
	again := `BEGIN; SET LOCAL session_replication_role = replica;`
	for _, table := range o.referring(append([]string{"sign_in_codes", "sign_in_requests", "sign_in_failures"}, tables...)...) {
		again += `DELETE FROM ` + table + `;`
	}
	for _, table := range tables {
		again += `INSERT INTO ` + table + ` TABLE kept_` + table + `;`
	}
	again += `COMMIT`
	restore := func() {
		t.Helper()
		o.exec(again)
		refused.take()
	}
	restore()
	before := p.opens()
	for _, want := range []string{
		"the session of the owner opens owner", "the passkey of the owner opens owner", "a code of the owner opens owner", "owner sees of the owner", "owner is written to at +242066000001",
		"owner is reminded of of the owner at +242066000001", "a new account of the third sees of the third",
	} {
		if !before[want] {
			t.Fatalf("the pair lacks %q: %v", want, slices.Sorted(maps.Keys(before)))
		}
	}
	if n := refused.take(); len(n) > 0 {
		t.Fatalf("rows of ours are refused: %v", n)
	}
	restore()
	var columns, alerted, constrained, harmless, believed int
	for _, table := range tables {
		for _, c := range o.columns(table) {
			columns++
			told := false
			for _, to := range append(slices.Clone(others[c[1]]), `NULL`, `(SELECT x.%s FROM kept_`+table+` x WHERE x.%s IS DISTINCT FROM `+table+`.%s LIMIT 1)`) {
				for _, of := range []string{"DESC", "ASC"} {
					sql := fmt.Sprintf(`UPDATE %[1]s SET %[2]s = %[3]s WHERE ctid = (SELECT ctid FROM %[1]s ORDER BY ctid %[4]s LIMIT 1)`, table, c[0], strings.ReplaceAll(to, "%s", c[0]), of)
					if !o.asThief(sql) {
						constrained++
						continue
					}
					for what := range p.opens() {
						if !before[what] && what != "an error" && !strings.HasSuffix(what, "opens a new account") && !strings.Contains(what, "a new account of the owner is written to") && !strings.Contains(what, "a new account of the thief is written to") {
							believed++
							t.Errorf("%s: %s", sql, what)
						}
					}
					told = told || len(refused.take()) > 0
					restore()
				}
			}
			switch _, reason := walked[table][c[0]]; {
			case told:
				alerted++
			case reason:
				harmless++
			default:
				t.Errorf("%s.%s: nobody is told, and no reason is given", table, c[0])
			}
		}
	}
	t.Logf("accounts columns=%d alerted=%d harmless=%d constrained=%d believed=%d", columns, alerted, harmless, constrained, believed)
	if columns < 40 || alerted < 20 {
		t.Errorf("%d columns and %d alerts are too few", columns, alerted)
	}
}

// referring returns the tables, and those whose rows refer to rows of them.
func (o *office) referring(tables ...string) (out []string) {
	o.t.Helper()
	if err := o.pool.QueryRow(o.t.Context(), `WITH RECURSIVE found AS (SELECT unnest($1::text[])::regclass AS at
		UNION SELECT conrelid FROM pg_constraint JOIN found ON confrelid = at WHERE contype = 'f')
		SELECT array_agg(at::text) FROM found`, tables).Scan(&out); err != nil {
		o.t.Fatal(err)
	}
	return out
}

// columns returns the names and types of the columns of a table.
func (o *office) columns(table string) (out [][2]string) {
	o.t.Helper()
	rows, err := o.pool.Query(o.t.Context(), `SELECT attname, format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped`, table)
	if err != nil {
		o.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var c [2]string
		if err := rows.Scan(&c[0], &c[1]); err != nil {
			o.t.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}

// asThief runs a statement without foreign keys: the thief moves all that refers to the row. It reports whether the
// database took it.
func (o *office) asThief(sql string, args ...any) bool {
	o.t.Helper()
	tx, err := o.pool.Begin(o.t.Context())
	if err != nil {
		o.t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(o.t.Context())) }()
	if _, err := tx.Exec(o.t.Context(), `SET LOCAL session_replication_role = replica`); err != nil {
		o.t.Fatal(err)
	}
	if _, err := tx.Exec(o.t.Context(), sql, args...); err != nil {
		return false
	}
	return tx.Commit(o.t.Context()) == nil
}

// Somebody who can write to Postgres inserts rows in place of changing them. Each is refused and told.
func TestInsertedRowsOpenNothing(t *testing.T) {
	t.Parallel()
	o, refused := watched(t)
	p := newPair(o)
	thief, owner := p.id("thief"), p.id("owner")
	refused.take()
	told := func(table string) {
		t.Helper()
		if n := refused.take(); n[table] == 0 {
			t.Errorf("nobody is told of %s: %v", table, n)
		}
	}
	// A session with a token of the thief's own.
	own := p.sessions["thief"]
	o.exec(`UPDATE citizen_sessions SET citizen_id = $1 WHERE citizen_id = $2`, owner, thief)
	if c, err := o.Session(t.Context(), own); !errors.Is(err, citizens.ErrSignedOut) {
		t.Errorf("a session opens %+v, %v", c, err)
	}
	told("citizen_sessions")
	if err := o.SignOutEverywhere(t.Context(), own); !errors.Is(err, citizens.ErrSignedOut) {
		t.Errorf("it ends the owner's sessions: %v", err)
	}
	// The thief's passkey at the owner's account.
	o.exec(`UPDATE citizen_passkeys SET citizen_id = $1 WHERE citizen_id = $2`, owner, thief)
	if _, c, err := p.devices["thief"].signIn(); !errors.Is(err, passkeys.ErrRefused) {
		t.Errorf("a passkey opens %+v, %v", c, err)
	}
	told("citizen_passkeys")
	// A link of the owner's reference, also with the proof of another link.
	for _, mac := range []string{`NULL`, `(SELECT mac FROM citizen_links LIMIT 1)`} {
		o.exec(`INSERT INTO citizen_links (id, citizen_id, agency_id, livemode, subject_ref, proof, created_at, used_at, mac)
			SELECT $1, $2, agency_id, livemode, 'of the owner', proof, created_at, used_at, `+mac+` FROM citizen_links LIMIT 1`, uuid.New(), thief)
		if links := o.links(citizens.Citizen{ID: thief}); slices.Contains(links, "of the owner code") {
			t.Errorf("the thief sees %v", links)
		}
		told("citizen_links")
		holders, err := o.Holders(t.Context(), subjectOf("of the owner"))
		if err != nil || len(holders) != 2 || holders[0].Refused == holders[1].Refused {
			t.Errorf("operators see %+v, %v", holders, err)
		}
		o.exec(`DELETE FROM citizen_links WHERE citizen_id = $1 AND subject_ref = 'of the owner'`, thief)
	}
	// A contact that no agency has verified: it would make a link that is ours.
	o.exec(`INSERT INTO subject_contacts (agency_id, livemode, subject_ref, address, imported_at) SELECT $1, false, 'of the owner', hash, now() + interval '1 day' FROM citizen_addresses WHERE citizen_id = $2`, agency, thief)
	_, c := o.signIn(p.phones["thief"])
	if links := o.links(c); c.ID != thief || slices.Contains(links, "of the owner contact") {
		t.Errorf("by a contact %s sees %v", p.name(c.ID), links)
	}
	told("subject_contacts")
	// The owner's reminders go to the thief's address.
	o.exec(`UPDATE citizen_reminders SET address_id = (SELECT id FROM citizen_addresses WHERE citizen_id = $1) WHERE citizen_id = $2`, thief, owner)
	for _, r := range o.remind() {
		if r.CitizenID == owner {
			t.Errorf("the owner's reminders go to %s", r.Address.Text())
		}
	}
	told("citizen_addresses")
	// The thief's address opens the owner's account.
	o.exec(`UPDATE citizen_addresses SET citizen_id = $1 WHERE citizen_id = $2`, owner, thief)
	if addresses, err := o.Addresses(t.Context(), owner); err != nil || len(addresses) != 1 {
		t.Errorf("the owner is written to at %v, %v", addresses, err)
	}
	if _, c := o.signIn(p.phones["thief"]); c.ID == owner || !c.First {
		t.Errorf("a code opens %s", p.name(c.ID))
	}
	told("citizen_addresses")
	// The owner is not harmed.
	if _, c := o.signIn(p.phones["owner"]); c.ID != owner {
		t.Errorf("the owner's code opens %s", p.name(c.ID))
	}
}

// A link that somebody else has written in the account's name is made anew when the account proves the reference.
func TestRefusedLinkIsProvedAnew(t *testing.T) {
	t.Parallel()
	o, _ := watched(t)
	c, _ := o.linked(phone(t, 1), subjectOf("A-1"))
	o.exec(`UPDATE citizen_links SET mac = NULL`)
	if links := o.links(c); len(links) != 0 {
		t.Fatalf("it sees %v", links)
	}
	if p := o.prove(c, subjectOf("A-1")); !p.New {
		t.Error("the link is the one of before")
	}
	if links := o.links(c); !slices.Equal(links, []string{"A-1 code"}) {
		t.Errorf("it sees %v", links)
	}
}

// Somebody puts rows of yesterday back. What was revoked or has linked stays ended where a proof can tell; the rest is
// what docs/design/rights.md calls left.
func TestRowsOfYesterday(t *testing.T) {
	t.Parallel()
	o, _ := watched(t)
	o.imports(citizens.Contact{SubjectRef: "B-1", Address: phone(t, 1)}, citizens.Contact{SubjectRef: "B-2", Address: phone(t, 1)})
	if _, err := o.Revoke(t.Context(), actor, subjectOf("B-2")); err != nil {
		t.Fatal(err)
	}
	session, c := o.signIn(phone(t, 1))
	if links := o.links(c); !slices.Equal(links, []string{"B-1 contact"}) {
		t.Fatalf("linked by contacts: %v", links)
	}
	// A contact that was revoked, and one that has linked, look unused again.
	o.exec(`DELETE FROM citizen_links`)
	o.exec(`UPDATE subject_contacts SET revoked_at = NULL, revoked_by = NULL, linked_at = NULL`)
	o.signIn(phone(t, 1))
	if links := o.links(c); len(links) != 0 {
		t.Errorf("contacts of before link %v", links)
	}
	// Left: the whole row of a session that has ended opens it again, until its twelve hours are over.
	o.exec(`CREATE TABLE kept AS TABLE citizen_sessions`)
	if err := o.SignOut(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	o.exec(`INSERT INTO citizen_sessions SELECT * FROM kept ON CONFLICT DO NOTHING`)
	if _, err := o.Session(t.Context(), session); err != nil {
		t.Errorf("rights.md says that a row of before opens its session: %v", err)
	}
	o.exec(`UPDATE citizen_sessions SET used_at = '2030-01-01', created_at = created_at`)
	o.wait(citizens.SessionLifetime)
	if _, err := o.Session(t.Context(), session); !errors.Is(err, citizens.ErrSignedOut) {
		t.Errorf("after twelve hours: %v", err)
	}
}

// An installation of before has no proofs. They are made once: a row that is inserted later is not proved.
func TestAccountsOfAnEarlierReleaseAreProvedOnce(t *testing.T) {
	t.Parallel()
	o, refused := watched(t)
	p := newPair(o)
	for _, table := range citizens.ProvedTables() {
		o.exec(`UPDATE ` + table + ` SET mac = NULL`)
	}
	o.exec(`UPDATE citizen_addresses SET mac_at = NULL`)
	if _, err := o.Session(t.Context(), p.sessions["owner"]); !errors.Is(err, citizens.ErrSignedOut) {
		t.Errorf("a row without a proof opens a session: %v", err)
	}
	counts, err := citizens.ProveAll(t.Context(), o.pool, o.cfg.Keys)
	if err != nil || counts["citizen_sessions"] != 2 || counts["citizen_passkeys"] != 2 || counts["citizen_addresses"] != 2 || counts["citizen_links"] != 2 || counts["subject_contacts"] != 1 {
		t.Fatalf("proved %v, %v", counts, err)
	}
	refused.take()
	// An ingress of the release before, which still runs, notes a sign-in.
	o.exec(`UPDATE citizen_addresses SET proven_at = proven_at + interval '1 hour'`)
	got := p.opens()
	for _, want := range []string{
		"the session of the owner opens owner", "the passkey of the owner opens owner", "a code of the owner opens owner", "owner sees of the owner", "owner is written to at +242066000001", "a new account of the third sees of the third",
	} {
		if !got[want] {
			t.Errorf("%q is not so: %v", want, slices.Sorted(maps.Keys(got)))
		}
	}
	if n := refused.take(); len(n) > 0 {
		t.Errorf("refused %v", n)
	}
	o.exec(`UPDATE citizen_links SET mac = NULL, citizen_id = $1 WHERE citizen_id = $2`, p.id("thief"), p.id("owner"))
	if counts, err := citizens.ProveAll(t.Context(), o.pool, o.cfg.Keys); err != nil || len(counts) != 0 {
		t.Errorf("a second time it proves %v, %v", counts, err)
	}
}

// `secrets reseal` proves rows with the newest master key. What no key proves stays as it is.
func TestProofsFollowTheMasterKey(t *testing.T) {
	t.Parallel()
	o, refused := watched(t)
	p := newPair(o)
	newest := secret.GenerateKeys()
	both, err := secret.ParseKeys(newest.Reveal() + "," + o.cfg.Keys.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	o.exec(`UPDATE citizen_links SET citizen_id = $1 WHERE citizen_id = $2`, p.id("thief"), p.id("owner"))
	for range 2 { // it may be repeated
		counts, err := citizens.ProveAgain(t.Context(), o.pool, both, actor, start)
		if err != nil || len(counts) != len(citizens.ProvedTables()) || counts[1].Table != "proofs of citizen_links" || counts[1].Sealed+counts[1].Before != 1 || counts[1].Unopened != 1 {
			t.Fatalf("%+v, %v", counts, err)
		}
	}
	left, err := citizens.Proofs(t.Context(), o.pool, both)
	if err != nil || left[0].Keys[newest.Entries()[0].ID] != 2 || len(left[0].Keys) != 1 {
		t.Errorf("%+v, %v", left, err)
	}
	if _, err := citizens.SealedAddresses.Reseal(t.Context(), o.pool, both, actor, start, 10, func(int) {}); err != nil {
		t.Fatal(err)
	}
	o.cfg.Keys = newest
	o.Store = o.instance(o.pool)
	p.office = o
	refused.take()
	if c, err := o.Session(t.Context(), p.sessions["owner"]); err != nil || p.name(c.ID) != "owner" || len(c.Addresses) != 1 {
		t.Errorf("with the newest key alone: %+v, %v", c, err)
	}
	if links := o.links(citizens.Citizen{ID: p.id("thief")}); !slices.Equal(links, []string{"of the thief code"}) {
		t.Errorf("the thief sees %v", links)
	}
}

// Somebody guesses a code and deletes the rows that count wrong ones. The instance counts them, too.
func TestGuessedCodesAreCountedInMemory(t *testing.T) {
	t.Parallel()
	o, refused := watched(t)
	code := o.want(phone(t, 1), citizens.Sent)
	wrong := "000000"
	if code.Reveal() == wrong {
		wrong = "000001"
	}
	for range 180 {
		if err := o.enter(phone(t, 1), browser, wrong); !errors.Is(err, citizens.ErrCodeInvalid) {
			t.Fatal(err)
		}
		o.exec(`DELETE FROM sign_in_failures`)
		o.exec(`UPDATE sign_in_codes SET tries = 0`)
	}
	if n := refused.take(); len(n) != 0 {
		t.Errorf("told before there were too many: %v", n)
	}
	if err := o.enter(phone(t, 1), browser, code.Reveal()); !errors.Is(err, citizens.ErrCodeInvalid) {
		t.Errorf("the right code after 180 wrong ones: %v", err)
	}
	if n := refused.take(); n["sign_in_failures"] != 1 {
		t.Errorf("told %v", n)
	}
	o.wait(24 * time.Hour)
	if _, c := o.signIn(phone(t, 1)); !c.First {
		t.Errorf("a day later: %+v", c)
	}
}

// Whoever knows the key of link codes and writes to Postgres begins no epoch whose codes are known, and makes no former
// code valid.
func TestForgedCodeEpoch(t *testing.T) {
	t.Parallel()
	o, _ := watched(t)
	_, c := o.signIn(phone(t, 1))
	former, err := o.LinkCode(t.Context(), subjectOf("A-1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.RenewCodes(t.Context(), actor, 0); err != nil {
		t.Fatal(err)
	}
	o.prove(c, subjectOf("A-2"))
	for _, forgery := range []string{
		`UPDATE link_code_epochs SET former_until = '2030-01-01'`,
		`UPDATE link_code_epochs SET salt = decode(repeat('00', 32), 'hex')`,
		`INSERT INTO link_code_epochs (epoch, salt, began_at, signature) SELECT 2, salt, began_at, signature FROM link_code_epochs WHERE epoch = 1`,
	} {
		o.exec(forgery)
		if p, err := o.Prove(t.Context(), c.ID, subjectOf("A-1"), former); !errors.Is(err, citizens.ErrEpochRefused) {
			t.Errorf("%s: %+v, %v", forgery, p, err)
		}
	}
}
