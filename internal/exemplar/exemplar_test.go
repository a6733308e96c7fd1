package exemplar_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"quittance/internal/exemplar"
)

// A value has its example where OpenMetrics is asked for, and counts without one. An id that
// is too long would end the process.
func TestObserve(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "seconds", Help: "h", Buckets: []float64{1, 10}})
	reg.MustRegister(h)
	exemplar.Observe(h, 0.5, exemplar.RequestID, "r-1")
	exemplar.Observe(h, 5, exemplar.DeliveryID, "")
	exemplar.Observe(h, 5, exemplar.DeliveryID, strings.Repeat("x", 2000))
	exemplar.Observe(h, 5, exemplar.CollectionID, "\xff")
	exemplar.Observe(prometheus.NewSummary(prometheus.SummaryOpts{Name: "s"}), 5, exemplar.RequestID, "r-1")
	text := func(accept string) string {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		promhttp.HandlerFor(reg, promhttp.HandlerOpts{EnableOpenMetrics: true}).ServeHTTP(w, r)
		return w.Body.String()
	}
	open := text("application/openmetrics-text; version=1.0.0")
	if !strings.Contains(open, `seconds_bucket{le="1.0"} 1 # {request_id="r-1"} 0.5`) || !strings.Contains(open, `seconds_count 4`) || strings.Contains(open, "xxx") {
		t.Errorf("OpenMetrics:\n%s", open)
	}
	if plain := text("text/plain"); strings.Contains(plain, "r-1") || !strings.Contains(plain, "seconds_count 4") {
		t.Errorf("plain text:\n%s", plain)
	}
}
