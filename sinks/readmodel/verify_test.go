package readmodel_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/internal/sessions"
	"quittance/schemas"
	"quittance/schemas/mapping"
)

func (w *world) verify(t *testing.T, change ...func(*sessions.VerifyConfig)) sessions.Verified {
	t.Helper()
	cfg := sessions.VerifyConfig{Kafka: w.cfg, Codec: w.codec, AllRecords: true}
	for _, c := range change {
		c(&cfg)
	}
	got, err := sessions.NewStore(w.pool).Verify(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// said returns the differences as short lines.
func said(got sessions.Verified) (out []string) {
	for _, d := range got.Differences {
		names := make([]string, len(d.Columns))
		for i, c := range d.Columns {
			names[i] = c.Name
		}
		out = append(out, strings.TrimSpace(strings.Join([]string{d.Table, string(d.Fault), strings.Join(names, ",")}, " ")))
	}
	return out
}

// full is a session with rows in all tables of the read model: it was paid in cash for a due of an ERP and given back.
func (w *world) full(n int) []checkout.Session {
	first := w.session(n, app(n%7), 1)
	first.PaymentRef, first.TransactionID, first.ERP = fmt.Sprintf("%016d", n), fmt.Sprintf("tx-%d", n), true
	first.Metadata = map[string]string{checkout.MetadataERPDueRef: fmt.Sprintf("DUE-%d", n)}
	first.CustomerID, first.CitizenID, first.ServiceLabel = "customer", "citizen", "Carte grise"
	first.NoticeRef = fmt.Sprintf("notice-%d", n)
	first.Cashin = &checkout.Cashin{Kind: checkout.CashinInit, Number: fmt.Sprintf("T%d", n)}
	at := first.CreatedAt.Add(time.Minute)
	paid := first
	paid.Sequence, paid.Status, paid.EndedAt = 2, checkout.StatusCompleted, at
	paid.Collection = &checkout.Collection{
		ID: fmt.Sprintf("c%d", n), Channel: checkout.ChannelCash, Status: checkout.CollectionApproved, Amount: 1, Currency: "XAF", Account: "guichet 3", OperatorRef: "R1",
		Clerk: "C1", RequestedAt: at, NotAfter: at, WindowEndsAt: at, DecidedAt: at,
	}
	back := paid
	c := *paid.Collection
	c.ReversedBy, c.ReversedAt = "C2", at.Add(time.Hour)
	back.Sequence, back.ReversedAt, back.ReversalReason, back.Collection = 3, c.ReversedAt, "error", &c
	return []checkout.Session{first, paid, back}
}

// eventOf is the record of an event of a type.
func (w *world) eventOf(t *testing.T, kind checkout.EventType, s checkout.Session) *kgo.Record {
	t.Helper()
	value, err := w.codec.Encode(mapping.FromEvent(checkout.Event{
		ID: fmt.Sprintf("evt_%s_%d", s.ID, s.Sequence), Type: kind, SessionID: s.ID, Sequence: s.Sequence, OccurredAt: s.CreatedAt, Session: s,
	}))
	if err != nil {
		t.Fatal(err)
	}
	rec := w.event(t, s)
	rec.Value = value
	return rec
}

// story produces the events of full sessions.
func (w *world) story(t *testing.T, from, to int) {
	t.Helper()
	var records []*kgo.Record
	kinds := []checkout.EventType{checkout.EventCreated, checkout.EventCompleted, checkout.EventReversed}
	for n := from; n < to; n++ {
		for i, s := range w.full(n) {
			records = append(records, w.eventOf(t, kinds[i], s))
		}
	}
	w.produce(t, records...)
}

func (w *world) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	tag, err := w.pool.Exec(t.Context(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	if tag.RowsAffected() == 0 {
		t.Fatalf("%s changes nothing", sql)
	}
}

// Somebody who writes Postgres makes an open session paid, hides a paid one, moves cash, and invents a session. Reads believe
// all of it, and nothing says so. The comparison names each row with its event, and a rebuild makes them true again, all but a
// row that no event makes in erp_confirmations, which a rebuild does not empty, and removes.
func TestVerify(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop, _ := w.sink(t, w.pool)
	const n = 40
	w.story(t, 0, n)
	open := w.session(n, app(3), 1)
	w.produce(t, w.event(t, open))
	within(t, "applying", func() bool { return w.atEnd(t) })
	got := w.verify(t)
	if !got.Holds() || got.Sessions != n+1 || got.Rows != 7*n+1 || got.Records != 3*n+1 || got.Older+got.Unreadable != 0 {
		t.Fatalf("untouched: %+v", got)
	}
	ids := func(n int) string { return w.full(n)[0].ID }
	forged := open
	forged.Status, forged.EndedAt, forged.Sequence = checkout.StatusCompleted, open.CreatedAt.Add(time.Minute), 2
	paid := w.event(t, forged).Value
	w.exec(t, `UPDATE sessions SET status = 'completed', sequence = 2, snapshot = $2, completed_at = now() WHERE id = $1`, open.ID, paid)
	if s, err := sessions.NewStore(w.pool).Stored(t.Context(), w.codec, open.ID); err != nil || !s.Paid() {
		t.Fatalf("the forgery is none: %+v, %v", s, err)
	}
	w.exec(t, `DELETE FROM sessions WHERE id = $1`, ids(1))
	w.exec(t, `UPDATE session_events SET body = '{}' WHERE session_id = $1 AND sequence = 2`, ids(2))
	w.exec(t, `UPDATE cash_movements SET amount = 900 WHERE session_id = $1 AND kind = 'taken'`, ids(3))
	w.exec(t, `DELETE FROM cashin_reversals WHERE session_id = $1`, ids(4))
	w.exec(t, `UPDATE erp_confirmations SET completed_at = completed_at + interval '1 day' WHERE session_id = $1`, ids(5))
	w.exec(t, `UPDATE erp_confirmations SET session_id = NULL WHERE session_id = $1`, ids(6))
	w.exec(t, `INSERT INTO sessions (id, application_id, livemode, order_id, payment_ref, status, sequence, snapshot) VALUES ($1, $2, false, 'o', '1', 'completed', 2, $3)`, w.session(5000, app(1), 1).ID, app(1), paid)
	w.exec(t, `INSERT INTO session_events (session_id, sequence, application_id, livemode, event_id, event, occurred_at) VALUES ($1, 9, 'a', false, 'evt', 'checkout.completed', now())`, ids(7))
	w.exec(t, `INSERT INTO erp_confirmations (transaction_id, session_id, tenant_id, livemode, completed_at) VALUES ('tx-forged', 'not an id', 't', false, now())`)
	got = w.verify(t)
	want := []string{
		"cash_movements different amount", "cashin_reversals missing", "erp_confirmations added", "erp_confirmations different completed_at", "erp_confirmations different session_id",
		"session_events different body", "session_events added", "sessions missing", "sessions different status,sequence,snapshot,completed_at", "sessions added",
	}
	slices.Sort(want)
	if lines := said(got); !slices.Equal(slices.Sorted(slices.Values(lines)), want) || got.Count(sessions.FaultMissing) != 2 || got.Count(sessions.FaultDifferent) != 5 || got.Count(sessions.FaultAdded) != 3 || got.Unnamed != 0 {
		t.Errorf("%q", lines)
	}
	for _, d := range got.Differences {
		if (d.Record() == "") != (d.Fault == sessions.FaultAdded) || d.Place == d.SessionID && len(d.SessionID) > 30 {
			t.Errorf("the evidence of %+v is %q", d, d.Record())
		}
		if d.SessionID != open.ID {
			continue
		}
		partition := w.topology.Partition(schemas.TopicEvents, open.TenantID)
		if d.Partition != partition || d.Columns[0] != (sessions.ColumnDifference{Name: "status", Postgres: "completed", Kafka: "open"}) || !d.At.Equal(open.CreatedAt) {
			t.Errorf("%+v", d)
		}
	}
	stop()
	if _, err := w.rebuild(t.Context(), t, nil); err != nil {
		t.Fatal(err)
	}
	if got := w.verify(t); !got.Holds() || got.Rows != 7*n+1 {
		t.Errorf("after a rebuild: %q", said(got))
	}
}

// More sessions than fit into memory are compared in parts, and a time selects some.
func TestVerifyInParts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sink(t, w.pool)
	const n = 300
	w.story(t, 0, n)
	within(t, "applying", func() bool { return w.atEnd(t) })
	w.exec(t, `UPDATE sessions SET payment_ref = 'x' WHERE id IN ($1, $2, $3)`, w.full(1)[0].ID, w.full(150)[0].ID, w.full(299)[0].ID)
	w.exec(t, `DELETE FROM cash_movements WHERE session_id = $1 AND kind = 'taken'`, w.full(200)[0].ID)
	w.exec(t, `INSERT INTO sessions (id, application_id, livemode, order_id, payment_ref, status, sequence, snapshot) VALUES ('0', 'a', false, 'o', '1', 'open', 2, ''), ('zz', 'a', false, 'o', '1', 'open', 2, '')`)
	whole := w.verify(t)
	want := []string{"cash_movements missing", "sessions added", "sessions added", "sessions different payment_ref", "sessions different payment_ref", "sessions different payment_ref"}
	if got := said(whole); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Fatalf("at once: %q", got)
	}
	parts := w.verify(t, func(c *sessions.VerifyConfig) { c.AtOnce = 37 })
	if !slices.Equal(said(parts), said(whole)) || parts.Sessions != n || parts.Rows != whole.Rows || parts.Records != whole.Records {
		t.Errorf("in parts: %q, %+v", said(parts), parts)
	}
	some := w.verify(t, func(c *sessions.VerifyConfig) {
		c.From, c.Before = w.full(100)[0].CreatedAt, w.full(299)[0].CreatedAt
	})
	if got := said(some); !slices.Equal(got, []string{"cash_movements missing", "sessions different payment_ref"}) || some.Sessions != 199 {
		t.Errorf("of a time: %q, %+v", got, some)
	}
}

// tables are those that the sink writes.
var tables = []string{"cash_movements", "cashin_reversals", "erp_confirmations", "session_events", "sessions"}

// A database of yesterday is put back, and the read model is behind: there is nothing to report, because positions and rows are of
// one moment. A forged row in it is found at once. Rows that a replay wrote ahead of the positions are right. While the
// sink writes, nothing is reported either.
func TestVerifyOfABackup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop, _ := w.sink(t, w.pool)
	w.story(t, 0, 30)
	within(t, "applying", func() bool { return w.atEnd(t) })
	stop()
	backup := append(slices.Clone(tables), "readmodel_positions")
	for _, table := range backup {
		w.exec(t, fmt.Sprintf(`CREATE TABLE backup_%s AS TABLE %[1]s`, table))
	}
	w.story(t, 30, 60)
	later := w.full(3)[2]
	later.Sequence++
	w.produce(t, w.eventOf(t, checkout.EventUpdated, later))
	stop, _ = w.sink(t, w.pool)
	within(t, "applying", func() bool { return w.atEnd(t) })
	stop()
	if got := w.verify(t); !got.Holds() || got.Sessions != 60 {
		t.Fatalf("today: %q", said(got))
	}
	if err := pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
		for _, table := range backup {
			if _, err := tx.Exec(t.Context(), fmt.Sprintf(`DELETE FROM %[1]s; INSERT INTO %[1]s SELECT * FROM backup_%[1]s`, table)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := w.verify(t); !got.Holds() || got.Sessions != 30 {
		t.Fatalf("yesterday: %q", said(got))
	}
	forged := w.full(4)[0].ID
	w.exec(t, `UPDATE sessions SET order_id = 'other' WHERE id = $1`, forged)
	if got := w.verify(t); !slices.Equal(said(got), []string{"sessions different order_id"}) {
		t.Errorf("a forgery of yesterday: %q", said(got))
	}
	w.exec(t, `UPDATE sessions SET order_id = 'o' WHERE id = $1`, forged)

	// A replay applies what the positions do not have yet.
	_, ahead, err := sessions.Read(w.codec, w.eventOf(t, checkout.EventUpdated, later).Value)
	if err != nil {
		t.Fatal(err)
	}
	if err := sessions.NewStore(w.pool).Apply(t.Context(), []sessions.Snapshot{*ahead}, nil); err != nil {
		t.Fatal(err)
	}
	if got := w.verify(t); !got.Holds() {
		t.Errorf("ahead of the positions: %q", said(got))
	}

	// The sink catches up, while new events come.
	w.sink(t, w.pool)
	written := make(chan struct{})
	go func() {
		defer close(written)
		for n := 60; n < 400 && t.Context().Err() == nil; n++ {
			w.story(t, n, n+1)
		}
	}()
	for busy := true; busy; {
		select {
		case <-written:
			busy = false
		default:
		}
		if got := w.verify(t); !got.Holds() {
			t.Fatalf("while the sink writes: %q", said(got))
		}
	}
	within(t, "applying", func() bool { return w.atEnd(t) })
	if got := w.verify(t); !got.Holds() || got.Sessions != 400 {
		t.Errorf("at the end: %q, %d sessions", said(got), got.Sessions)
	}
}

// Events that come twice or not in order, erased bodies, and records that nobody can read are no differences.
func TestVerifyKnowsWhatTheSinkDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sink(t, w.pool)
	var records []*kgo.Record
	for n := range 50 {
		for sequence := int64(1); sequence <= 4; sequence++ {
			for range 2 {
				records = append(records, w.event(t, w.session(n, app(n%7), sequence)))
			}
		}
	}
	rand.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
	for n := 100; n < 110; n++ { // erased, and given back later
		states := w.full(n)
		states[1].ReversedAt = time.Time{}
		erased, after := states[1], states[2]
		erased.Sequence, erased.Archived, erased.CustomerID = 3, true, ""
		after.Sequence, after.Archived, after.CustomerID = 4, true, ""
		records = append(records, w.eventOf(t, checkout.EventCreated, states[0]), w.eventOf(t, checkout.EventCompleted, states[1]), w.eventOf(t, checkout.EventArchived, erased), w.eventOf(t, checkout.EventReversed, after))
	}
	zero := w.session(200, app(1), 1)
	zero.OrderID = "a\x00b"
	garbage := w.event(t, w.session(9, app(1), 1))
	garbage.Value = []byte("garbage")
	w.produce(t, append(records, w.event(t, zero), garbage)...)
	within(t, "applying", func() bool { return w.atEnd(t) })
	if got := w.verify(t); !got.Holds() || got.Unreadable != 2 || got.Sessions != 60 {
		t.Errorf("%q, %+v", said(got), got)
	}
	var bodies int
	if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM session_events WHERE body IS NULL`).Scan(&bodies); err != nil || bodies != 10 {
		t.Errorf("%d erased bodies, %v", bodies, err)
	}
	w.exec(t, `UPDATE session_events SET body = '{"metadata":{"name":"M. T."}}' WHERE body IS NULL`) // the erasure is taken back
	if got := w.verify(t); got.Count(sessions.FaultDifferent) != 10 {
		t.Errorf("%q", said(got))
	}
}

// Kafka has deleted the oldest events, as it does in developer mode only. Nothing proves rows of them, and newer rows are compared.
func TestVerifyWithoutTheOldestEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sink(t, w.pool)
	w.story(t, 0, 21) // three sessions of each of seven agencies
	within(t, "applying", func() bool { return w.atEnd(t) })
	partition := w.topology.Partition(schemas.TopicEvents, agency(app(0)))
	topic := w.topology.Name(schemas.TopicEvents)
	adm := kadm.NewClient(w.client)
	deleted := kadm.Offsets{}
	deleted.AddOffset(topic, partition, 4, -1) // the first session and the first event of the second one
	if _, err := adm.DeleteRecords(t.Context(), deleted); err != nil {
		t.Fatal(err)
	}
	within(t, "deleting", func() bool {
		starts, err := adm.ListStartOffsets(t.Context(), topic)
		start, _ := starts.Lookup(topic, partition)
		return err == nil && start.Offset == 4
	})
	if got := w.verify(t); !got.Holds() || got.Sessions != 20 || got.Older != 7 {
		t.Errorf("%q, %+v", said(got), got)
	}
	w.exec(t, `UPDATE sessions SET status = 'open'`)
	if got := w.verify(t); got.Count(sessions.FaultDifferent) != 20 {
		t.Errorf("%q", said(got))
	}
}

// More sessions differ than are named: they are counted.
func TestVerifyOfALostTable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sink(t, w.pool)
	var records []*kgo.Record
	const n = sessions.DifferencesAtMost + 50
	for i := range n {
		records = append(records, w.event(t, w.session(i, app(i%7), 1)))
	}
	w.produce(t, records...)
	within(t, "applying", func() bool { return w.atEnd(t) })
	w.exec(t, `DELETE FROM sessions`)
	got := w.verify(t)
	if len(got.Differences) != sessions.DifferencesAtMost || got.Unnamed != 50 || got.Count(sessions.FaultMissing) != sessions.DifferencesAtMost || got.Count(sessions.FaultDifferent) != 50 {
		t.Errorf("%d named, %d not", len(got.Differences), got.Unnamed)
	}
}

// harmless are columns of which a change is not found, with the reason.
var harmless = map[string]string{
	"erp_confirmations.accepted_at": "the sink schedule writes it, too; no money follows it, and the processor opens a case of a confirmation that it does not know to be accepted, whatever the row says",
	"readmodel_positions.topic":     "the sink finds no position, reads the partition from its beginning, and writes the same rows; until then reads answer 503",
	"readmodel_positions.partition": "the same",
	"readmodel_positions.next":      "a lower position: the sink reads records again, which write the same rows. A higher one than the topic's end is found, and one that leaves records out too: their rows are missing",
}

// values are what somebody writes into a column of a type.
var values = map[string][]string{
	"boolean": {`NOT %s`}, "integer": {`%s + 1`}, "bigint": {`%s + 1`, `%s - 1`}, "text": {`%s || 'x'`, `'completed'`, `''`},
	"bytea": {`%s || '\x00'`, `'\x00'`}, "timestamp with time zone": {`%s + interval '1 us'`, `'infinity'`, `now()`},
	"text[]": {`%s || 'x'::text`, `'{}'`, `'{x}'`}, "timestamp with time zone[]": {`array_append(%s, now())`, `'{}'`},
}

// Somebody writes another value, and NULL, into every column of every table of the read model. The comparison of the night names
// the row, or the database refuses the value. A column that a migration adds is tried without a change of this test.
func TestTamper(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sink(t, w.pool)
	type attempt struct{ table, column, to, session string }
	var attempts []attempt
	var columns, refused, alerted, unchanged, believed int
	spared := map[string]bool{}
	w.story(t, 0, 400) // a session for each attempt
	within(t, "applying", func() bool { return w.atEnd(t) })
	next := 0
	for _, table := range append(slices.Clone(tables), "readmodel_positions") {
		kinds := columnKinds(t, w.pool, table)
		for _, column := range slices.Sorted(maps.Keys(kinds)) {
			columns++
			if harmless[table+"."+column] != "" {
				spared[table+"."+column] = true
				continue
			}
			if len(values[kinds[column]]) == 0 {
				t.Fatalf("%s.%s: no values of the type %s to try", table, column, kinds[column])
			}
			for _, to := range append(slices.Clone(values[kinds[column]]), "NULL") {
				a := attempt{table, column, strings.ReplaceAll(to, "%s", column), w.full(next)[0].ID}
				next++
				session := "session_id"
				if table == "sessions" {
					session = "id"
				}
				tag, err := w.pool.Exec(t.Context(), fmt.Sprintf(`UPDATE %[1]s SET %[2]s = %[3]s WHERE ctid = (SELECT min(ctid) FROM %[1]s WHERE %[4]s = $1) AND %[2]s IS DISTINCT FROM %[3]s`, table, column, a.to, session), a.session)
				switch {
				case err != nil:
					refused++
				case tag.RowsAffected() == 0:
					unchanged++
				default:
					attempts = append(attempts, a)
				}
			}
		}
	}
	found := map[string]bool{}
	for _, d := range w.verify(t).Differences {
		found[d.Table+"/"+d.SessionID] = true
		for _, c := range d.Columns {
			found[d.Table+"/"+d.SessionID+"/"+c.Name] = true
		}
	}
	for _, a := range attempts {
		key := slices.Contains([]string{"id", "session_id", "sequence", "collection_id", "kind", "transaction_id"}, a.column) // a row of another name
		if found[a.table+"/"+a.session+"/"+a.column] || key && found[a.table+"/"+a.session] {
			alerted++
			continue
		}
		believed++
		t.Errorf("%s.%s = %s is believed", a.table, a.column, a.to)
	}
	t.Logf("tamper columns=%d refused=%d alerted=%d harmless=%d believed=%d", columns, refused, alerted, len(spared), believed)
	if columns < 50 || alerted < columns || len(spared) != len(harmless) {
		t.Errorf("%d columns, %d findings and %d harmless ones (%d unchanged)", columns, alerted, len(spared), unchanged)
	}
}

func columnKinds(t *testing.T, pool *pgxpool.Pool, table string) map[string]string {
	t.Helper()
	rows, _ := pool.Query(t.Context(), `SELECT attname, format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped`, table)
	out := map[string]string{}
	var name, kind string
	if _, err := pgx.ForEachRow(rows, []any{&name, &kind}, func() error { out[name] = kind; return nil }); err != nil || len(out) == 0 {
		t.Fatalf("%s: %v", table, err)
	}
	return out
}

// Positions decide what the sink reads. Beyond the end of the topic they are named, those that leave events out show in the rows, and
// lower or lost ones do no harm: the rows are right before and after the sink has read again.
func TestTamperedPositions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop, _ := w.sink(t, w.pool)
	w.story(t, 0, 20)
	within(t, "applying", func() bool { return w.atEnd(t) })
	stop()
	w.exec(t, `UPDATE readmodel_positions SET next = next + 1`)
	if got := w.verify(t); len(said(got)) != partitions || said(got)[0] != "readmodel_positions different next" {
		t.Errorf("beyond the end: %q", said(got))
	}
	w.exec(t, `UPDATE readmodel_positions SET next = next - 1`)
	w.exec(t, `INSERT INTO readmodel_positions (topic, partition, next) VALUES ($1, 99, 4)`, w.topology.Name(schemas.TopicEvents))
	if got := w.verify(t); !slices.Equal(said(got), []string{"readmodel_positions added next"}) {
		t.Errorf("of no partition: %q", said(got))
	}
	w.exec(t, `DELETE FROM readmodel_positions WHERE partition = 99`)
	w.story(t, 20, 27) // the sink does not run: somebody moves the positions past what comes now
	ends, err := kadm.NewClient(w.client).ListEndOffsets(t.Context(), w.topology.Name(schemas.TopicEvents))
	if err != nil {
		t.Fatal(err)
	}
	ends.Each(func(o kadm.ListedOffset) {
		w.exec(t, `UPDATE readmodel_positions SET next = $2 WHERE partition = $1`, o.Partition, o.Offset)
	})
	if got := w.verify(t); got.Count(sessions.FaultMissing) != 7*7 {
		t.Errorf("left out: %q", said(got))
	}
	for what, sql := range map[string]string{"lower": `UPDATE readmodel_positions SET next = 0`, "another topic": `UPDATE readmodel_positions SET topic = 'x'`, "gone": `DELETE FROM readmodel_positions`} {
		w.exec(t, sql)
		if got := w.verify(t); !got.Holds() {
			t.Errorf("%s: %q", what, said(got))
		}
		stop, _ := w.sink(t, w.pool)
		within(t, "reading again", func() bool { return w.atEnd(t) })
		stop()
		if got := w.verify(t); !got.Holds() || got.Sessions != 27 {
			t.Errorf("%s, read again: %q", what, said(got))
		}
		w.pool.Exec(t.Context(), `DELETE FROM readmodel_positions WHERE topic = 'x'`) //nolint:errcheck // most have none
	}
}

// At night the differences are counted and logged with the event, and without what opens a page.
func TestNight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sink(t, w.pool)
	w.story(t, 0, 10)
	within(t, "applying", func() bool { return w.atEnd(t) })
	forged := w.full(3)[0]
	w.exec(t, `UPDATE sessions SET order_id = 'secret order' WHERE id = $1`, forged.ID)
	w.exec(t, `DELETE FROM sessions WHERE id = $1`, w.full(4)[0].ID)
	var now atomic.Int64
	now.Store(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC).Unix())
	var log bytes.Buffer
	metrics := prometheus.NewRegistry()
	night, err := sessions.NewNight(sessions.NightConfig{
		Store: sessions.NewStore(w.pool), Verify: sessions.VerifyConfig{Kafka: w.cfg, Codec: w.codec, AllRecords: true}, Every: 5 * time.Millisecond,
		Now: func() time.Time { return time.Unix(now.Load(), 0) }, Log: slog.New(slog.NewTextHandler(&log, nil)), Metrics: metrics,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- night.Run(ctx) }()
	gauge := func(fault sessions.Fault) (value float64) {
		families, err := metrics.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == "quittance_readmodel_differences" && m.GetLabel()[0].GetValue() == string(fault) {
					value = m.GetGauge().GetValue()
				}
			}
		}
		return value
	}
	if gauge(sessions.FaultDifferent) != 0 {
		t.Error("it is not night yet")
	}
	now.Add(24 * 3600)
	within(t, "the night", func() bool { return gauge(sessions.FaultDifferent) == 1 && gauge(sessions.FaultMissing) == 1 })
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	text := log.String()
	for _, want := range []string{"table=sessions", "fault=different", "fault=missing", "columns=order_id", "record=checkout.events/"} {
		if !strings.Contains(text, want) {
			t.Errorf("the log has not %q:\n%s", want, text)
		}
	}
	for _, never := range []string{forged.ID, w.full(4)[0].ID, "secret order", cmp.Or(forged.PaymentRef, "-")} {
		if strings.Contains(text, never) {
			t.Errorf("the log has %q", never)
		}
	}
}
