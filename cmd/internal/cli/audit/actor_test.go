package audit

import (
	"slices"
	"strings"
	"testing"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/clitest"
	"quittance/cmd/internal/cli/key"
	"quittance/cmd/internal/cli/link"
	"quittance/internal/audit"
	"quittance/internal/identity"
	"quittance/internal/secret"
	"quittance/test/registries"
)

// Several people share a user of the machine, so that nobody knew who had the link codes of taxpayers printed, or made
// a key. Commands that disclose or make something leave a row, and QUITTANCE_STAFF_KEY names the person in it. A key
// that is not in force is refused: the row would name somebody else.
func TestActors(t *testing.T) {
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	t.Setenv("QUITTANCE_POSTGRES", h.DSN)
	t.Setenv("QUITTANCE_MASTER_KEYS", h.Keys.Reveal())
	t.Setenv("QUITTANCE_REFERENCE_KEY", secret.GenerateReferenceKey().Reveal())
	m, err := identity.AddStaff(t.Context(), h.Pool, h.Keys, registries.Actor, "", identity.StaffRequest{Name: "One", Agency: "impots"}, registries.Epoch)
	if err != nil {
		t.Fatal(err)
	}
	run := func(c cli.Command, args ...string) (code int, said string) {
		t.Helper()
		code, stdout, stderr := clitest.Run(t, c, args...)
		return code, stdout + stderr
	}
	codes := []string{"links", "codes", "impots", "--mode", "test", "--subject", "TP-1001"}
	for _, person := range []string{"", m.Secret.Reveal()} {
		t.Setenv("QUITTANCE_STAFF_KEY", person)
		for _, c := range []struct {
			cli.Command
			args []string
		}{
			{link.Command(), codes},
			{link.Command(), []string{"links", "list", "impots", "--mode", "test", "--subject", "TP-1001"}},
			{key.Command(), []string{"keys", "create", "--platform", "--agency", "impots", "--mode", "test"}},
		} {
			if code, said := run(c.Command, c.args...); code != 0 {
				t.Fatalf("%v: %d %s", c.args, code, said)
			}
		}
	}
	rows, err := audit.List(t.Context(), h.Pool, audit.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, action := range []string{"link.codes", "link.read", "key.create"} {
		var who []string
		for _, r := range rows {
			if r.Action == action {
				who = append(who, string(r.Actor.Kind)+" "+r.Person)
			}
			if strings.Contains(string(r.Detail), "TP-1001") {
				t.Errorf("%s names the taxpayer", r.Action)
			}
		}
		if !slices.Equal(who, []string{"person One", "command_line "}) {
			t.Errorf("%s was done by %q", action, who)
		}
	}
	t.Setenv("QUITTANCE_STAFF_KEY", m.Secret.Reveal()+"x")
	if code, said := run(link.Command(), codes...); code != 1 {
		t.Errorf("with a wrong key: %d %s", code, said)
	}
	if after, err := audit.List(t.Context(), h.Pool, audit.Filter{}); err != nil || len(after) != len(rows) {
		t.Errorf("a refused command left a row: %v", err)
	}
}
