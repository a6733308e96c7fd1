package contract_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/dev/stack/program"
	"quittance/test/harness"
	"quittance/test/servers"
)

// The clients for back ends, sdk/go and sdk/node, pass their own tests on a running service.
func TestBackEndSDKs(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation")
	}
	t.Parallel()
	u := harness.Shared(t)
	for _, sdk := range []struct {
		dir  string
		test []string
	}{
		{"sdk/go", []string{"go", "test", "-count=1", "-vet=off", "-v", "./..."}},
		{"sdk/node", []string{"node", "--test", "test/client.test.js", "test/service.test.js", "test/webhook.test.js"}},
	} {
		t.Run(sdk.dir, func(t *testing.T) {
			t.Parallel()
			var random [32]byte
			_, _ = rand.Read(random[:])
			key, secret, port := "sk_test_"+rand.Text()[:25], "whsec_"+base64.StdEncoding.EncodeToString(random[:]), harness.Ports(t, 1)[0]
			registry := filepath.Join(servers.Dir(t), "registry.yaml")
			write(t, registry, fmt.Appendf(nil, `agencies:
  - id: %s
    slug: sdk-%d
    name: SDK
    applications:
      - id: %s
        name: SDK
        offers: [momo]
        keys: [{secret: %s}]
        webhook_endpoints: [{url: "http://127.0.0.1:%d/webhooks", secret: %s, events: [checkout.cancelled]}]
`, uuid.NewString(), time.Now().UnixNano(), uuid.NewString(), key, port, secret))
			var seeded any
			harness.Operator{Up: u}.JSON(t, &seeded, "seed", registry)

			ctx, cancel := context.WithTimeout(t.Context(), 2*harness.Soon)
			defer cancel()
			cmd := exec.CommandContext(ctx, sdk.test[0], sdk.test[1:]...)
			cmd.Dir = harness.Absolute(t, sdk.dir)
			cmd.Env = program.Environment("QUITTANCE_URL="+u.URL(harness.AtService, ""), "QUITTANCE_KEY="+key, "QUITTANCE_WEBHOOK_SECRET="+secret,
				"QUITTANCE_WEBHOOK_PORT="+strconv.Itoa(port), "GOPROXY=off", "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1")
			out, err := cmd.CombinedOutput()
			if err != nil || strings.Contains(string(out), "names no running service") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// The types of sdk/node accept and refuse what its usage.ts says.
func TestNodeSDKTypes(t *testing.T) {
	t.Parallel()
	tool(t, harness.Absolute(t, "sdk/node"), "node", harness.Absolute(t, ".deps/browser/node_modules/typescript/bin/tsc"), "--project", ".")
}
