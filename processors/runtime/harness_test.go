package runtime

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/processors/runtime/store"
	"quittance/test/await"
	"quittance/test/servers"
)

// patience bounds every wait of a test.
const patience = 40 * time.Second

// counter counts the commands of each key and emits an event with the number. A number that
// is missing, repeated or out of order shows a broken rule. A command is an id, or the name
// of a fault to cause.
type counter struct {
	events string
	mu     sync.Mutex
	calls  map[string]int
	mended atomic.Bool // ticks of badtick… succeed
	hook   func(cmd string) error
}

// noise does not compress.
var noise = func() []byte {
	b := make([]byte, 10_000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b)
	return b
}()

type count struct {
	seq uint64
	due int64 // Unix nanoseconds, 0 for none
}

func (c count) bytes() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, c.seq), uint64(c.due))
}

func toCount(v []byte) (c count) {
	if len(v) >= 16 {
		c.seq, c.due = binary.BigEndian.Uint64(v), int64(binary.BigEndian.Uint64(v[8:]))
	}
	return c
}

func (c count) deadline() time.Time {
	if c.due == 0 {
		return time.Time{}
	}
	return time.Unix(0, c.due)
}

func (p *counter) Process(tx *Tx, rec *kgo.Record) error {
	cmd := string(rec.Value)
	p.mu.Lock()
	p.calls[cmd]++
	p.mu.Unlock()
	v, err := tx.Get(rec.Key)
	if err != nil {
		return err
	}
	c := toCount(v)
	c.seq++
	if at, ok := strings.CutPrefix(cmd, "due "); ok {
		t, err := time.Parse(time.RFC3339Nano, at)
		if err != nil {
			return Poison(err)
		}
		c.due = t.UnixNano()
	}
	if cmd == "delete" {
		tx.Delete(rec.Key)
	} else {
		tx.Put(rec.Key, c.bytes(), c.deadline())
	}
	value := append(c.bytes(), cmd...)
	switch cmd {
	case "mid":
		value = append(value, noise...)
	case "big":
		value = append(value, make([]byte, 1<<20)...)
	}
	tx.Emit(&kgo.Record{Topic: p.events, Partition: tx.Partition(), Key: rec.Key, Value: value})
	switch {
	case cmd == "poison":
		return Poison(errors.New("makes no sense"))
	case cmd == "fail":
		return errors.New("fails")
	case cmd == "panic":
		panic("ouch")
	case p.hook != nil:
		return p.hook(cmd)
	}
	return nil
}

func (p *counter) Deadline(_, value []byte) time.Time { return toCount(value).deadline() }

func (p *counter) Tick(tx *Tx, key []byte, now time.Time) error {
	v, err := tx.Get(key)
	if err != nil {
		return err
	}
	c := toCount(v)
	cmd := fmt.Sprintf("tick %d", c.due)
	p.mu.Lock()
	p.calls[cmd]++
	p.mu.Unlock()
	c.seq++
	c.due = 0
	tx.Put(key, c.bytes(), c.deadline())
	tx.Emit(&kgo.Record{Topic: p.events, Partition: tx.Partition(), Key: key, Value: append(c.bytes(), cmd...)})
	if strings.HasPrefix(string(key), "badtick") && !p.mended.Load() {
		return errors.New("bad tick")
	}
	return nil
}

// world is a set of topics for one test.
type world struct {
	t                            testing.TB
	ctx                          context.Context
	addr, prefix                 string
	input, state, poison, events string
	cl                           *kgo.Client
	adm                          *kadm.Client
	sent                         map[string]int
	partitions                   int32
	settled                      int
}

func newWorld(t testing.TB, partitions int32) *world {
	t.Helper()
	return newWorldAt(t, servers.Kafka(t), partitions)
}

func newWorldAt(t testing.TB, addr string, partitions int32) *world {
	t.Helper()
	p := servers.Prefix(t)
	w := &world{
		t: t, ctx: t.Context(), addr: addr, prefix: p, partitions: partitions,
		input: p + "input", state: p + "state", poison: p + "poison", events: p + "events",
		sent: map[string]int{},
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ProducerLinger(0), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MetadataMinAge(20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	w.cl, w.adm = cl, kadm.NewClient(cl)
	compact := "compact"
	servers.CreateTopics(t, w.adm, "", map[string]int32{w.input: partitions, w.events: partitions, w.poison: 1})
	servers.CreateTopic(t, w.adm, w.state, partitions, map[string]*string{"cleanup.policy": &compact})
	t.Cleanup(cl.Close)
	return w
}

func (w *world) create(partitions int32, configs map[string]*string, topics ...string) {
	w.t.Helper()
	for _, topic := range topics {
		servers.CreateTopic(w.t, w.adm, topic, partitions, configs)
	}
}

// instance is a running Runtime.
type instance struct {
	*Runtime
	w    *world
	proc *counter
	stop context.CancelFunc
	done chan struct{}
	err  error
}

type option func(*Config, *hooks)

func (w *world) instance(id string, opts ...option) *instance {
	w.t.Helper()
	proc := &counter{events: w.events, calls: map[string]int{}}
	log := servers.Logger(w.t)
	cfg := Config{
		Name: "counter", Brokers: []string{w.addr}, Group: w.prefix + "group", TransactionalID: w.prefix + id,
		InputTopic: w.input, StateTopic: w.state, PoisonTopic: w.poison,
		Processor: proc, Log: log.With(slog.String("instance", id)), Metrics: prometheus.NewRegistry(),
		HeartbeatInterval: 200 * time.Millisecond, TransactionTimeout: 5 * time.Second,
	}
	var h hooks
	for _, o := range opts {
		o(&cfg, &h)
	}
	r, err := New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	r.hooks = h
	return &instance{Runtime: r, w: w, proc: proc}
}

// start runs an instance until the end of the test or a call of end.
func (w *world) start(id string, opts ...option) *instance {
	w.t.Helper()
	i := w.instance(id, opts...)
	i.run()
	return i
}

func (i *instance) run() {
	ctx, cancel := context.WithCancel(context.Background())
	i.stop, i.done = cancel, make(chan struct{})
	go func() {
		defer close(i.done)
		i.err = i.Run(ctx)
	}()
	i.w.t.Cleanup(func() { cancel(); <-i.done })
}

// end stops an instance and returns the error of Run.
func (i *instance) end() error {
	i.w.t.Helper()
	i.stop()
	return i.wait()
}

func (i *instance) wait() error {
	i.w.t.Helper()
	select {
	case <-i.done:
	case <-time.After(patience):
		i.w.t.Fatal("Run does not return")
	}
	return i.err
}

func (i *instance) ready() *instance {
	i.w.t.Helper()
	i.w.eventually("ready", i.Ready)
	return i
}

// parts returns how many partitions the instance has.
func (i *instance) parts() int {
	m := i.membership.Load()
	if m == nil {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.parts)
}

// memberships returns how many memberships the instance has had.
func (i *instance) memberships() int {
	i.w.t.Helper()
	var out dto.Metric
	if err := i.met.memberships.Write(&out); err != nil {
		i.w.t.Fatal(err)
	}
	return int(out.GetCounter().GetValue())
}

func (i *instance) readyWithin(d time.Duration) bool {
	return await.Within(d, i.Ready)
}

func (i *instance) calls(cmd string) int {
	i.proc.mu.Lock()
	defer i.proc.mu.Unlock()
	return i.proc.calls[cmd]
}

func (w *world) eventually(what string, ok func() bool) {
	w.t.Helper()
	await.Until(w.t, what, ok)
}

// send sends commands of a key to a partition; ids are unique within a test.
func (w *world) send(partition int32, key string, cmds ...string) {
	w.t.Helper()
	var rs []*kgo.Record
	for _, c := range cmds {
		rs = append(rs, &kgo.Record{Topic: w.input, Partition: partition, Key: []byte(key), Value: []byte(c)})
		w.sent[c]++
	}
	if err := w.cl.ProduceSync(w.ctx, rs...).FirstErr(); err != nil {
		w.t.Fatalf("sending commands: %v", err)
	}
}

// event is the event of a command.
type event struct {
	partition int32
	key, cmd  string
	seq       uint64
}

// read returns the committed records of a topic up to the current high watermark. It waits
// for the end of open transactions.
func (w *world) read(topic string) []*kgo.Record {
	w.t.Helper()
	ends, err := w.adm.ListEndOffsets(w.ctx, topic)
	if err != nil {
		w.t.Fatal(err)
	}
	left := map[int32]int64{}
	offs := map[int32]kgo.Offset{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
			offs[o.Partition] = kgo.NewOffset().AtStart()
		}
	})
	if len(left) == 0 {
		return nil
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(w.addr), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: offs}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.FetchMaxWait(50*time.Millisecond))
	if err != nil {
		w.t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	var out []*kgo.Record
	for len(left) > 0 {
		fs := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			w.t.Fatalf("reading %s: offsets %v are missing", topic, left)
		}
		fs.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				out = append(out, r)
			}
			if end, ok := left[r.Partition]; ok && r.Offset+1 >= end {
				delete(left, r.Partition)
			}
		})
	}
	return out
}

func (w *world) readEvents() []event {
	w.t.Helper()
	var out []event
	for _, r := range w.read(w.events) {
		out = append(out, event{r.Partition, string(r.Key), string(r.Value[16:]), toCount(r.Value).seq})
	}
	return out
}

// await waits until n events are committed and returns all events.
func (w *world) await(n int) []event {
	w.t.Helper()
	var out []event
	w.eventually(fmt.Sprintf("%d events", n), func() bool {
		out = w.readEvents()
		return len(out) >= n
	})
	return out
}

// faultsOf returns the faults in events: commands without an event, commands with two,
// numbers out of sequence.
func (w *world) faultsOf(events []event) []string {
	var bad []string
	seen := map[string]int{}
	seq := map[string]uint64{}
	for _, e := range events {
		seen[e.cmd]++
		k := fmt.Sprintf("%d/%s", e.partition, e.key)
		if e.seq != seq[k]+1 {
			bad = append(bad, fmt.Sprintf("gap: %s of %s is %d after %d", e.cmd, k, e.seq, seq[k]))
		}
		seq[k] = e.seq
	}
	for c, n := range w.sent {
		switch got := seen[c]; {
		case got < n:
			bad = append(bad, fmt.Sprintf("lost: %s", c))
		case got > n:
			bad = append(bad, fmt.Sprintf("doubled: %s", c))
		}
	}
	return bad
}

// sound fails the test unless every command sent so far has exactly one event
// and every key its sequence.
func (w *world) sound() {
	w.t.Helper()
	n := 0
	for _, k := range w.sent {
		n += k
	}
	events := w.await(n)
	if bad := w.faultsOf(events); len(bad) > 0 {
		w.t.Fatalf("%d faults, for instance %q", len(bad), bad[:min(5, len(bad))])
	}
}

// settle sends one more command to each partition and waits for its event. All earlier
// commands are then decided or lost. It returns all events except those of settle.
func (w *world) settle() []event {
	w.t.Helper()
	w.settled++
	marker := fmt.Sprintf("marker-%d", w.settled)
	for p := range w.partitions {
		w.send(p, marker, marker)
	}
	delete(w.sent, marker)
	var out []event
	w.eventually("settled", func() bool {
		out = out[:0]
		n := 0
		for _, e := range w.readEvents() {
			if e.cmd == marker {
				n++
			}
			if !strings.HasPrefix(e.cmd, "marker-") {
				out = append(out, e)
			}
		}
		return n >= int(w.partitions)
	})
	return out
}

// other is another owner of the state. The test writes its transaction.
type other struct {
	w  *world
	cl *kgo.Client
}

func (w *world) other(id string) *other {
	w.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(w.addr), kgo.TransactionalID(w.prefix+id), kgo.TransactionTimeout(30*time.Second),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0), kgo.MetadataMinAge(20*time.Millisecond), kgo.ConcurrentTransactionsBackoff(time.Millisecond))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(cl.Close)
	if err := cl.BeginTransaction(); err != nil {
		w.t.Fatal(err)
	}
	return &other{w, cl}
}

// put writes the state of a key and leaves the transaction open.
func (o *other) put(partition int32, key string, c count) *other {
	o.w.t.Helper()
	if err := o.cl.ProduceSync(o.w.ctx, &kgo.Record{Topic: o.w.state, Partition: partition, Key: []byte(key), Value: c.bytes()}).FirstErr(); err != nil {
		o.w.t.Fatal(err)
	}
	return o
}

func (o *other) end(how kgo.TransactionEndTry) {
	o.w.t.Helper()
	if err := o.cl.EndTransaction(o.w.ctx, how); err != nil {
		o.w.t.Fatal(err)
	}
	// The broker writes the markers after its answer: wait for them.
	o.w.read(o.w.state)
}

// limit replaces a topic by a new one with one partition and a limit for the size of
// batches. A changed limit of an existing topic would apply after an unknown time.
func (w *world) limit(topic *string, bytes string) {
	w.t.Helper()
	*topic += ".limited"
	w.create(1, map[string]*string{"max.message.bytes": &bytes}, *topic)
}

// joined reports whether the instance is in the group and has partitions.
func (i *instance) joined() bool {
	m := i.membership.Load()
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.joined && len(m.parts) > 0
}

// groupOffset sets the group's offset of a partition. A negative offset deletes it.
func (w *world) groupOffset(partition int32, at int64) {
	w.t.Helper()
	w.eventually("group empty", func() bool {
		g, err := w.adm.DescribeGroups(w.ctx, w.prefix+"group")
		return err == nil && (g[w.prefix+"group"].State == "Empty" || g[w.prefix+"group"].State == "Dead")
	})
	if at < 0 {
		r, err := w.adm.DeleteOffsets(w.ctx, w.prefix+"group", kadm.TopicsSet{w.input: {partition: {}}})
		if err != nil || r.Error() != nil {
			w.t.Fatalf("deleting offsets: %v %v", err, r)
		}
		return
	}
	var o kadm.Offsets
	o.AddOffset(w.input, partition, at, -1)
	if _, err := w.adm.CommitOffsets(w.ctx, w.prefix+"group", o); err != nil {
		w.t.Fatal(err)
	}
}

// value returns the value of a counter or gauge.
func value(m prometheus.Metric) float64 {
	var out dto.Metric
	if err := m.Write(&out); err != nil {
		panic(err)
	}
	return out.GetCounter().GetValue() + out.GetGauge().GetValue()
}

// onStore opens the store of a partition while no instance uses it.
func (i *instance) onStore(partition int32, fn func(*store.Store)) {
	i.w.t.Helper()
	stateID, err := i.inspect(i.w.ctx)
	if err != nil {
		i.w.t.Fatal(err)
	}
	m := &membership{cfg: &i.cfg, log: i.cfg.Log, stateID: stateID}
	st, _, err := store.Open(m.storeConfig(partition))
	if err != nil {
		i.w.t.Fatal(err)
	}
	fn(st)
	if err := st.Close(); err != nil {
		i.w.t.Fatal(err)
	}
}

func withStore(dir string) option        { return func(c *Config, _ *hooks) { c.StoreDir = dir } }
func withHooks(h hooks) option           { return func(_ *Config, to *hooks) { *to = h } }
func withConfig(fn func(*Config)) option { return func(c *Config, _ *hooks) { fn(c) } }
