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

	"quittance/disbursement"
	"quittance/internal/call"
	"quittance/internal/disbursements"
	"quittance/internal/erp"
	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/mapping/batches"
	"quittance/schemas/record"
)

// ComparerGroup is the consumer group of the comparer.
const ComparerGroup = "erp-lines"

// Bounds of an instance.
const (
	// readsPerERP is how many batches of an ERP are read at once. Each answer may have 64 MiB.
	readsPerERP = 2
	// comparedAtOnce are the questions of all ERPs that are asked or wait, and the events in hand. A question waits ten minutes at
	// most, so that ERPs that are away keep none of others waiting.
	comparedAtOnce = 4096
	// firstPause and longestPause are between two calls to an ERP that gives no usable answer.
	firstPause, longestPause = time.Second, time.Minute
)

// Outcomes of questions about lines.
const (
	linesSame    = "same"
	linesOther   = "other"
	linesWithout = "unanswered" // the ERP gave no usable answer in time: the processor asks again
)

// BatchTeller sends commands to the processor of batches, and returns when the broker has them.
type BatchTeller interface {
	TellAll(ctx context.Context, cmds []disbursement.Command) error
}

// ComparerConfig configures a Comparer. Required are all fields but Pause.
type ComparerConfig struct {
	Kafka     kafka.Config
	Codec     *schemas.Codec
	Processor BatchTeller
	ERPs      ERPs
	Client    *erp.Client
	// MACs are those of disbursements.LabelERPLines.
	MACs *secret.MACs
	// Pause is the first pause between two calls to an ERP that gives no usable answer; a second when zero.
	Pause   time.Duration
	Now     func() time.Time
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Comparer asks the ERP of a batch that waits for its release whether it has the same lines, and tells the processor. The event
// batch.erp_asked is the question. An ERP that gives no usable answer is asked again, with growing pauses, until the question is
// void: the processor has asked again then, until the batch's last day of payment. A question that is read twice is answered
// twice, and the second answer changes nothing.
type Comparer struct {
	cfg      ComparerConfig
	consumer *consume.Consumer
	answers  *prometheus.CounterVec // outcome
	calls    prometheus.Counter     // without a usable answer

	mu   sync.Mutex
	erps map[string]*reads // by erp.ID; those with questions
}

// reads has a token of each call to an ERP that is under way.
type reads struct {
	calls chan struct{}
	users int // guarded by Comparer.mu
}

// NewComparer makes a comparer. It connects when it runs. Any number of them share the work.
func NewComparer(cfg ComparerConfig) (*Comparer, error) {
	if cfg.Codec == nil || cfg.Processor == nil || cfg.ERPs == nil || cfg.Client == nil || cfg.MACs == nil || cfg.Now == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("erp comparer: Codec, Processor, ERPs, Client, MACs, Now, Log and Metrics are required")
	}
	if cfg.Pause == 0 {
		cfg.Pause = firstPause
	}
	with := promauto.With(cfg.Metrics)
	c := &Comparer{
		cfg: cfg, erps: map[string]*reads{},
		answers: with.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_erp_lines_total", Help: "Questions whether ERPs still have the lines of batches that wait for their release, by outcome: same, other (the batch is held), unanswered (no usable answer within ten minutes; the processor asks again).",
		}, []string{"outcome"}),
		calls: with.NewCounter(prometheus.CounterOpts{
			Name: "quittance_erp_lines_failures_total", Help: "Calls to ERPs for the lines of a batch that waits for its release, without a usable answer.",
		}),
	}
	for _, o := range []string{linesSame, linesOther, linesWithout} {
		c.answers.WithLabelValues(o)
	}
	var err error
	c.consumer, err = consume.New(consume.Config{
		Kafka: cfg.Kafka, Group: ComparerGroup, Topics: []string{schemas.Disbursement.Events}, Poison: schemas.TopicPoisonDeliveries, AtOnce: comparedAtOnce, Log: cfg.Log,
		Poisoned: with.NewCounter(prometheus.CounterOpts{
			Name: "quittance_erp_lines_poison_total", Help: "Events of disbursement batches that cannot be decoded, so that no ERP is asked about them.",
		}),
	})
	if err != nil {
		return nil, err
	}
	with.NewGaugeFunc(prometheus.GaugeOpts{Name: "quittance_erp_lines_waiting", Help: "Batches whose release waits for their ERP's lines, as this instance knows."}, c.waiting)
	return c, nil
}

// Run answers until ctx ends, then returns nil. It returns an error only when it could not begin.
func (c *Comparer) Run(ctx context.Context) error {
	return consume.Each(ctx, c.consumer, c.decode, c.answer)
}

// decode returns the batch that a question is about; nil for an event that is none.
func (c *Comparer) decode(rec *kgo.Record) (*disbursement.Batch, error) {
	var r record.DisbursementEvent
	if err := c.cfg.Codec.Decode(rec.Value, &r); err != nil {
		return nil, err
	}
	if disbursement.EventType(r.Type) != disbursement.EventAsked {
		return nil, nil
	}
	return batches.ToEvent(&r).Batch, nil
}

// answer answers a question. It returns false for one that the next member is to answer.
func (c *Comparer) answer(ctx, calls context.Context, b *disbursement.Batch) bool {
	if b == nil {
		return true
	}
	same, outcome, done := c.compare(ctx, calls, *b)
	if !done {
		return false
	}
	if outcome == linesWithout {
		c.answers.WithLabelValues(outcome).Inc()
		return true
	}
	cmd := disbursement.Command{
		At: c.cfg.Now().UTC().Truncate(time.Millisecond), TenantID: b.TenantID, Live: b.Live, Batch: b.ID, Do: disbursement.ERPSame{AskedAt: b.AskedAt, Same: same},
	}
	for pause := c.cfg.Pause; ; pause = longer(pause) {
		err := c.cfg.Processor.TellAll(calls, []disbursement.Command{cmd})
		if err == nil {
			c.answers.WithLabelValues(outcome).Inc()
			return true
		}
		c.cfg.Log.LogAttrs(calls, slog.LevelWarn, "the processor is not told yet what an ERP has of a batch", slog.String("batch", b.ID), slog.Any("error", err))
		if !consume.Sleep(ctx, pause) {
			return false
		}
	}
}

// compare asks the ERP until it has a usable answer or the question is void. done is false when the next member is to ask.
func (c *Comparer) compare(ctx, calls context.Context, b disbursement.Batch) (same bool, outcome string, done bool) {
	id := erp.ID(b.TenantID, b.Live)
	slots := c.join(id)
	defer c.leave(id, slots)
	for pause := c.cfg.Pause; ; pause = longer(pause) {
		if !c.cfg.Now().Before(b.AskedAt.Add(disbursement.AskAgain)) {
			return false, linesWithout, true
		}
		select {
		case slots.calls <- struct{}{}:
		case <-ctx.Done():
			return false, "", false
		}
		same, err := c.ask(calls, b)
		<-slots.calls
		switch {
		case err == nil && same:
			return true, linesSame, true
		case err == nil:
			c.cfg.Log.LogAttrs(calls, slog.LevelWarn, "an ERP has other lines of a batch than were approved", slog.String("batch", b.ID), slog.String("erp", id))
			return false, linesOther, true
		}
		c.calls.Inc()
		c.cfg.Log.LogAttrs(calls, slog.LevelWarn, "an ERP was asked whether it has the same lines of a batch, and gave no usable answer", slog.String("batch", b.ID), slog.String("erp", id), slog.Any("error", err))
		if !consume.Sleep(ctx, pause) {
			return false, "", false
		}
	}
}

// ask asks the ERP once.
func (c *Comparer) ask(ctx context.Context, b disbursement.Batch) (bool, error) {
	settings, ok := c.cfg.ERPs.ERP(b.TenantID, b.Live)
	if !ok { // it was removed meanwhile
		return false, &disbursements.ERPError{Result: call.Result{Fault: call.FaultUnusable}}
	}
	return (&disbursements.ERP{Client: c.cfg.Client, Settings: settings, MACs: c.cfg.MACs}).Same(ctx, b)
}

func longer(pause time.Duration) time.Duration { return min(2*pause, longestPause) }

// join returns what bounds the calls to an ERP.
func (c *Comparer) join(id string) *reads {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.erps[id] == nil {
		c.erps[id] = &reads{calls: make(chan struct{}, readsPerERP)}
	}
	c.erps[id].users++
	return c.erps[id]
}

func (c *Comparer) leave(id string, r *reads) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.users--; r.users == 0 {
		delete(c.erps, id)
	}
}

func (c *Comparer) waiting() (n float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.erps {
		n += float64(r.users)
	}
	return n
}
