package runtime

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"quittance/processors/runtime/store"
	"quittance/test/await"
)

// rule runs a scenario, which returns the faults it found. A patch in test/mutants breaks
// the rule, and a test there requires that the scenario then fails.
func rule(t *testing.T, scenario func(t *testing.T) []string) {
	t.Helper()
	t.Parallel()
	if found := scenario(t); len(found) > 0 {
		t.Fatalf("found %q", found)
	}
}

// once requests v for the first transaction that fits.
func once(v verdict, fits func(*transaction) bool) option {
	var done atomic.Bool
	return withHooks(hooks{beforeEnd: func(_ context.Context, _ *membership, t *transaction) (verdict, error) {
		if fits(t) && !done.Swap(true) {
			return v, nil
		}
		return verdictGoOn, nil
	}})
}

func hasRecords(t *transaction) bool { return t.records > 0 }
func hasTicks(t *transaction) bool   { return t.ticks > 0 }

func TestRule1OverlayIsMergedOnlyAfterCommit(t *testing.T) {
	rule(t, func(t *testing.T) []string {
		w := newWorld(t, 1)
		i := w.start("a", once(verdictAbort, hasRecords)).ready()
		w.send(0, "k", "c1", "c2")
		w.eventually("decided", func() bool { return i.calls("c2") > 0 })
		w.send(0, "k", "c3")
		return w.faultsOf(w.settle())
	})
}

func TestRule2FailedProduceAborts(t *testing.T) {
	rule(t, func(t *testing.T) []string {
		w := newWorld(t, 1)
		// The broker refuses the whole batch; the client does not check its size.
		w.limit(&w.events, "4000")
		w.start("a").ready()
		w.send(0, "k", "c1", "c2", "mid", "c3")
		w.send(0, "k", "big", "c4")
		events := w.settle()
		var found []string
		poison := map[string]string{}
		for _, r := range w.read(w.poison) {
			poison[string(r.Value)] = header(r, headerAttempts)
		}
		for _, cmd := range []string{"mid", "big"} {
			if poison[cmd] != "3" {
				found = append(found, fmt.Sprintf("%s is not poison after 3 attempts: %q", cmd, poison))
			}
			delete(w.sent, cmd)
		}
		return append(found, w.faultsOf(events)...)
	})
}

func TestRule3RestoreWaitsForOpenTransactions(t *testing.T) {
	rule(t, func(t *testing.T) []string {
		// The former owner has flushed its records. Its commit is not complete when the
		// partition is assigned to the new owner.
		w := newWorld(t, 1)
		former := w.other("former").put(0, "k", count{seq: 5})
		i := w.start("a")
		w.eventually("assigned", func() bool { return i.joined() })
		time.Sleep(700 * time.Millisecond)
		former.end(kgo.TryCommit)
		i.ready()
		w.send(0, "k", "c1")
		return wantSeq(w.settle(), "c1", 6)
	})
}

func TestRule3RestoreIgnoresAbortedRecords(t *testing.T) {
	rule(t, func(t *testing.T) []string {
		w := newWorld(t, 1)
		w.other("former").put(0, "k", count{seq: 5}).end(kgo.TryAbort)
		w.start("a").ready()
		w.send(0, "k", "c1")
		return wantSeq(w.settle(), "c1", 1)
	})
}

func TestRule3StoreAheadOfChangelogIsDiscarded(t *testing.T) {
	rule(t, func(t *testing.T) []string {
		w := newWorld(t, 1)
		dir := withStore(t.TempDir())
		a := w.start("a", dir).ready()
		w.send(0, "k", "c1", "c2", "c3")
		w.await(3)
		if err := a.end(); err != nil {
			t.Fatal(err)
		}
		a.onStore(0, func(s *store.Store) {
			b := s.NewBatch()
			if err := b.Set([]byte("k"), store.Entry{Value: count{seq: 50}.bytes()}, 0); err != nil {
				t.Fatal(err)
			}
			pos := s.Position()
			pos.Changelog += 1000
			if err := s.Apply(b, pos); err != nil {
				t.Fatal(err)
			}
		})
		a = w.start("a", dir).ready()
		w.send(0, "k", "c4")
		found := wantSeq(w.settle(), "c4", 4)
		if n := value(a.met.discarded.WithLabelValues(discardedAhead)); n != 1 {
			found = append(found, fmt.Sprintf("%v stores counted as discarded", n))
		}
		return found
	})
}

func TestRule4RestoreRunsBesideTheLoop(t *testing.T) {
	rule(t, func(t *testing.T) []string {
		// The restore of partition 0 takes long: a transaction is open in its changelog.
		// Partition 1 must not wait for it.
		w := newWorld(t, 2)
		former := w.other("former").put(0, "k", count{seq: 5})
		i := w.start("a")
		w.send(1, "k", "c1")
		var found []string
		if !await.Within(4*time.Second, func() bool { return i.calls("c1") > 0 }) {
			found = append(found, "a partition waits for the restore of another")
		}
		former.end(kgo.TryAbort)
		i.ready()
		return found
	})
}

func TestRule4RestoreReplacesState(t *testing.T) {
	rule(t, func(t *testing.T) []string {
		// The partition moved to another instance and back. The callback of the revocation
		// was skipped.
		w := newWorld(t, 1)
		var again atomic.Bool
		i := w.start("a", withHooks(hooks{betweenPolls: func(m *membership) {
			if again.Swap(false) {
				m.onAssigned(m.work, m.cl, map[string][]int32{w.input: {0}})
			}
		}})).ready()
		w.send(0, "k", "c1", "c2")
		w.await(2)
		w.other("another").put(0, "k", count{seq: 7}).end(kgo.TryCommit)
		again.Store(true)
		w.eventually("assigned again", func() bool { return !again.Load() })
		i.ready()
		w.send(0, "k", "c3")
		return wantSeq(w.settle(), "c3", 8)
	})
}

func TestRule5StateStaysInItsPartition(t *testing.T) {
	rule(t, func(t *testing.T) []string {
		w := newWorld(t, 4)
		a := w.start("a").ready()
		for p := range int32(4) {
			w.send(p, fmt.Sprintf("k%d", p), fmt.Sprintf("c%d", p))
		}
		w.await(4)
		if err := a.end(); err != nil {
			t.Fatal(err)
		}
		a = w.start("a") // its store was in memory
		if !a.readyWithin(5 * time.Second) {
			return []string{"the state does not belong to the input"}
		}
		for p := range int32(4) {
			w.send(p, fmt.Sprintf("k%d", p), fmt.Sprintf("d%d", p))
		}
		return w.faultsOf(w.settle())
	})
}

func TestRule6AppliedCommandsAreSkipped(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]int64{"lost": -1, "reset_to_the_beginning": 0, "reset_to_the_middle": 2} {
		t.Run(name, func(t *testing.T) {
			rule(t, func(t *testing.T) []string {
				w := newWorld(t, 1)
				a := w.start("a").ready()
				w.send(0, "k", "c1", "c2", "c3", "c4")
				w.await(4)
				if err := a.end(); err != nil {
					t.Fatal(err)
				}
				w.groupOffset(0, at)
				w.start("a").ready()
				w.send(0, "k", "c5")
				return w.faultsOf(w.settle())
			})
		})
	}
}

func TestRule7RestartAbortsOldTransaction(t *testing.T) {
	rule(t, func(t *testing.T) []string {
		w := newWorld(t, 1)
		long := withConfig(func(c *Config) { c.TransactionTimeout = 30 * time.Second })
		w.send(0, "k", "c1", "c2")
		if err := w.start("a", long, once(verdictDie, hasRecords)).wait(); err == nil {
			t.Fatal("did not die")
		}
		a := w.start("a", long)
		if !a.readyWithin(5 * time.Second) {
			return []string{"a restart waits for the transaction that it left open"}
		}
		return w.faultsOf(w.settle())
	})
}

// The group has removed an instance, for instance because it was suspended. It must not
// tick entries that another instance decides now.
func TestTicksAreFencedByTheGroup(t *testing.T) {
	rule(t, func(t *testing.T) []string {
		w := newWorld(t, 1)
		var thrown atomic.Bool
		i := w.start("a", withHooks(hooks{beforeEnd: func(ctx context.Context, m *membership, t *transaction) (verdict, error) {
			if t.ticks == 0 || thrown.Swap(true) {
				return verdictGoOn, nil
			}
			req := kmsg.NewPtrLeaveGroupRequest()
			req.Group = m.cfg.Group
			member := kmsg.NewLeaveGroupRequestMember()
			member.MemberID, _ = m.cl.GroupMetadata()
			req.Members = append(req.Members, member)
			_, err := req.RequestWith(ctx, w.cl)
			return verdictGoOn, err
		}})).ready()
		w.send(0, "k", "due "+time.Now().Format(time.RFC3339Nano))
		events := w.await(2)
		var found []string
		if n := i.calls(events[1].cmd); n < 2 {
			found = append(found, fmt.Sprintf("a tick was committed from outside of the group, after %d calls", n))
		}
		if len(events) != 2 || events[1].seq != 2 {
			found = append(found, fmt.Sprintf("events %v", events))
		}
		return found
	})
}

// A deadline passes while no instance runs. A command in the log, sent before the deadline,
// would have removed it. The command is decided before the tick.
func TestTimeWaitsForTheLog(t *testing.T) {
	rule(t, func(t *testing.T) []string {
		w := newWorld(t, 1)
		a := w.start("a").ready()
		w.send(0, "k", "due "+time.Now().Add(1500*time.Millisecond).Format(time.RFC3339Nano))
		w.await(1)
		if err := a.end(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1600 * time.Millisecond)
		w.send(0, "k", "delete")
		w.start("b").ready()
		w.send(0, "other", "due "+time.Now().Format(time.RFC3339Nano)) // ticks resume after the restored input is decided
		var found []string
		for _, e := range w.await(4)[:2] {
			if strings.HasPrefix(e.cmd, "tick ") {
				found = append(found, e.cmd+" came before the commands in the log")
			}
		}
		return found
	})
}

func wantSeq(events []event, cmd string, seq uint64) []string {
	for _, e := range events {
		if e.cmd == cmd {
			if e.seq != seq {
				return []string{fmt.Sprintf("%s has number %d instead of %d", cmd, e.seq, seq)}
			}
			return nil
		}
	}
	return []string{cmd + " is lost"}
}

func header(r *kgo.Record, key string) string {
	for _, h := range r.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}
