package journal

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"quittance/casework"
	"quittance/checkout"
	"quittance/internal/journal"
	"quittance/schemas/mapping"
	"quittance/test/processor"
)

// purse is what two ways of counting have of an account.
type purse struct {
	tenant, account, currency string
	live                      bool
}

// Whatever happens to random sessions, the expected money adds up to the receipts, by agency,
// account and currency. A collection of a session is expected once, an undecided one as long as
// its session says so, and a withdrawn row takes off exactly the row that it names, in the same
// partition and place of the sorting key.
func TestExpectedMoneyAddsUpToReceipts(t *testing.T) {
	t.Parallel()
	outer := t
	rapid.Check(t, func(t *rapid.T) {
		p := processor.New(outer, time.Date(2026, 11, 30, 20, 0, 0, 0, time.UTC))
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			randomStep(t, p)
		}
		expected, receipts := map[purse]int64{}, map[purse]int64{}
		rows := map[uuid.UUID]journal.Expected{}
		for _, e := range p.Events {
			r := mapping.FromEvent(e)
			money, err := journal.ReceiptsOf(r)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range money {
				receipts[purse{m.TenantID, m.Account, m.Currency, m.Livemode}] += m.TotalAmount
			}
			list, err := journal.ExpectedOf(r)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range list {
				x.SourceTopic, x.Version = "checkout.events", journal.ExpectedVersion(0)
				if err := x.Validate(); err != nil {
					t.Fatal(err)
				}
				dues := x.Fee
				for _, amount := range x.Amounts {
					dues += amount
				}
				if pays := x.State == journal.ExpectedCompleted || x.State == journal.ExpectedLate; len(x.Amounts) > 0 && dues != x.Gross || pays && len(x.Amounts) == 0 {
					t.Fatalf("%s: dues of %d in %+v", e.Type, x.Amounts, x)
				}
				before, there := rows[x.ID]
				switch {
				case x.Withdrawn && !there && x.Kind == journal.ExpectedUndecided: // refused before, or withdrawn twice
				case x.Withdrawn && (!there || before.Gross != -x.Gross || before.Fee != -x.Fee || before.TenantID != x.TenantID || before.LocalDate != x.LocalDate || before.Account != x.Account || before.CollectionID != x.CollectionID || before.Kind != x.Kind):
					t.Fatalf("%s: %+v withdraws %+v", e.Type, x, before)
				case x.Withdrawn:
					delete(rows, x.ID)
				case there:
					t.Fatalf("%s: %+v is there already: %+v", e.Type, x, before)
				default:
					rows[x.ID] = x
				}
				if x.Kind != journal.ExpectedUndecided {
					expected[purse{x.TenantID, x.Account, x.Currency, x.Livemode}] += x.Gross
				}
			}
		}
		for k := range receipts {
			if expected[k] != receipts[k] {
				t.Fatalf("%+v: %d expected, and receipts of %d", k, expected[k], receipts[k])
			}
			delete(expected, k)
		}
		for k, sum := range expected {
			if sum != 0 {
				t.Fatalf("%+v: %d expected without receipts", k, sum)
			}
		}
		checkCollections(t, p, rows)
	})
}

// checkCollections compares the entries that count with the sessions.
func checkCollections(t *rapid.T, p *processor.Processor, rows map[uuid.UUID]journal.Expected) {
	for id, s := range p.Sessions {
		c := s.Collection
		if c == nil {
			continue
		}
		_, paid := rows[journal.ExpectedID(journal.ExpectedReceived, id, c.ID)]
		if paid != (c.Status == checkout.CollectionApproved && !honoured(s)) {
			t.Fatalf("%s: received %v of the collection %+v", id, paid, c)
		}
		entry := []string{id, c.ID}
		if c.Reopened > 0 {
			entry = append(entry, strconv.Itoa(c.Reopened))
		}
		_, waits := rows[journal.ExpectedID(journal.ExpectedUndecided, entry...)]
		if waits != (c.Status == checkout.CollectionUndecided && !c.Mismatched && c.Channel != checkout.ChannelCash) {
			t.Fatalf("%s: undecided %v of the collection %+v", id, waits, c)
		}
		for _, k := range s.Cases {
			reported := k.Reported() && !k.Honoured() && !k.Replaced()
			if _, there := rows[journal.ExpectedID(journal.ExpectedReceived, k.ID)]; there != reported {
				t.Fatalf("%s: received %v of the case %+v", id, there, k)
			}
		}
	}
}

// honoured reports whether the money of a mismatch or of an orphan completed the session.
func honoured(s checkout.Session) bool {
	for _, c := range s.Cases {
		if (c.Kind == checkout.CaseMismatch || c.Kind == checkout.CaseOrphan) && c.Resolution == checkout.ResolutionHonour {
			return true
		}
	}
	return false
}

// randomStep carries out one command.
func randomStep(t *rapid.T, p *processor.Processor) {
	n := rapid.IntRange(1, 3).Draw(t, "session")
	id := fmt.Sprint("s", n)
	collection := rapid.SampledFrom([]string{"k-" + id, "k-" + id, "k-" + id, "cash-" + id, "elsewhere"}).Draw(t, "collection")
	amount := rapid.SampledFrom([]int64{5075, 5075, 5075, 6000, 50, 0}).Draw(t, "amount")
	currency := rapid.SampledFrom([]string{"XAF", "XAF", "XAF", "EUR", ""}).Draw(t, "currency")
	var approved time.Time
	if rapid.Bool().Draw(t, "dated") {
		approved = p.Time.Add(-time.Hour)
	}
	clerk := rapid.SampledFrom([]string{"c01", "c02"}).Draw(t, "clerk")
	switch rapid.SampledFrom([]string{"open", "open", "open", "collect", "collect", "collect", "approved", "approved", "refused", "take", "reverse", "cancel", "resolve", "resolve", "refund", "tick", "time", "day", "too much"}).Draw(t, "step") {
	case "open":
		if p.Session(id).ID != "" {
			return
		}
		s := checkout.Session{
			ID: id, ApplicationID: "app", TenantID: fmt.Sprint("agency ", n%2), Live: n != 3, OrderID: "order", Amount: 5000, Currency: "XAF", Mode: checkout.ModeHosted,
			PaymentRef: "1234567890123456", TransactionID: "tx-" + id, NoticeRef: "AV-" + id, ExpiresAt: p.Time.Add(time.Hour),
			Offers: []checkout.Offer{{ID: checkout.OfferMomo, Channel: checkout.ChannelMobileMoney, Fee: 75}, {ID: checkout.OfferCashAgency, Channel: checkout.ChannelCash, Fee: 75}},
		}
		if n > 1 { // of several dues
			for i, amount := range []int64{2000, 1700, 1300} {
				s.Items = append(s.Items, checkout.Item{ERPDueRef: fmt.Sprint("D-", i), Amount: amount, TransactionID: fmt.Sprint("tx-", id, "-", i), NoticeRef: fmt.Sprint("AV-", i)})
			}
		}
		p.Do(id, checkout.Create{Session: s, IdempotencyKey: id, CreationsPerMinute: 1000})
	case "collect":
		p.Do(id, checkout.Collect{CollectionID: "k-" + id, OfferID: checkout.OfferMomo, Account: "acc-1", Payer: "p", Total: 5075, ApprovalWindow: time.Minute, SendWithin: time.Minute, ByReference: rapid.Bool().Draw(t, "by reference")})
	case "approved":
		p.Do(id, checkout.Outcome{
			CollectionID: collection, Source: checkout.SourceCallback, Status: checkout.OutcomeApproved, Amount: amount, Currency: currency, OperatorRef: "op-" + id, Account: "acc-2",
			ApprovedAt: approved, HonourLate: !approved.IsZero(),
		})
	case "refused":
		p.Do(id, checkout.Outcome{CollectionID: collection, Source: checkout.SourceCallback, Status: checkout.OutcomeRefused, Amount: amount, Currency: currency})
	case "take":
		p.Do(id, checkout.Take{CollectionID: "cash-" + id, By: clerk, Total: 5075, Receipt: "R-7", Desk: "Hall"})
	case "reverse":
		p.Do(id, checkout.Reverse{CollectionID: collection, By: clerk, Reason: "wrong person"})
	case "cancel":
		p.Do(id, checkout.Cancel{By: checkout.ByIntegrator})
	case "refund":
		var dues []string
		for _, due := range p.Session(id).Items {
			if rapid.Bool().Draw(t, "the due") {
				dues = append(dues, due.TransactionID)
			}
		}
		p.Do(id, checkout.OpenRefundRequest{By: "Jean", Reason: "wrong taxpayer", TransactionIDs: dues})
	case "resolve":
		for _, c := range p.Session(id).Cases {
			if c.Open() {
				resolution := rapid.SampledFrom([]casework.Resolution{checkout.ResolutionHonour, checkout.ResolutionRefund, casework.ResolutionWriteOff, checkout.ResolutionApproved, checkout.ResolutionRefused, checkout.ResolutionAskAgain}).Draw(t, "resolution")
				p.Do(id, checkout.Resolve{CaseID: c.ID, Resolution: resolution, Reference: "ref", Reason: "r", By: "Jean", ApprovedBy: "Mireille"})
				break
			}
		}
	case "too much": // after the session's end: a surplus, if it is honoured
		p.Do(id, checkout.Cancel{By: checkout.ByIntegrator})
		p.Do(id, checkout.Outcome{CollectionID: "k-" + id, Source: checkout.SourceCallback, Status: checkout.OutcomeApproved, Amount: 6000, Currency: "XAF", OperatorRef: "op-" + id})
		for _, c := range p.Session(id).Cases {
			if c.Open() && rapid.Bool().Draw(t, "honoured") {
				p.Do(id, checkout.Resolve{CaseID: c.ID, Resolution: checkout.ResolutionHonour, Reason: "r", By: "Jean", ApprovedBy: "Mireille"})
			}
		}
	case "tick":
		p.Do(id, checkout.Tick{})
	case "time":
		p.Time = p.Time.Add(time.Duration(rapid.IntRange(1, 180).Draw(t, "minutes")) * time.Minute)
	case "day":
		p.Time = p.Time.AddDate(0, 0, rapid.IntRange(1, 40).Draw(t, "days"))
	}
}
