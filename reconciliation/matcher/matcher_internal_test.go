package matcher

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/clickhouse"
	"quittance/internal/commands"
	"quittance/internal/journal"
	"quittance/internal/kafka"
	"quittance/internal/registry"
	"quittance/reconciliation/match"
	"quittance/schemas"
	"quittance/schemas/record"
	sink "quittance/sinks/journal"
	deliverytest "quittance/test/deliveries"
	journaltest "quittance/test/journal"
	"quittance/test/registries"
	"quittance/test/servers"
)

var wat = time.FixedZone("WAT", 3600)

var (
	mtn  = registry.StatementAccountKey{AgencyID: registries.AgencyA, Live: false, Code: "mtn"}
	bank = registry.StatementAccountKey{AgencyID: registries.AgencyA, Live: false, Code: "banque"}
)

// office is an agency with accounts, topics, a journal with its sink, and a clock.
type office struct {
	t     *testing.T
	house registries.House
	reg   *registry.Registry
	kafka kafka.Config
	codec *schemas.Codec
	topo  *kafka.Topology
	cl    *kgo.Client
	conn  driver.Conn
	now   time.Time
	n     int
}

func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{t: t, house: registries.SetUp(t), now: time.Date(2026, 3, 1, 12, 0, 0, 0, wat)}
	o.house.Seed(t, registries.Full)
	o.reg = o.house.Open(t).Registry
	sizes := map[string]int32{
		schemas.TopicEvents: 2, schemas.TopicCases: 1, schemas.TopicAttempts: 1, schemas.TopicCalls: 1, schemas.TopicStatements: 2, schemas.TopicReconciliation: 2, schemas.Disbursement.Events: 2, schemas.Disbursement.Commands: 2, schemas.TopicPoisonJournal: 1,
	}
	topics := slices.DeleteFunc(schemas.Topics(), func(t schemas.Topic) bool { return sizes[t.Name] == 0 })
	for i := range topics {
		topics[i].Together = ""
	}
	o.kafka = kafka.Config{Brokers: []string{servers.Kafka(t)}, Prefix: servers.Prefix(t), Topics: topics}
	var err error
	if o.cl, err = o.kafka.Client(kgo.RecordPartitioner(kgo.ManualPartitioner())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.cl.Close)
	servers.CreateTopics(t, kadm.NewClient(o.cl), o.kafka.Prefix, sizes)
	if o.topo, err = kafka.Load(t.Context(), o.kafka, o.cl); err != nil {
		t.Fatal(err)
	}
	client, err := schemas.NewClient(servers.SchemaRegistry(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	if o.codec, err = schemas.NewCodec(t.Context(), client, true); err != nil {
		t.Fatal(err)
	}
	addr, database := journaltest.Migrated(t)
	if o.conn, err = clickhouse.Open(t.Context(), "http://"+addr+"/"+database); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.conn.Close() })
	return o
}

// journal runs the sink until stop is called or the test ends.
func (o *office) journal() (stop func()) {
	o.t.Helper()
	j, err := sink.New(sink.Config{Kafka: o.kafka, Codec: o.codec, Store: journal.NewStore(o.conn), Outcomes: deliverytest.Outcomes(), Cases: deliverytest.Cases(o.kafka), Log: servers.Logger(o.t), Metrics: prometheus.NewRegistry(), BatchWait: 50 * time.Millisecond})
	if err != nil {
		o.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(o.t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := j.Run(ctx); err != nil {
			o.t.Errorf("journal: %v", err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	o.t.Cleanup(stop)
	return stop
}

func (o *office) matcher(with ...func(*Config)) *Matcher {
	o.t.Helper()
	cfg := Config{
		Kafka: o.kafka, Topology: o.topo, Codec: o.codec, ClickHouse: o.conn, Pool: o.house.Pool, Registry: o.reg, JournalGroup: sink.Group, Keys: o.house.Keys,
		Verify: o.house.Keys, Words: commands.Unsigned, Now: func() time.Time { return o.now }, Log: servers.Logger(o.t), Metrics: prometheus.NewRegistry(), Every: 20 * time.Millisecond,
	}
	for _, w := range with {
		w(&cfg)
	}
	m, err := New(cfg)
	if err != nil {
		o.t.Fatal(err)
	}
	m.pause = 40 * time.Millisecond
	return m
}

func (o *office) produce(topic, key string, records ...record.Record) {
	o.t.Helper()
	for _, r := range records {
		value, err := o.codec.Encode(r)
		if err != nil {
			o.t.Fatal(err)
		}
		rec := &kgo.Record{Topic: o.kafka.Prefix + topic, Partition: o.topo.Partition(topic, key), Key: []byte(key), Value: value}
		if err := o.cl.ProduceSync(o.t.Context(), rec).FirstErr(); err != nil {
			o.t.Fatal(err)
		}
	}
}

// money is a payment of agency A by mobile money.
type money struct {
	operatorRef, paymentRef, notice string
	amount                          int64
	at                              time.Time
	undecided                       bool
}

// event returns the last event of a session with the payment.
func (o *office) event(m money) *record.Event {
	o.n++
	id := fmt.Sprintf("chs_%05d", o.n)
	s := &record.Session{
		ID: id, ApplicationID: "app", TenantID: registries.AgencyA, OrderID: id, Amount: m.amount, Currency: "XAF", Mode: "hosted", PaymentRef: m.paymentRef, NoticeRef: m.notice,
		TransactionID: "tx_" + id, CreatedAt: m.at, ExpiresAt: m.at.Add(time.Hour), Sequence: 3, Status: "completed", EndedAt: m.at,
		Collection: &record.Collection{
			ID: "col_" + id, OfferID: "momo", Channel: "MOBILE_MONEY", Status: "approved", Amount: m.amount, Currency: "XAF", OperatorRef: m.operatorRef, ApprovedAt: m.at,
			DecidedAt: m.at, RequestedAt: m.at, NotAfter: m.at, WindowEndsAt: m.at,
		},
	}
	e := &record.Event{EventID: "evt_" + id, Type: "checkout.completed", SessionID: id, Sequence: 3, OccurredAt: m.at, Session: s, Detail: map[string]string{}}
	if m.undecided {
		e.Type, s.Status, s.Collection.Status = "checkout.failed", "failed", "undecided"
	}
	return e
}

func (o *office) pay(all ...money) {
	o.t.Helper()
	for _, m := range all {
		o.produce(schemas.TopicEvents, registries.AgencyA, o.event(m))
	}
}

// line returns a line of a statement.
func (o *office) line(account string, at time.Time, amount int64, operatorRef, paymentRef, notice string) *record.StatementLine {
	o.n++
	return &record.StatementLine{
		ImportID: "import", TenantID: registries.AgencyA, Account: account, StatementID: "s", LineID: fmt.Sprintf("%s/%05d", account, o.n), Number: int64(o.n), Occurrence: 1, SourceLine: 1,
		SourceColumn: 1, Kind: "payment", At: at, Day: at.In(wat).Format(time.DateOnly), Currency: "XAF", Amount: amount, OperatorRef: operatorRef, PaymentRef: paymentRef, NoticeRef: notice, ImportedAt: at,
	}
}

func (o *office) lines(all ...*record.StatementLine) {
	o.t.Helper()
	for _, l := range all {
		o.produce(schemas.TopicStatements, keyOf(registry.StatementAccountKey{AgencyID: l.TenantID, Code: l.Account}), l)
	}
}

// withdrawn returns the record after which a line does not count any more.
func withdrawn(l *record.StatementLine) *record.StatementLine {
	out := *l
	out.Withdrawn = true
	return &out
}

// takesBack withdraws some of the lines, and imports about half of these again. It returns what counts then.
func (o *office) takesBack(random *rand.Rand, all []*record.StatementLine) (left []*record.StatementLine) {
	o.t.Helper()
	for _, l := range all {
		if random.IntN(10) > 0 {
			left = append(left, l)
			continue
		}
		o.lines(withdrawn(l))
		if random.IntN(2) == 0 {
			again := *l
			again.Life++
			o.lines(&again)
			left = append(left, &again)
		}
	}
	return left
}

// full returns the result of one run over everything, and the findings in force.
func (o *office) full(key registry.StatementAccountKey) (full, inForce match.Result, w *world) {
	o.t.Helper()
	r, err := o.matcher().newRun(key)
	if err != nil {
		o.t.Fatal(err)
	}
	// As a run does: the broker then has written the end of the transaction before.
	if err := r.fence(o.t.Context()); err != nil {
		o.t.Fatal(err)
	}
	defer r.client.Close()
	if err := r.watermarks(o.t.Context()); err != nil {
		o.t.Fatal(err)
	}
	r.first = true
	if err := r.read(o.t.Context()); err != nil {
		o.t.Fatal(err)
	}
	if full, err = r.match(); err != nil {
		o.t.Fatal(err)
	}
	return full, r.stored(), r.world
}

// agrees checks that the findings in force are those of one run over everything, and that the
// sums of each day are those of its rows.
func (o *office) agrees(key registry.StatementAccountKey) match.Result {
	o.t.Helper()
	full, inForce, w := o.full(key)
	if c := match.Compare(inForce, full); !c.Empty() {
		o.t.Fatalf("day %s: one run over everything changes %+v", o.now.Format(time.DateOnly), c)
	}
	matched := w.settled()
	for _, m := range full.Matches {
		for _, id := range slices.Concat(m.Sources, m.Lines) {
			matched[id] = true
		}
	}
	type sums struct{ sources, amount, lines, lineAmount, open, openAmount, openLines, openLineAmount int64 }
	want := map[string]sums{}
	for id, e := range w.expected.all() {
		if e.Undecided || e.Refused {
			continue
		}
		s := want[id[:10]]
		s.sources, s.amount = s.sources+1, s.amount+e.Amount
		if !matched[id] {
			s.open, s.openAmount = s.open+1, s.openAmount+e.Amount
		}
		want[id[:10]] = s
	}
	for id, l := range w.lines.all() {
		s := want[id[:10]]
		amount := l.Amount
		if key == bank {
			amount = l.Net()
		}
		s.lines, s.lineAmount = s.lines+1, s.lineAmount+amount
		if !matched[id] {
			s.openLines, s.openLineAmount = s.openLines+1, s.openLineAmount+amount
		}
		want[id[:10]] = s
	}
	for id, l := range w.settles.all() {
		s := want[id[:10]]
		s.sources, s.amount = s.sources+1, s.amount+l.Net()
		if !matched[id] {
			s.open, s.openAmount = s.open+1, s.openAmount+l.Net()
		}
		want[id[:10]] = s
	}
	var open uint64
	if err := o.conn.QueryRow(o.t.Context(), "SELECT count() FROM open_breaks WHERE tenant_id = ? AND account = ? AND length(sources) + length(lines) > 0", key.AgencyID, key.Code).Scan(&open); err != nil || int(open) != len(full.Breaks)+len(full.Proposals) {
		o.t.Errorf("open_breaks has %d of %d and %d, %v", open, len(full.Breaks), len(full.Proposals), err)
	}
	rows, err := o.conn.Query(o.t.Context(), `SELECT toString(day), expected, expected_amount, found, found_amount, open_expected, open_expected_amount, open_found, open_found_amount
		FROM reconciliation_days WHERE tenant_id = ? AND account = ?`, key.AgencyID, key.Code)
	if err != nil {
		o.t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var day string
		var s sums
		if err := rows.Scan(&day, &s.sources, &s.amount, &s.lines, &s.lineAmount, &s.open, &s.openAmount, &s.openLines, &s.openLineAmount); err != nil {
			o.t.Fatal(err)
		}
		if s != want[day] && !(s == sums{}) {
			o.t.Errorf("%s: sums %+v, want %+v", day, s, want[day])
		}
		delete(want, day)
	}
	for day, s := range want {
		if (s != sums{}) {
			o.t.Errorf("no sums of %s: %+v", day, s)
		}
	}
	return full
}

func (o *office) runs(m *Matcher, key registry.StatementAccountKey) Summary {
	o.t.Helper()
	s, err := m.Account(o.t.Context(), key)
	if err != nil {
		o.t.Fatal(err)
	}
	return s
}

// Runs after each statement and each day, over payments and lines that arrive late and in any
// order, with references that repeat, and with lines that are withdrawn and imported again, end where one
// run over everything ends. A repeated run writes nothing. The sums of days are those of the rows.
func TestRunsEqualOneRun(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			o.journal()
			m := o.matcher()
			if seed > 0 {
				m.few = 0 // ask the memory which references the history has, as a run with many rows does
			}
			if seed > 1 {
				m.many = 0 // look all of these up by a query
			}
			random := rand.New(rand.NewPCG(seed, 7))
			begin := o.now
			var counting []*record.StatementLine
			ref := func(prefix string, day int) string {
				switch random.IntN(6) {
				case 0:
					return ""
				case 1, 2, 3: // a reference of an earlier day
					return prefix + fmt.Sprint(random.IntN(day*5+5))
				}
				return prefix + fmt.Sprint(day*5+random.IntN(5))
			}
			amount := func() int64 { return []int64{100, 100, 250, -100}[random.IntN(4)] }
			for day := range 7 {
				o.now = begin.AddDate(0, 0, 3*day) // most rows of before are settled
				when := func() time.Time {
					return o.now.AddDate(0, 0, -random.IntN(1+min(3*day, 9))).Add(-time.Duration(random.IntN(12)) * time.Hour)
				}
				var lines []*record.StatementLine
				for i := range random.IntN(6) { // an ordinary payment, whose line comes the same day
					own, at := fmt.Sprint("O", day, i), when()
					o.pay(money{own, "", "", 100, at, false})
					lines = append(lines, o.line("mtn", at, 100, own, "", ""))
				}
				for range random.IntN(6) {
					notice := ref("AV", day)
					o.pay(money{ref("A", day), ref("P", day), notice, max(amount(), 100), when(), random.IntN(6) == 0})
				}
				for range random.IntN(8) {
					l := o.line("mtn", when(), amount(), ref("A", day), ref("P", day), ref("AV", day))
					l.Reversal = random.IntN(10) == 0
					if len(lines) > 0 && random.IntN(5) == 0 { // other content
						l.LineID = lines[0].LineID
					}
					lines = append(lines, l)
				}
				o.lines(lines...)
				counting = o.takesBack(random, append(counting, lines...))
				o.runs(m, mtn)
				o.agrees(mtn)
				if s := o.runs(m, mtn); s.Written {
					t.Fatalf("a repeated run writes %+v", s.Changes)
				}
			}
			if full := o.agrees(mtn); len(full.Matches) < 3 || len(full.Breaks) < 3 {
				t.Errorf("the world is too quiet: %+v", full)
			}
		})
	}
}

// A payout is matched with the line of the bank, and a batch that grows later supersedes that.
func TestSettlement(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.journal()
	m := o.matcher()
	m.few = 0 // the line that comes later is looked up with the memory
	at := o.now.Add(-2 * time.Hour)
	in := func(l *record.StatementLine, batch string, fee int64) *record.StatementLine {
		l.Batch, l.Fee = batch, fee
		return l
	}
	o.lines(in(o.line("mtn", at, 5000, "A1", "", ""), "MTN-1", 50), in(o.line("mtn", at, 3000, "A2", "", ""), "MTN-1", 30))
	entry := in(o.line("banque", at, 7920, "", "", ""), "MTN-1", 0)
	entry.Kind = "entry"
	o.lines(entry)
	if s := o.runs(m, bank); len(s.Matches) != 1 || len(s.Matches[0].Sources) != 2 || s.Matches[0].Stage != match.StageBatch {
		t.Fatalf("%+v", s.Changes)
	}
	o.agrees(bank)
	o.now = o.now.AddDate(0, 0, 40) // long after
	if s := o.runs(m, bank); len(s.Superseded)+len(s.Breaks) != 0 {
		t.Fatalf("%+v", s.Changes)
	}
	late := in(o.line("mtn", at, 100, "A3", "", ""), "MTN-1", 1)
	o.lines(late)
	if s := o.runs(m, bank); len(s.Superseded) != 1 || len(s.Breaks) != 1 || s.Breaks[0].Kind != match.BreakAmount || s.Breaks[0].Difference != -99 {
		t.Fatalf("%+v", s.Changes)
	}
	o.agrees(bank)
	o.lines(withdrawn(late)) // the file was the wrong one
	if s := o.runs(m, bank); len(s.Matches) != 1 || len(s.Matches[0].Sources) != 2 || len(s.Cleared) != 1 {
		t.Fatalf("%+v", s.Changes)
	}
	o.agrees(bank)
}

// A run that is killed at any step writes nothing, or all. The next one completes it. A run that
// another one has fenced cannot write.
func TestKilledRuns(t *testing.T) {
	t.Parallel()
	for _, at := range []step{stepFenced, stepProduced} {
		t.Run(string(at), func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			o.journal()
			o.pay(money{"A1", "P1", "", 5000, o.now.Add(-time.Hour), false})
			o.lines(o.line("mtn", o.now.Add(-time.Hour), 5000, "A1", "", ""))
			dying := o.matcher()
			dying.killed = func(s step) bool { return s == at }
			if _, err := dying.Account(t.Context(), mtn); !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			if s := o.runs(o.matcher(), mtn); len(s.Matches) != 1 {
				t.Fatalf("%+v", s)
			}
			if full := o.agrees(mtn); len(full.Matches) != 1 {
				t.Errorf("%+v", full)
			}
			if n := o.count("matches"); n != 1 {
				t.Errorf("%d rows", n)
			}
		})
	}
	t.Run("fenced", func(t *testing.T) {
		t.Parallel()
		o := newOffice(t)
		o.journal()
		o.pay(money{"A1", "P1", "", 5000, o.now.Add(-time.Hour), false})
		slow := o.matcher()
		slow.killed = func(s step) bool {
			if s == stepProduced {
				o.runs(o.matcher(), mtn)
			}
			return false
		}
		if _, err := slow.Account(t.Context(), mtn); err == nil {
			t.Error("a fenced run was committed")
		}
		o.agrees(mtn)
		if n := o.count("match_runs"); n != 1 {
			t.Errorf("%d runs", n)
		}
	})
}

func (o *office) count(table string) (n uint64) {
	o.t.Helper()
	o.full(mtn) // waits for the journal
	if err := o.conn.QueryRow(o.t.Context(), "SELECT count() FROM "+table+" FINAL").Scan(&n); err != nil {
		o.t.Fatal(err)
	}
	return n
}

// Instances that look at the same time run each account once. Statements and the begin of a day
// make accounts due.
func TestDue(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.journal()
	o.pay(money{"A1", "P1", "", 5000, o.now.Add(-time.Hour), false})
	look := func() {
		t.Helper()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				m := o.matcher()
				if err := m.Look(t.Context()); err != nil {
					t.Error(err)
				}
				m.admin.Close()
			})
		}
		wg.Wait()
	}
	mtnRuns := func() (n uint64) {
		t.Helper()
		o.full(mtn)
		if err := o.conn.QueryRow(t.Context(), "SELECT count() FROM match_runs FINAL WHERE account = 'mtn'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	look()
	look()
	if n := mtnRuns(); n != 1 {
		t.Errorf("%d runs, want the first", n)
	}
	o.lines(o.line("mtn", o.now.Add(-time.Hour), 5000, "A1", "", ""))
	look()
	if n := mtnRuns(); n != 2 {
		t.Errorf("%d runs, want one after the statement", n)
	}
	if full := o.agrees(mtn); len(full.Matches) != 1 {
		t.Errorf("%+v", full)
	}
	o.now = o.now.AddDate(0, 0, 1)
	look()
	if n := mtnRuns(); n != 3 {
		t.Errorf("%d runs, want one of the day", n)
	}
}

// A run waits until the journal has what Kafka has; it never matches without it.
func TestJournalBehind(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	stop := o.journal()
	o.runs(o.matcher(), mtn)
	stop()
	o.pay(money{"A1", "P1", "", 5000, o.now.Add(-time.Hour), false})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if _, err := o.matcher().Account(ctx, mtn); !errors.Is(err, ErrBehind) {
		t.Fatal(err)
	}
	done := make(chan Summary)
	go func() {
		s, err := o.matcher().Account(t.Context(), mtn)
		if err != nil {
			t.Error(err)
		}
		done <- s
	}()
	o.journal()
	if s := <-done; !s.Written || s.Rows != 1 {
		t.Errorf("%+v", s)
	}
}

// A finding with very many rows is in several records and read as one.
func TestManyRows(t *testing.T) {
	t.Parallel()
	f := &record.Finding{FindingID: "m", Sources: make([]string, partSize+1), Lines: []string{"l"}}
	parts := split(f)
	if len(parts) != 2 || parts[0].Parts != 2 || parts[1].Part != 2 || len(parts[1].Sources) != 1 || len(parts[0].Lines) != 1 || len(parts[1].Lines) != 0 {
		t.Errorf("%d parts", len(parts))
	}
	if got := quote(`a'b\` + "\n"); got != `'a\'b\\\n'` || strings.Contains(list([]string{"a'b"}), "a'b") {
		t.Error(got)
	}
}
