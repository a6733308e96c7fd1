package runtime

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// payload is the size of commands, events, replies and values of the state.
const payload = 500

// writer writes three entries of state and emits an event and a reply, like the creation of
// a session.
type writer struct {
	events, replies string
	value           []byte
}

func (p *writer) Process(tx *Tx, rec *kgo.Record) error {
	app, err := tx.Get([]byte("app")) // every command reads and writes the application's own entry
	if err != nil {
		return err
	}
	n := uint64(1)
	if len(app) >= 8 {
		n += binary.BigEndian.Uint64(app)
	}
	for _, kind := range []byte{'s', 'o'} { // a new session, a new order
		key := append([]byte{kind}, rec.Key...)
		if _, err := tx.Get(key); err != nil {
			return err
		}
		tx.Put(key, p.value, p.Deadline(key, p.value))
	}
	tx.Put([]byte("app"), append(binary.BigEndian.AppendUint64(nil, n), p.value[8:]...), time.Time{})
	tx.Emit(&kgo.Record{Topic: p.events, Partition: tx.Partition(), Key: rec.Key, Value: rec.Value})
	tx.Emit(&kgo.Record{Topic: p.replies, Partition: tx.Partition(), Key: rec.Key, Value: rec.Value})
	return nil
}

func (p *writer) Deadline(key, _ []byte) time.Time {
	if key[0] == 's' {
		return time.Unix(4e9, 0)
	}
	return time.Time{}
}

func (p *writer) Tick(*Tx, []byte, time.Time) error { return nil }

// BenchmarkRuntime is a closed loop of clients that use a runtime with its store on disk.
// BenchmarkEcho is the minimum: consume, produce two records, commit. Compare them in one
// run: go test -run '^$' -bench . -benchtime 3s
func BenchmarkRuntime(b *testing.B) {
	for _, clients := range []int{1, 64, 512} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			w := newWorld(b, 4)
			replies := w.prefix + "replies"
			w.create(4, nil, replies)
			w.start("a", withStore(b.TempDir()), withConfig(func(c *Config) {
				c.Processor = &writer{events: w.events, replies: replies, value: make([]byte, payload)}
			})).ready()
			w.loop(b, clients, replies)
		})
	}
}

func BenchmarkEcho(b *testing.B) {
	for _, clients := range []int{1, 64, 512} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			w := newWorld(b, 4)
			replies := w.prefix + "replies"
			w.create(4, nil, replies)
			gts, err := kgo.NewGroupTransactSession(kgo.SeedBrokers(w.addr), kgo.TransactionalID(w.prefix+"echo"), kgo.ConsumerGroup(w.prefix+"group"),
				kgo.ConsumeTopics(w.input), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConcurrentTransactionsBackoff(time.Millisecond),
				kgo.TransactionTimeout(3*time.Second), kgo.MetadataMinAge(20*time.Millisecond), kgo.ProducerLinger(0),
				kgo.RecordPartitioner(kgo.ManualPartitioner()))
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(b.Context())
			var wg sync.WaitGroup
			wg.Go(func() {
				defer gts.Close()
				for {
					fs := gts.PollFetches(ctx)
					if ctx.Err() != nil {
						return
					}
					if fs.NumRecords() == 0 {
						continue
					}
					if err := gts.Begin(); err != nil {
						b.Error(err)
						return
					}
					fs.EachRecord(func(r *kgo.Record) {
						gts.Produce(ctx, &kgo.Record{Topic: w.events, Partition: r.Partition, Key: r.Key, Value: r.Value}, nil)
						gts.Produce(ctx, &kgo.Record{Topic: replies, Partition: r.Partition, Key: r.Key, Value: r.Value}, nil)
					})
					if _, err := gts.End(ctx, kgo.TryCommit); err != nil && ctx.Err() == nil {
						b.Error(err)
						return
					}
				}
			})
			w.loop(b, clients, replies)
			cancel()
			wg.Wait()
		})
	}
}

// loop has clients send b.N commands in total and wait for the replies. It reports rate and
// latencies.
func (w *world) loop(b *testing.B, clients int, replies string) {
	ctx, cancel := context.WithCancel(b.Context())
	rc, err := kgo.NewClient(kgo.SeedBrokers(w.addr), kgo.ConsumeTopics(replies), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		b.Fatal(err)
	}
	var mu sync.Mutex
	waiting := map[string]chan struct{}{}
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			rc.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
				mu.Lock()
				if c := waiting[string(r.Key)]; c != nil {
					close(c)
					delete(waiting, string(r.Key))
				}
				mu.Unlock()
			})
		}
	})
	value := make([]byte, payload)
	ask := func(key string, partition int32) time.Duration {
		c := make(chan struct{})
		mu.Lock()
		waiting[key] = c
		mu.Unlock()
		began := time.Now()
		w.cl.Produce(ctx, &kgo.Record{Topic: w.input, Partition: partition, Key: []byte(key), Value: value}, nil)
		select {
		case <-c:
		case <-time.After(patience):
			b.Errorf("no reply to %s", key)
		}
		return time.Since(began)
	}
	run := func(n int, name string) []time.Duration {
		all := make([][]time.Duration, clients)
		var each sync.WaitGroup
		for c := range clients {
			each.Go(func() {
				for k := c; k < n; k += clients {
					all[c] = append(all[c], ask(fmt.Sprintf("%s-%d", name, k), int32(c%int(w.partitions))))
				}
			})
		}
		each.Wait()
		return slices.Concat(all...)
	}
	run(2*clients, "warm")
	b.ResetTimer()
	took := run(b.N, fmt.Sprintf("run%d", b.N))
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(len(took))/b.Elapsed().Seconds(), "commands/s")
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(0, "ns/op")
	cancel()
	wg.Wait()
	rc.Close()
}
