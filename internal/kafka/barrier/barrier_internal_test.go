package barrier

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A read begins after a question was sent. The answer may be older than a change that was
// acknowledged just before the read. The read must not share the question.
func TestNoReadSharesAQuestionThatWasSent(t *testing.T) {
	t.Parallel()
	sent := make(chan struct{}, 100)
	client, err := kgo.NewClient(kgo.SeedBrokers("127.0.0.1:1"), kgo.Dialer(func(ctx context.Context, _, _ string) (net.Conn, error) {
		sent <- struct{}{} // sent and never answered
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	b := New(Config{Client: client, Topic: "topic", Partitions: 1, Timeout: 10 * time.Second, Metrics: prometheus.NewRegistry()})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := b.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	defer func() { cancel(); wg.Wait() }()

	first := b.join()
	<-sent
	second := b.join()
	if second == first {
		t.Error("a read joined a question that was under way")
	}
	if third := b.join(); third != second {
		t.Error("two reads before a question is sent do not share it")
	}
}
