package checkout_test

import (
	"testing"
	"time"

	"quittance/checkout"
)

// The record of a creation was written once more, byte for byte, after the session had ended and its
// idempotency key was forgotten; the cash-in surface has no key at all. The session began anew under its old
// id: its payment was forgotten and the payer was asked again.
func TestRepeatedCreationChangesNothing(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(w *world) checkout.Action{
		"create": func(*world) checkout.Action {
			return checkout.Create{Session: draft("a", "o"), IdempotencyKey: "k", BodyHash: []byte("h"), CreationsPerMinute: 10}
		},
		"init-checkout": func(w *world) checkout.Action {
			return checkout.InitCheckout{Session: w.payment("a", "o", checkout.CashinInit)}
		},
		"partner's payment": func(w *world) checkout.Action {
			return checkout.PartnerPay{Session: w.payment("a", "o", checkout.CashinPartner), Collect: collection("c-a")}
		},
	} {
		for end, ends := range map[string]func(w *world){
			"paid": func(w *world) {
				if w.sessions["a"].Collection == nil {
					wantCode(w.t, w.collect("a"), checkout.CodeOK)
				}
				w.outcome("a", approved())
			},
			"cancelled": func(w *world) { w.cancel("a") },
		} {
			t.Run(name+", "+end, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				cmd := checkout.Command{At: w.now, SessionID: "a", ApplicationID: app, Do: do(w), ReplyTo: &checkout.ReplyTo{}}
				first := w.decide(cmd)
				wantCode(t, *first.Answer, checkout.CodeOK)
				ends(w)
				w.advance(40 * 24 * time.Hour)
				clear(w.keys) // forgotten
				was, events, requests, numbers := w.sessions["a"], len(w.events), len(w.requests), w.months[checkout.MonthKey{ApplicationID: app, Month: "2611"}]
				if !was.Ended() {
					t.Fatalf("the session is %s", was.Status)
				}
				again := w.decide(cmd)
				if a := *again.Answer; a.Code != checkout.CodeOK || !a.Replayed || a.Session.Status != was.Status {
					t.Errorf("the repetition is answered %+v", a)
				}
				if is := w.sessions["a"]; is.Sequence != was.Sequence || is.Status != was.Status || len(w.events) != events || len(w.requests) != requests || w.months[checkout.MonthKey{ApplicationID: app, Month: "2611"}] != numbers {
					t.Errorf("the repetition made of %+v\n%+v", was, is)
				}
			})
		}
	}
}
