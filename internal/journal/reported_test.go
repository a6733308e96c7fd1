package journal_test

import (
	"testing"
	"time"

	"quittance/checkout"
	"quittance/internal/journal"
	"quittance/schemas/mapping"
	"quittance/test/processor"
)

// An operator approved a payment that it had refused, while the session was paid by card. The money stood in the
// reports under the card, because channel and offer were those of the session's present collection.
func TestReportedMoneyHasItsOwnChannel(t *testing.T) {
	t.Parallel()
	p := processor.New(t, time.Date(2026, 11, 10, 9, 0, 0, 0, time.UTC))
	p.Do("s", checkout.Create{Session: checkout.Session{
		ID: "s", ApplicationID: "app", TenantID: "agency", OrderID: "order", Amount: 1000, Currency: "XAF", Mode: checkout.ModeHosted,
		PaymentRef: "1234567890123456", TransactionID: "tx", NoticeRef: "AV", ExpiresAt: p.Time.Add(time.Hour),
		Offers: []checkout.Offer{{ID: checkout.OfferMomo, Channel: checkout.ChannelMobileMoney, Fee: 15}, {ID: checkout.OfferCard, Channel: checkout.ChannelCard, Fee: 20}},
	}, IdempotencyKey: "s", CreationsPerMinute: 1000})
	says := func(id string, status checkout.OutcomeStatus, amount int64) {
		p.Do("s", checkout.Outcome{CollectionID: id, Source: checkout.SourceCallback, Status: status, Amount: amount, Currency: "XAF", OperatorRef: "op-" + id})
	}
	collect := func(id, offer string, total int64) {
		p.Do("s", checkout.Collect{
			CollectionID: id, OfferID: offer, Account: "acc-" + id, Payer: "p", Total: total, ApprovalWindow: time.Minute, SendWithin: time.Minute, ByReference: id == "phone",
		})
	}
	collect("phone", checkout.OfferMomo, 1015)
	says("phone", checkout.OutcomeRefused, 0)
	collect("card", checkout.OfferCard, 1020)
	says("phone", checkout.OutcomeApproved, 1015)
	last := p.Events[len(p.Events)-1]
	rows, err := journal.ReceiptsOf(mapping.FromEvent(last))
	if err != nil || len(rows) != 1 {
		t.Fatalf("%s has the rows %+v, %v", last.Type, rows, err)
	}
	if r := rows[0]; r.Channel != string(checkout.ChannelMobileMoney) || r.OfferID != checkout.OfferMomo || r.TotalAmount != 1015 {
		t.Errorf("the money is %d by %s, %s", r.TotalAmount, r.Channel, r.OfferID)
	}
}
