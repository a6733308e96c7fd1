package operatorcase

import (
	"encoding/json"
	"strings"
	"testing"

	"quittance/casework"
	"quittance/checkout"
	"quittance/cmd/internal/cli/clitest"
	"quittance/internal/cases"
	"quittance/internal/identity"
	"quittance/test/registries"
)

// `cases approve` ended with 0 although the processor had refused to honour the money, so that a clerk told
// the citizen that the payment counts. It waits for the answer, and ends with 1 and the reason.
func TestApprovalThatIsRefused(t *testing.T) {
	h := registries.SetUp(t)
	h.Seed(t, registries.Edit(t, "single_approval_below: 5000", "single_approval_below: 0"))
	t.Setenv("QUITTANCE_POSTGRES", h.DSN)
	t.Setenv("QUITTANCE_MASTER_KEYS", h.Keys.Reveal())
	store := cases.NewStore(h.Pool).Verifying(h.Keys)
	c := cases.Case{
		Case:      casework.Case{ID: "case_1", Kind: checkout.CaseLatePayment, Amount: 5075, Currency: "XAF", OpenedAt: registries.Epoch},
		InSession: true, Sequence: 1, SessionID: "chs_1", AgencyID: registries.AgencyA, Mode: "live", Clerks: []string{}, Evidence: map[string]string{},
	}
	if err := store.Apply(t.Context(), []cases.Case{c}, nil); err != nil {
		t.Fatal(err)
	}
	acts := func(name string) {
		t.Helper()
		m, err := identity.AddStaff(t.Context(), h.Pool, h.Keys, registries.Actor, "", identity.StaffRequest{Name: name, Agency: "impots"}, registries.Epoch)
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv("QUITTANCE_STAFF_KEY", m.Secret.Reveal())
	}
	acts("One")
	if code, stdout, stderr := clitest.Run(t, Command(), "cases", "propose", c.ID, "honour", "--reason", "r"); code != 0 || !strings.Contains(stdout, "Another person") {
		t.Fatalf("%d %s%s", code, stdout, stderr)
	}
	acts("Two")
	go func() { // the processor
		for t.Context().Err() == nil {
			d, err := store.Show(t.Context(), nil, c.ID, registries.Epoch)
			if err == nil && d.Proposals[0].State == cases.ProposalApproved {
				a := cases.Approved{CaseID: c.ID, Number: 1, Resolution: checkout.ResolutionHonour, DecidedBy: d.Proposals[0].DecidedBy}
				if err := store.Answered(t.Context(), a, checkout.CodeInFlight, registries.Epoch); err != nil {
					t.Error(err)
				}
				return
			}
		}
	}()
	code, stdout, stderr := clitest.Run(t, Command(), "cases", "approve", c.ID, "--json")
	var shown struct {
		State     string
		Proposals []struct{ State, Refusal string }
	}
	if err := json.Unmarshal([]byte(stdout), &shown); err != nil || code != 1 || shown.State != "open" || shown.Proposals[0].State != "refused" || shown.Proposals[0].Refusal != string(checkout.CodeInFlight) {
		t.Errorf("%d %+v %v", code, shown, err)
	}
	if !strings.Contains(stderr, "nothing was done: checkout.collection_in_flight: another payment of the order runs") {
		t.Errorf("%s", stderr)
	}
}

// Each end of an approval is told apart.
func TestOutcome(t *testing.T) {
	t.Parallel()
	for state, want := range map[cases.ProposalState]string{
		cases.ProposalCarriedOut: "", cases.ProposalOpen: "", cases.ProposalApproved: "not known yet: `quittance cases show case_1`", cases.ProposalRefused: "nothing was done: finding.changed: the rows have changed",
	} {
		d := cases.Detail{Case: cases.Case{Case: casework.Case{ID: "case_1"}}, Proposals: []cases.Proposal{{State: state, Resolution: "match", Refusal: cases.RefusalChanged}}}
		err := outcome(d)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", state, err)
		}
	}
}
