package journal_test

import (
	"context"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/casework"
	"quittance/checkout"
	"quittance/internal/journal"
	"quittance/schemas"
	"quittance/schemas/mapping"
	sink "quittance/sinks/journal"
	"quittance/test/processor"
	"quittance/test/servers"
)

const (
	impots = "018f0000-0000-7000-8000-000000000001"
	portal = "018f0000-0000-7000-8000-00000000000a"
)

// ledger decides commands as the processor does. Each story is an order.
type ledger struct{ *processor.Processor }

// noon is a local noon.
var noon = time.Date(2026, 11, 30, 11, 0, 0, 0, time.UTC)

// open creates a session and asks for its money, due and a fee of 75.
func (l ledger) open(id string, change func(*checkout.Session)) {
	s := checkout.Session{
		ID: id, ApplicationID: portal, TenantID: impots, Live: true, OrderID: "order " + id, Amount: 5000, Currency: "XAF", Mode: checkout.ModeHosted,
		PaymentRef: "1234567890123456", TransactionID: "tx-" + id, NoticeRef: "AV-" + id, ServiceCode: "patente", ServiceLabel: "Contribution de la patente",
		Metadata: map[string]string{checkout.MetadataERPDueRef: "due-" + id}, ExpiresAt: l.Time.Add(time.Hour),
		Offers: []checkout.Offer{
			{ID: checkout.OfferMomo, Channel: checkout.ChannelMobileMoney, Fee: 75},
			{ID: checkout.OfferCashAgency, Channel: checkout.ChannelCash, Fee: 75},
			{ID: checkout.OfferCard, Channel: checkout.ChannelCard, Fee: 75},
		},
	}
	if change != nil {
		change(&s)
	}
	l.want(id, checkout.Create{Session: s, IdempotencyKey: id, CreationsPerMinute: 1000}, checkout.CodeOK)
}

func (l ledger) collect(id string) {
	l.want(id, checkout.Collect{
		CollectionID: "k-" + id, OfferID: checkout.OfferMomo, Account: "acc-1", Payer: "p", Total: l.Session(id).Amount + 75, ApprovalWindow: time.Minute, SendWithin: time.Minute,
	}, checkout.CodeOK)
}

func (l ledger) reported(id, collection string, amount int64, currency string) {
	l.Do(id, checkout.Outcome{
		CollectionID: collection, Source: checkout.SourceCallback, Status: checkout.OutcomeApproved, Amount: amount, Currency: currency, OperatorRef: "op-" + id, Account: "acc-2",
	})
}

func (l ledger) pay(id string, change func(*checkout.Session)) {
	l.open(id, change)
	l.collect(id)
	s := l.Session(id)
	l.reported(id, "k-"+id, s.Amount+75, s.Currency)
}

func (l ledger) want(id string, do checkout.Action, code checkout.Code) {
	l.T.Helper()
	if a := l.Do(id, do); a.Code != code {
		l.T.Fatalf("%T of %s is answered %s, want %s", do, id, a.Code, code)
	}
}

// late makes money that arrives after the session was cancelled.
func (l ledger) late(id string) {
	l.open(id, nil)
	l.collect(id)
	l.want(id, checkout.Cancel{By: checkout.ByIntegrator}, checkout.CodeOK)
	l.Time = l.Time.Add(24 * time.Hour)
	l.reported(id, "k-"+id, 5075, "XAF")
}

// resolve closes the only open case of a session.
func (l ledger) resolve(id string, resolution casework.Resolution) {
	l.T.Helper()
	for _, c := range l.Session(id).Cases {
		if c.Open() && c.Kind != checkout.CaseReversal {
			l.want(id, checkout.Resolve{CaseID: c.ID, Resolution: resolution, Reference: "ref", Reason: "r", By: "Jean", ApprovedBy: "Mireille"}, checkout.CodeOK)
			return
		}
	}
	l.T.Fatalf("%s has no open case", id)
}

// stories are the ways that money takes, with the receipts of each: movement, local date,
// day of the approval, currency, due, fee, total, account, item, reason, who.
var stories = map[string]struct {
	do   func(l ledger)
	want []string
}{
	"paid": {func(l ledger) { l.pay("paid", nil) }, []string{
		"completed|2026-11-30|2026-11-30|XAF|5000|75|5075|acc-1|1||",
	}},
	"midnight": {func(l ledger) {
		l.Time = time.Date(2026, 11, 30, 22, 59, 59, 999_000_000, time.UTC)
		l.pay("midnight", nil)
		l.Time = time.Date(2026, 11, 30, 23, 0, 0, 0, time.UTC) // 0:00 of the next day and month in Brazzaville
		l.pay("after midnight", nil)
	}, nil},
	"after midnight": {func(ledger) {}, []string{
		"completed|2026-12-01|2026-12-01|XAF|5000|75|5075|acc-1|1||",
	}},
	"dated by its operator": {func(l ledger) {
		l.open("dated by its operator", nil)
		l.collect("dated by its operator")
		l.Do("dated by its operator", checkout.Outcome{
			CollectionID: "k-dated by its operator", Source: checkout.SourceEnquiry, Status: checkout.OutcomeApproved, Amount: 5075, Currency: "XAF", ApprovedAt: noon.AddDate(0, 0, -1),
		})
	}, []string{"completed|2026-11-30|2026-11-29|XAF|5000|75|5075|acc-1|1||"}},
	"another currency": {func(l ledger) { l.pay("another currency", func(s *checkout.Session) { s.Currency = "EUR" }) }, []string{
		"completed|2026-11-30|2026-11-30|EUR|5000|75|5075|acc-1|1||",
	}},
	"three dues": {func(l ledger) {
		l.pay("three dues", func(s *checkout.Session) {
			s.Items = []checkout.Item{
				{ERPDueRef: "d1", Amount: 1000, TransactionID: "t1", ServiceCode: "a"},
				{ERPDueRef: "d2", Amount: 1000, TransactionID: "t2", ServiceCode: "b"},
				{ERPDueRef: "d3", Amount: 3000, TransactionID: "t3", ServiceCode: "c"},
			}
		})
		l.want("three dues", checkout.OpenRefundRequest{By: "Jean", Reason: "wrong taxpayer"}, checkout.CodeOK)
		l.resolve("three dues", checkout.ResolutionRefund)
	}, []string{
		"completed|2026-11-30|2026-11-30|XAF|1000|15|1015|acc-1|1||", "completed|2026-11-30|2026-11-30|XAF|1000|15|1015|acc-1|2||", "completed|2026-11-30|2026-11-30|XAF|3000|45|3045|acc-1|3||",
		"reversal|2026-11-30|2026-11-30|XAF|-1000|-15|-1015|acc-1|1|refunded|Jean", "reversal|2026-11-30|2026-11-30|XAF|-1000|-15|-1015|acc-1|2|refunded|Jean", "reversal|2026-11-30|2026-11-30|XAF|-3000|-45|-3045|acc-1|3|refunded|Jean",
	}},
	"cash given back": {func(l ledger) {
		l.open("cash given back", nil)
		l.want("cash given back", checkout.Take{CollectionID: "c1", By: "c01", Total: 5075, Receipt: "R-7", Desk: "Hall"}, checkout.CodeOK)
		l.want("cash given back", checkout.Reverse{CollectionID: "c1", By: "c02", Reason: "wrong person"}, checkout.CodeOK)
	}, []string{
		"completed|2026-11-30|2026-11-30|XAF|5000|75|5075|Hall|1||c01", "reversal|2026-11-30|2026-11-30|XAF|-5000|-75|-5075|Hall|1|cash_returned|c02",
	}},
	"cash beside another payment": {func(l ledger) {
		l.pay("cash beside another payment", nil)
		l.want("cash beside another payment", checkout.Take{CollectionID: "c2", By: "c01", Total: 5075, Desk: "Hall"}, checkout.CodeCase)
		l.want("cash beside another payment", checkout.Reverse{CollectionID: "c2", By: "c02", Reason: "paid twice"}, checkout.CodeOK)
	}, []string{
		"completed|2026-11-30|2026-11-30|XAF|5000|75|5075|acc-1|1||",
		"orphan|2026-11-30|2026-11-30|XAF|5075|0|5075|Hall|0||c01", "reversal|2026-11-30|2026-11-30|XAF|-5075|0|-5075|Hall|0|cash_returned|c02",
	}},
	"late and honoured": {func(l ledger) {
		l.late("late and honoured")
		l.Time = l.Time.Add(48 * time.Hour)
		l.resolve("late and honoured", checkout.ResolutionHonour)
	}, []string{"late|2026-12-01|2026-12-01|XAF|5000|75|5075|acc-1|1||"}},
	"late and given back": {func(l ledger) {
		l.late("late and given back")
		l.Time = l.Time.Add(48 * time.Hour)
		l.resolve("late and given back", checkout.ResolutionRefund)
	}, []string{"late|2026-12-01|2026-12-01|XAF|5000|75|5075|acc-1|1||", "reversal|2026-12-03|2026-12-01|XAF|-5000|-75|-5075|acc-1|1|refunded|Jean"}},
	"an orphan": {func(l ledger) {
		l.open("an orphan", nil)
		l.reported("an orphan", "elsewhere", 70, "EUR")
		l.resolve("an orphan", checkout.ResolutionRefund)
	}, []string{"orphan|2026-11-30|2026-11-30|EUR|70|0|70|acc-2|0||", "reversal|2026-11-30|2026-11-30|EUR|-70|0|-70|acc-2|0|refunded|Jean"}},
	"more than the total": {func(l ledger) {
		l.open("more than the total", nil)
		l.collect("more than the total")
		l.want("more than the total", checkout.Cancel{By: checkout.ByIntegrator}, checkout.CodeOK)
		l.reported("more than the total", "k-more than the total", 6000, "XAF")
		l.Time = l.Time.Add(48 * time.Hour)
		l.resolve("more than the total", checkout.ResolutionHonour)
		l.resolve("more than the total", checkout.ResolutionRefund) // of the surplus
	}, []string{
		"mismatch|2026-11-30|2026-11-30|XAF|6000|0|6000|acc-1|0|amount|", "mismatch|2026-12-02|2026-11-30|XAF|-6000|0|-6000|acc-1|0|amount|",
		"orphan|2026-12-02|2026-12-02|XAF|925|0|925|acc-1|0||", "late|2026-12-02|2026-11-30|XAF|5000|75|5075|acc-1|1||Jean", "reversal|2026-12-02|2026-12-02|XAF|-925|0|-925|acc-1|0|refunded|Jean",
	}},
	"another amount, then the right one": {func(l ledger) {
		const id = "another amount, then the right one"
		l.open(id, nil)
		l.collect(id)
		l.reported(id, "k-"+id, 50, "XAF")
		l.reported(id, "k-"+id, 5075, "XAF")
	}, []string{
		"mismatch|2026-11-30|2026-11-30|XAF|50|0|50|acc-1|0|amount|", "reversal|2026-11-30|2026-11-30|XAF|-50|0|-50|acc-1|0|superseded|",
		"completed|2026-11-30|2026-11-30|XAF|5000|75|5075|acc-1|1||",
	}},
	"refused after the approval": {func(l ledger) {
		l.pay("refused after the approval", nil)
		l.Do("refused after the approval", checkout.Outcome{CollectionID: "k-refused after the approval", Source: checkout.SourceCallback, Status: checkout.OutcomeRefused, Amount: 5075, Currency: "XAF"})
	}, []string{"completed|2026-11-30|2026-11-30|XAF|5000|75|5075|acc-1|1||"}},
	"never paid": {func(l ledger) {
		l.open("never paid", nil)
		l.collect("never paid")
		l.Do("never paid", checkout.Outcome{CollectionID: "k-never paid", Source: checkout.SourceCallback, Status: checkout.OutcomeRefused})
	}, nil},
}

// expectations are the rows of expected money of the stories that do more than complete a
// session in time: kind, state, withdrawn, local date, currency, gross, fee, account, operator's
// reference, reference of a refund, reason.
var expectations = map[string][]string{
	"paid":                        {"received|completed|false|2026-11-30|XAF|5075|75|acc-1|op-paid||"},
	"midnight":                    {"received|completed|false|2026-11-30|XAF|5075|75|acc-1|op-midnight||"},
	"after midnight":              {"received|completed|false|2026-12-01|XAF|5075|75|acc-1|op-after midnight||"},
	"dated by its operator":       {"received|completed|false|2026-11-29|XAF|5075|75|acc-1|||"},
	"three dues":                  {"given_back|reversed|false|2026-11-30|XAF|-5075|-75|acc-1|op-three dues|ref|refunded", "received|completed|false|2026-11-30|XAF|5075|75|acc-1|op-three dues||"},
	"cash given back":             {"given_back|reversed|false|2026-11-30|XAF|-5075|-75|Hall|R-7||cash_returned", "received|completed|false|2026-11-30|XAF|5075|75|Hall|R-7||"},
	"cash beside another payment": {"given_back|reversed|false|2026-11-30|XAF|-5075|0|Hall|||cash_returned", "received|completed|false|2026-11-30|XAF|5075|75|acc-1|op-cash beside another payment||", "received|orphan|false|2026-11-30|XAF|5075|0|Hall|||"},
	"late and honoured":           {"received|late|false|2026-12-01|XAF|5075|75|acc-1|op-late and honoured||", "undecided|undecided|false|2026-11-30|XAF|5075|75|acc-1|||", "undecided|undecided|true|2026-11-30|XAF|-5075|-75|acc-1|op-late and honoured||decided"},
	"late and given back":         {"given_back|reversed|false|2026-12-03|XAF|-5075|-75|acc-1|op-late and given back|ref|refunded", "received|late|false|2026-12-01|XAF|5075|75|acc-1|op-late and given back||", "undecided|undecided|false|2026-11-30|XAF|5075|75|acc-1|||", "undecided|undecided|true|2026-11-30|XAF|-5075|-75|acc-1|op-late and given back||decided"},
	"an orphan":                   {"given_back|reversed|false|2026-11-30|EUR|-70|0|acc-2|op-an orphan|ref|refunded", "received|orphan|false|2026-11-30|EUR|70|0|acc-2|op-an orphan||"},
	"more than the total":         {"given_back|reversed|false|2026-12-02|XAF|-925|0|acc-1|op-more than the total|ref|refunded", "received|mismatch|false|2026-11-30|XAF|6000|0|acc-1|op-more than the total||amount", "undecided|undecided|false|2026-11-30|XAF|5075|75|acc-1|||", "undecided|undecided|true|2026-11-30|XAF|-5075|-75|acc-1|||decided"},
	"refused after the approval":  {"received|completed|false|2026-11-30|XAF|5075|75|acc-1|op-refused after the approval||"},
	"never paid":                  nil,
	"another amount, then the right one": {
		"received|completed|false|2026-11-30|XAF|5075|75|acc-1|op-another amount, then the right one||",
		"received|mismatch|false|2026-11-30|XAF|50|0|acc-1|op-another amount, then the right one||amount",
		"received|mismatch|true|2026-11-30|XAF|-50|0|acc-1|op-another amount, then the right one||superseded",
	},
}

// expected returns the rows of expected money of a session.
func (w *world) expected(session string) []string {
	w.t.Helper()
	return w.rows("kind, state, withdrawn, local_date, currency, gross, fee, account, operator_ref, reference, reason",
		"FROM expected_money FINAL WHERE session_id = ? ORDER BY kind, state, account = 'Hall', withdrawn", session)
}

// notExpected returns the accounts and currencies of which the receipts and the expected money
// have different sums.
func (w *world) notExpected() []string {
	w.t.Helper()
	return w.rows("tenant_id, livemode, account, currency, sum(receipt), sum(expected)", `FROM (
			SELECT tenant_id, livemode, account, currency, total_amount AS receipt, 0 AS expected FROM receipts
			UNION ALL SELECT tenant_id, livemode, account, currency, 0, gross FROM expected_money FINAL WHERE kind IN ('received', 'given_back')
		) GROUP BY tenant_id, livemode, account, currency HAVING sum(receipt) != sum(expected)`)
}

// publish writes the ledger's events to Kafka.
func (w *world) publish(l ledger) {
	w.t.Helper()
	var out []*kgo.Record
	for _, e := range l.Events {
		out = append(out, w.value(schemas.TopicEvents, e.SessionID, mapping.FromEvent(e)))
	}
	if err := w.cl.ProduceSync(w.t.Context(), out...).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
}

// rows returns the result of a query, a line for each row.
func (w *world) rows(columns, rest string, args ...any) (out []string) {
	w.t.Helper()
	rows, err := w.conn.Query(w.t.Context(), "SELECT concatWithSeparator('|', "+columns+") "+rest, args...)
	if err != nil {
		w.t.Fatalf("%s: %v", rest, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			w.t.Fatal(err)
		}
		out = append(out, line)
	}
	if err := rows.Err(); err != nil {
		w.t.Fatal(err)
	}
	return out
}

// The definitions of the view receipts: what is money, when, whose, and how often.
func TestReceipts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := ledger{processor.New(t, noon)}
	for _, story := range stories {
		l.Time = noon
		story.do(l)
	}
	// The same payment as a test.
	l.Time = noon
	l.pay("tested", func(s *checkout.Session) { s.Live, s.OrderID = false, "order paid" })
	w.publish(l)
	names := []journal.Name{{Kind: journal.NameAgency, ID: impots, TenantID: impots, Name: "Impôts"}, {Kind: journal.NameApplication, ID: portal, TenantID: impots, Name: "Guichet"}}
	for range 2 {
		if _, err := journal.NewStore(w.conn).PutNames(t.Context(), names); err != nil {
			t.Fatal(err)
		}
	}
	_, stop := w.run(w.conn)
	eventually(t, "everything committed", w.committed)
	stop()

	const columns = "movement, local_date, approved_on, currency, amount, fee_amount, total_amount, account, item, reason, recorded_by"
	for id, story := range stories {
		want := story.want
		if id == "midnight" {
			want = []string{"completed|2026-11-30|2026-11-30|XAF|5000|75|5075|acc-1|1||"}
		}
		// Movements of one moment in the order in which they happen.
		got := w.rows(columns, `FROM receipts WHERE session_id = ? ORDER BY occurred_at, indexOf(['mismatch', 'orphan', 'late', 'completed', 'reversal'], movement), item`, id)
		if id == "another amount, then the right one" || id == "cash beside another payment" {
			if !sameLines(got, want) {
				t.Errorf("%s:\n%s\nwant\n%s", id, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			continue
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s", id, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	check := func(what string, got []string, want ...string) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	for id, want := range expectations {
		if got := w.expected(id); !reflect.DeepEqual(got, want) {
			t.Errorf("expected of %s:\n%s\nwant\n%s", id, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	check("sums of receipts and expected money that differ", w.notExpected())
	check("references of expected money", w.rows("livemode, channel, offer_id, order_id, collection_id, payment_ref, arrayStringConcat(notice_refs, ','), approved_at, source_topic, source_partition < 3",
		"FROM expected_money FINAL WHERE session_id IN ('paid', 'three dues') AND kind = 'received' ORDER BY session_id"),
		"true|MOBILE_MONEY|momo|order paid|k-paid|1234567890123456|AV-paid|2026-11-30 11:00:00.000|checkout.events|1",
		"true|MOBILE_MONEY|momo|order three dues|k-three dues|1234567890123456||2026-11-30 11:00:00.000|checkout.events|1")
	check("test beside live", w.rows("livemode, session_id", "FROM receipts WHERE order_id = 'order paid' ORDER BY livemode"), "false|tested", "true|paid")
	check("references and names", w.rows(`agency, application, service, service_code, mode, channel, offer_id, order_id, payment_ref, collection_id, operator_ref, erp_due_ref, transaction_id, notice_ref`,
		"FROM receipts WHERE session_id = 'paid'"),
		"Impôts|Guichet|Contribution de la patente|patente|hosted|MOBILE_MONEY|momo|order paid|1234567890123456|k-paid|op-paid|due-paid|tx-paid|AV-paid")
	check("dues", w.rows("erp_due_ref, transaction_id, service_code", "FROM receipts WHERE session_id = 'three dues' AND movement = 'completed' ORDER BY item"), "d1|t1|a", "d2|t2|b", "d3|t3|c")
	check("the takings of November", w.rows("currency, sum(total_amount)", `FROM receipts WHERE livemode AND tenant_id = ? AND toStartOfMonth(local_date) = '2026-11-01' GROUP BY currency ORDER BY currency`, impots),
		"EUR|5075", "XAF|36450")
	check("a name of today", func() []string {
		names[0].Name = "Finances"
		if n, err := journal.NewStore(w.conn).PutNames(t.Context(), names); n != 1 || err != nil {
			t.Errorf("%d names, %v", n, err)
		}
		return w.rows("agency, application", "FROM receipts WHERE session_id = 'paid'")
	}(), "Finances|Guichet")
}

// sameLines compares without the order.
func sameLines(a, b []string) bool {
	left := map[string]int{}
	for _, line := range a {
		left[line]++
	}
	for _, line := range b {
		left[line]--
	}
	for _, n := range left {
		if n != 0 {
			return false
		}
	}
	return true
}

// The sink dies between the inserts into the two tables, again and again. Nothing is lost
// and nothing counts twice.
func TestKilledBetweenTheTables(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = 50
	for i := range 3 {
		w.produce(i*n, (i+1)*n)
		if err := w.conn.Exec(t.Context(), "RENAME TABLE receipt_rows TO elsewhere"); err != nil {
			t.Fatal(err)
		}
		reg, stop := w.run(w.conn)
		eventually(t, "entries without receipts", func() bool {
			return metric(t, reg, "quittance_journal_insert_errors_total") >= 2 && w.rows("count() > "+strconv.Itoa(i*n), "FROM journal FINAL WHERE event = 'checkout.completed'")[0] == "1"
		})
		stop()
		if w.committed() {
			t.Fatal("offsets were committed without the receipts")
		}
		if err := w.conn.Exec(t.Context(), "RENAME TABLE elsewhere TO receipt_rows"); err != nil {
			t.Fatal(err)
		}
		_, stop = w.run(w.conn)
		eventually(t, "everything committed", w.committed)
		stop()
		w.check((i + 1) * n)
	}
	if all, once := w.rows("count()", "FROM journal"), w.rows("count()", "FROM journal FINAL"); all[0] == once[0] {
		t.Log("ClickHouse has merged the repeated rows already")
	}
}

// The names are copied, also after a time in which the registry could not be read.
func TestNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	calls := 0
	n, err := sink.NewNames(sink.NamesConfig{
		Store: journal.NewStore(w.conn), Every: 10 * time.Millisecond, Log: servers.Logger(t),
		Read: func(context.Context) ([]journal.Name, error) {
			if calls++; calls < 3 {
				return nil, errors.New("Postgres is away")
			}
			return []journal.Name{{Kind: journal.NameAgency, ID: impots, TenantID: impots, Name: "Impôts"}}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	eventually(t, "a name", func() bool { return w.rows("count()", "FROM names FINAL WHERE name = 'Impôts'")[0] == "1" })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// An event without the money that it tells of is set aside: it must not be missing unseen.
func TestMoneyWithoutCollectionIsPoison(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := ledger{processor.New(t, noon)}
	l.pay("a", nil)
	e := mapping.FromEvent(l.Events[len(l.Events)-1])
	e.Session.Collection = nil
	bad := w.value(schemas.TopicEvents, "k", e)
	if err := w.cl.ProduceSync(t.Context(), bad).FirstErr(); err != nil {
		t.Fatal(err)
	}
	w.produce(0, 2)
	_, stop := w.run(w.conn)
	eventually(t, "everything committed", w.committed)
	stop()
	w.check(2)
	w.setAside(bad)
}

// A version that did not bound operators' dates committed approvals of 1970 and of 2262. Their rows
// were set aside, so that no report had the payment and the matcher stopped.
func TestAbsurdDatesAreWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := ledger{processor.New(t, noon)}
	for n, year := range []int{1, 1970, 2262, 9999} {
		l.pay(string(rune('a'+n)), nil)
		e := mapping.FromEvent(l.Events[len(l.Events)-1])
		absurd := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		e.Session.Collection.ApprovedAt = absurd
		if err := w.cl.ProduceSync(t.Context(), w.value(schemas.TopicEvents, "k", e)).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	metrics, stop := w.run(w.conn)
	eventually(t, "everything committed", w.committed)
	stop()
	if n := metric(t, metrics, "quittance_journal_dates_dropped_total"); n != 3 { // the first one is no date
		t.Errorf("%v dropped dates are counted, want 3", n)
	}
	var receipts, expected uint64
	err := w.conn.QueryRow(t.Context(), "SELECT (SELECT count() FROM receipts), (SELECT count() FROM expected_money)").Scan(&receipts, &expected)
	if err != nil || receipts != 4 || expected != 4 {
		t.Errorf("%d receipts and %d rows of expected money of 4 payments, %v", receipts, expected, err)
	}
}
