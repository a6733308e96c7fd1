package pages

import (
	"testing"
	"time"

	"quittance/checkout"
	"quittance/checkout/page"
)

// Money that was given back no longer arrived late or was paid: the page says that it was
// returned, whatever else is true of the session.
func TestEndOfASession(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	approved := &checkout.Collection{Status: checkout.CollectionApproved}
	for name, c := range map[string]struct {
		s    checkout.Session
		want page.State
	}{
		"open":                   {checkout.Session{Status: checkout.StatusOpen, ExpiresAt: now.Add(time.Hour)}, ""},
		"over, and not ended":    {checkout.Session{Status: checkout.StatusOpen, ExpiresAt: now}, page.StateExpired},
		"paid":                   {checkout.Session{Status: checkout.StatusCompleted, Collection: approved}, page.StateCompleted},
		"late":                   {checkout.Session{Status: checkout.StatusExpired, Collection: approved}, page.StateLate},
		"undecided":              {checkout.Session{Status: checkout.StatusExpired, Collection: &checkout.Collection{Status: checkout.CollectionUndecided}}, page.StateUndecided},
		"paid and given back":    {checkout.Session{Status: checkout.StatusCompleted, Collection: approved, ReversedAt: now}, page.StateReversed},
		"late and given back":    {checkout.Session{Status: checkout.StatusExpired, Collection: approved, ReversedAt: now}, page.StateReversed},
		"another amount is kept": {checkout.Session{Status: checkout.StatusFailed, Collection: &checkout.Collection{Status: checkout.CollectionUndecided, Mismatched: true}}, page.StateMismatched},
	} {
		if got := end(c.s, now); got != c.want {
			t.Errorf("%s: the page is %q, want %q", name, got, c.want)
		}
	}
}

// The pages of a refused, an expired and a cancelled session did not say whether money was taken.
// They say that none was only after the operator's own refusal, or when nothing was sent. After
// silence, a time-out or a sum that does not fit the account may have been debited.
func TestNothingWasDebited(t *testing.T) {
	t.Parallel()
	refused := func(code checkout.FailureCode, reports ...checkout.OutcomeStatus) *checkout.Collection {
		c := &checkout.Collection{Status: checkout.CollectionRefused, FailureCode: code}
		for _, status := range reports {
			c.Reports = append(c.Reports, checkout.Report{Status: status})
		}
		return c
	}
	for name, c := range map[string]struct {
		s    checkout.Session
		want bool
	}{
		"nothing was sent": {checkout.Session{Status: checkout.StatusExpired}, true},
		"the operator's refusal": {checkout.Session{
			Status: checkout.StatusFailed, FailureCode: checkout.FailureInsufficientFunds, Collection: refused(checkout.FailureInsufficientFunds, checkout.OutcomeRefused),
		}, true},
		"the operator's refusal after the time-out": {checkout.Session{
			Status: checkout.StatusFailed, FailureCode: checkout.FailureApprovalTimeout, Collection: refused(checkout.FailureWrongPIN, checkout.OutcomeRefused),
		}, true},
		"refused before reports were kept": {checkout.Session{Status: checkout.StatusFailed, Collection: refused(checkout.FailureCardDeclined)}, true},
		"not approved in time":             {checkout.Session{Status: checkout.StatusFailed, Collection: refused(checkout.FailureApprovalTimeout, checkout.OutcomeRefused)}, false},
		"unknown to the operator":          {checkout.Session{Status: checkout.StatusFailed, Collection: refused(checkout.FailureOperatorUnavailable, checkout.OutcomeUnknown)}, false},
		"the operator's error":             {checkout.Session{Status: checkout.StatusFailed, Collection: refused(checkout.FailureOperatorError, checkout.OutcomeRefused)}, false},
		"a code of tomorrow":               {checkout.Session{Status: checkout.StatusFailed, Collection: refused("collect.of_tomorrow", checkout.OutcomeRefused)}, false},
		"unknown, then refused":            {checkout.Session{Status: checkout.StatusFailed, Collection: refused(checkout.FailureRejected, checkout.OutcomeUnknown, checkout.OutcomeRefused)}, false},
		"approved, then refused":           {checkout.Session{Status: checkout.StatusFailed, Collection: refused(checkout.FailureRejected, checkout.OutcomeApproved, checkout.OutcomeRefused)}, false},
		"undecided":                        {checkout.Session{Status: checkout.StatusFailed, Collection: &checkout.Collection{Status: checkout.CollectionUndecided}}, false},
		"another sum":                      {checkout.Session{Status: checkout.StatusExpired, Orphans: []string{"another"}}, false},
		"a case":                           {checkout.Session{Status: checkout.StatusCancelled, Cases: []checkout.Case{{}}}, false},
		"refused by reference": {checkout.Session{Status: checkout.StatusExpired, Refusals: []checkout.Refusal{
			{FailureCode: checkout.FailureRejected, Collection: refused(checkout.FailureRejected, checkout.OutcomeRefused)},
		}}, true},
		"one of them in doubt": {checkout.Session{Status: checkout.StatusExpired, Refusals: []checkout.Refusal{
			{FailureCode: checkout.FailureApprovalTimeout, Collection: refused(checkout.FailureApprovalTimeout, checkout.OutcomeRefused)},
			{FailureCode: checkout.FailureRejected, Collection: refused(checkout.FailureRejected, checkout.OutcomeRefused)},
		}}, false},
	} {
		if got := notDebited(c.s); got != c.want {
			t.Errorf("%s: nothing was debited: %v, want %v", name, got, c.want)
		}
	}
}
