package erp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quittance/checkout"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/internal/sessions"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/sinks/erp"
	deliverytest "quittance/test/deliveries"
	"quittance/test/servers"
)

// agencies adds a list of agencies to the ERPs.
type agencies struct{ *erps }

func (a agencies) Agencies() []registry.Agency {
	return []registry.Agency{{ID: "1", Slug: "impots"}, {ID: "2", Slug: "douanes"}, {ID: "3", Slug: "port"}}
}

// An ERP is up when it answers the authenticated question for its health with a 2xx, from
// an allowed network. An agency without an ERP has no gauge.
func TestHealth(t *testing.T) {
	t.Parallel()
	well := deliverytest.NewReceiver(t, "Idempotency-Key")
	well.Answer(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/erp/health" || r.Header.Get("X-Api-Key") != "s3cret" || r.ContentLength > 0 {
			w.WriteHeader(http.StatusTeapot)
		}
	})
	ill := deliverytest.NewReceiver(t, "Idempotency-Key")
	ill.Status(http.StatusServiceUnavailable)
	auth := registry.ERPAuth{Type: registry.AuthAPIKey, Name: "X-API-Key", Secret: secret.NewText("s3cret")}
	house := agencies{&erps{by: map[string]registry.ERPSettings{
		"1/test": {BaseURL: well.URL + "/erp", Auth: auth, Networks: loopback},
		"1/live": {BaseURL: ill.URL, Auth: auth, Networks: loopback},
		"2/test": {BaseURL: "https://10.1.2.3/erp", Auth: auth, Networks: loopback},
	}}}
	metrics := prometheus.NewRegistry()
	prober, err := erp.NewProber(erp.ProberConfig{Agencies: house, Client: caller(), Log: servers.Logger(t), Metrics: metrics})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range caller().Probe(t.Context(), house) {
		got = append(got, h.Name()+" "+h.Result.Reason())
	}
	sort.Strings(got)
	if said := strings.Join(got, "; "); said != "douanes/test address_refused:outside_networks; impots/live http_503; impots/test " {
		t.Errorf("%s", said)
	}
	deliverytest.Start(t, prober)
	deliverytest.Eventually(t, "gauges", func() bool {
		families, err := metrics.Gather()
		if err != nil {
			t.Fatal(err)
		}
		up := map[string]float64{}
		for _, f := range families {
			if f.GetName() == "quittance_erp_up" {
				for _, m := range f.GetMetric() {
					up[m.GetLabel()[0].GetValue()+"/"+m.GetLabel()[1].GetValue()] = m.GetGauge().GetValue()
				}
			}
		}
		is, _ := json.Marshal(up)
		return string(is) == `{"douanes/test":0,"impots/live":0,"impots/test":1}`
	})
}

// OutstandingConfirmations returns exactly the completed payments whose ERP has not
// accepted the confirmation, with their deliveries. The order in which completion and
// acceptance are stored does not matter.
func TestOwedConfirmations(t *testing.T) {
	t.Parallel()
	b := bench(t)
	r := deliverytest.NewReceiver(t, "Idempotency-Key")
	r.Answer(func(w http.ResponseWriter, req *http.Request) {
		if id := req.Header.Get("Idempotency-Key"); id == "tx-refused" || id == "tx-returned-late" {
			w.WriteHeader(http.StatusUnprocessableEntity)
		}
	})
	const agency = "018f0000-0000-7000-8000-000000000001"
	for _, statement := range []string{
		`INSERT INTO agencies (id, slug, name, created_at) VALUES ('` + agency + `', 'impots', 'Impôts', now())`,
		`INSERT INTO erp_settings (agency_id, live, base_url, auth_type, auth_sealed, conflict_is_done, networks) VALUES ('` + agency + `', false, 'x', 'bearer', '', true, '{}')`,
	} {
		if _, err := b.Pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	completed := time.Now().UTC().Truncate(time.Millisecond)
	session := func(id string, change func(*checkout.Session)) checkout.Session {
		s := checkout.Session{
			ID: "chs_" + id, TransactionID: "tx-" + id, ApplicationID: "app", TenantID: agency, Status: checkout.StatusCompleted, Sequence: 3,
			Amount: 5000, Currency: "XAF", Metadata: map[string]string{checkout.MetadataERPDueRef: "D-1"}, CreatedAt: completed, ExpiresAt: completed, EndedAt: completed,
		}
		if change != nil {
			change(&s)
		}
		return s
	}
	store := sessions.NewStore(b.Pool)
	note := func(noted ...checkout.Session) {
		t.Helper()
		var snapshots []sessions.Snapshot
		for _, s := range noted {
			snapshots = append(snapshots, sessions.Snapshot{Session: s, Value: []byte{}})
		}
		if err := store.Apply(t.Context(), snapshots, nil); err != nil {
			t.Fatal(err)
		}
	}
	owed := func() string {
		t.Helper()
		list, err := b.Store.OutstandingConfirmations(t.Context(), b.Now().Add(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, o := range list {
			if !o.CompletedAt.Equal(completed) || o.Agency != "impots" || o.Live || o.SessionID != "chs_"+strings.TrimPrefix(o.TransactionID, "tx-") {
				t.Errorf("%+v", o)
			}
			said = append(said, strings.TrimSpace(o.TransactionID+" "+o.State+" "+o.Reason))
		}
		sort.Strings(said)
		return strings.Join(said, "; ")
	}
	note(
		session("paid", nil), session("paid", nil), session("refused", nil),
		session("open", func(s *checkout.Session) { s.Status = checkout.StatusOpen }),
		session("no-due", func(s *checkout.Session) { s.Metadata = nil }),
		session("live", func(s *checkout.Session) { s.Live = true }), // the agency has no live ERP
	)
	if got := owed(); got != "tx-paid; tx-refused" {
		t.Fatalf("before any attempt: %s", got)
	}
	// A payment that was completed and given back before the agency had an ERP stayed in the
	// list for ever: no replay confirms it.
	note(session("returned", nil), session("returned-late", nil))
	for _, id := range []string{"returned", "returned-late"} {
		if _, err := b.Pool.Exec(t.Context(), `INSERT INTO cases (id, kind, in_session, sequence, session_id, opened_at) VALUES ($1, 'reversal', true, 5, $1, now())`, "chs_"+id); err != nil {
			t.Fatal(err)
		}
	}
	if got := owed(); got != "tx-paid; tx-refused" {
		t.Fatalf("with payments that were given back: %s", got)
	}
	// One that the state knows to be accepted is not, whatever the deliveries say.
	note(session("settled", func(s *checkout.Session) {
		s.Confirmation = checkout.Confirmation{Status: checkout.ConfirmationAccepted, SettledAt: completed}
	}))

	auth := registry.ERPAuth{Type: registry.AuthBearer, Secret: secret.NewText("t")}
	cfg := sender(b, &erps{by: map[string]registry.ERPSettings{agency + "/test": {BaseURL: r.URL, Auth: auth, Networks: loopback}}})
	deliverytest.Start(t, deliverytest.Planner(t, cfg), deliverytest.Worker(t, cfg), b.Schedule(t))
	var notifications []*record.Notification
	for _, id := range []string{"tx-paid", "tx-refused", "tx-early", "tx-returned-late"} {
		n := b.Notification(id, "app")
		n.TenantID = agency
		notifications = append(notifications, n)
	}
	b.Notify(t, schemas.TopicConfirmations, true, notifications...)
	deliverytest.Eventually(t, "one accepted, two parked", func() bool {
		return owed() == "tx-refused needs_operator http_422; tx-returned-late needs_operator http_422"
	})
	var early int
	deliverytest.Eventually(t, "one accepted before its completion is seen", func() bool {
		err := b.Pool.QueryRow(context.WithoutCancel(t.Context()), `SELECT count(*) FROM erp_confirmations WHERE transaction_id = 'tx-early' AND accepted_at IS NOT NULL`).Scan(&early)
		return err == nil && early == 1
	})
	note(session("early", nil))
	if got := owed(); got != "tx-refused needs_operator http_422; tx-returned-late needs_operator http_422" {
		t.Errorf("after all: %s", got)
	}
}
