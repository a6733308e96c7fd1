package disbursement_test

import (
	"encoding/gob"
	"fmt"
	"strings"
	"testing"
	"time"

	"quittance/disbursement"
	"quittance/disbursement/policy"
	"quittance/test/payroll"
)

// record is the largest record of Kafka, in bytes.
const record = 1 << 20

// counter counts bytes.
type counter int

func (c *counter) Write(b []byte) (int, error) { *c += counter(len(b)); return len(b), nil }

func size(t *testing.T, v any) int {
	t.Helper()
	var n counter
	if err := gob.NewEncoder(&n).Encode(v); err != nil {
		t.Fatal(err)
	}
	return int(n)
}

// fits fails unless each entry, event and request of the decisions of a world fits a record. Entries of an agency and a batch are
// small, because each tick writes them.
func fits(t *testing.T, w *world) {
	t.Helper()
	largest := map[string]int{}
	note := func(name string, v any) { largest[name] = max(largest[name], size(t, v)) }
	w.seen = func(d disbursement.Decision) {
		for _, e := range d.Events {
			note("event", e)
		}
		for _, r := range d.Requests {
			note("request", r)
		}
		for _, b := range d.Batches {
			note("batch", b)
		}
		for _, s := range d.Sealings {
			note("sealing", s)
		}
		for _, a := range d.Accounts {
			note("account", a)
		}
		for _, r := range d.Rosters {
			note("roster", r)
		}
	}
	t.Cleanup(func() {
		for name, limit := range map[string]int{"event": record, "request": record / 64, "batch": record / 32, "sealing": record, "account": record / 32, "roster": record} {
			if largest[name] == 0 || largest[name] > limit {
				t.Errorf("the largest %s has %d bytes of %d", name, largest[name], limit)
			}
		}
	})
}

// The longest texts, the most accounts and the most people of each kind stay within a record.
func TestLargestRecords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := payroll.Policy()
	p.Tiers[0].Rules = nil
	for range policy.MaxLevels {
		p.Tiers[0].Rules = append(p.Tiers[0].Rules, policy.Rule{Role: "chief", Needed: policy.MaxNeeded})
	}
	w.agency(p)
	fits(t, w)
	r := w.rosters[tenant]
	long := w.now.Add(-48 * time.Hour)
	for i := len(r.People); i < policy.MaxPeople; i++ {
		person := policy.Person{ID: fmt.Sprintf("018f0000-0000-7000-8000-%012d", i), Number: fmt.Sprintf("%032d", i), Roles: []string{"chief"}, At: long}
		for k := range policy.MaxKeys {
			person.Keys = append(person.Keys, policy.Key{Hash: [32]byte{byte(i), byte(k), 255}, At: long, RemovedAt: time.Time{}})
		}
		r.Roster = r.With(person)
	}
	w.rosters[tenant] = r
	add := disbursement.Enrol{People: []disbursement.Enrolled{{ID: "eve", Number: "n-eve", Roles: []string{"agent"}}}}
	add.Confirmed = w.confirm(add.Content(), "ama", "ben")
	w.ok(disbursement.Command{Do: add})
	open := w.opening(strings.Repeat("r", disbursement.MaxText))
	open.Accounts = nil
	for i := range disbursement.MaxAccounts {
		open.Accounts = append(open.Accounts, disbursement.Payout{Code: fmt.Sprintf("account-%032d", i), Fingerprint: strings.Repeat("f", 64), PerSecond: 10})
	}
	w.ok(disbursement.Command{Batch: "b", Do: open})
	for i := 0; i < 400; i += 100 {
		var lines []disbursement.NewLine
		for k := range 100 {
			n := line(fmt.Sprintf("%0*d", disbursement.MaxText, i+k), 10)
			n.Account, n.Sealed = open.Accounts[0].Code, make([]byte, disbursement.MaxBytesSealed)
			lines = append(lines, n)
		}
		w.ok(disbursement.Command{Batch: "b", Do: disbursement.AddLines{ImportID: "i", Position: i, Lines: lines}})
	}
	w.ok(w.seal("b"))
	// Its 25 approvals are left out: the event of the sweep counts here.
	b := w.batches["b"]
	b.Status, b.Sweeping = disbursement.StatusReleasing, true
	w.batches["b"] = b
	w.agencies[disbursement.AgencyKey{TenantID: tenant}] = disbursement.Agency{Batches: []string{"b"}}
	w.ticks()
	w.status("b", disbursement.StatusDone)
	w.releasingAll(t)
}

// releasingAll has one account send 200 lines at once for many batches.
func (w *world) releasingAll(t *testing.T) {
	t.Helper()
	set := disbursement.SetPolicy{Policy: payroll.Policy()}
	set.Confirmed = w.confirm(set.Content(false), "ama", "ben")
	w.ok(disbursement.Command{Do: set})
	w.advance(25 * time.Hour)
	for i := range 50 {
		id := fmt.Sprintf("dsb_%064d", i)
		w.releasing(id, line(id+"a", 10), line(id+"b", 10))
	}
	w.ticks()
	if len(w.pays) != 100 {
		t.Errorf("%d requests", len(w.pays))
	}
}

// A batch of the most lines is sealed, sends, and is stopped, with bounded steps.
func TestLargestBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agency(payroll.Policy())
	w.large = true
	w.ok(disbursement.Command{Batch: "b", Do: w.opening("r")})
	for i := 0; i < disbursement.MaxLines; i += disbursement.MaxLinesAdded {
		lines := make([]disbursement.NewLine, disbursement.MaxLinesAdded)
		for k := range lines {
			lines[k] = disbursement.NewLine{Ref: fmt.Sprintf("%06d", i+k), Account: "mtn", Amount: 10, Leaf: [32]byte{byte(k)}}
		}
		w.ok(disbursement.Command{Batch: "b", Do: disbursement.AddLines{ImportID: "i", Position: i, Lines: lines}})
	}
	w.no(disbursement.CodeTooManyLines, disbursement.Command{Batch: "b", Do: disbursement.AddLines{ImportID: "i", Position: disbursement.MaxLines, Lines: []disbursement.NewLine{line("x", 1)}}})
	w.ok(w.seal("b"))
	w.ok(w.approve("b", 1, "ben"))
	w.ok(w.release("b", "cleo"))
	w.ticks()
	if len(w.pays) != disbursement.MaxInFlight {
		t.Errorf("%d requests", len(w.pays))
	}
	w.ok(disbursement.Command{Batch: "b", Do: disbursement.Stop{By: "ben"}})
	w.ticks()
	for i := range disbursement.MaxInFlight {
		w.word("b", disbursement.Word{Position: i, Kind: disbursement.WordPaid, Source: disbursement.FromRequest})
	}
	w.status("b", disbursement.StatusDone)
	w.large = false
	w.ok(disbursement.Command{Batch: "b", Do: disbursement.Cancel{By: "ben", Position: disbursement.MaxLines - 1}})
	if b := w.batches["b"]; b.Lines.Cancelled.Count != disbursement.MaxLines-disbursement.MaxInFlight || b.Lines.Paid.Count != disbursement.MaxInFlight {
		t.Errorf("%+v", b.Lines)
	}
}
