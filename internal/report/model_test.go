package report_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"quittance/casework"
	"quittance/checkout"
	"quittance/internal/clickhouse"
	"quittance/internal/journal"
	"quittance/internal/report"
	"quittance/schemas/mapping"
	journaltest "quittance/test/journal"
	"quittance/test/processor"
)

// A report of an operator that it replaced, or is asked about anew, and a mismatch that staff honoured,
// were shown as money that was given back. What the reports say of a month is what happened to its
// payments: 7,954 came in and 3,285 of it went back.
func TestMoneyOfReports(t *testing.T) {
	t.Parallel()
	addr, database := journaltest.Migrated(t)
	conn, err := clickhouse.Open(t.Context(), "http://"+addr+"/"+database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	p := processor.New(t, time.Date(2026, 11, 10, 9, 0, 0, 0, time.UTC))
	open := func(id string, items ...int64) {
		s := checkout.Session{
			ID: id, ApplicationID: "app", TenantID: "agency", Live: true, OrderID: "order " + id, Amount: 1000, Currency: "XAF", Mode: checkout.ModeHosted,
			PaymentRef: "1234567890123456", TransactionID: "tx-" + id, NoticeRef: "AV-" + id, ExpiresAt: p.Time.Add(time.Hour),
			Offers: []checkout.Offer{{ID: checkout.OfferMomo, Channel: checkout.ChannelMobileMoney, Fee: 15}},
		}
		for i, amount := range items {
			s.Items = append(s.Items, checkout.Item{ERPDueRef: fmt.Sprint("D-", i), Amount: amount, TransactionID: fmt.Sprint("tx-", id, "-", i), NoticeRef: "AV"})
		}
		p.Do(id, checkout.Create{Session: s, IdempotencyKey: id, CreationsPerMinute: 1000})
		p.Do(id, checkout.Collect{CollectionID: "k-" + id, OfferID: checkout.OfferMomo, Account: "acc", Payer: "p", Total: 1015, ApprovalWindow: time.Minute, SendWithin: time.Minute})
	}
	reports := func(id string, amount int64) {
		p.Do(id, checkout.Outcome{CollectionID: "k-" + id, Source: checkout.SourceCallback, Status: checkout.OutcomeApproved, Amount: amount, Currency: "XAF", OperatorRef: "op", Account: "acc"})
	}
	resolve := func(id string, r casework.Resolution) {
		for _, c := range p.Session(id).Cases {
			if c.Open() {
				p.Do(id, checkout.Resolve{CaseID: c.ID, Resolution: r, Reference: "ref", Reason: "r", By: "Jean", ApprovedBy: "Mireille"})
				return
			}
		}
		t.Fatalf("%s has no open case", id)
	}
	open("paid")
	reports("paid", 1015)
	open("refunded")
	reports("refunded", 1015)
	p.Do("refunded", checkout.OpenRefundRequest{By: "Jean", Reason: "r"})
	resolve("refunded", checkout.ResolutionRefund)
	open("cart", 400, 600)
	reports("cart", 1015)
	p.Do("cart", checkout.OpenRefundRequest{By: "Jean", Reason: "r", TransactionIDs: []string{"tx-cart-0"}})
	resolve("cart", checkout.ResolutionRefund) // 400 and 6 of the fee
	open("corrected")
	reports("corrected", 50)
	reports("corrected", 1015) // the report of 50 was wrong
	open("asked again")
	reports("asked again", 1064)
	p.Time = p.Time.Add(time.Hour)
	p.Do("asked again", checkout.Tick{})
	resolve("asked again", checkout.ResolutionAskAgain)
	open("honoured")
	p.Do("honoured", checkout.Cancel{By: checkout.ByIntegrator})
	reports("honoured", 1500)
	resolve("honoured", checkout.ResolutionHonour)
	resolve("honoured", checkout.ResolutionRefund) // the surplus of 485
	open("too much")
	p.Do("too much", checkout.Cancel{By: checkout.ByIntegrator})
	reports("too much", 1379)
	resolve("too much", checkout.ResolutionRefund)
	open("late")
	p.Do("late", checkout.Cancel{By: checkout.ByIntegrator})
	reports("late", 1015)

	store := journal.NewStore(conn)
	for _, e := range p.Events {
		rows, err := journal.ReceiptsOf(mapping.FromEvent(e))
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			if err := store.Insert(t.Context(), &rows[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, want := range map[string]map[string]int64{
		"takings":  {"completed_minor": 4060, "late_minor": 2030, "unmatched_minor": 1864, "given_back_minor": -3285, "total_minor": 4669},
		"channels": {"received_minor": 7954, "given_back_minor": -3285, "total_minor": 4669},
	} {
		got := map[string]int64{}
		for _, row := range rowsOf(t, conn, name) {
			for column := range want {
				got[column] += row[column]
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// rowsOf returns the numbers of the rows of a report of November 2026, by column.
func rowsOf(t *testing.T, conn clickhouse.Conn, name string) (out []map[string]int64) {
	t.Helper()
	for _, r := range report.All() {
		if r.Name != name {
			continue
		}
		table, err := r.Run(t.Context(), conn, report.Params{Month: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), Live: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, values := range table.Rows {
			row := map[string]int64{}
			for i, c := range table.Columns {
				if c.Number {
					row[c.Name], _ = values[i].(int64)
				}
			}
			out = append(out, row)
		}
	}
	return out
}

// Operators contradict themselves, staff resolve at any moment, and dues are given back one by one: whatever happens in
// a month, its reports say of each currency what the payments themselves say at its end.
func TestReportsOfRandomMonths(t *testing.T) {
	t.Parallel()
	addr, database := journaltest.Migrated(t)
	conn, err := clickhouse.Open(t.Context(), "http://"+addr+"/"+database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	random := rand.New(rand.NewPCG(7, 11))
	p := processor.New(t, time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC))
	for range 3000 {
		randomStep(p, random)
	}
	want := map[string]figures{}
	for _, s := range p.Sessions {
		add(want, s)
	}
	if want["XAF"].received < 50_000 || want["XAF"].back == 0 || want["EUR"].received == 0 {
		t.Fatalf("too little happens: %+v", want)
	}
	var rows []journal.Row
	for _, e := range p.Events {
		made, err := journal.ReceiptsOf(mapping.FromEvent(e))
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, journal.Rows(made)...)
	}
	if err := journal.NewStore(conn).Insert(t.Context(), rows...); err != nil {
		t.Fatal(err)
	}
	for name, column := range map[string]string{"takings": "", "channels": "received_minor"} {
		got := map[string]figures{}
		for _, row := range textsOf(t, conn, name) {
			f := got[row["currency"].(string)]
			if column != "" {
				f.received += row[column].(int64)
			} else {
				f.received += row["completed_minor"].(int64) + row["late_minor"].(int64) + row["unmatched_minor"].(int64)
			}
			f.back -= row["given_back_minor"].(int64)
			f.total += row["total_minor"].(int64)
			got[row["currency"].(string)] = f
		}
		for currency, f := range want {
			if currency == "" {
				continue // an amount that nobody could read is no money
			}
			f.total = f.received - f.back
			if got[currency] != f {
				t.Errorf("%s says of %s %+v, the payments %+v", name, currency, got[currency], f)
			}
		}
	}
}

// figures are sums of a currency, in minor units.
type figures struct{ received, back, total int64 }

// add adds what the operators have of a session, and what was given back. A report that its operator has replaced, or is
// asked about anew, was never money; one that staff honoured is that of the collection.
func add(to map[string]figures, s checkout.Session) {
	count := func(currency string, amount int64, back bool) {
		f := to[currency]
		f.received += amount
		if back {
			f.back += amount
		}
		to[currency] = f
	}
	if c := s.Collection; c != nil && c.Status == checkout.CollectionApproved {
		count(c.Currency, c.Amount, false)
		for _, due := range s.Dues() {
			if !s.Returned(due).IsZero() {
				f := to[c.Currency]
				f.back += due.Total()
				to[c.Currency] = f
			}
		}
	}
	for _, c := range s.Cases {
		if (c.Kind == checkout.CaseMismatch || c.Kind == checkout.CaseOrphan) && !c.Notice() && c.Resolution != checkout.ResolutionSuperseded && c.Resolution != checkout.ResolutionAskAgain && c.Resolution != checkout.ResolutionHonour {
			count(c.Currency, c.Amount, c.Resolution == checkout.ResolutionRefund || c.Resolution == checkout.ResolutionCashReturned)
		}
	}
}

// randomStep carries out one command about one of sixty payments.
func randomStep(p *processor.Processor, random *rand.Rand) {
	p.Time = p.Time.Add(time.Duration(random.IntN(10)) * time.Minute)
	n := random.IntN(60)
	id := fmt.Sprint("s", n)
	s := p.Session(id)
	if s.ID == "" {
		s = checkout.Session{
			ID: id, ApplicationID: "app", TenantID: "agency", Live: true, OrderID: fmt.Sprint("order ", n/2), Amount: 1000, Currency: "XAF", Mode: checkout.ModeHosted,
			PaymentRef: "1234567890123456", TransactionID: "tx-" + id, NoticeRef: "AV-" + id, ExpiresAt: p.Time.Add(24 * time.Hour),
			Offers: []checkout.Offer{{ID: checkout.OfferMomo, Channel: checkout.ChannelMobileMoney, Fee: 15}},
		}
		if n%3 == 0 {
			for i, amount := range []int64{300, 700} {
				s.Items = append(s.Items, checkout.Item{ERPDueRef: fmt.Sprint("D-", n, "-", i), Amount: amount, TransactionID: fmt.Sprint("tx-", id, "-", i), NoticeRef: "AV"})
			}
		}
		p.Do(id, checkout.Create{Session: s, IdempotencyKey: id, CreationsPerMinute: 1000})
		return
	}
	collection := []string{"k-" + id, "k-" + id, "k-" + id, "elsewhere-" + id}[random.IntN(4)]
	amount := []int64{1015, 1015, 1015, 1500, 50, 0}[random.IntN(6)]
	currency := []string{"XAF", "XAF", "XAF", "XAF", "EUR"}[random.IntN(5)]
	switch random.IntN(10) {
	case 0, 1, 2:
		p.Do(id, checkout.Collect{CollectionID: "k-" + id, OfferID: checkout.OfferMomo, Account: "acc", Payer: "p", Total: 1015, ApprovalWindow: time.Minute, SendWithin: time.Minute, ByReference: random.IntN(2) == 0})
	case 3, 4, 5:
		p.Do(id, checkout.Outcome{CollectionID: collection, Source: checkout.SourceCallback, Status: checkout.OutcomeApproved, Amount: amount, Currency: currency, OperatorRef: "op", Account: "acc", HonourLate: random.IntN(2) == 0})
	case 6:
		p.Do(id, checkout.Outcome{CollectionID: collection, Source: checkout.SourceCallback, Status: checkout.OutcomeRefused})
	case 7:
		p.Do(id, []checkout.Action{checkout.Tick{}, checkout.Cancel{By: checkout.ByIntegrator}}[random.IntN(2)])
	case 8:
		do := checkout.OpenRefundRequest{By: "Jean", Reason: "r"}
		for _, due := range s.Items {
			if random.IntN(2) == 0 {
				do.TransactionIDs = append(do.TransactionIDs, due.TransactionID)
			}
		}
		p.Do(id, do)
	case 9:
		for _, c := range s.Cases {
			if allowed := checkout.CaseCatalog().Allowed(c.Kind); c.Open() && len(allowed) > 0 {
				p.Do(id, checkout.Resolve{CaseID: c.ID, Resolution: allowed[random.IntN(len(allowed))], Reference: "ref", Reason: "r", By: "Jean", ApprovedBy: "Mireille"})
				return
			}
		}
	}
}

// textsOf returns the rows of a report of November 2026, by column.
func textsOf(t *testing.T, conn clickhouse.Conn, name string) (out []map[string]any) {
	t.Helper()
	for _, r := range report.All() {
		if r.Name != name {
			continue
		}
		table, err := r.Run(t.Context(), conn, report.Params{Month: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), Live: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, values := range table.Rows {
			row := map[string]any{}
			for i, c := range table.Columns {
				row[c.Name] = values[i]
			}
			out = append(out, row)
		}
	}
	return out
}
