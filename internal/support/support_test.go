package support_test

import (
	"testing"
	"time"

	"quittance/casework"
	"quittance/checkout"
	"quittance/internal/support"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func TestPaymentRef(t *testing.T) {
	t.Parallel()
	ref := valid(t)
	for typed, want := range map[string]string{
		ref: ref, ref[:4] + " " + ref[4:8] + " " + ref[8:12] + " " + ref[12:]: ref, ref[:4] + "-" + ref[4:]: ref, ref[:8] + "\u00a0" + ref[8:]: ref,
		"": "", "DOSSIER-17": "", ref[:15]: "", ref + "0": "", ref[:15] + string('0'+(ref[15]-'0'+1)%10): "",
	} {
		if got := support.PaymentRef(typed); got != want {
			t.Errorf("PaymentRef(%q) = %q, want %q", typed, got, want)
		}
	}
}

// valid returns a payment reference.
func valid(t *testing.T) string {
	t.Helper()
	for n := range 1000 {
		ref := "12345678901234" + string(rune('0'+n/10%10)) + string(rune('0'+n%10))
		if checkout.ValidPaymentRef(ref) {
			return ref
		}
	}
	t.Fatal("no reference is valid")
	return ""
}

// Each state of a session has one short answer.
func TestVerdict(t *testing.T) {
	t.Parallel()
	collection := func(status checkout.CollectionStatus) *checkout.Collection {
		return &checkout.Collection{Status: status}
	}
	open := []checkout.Case{{Case: casework.Case{ID: "case_1", Kind: checkout.CaseLatePayment}}}
	closed := []checkout.Case{{Case: casework.Case{ID: "case_1", Kind: checkout.CaseLatePayment, Resolution: checkout.ResolutionRefund}}}
	for name, c := range map[string]struct {
		session checkout.Session
		want    support.Verdict
	}{
		"nobody tried":              {checkout.Session{Status: checkout.StatusOpen}, support.VerdictOpen},
		"the payer is asked":        {checkout.Session{Status: checkout.StatusOpen, Collection: collection(checkout.CollectionPending)}, support.VerdictInProgress},
		"paid":                      {checkout.Session{Status: checkout.StatusCompleted, Collection: collection(checkout.CollectionApproved)}, support.VerdictPaid},
		"paid, with other money":    {checkout.Session{Status: checkout.StatusCompleted, Cases: []checkout.Case{{Case: casework.Case{Kind: checkout.CaseOrphan}}}}, support.VerdictPaid},
		"given back":                {checkout.Session{Status: checkout.StatusCompleted, ReversedAt: noon}, support.VerdictReturned},
		"late money":                {checkout.Session{Status: checkout.StatusExpired, Collection: collection(checkout.CollectionApproved), Cases: open}, support.VerdictUnderReview},
		"late money that went back": {checkout.Session{Status: checkout.StatusExpired, Collection: collection(checkout.CollectionApproved), Cases: closed}, support.VerdictNotPaid},
		"not decided":               {checkout.Session{Status: checkout.StatusFailed, Collection: collection(checkout.CollectionUndecided)}, support.VerdictUndecided},
		"refused":                   {checkout.Session{Status: checkout.StatusFailed, Collection: collection(checkout.CollectionRefused)}, support.VerdictNotPaid},
		"cancelled":                 {checkout.Session{Status: checkout.StatusCancelled}, support.VerdictNotPaid},
	} {
		if got := (support.Payment{Session: c.session}).Verdict(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
