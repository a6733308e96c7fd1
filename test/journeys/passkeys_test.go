package journeys_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/google/uuid"

	"quittance/test/harness"
)

// A citizen adds a passkey in a real browser and signs in with it, by the API and on the
// portal's pages.
func TestPasskeysInBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation and a browser")
	}
	t.Parallel()
	u := harness.Shared(t)
	runCases(t, "passkeys.mjs", map[string]any{
		"portal": fmt.Sprintf("http://localhost:%d", u.Port), "inbox": u.URL(harness.AtSimulators, "/inbox"), "run": uuid.NewString()[:8],
		"shots": os.Getenv("QUITTANCE_SHOTS"),
	})
}
