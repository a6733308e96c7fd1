package roles

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"quittance/internal/erp"
	"quittance/internal/erpquery"
	"quittance/internal/secret"
	"quittance/test/erps"
	"quittance/test/registries"
)

// All roles of a process read dues through one reader, so that the ERP gets one call at a time
// for a subject. A role whose keys do not open the ERPs' credentials reads them all the same, as
// `sink erp` makes the calls, and its log has no complaint of the secrets that it need not open.
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
	h, hop := registries.SetUp(t), erps.NewHop(t)
	h.Seed(t, strings.Replace(registries.Full, "http://127.0.0.1:8081/erp/impots", server.URL+"/erp/impots", 1))
	now := func() time.Time { return registries.Epoch }
	var log bytes.Buffer
	role := func(keys *secret.Keys) *Base {
		ctx, stop := context.WithCancel(t.Context())
		settings := Settings{Options: Options{Loopback: true}, Kafka: hop.Kafka.Brokers[0], TopicPrefix: hop.Kafka.Prefix}
		b := newBase(ctx, settings, slog.New(slog.DiscardHandler))
		b.Topology, b.Codec, b.Keys, b.Now = hop.Protocol.Topology, hop.Protocol.Codec, keys, now
		b.Registry = h.Open(t, func(cfg *registries.Config) {
			cfg.Keys, cfg.Log = keys, slog.New(slog.NewTextHandler(&log, nil))
		}).Registry
		t.Cleanup(func() {
			stop()
			if err := b.Wait(); err != nil {
				t.Error(err)
			}
		})
		return b
	}
	sink, edge := role(h.Keys), role(h.Keys.Subset("ingress", []secret.Use{
		{Purpose: secret.PurposeSeal, Label: erpquery.Label}, {Purpose: secret.PurposeVerify, Label: secret.LabelRegistryRows}, {Purpose: secret.PurposeVerify, Label: secret.LabelStaffRows}, {Purpose: secret.PurposeVerify, Label: secret.LabelPeopleRows},
	}))
	if s, ok := edge.Registry.ERP(registries.AgencyA, false); !ok || !s.Locked || s.Auth.Secret.Reveal() != "" || log.Len() > 0 {
		t.Fatalf("the edge's ERP: %v, locked %v; log: %s", ok, s.Locked, &log)
	}
	if err := sink.answerForERPs(sink.ERPs()); err != nil {
		t.Fatal(err)
	}
	dues, err := edge.Dues()
	if err != nil {
		t.Fatal(err)
	}
	var answer erp.Answer
	erps.Ready(t, func() bool {
		answer, err = dues.Fresh(t.Context(), registries.AgencyA, false, "TP-1")
		return answer.Reason != erp.FaultUnanswered
	})
	if due, ok := answer.Find("P1"); err != nil || answer.Status != erp.SourceOK || !answer.AsOf.Equal(now()) || !ok || due.Service.Code != "patente" {
		t.Errorf("%+v, %v", answer, err)
	}
	if again, err := edge.Dues(); again != dues || err != nil {
		t.Errorf("another reader: %v", err)
	}
}
