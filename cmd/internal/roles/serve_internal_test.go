package roles

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"quittance/test/servers"
)

// serveTest serves h on a free port and returns its address.
func serveTest(t *testing.T, h http.HandlerFunc, limits Limits) (*Base, string) {
	t.Helper()
	addr := freeAddress(t)
	ctx, cancel := context.WithCancel(context.Background())
	b := newBase(ctx, Settings{}, servers.Logger(t))
	t.Cleanup(func() {
		cancel()
		if err := b.Wait(); err != nil {
			t.Error(err)
		}
	})
	if err := b.Serve("test", addr, h, limits); err != nil {
		t.Fatal(err)
	}
	return b, addr
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: test\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	return c
}

func gauge(t *testing.T, g prometheus.Gauge) float64 {
	t.Helper()
	var out dto.Metric
	if err := g.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.GetGauge().GetValue()
}

// A caller that does not read its answer held its connection for ever.
func TestSlowReadersAreCutOff(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	_, addr := serveTest(t, func(w http.ResponseWriter, _ *http.Request) {
		part := strings.Repeat("x", 1<<20)
		for range 100 {
			if _, err := io.WriteString(w, part); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}, Limits{Connections: 2, Write: 300 * time.Millisecond})
	dial(t, addr)
	select {
	case err := <-ended:
		if err == nil {
			t.Error("100 MiB were written to a caller that reads nothing")
		}
	case <-time.After(15 * time.Second):
		t.Error("the connection is still open")
	}
}

func TestConnectionsAreLimited(t *testing.T) {
	t.Parallel()
	b, addr := serveTest(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }, Limits{Connections: 2})
	answered := func(c net.Conn, patience time.Duration) bool {
		_ = c.SetReadDeadline(time.Now().Add(patience))
		n, _ := c.Read(make([]byte, 1024))
		return n > 0
	}
	first, second, third := dial(t, addr), dial(t, addr), dial(t, addr)
	if !answered(first, 10*time.Second) || !answered(second, 10*time.Second) {
		t.Fatal("a connection within the limit is not answered")
	}
	if answered(third, 200*time.Millisecond) {
		t.Error("a connection beyond the limit is answered")
	}
	open, limit := gauge(t, b.served.open.WithLabelValues("test")), gauge(t, b.served.limit.WithLabelValues("test"))
	if open != 2 || limit != 2 {
		t.Errorf("the metrics say %v of %v", open, limit)
	}
	_ = first.Close()
	if !answered(third, 10*time.Second) {
		t.Error("a waiting connection is not answered after another was closed")
	}
	if err := b.Serve("none", addr, nil, Limits{}); err == nil || !strings.Contains(err.Error(), "0 open connections") {
		t.Errorf("no limit: %v", err)
	}
}
