package readmodel_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/internal/kafka"
	"quittance/internal/operation"
	"quittance/internal/sessions"
	"quittance/internal/tally"
	sink "quittance/sinks/readmodel"
	"quittance/test/servers"
)

// rebuild runs a rebuild on a database.
func (w *world) rebuild(ctx context.Context, t *testing.T, progress kafka.Progress) (sink.Rebuilt, error) {
	t.Helper()
	s, err := sink.New(sink.Config{Kafka: w.cfg, Codec: w.codec, Store: sessions.NewStore(w.pool), Log: servers.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	return s.Rebuild(ctx, operation.Actor{Kind: operation.ActorCommandLine, Name: "test"}, time.Now(), progress)
}

// The read model lost rows and has wrong ones, while its positions are at the end: the sink
// reads nothing again. A rebuild is interrupted and started again, beside the sink and
// without it. Afterwards the sums are those of Kafka, and the sink applies new events.
func TestRebuildCommand(t *testing.T) {
	t.Parallel()
	for name, beside := range map[string]bool{"without the sink": false, "beside the sink": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			stop, _ := w.sink(t, w.pool)
			const n, events = 1500, 3
			var records []*kgo.Record
			var due int64
			for i := range n {
				for sequence := int64(1); sequence <= events; sequence++ {
					s := w.session(i, app(i%7), sequence)
					s.Amount, s.Live = int64(100+i), i%2 == 0
					if sequence == events && i%3 == 0 {
						s.Status = checkout.StatusCompleted
					}
					records = append(records, w.event(t, s))
				}
				due += int64(100 + i)
			}
			w.produce(t, records...)
			within(t, "applying", func() bool { return w.atEnd(t) })
			if !beside {
				stop()
			}
			if _, err := w.pool.Exec(t.Context(), `DELETE FROM sessions WHERE payment_ref = '' AND ctid IN (SELECT ctid FROM sessions LIMIT 700)`); err != nil {
				t.Fatal(err)
			}

			ctx, kill := context.WithCancel(t.Context())
			defer kill()
			if _, err := w.rebuild(ctx, t, func(done, _ int64) {
				if done >= 1000 {
					kill()
				}
			}); !beside && !errors.Is(err, context.Canceled) {
				t.Fatalf("the interrupted rebuild returns %v", err)
			}
			if !beside && w.atEnd(t) {
				t.Error("an interrupted rebuild looks finished to readers")
			}
			got, err := w.rebuild(t.Context(), t, nil)
			if err != nil || !tally.Equal(got.Lines) || got.Unreadable != 0 || !beside && got.Events != n*events {
				t.Fatalf("%+v, %v", got, err)
			}
			var all tally.Count
			for _, l := range got.Lines {
				all = tally.Count{Sessions: all.Sessions + l.Copy.Sessions, Events: all.Events + l.Copy.Events, Amount: all.Amount + l.Copy.Amount}
			}
			if want := (tally.Count{Sessions: n, Events: n * events, Amount: due}); all != want || len(got.Lines) != 4 {
				t.Errorf("%+v in %d lines, want %+v in 4", all, len(got.Lines), want)
			}
			if !w.atEnd(t) {
				t.Error("the positions are not at the end")
			}

			// The sink goes on behind the rebuild.
			if !beside {
				w.sink(t, w.pool)
			}
			w.produce(t, w.event(t, w.session(n, app(1), 1)))
			within(t, "the sink goes on", func() bool { sessions, _ := w.sum(t); return w.atEnd(t) && sessions == n+1 })
		})
	}
}
