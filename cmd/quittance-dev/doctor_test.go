package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"quittance/cmd/internal/roles"
)

// `doctor --port` in another folder than the checkout called for a registry file and the parts of `up`, although the
// `up` on that port had found them and ran. Without one that runs they are called for.
func TestDoctorOutsideTheCheckout(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Chdir(t.TempDir())
	health := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			_, _ = w.Write([]byte("ready"))
		}
	}))
	defer health.Close()
	u := &installation{registry: "deploy/dev/registry.yaml", broker: brokerKafka}
	u.port = health.Listener.Addr().(*net.TCPAddr).Port - portHealth
	faults := func() (out []string) {
		for _, c := range u.checks() {
			if found, err := c.Do(t.Context()); err != nil || found == "" {
				out = append(out, c.Name)
			}
		}
		return out
	}
	if found := strings.Join(faults(), " "); !strings.Contains(found, "registry file") || !strings.Contains(found, "ports") {
		t.Errorf("without an up that runs, the faults are %q", found)
	}
	remove, err := writeLocator(u.port, &roles.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	if found := faults(); len(found) > 0 {
		t.Errorf("of an up that runs, the faults are %q", found)
	}
}
