package collect

import (
	"context"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/internal/connector"
	"quittance/internal/kafka/consume"
	"quittance/schemas"
	"quittance/schemas/record"
)

// wordTimeout bounds the writing of a word. Whoever waits for it takes silence for a
// pending payment.
const wordTimeout = 5 * time.Second

// answered reports the operator's answer to a request for money, and then tells it to
// whoever waits for it.
func (j *job) answered(o connector.Outcome, source checkout.Source) string {
	outcome := j.report(o, source)
	switch {
	case outcome == outcomeLeft || outcome == outcomePoison:
	case o.Status == checkout.OutcomeRefused:
		j.say(checkout.CodeCollectionRefused)
	case o.Status != checkout.OutcomeUnknown:
		j.say(checkout.CodeCollectionAccepted)
	}
	return outcome
}

// clockTolerance is the greatest difference between the clocks of two members.
const clockTolerance = 5 * time.Second

// surelyLate waits until it is too late for every member, and reports whether the record
// still belongs to this one. After a crash of this member the next one reads the record
// again. Its clock may be behind, and it sends the request while not_after is not past by
// its own clock: then a payment that was refused would be debited. The wait is by the
// machine's time, so that a member that was stopped for a while learns first that it has
// lost the partition.
func (j *job) surelyLate() bool {
	for {
		if !consume.Sleep(j.waiting, clockTolerance) {
			return false
		}
		if j.sink.cfg.Now().Sub(j.request.NotAfter) > clockTolerance {
			return true
		}
	}
}

// neverSent refuses a request that this first reader of the record has not sent and that no
// reader will send: it is surely too late, or nobody can open the payer's number. Once the
// broker has the refusal, it tells whoever waits.
func (j *job) neverSent(cause checkout.FailureCode, reason string) string {
	outcome := j.report(connector.Outcome{Status: checkout.OutcomeRefused, FailureCode: cause, Reason: reason}, checkout.SourceRequest)
	if outcome != outcomeLeft && outcome != outcomePoison {
		j.say(checkout.CodeCollectionNotSent)
	}
	return outcome
}

// say writes what became of the request to the address that it names.
func (j *job) say(word checkout.Code) {
	q := &j.request
	if q.WordCorrelationID == "" {
		return
	}
	value, err := j.sink.cfg.Codec.Encode(&record.Reply{CorrelationID: q.WordCorrelationID, Code: string(word)})
	if err == nil {
		ctx, cancel := context.WithTimeout(j.calls, wordTimeout)
		defer cancel()
		err = j.sink.produce(ctx, &kgo.Record{
			Topic: j.sink.cfg.Topology.Name(schemas.TopicReplies), Partition: q.WordPartition, Key: []byte(q.WordCorrelationID), Value: value,
		})
	}
	if err != nil {
		j.sink.cfg.Log.LogAttrs(j.calls, slog.LevelWarn, "nobody learns in time what an operator said",
			slog.String("collection_id", q.CollectionID), slog.Any("error", err))
	}
}
