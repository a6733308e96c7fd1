package schedule_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/deliveries"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/origin"
	"quittance/schemas/record"
	"quittance/sinks/schedule"
	"quittance/sinks/webhook"
	deliverytest "quittance/test/deliveries"
	"quittance/test/servers"
)

// Whoever had the Kafka user of one sink of deliveries could write "accepted" or "for a person" about any
// delivery of any kind, and the integrator was never called, or the ERP never told again. The schedule believes
// the worker of the kind now, and its true outcome still counts.
func TestForgedOutcomeIsNotBelieved(t *testing.T) {
	t.Parallel()
	b := bench(t)
	metrics := prometheus.NewRegistry()
	deliverytest.Start(t, counting(t, b, metrics, false))
	far := b.Now().Add(time.Hour)
	outcomes(t, b, outcome(b, "owed", "d1", deliveries.OutcomeFailed, 0, 1, far))
	state := func(event string) string { return b.State(t, webhook.Kind, event, "d1") }
	deliverytest.Eventually(t, "the first attempt failed", func() bool { return state("owed") == deliveries.StateWaiting })

	strange, err := secret.GenerateKeys().MACs(secret.LabelOutcomes(string(webhook.Kind))) // keys of another installation
	if err != nil {
		t.Fatal(err)
	}
	worker := func(kind string) func(*kgo.Record) {
		return func(r *kgo.Record) { deliverytest.SignOutcome(r, kind) }
	}
	attacks := map[string]func(*kgo.Record){
		"no proof":               func(*kgo.Record) {},
		"another installation's": origin.NewSigner(string(webhook.Kind), strange).SignKeyed,
		"the worker of notify":   worker("notify"),
		"nobody's name":          worker("root"),
		"a name without a proof": func(r *kgo.Record) {
			r.Headers = []kgo.RecordHeader{schemas.Header(origin.HeaderFrom, string(webhook.Kind))}
		},
		"the proof of another": func(r *kgo.Record) {
			r.Headers = signed(t, b, outcome(b, "other", "d1", deliveries.OutcomeDelivered, 0, 1, far)).Headers
		},
		"another key": func(r *kgo.Record) { worker(string(webhook.Kind))(r); r.Key = []byte("d2") },
		"another topic": func(r *kgo.Record) {
			topic := r.Topic
			r.Topic = "other"
			worker(string(webhook.Kind))(r)
			r.Topic = topic
		},
		"two proofs":                func(r *kgo.Record) { worker(string(webhook.Kind))(r); worker(string(webhook.Kind))(r) },
		"a proof for the partition": origin.NewSigner(string(webhook.Kind), deliverytest.Bodies()).Sign,
	}
	for name, sign := range attacks {
		for _, o := range []deliveries.Outcome{deliveries.OutcomeDelivered, deliveries.OutcomeNeedsOperator} {
			for _, event := range []string{"owed", "never " + name} {
				r := signed(t, b, outcome(b, event, "d1", o, 0, 2, far))
				r.Headers = nil
				sign(r)
				write(t, b, r)
			}
		}
	}
	n := 4 * len(attacks)
	deliverytest.Eventually(t, "all are set aside", func() bool { return len(b.Records(t, schemas.TopicPoisonDeliveries)) == n })
	for _, r := range b.Records(t, schemas.TopicPoisonDeliveries) {
		if !slices.ContainsFunc(r.Headers, func(h kgo.RecordHeader) bool {
			return h.Key == schemas.HeaderError && (strings.Contains(string(h.Value), "unsigned: ") || strings.Contains(string(h.Value), "forged: "))
		}) {
			t.Errorf("a poison record has no reason: %v", r.Headers)
		}
	}
	for reason, want := range map[string]float64{"unsigned": 4, "forged": float64(n - 4)} {
		if got := metric(t, metrics, "quittance_delivery_schedule_outcomes_refused_total", reason); got < want { // a batch that is repeated counts again
			t.Errorf("%v refused as %s, want %v", got, reason, want)
		}
	}
	if s := state("owed"); s != deliveries.StateWaiting {
		t.Errorf("the forged outcomes made it %s", s)
	}
	for name := range attacks {
		if s := state("never " + name); s != "" {
			t.Errorf("%s: the schedule has a row, %s", name, s)
		}
	}

	outcomes(t, b, outcome(b, "owed", "d1", deliveries.OutcomeDelivered, 0, 2, far))
	deliverytest.Eventually(t, "the true outcome counts", func() bool { return state("owed") == deliveries.StateDelivered })
}

// Workers of the release before prove nothing. With --accept-unproven-bodies they are believed; a forged outcome
// is not.
func TestUnprovenOutcomesOfTheReleaseBefore(t *testing.T) {
	t.Parallel()
	b := bench(t)
	metrics := prometheus.NewRegistry()
	deliverytest.Start(t, counting(t, b, metrics, true))
	forged := signed(t, b, outcome(b, "forged", "d1", deliveries.OutcomeDelivered, 0, 1, time.Time{}))
	forged.Headers[1].Value = make([]byte, secret.MACSize)
	old := signed(t, b, outcome(b, "old", "d1", deliveries.OutcomeDelivered, 0, 1, time.Time{}))
	old.Headers = nil
	write(t, b, forged, old)
	deliverytest.Eventually(t, "the old one counts", func() bool { return b.State(t, webhook.Kind, "old", "d1") == deliveries.StateDelivered })
	deliverytest.Eventually(t, "the forged one is set aside", func() bool { return len(b.Records(t, schemas.TopicPoisonDeliveries)) == 1 })
	if s := b.State(t, webhook.Kind, "forged", "d1"); s != "" {
		t.Errorf("the forged outcome made a row, %s", s)
	}
	if n := metric(t, metrics, "quittance_delivery_schedule_outcomes_unproven_total", ""); n < 1 {
		t.Errorf("%v unproven outcomes counted", n)
	}
}

// counting returns a schedule with these metrics.
func counting(t *testing.T, b *deliverytest.Bench, metrics *prometheus.Registry, acceptUnproven bool) *schedule.Schedule {
	t.Helper()
	believed := deliverytest.Outcomes()
	believed.AcceptUnproven = acceptUnproven
	s, err := schedule.New(schedule.Config{
		Kafka: b.Kafka, Codec: b.Codec, Deliveries: b.Store, Outcomes: believed, Now: b.Now, Log: servers.Logger(t), Metrics: metrics, Poll: 50 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// signed returns the record of an outcome as its worker writes it.
func signed(t testing.TB, b *deliverytest.Bench, a *record.Attempt) *kgo.Record {
	t.Helper()
	value, err := b.Codec.Encode(a)
	if err != nil {
		t.Fatal(err)
	}
	r := &kgo.Record{Topic: b.Kafka.Prefix + schemas.TopicAttempts, Key: []byte(a.Delivery.DestinationID), Value: value}
	deliverytest.SignOutcome(r, a.Delivery.Kind)
	return r
}

// metric returns the value of a counter, of the label's value if there is one.
func metric(t testing.TB, from *prometheus.Registry, name, label string) (sum float64) {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && (label == "" || m.GetLabel()[0].GetValue() == label) {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}
