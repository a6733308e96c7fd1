package erp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/internal/deliveries"
	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/schemas"
	"quittance/schemas/origin"
	"quittance/schemas/record"
)

// reportWithin bounds the sending of a batch of answers.
const reportWithin = 30 * time.Second

// ReporterGroup is the consumer group of the reporter.
const ReporterGroup = "erp-reporter"

// Teller sends commands to the processor and returns when the broker has acknowledged all
// of them. An error says that some may not have been sent.
type Teller interface {
	TellAll(ctx context.Context, cmds []checkout.Command) error
}

// ReporterConfig configures a Reporter. All fields are required.
type ReporterConfig struct {
	Kafka     kafka.Config
	Codec     *schemas.Codec
	Processor Teller
	// Outcomes has the key of the sink erp, which wrote the answers that are told. With AcceptUnproven whoever
	// may write the topic can say that an ERP has confirmed.
	Outcomes origin.Outcomes
	// Now returns the service's time in UTC.
	Now     func() time.Time
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Reporter tells the processor what the ERPs answered to confirmations. It reads the
// outcomes that the worker has recorded in deliveries.attempts, sends each as the command
// Confirmed, and commits its offsets afterwards. So no answer is lost: before its outcome
// is recorded the delivery is sent again, and from then on the outcome is read until its
// command is acknowledged. The command may be sent several times; it has one effect.
type Reporter struct {
	cfg      ReporterConfig
	consumer *consume.Consumer
	answers  *prometheus.CounterVec // answer
}

// NewReporter makes a reporter. It connects when it runs. Any number of them share the
// work.
func NewReporter(cfg ReporterConfig) (*Reporter, error) {
	if cfg.Codec == nil || cfg.Processor == nil || cfg.Outcomes.Workers[string(Kind)] == nil || cfg.Now == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("erp reporter: Codec, Processor, Outcomes, Now, Log and Metrics are required")
	}
	with := promauto.With(cfg.Metrics)
	r := &Reporter{cfg: cfg, answers: with.NewCounterVec(prometheus.CounterOpts{
		Name: "quittance_erp_answers_total", Help: "Answers of ERPs to confirmations that were told to the processor. One that is told again is counted again.",
	}, []string{"answer"})}
	for _, a := range []checkout.ConfirmationAnswer{checkout.AnswerAccepted, checkout.AnswerRefused, checkout.AnswerFailed} {
		r.answers.WithLabelValues(string(a))
	}
	var err error
	r.consumer, err = consume.New(consume.Config{
		Kafka: cfg.Kafka, Group: ReporterGroup, Topics: []string{schemas.TopicAttempts}, Poison: schemas.TopicPoisonDeliveries,
		Timeout: reportWithin, Log: cfg.Log,
		Poisoned: with.NewCounter(prometheus.CounterOpts{
			Name: "quittance_erp_answers_poison_total", Help: "Outcomes of deliveries that cannot be decoded, or that say what an ERP answered without a proof of the sink erp.",
		}),
		Failures: with.NewCounter(prometheus.CounterOpts{
			Name: "quittance_erp_answers_failures_total", Help: "Batches of answers that could not be sent to the processor and were read again.",
		}),
	})
	if err != nil {
		return nil, err
	}
	with.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "quittance_erp_answers_lag_seconds", Help: "Age of the oldest outcome read that the processor is not told of yet; 0 when there is none.",
	}, r.consumer.Lag)
	return r, nil
}

// Run reports until ctx ends, then returns nil. While Kafka is away it waits. It returns
// an error only when it could not begin.
func (r *Reporter) Run(ctx context.Context) error {
	return consume.Batch(ctx, r.consumer, r.decode, r.report)
}

// decode returns the command of an outcome; its Do is nil for an outcome that no processor
// is told of.
func (r *Reporter) decode(rec *kgo.Record) (checkout.Command, error) {
	var a record.Attempt
	if err := r.cfg.Codec.Decode(rec.Value, &a); err != nil {
		return checkout.Command{}, err
	}
	answer, ok := answerOf(&a)
	if !ok {
		return checkout.Command{}, nil
	}
	if err := r.cfg.Outcomes.Verify(rec, &a); err != nil {
		return checkout.Command{}, err
	}
	if a.Delivery.TenantID == "" || a.Delivery.EventID == "" {
		return checkout.Command{}, fmt.Errorf("a confirmation without agency or id: %w", schemas.ErrUndecodable)
	}
	return checkout.Command{TenantID: a.Delivery.TenantID, SessionID: a.Delivery.SessionID, Do: checkout.Confirmed{
		TransactionID: a.Delivery.EventID, Answer: answer, AnsweredAt: a.At, Reason: a.Reason,
	}}, nil
}

// answerOf returns the ERP's answer in an outcome. Only the first failure of a delivery is
// an answer: it tells that the ERP is awaited. Of an ERP that refuses our credentials the first
// answer is told, so that one case is opened, which ends when the ERP accepts that confirmation.
func answerOf(a *record.Attempt) (checkout.ConfirmationAnswer, bool) {
	if a.Delivery.Kind != string(Kind) || a.Reason == deliveries.ReasonRecorded {
		return "", false
	}
	switch deliveries.Outcome(a.Outcome) {
	case deliveries.OutcomeDelivered:
		return checkout.AnswerAccepted, true
	case deliveries.OutcomeNeedsOperator, deliveries.OutcomeExhausted:
		return checkout.AnswerRefused, true
	case deliveries.OutcomeFailed:
		return checkout.AnswerFailed, a.Delivery.Attempt == 1
	case deliveries.OutcomeDeferred:
		return checkout.AnswerRefused, a.Reason == deliveries.ReasonCredentials
	case deliveries.OutcomeSuperseded:
	}
	return "", false
}

// report tells the processor of the answers, in the order of their outcomes.
func (r *Reporter) report(ctx context.Context, read []checkout.Command, _ []consume.Move) error {
	now := r.cfg.Now()
	told := make([]checkout.Command, 0, len(read))
	for _, cmd := range read {
		if cmd.Do != nil {
			cmd.At = now
			told = append(told, cmd)
		}
	}
	if err := r.cfg.Processor.TellAll(ctx, told); err != nil {
		return fmt.Errorf("telling the processor what ERPs answered: %w", err)
	}
	for _, cmd := range told {
		if do, ok := cmd.Do.(checkout.Confirmed); ok {
			r.answers.WithLabelValues(string(do.Answer)).Inc()
		}
	}
	return nil
}
