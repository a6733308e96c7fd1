package collect

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/connector"
	"quittance/schemas"
	"quittance/schemas/record"
)

const (
	// tellWithin bounds the one try to write calls.
	tellWithin = 2 * time.Second
	// mostFault is the length of the text of a fault in a record, in characters.
	mostFault = 200
)

// note keeps a call for the journal: kind is that of the call, which may be an enquiry
// within a request for money. While a request is in hand, a fault that repeats is kept once.
func (j *job) note(kind string, took time.Duration, o connector.Outcome, err error) {
	q := &j.request
	c := &record.Call{
		Kind: kind, CollectionID: q.CollectionID, SessionID: q.SessionID, ApplicationID: q.ApplicationID, TenantID: q.TenantID, Livemode: q.Livemode,
		OfferID: q.OfferID, Operator: j.connector.Operator(), Account: q.Account, Amount: q.Amount, Currency: q.Currency, Enquiry: q.Enquiry,
		At: j.sink.cfg.Now().Add(-took), DurationMs: took.Milliseconds(),
		Outcome: string(o.Status), Reason: o.Reason, FailureCode: string(o.FailureCode), OperatorRef: o.OperatorRef,
	}
	fault := ""
	if err != nil {
		c.Outcome, c.Fault = string(connector.FaultOf(err)), beginning(err.Error())
		if fault = kind + c.Outcome; fault == j.faulted {
			return
		}
	}
	j.faulted = fault
	j.noted = append(j.noted, c)
}

// beginning returns the first characters of a text.
func beginning(text string) string {
	if letters := []rune(text); len(letters) > mostFault {
		return string(letters[:mostFault]) + "…"
	}
	return text
}

// tell writes the noted calls to collections.calls. Nothing is decided by them, so it tries
// once: a payment never waits for them.
func (j *job) tell() {
	if len(j.noted) == 0 {
		return
	}
	topology := j.sink.cfg.Topology
	records := make([]*kgo.Record, 0, len(j.noted))
	var err error
	for _, c := range j.noted {
		value, encoding := j.sink.cfg.Codec.Encode(c)
		err = errors.Join(err, encoding)
		records = append(records, &kgo.Record{
			Topic: topology.Name(schemas.TopicCalls), Partition: topology.Partition(schemas.TopicCalls, c.CollectionID), Key: []byte(c.CollectionID), Value: value,
		})
	}
	j.noted = nil
	if err == nil {
		ctx, cancel := context.WithTimeout(j.calls, tellWithin)
		defer cancel()
		err = j.sink.produce(ctx, records...)
	}
	if err != nil && j.calls.Err() == nil {
		j.sink.untold.Add(float64(len(records)))
		j.warn("writing calls for the journal", err)
	}
}
