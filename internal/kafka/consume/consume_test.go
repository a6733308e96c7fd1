package consume_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/schemas"
	"quittance/test/await"
	"quittance/test/servers"
)

const (
	partitions = 3
	patience   = 30 * time.Second
)

// world is a topic, its poison topic and a store of rows and positions.
type world struct {
	t      *testing.T
	kafka  kafka.Config
	topic  string
	client *kgo.Client
	admin  *kadm.Client
	noun   *noun
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, kafka: kafka.Config{Brokers: []string{servers.Kafka(t)}, Prefix: servers.Prefix(t)}, noun: &noun{positions: map[int32]int64{}}}
	w.topic = w.kafka.Prefix + "in"
	var err error
	if w.client, err = w.kafka.Producer(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.client.Close)
	w.admin = kadm.NewClient(w.client)
	servers.CreateTopic(t, w.admin, w.topic, partitions, nil)
	servers.CreateTopic(t, w.admin, w.kafka.Prefix+"poison", 1, nil)
	return w
}

// produce writes texts to a partition.
func (w *world) produce(partition int32, texts ...string) {
	w.t.Helper()
	var records []*kgo.Record
	for _, text := range texts {
		records = append(records, &kgo.Record{Topic: w.topic, Partition: partition, Key: []byte("key"), Value: []byte(text)})
	}
	if err := w.client.ProduceSync(w.t.Context(), records...).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
}

// transaction writes texts to a partition in one transaction and ends it.
func (w *world) transaction(partition int32, end kgo.TransactionEndTry, texts ...string) {
	w.t.Helper()
	cl, err := w.kafka.Producer(kgo.TransactionalID(servers.Prefix(w.t)))
	if err != nil {
		w.t.Fatal(err)
	}
	defer cl.Close()
	if err := cl.BeginTransaction(); err != nil {
		w.t.Fatal(err)
	}
	for _, text := range texts {
		if err := cl.ProduceSync(w.t.Context(), &kgo.Record{Topic: w.topic, Partition: partition, Value: []byte(text)}).FirstErr(); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := cl.EndTransaction(w.t.Context(), end); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) ends() map[int32]int64 {
	w.t.Helper()
	ends, err := w.admin.ListEndOffsets(w.t.Context(), w.topic)
	if err != nil {
		w.t.Fatal(err)
	}
	out := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) { out[o.Partition] = o.Offset })
	return out
}

// committed returns the offsets of the group.
func (w *world) committed() map[int32]int64 {
	w.t.Helper()
	offsets, err := w.admin.FetchOffsets(w.t.Context(), w.kafka.Prefix+"group")
	if err != nil {
		w.t.Fatal(err)
	}
	out := map[int32]int64{}
	offsets.Each(func(o kadm.OffsetResponse) { out[o.Partition] = o.At })
	return out
}

// poison returns the records of the poison topic, in order.
func (w *world) poison() []*kgo.Record {
	w.t.Helper()
	var out []*kgo.Record
	if err := w.kafka.ReadBetween(w.t.Context(), w.kafka.Prefix+"poison", time.Unix(0, 0), time.Now().Add(time.Hour), nil, func(r *kgo.Record) error {
		out = append(out, r)
		return nil
	}); err != nil {
		w.t.Fatal(err)
	}
	return out
}

// count returns the value of a counter.
func count(t *testing.T, c prometheus.Counter) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families[0].GetMetric()[0].GetCounter().GetValue()
}

type member struct {
	*consume.Consumer
	poisoned, failures prometheus.Counter
}

func (w *world) consumer(change func(*consume.Config)) *member {
	w.t.Helper()
	m := &member{poisoned: prometheus.NewCounter(prometheus.CounterOpts{Name: "p"}), failures: prometheus.NewCounter(prometheus.CounterOpts{Name: "f"})}
	cfg := consume.Config{
		Kafka: w.kafka, Group: "group", Topics: []string{"in"}, Poison: "poison", Pause: 300 * time.Millisecond,
		Log: servers.Logger(w.t), Poisoned: m.poisoned, Failures: m.failures,
	}
	if change != nil {
		change(&cfg)
	}
	var err error
	if m.Consumer, err = consume.New(cfg); err != nil {
		w.t.Fatal(err)
	}
	return m
}

// stored configures a consumer that starts at the stored positions.
func (w *world) stored(cfg *consume.Config) { cfg.Positions, cfg.Control = w.noun.at, true }

// starts runs until the test ends or stop is called.
func (w *world) starts(run func(context.Context) error) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := run(ctx); err != nil {
			w.t.Errorf("ended with %v", err)
		}
	})
	stop = func() { cancel(); wg.Wait() }
	w.t.Cleanup(stop)
	return stop
}

// batches runs Batch into the noun.
func (w *world) batches(m *member) (stop func()) {
	return w.starts(func(ctx context.Context) error { return consume.Batch(ctx, m.Consumer, decode, w.noun.write) })
}

func (w *world) within(what string, done func() bool) {
	w.t.Helper()
	await.Until(w.t, what, done)
}

func decode(r *kgo.Record) (string, error) {
	if text := string(r.Value); !strings.HasPrefix(text, "garbage") {
		return text, nil
	}
	return "", fmt.Errorf("decoding %q: %w", r.Value, schemas.ErrUndecodable)
}

// noun stores rows and positions in one step, like a transaction.
type noun struct {
	mu        sync.Mutex
	positions map[int32]int64
	rows      []string
	fault     func(items []string) error // its error makes a write fail before any change
	rowsOnly  bool                       // the group holds the positions
}

var errMoved = errors.New("the position was moved")

func (n *noun) write(_ context.Context, items []string, moves []consume.Move) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fault != nil {
		if err := n.fault(items); err != nil {
			return err
		}
	}
	for _, text := range items {
		if strings.HasPrefix(text, "refused") {
			return fmt.Errorf("%s: %w", text, consume.ErrRefused)
		}
	}
	if n.rowsOnly {
		moves = nil
	}
	for _, m := range moves {
		if at, ok := n.positions[m.Partition]; ok && at != m.From || !ok && m.From != consume.None {
			return fmt.Errorf("the position of partition %d is %d, not %d: %w", m.Partition, at, m.From, errMoved)
		}
	}
	for _, m := range moves {
		n.positions[m.Partition] = m.To
	}
	n.rows = append(n.rows, items...)
	return nil
}

func (n *noun) at(context.Context, string) (map[int32]int64, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.positions), nil
}

func (n *noun) has() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Sorted(slices.Values(n.rows))
}

func (n *noun) faulty(fault func([]string) error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fault = fault
}

func (w *world) atEnd() bool {
	positions, _ := w.noun.at(w.t.Context(), "")
	return maps.Equal(positions, w.ends())
}

func numbered(from, to int) []string {
	var out []string
	for n := from; n < to; n++ {
		out = append(out, fmt.Sprintf("%05d", n))
	}
	return out
}

// Records that cannot be decoded or applied are set aside once, with headers for their
// origin and the reason. All other records are applied once.
func TestPoisonIsSetAside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.produce(0, numbered(0, 20)...)
	own := &kgo.Record{Topic: w.topic, Partition: 0, Key: []byte("key"), Value: []byte("garbage"), Headers: []kgo.RecordHeader{{Key: "own", Value: []byte("kept")}}}
	if err := w.client.ProduceSync(t.Context(), own).FirstErr(); err != nil {
		t.Fatal(err)
	}
	w.produce(0, "refused 1")
	w.produce(0, numbered(20, 60)...)
	w.produce(0, "refused 2")
	// The first tries fail for another reason. They must not set a record aside again.
	tries := 0
	w.noun.fault = func(items []string) error {
		if tries++; len(items) > 0 && tries <= 5 {
			return errors.New("away")
		}
		return nil
	}
	m := w.consumer(w.stored)
	w.batches(m)
	w.within("passing the poison", w.atEnd)
	if got := w.noun.has(); !slices.Equal(got, numbered(0, 60)) {
		t.Errorf("applied %v", got)
	}
	got := w.poison()
	if len(got) != 3 {
		t.Fatalf("%d poison records, want 3", len(got))
	}
	for i, want := range []struct{ value, offset string }{{"garbage", "20"}, {"refused 1", "21"}, {"refused 2", "62"}} {
		headers := map[string]string{}
		for _, h := range got[i].Headers {
			headers[h.Key] = string(h.Value)
		}
		if string(got[i].Value) != want.value || string(got[i].Key) != "key" || headers[schemas.HeaderTopic] != w.topic || headers[schemas.HeaderPartition] != "0" ||
			headers[schemas.HeaderOffset] != want.offset || headers[schemas.HeaderError] == "" || (i == 0) != (headers["own"] == "kept") {
			t.Errorf("%d: %q with %v", i, got[i].Value, headers)
		}
		if o := consume.Origin(got[i]); o != w.topic {
			t.Errorf("origin %q", o)
		}
	}
	if n := count(t, m.poisoned); n != 3 {
		t.Errorf("%v counted", n)
	}
}

// Poison records of the first release have other headers.
func TestOriginOfOldPoison(t *testing.T) {
	t.Parallel()
	header := func(k, v string) kgo.RecordHeader { return kgo.RecordHeader{Key: k, Value: []byte(v)} }
	for want, headers := range map[string][]kgo.RecordHeader{
		"":     nil,
		"old":  {header("topic", "old"), header("partition", "1")},
		"new":  {header(schemas.HeaderTopic, "new")},
		"both": {header("topic", "own"), header(schemas.HeaderTopic, "both")},
		"last": {header(schemas.HeaderTopic, "first"), header(schemas.HeaderTopic, "last")},
	} {
		if got := consume.Origin(&kgo.Record{Headers: headers}); got != want {
			t.Errorf("%v: %q, want %q", headers, got, want)
		}
	}
	// A replay shows the position of the original record, where the headers have it.
	poison := schemas.Poison("p", schemas.Poison("p", &kgo.Record{Topic: "first", Partition: 1, Offset: 2}, errors.New("x")), errors.New("x"))
	poison.Headers = append(poison.Headers, schemas.Poison("p", &kgo.Record{Topic: "last", Partition: 3, Offset: 4}, errors.New("x")).Headers...)
	poison.Offset = 9
	if r := consume.Original(poison); r.Topic != "last" || r.Partition != 3 || r.Offset != 4 || poison.Offset != 9 {
		t.Errorf("%s/%d at %d", r.Topic, r.Partition, r.Offset)
	}
	if r := consume.Original(&kgo.Record{Offset: 9, Headers: []kgo.RecordHeader{header("topic", "old"), header("partition", "1")}}); r.Topic != "old" || r.Partition != 0 || r.Offset != 9 {
		t.Errorf("%s/%d at %d", r.Topic, r.Partition, r.Offset)
	}
}

// Members join and leave while records arrive. With stored positions every record is
// applied once, with positions of the group at least once.
func TestRebalance(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*world, *consume.Config){
		"noun":  func(w *world, cfg *consume.Config) { w.stored(cfg) },
		"group": func(*world, *consume.Config) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.noun.rowsOnly = name == "group"
			start := func() (stop func()) {
				return w.batches(w.consumer(func(cfg *consume.Config) { cfg.AtOnce = 7; change(w, cfg) }))
			}
			first := start()
			written := make(chan struct{})
			const n = 600
			go func() {
				defer close(written)
				for i, text := range numbered(0, n) {
					w.client.Produce(t.Context(), &kgo.Record{Topic: w.topic, Partition: int32(i % partitions), Value: []byte(text)}, nil)
					time.Sleep(3 * time.Millisecond)
				}
				if err := w.client.Flush(t.Context()); err != nil {
					t.Error(err)
				}
			}()
			time.Sleep(300 * time.Millisecond)
			start()
			time.Sleep(700 * time.Millisecond)
			first()
			start()
			<-written
			w.within("applying", func() bool { return len(slices.Compact(w.noun.has())) == n })
			if got := w.noun.has(); name == "noun" && !slices.Equal(got, numbered(0, n)) {
				t.Errorf("%d rows, want each of %d once", len(got), n)
			}
			w.within("committing", func() bool { return maps.Equal(w.committed(), w.ends()) })
		})
	}
}

// A member waits in a fetch of its partitions when it receives a partition of another member.
// The records of the new partition do not wait for long, although the client fetches it only
// with the next request.
func TestTakeoverDuringAFetch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	start := func() (assigned chan int32, stop func()) {
		assigned = make(chan int32, 10*partitions)
		return assigned, w.batches(w.consumer(func(cfg *consume.Config) {
			w.stored(cfg)
			cfg.Assigned = func(_ string, partition int32) { assigned <- partition }
		}))
	}
	survivor, _ := start()
	for range partitions {
		<-survivor
	}
	other, stop := start()
	<-other
	stop()
	taken := <-survivor
	begun := time.Now()
	w.produce(taken, "a record")
	w.within("applying", func() bool { return len(w.noun.has()) == 1 })
	if took := time.Since(begun); took > 3*time.Second {
		t.Errorf("the record waited for %v", took)
	}
}

// A member stops during a write, and the write fails. The next member applies the same
// records.
func TestRestartInMidBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.produce(1, numbered(0, 50)...)
	begun, end := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w.noun.fault = func(items []string) error {
		if len(items) == 0 {
			return nil
		}
		once.Do(func() { close(begun) })
		<-end
		return errors.New("away")
	}
	stop := w.batches(w.consumer(w.stored))
	<-begun
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	close(end)
	<-stopped
	if got := w.noun.has(); len(got) != 0 {
		t.Errorf("applied %v", got)
	}
	w.noun.faulty(nil)
	w.batches(w.consumer(w.stored))
	w.within("applying", w.atEnd)
	if got := w.noun.has(); !slices.Equal(got, numbered(0, 50)) {
		t.Errorf("applied %v", got)
	}
}

// A failed batch is repeated with the same records, after growing pauses. The lag is then
// above zero.
func TestFailedBatchIsRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.produce(2, numbered(0, 10)...)
	var at []time.Time
	w.noun.fault = func(items []string) error {
		if len(items) == 0 || len(at) >= 4 {
			return nil
		}
		at = append(at, time.Now())
		if !slices.Equal(items, numbered(0, 10)) {
			t.Errorf("try %d has %v", len(at), items)
		}
		return errors.New("away")
	}
	m := w.consumer(w.stored)
	w.batches(m)
	w.within("a lag", func() bool { return m.Lag() > 0 })
	w.within("applying", w.atEnd)
	if got := w.noun.has(); !slices.Equal(got, numbered(0, 10)) {
		t.Errorf("applied %v", got)
	}
	for i := 1; i < len(at); i++ {
		if pause, least := at[i].Sub(at[i-1]), []time.Duration{75, 150, 225}[i-1]*time.Millisecond; pause < least {
			t.Errorf("try %d came %v after the last, want %v at least", i+1, pause, least)
		}
	}
	if n := count(t, m.failures); n != 4 {
		t.Errorf("%v failures counted", n)
	}
	w.within("no lag", func() bool { return m.Lag() == 0 })
}

// If another writer has moved a position, reading continues at that position.
func TestMovedPositionIsReadAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.consumer(w.stored)
	w.batches(m)
	w.within("joining", w.atEnd)
	w.noun.mu.Lock()
	w.noun.positions[0] = 5 // another writer has applied five records
	w.noun.mu.Unlock()
	w.produce(0, numbered(0, 10)...)
	w.within("applying", w.atEnd)
	if got := w.noun.has(); !slices.Equal(got, numbered(5, 10)) {
		t.Errorf("applied %v", got)
	}
}

// Records of aborted transactions are not applied. Control records move positions.
func TestTransactions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.transaction(0, kgo.TryAbort, "aborted 1")
	w.transaction(0, kgo.TryCommit, "a", "b")
	w.transaction(1, kgo.TryAbort, "aborted 2")
	w.batches(w.consumer(w.stored))
	// The last record of both partitions is a marker. Partition 1 has no committed record.
	w.within("positions at the high watermarks", w.atEnd)
	w.transaction(0, kgo.TryAbort, "aborted 3")
	w.within("positions at the high watermarks", w.atEnd)
	if got := w.noun.has(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("applied %v", got)
	}
}

// The stored position is after the end of the topic, or before its start. Reading continues
// with the first record that exists.
func TestPositionOutsideTheTopic(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.produce(0, numbered(0, 10)...)
	w.produce(1, numbered(10, 20)...)
	deleted, err := w.admin.DeleteRecords(t.Context(), kadm.Offsets{w.topic: {1: {Topic: w.topic, Partition: 1, At: 5}}})
	if err == nil {
		err = deleted.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	w.noun.positions = map[int32]int64{0: 1000, 1: 2}
	w.batches(w.consumer(w.stored))
	w.within("applying", w.atEnd)
	if got := w.noun.has(); !slices.Equal(got, append(numbered(0, 10), numbered(15, 20)...)) {
		t.Errorf("applied %v", got)
	}
}

// Stored positions cannot be read when partitions are assigned. The consumer still stops at
// once.
func TestStopsWhilePositionsAreAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.produce(0, numbered(0, 10)...)
	asked := make(chan struct{}, 100)
	m := w.consumer(func(cfg *consume.Config) {
		w.stored(cfg)
		cfg.Positions = func(context.Context, string) (map[int32]int64, error) {
			asked <- struct{}{}
			return nil, errors.New("away")
		}
	})
	stop := w.batches(m)
	<-asked
	<-asked
	begun := time.Now()
	stop()
	if d := time.Since(begun); d > 5*time.Second {
		t.Errorf("the end took %v", d)
	}
}

// After the first record of a batch the consumer waits for more records.
func TestWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var sizes []int
	w.noun.fault = func(items []string) error {
		if len(items) > 0 {
			sizes = append(sizes, len(items))
		}
		return nil
	}
	w.batches(w.consumer(func(cfg *consume.Config) { w.stored(cfg); cfg.AtOnce, cfg.Wait = 30, time.Minute }))
	w.within("joining", w.atEnd)
	for n := range 30 {
		w.produce(int32(n%partitions), fmt.Sprintf("%05d", n))
	}
	w.within("applying", w.atEnd)
	w.noun.mu.Lock()
	defer w.noun.mu.Unlock()
	if !slices.Equal(sizes, []int{30}) {
		t.Errorf("batches of %v, want one of 30", sizes)
	}
}

// When the consumer stops, a running write finishes and its offsets are committed.
func TestBatchDrains(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.produce(0, numbered(0, 10)...)
	begun := make(chan struct{})
	m := w.consumer(nil)
	var ended error
	stop := w.starts(func(ctx context.Context) error {
		return consume.Batch(ctx, m.Consumer, decode, func(ctx context.Context, _ []string, _ []consume.Move) error {
			close(begun)
			select {
			case <-time.After(500 * time.Millisecond):
			case <-ctx.Done():
			}
			ended = ctx.Err()
			return ended
		})
	})
	<-begun
	stop()
	if ended != nil {
		t.Errorf("the write ended with %v", ended)
	}
	if at := w.committed()[0]; at != 10 {
		t.Errorf("committed %d, want 10", at)
	}
}

// Offsets are committed up to the first record that is not done. The next member receives
// the records after that. When the consumer stops, running calls may finish within the
// drain.
func TestEach(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.produce(0, append(numbered(0, 10), "garbage", "refused")...)
	m := w.consumer(func(cfg *consume.Config) { cfg.Drain = 2 * time.Second })
	begun := make(chan string, 100)
	stop := w.starts(func(ctx context.Context) error {
		return consume.Each(ctx, m.Consumer, func(r *kgo.Record) (string, error) {
			if string(r.Value) == "refused" {
				return "", fmt.Errorf("refused: %w", consume.ErrRefused)
			}
			return decode(r)
		}, func(ctx, calls context.Context, item string) bool {
			begun <- item
			switch item {
			case "00004": // a call that finishes during the drain
				<-ctx.Done()
				return consume.Sleep(calls, 300*time.Millisecond)
			case "00007": // not done
				<-ctx.Done()
				return false
			case "00008": // a call that does not finish during the drain
				<-calls.Done()
				return false
			}
			return true
		})
	})
	for range 10 {
		<-begun
	}
	if m.Lag() <= 0 {
		t.Error("no age while records are in progress")
	}
	w.within("committing up to the gap", func() bool { return w.committed()[0] == 4 })
	w.within("poison", func() bool { return len(w.poison()) == 2 })
	w.within("settling", func() bool { return m.InHand() == 3 })
	stopping := time.Now()
	stop()
	if d := time.Since(stopping); d < 2*time.Second || d > 8*time.Second {
		t.Errorf("the drain took %v", d)
	}
	if at := w.committed()[0]; at != 7 {
		t.Errorf("committed %d, want 7", at)
	}
	if lag := m.Lag(); lag != 0 {
		t.Errorf("age %v without a record in progress", lag)
	}
	var again []string
	var mu sync.Mutex
	next := w.consumer(nil)
	w.starts(func(ctx context.Context) error {
		return consume.Each(ctx, next.Consumer, decode, func(_, _ context.Context, item string) bool {
			mu.Lock()
			defer mu.Unlock()
			again = append(again, item)
			return true
		})
	})
	w.within("committing", func() bool { return w.committed()[0] == 12 })
	mu.Lock()
	defer mu.Unlock()
	if slices.Sort(again); !slices.Equal(again, []string{"00007", "00008", "00009", "refused"}) {
		t.Errorf("came again: %v", again)
	}
}

// When a partition moves to another member, that member receives the records that are not
// done. The first member commits nothing more.
func TestEachReleases(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for p := range int32(partitions) {
		w.produce(p, numbered(int(p)*10, int(p)*10+10)...)
	}
	var held, left atomic.Int64
	first := w.consumer(nil)
	w.starts(func(ctx context.Context) error {
		return consume.Each(ctx, first.Consumer, decode, func(ctx, calls context.Context, _ string) bool {
			held.Add(1)
			<-ctx.Done()
			left.Add(1)
			return calls.Err() == nil // the partition has moved: nothing must be committed
		})
	})
	w.within("holding all", func() bool { return held.Load() == 3*10 })
	second := w.consumer(nil)
	var got atomic.Int64
	w.starts(func(ctx context.Context) error {
		return consume.Each(ctx, second.Consumer, decode, func(context.Context, context.Context, string) bool {
			got.Add(1)
			return false
		})
	})
	w.within("handing over", func() bool { return got.Load() >= 10 && left.Load() == got.Load() })
	time.Sleep(time.Second) // time for a wrong commit
	for p, at := range w.committed() {
		if at > 0 {
			t.Errorf("partition %d is committed at %d", p, at)
		}
	}
}

// The number of records in progress has a limit.
func TestEachIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.produce(0, numbered(0, 40)...)
	m := w.consumer(func(cfg *consume.Config) { cfg.AtOnce = 8 })
	var now, most, done atomic.Int64
	w.starts(func(ctx context.Context) error {
		return consume.Each(ctx, m.Consumer, decode, func(context.Context, context.Context, string) bool {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(20 * time.Millisecond)
			now.Add(-1)
			done.Add(1)
			return true
		})
	})
	w.within("doing all", func() bool { return done.Load() == 40 })
	if n := most.Load(); n > 8 {
		t.Errorf("%d at once", n)
	}
}

// frozen are connections whose answers stay away once ice is closed.
type frozen struct {
	net.Conn
	ice, thaw chan struct{}
}

func (f *frozen) Read(b []byte) (int, error) {
	n, err := f.Conn.Read(b)
	select {
	case <-f.ice:
		<-f.thaw
	default:
	}
	return n, err
}

// While the broker has a record and does not answer, Produce waits until its context ends, and no longer.
func TestProduceEndsWithItsContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.produce(0, "one", "two")
	ice, thaw := make(chan struct{}), make(chan struct{})
	m := w.consumer(func(cfg *consume.Config) {
		cfg.AtOnce = 1
		cfg.Options = append(cfg.Options, kgo.Dialer(func(ctx context.Context, network, host string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, host)
			return &frozen{conn, ice, thaw}, err
		}))
	})
	failed := make(chan error, 2)
	w.starts(func(ctx context.Context) error {
		return consume.Each(ctx, m.Consumer, decode, func(ctx, _ context.Context, text string) bool {
			if text == "two" {
				close(ice) // the producer's connection is there since "one"
			}
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			failed <- m.Produce(ctx, &kgo.Record{Topic: w.kafka.Prefix + "poison", Value: []byte(text)})
			return true
		})
	})
	next := func() error {
		select {
		case err := <-failed:
			return err
		case <-time.After(patience):
			close(thaw)
			t.Fatalf("Produce waits for the broker for %s", patience)
			return nil
		}
	}
	one, two := next(), next()
	close(thaw)
	if one != nil || !errors.Is(two, context.DeadlineExceeded) {
		t.Errorf("%v, then %v", one, two)
	}
}

func TestNewWantsItsParts(t *testing.T) {
	t.Parallel()
	if _, err := consume.New(consume.Config{}); err == nil {
		t.Error("an empty configuration is accepted")
	}
}
