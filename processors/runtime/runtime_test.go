package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/processors/runtime/store"
	"quittance/schemas"
)

func TestConfigurationIsChecked(t *testing.T) {
	t.Parallel()
	_, err := New(Config{InputTopic: "a", StateTopic: "a", TickInterval: time.Second, MaxPollRecords: -1, MaxTicks: -1})
	for _, want := range []string{"limit of polled records", "limit of ticks", "no name", "no brokers", "no consumer group", "no transactional id", "same name", "no processor", "no logger", "200 ms"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not mention %q", err, want)
		}
	}
}

// A processor whose records are heavy decides few of them in a transaction. Records that
// arrive together are decided once each and in their order, in as many transactions as it
// takes.
func TestTransactionsKeepTheirLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	const limit, each = 7, 30
	for p := range int32(2) {
		var cmds []string
		for n := range each {
			cmds = append(cmds, fmt.Sprintf("c%d-%d", p, n))
		}
		w.send(p, fmt.Sprintf("k%d", p), cmds...)
	}
	var largest atomic.Int64
	w.start("a", withConfig(func(c *Config) { c.MaxPollRecords = limit }), func(_ *Config, h *hooks) {
		h.beforeEnd = func(_ context.Context, _ *membership, t *transaction) (verdict, error) {
			largest.Store(max(largest.Load(), int64(t.records)))
			return verdictGoOn, nil
		}
	}).ready()
	if bad := w.faultsOf(w.settle()); len(bad) > 0 {
		t.Fatalf("found %q", bad)
	}
	if n := largest.Load(); n != limit {
		t.Errorf("a transaction has up to %d records, want %d", n, limit)
	}
}

func TestPoisonGoesToItsTopicAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	i := w.start("a").ready()
	w.send(1, "k", "c1", "poison", "c2", "fail", "panic", "c3", "due never")
	for _, cmd := range []string{"poison", "fail", "panic", "due never"} {
		delete(w.sent, cmd) // it has no event and no number
	}
	if bad := w.faultsOf(w.settle()); len(bad) > 0 {
		t.Fatalf("found %q", bad)
	}
	want := map[string][3]string{ // attempts, offset, error
		"poison":    {"1", "1", "makes no sense"},
		"fail":      {"3", "3", "fails"},
		"panic":     {"3", "4", "panic: ouch"},
		"due never": {"1", "6", "cannot parse"},
	}
	got := w.read(w.poison)
	if len(got) != len(want) || value(i.met.poison) != float64(len(want)) {
		t.Fatalf("%d poison records, %v counted", len(got), value(i.met.poison))
	}
	for _, r := range got {
		x := want[string(r.Value)]
		if header(r, headerAttempts) != x[0] || header(r, schemas.HeaderOffset) != x[1] || !strings.Contains(header(r, schemas.HeaderError), x[2]) ||
			header(r, schemas.HeaderTopic) != w.input || header(r, schemas.HeaderPartition) != "1" || header(r, headerKind) != poisonRecord || string(r.Key) != "k" {
			t.Errorf("poison %q with headers %v, want %v", r.Value, r.Headers, x)
		}
	}
}

// The poison topic accepts smaller records than the input. A large poison record is written
// without its value.
func TestPoisonThatIsTooLarge(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.limit(&w.poison, "2000")
	i := w.start("a").ready()
	cmd := "due " + string(noise)
	w.send(0, "k", cmd, "c1")
	delete(w.sent, cmd)
	if bad := w.faultsOf(w.settle()); len(bad) > 0 {
		t.Fatalf("found %q", bad)
	}
	got := w.read(w.poison)
	if len(got) != 1 || got[0].Value != nil || header(got[0], headerOmitted) != fmt.Sprint(len(cmd)) {
		t.Fatalf("poison %v", got)
	}
	if n := value(i.met.poison); n != 1 {
		t.Fatalf("%v counted", n)
	}
}

func TestTicksComeOnceForEachDeadline(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	var offset atomic.Int64
	clock := withConfig(func(c *Config) {
		c.Now = func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }
		c.MaxTicks = 3
	})
	// The transaction of the first ticks is aborted. They are still due.
	i := w.start("a", clock, once(verdictAbort, hasTicks)).ready()
	due := time.Now().Add(6 * time.Hour)
	for k := range 10 {
		at := due.Add(time.Duration(k) * time.Second)
		w.send(int32(k%2), fmt.Sprintf("k%d", k), "due "+at.Format(time.RFC3339Nano))
	}
	w.send(0, "badtick", "due "+due.Add(time.Minute).Format(time.RFC3339Nano))
	w.send(0, "gone", "due "+due.Add(2*time.Minute).Format(time.RFC3339Nano))
	w.send(0, "gone", "delete")
	if n := len(w.settle()); n != 13 {
		t.Fatalf("%d events before anything is due", n)
	}
	// The clock jumps while commands arrive.
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
				w.cl.ProduceSync(w.ctx, &kgo.Record{Topic: w.input, Partition: int32(n % 2), Key: []byte("marker-x"), Value: []byte("marker-x")})
			}
		}
	})
	offset.Store(int64(7 * time.Hour))
	w.eventually("ticks", func() bool { return value(i.met.ticks) >= 11 })
	close(stop)
	wg.Wait()
	ticks := map[string]int{}
	for _, e := range w.settle() {
		if strings.HasPrefix(e.cmd, "tick ") {
			ticks[e.key]++
			if e.seq != 2 {
				t.Errorf("tick of %s has number %d", e.key, e.seq)
			}
		}
	}
	for k := range 10 {
		if n := ticks[fmt.Sprintf("k%d", k)]; n != 1 {
			t.Errorf("k%d has %d ticks", k, n)
		}
	}
	if len(ticks) != 10 {
		t.Errorf("ticks %v", ticks)
	}
	bad := w.read(w.poison)
	if len(bad) != 1 || header(bad[0], headerKind) != poisonTick || string(bad[0].Key) != "badtick" {
		t.Errorf("poison %v", bad)
	}
}

// A session whose tick failed was never due again: its deadline was removed from the index,
// and nothing ended the session or asked the operator about its payment.
func TestPoisonedTickIsTriedAgainAfterAnHour(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	var offset atomic.Int64
	clock := withConfig(func(c *Config) {
		c.Now = func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }
	})
	dir := t.TempDir()
	poison := func() int { return len(w.read(w.poison)) }
	// quiet proves that nothing is due: a tick at the same time comes before it.
	quiet := func(i *instance, want int) {
		t.Helper()
		ticks := value(i.met.ticks)
		key := fmt.Sprintf("probe-%d", offset.Load())
		w.send(0, key, "due "+time.Now().Add(time.Duration(offset.Load())-time.Second).Format(time.RFC3339Nano))
		w.eventually("the tick of the probe", func() bool { return value(i.met.ticks) > ticks })
		if n := poison(); n != want {
			t.Fatalf("%d poison records, want %d", n, want)
		}
	}
	waiting := func(i *instance, want float64) {
		t.Helper()
		w.eventually(fmt.Sprintf("%v ticks waiting", want), func() bool { return value(i.met.ticksWaiting) == want })
	}

	a := w.start("a", clock, withStore(dir)).ready()
	w.send(0, "badtick", "due "+time.Now().Add(-time.Second).Format(time.RFC3339Nano))
	w.eventually("poison", func() bool { return poison() == 1 })
	waiting(a, 1)
	offset.Store(int64(59 * time.Minute))
	quiet(a, 1)
	if err := a.end(); err != nil {
		t.Fatal(err)
	}

	// The local store remembers it over a restart.
	b := w.start("a", clock, withStore(dir)).ready()
	waiting(b, 1)
	quiet(b, 1)
	offset.Store(int64(61 * time.Minute))
	w.eventually("poison again", func() bool { return poison() == 2 })
	quiet(b, 2)
	if err := b.end(); err != nil {
		t.Fatal(err)
	}

	// A full restore makes it due at once, and then an hour later.
	c := w.start("a", clock, withStore(t.TempDir())).ready()
	w.eventually("poison after a restore", func() bool { return poison() == 3 })
	quiet(c, 3)
	waiting(c, 1)

	// After the mend the tick has its effect, once.
	c.proc.mended.Store(true)
	offset.Store(int64(123 * time.Minute))
	w.eventually("the tick", func() bool {
		for _, e := range w.readEvents() {
			if e.key == "badtick" && strings.HasPrefix(e.cmd, "tick ") {
				return e.seq == 2
			}
		}
		return false
	})
	waiting(c, 0)
	quiet(c, 3)
}

// Deadlines are a function of the state. They survive a restart with and without the local
// store. A tick that was due while no instance ran comes after the start.
func TestTicksSurviveRestarts(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprintf("store lost %v", lost), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			dir := withStore(t.TempDir())
			a := w.start("a", dir).ready()
			w.send(0, "k", "due "+time.Now().Add(1500*time.Millisecond).Format(time.RFC3339Nano))
			w.await(1)
			if err := a.end(); err != nil {
				t.Fatal(err)
			}
			if lost {
				dir = withStore(t.TempDir())
			}
			w.start("b", dir).ready()
			if events := w.await(2); events[1].seq != 2 || !strings.HasPrefix(events[1].cmd, "tick ") {
				t.Fatalf("events %v", events)
			}
		})
	}
}

func TestRestartAfterGracefulStopRestoresNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	dir := withStore(t.TempDir())
	a := w.start("a", dir).ready()
	for n := range 20 {
		w.send(int32(n%2), "k", fmt.Sprintf("c%d", n))
	}
	w.await(20)
	if err := a.end(); err != nil {
		t.Fatal(err)
	}
	b := w.start("a", dir).ready()
	if n := value(b.met.restoreRecords); n != 0 {
		t.Errorf("%v records restored", n)
	}
	w.send(0, "k", "d1")
	w.sound()
}

// A partition is restored while a fetch of another waits for records. Its commands do not
// wait for long, although the client fetches it only with the next request.
func TestRestoreDuringAFetch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	former := w.other("former").put(0, "k", count{seq: 5})
	i := w.start("a")
	w.send(1, "k", "c1")
	w.eventually("partition 1", func() bool { return i.calls("c1") == 1 })
	former.end(kgo.TryAbort)
	i.ready()
	begun := time.Now()
	w.send(0, "k", "c2")
	w.eventually("partition 0", func() bool { return i.calls("c2") == 1 })
	if took := time.Since(begun); took > 3*time.Second {
		t.Errorf("the command waited for %v", took)
	}
}

// An operator removes damaged local stores. It is refused while the instance runs. The next
// start restores the state from the changelog.
func TestRemoveStores(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	folder := t.TempDir()
	a := w.start("a", withStore(folder)).ready()
	for n := range 20 {
		w.send(int32(n%2), "k", fmt.Sprintf("c%d", n))
	}
	w.await(20)
	if n, err := RemoveStores(folder); n != 0 || !errors.Is(err, ErrStoreInUse) {
		t.Errorf("while it runs: %d removed, %v", n, err)
	}
	if err := a.end(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{2, 0} {
		if n, err := RemoveStores(folder); n != want || err != nil {
			t.Errorf("%d removed, %v; want %d", n, err, want)
		}
	}
	b := w.start("a", withStore(folder)).ready()
	if n := value(b.met.restoreRecords); n == 0 {
		t.Errorf("%v records restored", n)
	}
	w.send(0, "k", "d1")
	w.sound()
	// The folder of another instance, or of another machine's settings: "0 removed" would say that all is done.
	none := filepath.Join(folder, "none")
	if n, err := RemoveStores(none); n != 0 || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), none) {
		t.Errorf("no folder: %d removed, %v", n, err)
	}
	if _, err := os.Stat(none); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder was made: %v", err)
	}
}

// A killed instance loses the changes since its last flush. A restore reads them from the
// changelog.
func TestKilledInstanceReplaysTheRest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	dir := withStore(t.TempDir())
	die := func(t *transaction) bool { return t.offset >= 19 }
	a := w.start("a", dir, withConfig(func(c *Config) { c.FlushInterval = time.Hour }), once(verdictDie, die)).ready()
	for n := range 20 {
		w.send(0, fmt.Sprintf("k%d", n%3), fmt.Sprintf("c%d", n))
	}
	if err := a.wait(); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	b := w.start("a", dir).ready()
	if n := value(b.met.restoreRecords); n == 0 {
		t.Error("nothing was replayed")
	}
	w.sound()
}

// The broker is restored from an older backup, and another instance decides commands until the changelog is longer
// than it was. The store of the first instance has decisions that are lost, at a position that the changelog has
// again. It would answer from them, so it is discarded. A store whose history is that of the changelog is kept.
func TestStoreOfALostHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	folder := t.TempDir()
	a := w.start("a", withStore(folder)).ready()
	w.send(0, "k", "c1", "c2", "c3")
	w.await(3)
	if err := a.end(); err != nil {
		t.Fatal(err)
	}
	a = w.start("a", withStore(folder)).ready()
	if n := value(a.met.discarded.WithLabelValues(discardedHistory)); n != 0 {
		t.Fatalf("a store of the same history: %v discarded", n)
	}
	if err := a.end(); err != nil {
		t.Fatal(err)
	}
	a.onStore(0, func(st *store.Store) {
		lost, pos := st.NewBatch(), st.Position()
		if pos.Mark == (store.Mark{}) {
			t.Error("the store has no mark")
		}
		pos.Mark.Transaction = "of the lost history"
		if err := errors.Join(lost.Set([]byte("k"), store.Entry{Value: []byte("decided and lost")}, 0), st.Apply(lost, pos)); err != nil {
			t.Error(err)
		}
	})
	b := w.start("a", withStore(folder)).ready()
	if n := value(b.met.discarded.WithLabelValues(discardedHistory)); n != 1 {
		t.Errorf("%v stores discarded, want 1", n)
	}
	w.send(0, "k", "c4")
	w.sound()
}

func TestStoreOfAnotherTopicIsDiscarded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for n := range 2 {
		w := newWorld(t, 1)
		a := w.start("a", withStore(dir)).ready()
		w.send(0, "k", "c1")
		w.sound()
		if got := value(a.met.discarded.WithLabelValues(store.DiscardedStamp)); got != float64(n) {
			t.Errorf("world %d: %v stores discarded", n, got)
		}
		if err := a.end(); err != nil {
			t.Fatal(err)
		}
	}
}

// Commands expired before they were decided. The others are decided, and an error is
// counted.
func TestTrimmedInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	a := w.start("a").ready()
	w.send(0, "k", "c1", "c2")
	w.await(2)
	if err := a.end(); err != nil {
		t.Fatal(err)
	}
	w.send(0, "k", "c3", "c4", "c5")
	var to kadm.Offsets
	to.AddOffset(w.input, 0, 4, -1)
	if _, err := w.adm.DeleteRecords(w.ctx, to); err != nil {
		t.Fatal(err)
	}
	delete(w.sent, "c3")
	delete(w.sent, "c4")
	b := w.start("a").ready()
	if bad := w.faultsOf(w.settle()); len(bad) > 0 {
		t.Fatalf("found %q", bad)
	}
	if n := value(b.met.anomalies.WithLabelValues("trimmed")); n != 1 {
		t.Errorf("%v anomalies counted", n)
	}
}

// An operator moved the group offset ahead. The commands before it are still decided.
func TestGroupOffsetAheadOfState(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	a := w.start("a").ready()
	w.send(0, "k", "c1", "c2")
	w.await(2)
	if err := a.end(); err != nil {
		t.Fatal(err)
	}
	w.send(0, "k", "c3", "c4", "c5")
	w.groupOffset(0, 5)
	w.start("a").ready()
	w.sound()
}

// An operator moved the group offsets ahead, and the first transaction is aborted. The client then returns to the
// offsets of the group, in all partitions. No command is lost.
func TestAbortWithGroupOffsetAheadOfState(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	a := w.start("a").ready()
	w.send(0, "k", "c1", "c2")
	w.send(1, "l", "d1")
	w.await(3)
	if err := a.end(); err != nil {
		t.Fatal(err)
	}
	w.send(0, "k", "c3", "c4", "c5")
	w.send(1, "l", "d2")
	w.groupOffset(0, 5)
	w.groupOffset(1, 2)
	var aborts atomic.Int32
	a = w.start("a", withHooks(hooks{beforeEnd: func(_ context.Context, m *membership, t *transaction) (verdict, error) {
		if t.records > 0 && aborts.Add(1) == 1 {
			return verdictAbort, nil
		}
		return verdictGoOn, nil
	}})).ready()
	w.sound()
	if n := a.calls("c3") + a.calls("d2"); n < 3 {
		t.Errorf("c3 and d2 were decided %d times: nothing was aborted", n)
	}
}

// The input has lost its first records, the group has no offsets and the state no position. A transaction in one
// partition must not give the group an offset in another: with an offset and without a state it would be refused.
func TestAnIdlePartitionGetsNoOffset(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.send(1, "l", "gone1", "gone2")
	var to kadm.Offsets
	to.AddOffset(w.input, 1, 2, -1)
	if _, err := w.adm.DeleteRecords(w.ctx, to); err != nil {
		t.Fatal(err)
	}
	delete(w.sent, "gone1")
	delete(w.sent, "gone2")
	a := w.start("a").ready()
	w.send(0, "k", "due "+time.Now().Format(time.RFC3339Nano)) // a transaction of records, one of ticks
	w.await(2)
	if err := a.end(); err != nil {
		t.Fatal(err)
	}
	w.start("a").ready()
	w.send(1, "l", "d1")
	w.await(3)
}

// The group has offsets but the changelog is empty. Decisions against an empty state could
// accept a second payment of a paid order.
func TestStateThatIsGoneIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.send(0, "k", "c1", "c2")
	w.groupOffset(0, 2)
	a := w.start("a")
	w.eventually("refused", func() bool { return value(a.met.anomalies.WithLabelValues("stateless")) == 1 })
	w.send(0, "k", "c3")
	time.Sleep(300 * time.Millisecond) // time for a wrong decision: nothing happens that could be awaited
	if a.Ready() || a.calls("c3") > 0 {
		t.Fatal("the partition is decided")
	}
}

func TestSecondInstanceOfAnIDFencesTheFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	a := w.start("same").ready()
	w.send(0, "k", "c1")
	w.await(1)
	w.start("same").ready()
	// The first instance must not commit, for either partition.
	go func() {
		for n := 0; ; n++ {
			select {
			case <-a.done:
				return
			case <-time.After(20 * time.Millisecond):
				for p := range int32(2) {
					w.cl.Produce(w.ctx, &kgo.Record{Topic: w.input, Partition: p, Key: []byte("marker-x"), Value: []byte("marker-x")}, nil)
				}
			}
		}
	}()
	if err := a.wait(); !errors.Is(err, ErrFenced) {
		t.Fatalf("Run returned %v", err)
	}
	w.sound()
}

// A client can wait for ever after a restart of the broker. The runtime replaces it and
// repeats the transaction.
func TestStuckTransactionIsGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	var stuck atomic.Bool
	short := withConfig(func(c *Config) { c.TransactionTimeout = time.Second })
	i := w.start("a", withStore(t.TempDir()), short, withHooks(hooks{beforeEnd: func(context.Context, *membership, *transaction) (verdict, error) {
		if !stuck.Swap(true) {
			time.Sleep(time.Second + stuckAfter + time.Second)
		}
		return verdictGoOn, nil
	}})).ready()
	w.send(0, "k", "c1", "c2")
	w.send(1, "k", "d1", "d2")
	w.sound()
	if n := value(i.met.memberships); n < 2 {
		t.Errorf("%v memberships", n)
	}
}

// GroupTransactSession skips the callback of a second revocation without a transaction between the two. The partition is
// restored, or active, when the client loses it, and another instance decides it. An instance that kept it would wait for
// it for ever and not become ready.
func TestPartitionIsLostWithoutACallback(t *testing.T) {
	for _, active := range []bool{false, true} {
		t.Run(fmt.Sprintf("active %t", active), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 3)
			var holding atomic.Bool
			var held *membership
			a := w.start("a", withHooks(hooks{betweenPolls: func(m *membership) {
				if held != nil || !holding.Load() {
					return
				}
				for range maxRestores {
					m.restores <- struct{}{} // restores wait
				}
				for _, p := range m.actives() {
					m.reload(p)
				}
				held = m
				holding.Store(false)
			}})).ready()
			for p := range w.partitions {
				w.send(p, fmt.Sprint("k", p), fmt.Sprint("c", p))
			}
			w.await(3)
			w.start("b").ready() // a loses a partition, with a callback
			w.eventually("two instances", func() bool { return a.parts() == 2 })
			if !active {
				holding.Store(true)
				w.eventually("a restore that waits", func() bool { return !holding.Load() })
			}
			w.start("c").ready() // a loses another
			if !active {
				for range maxRestores {
					<-held.restores
				}
			}
			w.eventually("one partition each", func() bool { return a.Ready() && a.parts() == 1 })
			if n := a.memberships(); n != 1 {
				t.Errorf("the instance needed %d memberships", n)
			}
			w.sound()
		})
	}
}

// A client that never learns the offsets of the group is replaced: its partition would wait for ever.
func TestOffsetsAreNeverLearnt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	var forgotten atomic.Bool
	a := w.start("a", withConfig(func(c *Config) { c.TransactionTimeout = 300 * time.Millisecond }),
		withHooks(hooks{betweenPolls: func(m *membership) {
			if p := m.activePartition(0); p != nil && !forgotten.Swap(true) {
				m.reload(p)
				m.mu.Lock()
				delete(m.committed, 0)
				m.mu.Unlock()
			}
		}}))
	w.eventually("forgotten", forgotten.Load)
	a.ready()
	if n := a.memberships(); n < 2 {
		t.Errorf("%d memberships: the offsets were not forgotten", n)
	}
	w.send(0, "k", "c1")
	w.await(1)
}

func TestStoresAreOfOneProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	dir := withStore(t.TempDir())
	w.start("a", dir).ready()
	if err := w.start("b", dir).wait(); !errors.Is(err, ErrStoreInUse) {
		t.Fatal(err)
	}
}

func TestPartitionsMustMatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	if err := w.start("a", withConfig(func(c *Config) { c.StateTopic = w.poison; c.PoisonTopic = w.events })).wait(); !errors.Is(err, ErrPartitions) {
		t.Fatal(err)
	}
}

// Instances start, stop and die in the middle of transactions, with and without their
// stores, while commands arrive.
func TestChurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 6)
	rnd := rand.New(rand.NewPCG(1, 2))
	short := withConfig(func(c *Config) { c.TransactionTimeout = 3 * time.Second; c.FlushInterval = 200 * time.Millisecond })
	deaths := 0
	type slot struct {
		*instance
		dir  string
		doom *atomic.Bool
	}
	var slots [3]*slot
	start := func(n int, dir string) {
		doom := &atomic.Bool{}
		slots[n] = &slot{w.start(fmt.Sprintf("i%d", n), short, withStore(dir), once(verdictDie, func(t *transaction) bool {
			return t.records > 0 && doom.Load()
		})), dir, doom}
	}
	for n := range slots {
		start(n, t.TempDir())
	}
	sent := 0
	send := func(n int) {
		for range n {
			w.send(int32(rnd.IntN(6)), fmt.Sprintf("k%d", rnd.IntN(5)), fmt.Sprintf("c%d", sent))
			sent++
		}
	}
	begun := time.Now()
	for time.Since(begun) < 8*time.Second || deaths == 0 && time.Since(begun) < time.Minute { // a busy machine needs more time
		send(40)
		n := rnd.IntN(3)
		s := slots[n]
		dir := s.dir
		if rnd.IntN(2) == 0 {
			dir = t.TempDir()
		}
		if rnd.IntN(2) == 0 {
			// An instance that waits for its death may receive a partition and die now.
			switch err := s.end(); {
			case errors.Is(err, errDied) && s.doom.Load():
				deaths++
			case err != nil:
				t.Fatal(err)
			}
		} else {
			s.doom.Store(true)
			send(60)
			select {
			case <-s.done:
				deaths++
			case <-time.After(300 * time.Millisecond): // it dies in a transaction and has no partition
				continue
			}
		}
		send(20)
		start(n, dir)
		time.Sleep(time.Duration(rnd.IntN(300)) * time.Millisecond)
	}
	for _, s := range slots {
		s.doom.Store(false)
	}
	w.sound()
	t.Logf("%d commands, %d deaths", sent, deaths)
	if deaths == 0 {
		t.Error("nobody died")
	}
}
