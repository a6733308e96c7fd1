package delivery

import (
	"encoding/json"
	"strings"
	"testing"

	"quittance/cmd/internal/cli/clitest"
	"quittance/test/registries"
)

// The secret of a restored endpoint is shown although what waits cannot be sent, and the error
// says what to type. Without --modes it receives both.
func TestRestoredEndpoint(t *testing.T) {
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	t.Setenv("QUITTANCE_POSTGRES", h.DSN)
	t.Setenv("QUITTANCE_MASTER_KEYS", h.Keys.Reveal())
	add := []string{"endpoints", "add", "--application", "Guichet fiscal", "--url", "https://hooks.example.org/restored", "--events", "checkout.completed", "--json"}
	var shown struct {
		ID, Secret string
		Restored   bool
		Modes      []string
	}
	succeeds := func(args ...string) string {
		t.Helper()
		code, stdout, stderr := clitest.Run(t, Endpoints(), args...)
		if code != 0 {
			t.Fatalf("%v: %s%s", args, stdout, stderr)
		}
		return stdout
	}
	remove := func() { succeeds("endpoints", "remove", shown.ID) }
	if err := json.Unmarshal([]byte(succeeds(append(add, "--modes", "live")...)), &shown); err != nil || shown.Restored {
		t.Fatalf("%+v %v", shown, err)
	}
	remove()
	var suspended int
	if err := h.Pool.QueryRow(t.Context(), `SELECT count(*) FROM delivery_destinations WHERE destination_id = $1 AND suspended_at IS NOT NULL`, shown.ID).Scan(&suspended); err != nil || suspended != 1 {
		t.Errorf("what is on its way to a removed endpoint does not stop: %d, %v", suspended, err)
	}
	if code, _, stderr := clitest.Run(t, Endpoints(), "endpoints", "remove", shown.ID); code == 0 {
		t.Errorf("removed twice: %s", stderr)
	}
	text := succeeds(add[:len(add)-1]...)
	if !strings.Contains(text, "Restored endpoint "+shown.ID) || !strings.Contains(text, "modes test, live.") || !strings.Contains(text, "whsec_") {
		t.Errorf("restored:\n%s", text)
	}
	remove()
	if _, err := h.Pool.Exec(t.Context(), `ALTER TABLE delivery_destinations ADD CONSTRAINT never CHECK (resumed_at IS NULL) NOT VALID`); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := clitest.Run(t, Endpoints(), add...)
	if err := json.Unmarshal([]byte(stdout), &shown); err != nil || code != 1 || !shown.Restored || !strings.HasPrefix(shown.Secret, "whsec_") || !strings.Contains(stderr, "`quittance endpoints resume "+shown.ID+"`") {
		t.Errorf("a failed resumption ends with %d and says %q, and %d bytes: %v", code, stderr, len(stdout), err)
	}
}
