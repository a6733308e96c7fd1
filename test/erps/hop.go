package erps

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quittance/internal/call"
	"quittance/internal/erp"
	"quittance/internal/erpquery"
	"quittance/internal/kafka"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/schemas"
	sink "quittance/sinks/erp"
	"quittance/test/servers"
)

// Hop is the way over Kafka between who asks an ERP and `sink erp`, with topics of its own.
type Hop struct {
	Kafka    kafka.Config
	Protocol erpquery.Protocol
	// Metrics are those of the answerers that Answer starts; nil for none.
	Metrics prometheus.Registerer
}

// NewHop makes the topics.
func NewHop(t testing.TB) *Hop {
	t.Helper()
	cfg := kafka.Config{Brokers: []string{servers.Kafka(t)}, Prefix: servers.Prefix(t), Topics: slices.DeleteFunc(schemas.Topics(), func(topic schemas.Topic) bool {
		return topic.Name != schemas.TopicERPQueries && topic.Name != schemas.TopicERPAnswers
	})}
	cl, err := cfg.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if _, err := kafka.Migrate(t.Context(), cfg, cl); err != nil {
		t.Fatal(err)
	}
	topology, err := kafka.Load(t.Context(), cfg, cl)
	if err != nil {
		t.Fatal(err)
	}
	at, err := schemas.NewClient(servers.SchemaRegistry(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	codec, err := schemas.NewCodec(t.Context(), at, true)
	if err != nil {
		t.Fatal(err)
	}
	return &Hop{Kafka: cfg, Protocol: erpquery.Protocol{Codec: codec, Topology: topology, Keys: secret.GenerateKeys()}}
}

// Answer starts an answerer of `sink erp`, which runs until stop is called or the test ends.
func (h *Hop) Answer(t testing.TB, erps sink.ERPs) (stop func()) {
	t.Helper()
	metrics := h.Metrics
	if metrics == nil {
		metrics = prometheus.NewRegistry()
	}
	a, err := sink.NewAnswerer(sink.AnswererConfig{
		Kafka: h.Kafka, Protocol: h.Protocol, ERPs: erps, Client: erp.New(erp.Config{Loopback: true}), Log: servers.Logger(t), Metrics: metrics,
	})
	if err != nil {
		t.Fatal(err)
	}
	return run(t, a.Run)
}

// Ask starts a client that has the answerer ask. A patience of zero is that of production.
func (h *Hop) Ask(t testing.TB, patience time.Duration) *erpquery.Client {
	t.Helper()
	c, err := erpquery.New(t.Context(), erpquery.Config{
		Kafka: h.Kafka, Protocol: h.Protocol, Patience: patience, Log: servers.Logger(t), Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	run(t, c.Run)
	return c
}

// Client is Ask with the patience of production, for an answerer that has started: it waits until its questions are answered.
func (h *Hop) Client(t testing.TB) *erpquery.Client {
	t.Helper()
	c := h.Ask(t, 0)
	Ready(t, func() bool {
		_, _, r := c.Dues(t.Context(), registry.ERPSettings{AgencyID: "nobody"}, "x") // no ERP is called
		return r.Fault == call.FaultUnusable
	})
	return c
}

// run runs a part until stop is called or the test ends.
func run(t testing.TB, part func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- part(ctx); close(done) }()
	stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// Ready waits until the hop carries questions, which takes a second after the start of the first answerer: its members
// join the group. ok asks one.
func Ready(t testing.TB, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); {
		if time.Now().After(end) {
			t.Fatal("no answerer answers")
		}
	}
}
