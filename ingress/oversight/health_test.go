package oversight_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"quittance/ingress/oversight"
	"quittance/internal/identity"
	"quittance/test/backoffice"
	"quittance/test/registries"
)

// The page of health shows what is recorded, says what it does not know, and is the same bytes while nothing changes.
func TestHealth(t *testing.T) {
	t.Parallel()
	w := backoffice.New(t)
	w.Add(t, "", []identity.Role{identity.RoleOperator}, "Olive")
	b := w.Enter(t, "Olive")
	empty := b.Get("/ops/health")
	backoffice.Want(t, empty, http.StatusOK, "Aucun opérateur n’a encore été appelé", "pas encore acceptés\u00a0: 1", "Aucun message dans la dernière heure", "Aucun groupe n’est en retard", "Conforme à Postgres", "quittance doctor",
		"Enregistrements mis de côté", `href="/ops/cases?kind=poison&amp;lang=fr&amp;state=open"`, "À reprendre") // the world has a case of a poison record, and a delivery that needs a person
	backoffice.Lacks(t, empty, "Non connu", "chs_", backoffice.Contact)

	w.Exec(t, `INSERT INTO operator_answers (operator, live, answered_at, failing_since, failed_at, agencies) VALUES ('mtn', true, $1, NULL, NULL, '{}'), ('airtel', true, $1::timestamptz - interval '1 hour', $1::timestamptz - interval '50 minutes', $1::timestamptz - interval '1 minute', ARRAY[$2])`, w.Now(), registries.AgencyA)
	w.Exec(t, `INSERT INTO operator_answers (operator, live, payouts, answered_at, failing_since, failed_at, agencies) VALUES ('mtn', true, true, NULL, $1::timestamptz - interval '50 minutes', $1::timestamptz - interval '1 minute', ARRAY[$2])`, w.Now(), registries.AgencyA)
	w.Exec(t, `INSERT INTO delivery_destinations (kind, destination_id, refused_since) VALUES ('erp', $1, $2)`, registries.AgencyA+"/live", w.Now())
	w.Exec(t, `INSERT INTO message_reports (message_id, destination_id, provider, calls, sent_at, accepted_at) VALUES ('m-1', 'd', 'mtnsms', 1, $1, $1), ('m-2', 'd', 'mtnsms', 1, $1, NULL), ('m-3', 'd', 'smtp', 1, $1::timestamptz - interval '2 hours', $1)`, w.Now())
	w.Lag = func(context.Context) ([]oversight.Lag, error) {
		return []oversight.Lag{{Group: "sink-webhook", Topic: "webhooks", Records: 4711}}, nil
	}
	w.Models = []oversight.Model{{Name: "readmodel", Topic: "checkout.events", Position: 12840, PositionKnown: true}, {Name: "journal"}}
	full := b.Get("/ops/health?lang=en")
	backoffice.Want(t, full, http.StatusOK, "Away", `data-label="Calls">Collections</td><td role="cell" data-label="State">Answers`, `data-label="Calls">Payouts</td><td role="cell" data-label="State">Away`, "quittance doctor disburse", "Direction générale des impôts", "Refuses our credentials since", "Payments that an ERP has not accepted yet: 1", "mtnsms", ">2<", "4711", "sink-webhook", "12840", "not known", "Journal (ClickHouse)")
	backoffice.Lacks(t, full, "smtp", "Not known:")

	// Nothing changes: the script gets 304.
	b.Header.Set("If-None-Match", full.Header().Get("ETag"))
	b.Header.Set("Quittance-Asks", "1")
	if a := b.Get("/ops/health?lang=en"); a.Code != http.StatusNotModified {
		t.Errorf("the same values: %d, want 304", a.Code)
	}
	// Kafka is away: one part is not known, the others are.
	w.Lag = func(context.Context) ([]oversight.Lag, error) { return nil, errors.New("no broker answers") }
	away := b.Get("/ops/health?lang=en")
	backoffice.Want(t, away, http.StatusOK, "Not known: the source does not answer", "mtnsms")
	backoffice.Lacks(t, away, "no broker answers")
}
