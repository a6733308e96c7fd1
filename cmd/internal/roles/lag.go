package roles

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/twmb/franz-go/pkg/kadm"

	"quittance/internal/deliveries"
	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/schemas"
	"quittance/sinks/cases"
	"quittance/sinks/cashin"
	"quittance/sinks/collect"
	"quittance/sinks/erp"
	"quittance/sinks/journal"
	"quittance/sinks/notify"
	"quittance/sinks/readmodel"
	"quittance/sinks/schedule"
	"quittance/sinks/webhook"
)

// consumption is what a role reads as a member of a consumer group. The names have no
// prefix.
type consumption struct {
	group  string
	topics []string
}

// consumptions returns what a role reads as a member of consumer groups.
func consumptions(role string) []consumption {
	of := func(name deliveries.Kind) []consumption {
		k, _ := DeliveryKinds(nil).Of(name) // it is registered
		return []consumption{{k.Planning().Group, []string{k.Planning().Topic}}, {k.Sending().Group, []string{k.Sending().Topic}}}
	}
	f := schemas.Checkout
	switch role {
	case f.Processor:
		return []consumption{{processorGroup(f), []string{f.Commands}}}
	case "collect":
		return []consumption{{collect.Group, []string{schemas.TopicCollections}}}
	case string(webhook.Kind):
		return of(webhook.Kind)
	case string(cashin.Kind):
		return of(cashin.Kind)
	case string(erp.Kind):
		return append(of(erp.Kind), consumption{erp.ReporterGroup, []string{schemas.TopicAttempts}})
	case string(notify.Kind):
		return append(of(notify.Kind), consumption{notify.AnnouncerGroup, []string{schemas.TopicEvents}}, consumption{notify.DigesterGroup, []string{schemas.TopicCalls}})
	case "schedule":
		return []consumption{{schedule.Group, []string{schemas.TopicAttempts}}}
	case "cases":
		return []consumption{{cases.Group, cases.Topics()}}
	case "readmodel":
		return []consumption{{readmodel.Group, []string{schemas.TopicEvents}}}
	case "journal":
		return []consumption{{journal.Group, journal.Topics()}}
	}
	return nil // ingress and commands join no group
}

// Groups returns the consumer groups of a role, without the prefix of the installation.
func Groups(role string) (names []string) {
	for _, c := range consumptions(role) {
		names = append(names, c.group)
	}
	return names
}

// consumes are the rights of a member of the consumer groups of a role.
func consumes(role string) (out []kafka.Right) {
	for _, c := range consumptions(role) {
		out = append(out, slices.Concat(join(c.group), read(c.topics...))...)
	}
	return out
}

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
func (b *Base) reportLag(role string) error {
	of := consumptions(role)
	if len(of) == 0 {
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
	b.Run("lag of "+role, func(ctx context.Context) error {
		return consume.Every(ctx, lagEvery, func(ctx context.Context) error { return b.lags.read(ctx, b.KafkaConfig(), of) }, func(err error) {
			b.Log.LogAttrs(ctx, slog.LevelWarn, "reading the lag of consumer groups", slog.String("role", role), slog.Any("error", err))
		})
	})
	return nil
}

// read sets the gauges. Without an answer they keep their values.
func (l *lags) read(ctx context.Context, c kafka.Config, of []consumption) error {
	ctx, cancel := context.WithTimeout(ctx, lagWithin)
	defer cancel()
	for _, one := range of {
		topics := make([]string, len(one.topics))
		for i, topic := range one.topics {
			topics[i] = c.Prefix + topic
		}
		lag, err := kafka.Lag(ctx, l.adm, c.Prefix+one.group, topics...)
		if err != nil {
			return err
		}
		for i, topic := range one.topics {
			l.gauge.WithLabelValues(one.group, topic).Set(float64(lag[topics[i]]))
		}
	}
	return nil
}
