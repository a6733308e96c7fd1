package disbursement_test

import (
	"fmt"
	"testing"
	"time"

	"quittance/disbursement"
	"quittance/test/payroll"
)

func requested(kind disbursement.WordKind) disbursement.Word {
	return disbursement.Word{Kind: kind, Source: disbursement.FromRequest}
}

func enquired(kind disbursement.WordKind) disbursement.Word {
	return disbursement.Word{Kind: kind, Source: disbursement.FromEnquiry}
}

// one makes a world with a batch b of one sent line.
func one(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.agency(payroll.Policy())
	w.releasing("b", line("a", 5000))
	w.ticks()
	w.want("b", disbursement.LineSent)
	return w
}

func TestPaidEndsBatch(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.word("b", requested(disbursement.WordPaid))
	w.want("b", disbursement.LinePaid)
	w.status("b", disbursement.StatusDone)
}

// No answer is no refusal: the attempt stays, and nothing is sent again.
func TestTimeOutIsNoRefusal(t *testing.T) {
	t.Parallel()
	for _, kind := range []disbursement.WordKind{disbursement.WordUndecided, disbursement.WordPending, disbursement.WordDuplicate} {
		for _, source := range []disbursement.WordSource{disbursement.FromRequest, disbursement.FromEnquiry, disbursement.FromCallback} {
			w := one(t)
			w.word("b", disbursement.Word{Kind: kind, Source: source})
			w.advance(time.Hour)
			w.want("b", disbursement.LineSent)
			if l := w.at("b", 0); l.Attempt != 1 || len(w.pays) != 1 {
				t.Errorf("%s of %s: attempt %d, %d requests", kind, source, l.Attempt, len(w.pays))
			}
		}
	}
}

// "Duplicate" is the operator's word about our own request: it is asked at once what became of it.
func TestDuplicateIsAskedAbout(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.word("b", requested(disbursement.WordDuplicate))
	if len(w.asks) != 1 {
		t.Errorf("%d enquiries", len(w.asks))
	}
	w.word("b", enquired(disbursement.WordPaid))
	w.want("b", disbursement.LinePaid)
}

// A refusal counts when an enquiry agrees.
func TestRefusalIsConfirmed(t *testing.T) {
	t.Parallel()
	for _, source := range []disbursement.WordSource{disbursement.FromRequest, disbursement.FromCallback} {
		w := one(t)
		w.word("b", disbursement.Word{Kind: disbursement.WordRefused, Source: source, Code: "limit"})
		w.want("b", disbursement.LineSent)
		if len(w.asks) != 1 {
			t.Errorf("%s: %d enquiries", source, len(w.asks))
		}
		w.word("b", disbursement.Word{Kind: disbursement.WordRefused, Source: disbursement.FromEnquiry, Code: "limit"})
		w.want("b", disbursement.LineRefused)
		w.status("b", disbursement.StatusDone)
	}
}

// The operator knows nothing of an attempt: the same one is requested again, under the same id. A new id would be a
// second payment if the first request arrives after all.
func TestNotFoundIsTheSameAttempt(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.word("b", requested(disbursement.WordUndecided))
	w.word("b", enquired(disbursement.WordNotFound))
	if len(w.pays) != 2 || w.pays[0].Line.AttemptID() != w.pays[1].Line.AttemptID() {
		t.Fatalf("%d requests: %+v", len(w.pays), w.pays)
	}
	w.word("b", enquired(disbursement.WordNotFound)) // the second request is not answered yet
	if len(w.pays) != 2 {
		t.Errorf("%d requests after the repeated word", len(w.pays))
	}
}

// While the request may still wait in the topic it is not made again.
func TestNotFoundOfAWaitingRequest(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.word("b", enquired(disbursement.WordNotFound))
	if len(w.pays) != 1 {
		t.Fatalf("%d requests", len(w.pays))
	}
	w.advance(disbursement.RequestLife)
	w.word("b", enquired(disbursement.WordNotFound))
	if len(w.pays) != 2 {
		t.Errorf("%d requests after the first one's end", len(w.pays))
	}
	// One of the two is read late and not sent: it says nothing about the other one.
	for try := range 2 {
		w.word("b", disbursement.Word{Kind: disbursement.WordNeverSent, Source: disbursement.FromRequest, Try: try + 1})
		w.want("b", disbursement.LineSent)
	}
}

// A held batch, a stopped one and a day later nothing is requested again.
func TestNotFoundIsNotSentAgain(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*world){
		"held": func(w *world) {
			w.ok(disbursement.Command{Batch: "b", Do: disbursement.SetHold{By: "ben", Reason: "doubt"}})
		},
		"stopped": func(w *world) { w.ok(disbursement.Command{Batch: "b", Do: disbursement.Stop{By: "ben"}}) },
		"a day":   func(w *world) { w.advance(24 * time.Hour) },
	} {
		w := one(t)
		w.word("b", requested(disbursement.WordUndecided))
		prepare(w)
		w.word("b", enquired(disbursement.WordNotFound))
		if len(w.pays) != 1 {
			t.Errorf("%s: %d requests", name, len(w.pays))
		}
		w.want("b", disbursement.LineSent)
	}
}

func TestNeverSentIsReadyAgain(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.word("b", requested(disbursement.WordNeverSent))
	w.want("b", disbursement.LineReady)
	w.ticks()
	w.want("b", disbursement.LineSent)
	if l := w.at("b", 0); l.Attempt != 2 || w.pays[0].Line.AttemptID() == w.pays[1].Line.AttemptID() {
		t.Errorf("%+v", l)
	}
	w.word("b", disbursement.Word{Kind: disbursement.WordNeverSent, Source: disbursement.FromRequest, Attempt: 1, Try: 1}) // repeated
	w.want("b", disbursement.LineSent)
}

// A stopped batch makes nothing ready.
func TestNeverSentOfAStoppedBatch(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.ok(disbursement.Command{Batch: "b", Do: disbursement.Stop{By: "ben"}})
	w.ticks()
	w.word("b", requested(disbursement.WordNeverSent))
	w.want("b", disbursement.LineCancelled)
	w.status("b", disbursement.StatusDone)
}

// An empty account pauses alone, tries one line in a quarter of an hour, and the refused one goes to the end: one large
// line blocks nobody.
func TestAccountWithoutFunds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agency(payroll.Policy())
	w.releasing("b", line("a", 1_000_000), line("b", 10), payroll.Line("c", "airtel", "", 10))
	w.ticks()
	none := func(position int, source disbursement.WordSource) {
		w.word("b", disbursement.Word{Position: position, Kind: disbursement.WordNoFunds, Source: source, Code: "no_funds"})
	}
	none(0, disbursement.FromRequest)
	w.want("b", disbursement.LineSent, disbursement.LineSent, disbursement.LineSent) // an enquiry must agree
	none(0, disbursement.FromEnquiry)
	none(1, disbursement.FromEnquiry)
	w.want("b", disbursement.LineReady, disbursement.LineReady, disbursement.LineSent)
	k := disbursement.AccountKey{TenantID: tenant, Code: "mtn"}
	if !w.accounts[k].Paused() || w.accounts[disbursement.AccountKey{TenantID: tenant, Code: "airtel"}].Paused() {
		t.Fatalf("%+v", w.accounts)
	}
	n := len(w.pays)
	w.advance(disbursement.ProbeEvery - time.Second)
	if len(w.pays) != n {
		t.Fatalf("%d requests of a paused account", len(w.pays)-n)
	}
	w.advance(time.Second)
	if len(w.pays) != n+1 || w.pays[n].Line.Position != 0 {
		t.Fatalf("the probe: %+v", w.pays[n:])
	}
	none(0, disbursement.FromEnquiry)
	w.advance(disbursement.ProbeEvery)
	if len(w.pays) != n+2 || w.pays[n+1].Line.Position != 1 {
		t.Fatalf("the second probe: %+v", w.pays[n:])
	}
	w.word("b", disbursement.Word{Position: 1, Kind: disbursement.WordPaid, Source: disbursement.FromEnquiry})
	if w.accounts[k].Paused() {
		t.Error("the account is paused although it paid")
	}
	w.ticks()
	w.want("b", disbursement.LineSent, disbursement.LinePaid, disbursement.LineSent)
}

// Three payees in a row are refused for what may be want of funds: the account pauses.
func TestSuspectRefusalsPause(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agency(payroll.Policy())
	w.releasing("b", line("a", 10), line("b", 10), line("c", 10), line("d", 10))
	w.ticks()
	k := disbursement.AccountKey{TenantID: tenant, Code: "mtn"}
	for position := range 3 {
		if w.accounts[k].Paused() {
			t.Fatalf("paused after %d refusals", position)
		}
		w.word("b", disbursement.Word{Position: position, Kind: disbursement.WordRefused, Source: disbursement.FromEnquiry, Suspect: true, Code: "low"})
	}
	if a := w.accounts[k]; !a.Paused() || a.Reason != "low" {
		t.Errorf("%+v", a)
	}
}

// An unproven refusal is neither tried again nor corrected before a statement, or two people, prove it.
func TestUnprovenRefusal(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.word("b", disbursement.Word{Kind: disbursement.WordRefused, Source: disbursement.FromEnquiry, Unproven: true})
	w.want("b", disbursement.LineRefused)
	w.no(disbursement.CodeUnproven, disbursement.Command{Batch: "b", Do: disbursement.Retry{By: "ama"}})
	w.ok(disbursement.Command{Batch: "c", Do: w.opening("ref-c")})
	again := disbursement.AddLines{ImportID: "i", Lines: []disbursement.NewLine{payroll.Line("a2", "mtn", "a", 5000)}}
	w.no(disbursement.CodeNotCorrected, disbursement.Command{Batch: "c", Do: again})
	w.ok(disbursement.Command{Batch: "b", Do: disbursement.Cancel{By: "ama"}}) // a cancelled line stays unproven
	w.no(disbursement.CodeNotCorrected, disbursement.Command{Batch: "c", Do: again})
	w.word("b", disbursement.Word{Kind: disbursement.WordNoDebit, Source: disbursement.FromStatement})
	w.ok(disbursement.Command{Batch: "c", Do: again})
}

func TestRetry(t *testing.T) {
	t.Parallel()
	w := one(t)
	for range disbursement.MaxAttempts - 1 {
		w.word("b", enquired(disbursement.WordRefused))
		w.status("b", disbursement.StatusDone)
		w.ok(disbursement.Command{Batch: "b", Do: disbursement.Retry{By: "ama"}})
		w.status("b", disbursement.StatusReleasing)
		w.ticks()
		w.want("b", disbursement.LineSent)
	}
	w.word("b", enquired(disbursement.WordRefused))
	w.no(disbursement.CodeAttempts, disbursement.Command{Batch: "b", Do: disbursement.Retry{By: "ama"}})
	if w.at("b", 0).Attempt != disbursement.MaxAttempts {
		t.Errorf("%+v", w.at("b", 0))
	}
	w.advance(7 * 24 * time.Hour)
	w.want("b", disbursement.LineCancelled) // the last day of payment is over
	w.no(disbursement.CodeOver, disbursement.Command{Batch: "b", Do: disbursement.Retry{By: "ama"}})
}

// A day without a decision asks people. The operator's word still ends the case; so do two people.
func TestUndecided(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.no(disbursement.CodeNoCase, w.settle("b", true, "ben", "cleo"))
	w.advance(25 * time.Hour)
	if l := w.at("b", 0); l.Case != disbursement.CaseUndecided || l.Status != disbursement.LineSent {
		t.Fatalf("%+v", l)
	}
	w.word("b", enquired(disbursement.WordPaid))
	if l := w.at("b", 0); l.Case != "" || l.Status != disbursement.LinePaid {
		t.Errorf("%+v", l)
	}
	for paid, want := range map[bool]disbursement.LineStatus{true: disbursement.LinePaid, false: disbursement.LineRefused} {
		w := one(t)
		w.advance(25 * time.Hour)
		w.no(disbursement.CodeNeedsTwo, w.settle("b", paid, "ben", "ben"))
		w.no(disbursement.CodeEvidence, disbursement.Command{Batch: "b", Do: payroll.Settle(w.batches["b"].Digest, w.at("b", 0), paid, "", "ben", "cleo")})
		w.ok(w.settle("b", paid, "ben", "cleo"))
		w.want("b", want)
		w.status("b", disbursement.StatusDone)
	}
}

// What contradicts the status changes nothing and asks people. Until they decide nothing of the line is sent.
func TestContradictions(t *testing.T) {
	t.Parallel()
	paid, refused := enquired(disbursement.WordPaid), enquired(disbursement.WordRefused)
	other := paid
	other.Amount, other.Currency = 4999, "XAF"
	currency := paid
	currency.Amount, currency.Currency = 5000, "EUR"
	payee := paid
	payee.OtherPayee = true
	for name, x := range map[string]struct {
		first []disbursement.Word
		then  disbursement.Word
		want  disbursement.LineStatus
	}{
		"paid, then refused":     {[]disbursement.Word{paid}, refused, disbursement.LinePaid},
		"refused, then paid":     {[]disbursement.Word{refused}, paid, disbursement.LineRefused},
		"another amount":         {nil, other, disbursement.LineSent},
		"another currency":       {nil, currency, disbursement.LineSent},
		"another payee":          {nil, payee, disbursement.LineSent},
		"never sent, then paid":  {[]disbursement.Word{requested(disbursement.WordNeverSent)}, paid, disbursement.LineReady},
		"paid, then never sent":  {[]disbursement.Word{paid}, requested(disbursement.WordNeverSent), disbursement.LinePaid},
		"returned before paid":   {nil, enquired(disbursement.WordReturned), disbursement.LineSent},
		"returned, then refused": {[]disbursement.Word{paid, enquired(disbursement.WordReturned)}, refused, disbursement.LineReturned},
	} {
		w := one(t)
		for _, word := range x.first {
			w.word("b", word)
		}
		w.word("b", x.then)
		l := w.at("b", 0)
		if l.Status != x.want || !l.Contested || l.Case != disbursement.CaseConflict {
			t.Errorf("%s: %+v", name, l)
		}
		w.ticks()
		if len(w.pays) != 1 {
			t.Errorf("%s: %d requests", name, len(w.pays))
		}
		w.ok(w.settle("b", true, "ben", "cleo"))
		if l := w.at("b", 0); l.Contested || l.Case != "" || l.Status != disbursement.LinePaid && l.Status != disbursement.LineReturned {
			t.Errorf("%s, decided: %+v", name, l)
		}
	}
}

// The money of an attempt that was given up arrives while a second one is out.
func TestPaidOfAnEarlierAttempt(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.word("b", requested(disbursement.WordNeverSent))
	w.ticks()
	first := enquired(disbursement.WordPaid)
	first.Attempt, first.Amount, first.Currency = 1, 5000, "XAF"
	w.word("b", first)
	if l := w.at("b", 0); !l.Contested || l.Status != disbursement.LineSent || l.Case != disbursement.CaseConflict {
		t.Errorf("%+v", l)
	}
}

func TestReturned(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.word("b", requested(disbursement.WordPaid))
	part := disbursement.Word{Kind: disbursement.WordReturned, Source: disbursement.FromStatement, Amount: 4900, Currency: "XAF"}
	w.word("b", part)
	if l := w.at("b", 0); l.Status != disbursement.LinePaid || l.Case != disbursement.CaseReturned {
		t.Fatalf("%+v", l)
	}
	w.ok(disbursement.Command{Batch: "b", Do: disbursement.Acknowledge{By: "ben"}})
	w.word("b", disbursement.Word{Kind: disbursement.WordReturned, Source: disbursement.FromStatement})
	w.want("b", disbursement.LineReturned)
	w.word("b", disbursement.Word{Kind: disbursement.WordReturned, Source: disbursement.FromStatement})
	w.word("b", requested(disbursement.WordPaid))
	if l := w.at("b", 0); l.Case != "" || l.Contested {
		t.Errorf("%+v", l)
	}
}

// The sender found another content: nothing was sent, the batch is held and people are asked.
func TestChangedContent(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.word("b", requested(disbursement.WordChanged))
	w.want("b", disbursement.LineReady)
	if l := w.at("b", 0); !w.batches["b"].Held() || l.Case != disbursement.CaseChanged {
		t.Fatalf("%+v", l)
	}
	w.ticks()
	if len(w.pays) != 1 {
		t.Errorf("%d requests", len(w.pays))
	}
}

// At most 256 requests of an account are not answered, and two batches send in turn.
func TestInFlight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agency(payroll.Policy())
	var many []disbursement.NewLine
	for i := range 400 {
		many = append(many, line(fmt.Sprintf("m%03d", i), 10))
	}
	w.releasing("b", many...)
	w.ticks()
	if len(w.pays) != disbursement.MaxInFlight {
		t.Fatalf("%d requests", len(w.pays))
	}
	w.releasing("c", line("x", 10), line("y", 10))
	for i := range 3 {
		w.word("b", disbursement.Word{Position: i, Kind: disbursement.WordPaid, Source: disbursement.FromRequest})
		w.ticks()
	}
	w.want("c", disbursement.LineSent, disbursement.LineReady)
	w.ok(disbursement.Command{Batch: "b", Do: disbursement.SetHold{By: "ben", Reason: "doubt"}})
	w.word("b", disbursement.Word{Position: 3, Kind: disbursement.WordPaid, Source: disbursement.FromRequest})
	w.ticks()
	w.want("c", disbursement.LineSent, disbursement.LineSent)
	n := len(w.pays)
	w.word("b", disbursement.Word{Position: 4, Kind: disbursement.WordPaid, Source: disbursement.FromRequest})
	w.ticks()
	if len(w.pays) != n {
		t.Error("a held batch sends")
	}
	w.ok(w.lift("b", "ama", "cleo"))
	w.ticks()
	if len(w.pays) != n+1 {
		t.Errorf("%d requests after the hold was lifted", len(w.pays)-n)
	}
}

// The operator refuses the only request and has no such payout: the line is refused, or waits for funds. After a call whose
// answer was lost, or of a second request, that proves nothing: the line stays sent, and is not requested again each minute.
func TestRefusedAndAbsent(t *testing.T) {
	t.Parallel()
	absent := func(kind disbursement.WordKind) disbursement.Word {
		return disbursement.Word{Kind: kind, Source: disbursement.FromRequest, Absent: true, Code: "pin"}
	}
	w := one(t)
	w.word("b", absent(disbursement.WordRefused))
	w.want("b", disbursement.LineRefused)
	w = one(t)
	w.word("b", absent(disbursement.WordNoFunds))
	w.want("b", disbursement.LineReady)
	for name, before := range map[string]func(*world){
		"an answer that was lost": func(w *world) { w.word("b", requested(disbursement.WordUndecided)) },
		"a second request": func(w *world) {
			w.word("b", requested(disbursement.WordUndecided))
			w.word("b", enquired(disbursement.WordNotFound))
		},
	} {
		w := one(t)
		before(w)
		n, asks := len(w.pays), len(w.asks)
		w.word("b", absent(disbursement.WordRefused))
		if len(w.asks) != asks {
			t.Errorf("%s: it is asked again at once", name)
		}
		for range 60 {
			w.advance(time.Minute)
			w.word("b", enquired(disbursement.WordNotFound))
		}
		w.want("b", disbursement.LineSent)
		if len(w.pays) != n {
			t.Errorf("%s: %d more requests", name, len(w.pays)-n)
		}
		w.advance(24 * time.Hour)
		if w.at("b", 0).Case != disbursement.CaseUndecided {
			t.Errorf("%s: nobody is asked", name)
		}
	}
}

// A line whose key is deleted can never be sent. It does not go round until the last day, and people are told.
func TestUnopenable(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.word("b", requested(disbursement.WordUnopenable))
	w.want("b", disbursement.LineCancelled)
	w.status("b", disbursement.StatusDone)
	if l := w.at("b", 0); l.Case != disbursement.CaseUnopenable {
		t.Errorf("%+v", l)
	}
	w.ok(disbursement.Command{Batch: "b", Do: disbursement.Acknowledge{By: "ben"}})
	w = one(t) // the first request may have been sent
	w.word("b", requested(disbursement.WordUndecided))
	w.word("b", enquired(disbursement.WordNotFound))
	w.word("b", requested(disbursement.WordUnopenable))
	w.word("b", enquired(disbursement.WordNotFound))
	w.want("b", disbursement.LineSent)
	if len(w.pays) != 2 {
		t.Errorf("%d requests", len(w.pays))
	}
}

// Each part that comes back is told with its amount, also while the case of the first one is open.
func TestPartsReturned(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.word("b", requested(disbursement.WordPaid))
	for _, amount := range []int64{1200, 700} {
		w.word("b", disbursement.Word{Kind: disbursement.WordReturned, Source: disbursement.FromStatement, Amount: amount, Currency: "XAF"})
	}
	var got []string
	for _, e := range w.events {
		if e.Type == disbursement.EventLinePart || e.Type == disbursement.EventCaseOpened {
			got = append(got, string(e.Type)+" "+e.Detail[disbursement.DetailReported]+" "+e.Detail[disbursement.DetailCurrency])
		}
	}
	if want := "[line.partly_returned 1200 XAF case.opened 1200 XAF line.partly_returned 700 XAF]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// People settle a sent line for an earlier attempt. The present one is still asked about, and its payment is a second one.
func TestSettledForAnEarlierAttempt(t *testing.T) {
	t.Parallel()
	settled := func() *world {
		w := one(t)
		w.word("b", requested(disbursement.WordNeverSent))
		w.ticks()
		w.word("b", disbursement.Word{Attempt: 1, Kind: disbursement.WordPaid, Source: disbursement.FromStatement})
		if e := w.events[len(w.events)-1]; e.Type != disbursement.EventCaseOpened || e.Detail[disbursement.DetailAttempt] != "1" {
			t.Errorf("%s: %v", e.Type, e.Detail)
		}
		w.ok(w.settle("b", true, "ben", "cleo"))
		w.want("b", disbursement.LinePaid)
		return w
	}
	w := settled()
	asks := len(w.asks)
	w.advance(2 * time.Minute)
	if len(w.asks) == asks {
		t.Error("nobody asks about the present attempt")
	}
	w.word("b", disbursement.Word{Attempt: 1, Kind: disbursement.WordPaid, Source: disbursement.FromStatement}) // known
	if w.at("b", 0).Contested {
		t.Error("the settled attempt contradicts itself")
	}
	w.word("b", enquired(disbursement.WordPaid))
	if l := w.at("b", 0); !l.Contested || l.Case != disbursement.CaseConflict {
		t.Errorf("the second payment: %+v", l)
	}
	w = settled()
	w.word("b", enquired(disbursement.WordRefused))
	asks = len(w.asks)
	w.advance(time.Hour)
	if l := w.at("b", 0); l.Contested || len(w.asks) != asks {
		t.Errorf("after the refusal: %+v, %d enquiries", l, len(w.asks)-asks)
	}
}

// A batch is dated within a year: the keys of its lines are kept until its end.
func TestDatesFarAhead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agency(payroll.Policy())
	open := w.opening("r")
	open.Date = w.now.Add(disbursement.MaxAhead + 48*time.Hour).Format(time.DateOnly)
	w.no(disbursement.CodeMalformed, disbursement.Command{Batch: "b", Do: open})
	open.Date = w.now.Add(disbursement.MaxAhead - 48*time.Hour).Format(time.DateOnly)
	w.ok(disbursement.Command{Batch: "b", Do: open})
}
