package checkout_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"quittance/casework"
	"quittance/checkout"
)

const (
	accepted = checkout.EventConfirmationAccepted
	refused  = checkout.EventConfirmationRefused
	retried  = checkout.EventConfirmationRetried
	recorded = checkout.EventConfirmationRecorded
)

// due creates a session that pays a due, in an agency with or without an ERP.
func (w *world) due(id string, erp bool) {
	w.t.Helper()
	s := draft(id, "o-"+id)
	s.ERP, s.Metadata = erp, map[string]string{checkout.MetadataERPDueRef: "due-" + id}
	s.ExpiresAt = w.now.Add(24 * time.Hour)
	w.ask(checkout.Command{SessionID: id, ApplicationID: app, Do: checkout.Create{Session: s, IdempotencyKey: "k-" + id, CreationsPerMinute: 1000}})
}

// paidDue creates such a session and pays it.
func (w *world) paidDue(id string, erp bool) {
	w.t.Helper()
	w.due(id, erp)
	w.collect(id)
	w.outcome(id, approved())
}

// erp reports an answer of the ERP to a call made at a time.
func (w *world) erp(id string, a checkout.ConfirmationAnswer, at time.Time) checkout.Answer {
	w.t.Helper()
	return w.ask(checkout.Command{SessionID: id, Do: checkout.Confirmed{TransactionID: "t-" + id, Answer: a, AnsweredAt: at, Reason: "http_422"}})
}

// asked is what the events asked of the deliveries to the ERP.
func (w *world) asked(id string) (list []checkout.ConfirmationKind) {
	for _, e := range w.events {
		for _, r := range e.ConfirmationRequests() {
			if e.SessionID == id {
				list = append(list, r.Kind)
			}
		}
	}
	return list
}

func (w *world) closed(id string, n int, r casework.Resolution) {
	w.t.Helper()
	if c := w.sessions[id].Cases[n]; c.Kind != checkout.CaseConfirmation || c.Resolution != r {
		w.t.Errorf("case %d is %+v, want a confirmation that is %s", n, c, r)
	}
}

const day = 24 * time.Hour

type requests = []checkout.ConfirmationKind

const confirm, again, withdraw = checkout.RequestConfirm, checkout.RequestAgain, checkout.RequestWithdraw

// confirmationTable is what the ERP answers, what becomes of the confirmation, and what the ERP is asked.
var confirmationTable = []struct {
	name     string
	do       func(w *world)
	status   checkout.ConfirmationStatus
	events   types
	requests requests
}{
	{"accepted in time: no case, and every repetition is without effect", func(w *world) {
		w.paidDue("a", true)
		wantCode(w.t, w.erp("a", checkout.AnswerAccepted, w.now), checkout.CodeOK)
		wantReplay(w.t, w.erp("a", checkout.AnswerAccepted, w.now), checkout.CodeOK)
		wantReplay(w.t, w.erp("a", checkout.AnswerRefused, w.now.Add(time.Hour)), checkout.CodeOK)
		wantReplay(w.t, w.erp("a", checkout.AnswerFailed, w.now.Add(time.Hour)), checkout.CodeOK)
		w.advance(29 * day)
		if len(w.sessions["a"].Cases) != 0 {
			w.t.Errorf("cases %+v", w.sessions["a"].Cases)
		}
	}, checkout.ConfirmationAccepted, types{requested, completed, accepted}, requests{confirm}},
	{"not accepted in 24 hours: a case, once; a late acceptance closes it", func(w *world) {
		w.paidDue("a", true)
		w.advance(day - time.Millisecond)
		if len(w.sessions["a"].Cases) != 0 {
			w.t.Error("a case before its time")
		}
		w.advance(time.Millisecond)
		c := w.openCase("a")
		if c.Kind != checkout.CaseConfirmation || c.Amount != 5075 || c.Currency != "XAF" || c.Reason == "" {
			w.t.Errorf("the case is %+v", c)
		}
		w.advance(10 * day)
		wantCode(w.t, w.erp("a", checkout.AnswerAccepted, w.now), checkout.CodeOK)
		w.closed("a", 0, checkout.ResolutionAccepted)
		wantCode(w.t, w.resolve("a", c.ID, checkout.ResolutionRetry), checkout.CodeCaseClosed)
		w.advance(15 * day)
	}, checkout.ConfirmationAccepted, types{requested, completed, opened, accepted, resolved}, requests{confirm}},
	{"refused: a case at once; the same refusal again opens no second one, not even after a retry", func(w *world) {
		w.paidDue("a", true)
		first := w.now
		wantCode(w.t, w.erp("a", checkout.AnswerRefused, first), checkout.CodeOK)
		wantReplay(w.t, w.erp("a", checkout.AnswerRefused, first), checkout.CodeOK)
		c := w.openCase("a")
		if c.Reason != "http_422" {
			w.t.Errorf("the case is %+v", c)
		}
		wantCode(w.t, w.resolve("a", c.ID, casework.ResolutionAcknowledge), checkout.CodeCaseNotAllowed)
		w.advance(time.Hour)
		wantCode(w.t, w.resolve("a", c.ID, checkout.ResolutionRetry), checkout.CodeOK)
		wantReplay(w.t, w.resolve("a", c.ID, checkout.ResolutionRetry), checkout.CodeOK)
		wantReplay(w.t, w.erp("a", checkout.AnswerRefused, first), checkout.CodeOK)
		w.closed("a", 0, checkout.ResolutionRetry)
		wantCode(w.t, w.erp("a", checkout.AnswerRefused, w.now), checkout.CodeOK)
		if other := w.openCase("a"); other.ID == c.ID {
			w.t.Errorf("the refusal of the second call has the case of the first")
		}
		wantReplay(w.t, w.erp("a", checkout.AnswerRefused, first), checkout.CodeOK)
	}, checkout.ConfirmationRefused, types{requested, completed, refused, resolved, retried, refused}, requests{confirm, again}},
	{"a refusal after the case of the time-out opens no second case", func(w *world) {
		w.paidDue("a", true)
		w.advance(day)
		id := w.openCase("a").ID
		wantCode(w.t, w.erp("a", checkout.AnswerRefused, w.now), checkout.CodeOK)
		if w.openCase("a").ID != id {
			w.t.Error("another case")
		}
		w.advance(10 * day)
	}, checkout.ConfirmationRefused, types{requested, completed, opened, refused}, requests{confirm}},
	{"a retry without any answer is a case again after 24 hours", func(w *world) {
		w.paidDue("a", true)
		w.erp("a", checkout.AnswerRefused, w.now)
		w.advance(time.Hour)
		wantCode(w.t, w.resolve("a", w.openCase("a").ID, checkout.ResolutionRetry), checkout.CodeOK)
		w.advance(day - time.Millisecond)
		if n := len(w.sessions["a"].Cases); n != 1 {
			w.t.Errorf("%d cases", n)
		}
		w.advance(time.Millisecond)
		w.openCase("a")
	}, checkout.ConfirmationAwaited, types{requested, completed, refused, resolved, retried, opened}, requests{confirm, again}},
	{"recorded by hand counts as acceptance, and withdraws the calls", func(w *world) {
		w.paidDue("a", true)
		w.erp("a", checkout.AnswerRefused, w.now)
		c := w.openCase("a")
		wantCode(w.t, w.resolve("a", c.ID, checkout.ResolutionRecordedByHand), checkout.CodeOK)
		wantReplay(w.t, w.resolve("a", c.ID, checkout.ResolutionRecordedByHand), checkout.CodeOK)
		wantReplay(w.t, w.erp("a", checkout.AnswerRefused, w.now.Add(time.Hour)), checkout.CodeOK)
		wantReplay(w.t, w.erp("a", checkout.AnswerAccepted, w.now.Add(time.Hour)), checkout.CodeOK)
		if got := w.sessions["a"].Confirmation; got.Reference != "ref" || !got.SettledAt.Equal(w.now) {
			w.t.Errorf("the confirmation is %+v", got)
		}
		w.advance(20 * day)
	}, checkout.ConfirmationRecorded, types{requested, completed, refused, resolved, recorded}, requests{confirm, withdraw}},
	{"an agency without an ERP has no case", func(w *world) {
		w.paidDue("a", false)
		w.advance(29 * day)
		if len(w.sessions["a"].Cases) != 0 {
			w.t.Errorf("cases %+v", w.sessions["a"].Cases)
		}
	}, "", types{requested, completed}, requests{confirm}},
	{"a payment of no due has no case", func(w *world) {
		s := draft("a", "o")
		s.ERP = true
		w.ask(checkout.Command{SessionID: "a", ApplicationID: app, Do: checkout.Create{Session: s, IdempotencyKey: "k", CreationsPerMinute: 1000}})
		w.collect("a")
		w.outcome("a", approved())
		w.advance(29 * day)
	}, "", types{requested, completed}, nil},
	{"an agency that got its ERP later: the first failure awaits it", func(w *world) {
		w.paidDue("a", false)
		w.advance(5 * day)
		wantCode(w.t, w.erp("a", checkout.AnswerFailed, w.now), checkout.CodeOK)
		wantReplay(w.t, w.erp("a", checkout.AnswerFailed, w.now), checkout.CodeOK)
		w.advance(day)
		w.openCase("a")
	}, checkout.ConfirmationAwaited, types{requested, completed, checkout.EventConfirmationAwaited, opened}, requests{confirm}},
	{"a session of before this release: a refusal is a case, an acceptance is remembered", func(w *world) {
		w.paidDue("a", false)
		w.erp("a", checkout.AnswerRefused, w.now)
		w.openCase("a")
		w.erp("a", checkout.AnswerAccepted, w.now.Add(time.Second))
		w.closed("a", 0, checkout.ResolutionAccepted)
	}, checkout.ConfirmationAccepted, types{requested, completed, refused, accepted, resolved}, requests{confirm}},
	{"a reversal replaces the case; closing its own withdraws the calls", func(w *world) {
		w.paidDue("a", true)
		w.erp("a", checkout.AnswerRefused, w.now)
		w.refund("a")
		w.closed("a", 0, checkout.ResolutionSuperseded)
		w.erp("a", checkout.AnswerRefused, w.now.Add(time.Hour))
		w.advance(2 * day)
		c := w.openCase("a")
		if c.Kind != checkout.CaseReversal {
			w.t.Errorf("the case is %+v", c)
		}
		wantCode(w.t, w.resolve("a", c.ID, casework.ResolutionAcknowledge), checkout.CodeOK)
	}, checkout.ConfirmationRecorded, types{requested, completed, refused, opened, resolved, resolved, returned, opened, refused, resolved, recorded}, requests{confirm, withdraw}},
	{"a reversal of an accepted payment withdraws nothing", func(w *world) {
		w.paidDue("a", true)
		w.refund("a")
		w.erp("a", checkout.AnswerAccepted, w.now) // delivered first, so that it can be corrected
		wantCode(w.t, w.resolve("a", w.openCase("a").ID, casework.ResolutionAcknowledge), checkout.CodeOK)
	}, checkout.ConfirmationAccepted, types{requested, completed, opened, resolved, returned, opened, accepted, resolved}, requests{confirm}},
	{"a reversed payment of an agency without an ERP asks for nothing", func(w *world) {
		w.paidDue("a", false)
		w.refund("a")
		wantReplay(w.t, w.erp("a", checkout.AnswerFailed, w.now), checkout.CodeOK)
		wantCode(w.t, w.resolve("a", w.openCase("a").ID, casework.ResolutionAcknowledge), checkout.CodeOK)
	}, "", types{requested, completed, opened, resolved, returned, opened, resolved}, requests{confirm}},
	{"an honoured late payment awaits the ERP from its completion", func(w *world) {
		w.due("a", true)
		w.collect("a")
		w.advance(window)
		w.outcome("a", approved())
		w.advance(3 * day)
		w.resolve("a", w.openCase("a").ID, checkout.ResolutionHonour)
		w.advance(day - time.Millisecond)
		if n := len(w.sessions["a"].Cases); n != 1 {
			w.t.Errorf("%d cases", n)
		}
		w.advance(time.Millisecond)
		w.openCase("a")
	}, checkout.ConfirmationAwaited, types{requested, failed, late, resolved, completed, opened}, requests{confirm}},
}

// The state did not know whether an ERP had accepted a payment: nobody was told of one
// that it never accepted.
func TestConfirmation(t *testing.T) {
	t.Parallel()
	for _, row := range confirmationTable {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			row.do(w)
			w.want("a", checkout.StatusCompleted, append(types{created}, row.events...)...)
			if got := w.sessions["a"].Confirmation.Status; got != row.status {
				t.Errorf("the confirmation is %q, want %q", got, row.status)
			}
			got := w.asked("a")
			if len(got) != len(row.requests) {
				t.Fatalf("asked of the ERP: %v, want %v", got, row.requests)
			}
			for i := range got {
				if got[i] != row.requests[i] {
					t.Fatalf("asked of the ERP: %v, want %v", got, row.requests)
				}
			}
		})
	}
}

// refund gives a completed payment back.
func (w *world) refund(id string) {
	w.t.Helper()
	a := w.ask(checkout.Command{SessionID: id, Do: checkout.OpenRefundRequest{By: "staff one", Reason: "charge-back"}})
	wantCode(w.t, w.resolve(id, a.CaseID, checkout.ResolutionRefund), checkout.CodeOK)
}

// Cash that is given back on the same day replaces an open case of its confirmation: the
// case of the reversal covers the ERP's part.
func TestReversedCashAndItsConfirmation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := draft("a", "o")
	s.ERP, s.Metadata = true, map[string]string{checkout.MetadataERPDueRef: "due"}
	s.Offers = append(s.Offers, checkout.Offer{ID: checkout.OfferCashAgency, Channel: checkout.ChannelCash, Fee: 50})
	w.ask(checkout.Command{SessionID: "a", ApplicationID: app, Do: checkout.Create{Session: s, IdempotencyKey: "k", CreationsPerMinute: 1000}})
	w.desk("c01").reserve("a", "k1")
	wantCode(t, w.desk("c01").take("a", "k1"), checkout.CodeOK)
	w.erp("a", checkout.AnswerRefused, w.now)
	wantCode(t, w.desk("c02").reverse("a", "k1"), checkout.CodeOK)
	w.closed("a", 0, checkout.ResolutionSuperseded)
	if c := w.openCase("a"); c.Kind != checkout.CaseReversal {
		t.Errorf("the case is %+v", c)
	}
}

// Only the payment's own confirmation is answered.
func TestAnswerOfAnotherConfirmation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.due("a", true)
	wantCode(t, w.erp("a", checkout.AnswerAccepted, w.now), checkout.CodeNotCompleted)
	w.collect("a")
	w.outcome("a", approved())
	wantCode(t, w.ask(checkout.Command{SessionID: "a", Do: checkout.Confirmed{TransactionID: "t-b", Answer: checkout.AnswerAccepted, AnsweredAt: w.now}}), checkout.CodeSessionNotFound)
	wantCode(t, w.erp("none", checkout.AnswerAccepted, w.now), checkout.CodeSessionNotFound)
	w.want("a", checkout.StatusCompleted, created, requested, completed)
}

// Proposing and approving were in a table only, and no event told of them. Each step is one
// event, however often it is sent.
func TestProposalsAreEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.lateMoney("a", "o")
	c := w.openCase("a")
	note := func(n int, step casework.DecisionState) checkout.Answer {
		return w.ask(checkout.Command{SessionID: "a", Do: checkout.NoteProposal{
			CaseID: c.ID, Number: n, Step: step, Resolution: checkout.ResolutionRefund, Reference: "wire 7", Reason: "paid twice", By: "staff one",
		}})
	}
	wantCode(t, note(1, casework.DecisionProposed), checkout.CodeOK)
	wantReplay(t, note(1, casework.DecisionProposed), checkout.CodeOK)
	e := w.events[len(w.events)-1]
	if e.Type != checkout.EventCaseProposed || e.Detail[checkout.DetailCaseID] != c.ID || e.Detail[checkout.DetailCaseKind] != "late_payment" ||
		e.Detail[checkout.DetailProposal] != "1" || e.Detail[checkout.DetailResolution] != "refund" || e.Detail[checkout.DetailReference] != "wire 7" ||
		e.Detail[checkout.DetailReason] != "paid twice" || e.Detail[checkout.DetailBy] != "staff one" {
		t.Errorf("the event is %s %v", e.Type, e.Detail)
	}
	wantCode(t, note(1, casework.DecisionRejected), checkout.CodeOK)
	wantReplay(t, note(1, casework.DecisionApproved), checkout.CodeOK) // it has been decided
	wantCode(t, note(2, casework.DecisionProposed), checkout.CodeOK)
	wantCode(t, note(2, casework.DecisionApproved), checkout.CodeOK)
	wantReplay(t, note(2, casework.DecisionApproved), checkout.CodeOK)
	wantCode(t, note(2, casework.DecisionRefused), checkout.CodeOK) // the processor has not carried it out
	wantReplay(t, note(2, casework.DecisionRefused), checkout.CodeOK)
	wantCode(t, note(3, "something else"), checkout.CodeCaseNotAllowed)
	wantCode(t, note(3, casework.DecisionProposed), checkout.CodeOK)
	wantCode(t, note(3, casework.DecisionLapsed), checkout.CodeOK)
	wantReplay(t, note(3, casework.DecisionApproved), checkout.CodeOK) // it has lapsed
	wantCode(t, w.resolve("a", c.ID, checkout.ResolutionRefund), checkout.CodeOK)
	wantReplay(t, note(2, casework.DecisionApproved), checkout.CodeOK)
	wantCode(t, w.ask(checkout.Command{SessionID: "a", Do: checkout.NoteProposal{CaseID: "case_x", Number: 1, Step: casework.DecisionProposed}}), checkout.CodeCaseNotFound)
	wantCode(t, w.ask(checkout.Command{SessionID: "none", Do: checkout.NoteProposal{CaseID: c.ID, Number: 1, Step: casework.DecisionProposed}}), checkout.CodeSessionNotFound)
	w.want("a", checkout.StatusFailed, created, requested, failed, late,
		checkout.EventCaseProposed, checkout.EventCaseRejected, checkout.EventCaseProposed, checkout.EventCaseApproved, checkout.EventCaseRefused,
		checkout.EventCaseProposed, checkout.EventCaseLapsed, resolved, returned)
}

// answerSome adds what ERPs answer to a random history: in any order, repeated, and for
// calls of any time.
func answerSome(t *rapid.T, w *world, id string, send func(*rapid.T, checkout.Command)) {
	send(t, checkout.Command{SessionID: id, Do: checkout.Confirmed{
		TransactionID: rapid.SampledFrom([]string{"t-" + id, "t-" + id, "t-" + id, "x"}).Draw(t, "transaction"),
		Answer: rapid.SampledFrom([]checkout.ConfirmationAnswer{
			checkout.AnswerAccepted, checkout.AnswerRefused, checkout.AnswerRefused, checkout.AnswerFailed, "something else",
		}).Draw(t, "answer"),
		AnsweredAt: w.now.Add(-time.Duration(rapid.IntRange(0, 3).Draw(t, "ago")) * time.Hour), Reason: rapid.SampledFrom([]string{"http_422", checkout.ReasonCredentials}).Draw(t, "reason"),
	}})
}

// noteSome adds steps of proposals to a random history.
func noteSome(t *rapid.T, w *world, id string, send func(*rapid.T, checkout.Command)) {
	do := checkout.NoteProposal{
		CaseID: "none", Number: rapid.IntRange(0, 3).Draw(t, "number"), Resolution: checkout.ResolutionRefund, By: "staff",
		Step: rapid.SampledFrom([]casework.DecisionState{casework.DecisionProposed, casework.DecisionApproved, casework.DecisionRejected, casework.DecisionLapsed, casework.DecisionRefused}).Draw(t, "step"),
	}
	if cases := w.sessions[id].Cases; len(cases) > 0 {
		do.CaseID = rapid.SampledFrom(cases).Draw(t, "case").ID
	}
	send(t, checkout.Command{SessionID: id, Do: do})
}

// confirmationInvariants: a payment that an ERP is to accept is accepted, in one open case,
// or due to become one; nothing follows the acceptance; and the ERP is told once for each
// completion and each retry. It is about sessions with one due; TestClaimsInRandomHistories has carts.
func confirmationInvariants(t *rapid.T, w *world) {
	type history struct {
		settled, told                         bool
		confirms, completions, again, retries int
		withdrawn                             int
		noted                                 map[string]bool
	}
	by := map[string]*history{}
	for _, e := range w.events {
		if len(e.Session.Items) > 1 {
			continue
		}
		h := by[e.SessionID]
		if h == nil {
			h = &history{noted: map[string]bool{}}
			by[e.SessionID] = h
		}
		switch e.Type {
		case checkout.EventConfirmationAwaited, accepted, refused, retried, recorded:
			if h.settled {
				t.Fatalf("%s of %s follows its acceptance", e.Type, e.SessionID)
			}
			h.settled, h.told = e.Type == accepted || e.Type == recorded, true
		case completed:
			h.completions++
		case resolved:
			if e.Detail[checkout.DetailResolution] == string(checkout.ResolutionRetry) {
				h.retries++
			}
		case checkout.EventCaseProposed, checkout.EventCaseApproved, checkout.EventCaseRejected, checkout.EventCaseLapsed, checkout.EventCaseRefused:
			step := e.Detail[checkout.DetailCaseID] + "/" + e.Detail[checkout.DetailProposal]
			if e.Type == checkout.EventCaseProposed || e.Type == checkout.EventCaseRefused {
				step += "/" + string(e.Type)
			}
			if h.noted[step] {
				t.Fatalf("%s is recorded twice", step)
			}
			h.noted[step] = true
		default:
		}
		for _, r := range e.ConfirmationRequests() {
			switch r.Kind {
			case checkout.RequestConfirm:
				h.confirms++
			case checkout.RequestAgain:
				h.again++
			case checkout.RequestWithdraw:
				h.withdrawn++
			}
		}
	}
	for id, s := range w.sessions {
		if len(s.Items) > 1 {
			continue
		}
		h, c := by[id], s.Confirmation
		if !s.Confirms() {
			h.completions = 0
		}
		if h.confirms != h.completions || h.again != h.retries || h.withdrawn > 1 {
			t.Fatalf("%s: the ERP is told %+v", id, *h)
		}
		open := 0
		for _, k := range s.Cases {
			if k.Kind != checkout.CaseConfirmation {
				continue
			}
			if !s.ERP && !h.told {
				t.Fatalf("%s has a case about an ERP that its agency does not have: %+v", id, k)
			}
			if k.Open() {
				open++
			}
		}
		settled := c.Status == checkout.ConfirmationAccepted || c.Status == checkout.ConfirmationRecorded
		if settled != h.settled {
			t.Fatalf("%s is %s, and its events say %v", id, c.Status, h.settled)
		}
		if open > 1 || open > 0 && (settled || !s.Paid()) {
			t.Fatalf("%s has %d open cases about a confirmation that is %s, paid %v", id, open, c.Status, s.Paid())
		}
		if s.Paid() && s.Confirms() && s.ERP && c.Status == "" {
			t.Fatalf("%s is paid and awaits no ERP", id)
		}
		if at, ok := s.Deadline(); s.Paid() && c.Status != "" && !settled && open == 0 && (!ok || at.After(c.Since.Add(day))) {
			t.Fatalf("the confirmation of %s would be forgotten: %+v, deadline %v", id, c, at)
		}
	}
}
