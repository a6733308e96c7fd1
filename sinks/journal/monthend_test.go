package journal_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/test/httpclient"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	guides "quittance/docs"
	"quittance/internal/deliveries"
	"quittance/internal/journal"
	"quittance/internal/report"
	"quittance/schemas"
	"quittance/schemas/record"
	journaltest "quittance/test/journal"
	"quittance/test/processor"
)

const (
	douanes = "018f0000-0000-7000-8000-000000000002"

	kindWebhook deliveries.Kind = "webhook"
	kindERP     deliveries.Kind = "erp"
)

// november of 2026 begins at 23:00 UTC in October.
var (
	octoberEnds   = time.Date(2026, 10, 31, 22, 59, 59, 999_000_000, time.UTC)
	novemberBegin = time.Date(2026, 10, 31, 23, 0, 0, 0, time.UTC)
	novemberEnds  = time.Date(2026, 11, 30, 22, 59, 59, 999_000_000, time.UTC)
	decemberBegin = time.Date(2026, 11, 30, 23, 0, 0, 0, time.UTC)
)

// on returns a noon in Brazzaville.
func on(month time.Month, day int) time.Time {
	return time.Date(2026, month, day, 11, 0, 0, 0, time.UTC)
}

// month is the money of a month with every ugly case. Expected sums are beside each story.
func (l ledger) month() {
	at := func(t time.Time) ledger { l.Time = t; return l }
	at(octoberEnds).pay("last of October", nil)
	at(novemberBegin).pay("first of November", nil) // 5075
	at(novemberEnds).pay("last of November", nil)   // 5075
	at(decemberBegin).pay("first of December", nil) // no money of November
	at(on(11, 3)).pay("tested", func(s *checkout.Session) { s.Live, s.OrderID = false, "order first of November" })
	at(on(11, 4)).pay("in euros", func(s *checkout.Session) { s.Currency, s.Amount = "EUR", 10_000 }) // 100.75
	at(on(11, 4)).pay("of another agency", func(s *checkout.Session) { s.TenantID, s.Amount = douanes, 7000 })
	at(on(11, 5)).pay("three dues", func(s *checkout.Session) { // 2030 and 3045
		s.Items = []checkout.Item{
			{ERPDueRef: "d1", Amount: 1000, TransactionID: "t1", ServiceCode: "foncier", ServiceLabel: "Contribution foncière"},
			{ERPDueRef: "d2", Amount: 1000, TransactionID: "t2", ServiceCode: "foncier", ServiceLabel: "Contribution foncière"},
			{ERPDueRef: "d3", Amount: 3000, TransactionID: "t3", ServiceCode: "patente", ServiceLabel: "Contribution de la patente"},
		}
	})
	at(on(11, 5)).pay("refunded", nil) // 5075 and -5075
	at(on(11, 20)).want("refunded", checkout.OpenRefundRequest{By: "Jean", Reason: "wrong taxpayer"}, checkout.CodeOK)
	l.resolve("refunded", checkout.ResolutionRefund)
	for _, id := range []string{"cash", "cash given back"} { // 5075 each
		at(on(11, 6)).open(id, nil)
		l.want(id, checkout.Take{CollectionID: "c " + id, By: "c01", Total: 5075, Receipt: "R " + id, Desk: "Hall"}, checkout.CodeOK)
	}
	l.want("cash given back", checkout.Reverse{CollectionID: "c cash given back", By: "c02", Reason: "wrong person"}, checkout.CodeOK) // -5075
	at(on(11, 10)).late("late, honoured")                                                                                              // 5075, once
	at(on(11, 13)).resolve("late, honoured", checkout.ResolutionHonour)
	at(on(11, 29)).late("late, given back in December") // 5075, and the case is open at the end of November
	at(on(12, 2)).resolve("late, given back in December", checkout.ResolutionRefund)
	at(on(10, 10)).late("late in October")
	at(on(11, 3)).resolve("late in October", checkout.ResolutionRefund) // -5075
	at(on(10, 15)).open("orphan of October", nil)
	l.reported("orphan of October", "elsewhere 1", 900, "XAF") // the case is open
	at(on(11, 12)).open("orphan", nil)
	l.reported("orphan", "elsewhere 2", 70, "EUR") // 0.70
	at(on(11, 14)).open("mismatch", nil)
	l.collect("mismatch")
	l.reported("mismatch", "k-mismatch", 50, "XAF") // 50
	at(on(11, 15)).open("mismatch, then right", nil)
	l.collect("mismatch, then right")
	l.reported("mismatch, then right", "k-mismatch, then right", 50, "XAF")                         // 50 and -50
	l.reported("mismatch, then right", "k-mismatch, then right", 5075, "XAF")                       // 5075
	at(on(11, 16)).Decide(checkout.Command{SessionID: "nobody's", Live: true, Do: checkout.Outcome{ // of no agency: 70
		CollectionID: "lost", Status: checkout.OutcomeApproved, Amount: 70, Currency: "XAF", OperatorRef: "op-lost", Account: "acc-9", ApprovedAt: on(11, 15),
	}})
}

// attempted is a call of a delivery of a session to a destination.
type attempted struct {
	kind              deliveries.Kind
	session, to, name string // the name of a redelivery
	number            int32
	outcome           string
	status            int32
	at                time.Time
	test              bool
}

func (c attempted) record() record.Record {
	event := "evt-" + c.session
	if c.kind == kindERP {
		event = "tx-" + c.session
	}
	a := &record.Attempt{
		Delivery: record.Delivery{
			DeliveryID: deliveries.RedeliveryID(c.kind, event, c.to, c.name), Kind: string(c.kind), DestinationID: c.to, EventID: event, Event: "checkout.completed",
			ApplicationID: portal, TenantID: impots, SessionID: c.session, Livemode: !c.test, OccurredAt: c.at, Attempt: c.number, Body: []byte("{}"),
		},
		Outcome: c.outcome, At: c.at, DurationMs: 7, HTTPStatus: c.status,
	}
	if c.outcome != "delivered" {
		a.Reason = fmt.Sprint("http_", c.status)
	}
	return a
}

// attempts are the deliveries of the month. Those of the first three sessions and that of the
// test are not accepted until now.
var attempts = []attempted{
	{kind: kindWebhook, session: "last of November", to: "endpoint-1", number: 1, outcome: "failed", status: 500, at: novemberEnds},
	{kind: kindWebhook, session: "last of November", to: "endpoint-1", number: 2, outcome: "failed", status: 503, at: decemberBegin},
	{kind: kindERP, session: "refunded", to: impots + "/live", number: 1, outcome: "needs_operator", status: 422, at: on(11, 5)},
	{kind: kindWebhook, session: "last of October", to: "endpoint-1", number: 1, outcome: "failed", status: 500, at: octoberEnds},
	{kind: kindWebhook, session: "last of October", to: "endpoint-1", number: 2, outcome: "exhausted", status: 500, at: on(11, 20)},
	{kind: kindWebhook, session: "tested", to: "endpoint-1", number: 1, outcome: "failed", status: 500, at: on(11, 3), test: true},

	{kind: kindWebhook, session: "first of November", to: "endpoint-1", number: 1, outcome: "failed", status: 500, at: novemberBegin},
	{kind: kindWebhook, session: "first of November", to: "endpoint-1", number: 2, outcome: "delivered", status: 200, at: novemberBegin.Add(time.Minute)},
	{kind: kindERP, session: "first of November", to: impots + "/live", number: 1, outcome: "failed", status: 500, at: on(11, 2)},
	{kind: kindERP, session: "first of November", to: impots + "/live", number: 2, outcome: "delivered", status: 200, at: on(12, 2)}, // in time before now
	{kind: kindWebhook, session: "in euros", to: "endpoint-1", number: 1, outcome: "exhausted", status: 500, at: on(11, 4)},
	{kind: kindWebhook, session: "in euros", to: "endpoint-1", name: "again", number: 1, outcome: "delivered", status: 200, at: on(11, 9)},
	{kind: kindWebhook, session: "late in October", to: "endpoint-1", number: 1, outcome: "failed", status: 500, at: on(10, 12)},
	{kind: kindWebhook, session: "first of December", to: "endpoint-1", number: 1, outcome: "failed", status: 500, at: decemberBegin},
}

// monthWorld has the month in ClickHouse, each row twice, as after a replay.
type monthWorld struct {
	*world
	address string // with the database
}

func newMonth(t *testing.T) monthWorld {
	addr, database := journaltest.Migrated(t)
	w := monthWorld{newWorldAt(t, "http://"+addr+"/"+database), "http://" + addr + "/?database=" + database}
	l := ledger{processor.New(t, on(10, 1))}
	l.month()
	var calls []*kgo.Record
	for _, c := range attempts {
		calls = append(calls, w.value(schemas.TopicAttempts, c.session, c.record()))
	}
	names := []journal.Name{
		{Kind: journal.NameAgency, ID: impots, TenantID: impots, Name: "Impôts"},
		{Kind: journal.NameSlug, ID: impots, TenantID: impots, Name: "impots"},
		{Kind: journal.NameAgency, ID: douanes, TenantID: douanes, Name: "Douanes"},
		{Kind: journal.NameSlug, ID: douanes, TenantID: douanes, Name: "douanes"},
	}
	if _, err := journal.NewStore(w.conn).PutNames(t.Context(), names); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w.publish(l)
		if err := w.cl.ProduceSync(t.Context(), calls...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	var opened []*kgo.Record // of the cases without a session
	for _, e := range l.Events {
		if e.Session.ID == "" {
			opened = append(opened, w.opening(e))
		}
	}
	if err := w.cl.ProduceSync(t.Context(), append(opened, opened...)...).FirstErr(); err != nil || len(opened) != 1 {
		t.Fatal(len(opened), err)
	}
	_, stop := w.run(w.conn)
	eventually(t, "everything committed", w.committed)
	stop()
	if err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	return w
}

// reconcile stores what the matcher found in the month: the account mtn has the francs of the
// merchant account acc-1, and no account has the euros, the cash and what is nobody's.
func (w monthWorld) reconcile() error {
	store, date := journal.NewStore(w.conn), func(month time.Month, day int) time.Time { return time.Date(2026, month, day, 0, 0, 0, 0, time.UTC) }
	total := func(day time.Time, offset, sources int64, live bool) journal.DayTotal {
		return journal.DayTotal{
			Day: day, TenantID: impots, Livemode: live, Account: "mtn", Currency: "XAF", Sources: sources, SourcesAmount: 15225, Lines: 3, LinesAmount: 15125, LinesFee: 152,
			OpenSources: 1, OpenSourcesAmount: 5075, OpenLines: 1, OpenLinesAmount: 4975, RunID: "run", At: day, SourceOffset: offset,
		}
	}
	n := int64(0)
	found := func(id, kind, reason string, day, at time.Time, amount int64, sources, lines []string) journal.Finding {
		n++
		f := journal.Finding{
			ID: "fnd_" + id, State: journal.FindingOpen, Type: journal.FindingBreak, Kind: kind, Reason: reason, Action: "explain", Day: day, TenantID: impots, Livemode: true, Account: "mtn",
			Currency: "XAF", Amount: amount, Sources: sources, Lines: lines, Part: 1, Parts: 1, RunID: "run", CaseID: "case_fnd_" + id, At: at, SourceOffset: n,
		}
		if kind == "" {
			f.Type, f.Action = journal.FindingProposal, "match"
		}
		return f
	}
	ended := func(f journal.Finding, at time.Time) journal.Finding {
		n++
		f.State, f.At, f.SourceOffset = journal.FindingCleared, at, n
		return f
	}
	one, another := []string{"2026-11-01/e"}, []string{"2026-11-01/mtn/1#2"}
	amount := found("2", "amount", "another amount", date(10, 20), on(10, 23), 100, one, another)
	twice := found("3", "duplicate_line", "twice", date(11, 10), on(11, 11), 5075, one, another)
	half := found("7", "", "amount and day", date(11, 30), novemberEnds, 5075, one, another)
	rest := found("7", "", "amount and day", date(11, 30), novemberEnds, 5075, []string{"2026-11-01/f"}, nil)
	half.Parts, rest.Parts, rest.Part = 2, 2, 2
	line := func(id, account, kind string, day time.Time, amount, fee int64, live bool) journal.Line {
		return journal.Line{
			ID: account + "/" + id, Content: 1, LocalDay: day, TenantID: impots, Livemode: live, Account: account, StatementID: "s", ImportID: "i", ImportedAt: day, Number: 1, Occurrence: 1,
			Kind: kind, Currency: "XAF", Amount: amount, FeeAmount: fee, NetAmount: amount - fee, Version: 1,
		}
	}
	run := func(today time.Time, offset int64, moneyOf ...string) journal.MatchRun {
		return journal.MatchRun{ID: fmt.Sprint("run", offset), TenantID: impots, Livemode: true, Account: "mtn", Today: today, Horizon: today, MoneyOf: moneyOf, At: today, SourceOffset: offset}
	}
	return errors.Join(
		store.Insert(w.t.Context(), journal.Rows([]journal.MatchRun{run(date(11, 4), 1, impots+"/EUR/momo/acc-1"), run(date(12, 2), 2, impots+"/XAF/momo/acc-1")})...),
		store.Insert(w.t.Context(), journal.Rows([]journal.DayTotal{
			total(date(11, 5), 1, 7, true), total(date(11, 5), 2, 3, true), total(date(10, 31), 3, 3, true), total(date(12, 1), 4, 3, true), total(date(11, 5), 5, 3, false),
		})...),
		store.Insert(w.t.Context(), journal.Rows([]journal.Finding{
			found("1", "missing_line", "no line", date(11, 28), on(11, 30), -5075, one, nil), amount, ended(amount, on(12, 2)), twice, ended(twice, on(11, 12)),
			found("4", "missing_line", "no line", date(11, 29), decemberBegin, -5075, one, nil), found("5", "unmatched_line", "no reference", date(11, 2), on(11, 3), 700, nil, another),
			found("6", "fee", "the net", date(11, 24), on(11, 25), -50, one, another), half, rest,
		})...),
		store.Insert(w.t.Context(), journal.Rows([]journal.Line{
			line("1", "mtn", "payment", date(11, 5), 5075, 50, true), line("2", "mtn", "refund", date(11, 30), -1000, 0, true), line("3", "mtn", "charge", date(11, 30), -200, 0, true),
			line("4", "mtn", "payout", date(11, 30), -3825, 0, true), line("5", "mtn", "payment", date(12, 1), 5075, 50, true), line("6", "mtn", "payment", date(11, 6), 5075, 50, false),
			line("1", "airtel", "payment", date(11, 1), 2000, 20, true), line("1", "banque", "entry", date(11, 30), 3825, 0, true),
		})...),
	)
}

// ask sends a query as it is, with the parameters of the page, as a user who can only read.
// It returns a line for each row, with bars between the columns.
func (w monthWorld) ask(sql, agency string, live bool) (lines []string) {
	w.t.Helper()
	q := url.Values{"param_month": {"2026-11-01"}, "param_agency": {agency}, "param_livemode": {fmt.Sprint(live)}, "default_format": {"CSV"}, "readonly": {"1"}}
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.address+"&"+q.Encode(), strings.NewReader(sql))
	if err != nil {
		w.t.Fatal(err)
	}
	answer, err := httpclient.Default.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		w.t.Fatalf("%s\nis answered %d %s, %v", sql, answer.StatusCode, text, err)
	}
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		w.t.Fatalf("%s: %v", text, err)
	}
	for _, row := range rows {
		lines = append(lines, strings.Join(row, "|"))
	}
	return lines
}

// blocks returns the blocks of a language on the page, unchanged.
func blocks(language string) (out []string) {
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllSubmatch(slices.Concat(guides.Analysts, guides.Views), -1) {
		out = append(out, string(m[1]))
	}
	return out
}

// The answers of the page's queries, in their order, for the agency impots and real money.
var answers = [][]string{
	{ // takings
		"Impôts|||EUR|0|0|0|70|0|70",
		"Impôts|||XAF|0|0|0|50|0|50",
		"Impôts|foncier|Contribution foncière|XAF|1|2030|0|0|0|2030",
		"Impôts|patente|Contribution de la patente|EUR|1|10075|0|0|0|10075",
		"Impôts|patente|Contribution de la patente|XAF|9|33495|10150|0|-15225|28420",
	},
	{ // channels
		"Impôts|||acc-2|EUR|1|70|0|70",
		"Impôts|CASH|cash_agency|Hall|XAF|3|10150|-5075|5075",
		"Impôts|MOBILE_MONEY|momo|acc-1|EUR|1|10075|0|10075",
		"Impôts|MOBILE_MONEY|momo|acc-1|XAF|14|35575|-10150|25425",
	},
	{ // fees
		"Impôts|CASH|cash_agency|XAF|2|10000|150|-75|75",
		"Impôts|MOBILE_MONEY|momo|EUR|1|10000|75|0|75",
		"Impôts|MOBILE_MONEY|momo|XAF|7|35000|525|-150|375",
	},
	{ // undelivered
		"Impôts|erp|" + impots + "/live|checkout.completed|order refunded|1234567890123456|XAF|5075|needs_operator|422|http_422|1|2026-11-05 12:00:00|2026-11-05 12:00:00|",
		"Impôts|webhook|endpoint-1|checkout.completed|order last of October|1234567890123456|XAF|5075|exhausted|500|http_500|2|2026-11-20 12:00:00|2026-11-20 12:00:00|",
		"Impôts|webhook|endpoint-1|checkout.completed|order last of November|1234567890123456|XAF|5075|failed|503|http_503|2|2026-11-30 23:59:59|2026-12-01 00:00:00|",
	},
	{ // open cases, without their ids
		"Impôts|orphan|2026-10-15 12:00:00|order orphan of October|op-orphan of October|XAF|900|||",
		"Impôts|reversal|2026-11-06 12:00:00|order cash given back|R cash given back|XAF|5075|cash_returned||", // the ERP is to be told by hand
		"Impôts|orphan|2026-11-12 12:00:00|order orphan|op-orphan|EUR|70|||",
		"Impôts|mismatch|2026-11-14 12:00:00|order mismatch|op-mismatch|XAF|50|amount||",
		"Impôts|reversal|2026-11-20 12:00:00|order refunded|op-refunded|XAF|5075|refunded||",
		"Impôts|late_payment|2026-11-30 12:00:00|order late, given back in December|op-late, given back in December|XAF|5075|||",
	},
	{ // reconciliation: the account, and money of no account
		"Impôts|2026-11-04||momo acc-1|EUR|1|10075|0|0|0|0|0|1|10075|0|0",
		"Impôts|2026-11-05|mtn||XAF|3|15225|3|15125|152|2|10150|1|5075|1|4975",
		"Impôts|2026-11-06||cash_agency Hall|XAF|3|5075|0|0|0|0|0|3|5075|0|0",
		"Impôts|2026-11-12||acc-2|EUR|1|70|0|0|0|0|0|1|70|0|0",
	},
	{ // breaks
		"Impôts|mtn|break|amount|another amount|explain|2026-10-20|41|over 30|XAF|100|1|1|case_fnd_2|fnd_2",
		"Impôts|mtn|break|unmatched_line|no reference|explain|2026-11-02|28|8-30|XAF|700|0|1|case_fnd_5|fnd_5",
		"Impôts|mtn|break|fee|the net|explain|2026-11-24|6|4-7|XAF|-50|1|1|case_fnd_6|fnd_6",
		"Impôts|mtn|break|missing_line|no line|explain|2026-11-28|2|2-3|XAF|-5075|1|0|case_fnd_1|fnd_1",
		"Impôts|mtn|proposal||amount and day|match|2026-11-30|0|0-1|XAF|5075|2|1|case_fnd_7|fnd_7",
	},
	{ // operator fees
		"Impôts|airtel|XAF|1|2000|20|0|20|1980",
		"Impôts|mtn|XAF|2|4075|50|200|250|3825",
	},
	{ // control
		"EUR|completed|1|10075", "EUR|orphan|1|70",
		"XAF|completed|9|35525", "XAF|late|2|10150", "XAF|mismatch|2|100", "XAF|reversal|4|-15275",
	},
	{ // beside a statement; the day of the approval of a reversal is that of the money
		"Hall|2026-11-06|XAF|3|5075",
		"acc-1|2026-11-01|XAF|1|5075", "acc-1|2026-11-04|EUR|1|10075", "acc-1|2026-11-05|XAF|5|5075", "acc-1|2026-11-11|XAF|1|5075", "acc-1|2026-11-14|XAF|1|50",
		"acc-1|2026-11-15|XAF|3|5075", "acc-1|2026-11-30|XAF|3|5075",
		"acc-2|2026-11-12|EUR|1|70",
	},
	nil, // one payment: the order of the page is unknown
	{ // payments without a line of the bank; the one of no session has no reference
		"2026-11-01|1234567890123456|5075|||||[]",
		"2026-11-03|1234567890123456|-5075|||||[]",
		"2026-11-04|1234567890123456|7075|||||[]",
		"2026-11-04|1234567890123456|10075|||||[]",
		"2026-11-05|1234567890123456|5075|||||[]",
		"2026-11-05|1234567890123456|5075|||||[]",
		"2026-11-06|1234567890123456|5075|||||[]",
		"2026-11-06|1234567890123456|5075|||||[]",
		"2026-11-06|1234567890123456|-5075|||||[]",
		"2026-11-11|1234567890123456|5075|||||[]",
		"2026-11-12|1234567890123456|70|||||[]",
		"2026-11-14|1234567890123456|50|||||[]",
		"2026-11-15||70|||||[]",
		"2026-11-15|1234567890123456|5075|||||[]",
		"2026-11-20|1234567890123456|-5075|||||[]",
		"2026-11-30|1234567890123456|5075|||||[]",
		"2026-11-30|1234567890123456|5075|||||[]",
	},
}

// An accountant closes November with the page for analysts: each query on it is run as it is.
// The month has money that came late, was given back, belongs to nobody or does not fit,
// payments around midnight in Brazzaville, and a test payment of the same order.
func TestMonthEnd(t *testing.T) {
	t.Parallel()
	w := newMonth(t)
	queries := blocks("sql")
	if len(queries) != len(answers) {
		t.Fatalf("the page has %d queries, want %d", len(queries), len(answers))
	}
	for i, sql := range queries {
		got := w.ask(sql, "impots", true)
		if !sameAnswer(got, answers[i]) {
			t.Errorf("%s\nis answered\n%s\nwant\n%s", sql, strings.Join(got, "\n"), strings.Join(answers[i], "\n"))
		}
		// The placeholders as Grafana and Metabase replace them.
		replaced := strings.NewReplacer("{month:Date}", "toDate('2026-11-01')", "{agency:String}", "'impots'", "{livemode:Bool}", "true").Replace(sql)
		if same := w.ask(replaced, "", false); !reflect.DeepEqual(same, got) {
			t.Errorf("%s\nis answered\n%s", replaced, strings.Join(same, "\n"))
		}
	}
	// All agencies, and money of none.
	all := w.ask(queries[0], "", true)
	if want := append([]string{"|||XAF|0|0|0|70|0|70", "Douanes|patente|Contribution de la patente|XAF|1|7075|0|0|0|7075"}, answers[0]...); !reflect.DeepEqual(all, want) {
		t.Errorf("the takings of all are\n%s\nwant\n%s", strings.Join(all, "\n"), strings.Join(want, "\n"))
	}
	if open := w.ask(queries[4], "", true); len(open) != len(answers[4])+1 || !strings.HasPrefix(open[0], "|orphan|2026-11-16 12:00:00|") {
		t.Errorf("the open cases of all are\n%s", strings.Join(open, "\n"))
	}
	// Money of an agency without accounts, and of none.
	of := w.ask(queries[5], "", true)
	if want := append([]string{"|2026-11-15||acc-9|XAF|1|70|0|0|0|0|0|1|70|0|0", "Douanes|2026-11-04||momo acc-1|XAF|1|7075|0|0|0|0|0|1|7075|0|0"}, answers[5]...); !reflect.DeepEqual(of, want) {
		t.Errorf("the reconciliation of all is\n%s\nwant\n%s", strings.Join(of, "\n"), strings.Join(want, "\n"))
	}
	// Test payments.
	if got := w.ask(queries[0], "impots", false); !reflect.DeepEqual(got, []string{"Impôts|patente|Contribution de la patente|XAF|1|5075|0|0|0|5075"}) {
		t.Errorf("the test payments are %q", got)
	}
	if got := w.ask(queries[3], "impots", false); len(got) != 1 || !strings.Contains(got[0], "|order first of November|") {
		t.Errorf("the undelivered events of tests are %q", got)
	}
	// The command has the same rows.
	for i, r := range report.All() {
		table, err := r.Run(t.Context(), w.conn, report.Params{Month: on(11, 30), Agency: "impots", Live: true})
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, row := range table.Rows {
			texts := make([]string, len(row))
			for i := range row {
				texts[i] = fmt.Sprint(row[i])
			}
			lines = append(lines, strings.Join(texts, "|"))
		}
		if page := w.ask(r.SQL, "impots", true); !reflect.DeepEqual(lines, page) || len(lines) == 0 {
			t.Errorf("%d: %s has the rows\n%s\nand the page\n%s", i, r.Name, strings.Join(lines, "\n"), strings.Join(page, "\n"))
		}
	}
}

// sameAnswer compares rows. A row may go on with the id of its case or delivery.
func sameAnswer(got, want []string) bool {
	if len(got) != len(want) {
		return false
	}
	for i := range got {
		id := regexp.MustCompile(`^\|?((case|dlv)_\w+)?$`)
		rest, ok := strings.CutPrefix(got[i], want[i])
		if !ok || !id.MatchString(rest) {
			return false
		}
	}
	return true
}

// The commands of the page make CSV and Parquet.
func TestMonthEndFiles(t *testing.T) {
	t.Parallel()
	w := newMonth(t)
	commands := blocks("sh")
	if len(commands) != 1 {
		t.Fatalf("the page has %d blocks of commands", len(commands))
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "takings.sql"), []byte(report.All()[0].SQL), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-e", "-c", commands[0])
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CLICKHOUSE="+w.address, "HOME="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s\n%v: %s", commands[0], err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "takings.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(strings.TrimSpace(string(text)), "\n"); len(lines) != 1+len(answers[0]) || !strings.HasPrefix(lines[0], `"agency","service_code"`) {
		t.Errorf("takings.csv is\n%s", text)
	}
	// ClickHouse reads the Parquet file again.
	parquet, err := os.ReadFile(filepath.Join(dir, "takings.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.conn.Exec(t.Context(), "CREATE TABLE again (service_code String, currency String, total_minor Int64) ENGINE = Memory"); err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.address+"&query="+url.QueryEscape("INSERT INTO again FORMAT Parquet"), bytes.NewReader(parquet))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := httpclient.Default.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if says, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK {
		t.Fatalf("the Parquet file is answered %d %s", answer.StatusCode, says)
	}
	got := w.rows("service_code, currency, total_minor", "FROM again ORDER BY service_code, currency")
	if want := []string{"|EUR|70", "|XAF|50", "foncier|XAF|2030", "patente|EUR|10075", "patente|XAF|28420"}; !reflect.DeepEqual(got, want) {
		t.Errorf("takings.parquet has %q, want %q", got, want)
	}
}
