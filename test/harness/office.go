package harness

import (
	"context"
	"log/slog"
	"testing"

	"quittance/dev/payday"
	"quittance/internal/kafka"
	"quittance/schemas"
)

// Office returns the people of a stack who pay batches, until the test ends, and its first agencies, at most a number.
func Office(t *testing.T, s *Stack, codec *schemas.Codec, most int) (*payday.Payday, []*payday.Agency) {
	t.Helper()
	ctx := t.Context()
	cfg := kafka.Config{Brokers: []string{s.Kafka.Addr()}, Prefix: Prefix}
	cl, err := cfg.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	topology, err := kafka.Load(ctx, cfg, cl)
	if err != nil {
		t.Fatal(err)
	}
	office, err := payday.New(ctx, payday.Config{
		Kafka: cfg, Topology: topology, Codec: codec, Pool: s.Pool, Keys: s.Keys, Program: s.Program, Simulator: s.Simulator, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- office.Run(running) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	var agencies []*payday.Agency
	for _, app := range s.Apps {
		if n := len(agencies); n < most && (n == 0 || agencies[n-1].ID != app.Tenant) {
			agencies = append(agencies, &payday.Agency{ID: app.Tenant, Slug: app.Slug})
		}
	}
	return office, agencies
}
