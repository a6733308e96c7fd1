package contract_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/google/uuid"

	"quittance/checkout"
	"quittance/dev/stack/program"
	"quittance/schemas/payload"
	"quittance/test/harness"
	"quittance/test/servers"
)

// clientPrograms is the folder of the programs that use generated clients.
const clientPrograms = "test/tools/clients/"

// generator is a generator of clients with its default options, as an integrator runs it.
type generator struct {
	name string
	// program generates the client in a folder that has openapi.yaml and openapi.json. It
	// returns the command of the program that uses the client.
	program func(t *testing.T, dir string) []string
}

var generators = []generator{
	{"openapi-typescript", func(t *testing.T, dir string) []string {
		t.Helper()
		tool(t, dir, harness.Absolute(t, ".deps/clients/node/node_modules/.bin/openapi-typescript"), "openapi.yaml", "--output", "schema.ts")
		return typeScript(t, dir, "openapi-typescript.ts")
	}},
	{"hey-api", func(t *testing.T, dir string) []string {
		t.Helper()
		tool(t, dir, harness.Absolute(t, ".deps/clients/node/node_modules/.bin/openapi-ts"), "--input", "openapi.json", "--output", "client", "--silent")
		return typeScript(t, dir, "hey-api.ts")
	}},
	{"openapi-python-client", func(t *testing.T, dir string) []string {
		t.Helper()
		python := harness.Absolute(t, ".deps/clients/python/bin/python")
		write(t, filepath.Join(dir, "config.yaml"), []byte("post_hooks: []\ncontent_type_overrides: {application/pdf: application/octet-stream}\n"))
		// A warning tells that something is left out.
		tool(t, dir, python, "-m", "openapi_python_client", "generate", "--path", "openapi.yaml", "--meta", "none", "--output-path", "client", "--config", "config.yaml", "--fail-on-warning")
		return []string{python, copied(t, dir, "client.py")}
	}},
	{"oapi-codegen", func(t *testing.T, dir string) []string {
		t.Helper()
		tool(t, dir, harness.Absolute(t, ".deps/bin/oapi-codegen"), "-package", "client", "-generate", "types,client", "-o", "client.gen.go", "openapi.yaml")
		// The client becomes a package of this module, so that the module's dependencies serve it.
		overlay, err := json.Marshal(map[string]map[string]string{"Replace": {harness.Absolute(t, clientPrograms+"client/client.gen.go"): filepath.Join(dir, "client.gen.go")}})
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "overlay.json"), overlay)
		path := filepath.Join(dir, "client")
		tool(t, harness.Absolute(t, "."), "go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", path, clientPrograms+"client.go")
		return []string{path}
	}},
	{"openapi-generator, Java", func(t *testing.T, dir string) []string {
		t.Helper()
		openAPIGenerator(t, dir, "java")
		var sources []string
		if err := filepath.WalkDir(filepath.Join(dir, "java/src/main/java"), func(path string, _ os.DirEntry, err error) error {
			if strings.HasSuffix(path, ".java") {
				sources = append(sources, path)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		libraries := harness.Absolute(t, ".deps/clients/java/libs") + "/*"
		args := append(briefJVM("-J"), "-encoding", "UTF-8", "-proc:none", "-nowarn", "-cp", libraries, "-d", "classes", copied(t, dir, "Client.java"))
		tool(t, dir, "javac", append(args, sources...)...)
		return append(append([]string{"java"}, briefJVM("")...), "-cp", filepath.Join(dir, "classes")+":"+libraries, "Client")
	}},
	{"openapi-generator, PHP", func(t *testing.T, dir string) []string {
		t.Helper()
		openAPIGenerator(t, dir, "php")
		return []string{"php", copied(t, dir, "client.php"), filepath.Join(dir, "php")}
	}},
}

// Generators of clients take the OpenAPI file as the service serves it. With each generated
// client a program creates a session from the required fields alone, reads it, reads a
// refusal, and parses each event as the model of that event.
func TestGeneratedClients(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation and runs code generators")
	}
	t.Parallel()
	u, key := harness.Shared(t), "sk_test_"+rand.Text()[:25]
	var seeded any
	harness.Operator{Up: u}.JSON(t, &seeded, "seed", quickstartAgency(t, key, nil))
	file := map[string][]byte{}
	for _, name := range []string{"openapi.yaml", "openapi.json"} {
		file[name] = u.Call(t, http.MethodGet, u.URL(harness.AtService, "/"+name), "").Body
	}
	events, printed := webhookBodies(t)

	for _, g := range generators {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			begun, dir, order := time.Now(), servers.Dir(t), "client-"+uuid.NewString()
			for name, text := range file {
				write(t, filepath.Join(dir, name), text)
			}
			args := g.program(t, dir)
			ctx, cancel := context.WithTimeout(t.Context(), harness.Soon)
			defer cancel()
			cmd := exec.CommandContext(ctx, args[0], args[1:]...)
			cmd.Dir = dir
			cmd.Env = program.Environment("QUITTANCE_URL="+u.URL(harness.AtService, ""), "QUITTANCE_KEY="+key, "QUITTANCE_ORDER="+order,
				"QUITTANCE_EVENTS="+strings.Join(events, "\n"), "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1")
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("the program ended with %v: %s%s", err, out, stderr.Bytes())
			}
			session, rest, _ := strings.Cut(string(out), "\n")
			if !regexp.MustCompile(`^chs_[0-9a-z]+ open 5000000000 hosted$`).MatchString(session) {
				t.Errorf("the session is printed as %q", session)
			}
			if want := "409 checkout.order_open\n" + printed; rest != want {
				t.Errorf("then the program printed\n%s\nwant\n%s", rest, want)
			}
			t.Logf("%s took %s", g.name, time.Since(begun).Round(time.Millisecond))
		})
	}
}

// webhookBodies returns the body of each event as the service sends it, and the lines that
// a program prints of them.
func webhookBodies(t *testing.T) (bodies []string, printed string) {
	t.Helper()
	at := time.Date(2026, 11, 22, 10, 15, 0, 0, time.UTC)
	for _, e := range []struct {
		event   checkout.EventType
		status  checkout.Status
		details string
	}{
		{checkout.EventCompleted, checkout.StatusCompleted, "5000000075"},
		{checkout.EventFailed, checkout.StatusFailed, "collect.insufficient_funds"},
		{checkout.EventCancelled, checkout.StatusCancelled, "cancelled"},
		{checkout.EventExpired, checkout.StatusExpired, "expired"},
		{checkout.EventLatePayment, checkout.StatusExpired, "5000000075"},
		{checkout.EventReversed, checkout.StatusCompleted, "5000000000"},
	} {
		s := checkout.Session{
			ID: "chs_" + string(e.status), ApplicationID: taxApp, TenantID: taxAgency, OrderID: "order", Amount: 5_000_000_000, Currency: "XAF",
			Status: e.status, PaymentRef: "4175020683362214", NoticeID: uuid.NewString(), NoticeRef: "AV2026-1", TransactionID: uuid.NewString(), Metadata: map[string]string{"case": "4"},
			Collection:  &checkout.Collection{Channel: checkout.ChannelMobileMoney, OfferID: checkout.OfferMomo, OperatorRef: "op", Fee: 75, Amount: 5_000_000_075},
			FailureCode: "collect.insufficient_funds", FailureMessage: "Not enough money.",
		}
		if e.event == checkout.EventReversed {
			s.ReversedAt, s.ReversalReason = at, checkout.ReversalRefunded
		}
		body, err := payload.Webhook(checkout.Event{ID: "evt_1", Type: e.event, SessionID: s.ID, Sequence: 3, OccurredAt: at, Session: s})
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, string(body))
		printed += fmt.Sprintf("%s %s 5000000000 %s\n", e.event, s.ID, e.details)
	}
	return bodies, printed
}

// tool runs a program without a network, which must succeed.
func tool(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	const nowhere = "http://127.0.0.1:9"
	cmd.Env = program.Environment("HTTP_PROXY="+nowhere, "HTTPS_PROXY="+nowhere, "ALL_PROXY="+nowhere, "CI=true", "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v (`make deps/test` fetches a missing program)\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
}

// Each OpenAPI file that the service serves keeps the rules that integrators' tools check by default (spectral:oas): two of them
// named no server, so that generated clients had no address, and operations had neither tags nor descriptions.
func TestSpectral(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a program on Node")
	}
	t.Parallel()
	files, err := filepath.Glob(harness.Absolute(t, "ingress") + "/*/openapi.yaml")
	if err != nil || len(files) != 4 {
		t.Fatalf("%q are the OpenAPI files: %v", files, err)
	}
	tool(t, servers.Dir(t), harness.Absolute(t, ".deps/spectral/node_modules/.bin/spectral"),
		append([]string{"lint", "--fail-severity", "warn", "--ruleset", harness.Absolute(t, "test/tools/spectral/ruleset.yaml")}, files...)...)
}

// openAPIGenerator runs OpenAPI Generator with the default library of a language.
func openAPIGenerator(t *testing.T, dir, language string) {
	t.Helper()
	tool(t, dir, "java", append(briefJVM(""), "-jar", harness.Absolute(t, ".deps/clients/java/openapi-generator-cli.jar"), "generate",
		"--input-spec", "openapi.yaml", "--generator-name", language, "--output", language,
		"--global-property", "apiTests=false,modelTests=false,apiDocs=false,modelDocs=false")...)
}

// briefJVM returns the flags of a JVM that runs for seconds.
func briefJVM(prefix string) []string {
	return []string{prefix + "-XX:+UseSerialGC", prefix + "-XX:TieredStopAtLevel=1"}
}

// typeScript checks a program and its client with the compiler, and bundles them.
func typeScript(t *testing.T, dir, name string) []string {
	t.Helper()
	if err := os.Symlink(harness.Absolute(t, ".deps/clients/node/node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(copied(t, dir, name), filepath.Join(dir, "program.ts")); err != nil {
		t.Fatal(err)
	}
	copied(t, dir, "event.ts")
	tool(t, dir, "node", harness.Absolute(t, ".deps/browser/node_modules/typescript/bin/tsc"), "--project", copied(t, dir, "tsconfig.json"))
	out := filepath.Join(dir, "program.mjs")
	if r := api.Build(api.BuildOptions{
		AbsWorkingDir: dir, EntryPoints: []string{"program.ts"}, Outfile: out, Bundle: true, Write: true,
		Format: api.FormatESModule, Platform: api.PlatformNode, Target: api.ES2022,
	}); len(r.Errors) > 0 {
		t.Fatalf("bundling %s: %+v", name, r.Errors)
	}
	return []string{"node", out}
}

// copied copies a program of test/tools/clients to a folder and returns its path.
func copied(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(harness.Absolute(t, clientPrograms+name))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	write(t, path, text)
	return path
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
