package operations

import (
	"slices"
	"testing"

	"quittance/checkout"
	"quittance/internal/cases"
	"quittance/internal/deliveries"
	"quittance/internal/intake"
	"quittance/internal/jobs"
	"quittance/internal/support"
	"quittance/money/language/languagetest"
)

// Both languages have every text, and a word for each state, kind and resolution of the nouns.
func TestBothLanguagesAreWhole(t *testing.T) {
	t.Parallel()
	languagetest.Whole(t, texts)
	has := func(what string, table map[string]string, name string) {
		if table[name] == "" {
			t.Errorf("no word for %s %q", what, name)
		}
	}
	for _, s := range checkout.Statuses() {
		has("status", french.Statuses, string(s))
	}
	for _, o := range checkout.Offers {
		has("offer", french.Offers, o.ID)
	}
	for _, k := range cases.Catalog().Kinds {
		has("kind", french.Kinds, string(k))
	}
	for _, r := range cases.Catalog().Resolutions() {
		has("resolution", french.Resolutions, string(r))
	}
	for _, k := range cases.Catalog().Kinds {
		for _, code := range cases.Refusals(k) {
			has("refusal", french.Refusals, string(code))
		}
	}
	for _, s := range cases.States() {
		has("state", french.CaseStates, string(s))
	}
	for _, s := range deliveries.States {
		has("state of a delivery", french.DeliveryStates, s)
	}
	for _, p := range []cases.ProposalState{cases.ProposalOpen, cases.ProposalApproved, cases.ProposalCarriedOut, cases.ProposalRefused, cases.ProposalRejected, cases.ProposalLapsed, cases.ProposalVoid} {
		has("state of a proposal", french.ProposalStates, string(p))
	}
	for _, v := range []support.Verdict{support.VerdictPaid, support.VerdictReturned, support.VerdictUnderReview, support.VerdictUndecided, support.VerdictInProgress, support.VerdictOpen, support.VerdictNotPaid} {
		has("verdict", french.Verdicts, string(v))
	}
	for _, k := range jobs.Kinds() {
		has("kind of a job", french.Jobs.Kinds, string(k))
	}
	for _, s := range jobs.States() {
		has("state of a job", french.Jobs.States, string(s))
	}
	for _, s := range intake.ImportStates() {
		has("state of an import", french.Imports.States, string(s))
	}
	for _, kind := range []string{string(intake.KindRelease), string(intake.KindWithdrawal), string(intake.KindReading), "restoration", "dismissal"} {
		has("request", french.Imports.Requests, kind)
		has("form", french.Imports.Acts, kind)
		has("text of a form", french.Imports.ActTexts, kind)
	}
	for _, s := range []intake.WithdrawalState{intake.WithdrawalRequested, intake.WithdrawalAgreed, intake.WithdrawalApproved, intake.WithdrawalDone, intake.WithdrawalRejected} {
		has("state of a request", french.Imports.RequestStates, string(s))
	}
	for _, name := range cases.Catalog().Evidence {
		if !slices.Contains(unshownEvidence, name) {
			has("evidence", french.Evidence, name)
		}
	}
	for _, reason := range deliveries.Reasons {
		has("deferral", french.Deferrals, reason)
	}
	for _, p := range []support.Part{support.PartReferences, support.PartJournal, support.PartCommands} {
		has("part", french.Parts, string(p))
	}
}
