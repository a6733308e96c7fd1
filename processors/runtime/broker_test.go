package runtime

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/dev/stack"
	"quittance/test/servers"
)

// The broker is killed during the work and restarts. The processor continues without a
// restart.
func TestBrokerRestart(t *testing.T) {
	if testing.Short() {
		t.Skip("starts its own broker twice")
	}
	t.Parallel()
	ports, err := stack.FreePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	cfg := stack.KafkaConfig{Dir: servers.Dir(t), Port: ports[0], ControllerPort: ports[1], Log: servers.Logger(t)}
	k, err := stack.StartKafka(context.WithoutCancel(t.Context()), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	w := newWorldAt(t, k.Addr(), 2)
	i := w.start("a", withStore(t.TempDir())).ready()

	stop := make(chan struct{})
	var wg sync.WaitGroup
	sent := map[string]int{}
	wg.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
			cmd := fmt.Sprintf("c%d", n)
			// The client retries without limit; it is idempotent.
			if err := w.cl.ProduceSync(w.ctx, &kgo.Record{Topic: w.input, Partition: int32(n % 2), Key: []byte("k"), Value: []byte(cmd)}).FirstErr(); err != nil {
				t.Errorf("sending: %v", err)
				return
			}
			sent[cmd] = 1
		}
	})
	time.Sleep(500 * time.Millisecond)
	if err := k.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := k.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond)
	close(stop)
	wg.Wait()
	w.sent = sent
	w.sound()
	select {
	case <-i.done:
		t.Fatalf("Run returned %v", i.err)
	default:
	}
}
