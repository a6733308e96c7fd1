package registry_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"quittance/internal/deliveries"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/sinks/erp"
	"quittance/sinks/webhook"
	"quittance/test/registries"
)

func directory(t *testing.T, h registries.House, now time.Time) registry.Directory {
	t.Helper()
	d, err := registry.ReadDirectory(t.Context(), h.Pool, "http://127.0.0.1:9001", now)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDirectory(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	if d := directory(t, h, registries.Epoch); len(d.Endpoints)+len(d.ERPs)+len(d.Agencies) != 0 {
		t.Errorf("of nothing: %+v", d)
	}
	h.Seed(t, registries.Full)
	d := directory(t, h, registries.Epoch)
	if len(d.Endpoints) != 3 || d.Endpoints[0].Owner() != "platform" || d.Endpoints[1].Owner() != "Guichet fiscal (impots)" {
		t.Fatalf("endpoints: %+v", d.Endpoints)
	}
	e, ok := d.Endpoint(strings.ToUpper(d.Endpoints[1].ID))
	if !ok || e.URL != "http://127.0.0.1:9001/inbox/guichet" || !e.Test || e.Live || e.MaxInFlight != 3 || e.MaxPerSecond != 50 || e.Signing != 1 || !e.OldEndsAt.IsZero() || e.Inactive {
		t.Errorf("%+v, %v", e, ok)
	}
	kinds := deliveries.Kinds{webhook.Registration(nil), erp.Registration(nil)}
	for _, name := range []string{"impots/test", registries.AgencyA + "/test", strings.ToUpper(registries.AgencyA) + "/test"} {
		if e, ok := kinds.Entry(d, name); !ok || e.Name != "impots/test" || e.ID != registries.AgencyA+"/test" || e.URL != "http://127.0.0.1:9001/erp/impots" {
			t.Errorf("%s: %+v, %v", name, e, ok)
		}
	}
	if e, ok := kinds.Entry(d, strings.ToUpper(d.Endpoints[1].ID)); !ok || e.ID != d.Endpoints[1].ID {
		t.Errorf("%+v, %v", e, ok)
	}
	for _, e := range d.ERPs {
		if !e.Auth.Secret.Empty() {
			t.Errorf("%s: the directory has its secret", e.Name())
		}
	}
	for _, name := range []string{"", "impots", "impots/", "/test", "impots/prod", "douanes/test"} {
		if e, ok := kinds.Entry(d, name); ok {
			t.Errorf("%q is %+v", name, e)
		}
		if _, ok := d.Endpoint(name); ok {
			t.Errorf("%q is an endpoint", name)
		}
	}
}

func TestRotateSecret(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	w := &registries.Watch{}
	r := h.Open(t, w.Wear)
	registries.Run(t, r)
	id := directory(t, h, registries.Epoch).Endpoints[1].ID
	rotate := func(overlap time.Duration) (registry.RotatedSecret, error) {
		return registry.RotateSecret(t.Context(), h.Pool, h.Keys, registries.Actor, id, overlap, w.Now())
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
	refusedFor := func(err error, code, field string, values ...string) {
		t.Helper()
		var refused *operation.Error
		if !errors.As(err, &refused) || refused.Code != code || refused.Field != field {
			t.Errorf("error = %v, want %s of %s", err, code, field)
			return
		}
		for _, v := range values {
			if !strings.Contains(refused.Error(), v) {
				t.Errorf("%q does not hold %q", refused, v)
			}
		}
	}

	w.Set(time.Minute)
	second, err := rotate(24 * time.Hour)
	if err != nil || second.Endpoint.Signing != 2 || !second.Endpoint.OldEndsAt.Equal(registries.Epoch.Add(24*time.Hour+time.Minute)) || len(secret.WebhookKey(second.Secret)) != 32 {
		t.Fatalf("%+v, %v", second, err)
	}
	registries.Within(t, 5*time.Second, "both sign, the new one first", signs(second.Secret.Reveal(), registries.WebhookSecret))
	_, err = rotate(time.Hour)
	refusedFor(err, "endpoint.too_many_secrets", "overlap", "2026-03-02T12:01:00Z")
	_, err = rotate(-time.Second)
	refusedFor(err, "endpoint.overlap_negative", "overlap")
	_, err = registry.RotateSecret(t.Context(), h.Pool, h.Keys, registries.Actor, registries.AppA, 0, registries.Epoch)
	refusedFor(err, "endpoint.unknown", "id")
	if !signs(second.Secret.Reveal(), registries.WebhookSecret)() {
		t.Error("a refusal changed something")
	}
	w.Set(2 * time.Minute)
	// The old secret leaked during the overlap.
	third, err := rotate(0)
	if err != nil || third.Endpoint.Signing != 1 {
		t.Fatalf("%+v, %v", third, err)
	}
	registries.Within(t, 5*time.Second, "the third signs alone", signs(third.Secret.Reveal()))

	w.Set(time.Hour)
	fourth, err := rotate(time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	registries.Within(t, 5*time.Second, "two sign", signs(fourth.Secret.Reveal(), third.Secret.Reveal()))
	w.Set(2 * time.Hour)
	if !signs(fourth.Secret.Reveal())() {
		t.Error("the old one signs after the overlap")
	}
	if report := h.Seed(t, registries.Full); report.Changed || len(report.Notes) != 1 {
		t.Errorf("the file with the first secret: %+v", report)
	}
	var stored string
	if err := h.Pool.QueryRow(t.Context(), `SELECT string_agg(x::text || encode(x.sealed, 'escape'), ' ') FROM webhook_secrets x`).Scan(&stored); err != nil {
		t.Fatal(err)
	}
	for _, s := range []registry.RotatedSecret{second, third, fourth} {
		if strings.Contains(stored, s.Secret.Reveal()) {
			t.Error("a secret is stored in registries.Plain text")
		}
	}
}
