package connector_test

import (
	"errors"
	"testing"

	"quittance/internal/connector"
)

// A refused request of which the operator has no payout is another answer than a payout that the operator calls refused.
func TestRefusedRequest(t *testing.T) {
	t.Parallel()
	refusal := connector.PayoutOutcome{Status: connector.PayoutRefused, Cause: connector.CauseAccount}
	for status, absent := range map[connector.PayoutStatus]bool{
		connector.PayoutUnknown: true, connector.PayoutRefused: false, connector.PayoutPending: false, connector.PayoutPaid: false,
	} {
		o, err := connector.PayoutOfRefused(refusal, connector.PayoutOutcome{Status: status}, nil)
		if err != nil || o.Absent != absent || absent && o.Status != connector.PayoutRefused {
			t.Errorf("%s: %+v, %v", status, o, err)
		}
	}
	if _, err := connector.PayoutOfRefused(refusal, connector.PayoutOutcome{}, &connector.Error{Err: errors.New("time-out")}); !connector.Uncertain(err) {
		t.Errorf("without an enquiry: %v", err)
	}
}
