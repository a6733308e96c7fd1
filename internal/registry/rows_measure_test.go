package registry_test

import (
	"flag"
	"testing"
	"time"

	"quittance/internal/registry"
	"quittance/test/registries"
)

var measured = flag.Int("measured-rows", 200, "applications of TestTimeOfManyRows; 10000 for the numbers in docs/design/stack.md")

// A role starts, follows a change and changes a row although the registry is large. The test prints the
// times.
func TestTimeOfManyRows(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	h.Write(t, `INSERT INTO applications (id, agency_id, name, active, integrator, offers, embed_origins, session_lifetime_ms, creations_per_minute, reads_per_minute, page_size, created_at)
		SELECT gen_random_uuid(), agency_id, 'Application ' || n, true, false, offers, embed_origins, session_lifetime_ms, 30, 600, 20, created_at
		FROM applications, generate_series(1, $1::int) n WHERE id = $2`, *measured, registries.AppA)
	took := func(what string, do func()) time.Duration {
		began := time.Now()
		do()
		d := time.Since(began)
		t.Logf("%s of %d rows: %v", what, *measured, d.Round(100*time.Microsecond))
		return d
	}
	var r registries.Instance
	took("start", func() { r = h.Open(t) })
	took("reading without verification", func() {
		if _, err := registry.Read(t.Context(), h.Pool); err != nil {
			t.Error(err)
		}
	})
	registries.Run(t, r)
	off := false
	took("change", func() {
		if _, err := registry.ChangeApplication(t.Context(), h.Pool, h.Keys, registries.Actor, registries.AppA, registry.ApplicationChange{Active: &off}, registries.Epoch); err != nil {
			t.Error(err)
		}
	})
	if d := took("following the change", func() {
		registries.Within(t, 30*time.Second, "the change", func() bool {
			a, _ := r.Application(registries.AppA)
			return !a.Active
		})
	}); d > 20*time.Second {
		t.Errorf("a change is seen after %v", d)
	}
}
