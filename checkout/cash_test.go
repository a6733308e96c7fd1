package checkout_test

import (
	"reflect"
	"testing"
	"time"

	"quittance/casework"
	"quittance/checkout"
)

// Each sum of cash that a clerk took or gave back is one movement, whatever became of the
// session. Money of other channels and refunds by staff are none.
func TestCashMovements(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	s := checkout.Session{
		ID: "chs_1", TenantID: "impots", Live: true, PaymentRef: "1", NoticeRef: "AV1", ServiceLabel: "Patente",
		Collection: &checkout.Collection{ID: "a", Channel: checkout.ChannelCash, Status: checkout.CollectionPending, Amount: 5050, Clerk: "c01"},
	}
	if got := s.Cash(); got != nil {
		t.Errorf("a reservation moves %+v", got)
	}
	c := s.Collection
	c.Status, c.DecidedAt, c.Account, c.OperatorRef = checkout.CollectionApproved, day, "Hall", "R-1"
	base := checkout.CashMovement{
		SessionID: "chs_1", CollectionID: "a", Kind: checkout.CashTaken, AgencyID: "impots", Live: true, Clerk: "c01", At: day, Amount: 5050,
		PaymentRef: "1", NoticeRefs: []string{"AV1"}, ServiceLabel: "Patente", Counter: "Hall", Receipt: "R-1",
	}
	want := []checkout.CashMovement{base}
	if got := s.Cash(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	c.ReversedBy, c.ReversedAt = "c02", day.Add(time.Hour)
	returned := base
	returned.Kind, returned.Clerk, returned.At = checkout.CashReturned, "c02", c.ReversedAt
	s.Cases = []checkout.Case{
		{Case: casework.Case{Kind: checkout.CaseOrphan, Amount: 60, By: "c03", OpenedAt: day}, CollectionID: "b", Account: "Annexe"},
		{Case: casework.Case{Kind: checkout.CaseOrphan, Amount: 70, By: "c03", OpenedAt: day, Resolution: checkout.ResolutionCashReturned, ClosedBy: "c01", ClosedAt: day}, CollectionID: "c"},
		{Case: casework.Case{Kind: checkout.CaseOrphan, Amount: 80, By: "c03", OpenedAt: day, Resolution: checkout.ResolutionRefund, ClosedBy: "jean", ClosedAt: day}, CollectionID: "d"},
		{Case: casework.Case{Kind: checkout.CaseOrphan, Amount: 90, OpenedAt: day}, CollectionID: "e"},                   // an operator's report
		{Case: casework.Case{Kind: checkout.CaseLatePayment, Amount: 5050, By: "c01", OpenedAt: day}, CollectionID: "a"}, // the session's own cash
	}
	var got []string
	for _, m := range s.Cash() {
		got = append(got, m.CollectionID+" "+string(m.Kind)+" "+m.Clerk)
	}
	if want := []string{"a taken c01", "a returned c02", "b taken c03", "c taken c03", "c returned c01", "d taken c03"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if got := s.Cash()[1]; !reflect.DeepEqual(got, returned) {
		t.Errorf("got  %+v\nwant %+v", got, returned)
	}
	s.Cases = nil
	c.Channel = checkout.ChannelMobileMoney
	if got := s.Cash(); got != nil {
		t.Errorf("mobile money moves %+v", got)
	}
	s.Items = []checkout.Item{{NoticeRef: "AV2"}, {NoticeRef: "AV3"}}
	if got := s.NoticeRefs(); !reflect.DeepEqual(got, []string{"AV2", "AV3"}) {
		t.Errorf("notices %v", got)
	}
}
