package staff_test

import (
	"encoding/json"
	"strings"
	"testing"

	"quittance/cmd/internal/cli/clitest"
	"quittance/cmd/internal/cli/staff"
	"quittance/internal/identity"
	"quittance/internal/secret"
	"quittance/test/office"
)

// A group gets an identity provider, its people are bound to subjects, an outage is declared and ended, and the provider ends. No
// output has the client's secret, and each refusal says the mend.
func TestIssuersByCommand(t *testing.T) {
	o := office.Open(t, "impots", []identity.Role{identity.RoleAccountant}, "Awa", "Ben")
	t.Setenv("QUITTANCE_POSTGRES", o.DSN)
	t.Setenv("QUITTANCE_MASTER_KEYS", o.Keys.Reveal())
	t.Setenv("QUITTANCE_REFERENCE_KEY", secret.GenerateReferenceKey().Reveal())
	t.Setenv("QUITTANCE_CLIENT_SECRET", "a-secret-of-the-client")
	run := func(want int, says string, args ...string) string {
		t.Helper()
		code, stdout, stderr := clitest.Run(t, staff.Command(), append([]string{"staff"}, args...)...)
		if said := stdout + stderr; code != want || !strings.Contains(said, says) || strings.Contains(said, "a-secret-of-the-client") {
			t.Fatalf("%v: %d %s, want %d and %q", args, code, said, want, says)
		}
		return stdout
	}
	const at = "https://idp.example.org/realms/impots"
	add := func(want int, says string, more ...string) string {
		t.Helper()
		return run(want, says, append([]string{"issuers", "add", "--client-id", "quittance", "--agency", "impots"}, more...)...)
	}
	run(2, "QUITTANCE_CLIENT_SECRET", "issuers", "add", "--address", at)
	add(1, "must be https", "--address", "http://idp.example.org")
	add(1, "not an IP address", "--address", "https://169.254.169.254/")
	add(1, "RS256; ES256; EdDSA", "--address", at, "--algorithm", "HS256")
	run(0, "no group has an identity provider", "issuers", "list")
	run(1, "staff issuers add", "issuers", "bind", "Awa", "--subject", "17")
	add(0, "https://staff.example/sign-in/issuers/", "--address", at, "--staff-url", "https://staff.example")
	add(1, "staff issuers remove", "--address", "https://other.example.org")
	run(0, "17", "issuers", "bind", "Awa", "--subject", "17")
	run(1, "another person is bound", "issuers", "bind", "Ben", "--subject", "17")
	add(0, "People of impots who are not known there yet: 1.", "--address", at, "--algorithm", "ES256")
	var shown struct {
		Bound      int      `json:"people_bound"`
		Unbound    int      `json:"people_unbound"`
		Algorithms []string `json:"algorithms"`
		LogoutPath string   `json:"logout_path"`
	}
	if err := json.Unmarshal([]byte(run(0, "", "issuers", "show", "impots", "--json")), &shown); err != nil || shown.Bound != 1 || shown.Unbound != 1 || strings.Join(shown.Algorithms, " ") != "ES256" || !strings.HasSuffix(shown.LogoutPath, "/logout") {
		t.Errorf("%+v, %v", shown, err)
	}
	run(2, "--end", "outage", "impots")
	run(1, "no outage of impots", "outage", "impots", "--end")
	run(1, "must be 1 to 24", "outage", "impots", "--hours", "25", "--reason", "ticket 4711")
	run(1, "no identity provider has this id", "outage", "douanes", "--hours", "1", "--reason", "ticket 4711")
	run(0, "with a passkey alone", "outage", "impots", "--hours", "4", "--reason", "ticket 4711")
	run(0, "ticket 4711", "issuers", "list")
	run(0, "is over", "outage", "impots", "--end")
	run(0, "People who were bound to a subject: 1.", "issuers", "remove", "impots")
	run(0, "no group has an identity provider", "issuers", "list")
	for _, action := range []string{"staff.issuer_add", "staff.issuer_bind", "staff.outage", "staff.outage_end", "staff.issuer_remove"} {
		if !strings.Contains(strings.Join(o.Audited(t), " "), action) {
			t.Errorf("the audit table lacks %s", action)
		}
	}
}
