package roles

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"quittance/internal/kafka/consume"
	"quittance/internal/postgres"
)

const (
	// skewEvery is the pause between two measurements.
	skewEvery = 15 * time.Second
	// skewAsk bounds one. A slow answer tells little.
	skewAsk = time.Second
	// skewLimit is the difference from which an ingress must not stamp times: commands of two
	// instances would be dated in another order than they are decided.
	skewLimit = 2 * time.Second
)

// skew is how far the machine's clock is ahead of that of Postgres.
type skew struct {
	now   func() time.Time
	last  atomic.Int64 // nanoseconds
	gauge prometheus.Gauge
}

func newSkew(reg prometheus.Registerer, now func() time.Time) *skew {
	return &skew{now: now, gauge: promauto.With(reg).NewGauge(prometheus.GaugeOpts{
		Name: "quittance_clock_offset_seconds", Help: "How far this machine's clock is ahead of that of Postgres.",
	})}
}

// measure compares the clocks in the middle of a question.
func (s *skew) measure(ctx context.Context, pool *postgres.Pool) error {
	ctx, cancel := context.WithTimeout(ctx, skewAsk)
	defer cancel()
	conn, err := pool.Acquire(ctx) // the time of a connection is not that of the question
	if err != nil {
		return fmt.Errorf("comparing clocks: %w", err)
	}
	defer conn.Release()
	var there time.Time
	begun, clock := time.Now(), s.now()
	if err := conn.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&there); err != nil {
		return fmt.Errorf("comparing clocks: %w", err)
	}
	ahead := clock.Add(time.Since(begun) / 2).Sub(there)
	s.last.Store(int64(ahead))
	s.gauge.Set(ahead.Seconds())
	return nil
}

// tooFar returns an error while the clock is too far from that of Postgres.
func (s *skew) tooFar() error {
	if ahead := time.Duration(s.last.Load()); ahead.Abs() > skewLimit {
		return fmt.Errorf("this machine's clock and that of Postgres differ by %v; synchronise them", ahead.Abs().Round(time.Millisecond))
	}
	return nil
}

// followSkew compares the clock of the machine with Postgres, once for all roles of the process. An
// ingress with a wrong clock is unready.
func (b *Base) followSkew(r Role) {
	if b.Pool == nil {
		return
	}
	if b.clock == nil {
		s := newSkew(b.Metrics, time.Now)
		b.clock = s
		b.Run("clock offset", func(ctx context.Context) error {
			return consume.Every(ctx, skewEvery, func(ctx context.Context) error { return s.measure(ctx, b.Pool) }, func(err error) {
				b.Log.Warn("the offset of the clock is not known", slog.Any("error", err))
			})
		})
	}
	if r.Kind == KindIngress {
		b.readyWhen("clock", b.clock.tooFar)
	}
}
