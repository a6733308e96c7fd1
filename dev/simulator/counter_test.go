package simulator_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"quittance/dev/simulator"
)

// The simulated counter refuses faulty requests before it calls the service. Tests of the
// whole program cover the service's answers.
func TestCounterRefuses(t *testing.T) {
	t.Parallel()
	const ref = "/control/counter/1234567890123456"
	for name, row := range map[string]struct {
		path, body string
		clerks     [][]string
		status     int
		says       []string
	}{
		"reference":  {path: "/control/counter/123", status: 422, says: []string{"payment_ref", "16 digits"}},
		"number":     {path: ref, body: `{"number": "14"}`, status: 422, says: []string{"number", "14", "01"}},
		"member":     {path: ref, body: `{"numero": "01"}`, status: 422, says: []string{"numero", "number, key"}},
		"no clerk":   {path: ref, clerks: [][]string{{}}, status: 422, says: []string{"key", "ck_test_"}},
		"no service": {path: ref, body: `{"key": "ck_test_1"}`, status: 502, says: []string{"service does not answer"}},
		"no cash":    {path: ref + "/reverse", status: 404, says: []string{"payment_ref", `{\"number\": \"01\"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(c *simulator.Config) {
				c.Counter, c.Clerks = "http://127.0.0.1:1", [][]string{nil, {"ck_test_1", "ck_test_2"}}
				if row.clerks != nil {
					c.Clerks = row.clerks
				}
			})
			a := w.call(http.MethodPost, row.path, row.body, nil)
			if a.status != row.status {
				t.Errorf("%d, want %d: %s", a.status, row.status, a.body)
			}
			for _, says := range row.says {
				if !strings.Contains(a.body, says) {
					t.Errorf("%s lacks %q", a.body, says)
				}
			}
			if strings.Contains(a.body, "ck_test_1") || strings.Contains(a.body, "ck_test_2") {
				t.Errorf("%s contains a key", a.body)
			}
		})
	}
	w := newWorld(t, nil)
	if a := w.call(http.MethodPost, ref, "", nil); a.status != http.StatusNotImplemented || !strings.Contains(a.body, "quittance-dev up") {
		t.Errorf("without a service: %d %s", a.status, a.body)
	}
	if _, err := simulator.New(simulator.Config{Now: w.clock.Now, Log: slog.New(slog.DiscardHandler), Counter: "counter"}); err == nil || !strings.Contains(err.Error(), "Counter") {
		t.Errorf("an address without a host: %v", err)
	}
}
