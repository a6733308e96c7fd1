package checkout_test

import (
	"fmt"
	"testing"
	"time"

	"quittance/checkout"
)

// An agency's ERP refused our credentials for two days. The first confirmation had a case, as it should; 24 hours
// later each of the others had one, too, and a person closed them one by one. Now the ERP has one case, which ends when
// it answers, also when another confirmation is the first that it takes. The last ones have a day more from then on.
func TestOneCaseForAnERPThatRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pay := func(ids ...string) {
		for _, id := range ids {
			s := draft(id, "o-"+id)
			s.ERP, s.Metadata, s.ExpiresAt = true, map[string]string{checkout.MetadataERPDueRef: "due-" + id}, w.now.Add(time.Hour)
			wantCode(t, w.ask(checkout.Command{SessionID: id, Do: checkout.Create{Session: s, IdempotencyKey: id, CreationsPerMinute: 1000}}), checkout.CodeOK)
			w.collect(id)
			w.outcome(id, approved())
			w.advance(time.Hour)
		}
	}
	answer := func(id string, a checkout.ConfirmationAnswer, reason string) {
		t.Helper()
		wantCode(t, w.ask(checkout.Command{SessionID: id, Do: checkout.Confirmed{TransactionID: "t-" + id, Answer: a, AnsweredAt: w.now, Reason: reason}}), checkout.CodeOK)
	}
	open := func(want ...string) {
		t.Helper()
		got := []string{}
		for _, id := range []string{"a", "b", "c", "d", "e"} {
			for _, c := range w.sessions[id].Cases {
				if c.Kind == checkout.CaseConfirmation && c.Open() {
					got = append(got, id+" "+c.Reason)
				}
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("after %s the open cases are %q, want %q", w.now.Sub(start), got, want)
		}
	}
	pay("a", "b", "c")
	answer("a", checkout.AnswerRefused, checkout.ReasonCredentials)
	answer("b", checkout.AnswerRefused, checkout.ReasonCredentials) // another worker has begun
	open("a credentials_refused")
	w.advance(49 * time.Hour)
	open("a credentials_refused")
	if events := len(w.events); events > 40 {
		t.Errorf("%d events in two days of three payments", events)
	}

	// Two people close the case although the ERP refuses on: the next confirmation that has waited for a day has it.
	a := w.openCase("a")
	wantCode(t, w.resolve("a", a.ID, checkout.ResolutionRecordedByHand), checkout.CodeOK)
	open()
	w.advance(25 * time.Hour)
	open("b credentials_refused")

	answer("c", checkout.AnswerAccepted, "")
	open()
	w.advance(23 * time.Hour) // b is behind thousands of others
	open()
	answer("b", checkout.AnswerAccepted, "")

	// It refuses again, with 403 this time, and one confirmation is refused itself.
	pay("d", "e")
	answer("d", checkout.AnswerRefused, checkout.ReasonCredentials)
	answer("e", checkout.AnswerRefused, "http_422")
	open("d credentials_refused", "e http_422")
	answer("e", checkout.AnswerAccepted, "")
	open()
	// What the ERP does not accept although it takes others has a case of its own.
	w.advance(25 * time.Hour)
	open("d not accepted in 24 h")
}

// The ERP is slow for a day, so that a confirmation has a case of its own, and then refuses our credentials with that very
// one. The others have one case together.
func TestERPThatRefusesAfterADay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, id := range []string{"a", "b", "c"} {
		s := draft(id, "o-"+id)
		s.ERP, s.Metadata, s.ExpiresAt = true, map[string]string{checkout.MetadataERPDueRef: "due-" + id}, w.now.Add(time.Hour)
		wantCode(t, w.ask(checkout.Command{SessionID: id, Do: checkout.Create{Session: s, IdempotencyKey: id, CreationsPerMinute: 1000}}), checkout.CodeOK)
		w.collect(id)
		w.outcome(id, approved())
		w.advance(20 * time.Hour)
	}
	wantCode(t, w.ask(checkout.Command{SessionID: "a", Do: checkout.Confirmed{TransactionID: "t-a", Answer: checkout.AnswerRefused, AnsweredAt: w.now, Reason: checkout.ReasonCredentials}}), checkout.CodeOK)
	w.advance(50 * time.Hour)
	about := 0
	for _, id := range []string{"a", "b", "c"} {
		for _, c := range w.sessions[id].Cases {
			if c.AboutERP() {
				about++
			} else if id == "c" {
				t.Errorf("%s has the case %+v", id, c)
			}
		}
	}
	if about != 1 {
		t.Errorf("%d cases about the ERP, want 1", about)
	}
}
