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

// The case about an ERP that refuses our credentials says how many confirmations wait for it.
func TestShowOfAnERP(t *testing.T) {
	h := registries.SetUp(t)
	h.Seed(t, registries.Edit(t, "", ""))
	t.Setenv("QUITTANCE_POSTGRES", h.DSN)
	t.Setenv("QUITTANCE_MASTER_KEYS", h.Keys.Reveal())
	c := cases.Case{
		Case:      casework.Case{ID: "case_1", Kind: checkout.CaseConfirmation, Amount: 5075, Currency: "XAF", Reason: checkout.ReasonCredentials, OpenedAt: registries.Epoch},
		InSession: true, Sequence: 1, SessionID: "chs_1", AgencyID: registries.AgencyA, Mode: "test", Clerks: []string{}, Evidence: map[string]string{},
	}
	other := c
	other.ID, other.Reason = "case_2", "http_422"
	if err := cases.NewStore(h.Pool).Apply(t.Context(), []cases.Case{c, other}, nil); err != nil {
		t.Fatal(err)
	}
	h.Exec(t, `SELECT make_delivery_day('2026-03-01')`)
	h.Exec(t, `INSERT INTO deliveries (occurred_on, delivery_id, kind, destination_id, event_id, event, application_id, tenant_id, session_id, livemode, occurred_at, state, attempts, round, last_outcome_at, body)
		SELECT '2026-03-01', 'dlv_' || n, 'erp', $1 || CASE n WHEN 1 THEN '/live' ELSE '/test' END, 'tx-' || n, 'confirmation', '', $1, 'chs_1', n = 1, '2026-03-01T12:00:00Z', 'waiting', 0, 0, '2026-03-01T12:00:00Z', 'body' FROM generate_series(1, 3) n`, registries.AgencyA)
	for id, want := range map[string][2]string{"case_1": {"Confirmations that wait  2", `"confirmations_waiting": 2`}, "case_2": {"Reason", `"confirmations_waiting": null`}} {
		if code, stdout, stderr := clitest.Run(t, Command(), "cases", "show", id); code != 0 || !strings.Contains(stdout, want[0]) || strings.Contains(stdout, "that wait") != (id == "case_1") {
			t.Errorf("%s: %d %s%s", id, code, stdout, stderr)
		}
		if code, stdout, stderr := clitest.Run(t, Command(), "cases", "show", id, "--json"); code != 0 || !strings.Contains(stdout, want[1]) {
			t.Errorf("%s: %d %s%s", id, code, stdout, stderr)
		}
	}
}
