package collect

import (
	"context"
	"log/slog"
	"time"

	"quittance/checkout"
	"quittance/internal/connector"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/sinks/calls"
)

// wordTimeout bounds the writing of a word. Whoever waits for it takes silence for a
// pending payment.
const wordTimeout = 5 * time.Second

// Answered reports the operator's answer to a request for money, and then tells it to
// whoever waits for it.
func (j *job) Answered(h *calls.Hand, o connector.Outcome, to calls.Kind) string {
	source := checkout.SourceRequest
	if to == kindEnquire {
		source = checkout.SourceEnquiry
	}
	outcome := j.report(h, o, source)
	switch {
	case outcome == calls.OutcomeLeft || outcome == calls.OutcomePoison:
	case o.Status == checkout.OutcomeRefused:
		j.say(h, checkout.CodeCollectionRefused)
	case o.Status != checkout.OutcomeUnknown:
		j.say(h, checkout.CodeCollectionAccepted)
	}
	return outcome
}

// Enquired reports the operator's answer to an enquiry.
func (j *job) Enquired(h *calls.Hand, o connector.Outcome) string {
	return j.report(h, o, checkout.SourceEnquiry)
}

// NeverSent refuses a request that this first reader of the record has not sent and that no
// reader will send: it is surely too late, or nobody can open the payer's number. Once the
// broker has the refusal, it tells whoever waits.
func (j *job) NeverSent(h *calls.Hand, cause error) string {
	code, reason := checkout.FailureOperatorUnavailable, "never_sent"
	switch {
	case j.Unsendable(cause):
		reason = "payer_erased"
	case j.noPayee:
		code = checkout.FailurePayeeUnavailable
	}
	outcome := j.report(h, connector.Outcome{Status: checkout.OutcomeRefused, FailureCode: code, Reason: reason}, checkout.SourceRequest)
	if outcome != calls.OutcomeLeft && outcome != calls.OutcomePoison {
		j.say(h, checkout.CodeCollectionNotSent)
	}
	return outcome
}

// say writes what became of the request to the address that it names.
func (j *job) say(h *calls.Hand, word checkout.Code) {
	q := &j.request
	if q.WordCorrelationID == "" {
		return
	}
	ctx, cancel := context.WithTimeout(h, wordTimeout)
	defer cancel()
	err := h.Say(ctx, schemas.TopicReplies, q.WordPartition, q.WordCorrelationID, &record.Reply{CorrelationID: q.WordCorrelationID, Code: string(word)})
	if err != nil {
		j.sink.cfg.Log.LogAttrs(h, slog.LevelWarn, "nobody learns in time what an operator said",
			slog.String("collection_id", q.CollectionID), slog.Any("error", err))
	}
}
