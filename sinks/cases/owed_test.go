package cases_test

import (
	"testing"
	"time"

	"quittance/checkout"
	"quittance/internal/cases"
	"quittance/test/registries"
)

// An operator reported 1,000 of 5,075 francs. The case showed the 1,000 only, two people agreed to honour
// it, and the processor refused that after the approval. The case says what was owed, and too little cannot be
// proposed to be honoured. Once it is closed, both people are named.
func TestTooLittle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runs(t, w)
	s := checkout.Session{
		ID: checkout.NewSessionID(registries.Epoch, 0, [16]byte{1}), ApplicationID: registries.AppA, TenantID: registries.AgencyA, OrderID: "o", Amount: 5000, Currency: "XAF",
		Mode: checkout.ModeHosted, TransactionID: "tx", CreatedAt: registries.Epoch, ExpiresAt: registries.Epoch.Add(time.Hour),
		Offers: []checkout.Offer{{ID: checkout.OfferMomo, Channel: checkout.ChannelMobileMoney, Fee: 75}},
	}
	w.do(t, checkout.CodeOK, s.ID, checkout.Create{Session: s, IdempotencyKey: "k", CreationsPerMinute: 1000})
	w.do(t, checkout.CodeOK, s.ID, checkout.Collect{CollectionID: "c", OfferID: checkout.OfferMomo, Payer: "p", Total: 5075, ApprovalWindow: time.Minute, SendWithin: time.Minute})
	w.do(t, checkout.CodeOK, s.ID, checkout.Outcome{CollectionID: "c", Source: checkout.SourceCallback, Status: checkout.OutcomeApproved, Amount: 1000, Currency: "XAF"})
	id := w.Session(s.ID).Cases[0].ID
	w.within(t, "the case", func() bool { return w.show(t, id).ID != "" })
	d := w.show(t, id)
	if owed, currency, ok := d.Owed(); !ok || owed != 5075 || currency != "XAF" || d.Amount != 1000 {
		t.Errorf("%d %s owed of %+v", owed, currency, d)
	}
	_, err := w.store.Propose(t.Context(), w.one, cases.Request{CaseID: id, Resolution: checkout.ResolutionHonour, Reason: "r"}, w.Now())
	if refusal(err) != "case.too_little" {
		t.Errorf("honour of too little: %v", err)
	}
	w.propose(t, w.one, id, checkout.ResolutionRefund, "wire 7")
	w.approve(t, w.two, id, 1)
	w.carriedOut(t, id)
	if d := w.show(t, id); d.ClosedBy != "One" || d.ApprovedBy() != "Two" {
		t.Errorf("closed by %q and %q", d.ClosedBy, d.ApprovedBy())
	}
	for mode, want := range map[string]int{"test": 0, "live": 0, "": 1} {
		if d.Mode == mode {
			want = 1
		}
		if list, err := w.store.List(t.Context(), nil, cases.Filter{Mode: mode}); err != nil || len(list) != want {
			t.Errorf("%d cases of mode %q, %v", len(list), mode, err)
		}
	}
}
