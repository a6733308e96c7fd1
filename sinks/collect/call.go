package collect

import (
	"time"

	"quittance/internal/connector"
	"quittance/schemas/record"
	"quittance/sinks/calls"
)

// mostFault is the length of the text of a fault in a record, in characters.
const mostFault = 200

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
		c.Fault = beginning(err.Error())
	}
	return c
}

// beginning returns the first characters of a text.
func beginning(text string) string {
	if letters := []rune(text); len(letters) > mostFault {
		return string(letters[:mostFault]) + "…"
	}
	return text
}
