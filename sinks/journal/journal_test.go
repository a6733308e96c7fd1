package journal_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/dev/stack/chdb"
	"quittance/internal/clickhouse"
	"quittance/internal/journal"
	"quittance/internal/kafka"
	"quittance/reconciliation"
	"quittance/schemas"
	"quittance/schemas/record"
	sink "quittance/sinks/journal"
	deliverytest "quittance/test/deliveries"
	journaltest "quittance/test/journal"
	"quittance/test/servers"
)

// world is an installation for one test: its topics, a codec and a journal.
type world struct {
	t     *testing.T
	kafka kafka.Config
	codec *schemas.Codec
	conn  driver.Conn
	admin *kadm.Client
	cl    *kgo.Client
}

func newWorld(t *testing.T) *world {
	t.Helper()
	addr, database := journaltest.Migrated(t)
	return newWorldAt(t, "http://"+addr+"/"+database)
}

// newWorldAt returns a world with the database at address, which the caller migrates.
func newWorldAt(t *testing.T, address string) *world {
	t.Helper()
	w := &world{t: t, kafka: kafka.Config{Brokers: []string{servers.Kafka(t)}, Prefix: servers.Prefix(t)}}
	registry, err := schemas.NewClient(servers.SchemaRegistry(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	if w.codec, err = schemas.NewCodec(t.Context(), registry, true); err != nil {
		t.Fatal(err)
	}
	if w.conn, err = clickhouse.Open(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.conn.Close() })
	if w.cl, err = w.kafka.Client(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.cl.Close)
	w.admin = kadm.NewClient(w.cl)
	servers.CreateTopics(t, w.admin, w.kafka.Prefix, map[string]int32{
		schemas.TopicEvents: 3, schemas.TopicAttempts: 2, schemas.TopicCalls: 1, schemas.TopicCases: 1, schemas.TopicStatements: 2, schemas.TopicReconciliation: 2, schemas.Disbursement.Events: 2, schemas.TopicPoisonJournal: 1,
	})
	return w
}

// run starts a sink that ends with the test, or with the returned function.
func (w *world) run(conn driver.Conn) (reg *prometheus.Registry, stop func()) {
	w.t.Helper()
	reg = prometheus.NewRegistry()
	j, err := sink.New(sink.Config{
		Kafka: w.kafka, Codec: w.codec, Store: journal.NewStore(conn), Outcomes: deliverytest.Outcomes(), Cases: deliverytest.Cases(w.kafka), Log: servers.Logger(w.t), Metrics: reg,
		BatchSize: 500, BatchWait: 100 * time.Millisecond, InsertTimeout: 5 * time.Second,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	done := make(chan error, 1)
	go func() { done <- j.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-done:
			if err != nil {
				w.t.Errorf("Run: %v", err)
			}
		case <-time.After(15 * time.Second):
			w.t.Error("the sink did not stop")
		}
	}
	w.t.Cleanup(stop)
	return reg, stop
}

var begin = time.Date(2026, 3, 31, 23, 0, 0, 5_000_000, time.UTC)

// session returns the three events of a session.
func session(n int) []record.Record {
	id := fmt.Sprintf("chs_%05d", n)
	base := record.Session{
		ID: id, ApplicationID: "app", TenantID: "tenant", Livemode: true, OrderID: "order\n\n" + id, Amount: int64(1000 + n), Currency: "XAF",
		Mode: "hosted", ServiceCode: "patente", Note: "secret note", Customer: &record.Customer{Phone: "+242066000001"},
		Metadata: map[string]string{"erp_due_ref": "due " + id}, PaymentRef: "1234", NoticeID: "n", NoticeRef: "AV1", TransactionID: "tx_" + id,
		CreatedAt: begin, ExpiresAt: begin.Add(24 * time.Hour), Status: "open",
	}
	var out []record.Record
	for sequence, what := range []string{"checkout.created", "collection.requested", "checkout.completed"} {
		s := base
		s.Sequence = int64(sequence + 1)
		at := begin.Add(time.Duration(sequence) * time.Second)
		if sequence > 0 {
			s.Collection = &record.Collection{
				ID: "col_" + id, OfferID: "momo", Channel: "MOBILE_MONEY", Status: "pending", Amount: s.Amount + 15, Fee: 15, Currency: "XAF",
				PayerMasked: "06 6** ** 01", RequestedAt: begin, NotAfter: begin, WindowEndsAt: begin,
			}
		}
		if sequence == 2 {
			s.Status, s.EndedAt, s.Collection.Status, s.Collection.OperatorRef = "completed", at, "approved", "op_"+id
		}
		out = append(out, &record.Event{
			EventID: fmt.Sprintf("evt_%s_%d", id, s.Sequence), Type: what, SessionID: id, Sequence: s.Sequence, OccurredAt: at, Session: &s,
			Detail: map[string]string{"source": "callback"},
		})
	}
	return out
}

func attempt(n int, number int32, outcome string) record.Record {
	id := fmt.Sprintf("chs_%05d", n)
	at := begin.Add(time.Minute + time.Duration(number)*time.Second)
	a := &record.Attempt{
		Delivery: record.Delivery{
			DeliveryID: "dlv_" + id, Kind: "erp", DestinationID: "tenant/live", EventID: "tx_" + id, Event: "checkout.completed", ApplicationID: "app",
			TenantID: "tenant", SessionID: id, Livemode: true, OccurredAt: begin, Attempt: number, Body: []byte("{}"),
		},
		Outcome: outcome, At: at, DurationMs: 7, HTTPStatus: 200, Answer: "ok",
	}
	if outcome != "delivered" {
		a.HTTPStatus, a.Reason, a.NextAttemptAt = 500, "answered 500", at.Add(time.Minute)
	}
	return a
}

// call is the operator's answer that completed a session.
func call(n int) record.Record {
	id := fmt.Sprintf("chs_%05d", n)
	return &record.Call{
		Kind: "enquire", CollectionID: "col_" + id, SessionID: id, ApplicationID: "app", TenantID: "tenant", Livemode: true, OfferID: "momo", Operator: "mtn", Account: "acc",
		Amount: int64(1015 + n), Currency: "XAF", Enquiry: 1, At: begin.Add(1500 * time.Millisecond), DurationMs: 120, Outcome: "approved", Reason: "SUCCESSFUL", OperatorRef: "op_" + id,
	}
}

func (w *world) value(topic, key string, r record.Record) *kgo.Record {
	w.t.Helper()
	value, err := w.codec.Encode(r)
	if err != nil {
		w.t.Fatal(err)
	}
	out := &kgo.Record{Topic: w.kafka.Prefix + topic, Key: []byte(key), Value: value}
	if a, ok := r.(*record.Attempt); ok {
		deliverytest.SignOutcome(out, a.Delivery.Kind)
	}
	return out
}

// produce writes sessions from..to with a call to the operator and a failed and an accepted
// confirmation.
func (w *world) produce(from, to int) {
	w.t.Helper()
	var out []*kgo.Record
	for n := from; n < to; n++ {
		key := fmt.Sprint(n)
		for _, e := range session(n) {
			out = append(out, w.value(schemas.TopicEvents, key, e))
		}
		out = append(out, w.value(schemas.TopicCalls, key, call(n)))
		for i, outcome := range []string{"failed", "delivered"} {
			out = append(out, w.value(schemas.TopicAttempts, key, attempt(n, int32(i+1), outcome)))
		}
	}
	if err := w.cl.ProduceSync(w.t.Context(), out...).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
}

// eventually waits until ok returns true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// committed reports whether the group has committed everything. A topic without records may
// have no offset.
func (w *world) committed() bool {
	lags, err := w.admin.Lag(w.t.Context(), w.kafka.Prefix+"journal")
	if err != nil || lags.Error() != nil {
		return false
	}
	lag := lags[w.kafka.Prefix+"journal"].Lag
	return len(lag) >= 3 && lag.Total() == 0
}

// check asserts that sessions 0..n are in the journal, completed and confirmed.
func (w *world) check(n int) {
	w.t.Helper()
	sums, err := journaltest.SumsByStatus(w.t.Context(), w.conn)
	want := journaltest.StatusSum{
		Status: "completed", Currency: "XAF", Sessions: uint64(n), Amount: int64(n*1000 + n*(n-1)/2), FeeAmount: int64(15 * n),
		TotalAmount: int64(n*1015 + n*(n-1)/2),
	}
	if err != nil || len(sums) != 1 || sums[0] != want {
		w.t.Errorf("sums %+v, want %+v, %v", sums, want, err)
	}
	if faults, err := journaltest.SequenceFaults(w.t.Context(), w.conn, 5); err != nil || len(faults) > 0 {
		w.t.Errorf("%+v, %v", faults, err)
	}
	for kind, want := range map[journal.EntryType]int{journal.EntryTypeEvent: 3 * n, journal.EntryTypeDelivery: 2 * n, journal.EntryTypeCall: n} {
		if got, err := journaltest.CountEntries(w.t.Context(), w.conn, kind); err != nil || got != uint64(want) {
			w.t.Errorf("%d entries of type %s, want %d, %v", got, kind, want, err)
		}
	}
	var receipts uint64
	var money int64
	if err := w.conn.QueryRow(w.t.Context(), "SELECT count(), sum(total_amount) FROM receipts WHERE movement = 'completed'").Scan(&receipts, &money); err != nil || receipts != uint64(n) || money != want.TotalAmount {
		w.t.Errorf("%d receipts of %d, want %d of %d, %v", receipts, money, n, want.TotalAmount, err)
	}
	var accepted uint64
	if err := w.conn.QueryRow(w.t.Context(), "SELECT count() FROM payments WHERE confirmation_state = 'accepted'").Scan(&accepted); err != nil || accepted != uint64(n) {
		w.t.Errorf("%d payments accepted, want %d, %v", accepted, n, err)
	}
}

func metric(t *testing.T, reg *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount()) + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

func TestJournalsEventsAndOutcomes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.produce(0, 300)
	reg, stop := w.run(w.conn)
	eventually(t, "everything committed", w.committed)
	w.check(300)
	w.produce(300, 400)
	eventually(t, "400 sessions", func() bool { return metric(t, reg, "quittance_journal_entries_total") >= 2400 })
	stop()
	w.check(400)
	if n := metric(t, reg, "quittance_journal_batch_entries"); n < 3 || n > 100 {
		t.Errorf("%v batches", n)
	}

	var line string
	if err := w.conn.QueryRow(t.Context(), `SELECT concatWithSeparator('|', order_id, amount, fee_amount, total_amount, channel, offer_id, operator_ref,
		erp_due_ref, confirmation_state, confirmed_at, completed_at, livemode) FROM payments WHERE session_id = 'chs_00007'`).Scan(&line); err != nil {
		t.Fatal(err)
	}
	want := "order\n\nchs_00007|1007|15|1022|MOBILE_MONEY|momo|op_chs_00007|due chs_00007|accepted|2026-03-31 23:01:02.005|2026-03-31 23:00:02.005|true"
	if line != want {
		t.Errorf("got  %q\nwant %q", line, want)
	}
	w.readsBack()
	// No contact data and no note is in the table.
	var leaked uint64
	if err := w.conn.QueryRow(t.Context(), "SELECT countIf(position(toString(tuple(*)), '+24206') > 0 OR position(toString(tuple(*)), 'secret note') > 0) FROM journal").Scan(&leaked); err != nil || leaked != 0 {
		t.Errorf("%d rows with contact data, %v", leaked, err)
	}
}

// readsBack reads the history of a session, and finds sessions by their operator's references.
func (w *world) readsBack() {
	w.t.Helper()
	store := journal.NewStore(w.conn)
	// The same rows again: they are one.
	if err := w.conn.Exec(w.t.Context(), "INSERT INTO journal SELECT * FROM journal WHERE session_id = 'chs_00007'"); err != nil {
		w.t.Fatal(err)
	}
	entries, whole, err := store.History(w.t.Context(), "tenant", "chs_00007", begin)
	var got []string
	for _, e := range entries {
		got = append(got, fmt.Sprintf("%s %s %s", e.Type, e.Event, e.Outcome))
	}
	want := []string{
		"event checkout.created ", "event collection.requested ", "call call.enquire approved", "event checkout.completed ",
		"delivery checkout.completed failed", "delivery checkout.completed delivered",
	}
	if err != nil || !whole || !slices.Equal(got, want) {
		w.t.Errorf("the history is %q, whole %v, %v; want %q", got, whole, err, want)
	}
	if c := entries[2]; c.OperatorRef != "op_chs_00007" || c.DurationMS != 120 || c.Reason != "SUCCESSFUL" || c.Attempt != 1 || c.Channel != "MOBILE_MONEY" || c.Detail["operator"] != "mtn" || c.TotalAmount != 1022 {
		w.t.Errorf("the call is %+v", c)
	}
	for name, c := range map[string]struct {
		agency    string
		reference string
		thorough  bool
		want      []string
	}{
		"of the agency":        {agency: "tenant", reference: "op_chs_00007", want: []string{"chs_00007"}},
		"of another agency":    {agency: "another", reference: "op_chs_00007", thorough: true},
		"payment":              {reference: "op_chs_00007", want: []string{"chs_00007"}},
		"collection, quickly":  {reference: "col_chs_00008"},
		"collection":           {reference: "col_chs_00008", thorough: true, want: []string{"chs_00008"}},
		"unknown":              {reference: "op_chs_99999", thorough: true},
		"with a quoted letter": {reference: "op'--", thorough: true},
	} {
		if got, err := store.SessionsByReference(w.t.Context(), c.agency, c.reference, c.thorough); err != nil || !slices.Equal(got, c.want) {
			w.t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}

// A sink dies between the insert and its position, and its group is forgotten, too. The same records are
// read again and change nothing.
func TestReadingAgainChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.produce(0, 200)
	_, stop := w.run(w.conn)
	eventually(t, "everything committed", w.committed)
	stop()

	if _, err := w.admin.DeleteGroup(t.Context(), w.kafka.Prefix+"journal"); err != nil {
		t.Fatal(err)
	}
	if err := w.conn.Exec(t.Context(), `TRUNCATE TABLE journal_positions`); err != nil {
		t.Fatal(err)
	}
	reg, stop := w.run(w.conn)
	eventually(t, "everything committed again", w.committed)
	stop()
	if n := metric(t, reg, "quittance_journal_entries_total"); n != 1200 {
		t.Errorf("%v entries inserted again", n)
	}
	w.check(200)
}

// Records of aborted transactions are not in the journal.
func TestAbortedTransactionsAreNotJournalled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cl, err := w.kafka.Client(kgo.TransactionalID(w.kafka.Prefix + "tx"))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for n, commit := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit, kgo.TryAbort} {
		if err := cl.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		for _, e := range session(n) {
			cl.Produce(t.Context(), w.value(schemas.TopicEvents, "k", e), nil)
		}
		if err := cl.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := cl.EndTransaction(t.Context(), commit); err != nil {
			t.Fatal(err)
		}
	}
	reg, stop := w.run(w.conn)
	eventually(t, "three entries", func() bool { return metric(t, reg, "quittance_journal_entries_total") >= 3 })
	time.Sleep(500 * time.Millisecond) // were there more, they would come now
	stop()
	sums, err := journaltest.SumsByStatus(t.Context(), w.conn)
	if err != nil || len(sums) != 1 || sums[0].Sessions != 1 || sums[0].Amount != 1001 {
		t.Errorf("%+v, %v", sums, err)
	}
}

func TestPoisonIsSetAside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	topic := w.kafka.Prefix + schemas.TopicEvents
	noTime := session(0)[0].(*record.Event)
	noTime.EventID, noTime.OccurredAt = "evt_no_time", time.Unix(0, 0).UTC()
	bad := []*kgo.Record{
		{Topic: topic, Key: []byte("k"), Value: []byte("no header")},
		{Topic: topic, Key: []byte("k"), Value: []byte{0, 0, 0, 0, 250, 1}},
		{Topic: topic, Key: []byte("k")},
		w.value(schemas.TopicEvents, "k", attempt(0, 1, "failed")), // another record
		w.value(schemas.TopicEvents, "k", noTime),
	}
	torn := w.value(schemas.TopicEvents, "k", session(0)[0])
	torn.Value = torn.Value[:len(torn.Value)/2]
	bad = append(bad, torn)
	if err := w.cl.ProduceSync(t.Context(), bad...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	w.produce(0, 10)
	reg, stop := w.run(w.conn)
	eventually(t, "everything committed", w.committed)
	stop()
	w.check(10)
	if n := metric(t, reg, "quittance_journal_poison_total"); n != float64(len(bad)) {
		t.Errorf("%v poison records counted, want %d", n, len(bad))
	}

	w.setAside(bad...)
}

// setAside asserts that the poison topic has these records, once.
func (w *world) setAside(bad ...*kgo.Record) {
	t := w.t
	t.Helper()
	cl, err := w.kafka.Client(kgo.ConsumeTopics(w.kafka.Prefix+schemas.TopicPoisonJournal), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ends, err := w.admin.ListEndOffsets(t.Context(), w.kafka.Prefix+schemas.TopicPoisonJournal)
	if err != nil {
		t.Fatal(err)
	}
	if end, _ := ends.Lookup(w.kafka.Prefix+schemas.TopicPoisonJournal, 0); end.Offset != int64(len(bad)) {
		t.Errorf("the poison topic ends at %d, want %d", end.Offset, len(bad))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var got []*kgo.Record
	for len(got) < len(bad) && ctx.Err() == nil {
		got = append(got, cl.PollFetches(ctx).Records()...)
	}
	if len(got) != len(bad) {
		t.Fatalf("%d records in the poison topic, want %d", len(got), len(bad))
	}
	for i, r := range got {
		headers := map[string]string{}
		for _, h := range r.Headers {
			headers[h.Key] = string(h.Value)
		}
		if string(r.Value) != string(bad[i].Value) || headers[schemas.HeaderTopic] != bad[i].Topic || headers[schemas.HeaderOffset] != fmt.Sprint(bad[i].Offset) ||
			headers[schemas.HeaderPartition] != fmt.Sprint(bad[i].Partition) || headers[schemas.HeaderError] == "" {
			t.Errorf("%d: %q %v", i, r.Value, headers)
		}
	}
}

// ClickHouse refuses two entries of a batch. They are set aside, and the others are
// inserted.
func TestWhatClickHouseRefusesIsSetAside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.conn.Exec(t.Context(), "ALTER TABLE journal ADD CONSTRAINT even CHECK event_id NOT LIKE 'refused%'"); err != nil {
		t.Fatal(err)
	}
	refused := func(id string) *kgo.Record {
		e := session(0)[0].(*record.Event)
		e.EventID = id
		return w.value(schemas.TopicEvents, "k", e)
	}
	bad := []*kgo.Record{refused("refused 1"), refused("refused 2")}
	for i, r := range bad {
		w.produce(20*i, 20*(i+1))
		if err := w.cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	w.produce(40, 60)
	reg, stop := w.run(w.conn)
	eventually(t, "everything committed", w.committed)
	stop()
	w.check(60)
	w.setAside(bad...)
	for name, want := range map[string]float64{"poison_total": 2, "entries_total": 360, "insert_errors_total": 0} {
		if n := metric(t, reg, "quittance_journal_"+name); n != want {
			t.Errorf("%s is %v, want %v", name, n, want)
		}
	}
}

// ClickHouse answers and refuses everything: the fault is its own. Nothing is set aside,
// and the sink waits.
func TestClickHouseRefusesEverything(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	reg, _ := w.run(w.conn)
	w.produce(0, 5)
	eventually(t, "everything committed", w.committed)
	for i, fault := range []struct{ begin, end string }{
		{"ALTER TABLE journal ADD CONSTRAINT none CHECK amount < 0", "ALTER TABLE journal DROP CONSTRAINT none"}, // a code that entries are set aside for
		{"RENAME TABLE journal TO elsewhere", "RENAME TABLE elsewhere TO journal"},
	} {
		if err := w.conn.Exec(t.Context(), fault.begin); err != nil {
			t.Fatal(err)
		}
		before := metric(t, reg, "quittance_journal_insert_errors_total")
		w.produce(5*(i+1), 5*(i+2))
		eventually(t, "inserts that fail", func() bool { return metric(t, reg, "quittance_journal_insert_errors_total") >= before+2 })
		if w.committed() {
			t.Error("offsets were committed without an insert")
		}
		if metric(t, reg, "quittance_journal_lag_seconds") <= 0 {
			t.Error("while inserts fail there is no lag")
		}
		if err := w.conn.Exec(t.Context(), fault.end); err != nil {
			t.Fatal(err)
		}
		eventually(t, "everything committed", w.committed)
		eventually(t, "no lag any more", func() bool { return metric(t, reg, "quittance_journal_lag_seconds") == 0 })
	}
	w.check(15)
	w.setAside()
	if n := metric(t, reg, "quittance_journal_poison_total"); n != 0 {
		t.Errorf("%v records set aside", n)
	}
}

// ClickHouse stops and starts again. The sink loses nothing and catches up.
func TestClickHouseAway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start := func(addr string) *chdb.Server {
		s, err := chdb.Start(t.Context(), chdb.Config{Dir: dir, Addr: addr, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Stop(context.Background()) })
		return s
	}
	server := start("")
	addr := server.Addr()
	w := newWorldAt(t, "http://"+addr+"/default?dial_timeout=500ms")
	if err := reconciliation.Migrate(t.Context(), w.conn); err != nil {
		t.Fatal(err)
	}
	reg, _ := w.run(w.conn)
	w.produce(0, 50)
	eventually(t, "everything committed", w.committed)

	if err := server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.produce(50, 120)
	eventually(t, "an insert that fails", func() bool { return metric(t, reg, "quittance_journal_insert_errors_total") >= 2 })
	if w.committed() {
		t.Error("offsets were committed without an insert")
	}
	w.produce(120, 150)
	start(addr)
	eventually(t, "everything committed", w.committed)
	w.check(150)
}

// Sinks join and leave while records arrive.
func TestSinksShareTheWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, stopFirst := w.run(w.conn)
	w.produce(0, 200)
	reg, _ := w.run(w.conn)
	w.produce(200, 400)
	stopFirst()
	w.produce(400, 600)
	eventually(t, "everything committed", w.committed)
	w.check(600)
	if metric(t, reg, "quittance_journal_entries_total") == 0 {
		t.Error("the second sink did nothing")
	}
}

func TestNewWantsItsParts(t *testing.T) {
	t.Parallel()
	if _, err := sink.New(sink.Config{}); err == nil || !strings.Contains(err.Error(), "required") {
		t.Errorf("%v", err)
	}
}

// A replay journals poison whose cause is gone. It reads the headers of this release and
// those of the first.
func TestReplayOfPoison(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var bad []*kgo.Record
	for n := range 4 {
		r := w.value(schemas.TopicEvents, "k", session(n)[0])
		if n%2 == 1 {
			r = w.value(schemas.TopicAttempts, "k", attempt(n, 1, "failed"))
		}
		bad = append(bad, schemas.Poison(w.kafka.Prefix+schemas.TopicPoisonJournal, r, errors.New("no such schema")))
		if n >= 2 {
			header := func(k, v string) kgo.RecordHeader { return kgo.RecordHeader{Key: k, Value: []byte(v)} }
			bad[n].Headers = append(r.Headers, header("topic", r.Topic), header("partition", "1"), header("offset", "7"), header("error", "no such schema"))
		}
	}
	garbage := schemas.Poison(w.kafka.Prefix+schemas.TopicPoisonJournal, &kgo.Record{Topic: w.kafka.Prefix + schemas.TopicEvents, Value: []byte("garbage")}, errors.New("garbage"))
	if err := w.cl.ProduceSync(t.Context(), append(bad, garbage)...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	j, err := sink.New(sink.Config{Kafka: w.kafka, Codec: w.codec, Store: journal.NewStore(w.conn), Outcomes: deliverytest.Outcomes(), Cases: deliverytest.Cases(w.kafka), Log: servers.Logger(t), Metrics: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	for _, dryRun := range []bool{true, false} {
		got, err := j.Replay(t.Context(), schemas.TopicPoisonJournal, begin.Add(-time.Hour), time.Now().Add(time.Hour), dryRun, nil)
		if want := (sink.Replayed{Entries: 4, Unreadable: 1}); err != nil || got != want {
			t.Errorf("dry run %v: %+v, %v", dryRun, got, err)
		}
		for _, kind := range []journal.EntryType{journal.EntryTypeEvent, journal.EntryTypeDelivery} {
			want := map[bool]uint64{true: 0, false: 2}[dryRun]
			if n, err := journaltest.CountEntries(t.Context(), w.conn, kind); err != nil || n != want {
				t.Errorf("dry run %v: %d entries of type %s, want %d, %v", dryRun, n, kind, want, err)
			}
		}
	}
}
