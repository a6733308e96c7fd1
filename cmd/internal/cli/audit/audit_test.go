package audit

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"quittance/cmd/internal/cli/clitest"
	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/test/registries"
)

// Who approved a case was told by SQL only, and as an id. The command finds operations by the name of the
// person, the noun of the action, the subject and the time; the staff of one agency do not see those of others.
func TestAuditList(t *testing.T) {
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	t.Setenv("QUITTANCE_POSTGRES", h.DSN)
	m, err := identity.AddStaff(t.Context(), h.Pool, h.Keys, registries.Actor, "", identity.StaffRequest{Name: "One", Agency: "impots"}, registries.Epoch)
	if err != nil {
		t.Fatal(err)
	}
	one := m.Staff.Actor("machine")
	for action, subject := range map[string]string{"case.approve": "case_1", "cases.other": "case_1", "key.revoke": "key_1"} {
		if err := operation.Record(t.Context(), h.Pool, one, registries.Epoch.AddDate(0, 0, 1), operation.Entry{Action: action, Subject: subject, AgencyID: map[string]string{"case_1": m.AgencyID}[subject], Detail: map[string]any{"proposal": 1}}); err != nil {
			t.Fatal(err)
		}
	}
	day := registries.Epoch.AddDate(0, 0, 1).Format("2006-01-02T15:04:05Z")
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"--who", "one"}, 3},
		{[]string{"--who", one.Name, "--action", "case"}, 1},
		{[]string{"--subject", "case_1"}, 2},
		{[]string{"--action", "case.approve", "--since", day}, 1},
		{[]string{"--who", "one", "--limit", "2"}, 2},
		{[]string{"--who", "nobody"}, 0},
		{[]string{"--agency", "impots", "--who", "one"}, 2},
		{[]string{"--agency", "impots", "--action", "case"}, 1},
		{[]string{"--who", "one", "--until", day}, 0},
	} {
		code, stdout, stderr := clitest.Run(t, Command(), append([]string{"audit", "list", "--json"}, c.args...)...)
		var got []struct {
			Action, Name string
			Detail       map[string]any
		}
		if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 0 || len(got) != c.want {
			t.Errorf("%v: %d %s%s, %v", c.args, code, stdout, stderr, err)
		}
		if len(got) > 0 && (got[0].Name != "One" || got[0].Detail["proposal"] != 1.0) {
			t.Errorf("%v: %+v", c.args, got[0])
		}
	}
	if _, stdout, _ := clitest.Run(t, Command(), "audit", "list", "--action", "key.revoke"); !strings.Contains(stdout, "person One") {
		t.Errorf("%s", stdout)
	}
	if _, stdout, _ := clitest.Run(t, Command(), "audit", "list", "--agency", "impots", "--action", "staff"); !strings.Contains(stdout, m.ID) {
		t.Errorf("the nouns name no agency: %s", stdout)
	}
	var pages []string
	for args := []string{"audit", "list", "--json", "--who", "one", "--limit", "1"}; ; {
		_, stdout, stderr := clitest.Run(t, Command(), args...)
		var got []struct{ Action, Agency, Cursor string }
		if err := json.Unmarshal([]byte(stdout), &got); err != nil {
			t.Fatal(stdout, stderr, err)
		}
		if len(got) == 0 {
			break
		}
		pages = append(pages, got[0].Action+" "+got[0].Agency)
		args = append(args[:7:7], "--after", got[0].Cursor)
	}
	slices.Sort(pages)
	if !slices.Equal(pages, []string{"case.approve impots", "cases.other impots", "key.revoke "}) {
		t.Errorf("pages: %q", pages)
	}
	if code, _, stderr := clitest.Run(t, Command(), "audit", "list", "--after", "x"); code == 0 || !strings.Contains(stderr, "--after: this is no cursor") {
		t.Errorf("no cursor: %d %s", code, stderr)
	}
	if code, _, stderr := clitest.Run(t, Command(), "audit", "list", "--agency", "nowhere"); code == 0 || !strings.Contains(stderr, "--agency: ") {
		t.Errorf("no agency: %d %s", code, stderr)
	}
	t.Setenv("QUITTANCE_STAFF_KEY", m.Secret.Reveal())
	if code, _, stderr := clitest.Run(t, Command(), "audit", "list"); code != 1 || !strings.Contains(stderr, "of an agency") {
		t.Errorf("the staff of an agency: %d %s", code, stderr)
	}
}
