package checkout_test

import (
	"bytes"
	"testing"
	"time"

	"quittance/checkout"
)

// A card payment continues on the acquirer's page. The session keeps the first redirect
// while the payer may need it, and no longer.
func TestRedirect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.withCard(100)
	redirected := func(collection, to string) checkout.Code {
		return w.ask(checkout.Command{SessionID: "s", Do: checkout.Redirected{CollectionID: collection, Sealed: []byte(to)}}).Code
	}
	if code := redirected("c", "early"); code != checkout.CodeSessionNotFound {
		t.Errorf("a redirect of no collection is %s", code)
	}
	w.ask(checkout.Command{SessionID: "s", Do: checkout.Collect{
		CollectionID: "c", OfferID: checkout.OfferCard, Total: 5100, ApprovalWindow: 15 * time.Minute, SendWithin: 2 * time.Minute,
	}})
	for _, to := range []string{"first", "second"} {
		if code := redirected("c", to); code != checkout.CodeOK {
			t.Errorf("%s: %s", to, code)
		}
		if got := w.sessions["s"].Collection.RedirectSealed; !bytes.Equal(got, []byte("first")) {
			t.Errorf("the way is %q", got)
		}
	}
	if code := redirected("other", "x"); code != checkout.CodeSessionNotFound {
		t.Errorf("a redirect of another collection is %s", code)
	}
	w.ask(checkout.Command{SessionID: "s", Do: checkout.Outcome{
		CollectionID: "c", Source: checkout.SourceCallback, Status: checkout.OutcomeRefused, FailureCode: checkout.FailureCardDeclined,
	}})
	redirected("c", "late")
	if s := w.sessions["s"]; s.Collection.RedirectSealed != nil || s.FailureCode != checkout.FailureCardDeclined {
		t.Errorf("after the refusal the session is %s and leads to %q", s.FailureCode, s.Collection.RedirectSealed)
	}
}

// A citizen who does not return from the acquirer's page has abandoned the payment. Later
// reports of the acquirer still count.
func TestAbandonedCard(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.withCard(0)
	w.ask(checkout.Command{SessionID: "s", Do: checkout.Collect{
		CollectionID: "c", OfferID: checkout.OfferCard, Total: 5000, ApprovalWindow: 15 * time.Minute, SendWithin: 2 * time.Minute,
	}})
	w.advance(15*time.Minute + 24*time.Second)
	if s := w.sessions["s"]; s.Status != checkout.StatusOpen {
		t.Fatalf("the session is %s while the last enquiry is under way", s.Status)
	}
	w.advance(time.Second)
	if s := w.sessions["s"]; s.Status != checkout.StatusFailed || s.FailureCode != checkout.FailureCardAbandoned {
		t.Errorf("the session is %s, %s", s.Status, s.FailureCode)
	}
	w.ask(checkout.Command{SessionID: "s", Do: checkout.Outcome{
		CollectionID: "c", Source: checkout.SourceEnquiry, Status: checkout.OutcomeApproved, Amount: 5000, Currency: "XAF",
	}})
	if last := w.events[len(w.events)-1]; last.Type != checkout.EventLatePayment {
		t.Errorf("the money is %s", last.Type)
	}
}

// withCard makes the session s with the card offer.
func (w *world) withCard(fee int64) {
	w.t.Helper()
	s := draft("s", "o")
	s.Offers = []checkout.Offer{{ID: checkout.OfferCard, Channel: checkout.ChannelCard, Fee: fee}}
	wantCode(w.t, w.ask(checkout.Command{SessionID: "s", ApplicationID: app, Do: checkout.Create{
		Session: s, IdempotencyKey: "key", BodyHash: []byte("o"), CreationsPerMinute: 1000,
	}}), checkout.CodeOK)
}
