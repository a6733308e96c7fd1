package watch

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"quittance/internal/network"
)

// Streams were counted by the /64 alone: eight subscribers of 1000 networks each, or one with a
// /48, took all streams of an instance.
func TestStreamsOfNetworks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		client func(n int) string
		most   int
		other  string
	}{
		"address":  {func(int) string { return "198.51.100.7" }, DefaultClientStreams, "198.51.100.8"},
		"site":     {func(n int) string { return fmt.Sprintf("2001:db8:1:%x::/64", n) }, maxStreams / siteShare, "2001:db8:2::/64"},
		"provider": {func(n int) string { return fmt.Sprintf("2001:db8:%x::/64", n) }, maxStreams / providerShare, "2001:db9::/64"},
	} {
		w := New(Config{Metrics: prometheus.NewRegistry()})
		var open []Viewer
		enter := func(n int, client string) limit {
			v, reached := w.enter(Viewer{w: w, id: fmt.Sprint("chs_", n), streams: true, networks: network.Of(client)})
			if reached == "" {
				open = append(open, v)
			}
			return reached
		}
		for n := range 2 * c.most {
			enter(n, c.client(n))
		}
		if len(open) != c.most {
			t.Errorf("%s: %d streams are open, want %d", name, len(open), c.most)
		}
		if reached := enter(2*c.most, c.other); reached != "" {
			t.Errorf("%s: a stream of another network is refused: %s", name, reached)
		}
		for _, v := range open {
			v.Leave()
		}
		for width, networks := range w.networks {
			if len(networks) != 0 {
				t.Errorf("%s: %d networks of width %d are kept", name, len(networks), width)
			}
		}
	}
}
