package program

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"quittance/cmd/internal/cli"
)

// run runs a command line of the production program.
func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = New(cli.Program{Name: "quittance"}).Run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// A wrong command line ends with exit code 2 and a hint; a command that failed ends with 1.
func TestExitCodes(t *testing.T) {
	t.Setenv("QUITTANCE_POSTGRES", "")
	t.Setenv("QUITTANCE_CLICKHOUSE", "")
	t.Setenv("QUITTANCE_TEST_SERVERS", "") // of `make test`: roles refuse what is no setting
	t.Setenv("QUITTANCE_KAFKA_JVM", "")
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"keyz", 2, "did you mean keys?"},
		{"keys crate", 2, "did you mean create?"},
		{"endpoints resum x", 2, "did you mean resume?"},
		{"keys nothing-like-it", 2, "`quittance keys --help` shows the commands"},
		{"keys", 2, "say what to do with keys: create, list, revoke, rotate, grant or ungrant"},
		{"keys list --nope", 2, "unknown flag: --nope; `quittance keys list --help` shows the flags"},
		{"completion tcsh", 2, `unknown command "tcsh" for "quittance completion"`},
		{"completion", 2, "say for which shell"},
		{"completion bash", 0, ""},
		{"up", 2, `unknown command "up" for "quittance"; it is a command of quittance-dev`},
		{"processor --kafka 127.0.0.1:1 --schema-registry http://127.0.0.1:1", 2, "--instance (or QUITTANCE_INSTANCE), the name of this instance"},
		{"rebuild stores --yes --instance 1 --store /nowhere/checkout-1", 1, "/nowhere/checkout-1: no such file or directory; name the folder of the instance with --store"},
		{"rebuild stores --yes", 2, "--instance (or QUITTANCE_INSTANCE), the name of this instance"},
		{"config check", 2, "say of which role"},
		{"config check webhok", 2, "no role is called \"webhok\""},
		{"config check ingress --env-file /nowhere", 1, "--env-file: open /nowhere"},
		{"keys list", 2, "not set: --postgres (or QUITTANCE_POSTGRES)"},
		{"keys list --postgres postgres://u@db/d", 2, "--postgres: the connection is plaintext to another machine"},
		{"sink journal --kafka kafka-1:9092", 2, "or accept the risk with --allow-plaintext"},
		{"doctor journal --schema-registry http://schemas:8081", 2, "--schema-registry: the connection is plaintext to another machine"},
		{"keys create --application a", 2, "--mode: must be test or live"},
		{"keys create --application a --mode x", 2, "--mode: must be test or live"},
		{"endpoints recover x --per-second y", 2, "--per-second: must be a number"},
		{"keys rotate x --overlap y", 2, "--overlap: must be a duration such as 90s"},
		{"sink webhok", 2, "no sink is called \"webhok\""},
		{"doctor webhok", 2, "no role is called \"webhok\""},
		{"replay checkout.commands --to webhook --since 1h", 1, "checkout.commands is not replayed"},
		{"replay checkout.events --to journal --since yesterday", 2, "--since: must be a time"},
		{"replay checkout.events --to journal", 2, "--since: give the start"},
		{"sessions find", 2, "say what to look for: `quittance sessions find TERM`"},
		{"sessions show", 2, "`quittance sessions find TERM` finds it"},
		{"deliveries list --order a --payment-ref 1234", 2, "give one of --order, --session and --payment-ref"},
		{"deliveries list --payment-ref 1234", 2, "--payment-ref: must be 16 digits"},
		{"clerks revoke impots/c01 --mode both", 2, "--mode: must be test or live"},
		{"seed no-such-file", 1, "reading the registry file"},
		{"report", 2, "say which report: takings, fees, channels, undelivered, open-cases, reconciliation, breaks, operator-fees"},
		{"deliveries lift-suppressions --since 1h", 2, "--channel: say of which channel the provider is"},
		{"deliveries lift-suppressions --channel fax", 2, "sms or email"},
		{"report takins --month 2026-11", 2, `no report is called "takins"; there are takings`},
		{"report takings", 2, `--month "": must be a month, such as --month 2026-11`},
		{"report takings --month 2026-13", 2, `--month "2026-13": must be a month`},
		{"report takings --month 2026-11 --format pdf", 2, "--format: must be one of table, csv, json, xlsx"},
		{"report takings --month 2026-11 --mode real", 2, "--mode: must be test or live"},
		{"report takings --month 2026-11", 2, "not set: --clickhouse (or QUITTANCE_CLICKHOUSE)"},
		{"analysts", 2, "say what to do with analysts: add, list or revoke"},
		{"analysts add jeanne", 2, "--agency: say whose rows the analyst reads"},
		{"analysts add --agency impots", 2, "say how the analyst is called: `quittance analysts add NAME`"},
		{"analysts revoke", 2, "`quittance analysts list` shows the names"},
		{"links", 2, "say what to do with links: codes, renew, revoke, renew-all, accept-former, list, alerts or import"},
		{"links codes impots --subject a", 2, "--mode: must be test or live"},
		{"links codes impots --mode test", 2, "either --subject REF, or --from FILE"},
		{"links codes impots --mode test --subject a --from b", 2, "either --subject REF, or --from FILE"},
		{"links codes --mode test --subject a", 2, "the agency's slug or id"},
		{"links renew impots", 2, "say which reference: --subject REF"},
		{"links revoke impots", 2, "say which reference: --subject REF"},
		{"links revoke impots --subject a --subject b", 2, "--subject: name one reference, not 2"},
		{"links renew impots --subject a --subject b", 2, "--subject: name one reference, not 2"},
		{"links list impots --subject a --subject b", 2, "--subject: name one reference, not 2"},
		{"links list impots", 2, "say which reference: --subject REF"},
		{"links import impots", 2, "`quittance links import AGENCY FILE`"},
		{"links import impots x --mode both", 2, "--mode: must be test or live"},
		{"erase --phone 1 --email a@b.cg", 2, "either --session"},
		{"erase --email nobody", 2, "--email: must be an e-mail address"},
		{"cashin", 2, "say what to do with cashin: create, rotate, revoke, list or usage"},
		{"cashin usage --since yesterday", 2, "--since: must be a time"},
		{"cashin usage --by month", 2, "--by: must be one of application, route, day"},
		{"cashin usage --format xlsx", 2, "--format: must be one of table, csv, json"},
		{"cashin usage --json --format csv", 2, "give one of --json and --format csv"},
		{"cashin usage extra", 2, "unknown command"},
		{"receipts", 2, "say what to do with receipts: verify or keys"},
		{"receipts verify", 2, "`quittance receipts verify FILE|TOKEN`"},
		{"receipts verify x", 2, "either --service URL, or --keys FILE"},
		{"receipts verify x --service https://a --reversed y", 2, "--reversed is for --keys"},
		{"receipts verify a.b.c --service http://pay.example", 2, "--service: must be an https address"},
		{"receipts verify no-such-file --keys x", 1, "give a file, or what the receipt's code holds"},
		{"receipts keys revoke", 2, "`quittance receipts keys list` shows them"},
		{"version", 0, ""},
		{"", 0, ""},
	} {
		code, _, stderr := run(t, strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(stderr, c.says) {
			t.Errorf("%q ends with %d and says %q, want %d and %q", c.args, code, stderr, c.code, c.says)
		}
	}
}

func TestSecretsAmongTheArguments(t *testing.T) {
	t.Parallel()
	const warning = "warning: the secret in --master-keys can be read by every user of this machine; use --master-keys-file or QUITTANCE_MASTER_KEYS\n"
	if _, _, stderr := run(t, "seed", "no-such-file", "--master-keys", "1:abc"); !strings.Contains(stderr, warning) || strings.Contains(stderr, "abc") {
		t.Errorf("says %q", stderr)
	}
	if _, _, stderr := run(t, "seed", "no-such-file", "--master-keys-file", "none"); strings.Contains(stderr, "warning") || !strings.Contains(stderr, "--master-keys-file: open none") {
		t.Errorf("says %q", stderr)
	}
}

// Each command has an example, and help shows connection flags under their own heading.
func TestHelp(t *testing.T) {
	t.Parallel()
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		if !cmd.HasSubCommands() && !strings.HasPrefix(cmd.Example, cmd.CommandPath()) {
			t.Errorf("%s has the example %q", cmd.CommandPath(), cmd.Example)
		}
		for _, c := range cmd.Commands() {
			visit(c)
		}
	}
	visit(New(cli.Program{Name: "quittance"}).Root())
	_, help, _ := run(t, "keys", "rotate", "--help")
	own, connection, found := strings.Cut(help, "Connection flags")
	if !found || !strings.Contains(own, "--overlap") || strings.Contains(own, "--postgres") || !strings.Contains(connection, "--postgres") {
		t.Errorf("help says:\n%s", help)
	}
}

// The version was (devel), and programs could not read what version, doctor and migrate print.
func TestVersion(t *testing.T) {
	t.Parallel()
	var got struct{ Program, Version, Release, Go, Platform string }
	code, out, _ := run(t, "version", "--json")
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 || got.Program != "quittance" || got.Release == "" || !strings.HasPrefix(got.Version, got.Release) || !strings.HasPrefix(got.Go, "go") || got.Platform == "" {
		t.Errorf("%d %s %v", code, out, err)
	}
	if _, out, _ := run(t, "version"); !strings.Contains(out, got.Version) || strings.Contains(out, "devel") {
		t.Errorf("the version is %s", out)
	}
	for _, command := range []string{"version", "doctor", "migrate"} {
		if _, help, _ := run(t, command, "--help"); !strings.Contains(help, "--json") {
			t.Errorf("%s prints no JSON:\n%s", command, help)
		}
	}
}

// Shells complete values.
func TestCompletion(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"sink ":                     "webhook",
		"endpoints ro":              "rotate-secret",
		"keys create --mode ":       "live",
		"deliveries list --state ":  "needs_operator",
		"replay webhooks --to ":     "webhook",
		"replay ":                   "erp.confirmations",
		"doctor ":                   "schedule",
		"deliveries retry --state ": "exhausted",
		"report ":                   "open-cases",
		"report fees --format ":     "xlsx",
	} {
		typed := strings.Split(args, " ")
		if _, stdout, _ := run(t, append([]string{"__complete"}, typed...)...); !strings.Contains(stdout, want) {
			t.Errorf("%q is completed with %q, want %s", args, stdout, want)
		}
	}
}
