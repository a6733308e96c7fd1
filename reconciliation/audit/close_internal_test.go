package audit

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/journal"
	"quittance/internal/secret"
	"quittance/reconciliation/chain"
	"quittance/schemas"
)

const (
	tenant = "agency"
	events = "checkout.events/3"
	lines  = "reconciliation.statements/1"
	finds  = "reconciliation.events/2"
)

func dayOf(n int) time.Time { return time.Date(2026, 11, n, 0, 0, 0, 0, time.UTC) }

// story is what Kafka has, with its offsets.
type story struct {
	*Book
	n    int64
	keys *secret.Keys
}

func newStory(t testing.TB) *story {
	t.Helper()
	keys := secret.GenerateKeys()
	b, err := newBook(tenant, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	b.Keys = keys.PublicKeys(journal.LabelCloses)
	return &story{Book: b, keys: keys}
}

// list computes the closes of an account.
func (s *story) list(t testing.TB, account string) (out []Close) {
	t.Helper()
	if err := s.EachOf(account, func(c *Close) error {
		out = append(out, *c)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// change changes the close of an account with a number, from 0.
func (s *story) change(number int, do func(*journal.Close)) {
	n := 0
	s.closes.each("", "", func(key string, c journal.Close) {
		if n == number {
			do(&c)
			s.closes.put(key, c)
		}
		n++
	})
}

// forge changes the fact with a number, from 0, of a topic/partition.
func (s *story) forge(at string, number int, do func(*fact)) {
	n := 0
	s.facts.each(at, at+"}", func(key string, f fact) {
		if n == number {
			do(&f)
			s.facts.put(key, f)
		}
		n++
	})
}

func (s *story) at(topic string) *kgo.Record {
	_, partition, _ := strings.Cut(topic, "/")
	s.n++
	return &kgo.Record{Partition: int32(partition[0] - '0'), Offset: s.n}
}

func (s *story) money(n, day int, withdrawn bool) (row string) {
	x := &journal.Expected{
		ID: uuid.NewSHA1(uuid.Nil, []byte{byte(n)}), Kind: journal.ExpectedReceived, State: journal.ExpectedCompleted, LocalDate: dayOf(day), TenantID: tenant, OfferID: "momo", Account: "acc", Currency: "XAF",
		SessionID: fmt.Sprint("cs", n), OperatorRef: fmt.Sprint("R", n), Gross: 1015, Withdrawn: withdrawn,
		DueRefs: []string{"", fmt.Sprint("DUE", n)}, TransactionIDs: []string{fmt.Sprint("tx", n, "a"), fmt.Sprint("tx", n, "b")}, Amounts: []int64{600, 400},
	}
	s.expect(schemas.TopicEvents, s.at(events), x)
	return x.Row()
}

func (s *story) confirm(transaction, event string) {
	s.add(schemas.TopicEvents, s.at(events), fact{Confirmed: &confirmed{transaction, event}})
}

func (s *story) line(account, row string) string {
	s.add(schemas.TopicStatements, s.at(lines), fact{Line: &line{row, row[:10], account}})
	return row
}

func (s *story) match(account, id, state string, part int32, sources, of []string) {
	s.add(schemas.TopicReconciliation, s.at(finds), fact{Finding: &finding{id, account, state, part, sources, of}})
}

// unline withdraws a line.
func (s *story) unline(account, row string) {
	s.add(schemas.TopicStatements, s.at(lines), fact{Unline: &line{row, row[:10], account}})
}

// close adds a close with the root that the rows have.
func (s *story) close(t testing.TB, account string, to int, settling ...string) Close {
	t.Helper()
	c := &journal.Close{
		ID: fmt.Sprint(account, to), TenantID: tenant, Account: account, ToDay: dayOf(to), State: journal.CloseClosed, Digest: fmt.Sprint("digest", to), SourceOffset: s.at(finds).Offset,
		Watermarks: map[string]int64{events: s.n, lines: s.n, finds: s.n}, Settling: settling, ChainVersion: chain.Version,
	}
	if len(settling) == 0 {
		c.MoneyOf = []string{tenant + "/XAF/momo/acc"}
	}
	for fixed := false; ; fixed = true {
		s.addClose(c)
		list := s.list(t, account)
		last := list[len(list)-1]
		if fixed {
			if len(last.Faults) > 0 {
				t.Fatalf("%q", last.Faults)
			}
			return last
		}
		c.ChainRoot, c.ChainRows = last.Root.String(), last.Rows
		if len(list) > 1 {
			c.Previous = list[len(list)-2].Hash()
		}
		s.sign(t, c)
	}
}

func (s *story) sign(t testing.TB, c *journal.Close) {
	t.Helper()
	signature, id, err := s.keys.SignDetached(journal.LabelCloses, []byte(c.Statement()))
	if err != nil {
		t.Fatal(err)
	}
	c.Signature, c.SignedWith = base64.StdEncoding.EncodeToString(signature), id
}

func (s *story) rowsOf(t *testing.T, c Close, entry string) (out []chain.Row) {
	t.Helper()
	e, _ := s.entries.get(entry)
	proofs, err := c.Proofs(e.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range proofs {
		out = append(out, p.Row)
	}
	return out
}

// A payment is in the close of its day, and again when its match comes about or ends later. The bank's
// close has the lines of both. What lies above the watermarks changes nothing.
func TestWhatACloseCovers(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	a, b, late := s.money(1, 1, false), s.money(2, 1, false), s.money(3, 2, false)
	s.confirm("tx1b", "evt_1")
	s.confirm("tx1b", "evt_2")
	la, lb := s.line("mtn", "2026-11-01/A#1"), s.line("mtn", "2026-11-02/B#2")
	s.line("mtn", la) // an overlapping statement
	s.match("mtn", "ma", journal.FindingOpen, 1, []string{a}, []string{la})
	s.match("mtn", "mb", journal.FindingOpen, 1, []string{b}, []string{lb})
	first := s.close(t, "mtn", 1)
	if first.Rows != 4 { // two entries of the day with two dues each; late is of the next day
		t.Fatalf("%d rows", first.Rows)
	}
	rows := s.rowsOf(t, first, a)
	if len(rows) != 2 || rows[0].Item != 1 || rows[0].Confirmation != "" || rows[1].Confirmation != "evt_1" || rows[1].Amount != 400 || rows[1].Due != "DUE1" || rows[1].OperatorLine != la || rows[1].BankLine != "" {
		t.Errorf("%+v", rows)
	}
	if rows := s.rowsOf(t, first, b); rows[0].OperatorLine != "" { // its line is of a day that is open
		t.Errorf("%+v", rows)
	}
	if rows := s.rowsOf(t, first, late); len(rows) != 0 {
		t.Errorf("%+v", rows)
	}
	s.match("banque", "p", journal.FindingOpen, 1, []string{la}, nil)
	s.match("banque", "p", journal.FindingOpen, 2, []string{lb}, []string{"2026-11-02/PAYOUT#3"})
	second := s.close(t, "mtn", 2)
	if rows := s.rowsOf(t, second, b); second.Rows != 4 || len(rows) != 2 || rows[0].OperatorLine != lb {
		t.Errorf("%d rows, %+v", second.Rows, rows)
	}
	if rows := s.rowsOf(t, second, a); len(rows) != 0 {
		t.Errorf("a payment of which nothing changed has %+v", rows)
	}
	s.match("mtn", "md", journal.FindingOpen, 1, []string{late}, []string{s.line("mtn", "2026-11-02/D#4")})
	s.unline("mtn", "2026-11-02/D#4") // before the run of the operator's account that ends the match
	settled := s.close(t, "banque", 2, "mtn")
	if rows := s.rowsOf(t, settled, late); len(rows) != 0 {
		t.Errorf("a line that was withdrawn: %+v", rows)
	}
	for _, entry := range []string{a, b} {
		rows := s.rowsOf(t, settled, entry)
		if len(rows) != 2 || rows[0].OperatorLine == "" || rows[0].BankLine != "2026-11-02/PAYOUT#3" {
			t.Errorf("%+v", rows)
		}
	}
	s.match("mtn", "md", journal.FindingSuperseded, 1, []string{late}, []string{"2026-11-02/D#4"})
	s.match("mtn", "ma", journal.FindingSuperseded, 1, []string{a}, []string{la})
	s.money(2, 1, true)
	s.match("mtn", "mb", journal.FindingSuperseded, 1, []string{b}, []string{lb})
	third := s.close(t, "mtn", 3)
	if rows := s.rowsOf(t, third, a); len(rows) != 2 || rows[0].OperatorLine != "" {
		t.Errorf("a match that ended: %+v", rows)
	}
	if rows := s.rowsOf(t, third, b); len(rows) != 0 || third.Rows != 2 {
		t.Errorf("money that was withdrawn: %+v", rows)
	}
	s.match("mtn", "ma", journal.FindingOpen, 1, []string{a}, []string{la}) // above the watermarks
	if list := s.list(t, "mtn"); len(list) != 3 || slices.ContainsFunc(list, func(c Close) bool { return len(c.Faults) > 0 }) {
		t.Errorf("%+v", list)
	}
	if got := s.Accounts(); !slices.Equal(got, []string{"banque", "mtn"}) {
		t.Errorf("%q", got)
	}
}

// Closes of a release before there were signatures hold without one. Without keys nothing is said of signatures.
func TestSignatures(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.money(1, 1, false)
	s.close(t, "mtn", 1)
	s.close(t, "mtn", 2)
	s.change(0, func(c *journal.Close) { c.Signature = "" })
	want := func(want ...Signature) {
		t.Helper()
		for i, c := range s.list(t, "mtn") {
			if c.Signature != want[i] || !c.Holds() {
				t.Errorf("close %d: %s, %q", i, c.Signature, c.Faults)
			}
		}
	}
	want(SignatureNone, SignatureGood)
	s.Keys = nil
	want(SignatureNone, SignatureUnchecked)
}

// A close of a release before there were roots does not say whose money it had. The next one has none of the
// money that it knew.
func TestAfterUnprovedClose(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	known := s.money(1, 1, false)
	first := &journal.Close{ID: "mtn1", TenantID: tenant, Account: "mtn", ToDay: dayOf(1), State: journal.CloseClosed, Digest: "digest1", SourceOffset: s.at(finds).Offset, Watermarks: map[string]int64{events: s.n}}
	s.addClose(first)
	fresh := s.money(2, 2, false)
	c := s.close(t, "mtn", 2)
	if got := s.rowsOf(t, c, known); len(got) != 0 {
		t.Errorf("the close before knew %+v", got)
	}
	if got := s.rowsOf(t, c, fresh); len(got) != 2 {
		t.Errorf("new money: %+v", got)
	}
}

// Whatever is changed in Kafka after a close shows.
func TestForged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, fault string
		forge       func(*story)
	}{
		{"another amount", "its record says the root", func(s *story) {
			s.entries.each("", "", func(key string, e entry) {
				if e.OperatorRef == "R1" {
					e.Gross++
					s.entries.put(key, e)
				}
			})
		}},
		{"another confirmation", "its record says the root", func(s *story) { s.forge(events, 1, func(f *fact) { f.Confirmed.Event = "evt_forged" }) }},
		{"another line", "its record says the root", func(s *story) { s.forge(finds, 0, func(f *fact) { f.Finding.Lines[0] = "2026-11-01/OTHER#1" }) }},
		{"another root", "its record says the root 0000", func(s *story) { s.change(0, func(c *journal.Close) { c.ChainRoot = strings.Repeat("0", 64) }) }},
		{"fewer rows", "its record says 3 rows, Kafka has 4", func(s *story) { s.change(0, func(c *journal.Close) { c.ChainRows-- }) }},
		{"a payment less", "its record says 4 rows, Kafka has 2", func(s *story) { s.forge(events, 0, func(f *fact) { s.entries.delete(f.Entry.Row); f.Entry = nil }) }},
		{"another sheet", "it follows a close with the hash", func(s *story) { s.change(0, func(c *journal.Close) { c.Digest = "another" }) }},
		{"a close less", "it follows a close that Kafka does not have", func(s *story) {
			first := ""
			s.closes.each("", "", func(key string, _ journal.Close) { first = cmp.Or(first, key) })
			s.closes.delete(first)
		}},
		{"another total", "its signature does not verify", func(s *story) { s.change(0, func(c *journal.Close) { c.SourcesNewAmount++ }) }},
		{"another key", "is not known: give the public key", func(s *story) { s.change(1, func(c *journal.Close) { c.SignedWith, c.Signature = "stolen", "AA==" }) }},
		{"no signature", "it has no signature, an earlier close has one", func(s *story) { s.change(1, func(c *journal.Close) { c.Signature, c.SignedWith = "", "" }) }},
		{"a signature that is none", "its signature does not verify", func(s *story) { s.change(1, func(c *journal.Close) { c.Signature = "=" }) }},
		{"another form", "version 2 of the canonical form", func(s *story) { s.change(1, func(c *journal.Close) { c.ChainVersion++ }) }},
	} {
		s := newStory(t)
		a := s.money(1, 1, false)
		s.confirm("tx1b", "evt_1")
		s.match("mtn", "ma", journal.FindingOpen, 1, []string{a}, []string{s.line("mtn", "2026-11-01/A#1")})
		s.money(2, 1, false)
		s.close(t, "mtn", 1)
		s.close(t, "mtn", 2)
		c.forge(s)
		list := s.list(t, "mtn")
		if !slices.ContainsFunc(list, func(l Close) bool { return strings.Contains(strings.Join(l.Faults, "\n"), c.fault) }) {
			t.Errorf("%s: %+v", c.what, list)
		}
	}
}
