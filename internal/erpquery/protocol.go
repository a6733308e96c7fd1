package erpquery

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/call"
	"quittance/internal/commands"
	"quittance/internal/kafka"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/record"
)

// Label is that of the key that seals questions and answers (secret.Keys.Seal). Who asks and who answers hold it.
const Label = "erp queries"

// ErrUnreadable says that a record is no question, or that it does not open with these keys. A retry gives the same result.
var ErrUnreadable = errors.New("not a question that opens")

// Question asks the ERP of an agency, in a mode, for the dues of a subject.
type Question struct {
	AgencyID   string `json:"tenant_id"`
	Live       bool   `json:"livemode"`
	SubjectRef string `json:"subject_ref"`
	// NotAfter is when the asker stops waiting, by its machine's clock.
	NotAfter time.Time `json:"not_after"`
}

// Answer is what came of the call to the ERP. Only Status, Fault, Detail and Duration of Result are carried: neither asker
// nor operator uses the rest.
type Answer struct {
	Result call.Result
	// Body of a 2xx as the ERP sent it, at most erp.MaxAnswer bytes; nil otherwise.
	Body []byte
}

// answer is Answer as it is sealed.
type answer struct {
	Status   int           `json:"status,omitempty"`
	Fault    string        `json:"fault,omitempty"`
	Detail   string        `json:"detail,omitempty"`
	Duration time.Duration `json:"duration_ns"`
	Body     []byte        `json:"body,omitempty"`
}

// direction is part of what a record is sealed for.
type direction string

const (
	toERP   direction = "question"
	fromERP direction = "answer"
)

// bound is what a record is sealed for. A correlation id never has a space.
func (d direction) bound(correlationID string) []byte { return []byte(string(d) + " " + correlationID) }

// Protocol encodes and decodes the records of questions and answers. It is a commands.Protocol. Safe for concurrent use.
type Protocol struct {
	Codec    *schemas.Codec
	Topology *kafka.Topology
	// Keys hold Label.
	Keys *secret.Keys
}

// Encode returns the record of a question. Questions of an agency are in one partition, so that one instance of the sink
// has them all.
func (p Protocol) Encode(q Question, to *commands.ReplyTo) (*kgo.Record, error) {
	if to == nil {
		return nil, errors.New("asking an ERP: a question needs an address for its answer")
	}
	sealed, err := p.seal(toERP, to.CorrelationID, q)
	if err != nil {
		return nil, fmt.Errorf("asking an ERP: %w", err)
	}
	value, err := p.Codec.Encode(&record.ERPQuery{CorrelationID: to.CorrelationID, ReplyPartition: to.Partition, Sealed: sealed})
	if err != nil {
		return nil, err
	}
	return &kgo.Record{Partition: p.Topology.Partition(schemas.TopicERPQueries, q.AgencyID), Key: []byte(q.AgencyID), Value: value}, nil
}

// Decode decodes the answer to the question with that correlation id. An answer to another one, or one that does not
// open, is commands.ErrForeign.
func (p Protocol) Decode(correlationID string, value []byte) (Answer, error) {
	var r record.ERPAnswer
	if err := p.Codec.Decode(value, &r); err != nil {
		return Answer{}, foreign(err)
	}
	plain, err := p.Keys.Open(Label, r.Sealed, fromERP.bound(correlationID))
	if err != nil {
		return Answer{}, foreign(err)
	}
	var a answer
	if err := json.Unmarshal(plain, &a); err != nil {
		return Answer{}, errors.New("an answer for an ERP is malformed") // err may quote it
	}
	return Answer{Result: call.Result{Status: a.Status, Fault: a.Fault, Detail: a.Detail, Duration: a.Duration}, Body: a.Body}, nil
}

func foreign(err error) error {
	return fmt.Errorf("answer of an ERP: %w: %w", commands.ErrForeign, err)
}

// Code returns why there is no usable answer, or ok.
func (Protocol) Code(a Answer) string {
	if a.Result.OK() {
		return "ok"
	}
	return a.Result.Reason()
}

// Open reads a question and where its answer goes. The error wraps ErrUnreadable, except when the schema registry cannot be
// reached: the caller may then try again.
func (p Protocol) Open(rec *kgo.Record) (q Question, to commands.ReplyTo, err error) {
	var r record.ERPQuery
	switch err := p.Codec.Decode(rec.Value, &r); {
	case errors.Is(err, schemas.ErrUndecodable):
		return q, to, fmt.Errorf("%w: %w", ErrUnreadable, err)
	case err != nil:
		return q, to, err
	}
	plain, err := p.Keys.Open(Label, r.Sealed, toERP.bound(r.CorrelationID))
	if err != nil {
		return q, to, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	if json.Unmarshal(plain, &q) != nil || q.AgencyID == "" || r.ReplyPartition < 0 || r.ReplyPartition >= p.Topology.Count(schemas.TopicERPAnswers) {
		return q, to, fmt.Errorf("%w: malformed", ErrUnreadable)
	}
	return q, commands.ReplyTo{CorrelationID: r.CorrelationID, Partition: r.ReplyPartition}, nil
}

// Reply returns the record of an answer.
func (p Protocol) Reply(to commands.ReplyTo, a Answer) (*kgo.Record, error) {
	sealed, err := p.seal(fromERP, to.CorrelationID, answer{
		Status: a.Result.Status, Fault: a.Result.Fault, Detail: a.Result.Detail, Duration: a.Result.Duration, Body: a.Body,
	})
	if err != nil {
		return nil, fmt.Errorf("answering for an ERP: %w", err)
	}
	value, err := p.Codec.Encode(&record.ERPAnswer{CorrelationID: to.CorrelationID, Sealed: sealed})
	if err != nil {
		return nil, err
	}
	return &kgo.Record{Topic: p.Topology.Name(schemas.TopicERPAnswers), Partition: to.Partition, Key: []byte(to.CorrelationID), Value: value}, nil
}

func (p Protocol) seal(d direction, correlationID string, content any) ([]byte, error) {
	plain, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	return p.Keys.Seal(Label, plain, d.bound(correlationID))
}
