package roles

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/twmb/franz-go/pkg/kadm"

	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
)

const (
	lagEvery  = 10 * time.Second
	lagWithin = 10 * time.Second
)

// lags reports how far the consumer groups of the roles of this process are behind. Every
// process reports a group as a whole, so that the lag is right although other processes, or
// none, read its partitions.
type lags struct {
	gauge *prometheus.GaugeVec
	adm   *kadm.Client // of all roles
}

func newLags(reg prometheus.Registerer) *lags {
	return &lags{gauge: promauto.With(reg).NewGaugeVec(prometheus.GaugeOpts{
		Name: "quittance_consumer_lag_records",
		Help: "Committed records of a topic that a consumer group has not processed, in all partitions. The mark that ends a transaction counts as a record: up to one a partition stays at rest.",
	}, []string{"group", "topic"})}
}

// reportLag reports the lag of the consumer groups of a role until the roles end.
func (b *Base) reportLag(role Role) error {
	if len(role.Groups) == 0 {
		return nil
	}
	if b.lags.adm == nil {
		cl, err := b.KafkaConfig().Client()
		if err != nil {
			return err
		}
		b.close = append(b.close, cl.Close)
		b.lags.adm = kadm.NewClient(cl)
	}
	b.Run("lag of "+role.Name, func(ctx context.Context) error {
		return consume.Every(ctx, lagEvery, func(ctx context.Context) error { return b.lags.read(ctx, b.KafkaConfig(), role.Groups) }, func(err error) {
			b.Log.LogAttrs(ctx, slog.LevelWarn, "reading the lag of consumer groups", slog.String("role", role.Name), slog.Any("error", err))
		})
	})
	return nil
}

// read sets the gauges. Without an answer they keep their values.
func (l *lags) read(ctx context.Context, c kafka.Config, groups []Group) error {
	ctx, cancel := context.WithTimeout(ctx, lagWithin)
	defer cancel()
	for _, group := range groups {
		topics := make([]string, len(group.Topics))
		for i, topic := range group.Topics {
			topics[i] = c.Prefix + topic
		}
		lag, err := kafka.Lag(ctx, l.adm, c.Prefix+group.Name, topics...)
		if err != nil {
			return err
		}
		for i, topic := range group.Topics {
			l.gauge.WithLabelValues(group.Name, topic).Set(float64(lag[topics[i]]))
		}
	}
	return nil
}
