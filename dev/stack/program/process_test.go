package program_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"quittance/dev/stack/program"
)

// The benchmark of creations showed no records per transaction, since it looked for
// metrics without labels only.
func TestMetricSumsOverLabels(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, "# TYPE records summary\nrecords_sum{processor=\"checkout\"} 5\nrecords_sum{processor=\"abacus\"} 2\nrecords_count 3\nother_records_sum 90\n")
	}))
	defer srv.Close()
	p := program.New("", t.TempDir()).Process("processor", strings.TrimPrefix(srv.URL, "http://"))
	for name, want := range map[string]float64{"records_sum": 7, "records_count": 3, "absent": 0} {
		if got, err := p.Metric(t.Context(), name); err != nil || got != want {
			t.Errorf("%s is %v (%v), want %v", name, got, err, want)
		}
	}
	if _, err := p.Get(t.Context(), "/readyz"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("an answer of 404 is no error: %v", err)
	}
}
