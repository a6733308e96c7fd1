package registry_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"quittance/internal/registry"
	"quittance/internal/secret"
)

func (h house) directory(t *testing.T, now time.Time) registry.Directory {
	t.Helper()
	d, err := registry.ReadDirectory(t.Context(), h.pool, "http://127.0.0.1:9001", now)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDirectory(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	if d := h.directory(t, epoch); len(d.Endpoints)+len(d.ERPs)+len(d.Agencies) != 0 {
		t.Errorf("of nothing: %+v", d)
	}
	h.seed(t, full)
	d := h.directory(t, epoch)
	if len(d.Endpoints) != 2 || d.Endpoints[0].Owner() != "platform" || d.Endpoints[1].Owner() != "Guichet fiscal (impots)" {
		t.Fatalf("endpoints: %+v", d.Endpoints)
	}
	e, ok := d.Endpoint(strings.ToUpper(d.Endpoints[1].ID))
	if !ok || e.URL != "http://127.0.0.1:9001/inbox/guichet" || !e.Test || e.Live || e.MaxInFlight != 3 || e.MaxPerSecond != 50 || e.Signing != 1 || !e.OldEndsAt.IsZero() || e.Inactive {
		t.Errorf("%+v, %v", e, ok)
	}
	for _, name := range []string{"impots/test", agencyA + "/test"} {
		if erp, ok := d.ERP(name); !ok || erp.Name() != "impots/test" || erp.AgencyID != agencyA || erp.BaseURL != "http://127.0.0.1:9001/erp/impots" || !erp.Auth.Secret.Empty() {
			t.Errorf("%s: %+v, %v", name, erp, ok)
		}
	}
	for _, name := range []string{"", "impots", "impots/", "/test", "impots/prod", "douanes/test"} {
		if _, ok := d.ERP(name); ok {
			t.Errorf("%q is an ERP", name)
		}
		if _, ok := d.Endpoint(name); ok {
			t.Errorf("%q is an endpoint", name)
		}
	}
}

func TestRotateSecret(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	h.seed(t, full)
	w := &watch{}
	r, err := registry.Open(t.Context(), w.config(t, h))
	if err != nil {
		t.Fatal(err)
	}
	run(t, r)
	id := h.directory(t, epoch).Endpoints[1].ID
	rotate := func(overlap time.Duration) (registry.RotatedSecret, error) {
		return registry.RotateSecret(t.Context(), h.pool, h.keys, id, overlap, w.now())
	}
	signs := func(want ...string) func() bool {
		return func() bool {
			e, _ := r.Endpoint(id)
			if len(e.Secrets) != len(want) {
				return false
			}
			for i, s := range e.Secrets {
				if s.Reveal() != want[i] {
					return false
				}
			}
			return true
		}
	}
	refusedFor := func(err error, field string, words ...string) {
		t.Helper()
		var fault *registry.EndpointError
		if !errors.As(err, &fault) || fault.Field != field {
			t.Errorf("error = %v, want one of %s", err, field)
			return
		}
		for _, word := range words {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%q does not say %q", err, word)
			}
		}
	}

	w.set(time.Minute)
	second, err := rotate(24 * time.Hour)
	if err != nil || second.Endpoint.Signing != 2 || !second.Endpoint.OldEndsAt.Equal(epoch.Add(24*time.Hour+time.Minute)) || len(secret.WebhookKey(second.Secret)) != 32 {
		t.Fatalf("%+v, %v", second, err)
	}
	within(t, time.Second, "both sign, the new one first", signs(second.Secret.Reveal(), whsec))
	_, err = rotate(time.Hour)
	refusedFor(err, "overlap", "2026-03-02T12:01:00Z", "--overlap 0")
	_, err = rotate(-time.Second)
	refusedFor(err, "overlap")
	_, err = registry.RotateSecret(t.Context(), h.pool, h.keys, appA, 0, epoch)
	refusedFor(err, "id", "quittance endpoints list")
	if !signs(second.Secret.Reveal(), whsec)() {
		t.Error("a refusal changed something")
	}
	w.set(2 * time.Minute)
	// The old one has leaked during the overlap.
	third, err := rotate(0)
	if err != nil || third.Endpoint.Signing != 1 {
		t.Fatalf("%+v, %v", third, err)
	}
	within(t, time.Second, "the third signs alone", signs(third.Secret.Reveal()))

	w.set(time.Hour)
	fourth, err := rotate(time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	within(t, time.Second, "two sign", signs(fourth.Secret.Reveal(), third.Secret.Reveal()))
	w.set(2 * time.Hour)
	if !signs(fourth.Secret.Reveal())() {
		t.Error("the old one signs after the overlap")
	}
	if report := h.seed(t, full); report.Changed || len(report.Notes) != 1 {
		t.Errorf("the file with the first secret: %+v", report)
	}
	var stored string
	if err := h.pool.QueryRow(t.Context(), `SELECT string_agg(x::text || encode(x.sealed, 'escape'), ' ') FROM webhook_secrets x`).Scan(&stored); err != nil {
		t.Fatal(err)
	}
	for _, s := range []registry.RotatedSecret{second, third, fourth} {
		if strings.Contains(stored, s.Secret.Reveal()) {
			t.Error("a secret is stored in plain text")
		}
	}
}
