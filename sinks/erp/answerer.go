package erp

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/call"
	"quittance/internal/commands"
	"quittance/internal/erp"
	"quittance/internal/erpquery"
	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/schemas"
)

// AnswererGroup is the consumer group of the answerer.
const AnswererGroup = "erp-answerer"

// Bounds of an instance. All questions to an ERP are in one partition, so that those of an ERP are the same however many
// instances there are.
const (
	// callsPerERP is the number of questions that an ERP is asked at once. Confirmations have a number of their own
	// (DefaultMaxInFlight), so that no crowd of readers delays money.
	callsPerERP = 64
	// questionsPerERP are those that are asked or wait. Further ones are answered erp.FaultBusy at once.
	questionsPerERP = 512
	// questionsAtOnce are those of all ERPs that are asked or wait. While there are so many, no more are read.
	questionsAtOnce = 16 * questionsPerERP
	// wayBack is what of the asker's patience is kept for the answer.
	wayBack = 200 * time.Millisecond
	// leastCall is the least time for which an ERP is called: a question that has waited for longer is answered
	// erp.FaultBusy.
	leastCall = time.Second
	// sendWithin bounds the sending of an answer.
	sendWithin = 2 * time.Second
)

// Outcomes of questions.
const (
	questionAnswered   = "answered"   // also with a fault of the ERP
	questionBusy       = "busy"       // the ERP has too many questions
	questionLate       = "late"       // the asker had left
	questionUnreadable = "unreadable" // it does not open with these keys
	questionUnsent     = "unsent"     // Kafka did not take the answer
)

// AnswererConfig configures an Answerer. All fields are required.
type AnswererConfig struct {
	Kafka    kafka.Config
	Protocol erpquery.Protocol
	ERPs     ERPs
	Client   *erp.Client
	Log      *slog.Logger
	Metrics  prometheus.Registerer
}

// Answerer asks the ERPs what other roles want to know, and sends the answers (package erpquery). A question may be asked
// twice after a crash or a rebalance: it only reads. One that nobody waits for any more is dropped.
type Answerer struct {
	cfg       AnswererConfig
	consumer  *consume.Consumer
	questions *prometheus.CounterVec // outcome

	mu   sync.Mutex
	erps map[string]*queue // by erp.ID; those with questions
}

// queue has the questions to one ERP.
type queue struct {
	inHand int           // guarded by Answerer.mu
	calls  chan struct{} // has a token of each call under way
}

// NewAnswerer makes an answerer. It connects when it runs. Any number of them share the work.
func NewAnswerer(cfg AnswererConfig) (*Answerer, error) {
	if cfg.Protocol.Codec == nil || cfg.Protocol.Topology == nil || cfg.Protocol.Keys == nil || cfg.ERPs == nil || cfg.Client == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("erp answerer: Protocol, ERPs, Client, Log and Metrics are required")
	}
	with := promauto.With(cfg.Metrics)
	a := &Answerer{cfg: cfg, erps: map[string]*queue{}, questions: with.NewCounterVec(prometheus.CounterOpts{
		Name: "quittance_erp_questions_total", Help: "Questions of other roles to ERPs, by outcome: answered (also with a fault of the ERP), busy (too many to this ERP), late (the asker had left), unreadable (not sealed with our keys), unsent (Kafka did not take the answer).",
	}, []string{"outcome"})}
	for _, outcome := range []string{questionAnswered, questionBusy, questionLate, questionUnreadable, questionUnsent} {
		a.questions.WithLabelValues(outcome)
	}
	var err error
	a.consumer, err = consume.New(consume.Config{
		Kafka: cfg.Kafka, Group: AnswererGroup, Topics: []string{schemas.TopicERPQueries}, AtOnce: questionsAtOnce, Log: cfg.Log,
		// No question is set aside: an hour later nobody wants the answer, and it has personal data.
		Poison: schemas.TopicPoisonDeliveries, Poisoned: a.questions.WithLabelValues(questionUnreadable),
		Options: []kgo.Opt{
			kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0), kgo.ProducerBatchCompression(kgo.NoCompression()),
			kgo.ProducerBatchMaxBytes(schemas.MaxERPAnswer), kgo.RecordDeliveryTimeout(sendWithin),
		},
	})
	if err != nil {
		return nil, err
	}
	with.NewGaugeFunc(prometheus.GaugeOpts{Name: "quittance_erp_questions_open", Help: "Questions of other roles to ERPs that are asked or wait."},
		func() float64 { return float64(a.consumer.InHand()) })
	return a, nil
}

// Run answers until ctx ends, then returns nil. It returns an error only when it could not begin.
func (a *Answerer) Run(ctx context.Context) error {
	return consume.Each(ctx, a.consumer, a.open, a.answer)
}

// asked is a question with the address for its answer.
type asked struct {
	erpquery.Question
	to         commands.ReplyTo
	unreadable bool
}

func (a *Answerer) open(rec *kgo.Record) (asked, error) {
	q, to, err := a.cfg.Protocol.Open(rec)
	if errors.Is(err, erpquery.ErrUnreadable) {
		a.cfg.Log.Error("a question to an ERP cannot be read", slog.Int("partition", int(rec.Partition)), slog.Int64("offset", rec.Offset), slog.Any("error", err))
		return asked{unreadable: true}, nil
	}
	return asked{Question: q, to: to}, err
}

// answer answers a question. It returns false for one that the next member is to answer.
func (a *Answerer) answer(ctx, calls context.Context, q asked) bool {
	if q.unreadable {
		a.questions.WithLabelValues(questionUnreadable).Inc()
		return true
	}
	if time.Until(q.NotAfter) <= wayBack {
		a.questions.WithLabelValues(questionLate).Inc()
		return true
	}
	said, outcome, done := a.ask(ctx, calls, q.Question)
	if !done {
		return false
	}
	if err := a.send(calls, q.to, said); err != nil {
		outcome = questionUnsent
		a.cfg.Log.LogAttrs(calls, slog.LevelWarn, "an ERP's answer was not sent to who asked", slog.Any("error", err))
	}
	a.questions.WithLabelValues(outcome).Inc()
	return true
}

// ask calls the ERP when it is the question's turn. done is false when another member is to call it.
func (a *Answerer) ask(ctx, calls context.Context, q erpquery.Question) (said erpquery.Answer, outcome string, done bool) {
	settings, ok := a.cfg.ERPs.ERP(q.AgencyID, q.Live)
	if !ok { // it was removed meanwhile
		return erpquery.Answer{Result: call.Result{Fault: call.FaultUnusable}}, questionAnswered, true
	}
	busy := erpquery.Answer{Result: call.Result{Fault: erp.FaultBusy}}
	line := a.join(erp.ID(q.AgencyID, q.Live))
	if line == nil {
		return busy, questionBusy, true
	}
	defer a.leave(erp.ID(q.AgencyID, q.Live), line)
	turn := time.NewTimer(time.Until(q.NotAfter) - wayBack - leastCall)
	defer turn.Stop()
	select {
	case line.calls <- struct{}{}:
		defer func() { <-line.calls }()
	case <-turn.C:
		return busy, questionBusy, true
	case <-ctx.Done():
		return busy, "", false
	}
	if ctx.Err() != nil { // the partition moved while it waited
		return busy, "", false
	}
	body, result := a.cfg.Client.FetchDues(calls, settings, q.SubjectRef, time.Until(q.NotAfter)-wayBack)
	return erpquery.Answer{Result: result, Body: body}, questionAnswered, result.Fault != call.FaultInterrupted
}

// join adds a question to those of an ERP; nil when it has too many.
func (a *Answerer) join(id string) *queue {
	a.mu.Lock()
	defer a.mu.Unlock()
	line := a.erps[id]
	if line == nil {
		line = &queue{calls: make(chan struct{}, callsPerERP)}
		a.erps[id] = line
	}
	if line.inHand >= questionsPerERP {
		return nil
	}
	line.inHand++
	return line
}

func (a *Answerer) leave(id string, line *queue) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if line.inHand--; line.inHand == 0 {
		delete(a.erps, id)
	}
}

func (a *Answerer) send(ctx context.Context, to commands.ReplyTo, said erpquery.Answer) error {
	rec, err := a.cfg.Protocol.Reply(to, said)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sendWithin)
	defer cancel()
	return a.consumer.Produce(ctx, rec)
}
