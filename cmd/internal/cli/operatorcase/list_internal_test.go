package operatorcase

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"quittance/casework"
	"quittance/checkout"
	"quittance/cmd/internal/cli/clitest"
	"quittance/internal/cases"
	"quittance/test/registries"
)

// `cases list` showed the first thousand cases, and no command the others. A list goes on after a cursor; one of
// other conditions, and what is none, are refused with the mend.
func TestListGoesOn(t *testing.T) {
	h := registries.SetUp(t)
	h.Seed(t, registries.Edit(t, "", ""))
	t.Setenv("QUITTANCE_POSTGRES", h.DSN)
	t.Setenv("QUITTANCE_MASTER_KEYS", h.Keys.Reveal())
	var all []cases.Case
	for n := range 5 {
		all = append(all, cases.Case{
			Case:      casework.Case{ID: fmt.Sprint("case_", n), Kind: checkout.CaseLatePayment, Amount: 5075, Currency: "XAF", OpenedAt: registries.Epoch.Add(time.Duration(n) * time.Minute)},
			InSession: true, Sequence: int64(n + 1), SessionID: "chs_1", AgencyID: registries.AgencyA, Mode: "live", Clerks: []string{}, Evidence: map[string]string{},
		})
	}
	if err := cases.NewStore(h.Pool).Apply(t.Context(), all, nil); err != nil {
		t.Fatal(err)
	}
	var got []string
	cursor := ""
	for range 4 {
		code, stdout, stderr := clitest.Run(t, Command(), "cases", "list", "--mode", "live", "--limit", "2", "--json", "--after", cursor)
		var page []struct{ ID, Cursor string }
		if err := json.Unmarshal([]byte(stdout), &page); err != nil || code != 0 {
			t.Fatalf("%d %s%s %v", code, stdout, stderr, err)
		}
		for _, c := range page {
			got, cursor = append(got, c.ID), c.Cursor
		}
	}
	if list := strings.Join(got, " "); list != "case_4 case_3 case_2 case_1 case_0" {
		t.Errorf("the pages have %s", list)
	}
	for want, args := range map[string][]string{
		"--after: the cursor is of a list with other conditions": {"--after", cursor},
		"--after: this is no cursor of a list":                   {"--after", "case_3"},
		"--limit: must be 1 or more":                             {"--limit", "0"},
	} {
		if code, _, stderr := clitest.Run(t, Command(), append([]string{"cases", "list"}, args...)...); code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("%q: %d %s", args, code, stderr)
		}
	}
}
