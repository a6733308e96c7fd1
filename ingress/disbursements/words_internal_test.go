package disbursements

import (
	"testing"

	"quittance/disbursement"
	"quittance/disbursement/policy"
	"quittance/internal/disbursements"
	"quittance/money/language/languagetest"
)

// Both languages have every text, and a word for each status, event, difference and refusal that the pages can meet.
func TestBothLanguagesAreWhole(t *testing.T) {
	t.Parallel()
	languagetest.Whole(t, texts)
	languagetest.Whole(t, importTexts)
	has := func(what string, table map[string]string, name string) {
		t.Helper()
		if table[name] == "" {
			t.Errorf("no word for %s %q", what, name)
		}
	}
	for _, s := range disbursement.Statuses() {
		has("status", french.Statuses, string(s))
	}
	for _, s := range disbursement.LineStatuses() {
		has("status of a line", french.LineStatuses, string(s))
	}
	agency := map[disbursement.EventType]bool{
		disbursement.EventPolicy: true, disbursement.EventRoster: true, disbursement.EventRevoked: true,
	}
	for _, e := range disbursement.EventTypes() {
		if !agency[e] {
			has("event", french.Steps, string(e))
		}
	}
	for _, k := range disbursements.ChangeKinds() {
		has("kind of difference", frenchImport.ChangeKinds, string(k))
	}
	for _, k := range disbursements.WarningKinds() {
		has("kind of warning", frenchImport.WarningKinds, string(k))
	}
	// What the processor may answer to an import, which the texts of other steps do not have.
	for _, c := range []disbursement.Code{
		disbursement.CodeMalformed, disbursement.CodeRegistryOld, disbursement.CodeRefLive, disbursement.CodeTooManyLive, disbursement.CodeNoPolicy, disbursement.CodeScope, disbursement.CodeCurrency,
		disbursement.CodeTooManyLines, disbursement.CodeSum, disbursement.CodeRefTaken, disbursement.CodeMustCorrect, disbursement.CodeNotCorrected,
	} {
		has("refusal of an import", frenchImport.CodeRefused, string(c))
	}
	// and to the sealing of a draft
	for _, c := range []disbursement.Code{
		disbursement.CodeEmpty, disbursement.CodeOtherContent, disbursement.CodeNoPolicy, disbursement.CodeCurrency, disbursement.CodeNames, disbursement.CodeDate, disbursement.CodeDayLimit,
		disbursement.CodeAboveTiers, disbursement.CodeTooFew,
	} {
		has("refusal of a sealing", french.Refusals, string(c))
	}
	for _, d := range disbursements.Differences() {
		has("difference", french.Differences, string(d))
	}
	for _, c := range []policy.NameCheck{policy.CheckOff, policy.CheckNew, policy.CheckAll} {
		has("name check", french.NameChecks, string(c))
	}
	// What the processor may answer to the commands of these pages: disbursement/approve.go, roster.go, send.go (stop).
	for _, c := range []disbursement.Code{
		disbursement.CodeMalformed, disbursement.CodeBatchUnknown, disbursement.CodeStatus, disbursement.CodeHeld, disbursement.CodeNotHeld, disbursement.CodeRegistryOld,
		disbursement.CodeLevel, disbursement.CodeNotListed, disbursement.CodeMaker, disbursement.CodeTwice, disbursement.CodeNotInForce, disbursement.CodeNotSigned,
		disbursement.CodeNeedsTwo, disbursement.CodeNotMaker, disbursement.CodePolicyFault, disbursement.CodeRosterFault, disbursement.CodePersonUnknown,
		disbursement.CodeKeyTaken, disbursement.CodeNumberTaken,
		disbursement.CodeLineUnknown, disbursement.CodeLineStatus, disbursement.CodeContested, disbursement.CodeUnproven, disbursement.CodeCorrected, disbursement.CodeAttempts,
		disbursement.CodeOver, disbursement.CodeNoCase, disbursement.CodeEvidence, disbursement.CodeUnderway, disbursement.CodeRefLive, disbursement.CodeTooManyLive,
	} {
		has("refusal", french.Refusals, string(c))
	}
	for _, c := range disbursement.Cases().Kinds {
		if c != disbursement.CaseHeld { // of a batch, whose page has the reason
			has("case", french.Cases, string(c))
		}
	}
	has("reason", french.Reasons, disbursement.ReasonTriedOften)
	for _, name := range []string{"import", "seal", "discard"} {
		has("outcome", french.Done, name)
	}
	for _, s := range steps {
		if french.Sign[string(s.verdict)].Send == "" || french.Done[string(s.verdict)] == "" {
			t.Errorf("no words for the signature %s", s.verdict)
		}
	}
}

// Each field that a policy can be at fault in has its mend, with the number of its tier.
func TestFaultsOfAPolicyAreNamed(t *testing.T) {
	t.Parallel()
	v := &visit{w: &english}
	for _, field := range []string{"currency", "tiers", "line_from", "day_limit", "approve_within", "pay_within_days", "name_check", "release", "watchers", "people", "people[0].id", "people[1].roles", "people[0].for", "person"} {
		if got := v.fault(field); got == field || got == "" {
			t.Errorf("%s has no mend: %q", field, got)
		}
	}
	for field, want := range map[string]string{
		"tiers[1].up_to":     "Tier 2: " + english.Mends["up_to"],
		"tiers[0].levels":    "Tier 1: " + english.Mends["levels"],
		"tiers[0].levels[2]": "Tier 1: " + english.Mends["levels"],
	} {
		if got := v.fault(field); got != want {
			t.Errorf("%s: %q, want %q", field, got, want)
		}
	}
}
