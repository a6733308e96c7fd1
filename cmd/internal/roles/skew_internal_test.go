package roles

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quittance/test/servers"
)

// A machine without NTP dated payments eight seconds ahead, and nobody noticed: an ingress stamps the
// time of commands.
func TestClockOffset(t *testing.T) {
	t.Parallel()
	_, pool := servers.Database(t)
	for offset, far := range map[time.Duration]bool{0: false, time.Second: false, 8 * time.Second: true, -8 * time.Second: true} {
		s := newSkew(prometheus.NewRegistry(), func() time.Time { return time.Now().Add(offset) })
		if err := s.tooFar(); err != nil {
			t.Errorf("before it is measured: %v", err)
		}
		if err := s.measure(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
		if got := gauge(t, s.gauge) - offset.Seconds(); got < -0.9 || got > 0.9 {
			t.Errorf("an offset of %v is measured with an error of %.3f s", offset, got)
		}
		if err := s.tooFar(); (err != nil) != far {
			t.Errorf("%v: %v", offset, err)
		}
	}
}
