package disbursement_test

import (
	"testing"
	"time"

	"quittance/disbursement"
	"quittance/test/payroll"
)

// The operator refuses the agency's PIN. The line was requested again at once, up to 256 times, and then each quarter of an hour,
// and the operator locked the account. A closed account tries no line until a person says so.
func TestClosedAccountWaitsForAPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agency(payroll.Policy())
	w.releasing("b", line("a", 10), line("b", 10), line("c", 10), payroll.Line("d", "airtel", "", 10))
	w.ticks()
	k := disbursement.AccountKey{TenantID: tenant, Code: "mtn"}
	closed := func(position int) {
		t.Helper()
		w.word("b", disbursement.Word{Position: position, Kind: disbursement.WordClosed, Source: disbursement.FromRequest, Absent: true, Code: "WRONG_PIN"})
	}
	try := disbursement.Command{Batch: "b", Do: disbursement.TryAccount{By: "ben", Account: "mtn"}}
	w.no(disbursement.CodeNotClosed, try)
	for position := range 3 {
		closed(position)
	}
	w.want("b", disbursement.LineReady, disbursement.LineReady, disbursement.LineReady, disbursement.LineSent)
	if a := w.accounts[k]; a.Closed == "" || !a.Paused() || a.Reason != "WRONG_PIN" || a.Closings != 1 || w.accounts[disbursement.AccountKey{TenantID: tenant, Code: "airtel"}].Paused() {
		t.Fatalf("%+v", w.accounts)
	}
	paused := w.events[len(w.events)-1]
	for _, e := range w.events {
		if e.Type == disbursement.EventPaused {
			paused = e
		}
	}
	if paused.Detail[disbursement.DetailClosed] != "true" || paused.Detail[disbursement.DetailReason] != "WRONG_PIN" {
		t.Errorf("%+v", paused)
	}
	n := len(w.pays)
	w.advance(6 * time.Hour)
	if len(w.pays) != n {
		t.Fatalf("%d requests of a closed account", len(w.pays)-n)
	}

	w.no(disbursement.CodeAccountUnknown, disbursement.Command{Batch: "b", Do: disbursement.TryAccount{By: "ben", Account: "none"}})
	w.ok(try)
	w.no(disbursement.CodeNotClosed, try)
	w.ticks()
	if len(w.pays) != n+1 || w.pays[n].Closings != 1 {
		t.Fatalf("a person has one line tried: %+v", w.pays[n:])
	}
	closed(w.pays[n].Line.Position)
	w.advance(6 * time.Hour)
	if len(w.pays) != n+1 || w.accounts[k].Closings != 2 {
		t.Fatalf("the PIN is still wrong: %d requests, %+v", len(w.pays)-n, w.accounts[k])
	}

	w.ok(try)
	w.ticks()
	w.word("b", disbursement.Word{Position: w.pays[n+1].Line.Position, Kind: disbursement.WordPaid, Source: disbursement.FromEnquiry})
	w.ticks()
	if a := w.accounts[k]; a.Paused() || a.Closed != "" || len(w.pays) != n+4 {
		t.Errorf("%d requests, %+v", len(w.pays)-n, a)
	}
}

// An answer about a request of before says nothing of settings that a person has mended.
func TestOldRefusalOfSettings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agency(payroll.Policy())
	w.releasing("b", line("a", 10), line("b", 10))
	w.ticks()
	refused := disbursement.Word{Kind: disbursement.WordClosed, Source: disbursement.FromRequest, Absent: true, Code: "WRONG_PIN"}
	w.word("b", refused)
	w.advance(time.Second)
	w.ok(disbursement.Command{Batch: "b", Do: disbursement.TryAccount{By: "ben", Account: "mtn"}})
	refused.Position = 1
	w.word("b", refused)
	if a := w.accounts[disbursement.AccountKey{TenantID: tenant, Code: "mtn"}]; a.Closed != "" || a.Closings != 1 {
		t.Errorf("%+v", a)
	}
	w.want("b", disbursement.LineReady, disbursement.LineReady)
}

// The agency gets another account in the place of the closed one: the first batch that names it is paid from it.
func TestAnotherAccountInPlaceOfAClosedOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agency(payroll.Policy())
	w.releasing("b", line("a", 10))
	w.ticks()
	w.word("b", disbursement.Word{Kind: disbursement.WordClosed, Source: disbursement.FromRequest, Absent: true, Code: "REVOKED"})
	w.advance(time.Hour)
	n := len(w.pays)
	open := w.opening("ref-c")
	for i := range open.Accounts {
		open.Accounts[i].Fingerprint += "-new"
	}
	w.ok(disbursement.Command{Batch: "c", Do: open})
	w.ok(disbursement.Command{Batch: "c", Do: disbursement.AddLines{ImportID: "i", Lines: []disbursement.NewLine{line("z", 10)}}})
	w.ok(w.seal("c"))
	w.ok(w.approve("c", 1, "ben"))
	w.ok(w.release("c", "cleo"))
	w.ticks()
	if len(w.pays) != n+1 {
		t.Fatalf("%d requests", len(w.pays)-n)
	}
	if a := w.accounts[disbursement.AccountKey{TenantID: tenant, Code: "mtn"}]; a.Closed != "" {
		t.Errorf("%+v", a)
	}
}
