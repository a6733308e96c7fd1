package audit

import (
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
	"quittance/schemas/record"
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

func newStory() *story {
	keys := secret.GenerateKeys()
	return &story{Book: &Book{tenant: tenant, facts: map[string][]fact{}, entries: map[string]*entry{}, Keys: keys.PublicKeys(journal.LabelCloses)}, keys: keys}
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
	s.add(schemas.TopicEvents, s.at(events), fact{confirmed: &confirmed{transaction, event}})
}

func (s *story) line(account, row string) string {
	s.add(schemas.TopicStatements, s.at(lines), fact{line: &line{row: row, day: row[:10], account: account}})
	return row
}

func (s *story) match(account, id, state string, part int32, sources, of []string) {
	s.add(schemas.TopicReconciliation, s.at(finds), fact{finding: &record.Finding{FindingID: id, Account: account, State: state, Part: part, Sources: sources, Lines: of}})
}

// unline withdraws a line.
func (s *story) unline(account, row string) {
	s.add(schemas.TopicStatements, s.at(lines), fact{unline: &line{row: row, day: row[:10], account: account}})
}

// close adds a close with the root that the rows have.
func (s *story) close(t *testing.T, account string, to int, settling ...string) Close {
	t.Helper()
	c := &journal.Close{
		ID: fmt.Sprint(account, to), TenantID: tenant, Account: account, ToDay: dayOf(to), State: journal.CloseClosed, Digest: fmt.Sprint("digest", to), SourceOffset: s.at(finds).Offset,
		Watermarks: map[string]int64{events: s.n, lines: s.n, finds: s.n}, Settling: settling, ChainVersion: chain.Version,
	}
	if len(settling) == 0 {
		c.MoneyOf = []string{tenant + "/XAF/momo/acc"}
	}
	s.closes = append(s.closes, c)
	for fixed := false; ; fixed = true {
		list, err := s.Closes(account)
		if err != nil {
			t.Fatal(err)
		}
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

func (s *story) sign(t *testing.T, c *journal.Close) {
	t.Helper()
	signature, id, err := s.keys.SignDetached(journal.LabelCloses, []byte(c.Statement()))
	if err != nil {
		t.Fatal(err)
	}
	c.Signature, c.SignedWith = base64.StdEncoding.EncodeToString(signature), id
}

func (s *story) rowsOf(t *testing.T, c Close, entry string) (out []chain.Row) {
	t.Helper()
	proofs, err := c.Proofs(s.entries[entry].ID)
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
	s := newStory()
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
	list, err := s.Closes("mtn")
	if err != nil || slices.ContainsFunc(list, func(c Close) bool { return len(c.Faults) > 0 }) {
		t.Errorf("%+v, %v", list, err)
	}
	if got := s.Accounts(); !slices.Equal(got, []string{"banque", "mtn"}) {
		t.Errorf("%q", got)
	}
}

// Closes of a release before there were signatures hold without one. Without keys nothing is said of signatures.
func TestSignatures(t *testing.T) {
	t.Parallel()
	s := newStory()
	s.money(1, 1, false)
	s.close(t, "mtn", 1)
	s.close(t, "mtn", 2)
	s.closes[0].Signature = ""
	want := func(want ...Signature) {
		t.Helper()
		list, err := s.Closes("mtn")
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range list {
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
	s := newStory()
	known := s.money(1, 1, false)
	first := &journal.Close{ID: "mtn1", TenantID: tenant, Account: "mtn", ToDay: dayOf(1), State: journal.CloseClosed, Digest: "digest1", SourceOffset: s.at(finds).Offset, Watermarks: map[string]int64{events: s.n}}
	s.closes = append(s.closes, first)
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
		{"another amount", "its record says the root", func(s *story) { s.facts[events][0].entry.Gross++ }},
		{"another confirmation", "its record says the root", func(s *story) { s.facts[events][1].confirmed.event = "evt_forged" }},
		{"another line", "its record says the root", func(s *story) { s.facts[finds][0].finding.Lines[0] = "2026-11-01/OTHER#1" }},
		{"another root", "its record says the root 0000", func(s *story) { s.closes[0].ChainRoot = strings.Repeat("0", 64) }},
		{"fewer rows", "its record says 3 rows, Kafka has 4", func(s *story) { s.closes[0].ChainRows-- }},
		{"a payment less", "its record says 4 rows, Kafka has 2", func(s *story) { delete(s.entries, s.facts[events][0].entry.row); s.facts[events] = s.facts[events][1:] }},
		{"another sheet", "it follows a close with the hash", func(s *story) { s.closes[0].Digest = "another" }},
		{"a close less", "it follows a close that Kafka does not have", func(s *story) { s.closes = s.closes[1:] }},
		{"another total", "its signature does not verify", func(s *story) { s.closes[0].SourcesNewAmount++ }},
		{"another key", "is not known: give the public key", func(s *story) { s.closes[1].SignedWith = "stolen"; s.closes[1].Signature = s.closes[0].Signature }},
		{"no signature", "it has no signature, an earlier close has one", func(s *story) { s.closes[1].Signature, s.closes[1].SignedWith = "", "" }},
		{"a signature that is none", "its signature does not verify", func(s *story) { s.closes[1].Signature = "=" }},
		{"another form", "version 2 of the canonical form", func(s *story) { s.closes[1].ChainVersion++ }},
	} {
		s := newStory()
		a := s.money(1, 1, false)
		s.confirm("tx1b", "evt_1")
		s.match("mtn", "ma", journal.FindingOpen, 1, []string{a}, []string{s.line("mtn", "2026-11-01/A#1")})
		s.money(2, 1, false)
		s.close(t, "mtn", 1)
		s.close(t, "mtn", 2)
		c.forge(s)
		list, err := s.Closes("mtn")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(list, func(l Close) bool { return strings.Contains(strings.Join(l.Faults, "\n"), c.fault) }) {
			t.Errorf("%s: %+v", c.what, list)
		}
	}
}
