package reconciliation_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"quittance/internal/clickhouse"
	"quittance/internal/journal"
	"quittance/reconciliation"
	journaltest "quittance/test/journal"
	"quittance/test/servers"
)

const (
	tenant = "018f0000-0000-7000-8000-000000000001"
	app    = "018f0000-0000-7000-8000-00000000000a"
)

var begin = time.Date(2026, 1, 31, 23, 59, 58, 250_000_000, time.UTC)

func ptr(t time.Time) *time.Time { return &t }

// migrated returns a migrated database for one test.
func migrated(t *testing.T) driver.Conn {
	t.Helper()
	addr, database := journaltest.Migrated(t)
	return connect(t, addr, database)
}

func connect(t *testing.T, addr, database string) driver.Conn {
	t.Helper()
	conn, err := clickhouse.Open(t.Context(), "http://"+addr+"/"+database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// event returns an event of a session, a second after the previous one.
func event(session string, sequence int64, name, status string, amount int64) journal.Entry {
	at := begin.Add(time.Duration(sequence) * time.Second)
	e := journal.Entry{
		ID: fmt.Sprintf("evt_%s_%d", session, sequence), Type: journal.EntryTypeEvent, OccurredAt: at,
		Event: name, EventID: fmt.Sprintf("evt_%s_%d", session, sequence), Sequence: sequence,
		TenantID: tenant, ApplicationID: app, Livemode: true, SessionID: session, OrderID: "order " + session,
		PaymentRef: "1234567890123456", NoticeID: "n-" + session, NoticeRef: "AV20260000000001", TransactionID: "tx-" + session,
		Mode: "hosted", Status: status, Amount: amount, Currency: "XAF", ServiceCode: "patente", ServiceLabel: "Contribution de la patente",
		Metadata: map[string]string{"erp_due_ref": "due\n\n1", "é": `"quoted"`}, CreatedAt: ptr(begin), ExpiresAt: ptr(begin.Add(24 * time.Hour)),
	}
	if status != "open" {
		e.EndedAt = ptr(at)
	}
	if status == "completed" {
		e.CompletedAt = ptr(at)
	}
	if sequence > 1 {
		e.CollectionID, e.Channel, e.OfferID, e.PayerMasked = "col-"+session, "MOBILE_MONEY", "momo", "06 6** ** 01"
		e.FeeAmount, e.TotalAmount = 75, amount+75
	}
	if status == "completed" {
		e.OperatorRef, e.CollectionStatus = "op-"+session, "approved"
	}
	return e
}

func delivery(session, id, kind string, attempt int32, outcome string, after time.Duration) journal.Entry {
	at := begin.Add(time.Hour + after)
	e := journal.Entry{
		ID: fmt.Sprintf("%s/%d/%s/%d", id, attempt, outcome, at.UnixMilli()), Type: journal.EntryTypeDelivery, OccurredAt: at,
		Event: "checkout.completed", EventID: "tx-" + session, TenantID: tenant, ApplicationID: app, Livemode: true, SessionID: session,
		DeliveryID: id, DestinationKind: kind, EndpointID: "endpoint 1", Attempt: attempt, Outcome: outcome, HTTPStatus: 500, DurationMS: 12,
	}
	if outcome == "delivered" {
		e.HTTPStatus = 200
	} else {
		e.Reason, e.NextAttemptAt = "answered 500", ptr(at.Add(time.Minute))
	}
	return e
}

func insert(t *testing.T, conn driver.Conn, entries ...journal.Entry) {
	t.Helper()
	if err := journal.NewStore(conn).Insert(t.Context(), journal.Rows(entries)...); err != nil {
		t.Fatal(err)
	}
}

// lines returns the result of a query: a line for each row, with bars between columns.
func lines(t *testing.T, conn driver.Conn, columns, rest string) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), "SELECT concatWithSeparator('|', "+columns+") "+rest)
	if err != nil {
		t.Fatalf("%s: %v", rest, err)
	}
	defer func() { _ = rows.Close() }()
	var out []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		out = append(out, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func want(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	addr, database := servers.ClickHouse(t)
	conn := connect(t, addr, database)
	if err := reconciliation.Check(t.Context(), conn); !errors.Is(err, reconciliation.ErrPending) || !strings.Contains(err.Error(), "0001_journal") {
		t.Errorf("before: %v", err)
	}
	errs := make(chan error)
	for range 2 { // two at a time
		go func() { errs <- reconciliation.Migrate(context.WithoutCancel(t.Context()), conn) }()
	}
	for range 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	insert(t, conn, event("a", 1, "checkout.created", "open", 5000))
	if err := reconciliation.Migrate(t.Context(), conn); err != nil {
		t.Error(err)
	}
	if err := reconciliation.Check(t.Context(), conn); err != nil {
		t.Errorf("after: %v", err)
	}
	if n, err := journaltest.CountEntries(t.Context(), conn, journal.EntryTypeEvent); n != 1 || err != nil {
		t.Errorf("%d entries, %v", n, err)
	}
}

func TestEntrySurvivesTheRoundTrip(t *testing.T) {
	t.Parallel()
	conn := migrated(t)
	full := event("a", 3, "checkout.completed", "completed", 5000)
	full.Detail = map[string]string{"claimed_amount": "4999"}
	other := delivery("a", "dlv_1", "webhook", 2, "failed", 0)
	other.Metadata, other.Detail = map[string]string{}, map[string]string{}
	insert(t, conn, full, other)

	var got []journal.Entry
	if err := conn.Select(t.Context(), &got, "SELECT * FROM journal FINAL ORDER BY entry_id DESC"); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, []journal.Entry{full, other}) {
		t.Errorf("got  %+v\nwant %+v", got, []journal.Entry{full, other})
	}
}

func TestSessions(t *testing.T) {
	t.Parallel()
	conn := migrated(t)
	entries := []journal.Entry{
		event("a", 1, "checkout.created", "open", 5000),
		event("a", 2, "checkout.collection_started", "open", 5000),
		event("a", 3, "checkout.completed", "completed", 5000), // in the next month: another partition
		event("b", 1, "checkout.created", "open", 700),
		event("b", 2, "checkout.failed", "failed", 700),
		event("b", 3, "checkout.late_payment", "failed", 700),
		event("c", 1, "checkout.created", "open", 42),
	}
	entries[4].FailureCode, entries[5].FailureCode = "collect.rejected", "collect.rejected"
	entries[5].EndedAt = nil // a NULL of the last event is not filled from an earlier one
	orphan := event("", 0, "collection.orphaned", "", 0)
	orphan.ID = "evt_orphan"
	entries = append(entries, orphan)
	rand.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
	insert(t, conn, entries...)
	insert(t, conn, entries[:4]...)
	insert(t, conn, entries...)

	want(t, lines(t, conn, `session_id, status, paid, amount, fee_amount, channel, operator_ref, failure_code, late_payment, sequence,
		created_at, ifNull(toString(ended_at), '-'), ifNull(toString(completed_at), '-'), updated_at`, "FROM sessions ORDER BY session_id"),
		"a|completed|true|5000|75|MOBILE_MONEY|op-a||false|3|2026-01-31 23:59:58.250|2026-02-01 00:00:01.250|2026-02-01 00:00:01.250|2026-02-01 00:00:01.250",
		"b|failed|false|700|75|MOBILE_MONEY||collect.rejected|true|3|2026-01-31 23:59:58.250|-|-|2026-02-01 00:00:01.250",
		"c|open|false|42|0||||false|1|2026-01-31 23:59:58.250|-|-|2026-01-31 23:59:59.250")
	if n, err := journaltest.CountEntries(t.Context(), conn, journal.EntryTypeEvent); n != 8 || err != nil {
		t.Errorf("%d entries, %v", n, err)
	}

	sums, err := journaltest.SumsByStatus(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(sums, []journaltest.StatusSum{
		{Status: "completed", Currency: "XAF", Sessions: 1, Amount: 5000, FeeAmount: 75, TotalAmount: 5075},
		{Status: "failed", Currency: "XAF", Sessions: 1, Amount: 700, FeeAmount: 75, TotalAmount: 775},
		{Status: "open", Currency: "XAF", Sessions: 1, Amount: 42},
	}) {
		t.Errorf("%+v", sums)
	}
}

func TestDeliveries(t *testing.T) {
	t.Parallel()
	conn := migrated(t)
	entries := []journal.Entry{
		delivery("a", "dlv_1", "webhook", 1, "failed", 0),
		delivery("a", "dlv_1", "webhook", 2, "deferred", time.Second),
		delivery("a", "dlv_1", "webhook", 2, "delivered", 2*time.Second),
		// Another worker sent it too and recorded its outcome later.
		delivery("a", "dlv_1", "webhook", 3, "failed", 3*time.Second),
		delivery("a", "dlv_2", "erp", 1, "failed", 0),
		delivery("a", "dlv_2", "erp", 2, "deferred", time.Second),
	}
	entries[2].Reason = ""
	insert(t, conn, entries...)
	insert(t, conn, entries...)
	want(t, lines(t, conn, `delivery_id, session_id, destination_kind, outcome, attempts, http_status, reason,
		ifNull(toString(delivered_at), '-'), ifNull(toString(next_attempt_at), '-'), last_outcome_at`, "FROM deliveries ORDER BY delivery_id"),
		"dlv_1|a|webhook|delivered|3|200||2026-02-01 01:00:00.250|-|2026-02-01 01:00:01.250",
		"dlv_2|a|erp|deferred|1|500|answered 500|-|2026-02-01 01:00:59.250|2026-02-01 00:59:59.250")
}

func TestPayments(t *testing.T) {
	t.Parallel()
	conn := migrated(t)
	var entries []journal.Entry
	for _, s := range []string{"a", "b", "c", "d", "e", "g", "h", "i"} {
		entries = append(entries, event(s, 1, "checkout.created", "open", 5000), event(s, 2, "checkout.completed", "completed", 5000))
	}
	// Cash that was given back: a further entry, the same status.
	reversed := event("d", 3, "collection.reversed", "completed", 5000)
	reversed.CompletedAt = event("d", 2, "checkout.completed", "completed", 5000).CompletedAt
	// The money was given back, and people told the ERP, which had not accepted the payment.
	recorded := delivery("i", "erp_i", "erp", 1, "delivered", 0)
	recorded.Reason = "recorded_by_hand"
	entries = append(entries,
		event("f", 1, "checkout.created", "open", 5000),
		event("f", 2, "checkout.expired", "expired", 5000),
		reversed,
		delivery("a", "erp_a", "erp", 1, "failed", 0),
		delivery("a", "erp_a", "erp", 2, "delivered", time.Second),
		delivery("a", "web_a", "webhook", 1, "failed", 0), // a webhook is no confirmation
		delivery("b", "erp_b", "erp", 1, "failed", 0),
		delivery("c", "erp_c", "erp", 1, "needs_operator", 0),
		delivery("e", "erp_e1", "erp", 1, "delivered", 0), // two dues, one still on its way
		delivery("e", "erp_e2", "erp", 1, "failed", 0),
		delivery("g", "erp_g1", "erp", 1, "delivered", 0), // three dues, and nothing was sent of two yet
		delivery("h", "erp_h1", "erp", 1, "delivered", 0), // three dues, of which two were given back
		recorded,
	)
	due := func(session string, item uint16, movement journal.Movement, amount int64) {
		r := journal.Receipt{
			ID: journal.ReceiptID(session+string(movement), item), Movement: movement, OccurredAt: begin, LocalDate: begin.Truncate(24 * time.Hour), ApprovedOn: begin.Truncate(24 * time.Hour),
			Livemode: true, TenantID: "t", SessionID: session, Item: item, ERPDueRef: fmt.Sprint("D-", item), Currency: "XAF", Amount: amount, TotalAmount: amount,
		}
		if err := journal.NewStore(conn).Insert(t.Context(), &r); err != nil {
			t.Fatal(err)
		}
	}
	for _, session := range []string{"g", "h"} {
		for item := range uint16(3) {
			due(session, item+1, journal.MovementCompleted, 100)
		}
	}
	due("h", 2, journal.MovementReversal, -100)
	due("h", 3, journal.MovementReversal, -100)
	insert(t, conn, entries...)
	insert(t, conn, entries...)
	want(t, lines(t, conn, `session_id, amount, fee_amount, total_amount, channel, operator_ref, erp_due_ref, confirmation_state,
		ifNull(toString(confirmed_at), '-'), completed_at, ifNull(toString(reversed_at), '-')`, "FROM payments ORDER BY session_id"),
		"a|5000|75|5075|MOBILE_MONEY|op-a|due\n\n1|accepted|2026-02-01 00:59:59.250|2026-02-01 00:00:00.250|-",
		"b|5000|75|5075|MOBILE_MONEY|op-b|due\n\n1|pending|-|2026-02-01 00:00:00.250|-",
		"c|5000|75|5075|MOBILE_MONEY|op-c|due\n\n1|needs_operator|-|2026-02-01 00:00:00.250|-",
		"d|5000|75|5075|MOBILE_MONEY|op-d|due\n\n1|none|-|2026-02-01 00:00:00.250|2026-02-01 00:00:01.250",
		"e|5000|75|5075|MOBILE_MONEY|op-e|due\n\n1|pending|-|2026-02-01 00:00:00.250|-",
		"g|5000|75|5075|MOBILE_MONEY|op-g|D-1 D-2 D-3|pending|-|2026-02-01 00:00:00.250|-",
		"h|5000|75|5075|MOBILE_MONEY|op-h|D-1 D-2 D-3|accepted|2026-02-01 00:59:58.250|2026-02-01 00:00:00.250|-",
		"i|5000|75|5075|MOBILE_MONEY|op-i|due\n\n1|recorded|-|2026-02-01 00:00:00.250|-")
}

// Each operator case is a row, however often its events are inserted. The completion that
// comes from a case is not its opening.
func TestCases(t *testing.T) {
	t.Parallel()
	conn := migrated(t)
	with := func(e journal.Entry, detail ...string) journal.Entry {
		e.Detail = map[string]string{}
		for i := 0; i < len(detail); i += 2 {
			e.Detail[detail[i]] = detail[i+1]
		}
		return e
	}
	lost := journal.Entry{ID: "evt_lost", Type: journal.EntryTypeEvent, OccurredAt: begin, Event: "collection.orphaned", EventID: "evt_lost", SessionID: "chs_lost", Detail: map[string]string{
		"case_id": "case_lost", "case_kind": "orphan", "reported_amount": "70", "reported_currency": "EUR", "operator_ref": "op-9",
	}}
	entries := []journal.Entry{
		event("a", 1, "checkout.created", "open", 5000),
		with(event("a", 2, "checkout.late_payment", "expired", 5000), "case_id", "case_a", "case_kind", "late_payment"),
		with(event("a", 3, "case.resolved", "expired", 5000), "case_id", "case_a", "case_kind", "late_payment", "resolution", "honour", "reported_amount", "5075",
			"reported_currency", "XAF", "by", "Jean", "approved_by", "Mireille", "reason", "in the statement"),
		with(event("a", 4, "checkout.completed", "completed", 5000), "case_id", "case_a", "late", "true", "by", "Jean"),
		// Proposals come between the opening and the exit, and open no case.
		with(event("c", 2, "confirmation.refused", "completed", 5000), "case_id", "case_c", "case_kind", "confirmation", "reason", "http_422"),
		with(event("c", 3, "case.proposed", "completed", 5000), "case_id", "case_c", "case_kind", "confirmation", "proposal", "1", "resolution", "retry", "by", "Jean", "reason", "r"),
		with(event("c", 4, "case.rejected", "completed", 5000), "case_id", "case_c", "case_kind", "confirmation", "proposal", "1", "resolution", "retry", "by", "Mireille", "reason", "no"),
		with(event("c", 5, "case.proposed", "completed", 5000), "case_id", "case_c", "case_kind", "confirmation", "proposal", "2", "resolution", "recorded_by_hand", "by", "Mireille", "reason", "r"),
		with(event("c", 6, "case.approved", "completed", 5000), "case_id", "case_c", "case_kind", "confirmation", "proposal", "2", "resolution", "recorded_by_hand", "by", "Jean"),
		with(event("c", 7, "case.resolved", "completed", 5000), "case_id", "case_c", "case_kind", "confirmation", "resolution", "recorded_by_hand", "reported_amount", "5075",
			"reported_currency", "XAF", "reference", "GL 7", "by", "Mireille", "approved_by", "Jean"),
		with(event("c", 8, "confirmation.recorded", "completed", 5000), "case_id", "case_c", "reference", "GL 7", "by", "Mireille"),
		with(event("b", 2, "case.opened", "completed", 5000), "case_id", "case_b", "case_kind", "refund_request", "by", "Jean", "reason", "wrong taxpayer"),
		lost,
	}
	insert(t, conn, entries...)
	insert(t, conn, entries...)
	want(t, lines(t, conn, `case_id, kind, state, session_id, amount, currency, opened_by_event, opened_by, resolution, resolved_by, approved_by,
		toString(opened_at), ifNull(toString(closed_at), '-')`, "FROM cases ORDER BY case_id"),
		"case_a|late_payment|closed|a|5075|XAF|checkout.late_payment||honour|Jean|Mireille|2026-02-01 00:00:00.250|2026-02-01 00:00:01.250",
		"case_b|refund_request|open|b|5075|XAF|case.opened|Jean||||2026-02-01 00:00:00.250|-",
		"case_c|confirmation|closed|c|5075|XAF|confirmation.refused||recorded_by_hand|Mireille|Jean|2026-02-01 00:00:00.250|2026-02-01 00:00:05.250",
		"case_lost|orphan|open|chs_lost|70|EUR|collection.orphaned|||||2026-01-31 23:59:58.250|-")
	want(t, lines(t, conn, `case_id, proposals, proposed_resolution, proposed_by, ifNull(toString(proposed_at), '-'), ifNull(toString(approved_at), '-'), ifNull(toString(rejected_at), '-'), reason`,
		"FROM cases WHERE case_id IN ('case_a', 'case_c') ORDER BY case_id"),
		"case_a|0|||-|-|-|",
		"case_c|2|recorded_by_hand|Mireille|2026-02-01 00:00:03.250|2026-02-01 00:00:04.250|2026-02-01 00:00:02.250|http_422")
}

// Cases are read from their own rows, however long the journal is, and an update copies those
// of an earlier release.
func TestCasesDoNotReadTheJournal(t *testing.T) {
	t.Parallel()
	conn := migrated(t)
	opened := event("a", 2, "case.opened", "completed", 5000)
	opened.Detail = map[string]string{"case_id": "case_a", "case_kind": "refund_request", "by": "Jean"}
	named := event("a", 3, "checkout.completed", "completed", 5000)
	named.Detail = map[string]string{"case_id": "case_a"} // of no kind: no event of the case
	insert(t, conn, event("a", 1, "checkout.created", "open", 5000), opened, named)
	cases := func() []string {
		return lines(t, conn, "case_id, kind, state, session_id, amount, opened_by", "FROM cases")
	}
	const row = "case_a|refund_request|open|a|5075|Jean"
	want(t, cases(), row)
	want(t, lines(t, conn, "count()", "FROM case_rows"), "1")

	// An earlier release wrote the journal alone.
	for _, statement := range []string{"TRUNCATE TABLE case_rows", "ALTER TABLE schema_migrations DELETE WHERE version >= 11 SETTINGS mutations_sync = 2"} {
		if err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	want(t, cases())
	for range 2 {
		if err := reconciliation.Migrate(t.Context(), conn); err != nil {
			t.Fatal(err)
		}
		want(t, cases(), row)
	}

	// The writer dies between the two tables: the batch counts as not written.
	if err := conn.Exec(t.Context(), "RENAME TABLE case_rows TO elsewhere"); err != nil {
		t.Fatal(err)
	}
	closed := event("a", 4, "case.resolved", "completed", 5000)
	closed.Detail = map[string]string{"case_id": "case_a", "case_kind": "refund_request", "resolution": "refund"}
	if err := journal.NewStore(conn).Insert(t.Context(), &closed); err == nil || errors.Is(err, journal.ErrRefused) {
		t.Errorf("without the table the batch ends with %v", err)
	}
	if err := conn.Exec(t.Context(), "RENAME TABLE elsewhere TO case_rows"); err != nil {
		t.Fatal(err)
	}
	want(t, cases(), row)
	insert(t, conn, closed)
	if err := conn.Exec(t.Context(), "TRUNCATE TABLE journal"); err != nil {
		t.Fatal(err)
	}
	want(t, cases(), strings.Replace(row, "open", "closed", 1))
}

func TestSequenceFaults(t *testing.T) {
	t.Parallel()
	conn := migrated(t)
	good := []journal.Entry{event("a", 1, "x", "open", 1), event("a", 2, "x", "open", 1)}
	double := event("d", 1, "x", "open", 1)
	double.ID += "_again" // another event with the same number
	insert(t, conn, good...)
	insert(t, conn, good...)
	if faults, err := journaltest.SequenceFaults(t.Context(), conn, 10); err != nil || len(faults) != 0 {
		t.Fatalf("%+v, %v", faults, err)
	}
	insert(t, conn,
		event("b", 1, "x", "open", 1), event("b", 3, "x", "open", 1),
		event("c", 2, "x", "open", 1),
		event("d", 1, "x", "open", 1), double)
	faults, err := journaltest.SequenceFaults(t.Context(), conn, 10)
	if err != nil || !reflect.DeepEqual(faults, []journaltest.SequenceFault{
		{SessionID: "b", Last: 3, Distinct: 2, Entries: 2}, {SessionID: "c", Last: 2, Distinct: 1, Entries: 1}, {SessionID: "d", Last: 1, Distinct: 1, Entries: 2},
	}) {
		t.Errorf("%+v, %v", faults, err)
	}
}

func TestInvalidEntriesAreRefused(t *testing.T) {
	t.Parallel()
	conn := migrated(t)
	good := event("a", 1, "checkout.created", "open", 1)
	for name, spoil := range map[string]func(*journal.Entry){
		"id":      func(e *journal.Entry) { e.ID = "" },
		"type":    func(e *journal.Entry) { e.Type = "" },
		"time":    func(e *journal.Entry) { e.OccurredAt = time.Time{} },
		"expires": func(e *journal.Entry) { e.ExpiresAt = ptr(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)) },
	} {
		bad := event("b", 1, "checkout.created", "open", 1)
		spoil(&bad)
		if err := journal.NewStore(conn).Insert(t.Context(), &good, &bad); !errors.Is(err, journal.ErrInvalidEntry) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n, err := journaltest.CountEntries(t.Context(), conn, journal.EntryTypeEvent); n != 0 || err != nil {
		t.Errorf("%d entries, %v", n, err)
	}
	if err := journal.NewStore(conn).Insert(t.Context()); err != nil {
		t.Error(err)
	}
}

// A big batch is inserted twice. The rate is logged.
func TestInsertManyTwice(t *testing.T) {
	t.Parallel()
	conn := migrated(t)
	const n = 10_000
	entries := make([]journal.Entry, n)
	for i := range entries {
		entries[i] = event(fmt.Sprintf("s%05d", i), 2, "checkout.completed", "completed", int64(i))
	}
	begun := time.Now()
	for range 2 {
		insert(t, conn, entries...)
	}
	t.Logf("%.0f entries/s in batches of %d", 2*n/time.Since(begun).Seconds(), n)
	sums, err := journaltest.SumsByStatus(t.Context(), conn)
	if err != nil || len(sums) != 1 || sums[0].Sessions != n || sums[0].Amount != n*(n-1)/2 {
		t.Errorf("%+v, %v", sums, err)
	}
}

// Money that was given back was paid for ever.
func TestReversedIsNotPaid(t *testing.T) {
	t.Parallel()
	conn := migrated(t)
	var entries []journal.Entry
	for _, s := range []string{"a", "b", "c"} {
		entries = append(entries, event(s, 1, "checkout.created", "open", 5000), event(s, 2, "checkout.completed", "completed", 5000))
	}
	insert(t, conn, append(entries, event("b", 3, "collection.reversed", "completed", 5000), event("c", 3, "checkout.reversed", "completed", 5000))...)
	want(t, lines(t, conn, `session_id, status, paid, ifNull(toString(reversed_at), '-')`, "FROM sessions ORDER BY session_id"),
		"a|completed|true|-", "b|completed|false|2026-02-01 00:00:01.250", "c|completed|false|2026-02-01 00:00:01.250")
}

// ClickHouse does not compare the columns that a view with parameters declares with those that it returns.
func TestColumnsOfChain(t *testing.T) {
	t.Parallel()
	conn := migrated(t)
	var statement string
	if err := conn.QueryRow(t.Context(), "SELECT create_table_query FROM system.tables WHERE database = currentDatabase() AND name = 'chain'").Scan(&statement); err != nil {
		t.Fatal(err)
	}
	plain := func(kind string) string { return strings.ReplaceAll(kind, "LowCardinality(String)", "String") } // for readers the same
	var declared []string
	for _, m := range regexp.MustCompile("`(\\w+)` (\\S+(?: 'UTC'\\))?) COMMENT").FindAllStringSubmatch(statement, -1) {
		declared = append(declared, m[1]+" "+plain(m[2]))
	}
	var returned []string
	rows, err := conn.Query(t.Context(), "DESCRIBE TABLE (SELECT * FROM chain(from = '2026-11-01', until = '2026-11-30')) SETTINGS describe_compact_output = 1")
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var name, kind string
		if err := rows.Scan(&name, &kind); err != nil {
			t.Fatal(err)
		}
		returned = append(returned, name+" "+plain(kind))
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil || len(returned) == 0 {
		t.Fatalf("%v, %v", returned, err)
	}
	want(t, returned, declared...)
}

// Every table, view and column says what it is. Views that read the whole journal say what
// they cost.
func TestEverythingHasAComment(t *testing.T) {
	t.Parallel()
	conn := migrated(t)
	if got := lines(t, conn, "table, name", "FROM system.columns WHERE database = currentDatabase() AND comment = ''"); got != nil {
		t.Errorf("columns without a comment: %q", got)
	}
	if got := lines(t, conn, "name", "FROM system.tables WHERE database = currentDatabase() AND comment = ''"); got != nil {
		t.Errorf("tables without a comment: %q", got)
	}
	want(t, lines(t, conn, "name", "FROM system.tables WHERE database = currentDatabase() AND engine = 'View' AND position(comment, 'costs') = 0 AND position(comment, 'groups all') = 0 ORDER BY name"), "agencies", "cases", "chain", "open_breaks", "receipts", "reconciliation_days")
}

// receipt returns a receipt of a completed session.
func receipt(session string, at time.Time, total int64) journal.Receipt {
	day := time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC)
	return journal.Receipt{
		ID: journal.ReceiptID("evt_"+session, 1), Movement: journal.MovementCompleted, OccurredAt: at, LocalDate: day, ApprovedOn: day, TenantID: tenant, ApplicationID: app, Livemode: true,
		Account: "acc", Mode: "hosted", Channel: "MOBILE_MONEY", OfferID: "momo", SessionID: session, OrderID: "order " + session, PaymentRef: "ref " + session, CollectionID: "col-" + session,
		OperatorRef: "op-" + session, Item: 1, ERPDueRef: "due", TransactionID: "tx-" + session, NoticeRef: "AV1", ServiceCode: "patente", ServiceLabel: "Contribution de la patente",
		Currency: "XAF", Amount: total - 75, FeeAmount: 75, TotalAmount: total, Reason: "r", Reference: "s", CaseID: "case", RecordedBy: "c01",
	}
}

// A receipt keeps every field, and is one row of the view however often it is inserted, in
// whichever batch and month.
func TestReceiptRows(t *testing.T) {
	t.Parallel()
	conn := migrated(t)
	first, second := receipt("a", begin, 5075), receipt("b", begin.AddDate(0, 1, 0), 1075)
	for _, batch := range [][]journal.Receipt{{first}, {second, first}, {first, second}} {
		if err := journal.NewStore(conn).Insert(t.Context(), journal.Rows(batch)...); err != nil {
			t.Fatal(err)
		}
	}
	var got []journal.Receipt
	if err := conn.Select(t.Context(), &got, "SELECT * FROM receipt_rows FINAL ORDER BY occurred_at"); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, []journal.Receipt{first, second}) {
		t.Errorf("got  %+v\nwant %+v", got, []journal.Receipt{first, second})
	}
	want(t, lines(t, conn, "session_id, total_amount", "FROM receipts ORDER BY session_id"), "a|5075", "b|1075")
	for name, spoil := range map[string]func(*journal.Receipt){
		"id":       func(r *journal.Receipt) { r.ID = [16]byte{} },
		"movement": func(r *journal.Receipt) { r.Movement = "" },
		"total":    func(r *journal.Receipt) { r.TotalAmount++ },
		"date":     func(r *journal.Receipt) { r.LocalDate = time.Time{} },
	} {
		bad := first
		spoil(&bad)
		if err := journal.NewStore(conn).Insert(t.Context(), &second, &bad); !errors.Is(err, journal.ErrInvalidEntry) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Expected money keeps every field and is one row however often it is inserted. Of an event
// that was written twice the first counts, whichever is inserted last. A withdrawn row stands
// beside its entry.
func TestExpectedMoneyRows(t *testing.T) {
	t.Parallel()
	conn := migrated(t)
	day := time.Date(begin.Year(), begin.Month(), begin.Day(), 0, 0, 0, 0, time.UTC)
	first := journal.Expected{
		ID: journal.ExpectedID(journal.ExpectedReceived, "s", "k"), Kind: journal.ExpectedReceived, State: journal.ExpectedMismatch, ApprovedAt: begin, LocalDate: day, OccurredAt: begin.Add(time.Minute),
		TenantID: tenant, ApplicationID: app, Livemode: true, Channel: "CARD", OfferID: "card", Account: "acc", SessionID: "s", OrderID: "o", CollectionID: "k", OperatorRef: "op", PaymentRef: "ref",
		NoticeRefs: []string{"AV1", "AV2"}, Reference: "wire", Reason: "amount", CaseID: "case", Currency: "XAF", Gross: 5075, Fee: 75, DueRefs: []string{"DUE-1", ""}, TransactionIDs: []string{"tx1", "tx2"}, Amounts: []int64{3000, 2000},
		SourceTopic: "cases.events", SourcePartition: 2, SourceOffset: 7, Version: journal.ExpectedVersion(7),
	}
	again, withdrawn := first, first.Withdraw("superseded")
	again.SourceOffset, again.Version = 9, journal.ExpectedVersion(9)
	withdrawn.SourceOffset, withdrawn.Version = 8, journal.ExpectedVersion(8)
	for _, batch := range [][]journal.Expected{{first}, {withdrawn, again}, {first}, {again}} {
		if err := journal.NewStore(conn).Insert(t.Context(), journal.Rows(batch)...); err != nil {
			t.Fatal(err)
		}
	}
	var got []journal.Expected
	if err := conn.Select(t.Context(), &got, "SELECT * FROM expected_money FINAL ORDER BY withdrawn"); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, []journal.Expected{first, withdrawn}) {
		t.Errorf("got  %+v\nwant %+v", got, []journal.Expected{first, withdrawn})
	}
	for name, spoil := range map[string]func(*journal.Expected){
		"id":      func(e *journal.Expected) { e.ID = [16]byte{} },
		"kind":    func(e *journal.Expected) { e.Kind = "" },
		"topic":   func(e *journal.Expected) { e.SourceTopic = "" },
		"version": func(e *journal.Expected) { e.Version++ },
		"time":    func(e *journal.Expected) { e.ApprovedAt = time.Time{} },
	} {
		bad := first
		spoil(&bad)
		if err := journal.NewStore(conn).Insert(t.Context(), &withdrawn, &bad); !errors.Is(err, journal.ErrInvalidEntry) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A look-up by a reference uses its index, and a report of a month reads that month only.
func TestReceiptsReadLittle(t *testing.T) {
	t.Parallel()
	conn := migrated(t)
	var rows []journal.Receipt
	for i := range 40_000 {
		rows = append(rows, receipt(fmt.Sprint("s", i), begin.AddDate(0, i%4, 0), 5075))
	}
	for range 2 {
		if err := journal.NewStore(conn).Insert(t.Context(), journal.Rows(rows)...); err != nil {
			t.Fatal(err)
		}
	}
	plan := func(where string) string {
		return strings.Join(lines(t, conn, "explain", "FROM (EXPLAIN indexes = 1, projections = 0 SELECT total_amount FROM receipts WHERE "+where+")"), "\n")
	}
	for column, index := range map[string]string{"session_id": "by_session", "order_id": "by_order", "payment_ref": "by_payment_ref", "operator_ref": "by_operator_ref"} {
		if got := plan(column + " = 's7'"); !strings.Contains(got, "Name: "+index) || strings.Contains(got, "PrimaryKeyExpand") {
			t.Errorf("a look-up by %s is planned as\n%s", column, got)
		}
	}
	if got := plan("approved_on = '2026-02-28'"); !regexp.MustCompile(`Name: approvals\s`).MatchString(got) {
		t.Errorf("a day of approvals is planned as\n%s", got)
	}
	got := plan("tenant_id = '" + tenant + "' AND toStartOfMonth(local_date) = '2026-03-01'")
	if !regexp.MustCompile(`Min-Max\s+Keys:\s+local_date\s`).MatchString(got) || !regexp.MustCompile(`PrimaryKey\s+Keys:\s+tenant_id\s`).MatchString(got) {
		t.Errorf("a month is planned as\n%s", got)
	}
}

// Every view has the present names beside the ids.
func TestNamesBesideIDs(t *testing.T) {
	t.Parallel()
	conn := migrated(t)
	store := journal.NewStore(conn)
	names := []journal.Name{
		{Kind: journal.NameAgency, ID: tenant, TenantID: tenant, Name: "Impôts"},
		{Kind: journal.NameSlug, ID: tenant, TenantID: tenant, Name: "impots"},
		{Kind: journal.NameApplication, ID: app, TenantID: tenant, Name: "Guichet"},
	}
	if _, err := store.PutNames(t.Context(), names); err != nil {
		t.Fatal(err)
	}
	late := event("a", 2, "checkout.completed", "completed", 5000)
	late.Detail = map[string]string{"case_id": "case_a", "case_kind": "late_payment"}
	insert(t, conn, event("a", 1, "checkout.created", "open", 5000), late, delivery("a", "dlv_1", "webhook", 1, "failed", 0))
	paid := receipt("a", begin, 5075)
	if err := store.Insert(t.Context(), &paid); err != nil {
		t.Fatal(err)
	}
	for _, view := range []string{"sessions", "payments", "deliveries", "cases", "receipts"} {
		want(t, lines(t, conn, "tenant_id, agency, application_id, application", "FROM "+view), tenant+"|Impôts|"+app+"|Guichet")
	}
	want(t, lines(t, conn, "tenant_id, slug, name", "FROM agencies"), tenant+"|impots|Impôts")
}

// The mode of money of no known session is that of its report.
func TestCaseOfNoSessionIsLive(t *testing.T) {
	t.Parallel()
	conn := migrated(t)
	orphan := func(id, live string) journal.Entry {
		return journal.Entry{
			ID: "evt_" + id, Type: journal.EntryTypeEvent, OccurredAt: begin, Event: "collection.orphaned", EventID: "evt_" + id, SessionID: "chs_" + id,
			Detail: map[string]string{"case_id": "case_" + id, "case_kind": "orphan", "livemode": live},
		}
	}
	insert(t, conn, orphan("a", "true"), orphan("b", "false"))
	want(t, lines(t, conn, "case_id, livemode", "FROM cases ORDER BY case_id"), "case_a|true", "case_b|false")
}
