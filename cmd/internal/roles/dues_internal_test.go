package roles

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quittance/internal/erp"
	"quittance/test/registries"
)

// All roles of a process read dues through one reader, so that the ERP gets one call at a time
// for a subject.
func TestRolesShareTheReaderOfDues(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/erp/impots/dues" || r.Header.Get("Authorization") != "Bearer erp-token-very-private" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		_, _ = w.Write([]byte(`{"items": [{"erp_due_ref": "P1", "label": "Patente", "amount_minor": 500, "outstanding_minor": 500, "original_minor": 500, "currency": "XAF", "allow_partial": false, "revenue_line_code": "4711"}]}`))
	}))
	t.Cleanup(server.Close)
	h := registries.SetUp(t)
	h.Seed(t, strings.Replace(registries.Full, "http://127.0.0.1:8081/erp/impots", server.URL+"/erp/impots", 1))
	now := func() time.Time { return registries.Epoch }
	b := &Base{Settings: Settings{Options: Options{Loopback: true}}, Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(), Registry: h.Open(t).Registry, Now: now}
	dues, err := b.Dues()
	if err != nil {
		t.Fatal(err)
	}
	answer, err := dues.Fresh(t.Context(), registries.AgencyA, false, "TP-1")
	if due, ok := answer.Find("P1"); err != nil || answer.Status != erp.SourceOK || !answer.AsOf.Equal(now()) || !ok || due.Service.Code != "patente" {
		t.Errorf("%+v, %v", answer, err)
	}
	if again, err := b.Dues(); again != dues || err != nil {
		t.Errorf("another reader: %v", err)
	}
}
