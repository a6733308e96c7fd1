package erpquery_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/call"
	"quittance/internal/commands"
	"quittance/internal/erpquery"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/test/erps"
)

var ok = call.Result{Status: 200}

const one = `{"items": [{"erp_due_ref": "D-1", "label": "Patente", "amount_minor": 5, "outstanding_minor": 5, "original_minor": 5, "currency": "XAF", "allow_partial": false}]}`

// Whoever may write to the topic of answers cannot answer for an ERP: an answer to another question, one that is sealed
// with other keys or for a question, and the question itself are dropped. The asker waits on for its own.
func TestForeignAnswersAreDropped(t *testing.T) {
	t.Parallel()
	h := erps.NewHop(t)
	client := h.Ask(t, 30*time.Second)
	topics := h.Protocol.Topology
	sink, err := h.Kafka.Producer(kgo.ConsumeTopics(topics.Name(schemas.TopicERPQueries)), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	said := make(chan int, 1)
	go func() {
		dues, _, _ := client.Dues(t.Context(), registry.ERPSettings{AgencyID: "a"}, "TP-1")
		said <- len(dues)
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var asked *kgo.Record
	for asked == nil && ctx.Err() == nil {
		sink.PollFetches(ctx).EachRecord(func(r *kgo.Record) { asked = r })
	}
	q, to, err := h.Protocol.Open(asked)
	if err != nil || q.SubjectRef != "TP-1" || q.AgencyID != "a" || q.Live {
		t.Fatalf("%+v, %v", q, err)
	}
	reply := func(p erpquery.Protocol, to commands.ReplyTo) *kgo.Record {
		r, err := p.Reply(to, erpquery.Answer{Result: ok, Body: []byte(`{"items": []}`)})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	other := h.Protocol
	other.Keys = secret.GenerateKeys()
	moved := reply(h.Protocol, commands.ReplyTo{CorrelationID: "another", Partition: to.Partition})
	moved.Key = []byte(to.CorrelationID)
	turned := reply(h.Protocol, to)
	var question record.ERPQuery
	if err := h.Protocol.Codec.Decode(asked.Value, &question); err != nil {
		t.Fatal(err)
	}
	if turned.Value, err = h.Protocol.Codec.Encode(&record.ERPAnswer{CorrelationID: to.CorrelationID, Sealed: question.Sealed}); err != nil {
		t.Fatal(err)
	}
	itself := reply(h.Protocol, to)
	itself.Value = asked.Value
	good, err := h.Protocol.Reply(to, erpquery.Answer{Result: ok, Body: []byte(one)})
	if err != nil {
		t.Fatal(err)
	}
	if err := sink.ProduceSync(t.Context(), moved, reply(other, to), turned, itself, good).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if n := <-said; n != 1 {
		t.Errorf("%d dues, want that of the true answer", n)
	}
}

// A question without an address, or with keys that are not for questions, is not sent.
func TestQuestionsThatCannotBeSent(t *testing.T) {
	t.Parallel()
	h := erps.NewHop(t)
	if _, err := h.Protocol.Encode(erpquery.Question{AgencyID: "a"}, nil); err == nil {
		t.Error("a question without an address")
	}
	h.Protocol.Keys = h.Protocol.Keys.Subset("ingress", nil)
	begun := time.Now()
	if _, _, r := h.Ask(t, 0).Dues(t.Context(), registry.ERPSettings{AgencyID: "a"}, "x"); r.Reason() != call.FaultUnusable || time.Since(begun) > 3*time.Second {
		t.Errorf("without the key: %+v after %v", r, time.Since(begun))
	}
}
