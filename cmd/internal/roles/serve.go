package roles

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"golang.org/x/net/netutil"
)

const (
	// writeTimeout bounds an answer, from the end of the request's headers. A slow reader
	// cannot hold a connection for longer. Live status extends it with each write.
	writeTimeout = time.Minute
	// healthConnections is the most open connections of the health address.
	healthConnections = 256
)

// Limits protect a server from slow and from many callers.
type Limits struct {
	// Connections is the most open connections. Further ones wait until one is closed.
	Connections int
	// Write bounds an answer; zero: no bound.
	Write time.Duration
}

// servedMetrics are the metrics of all servers of a process.
type servedMetrics struct{ open, limit *prometheus.GaugeVec }

func newServedMetrics(reg prometheus.Registerer) servedMetrics {
	with := promauto.With(reg)
	return servedMetrics{
		open: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "quittance_http_connections", Help: "Open connections of callers, by server: ingress, office, health.",
		}, []string{"server"}),
		limit: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "quittance_http_connections_limit", Help: "The most open connections of a server. Further ones wait until one is closed.",
		}, []string{"server"}),
	}
}

// Serve answers callers on addr until the roles end, as Base.drain describes.
func (b *Base) Serve(name, addr string, h http.Handler, limits Limits) error {
	server, err := b.listen(name, addr, b.leaving(h), limits)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.servers = append(b.servers, server)
	return nil
}

// listen answers HTTP on addr until the parts of the roles end. It finishes requests that have begun
// then, for at most five seconds.
func (b *Base) listen(name, addr string, h http.Handler, limits Limits) (*http.Server, error) {
	if limits.Connections < 1 {
		return nil, fmt.Errorf("%s: %d open connections are no limit; want 1 or more", name, limits.Connections)
	}
	l, err := (&net.ListenConfig{}).Listen(b.ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%s cannot listen on %s (is another instance running?): %w", name, addr, err)
	}
	l = netutil.LimitListener(l, limits.Connections)
	b.served.limit.WithLabelValues(name).Set(float64(limits.Connections))
	open := b.served.open.WithLabelValues(name)
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: limits.Write, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(b.Log.Handler(), slog.LevelDebug),
		ConnState: func(_ net.Conn, to http.ConnState) {
			switch to {
			case http.StateNew:
				open.Inc()
			case http.StateClosed, http.StateHijacked:
				open.Dec()
			case http.StateActive, http.StateIdle:
			}
		},
	}
	b.group.Go(func() error {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
	b.group.Go(func() error {
		<-b.ctx.Done()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(b.ctx), 5*time.Second)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
		return nil
	})
	return server, nil
}

// trustedProxies returns the networks of --trusted-proxies.
func (s *Settings) trustedProxies() ([]netip.Prefix, error) {
	out := make([]netip.Prefix, len(s.TrustedProxies))
	for i, n := range s.TrustedProxies {
		var err error
		if out[i], err = netip.ParsePrefix(n.String()); err != nil {
			return nil, fmt.Errorf("--trusted-proxies: %s is not a network, such as 10.0.0.0/8: %w", n.String(), err)
		}
	}
	return out, nil
}
