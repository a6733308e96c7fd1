package collect

import (
	"time"

	"quittance/internal/connector"
	"quittance/schemas/record"
	"quittance/sinks/calls"
)

// Call returns the record of a call for the journal, without the payer's number.
func (j *job) Call(kind calls.Kind, at time.Time, took time.Duration, outcome string, o connector.Outcome, err error) record.Record {
	q := &j.request
	c := &record.Call{
		Kind: string(kind), CollectionID: q.CollectionID, SessionID: q.SessionID, ApplicationID: q.ApplicationID, TenantID: q.TenantID, Livemode: q.Livemode,
		OfferID: q.OfferID, Operator: j.connector.Operator(), Account: q.Account, Amount: q.Amount, Currency: q.Currency, Enquiry: q.Enquiry,
		At: at, DurationMs: took.Milliseconds(),
		Outcome: outcome, Reason: o.Reason, FailureCode: string(o.FailureCode), OperatorRef: o.OperatorRef,
	}
	if err != nil {
		c.Fault = calls.FaultText(err)
	}
	return c
}
