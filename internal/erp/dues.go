package erp

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"quittance/internal/call"
	"quittance/internal/registry"
)

const (
	sharedByDefault = 10 * time.Second
	// remembered is how long the time of a good answer is known.
	remembered = 24 * time.Hour
	sweepEvery = time.Minute
)

// Errors of Dues.
var (
	// ErrNoERP: the agency has no ERP in this mode.
	ErrNoERP = errors.New("the agency has no ERP in this mode")
	// ErrReference: the text cannot be a subject_ref (IsReference).
	ErrReference = errors.New("not a subject_ref")
)

// SourceStatus says whether an ERP has answered.
type SourceStatus string

// The statuses.
const (
	SourceOK SourceStatus = "ok"
	// SourceUnavailable: the ERP is unreachable or slow, or its answer is not valid. It is
	// unknown whether the subject owes anything.
	SourceUnavailable SourceStatus = "unavailable"
)

// Answer is what an agency's ERP says that a subject owes. Nothing is owed only when Status
// is SourceOK and there are neither dues with an outstanding amount nor refused ones.
type Answer struct {
	Status SourceStatus
	// AsOf is the service's time of the ERP's answer. With SourceUnavailable it is that of
	// the last good answer that this instance got within 24 hours; zero for none.
	AsOf time.Time
	// Reason is why the ERP is unavailable, for logs and operators: call.Result.Reason.
	Reason string
	// Dues that can be shown, paid ones included, in the ERP's order.
	Dues []Due
	// Refused are the items that break the contract, with the reasons.
	Refused []Refused
}

// Find returns the due with a reference.
func (a Answer) Find(ref string) (Due, bool) {
	i := slices.IndexFunc(a.Dues, func(d Due) bool { return d.Ref == ref })
	if i < 0 {
		return Due{}, false
	}
	return a.Dues[i], true
}

// DuesRegistry is the part of the registry that Dues needs. It answers from memory and is
// safe for concurrent use.
type DuesRegistry interface {
	Catalogue
	// ERP returns the agency's ERP for live or test payments; false when it has none.
	ERP(agencyID string, live bool) (registry.ERPSettings, bool)
	// Agency finds an agency by its id.
	Agency(id string) (registry.Agency, bool)
}

// Asker asks an agency's ERP for the dues of a subject: a Client, or a client of package erpquery, which has
// `sink erp` ask. Safe for concurrent use.
type Asker interface {
	// Dues returns the dues that can be shown and the refused ones, or why there are none: no call takes longer than
	// ReadTimeout and a second.
	Dues(ctx context.Context, s registry.ERPSettings, subjectRef string) ([]Due, []Refused, call.Result)
}

// DuesConfig configures Dues. Client, Registry and Now are required.
type DuesConfig struct {
	Client   Asker
	Registry DuesRegistry
	// Now is the service's clock in UTC.
	Now func() time.Time
	// Shared is how long a good answer serves further calls of List; zero: 10 s.
	Shared time.Duration
	// Metrics may be nil.
	Metrics prometheus.Registerer
}

// Dues reads dues. An instance makes one call at a time for an agency, mode and subject, and
// keeps a good answer for DuesConfig.Shared; nobody can pay from it. The services of the dues are those
// of the registry at the moment of the call, also for a kept answer. Safe for concurrent use.
type Dues struct {
	cfg      DuesConfig
	seconds  *prometheus.HistogramVec
	waiting  prometheus.Gauge
	rechecks *prometheus.CounterVec

	mu       sync.Mutex
	subjects map[subject]*pulls
	// rechecked are the times, by the service's clock, just before the ERP confirmed the dues
	// of a session, by its id.
	rechecked map[string]time.Time
	swept     time.Time
}

type subject struct {
	agencyID string
	live     bool
	ref      string
}

// pulls are the calls for one subject, guarded by Dues.mu.
type pulls struct {
	// running is the call under way, next the one that follows it; nil for none.
	running, next *pull
	last          Answer    // the last good answer; without dues once it is too old to be shared
	lastAt        time.Time // by the machine's clock; zero for none
}

// pull is one call. answer is set before done is closed.
type pull struct {
	done   chan struct{}
	answer Answer
}

// NewDues makes a reader of dues.
func NewDues(cfg DuesConfig) (*Dues, error) {
	if cfg.Client == nil || cfg.Registry == nil || cfg.Now == nil {
		return nil, errors.New("reading dues: Client, Registry and Now are required")
	}
	if cfg.Metrics == nil {
		cfg.Metrics = prometheus.NewRegistry()
	}
	cfg.Shared = cmp.Or(cfg.Shared, sharedByDefault)
	with := promauto.With(cfg.Metrics)
	d := &Dues{
		cfg: cfg, subjects: map[subject]*pulls{}, rechecked: map[string]time.Time{},
		rechecks: with.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_erp_rechecks_total", Help: "Portal sessions whose dues were asked for again before a payment, by outcome: unchanged, changed (the session is cancelled), trusted (the ERP does not answer, its last answer is recent), unknown (the ERP does not answer, nothing may be paid).",
		}, []string{"outcome"}),
		waiting: with.NewGauge(prometheus.GaugeOpts{Name: "quittance_erp_dues_waiting", Help: "Callers that wait for the dues of an agency's ERP."}),
		seconds: with.NewHistogramVec(prometheus.HistogramOpts{
			Name: "quittance_erp_dues_seconds", Help: "How long GET /dues of an agency's ERP took, by outcome: ok, or why there is no usable answer.",
			Buckets: []float64{.05, .1, .2, .3, .5, 1, 2, 5},
		}, []string{"agency", "mode", "outcome"}),
	}
	for _, outcome := range []string{string(RecheckUnchanged), string(RecheckChanged), "trusted", string(RecheckUnknown)} {
		d.rechecks.WithLabelValues(outcome)
	}
	return d, nil
}

// List returns the dues of a subject for display: the last good answer while it is
// shared, or else that of the call under way or of a new one. An ERP that does not answer
// is no error. Errors are ErrNoERP, ErrReference and the end of ctx.
func (d *Dues) List(ctx context.Context, agencyID string, live bool, subjectRef string) (Answer, error) {
	return d.ask(ctx, subject{agencyID, live, subjectRef}, func(p *pulls, start func() *pull) *pull {
		switch {
		case !p.lastAt.IsZero() && time.Since(p.lastAt) <= d.cfg.Shared:
			return nil
		case p.running == nil:
			return start()
		}
		return p.running
	})
}

// Fresh is List for a checkout: the call to the ERP begins after the call of Fresh. It
// shares only a call that is not sent yet.
func (d *Dues) Fresh(ctx context.Context, agencyID string, live bool, subjectRef string) (Answer, error) {
	return d.ask(ctx, subject{agencyID, live, subjectRef}, func(p *pulls, start func() *pull) *pull {
		if p.running == nil {
			return start()
		}
		if p.next == nil {
			p.next = &pull{done: make(chan struct{})}
		}
		return p.next
	})
}

// ask waits for the call that choose returns. Nil means the last answer.
func (d *Dues) ask(ctx context.Context, s subject, choose func(p *pulls, start func() *pull) *pull) (Answer, error) {
	if !IsReference(s.ref) {
		return Answer{}, ErrReference
	}
	if _, ok := d.cfg.Registry.ERP(s.agencyID, s.live); !ok {
		return Answer{}, ErrNoERP
	}
	d.mu.Lock()
	p := d.subjects[s]
	if p == nil {
		d.sweep()
		p = &pulls{}
		d.subjects[s] = p
	}
	chosen := choose(p, func() *pull {
		p.running = &pull{done: make(chan struct{})}
		// The call goes on for the others who wait for it. It has a time-out of its own.
		go d.run(context.WithoutCancel(ctx), s, p)
		return p.running
	})
	answer := p.last
	d.waiting.Inc()
	defer d.waiting.Dec()
	d.mu.Unlock()
	if chosen != nil {
		select {
		case <-ctx.Done():
			return Answer{}, ctx.Err()
		case <-chosen.done:
			answer = chosen.answer
		}
	}
	answer.Dues = Resolve(s.agencyID, answer.Dues, d.cfg.Registry)
	return answer, nil
}

// run makes the running call of a subject, and then the next ones.
func (d *Dues) run(ctx context.Context, s subject, p *pulls) {
	for more := true; more; {
		dues, refused, r := d.call(ctx, s)
		d.mu.Lock()
		current := p.running
		if r.OK() {
			p.last, p.lastAt = Answer{Status: SourceOK, AsOf: d.cfg.Now(), Dues: dues, Refused: refused}, time.Now()
			current.answer = p.last
		} else {
			current.answer = Answer{Status: SourceUnavailable, AsOf: p.last.AsOf, Reason: r.Reason()}
		}
		p.running, p.next = p.next, nil
		more = p.running != nil
		d.mu.Unlock()
		close(current.done)
	}
}

func (d *Dues) call(ctx context.Context, s subject) ([]Due, []Refused, call.Result) {
	settings, ok := d.cfg.Registry.ERP(s.agencyID, s.live)
	if !ok {
		return nil, nil, call.Result{Fault: call.FaultUnusable} // it was removed meanwhile
	}
	dues, refused, r := d.cfg.Client.Dues(ctx, settings, s.ref)
	agency, _ := d.cfg.Registry.Agency(s.agencyID)
	d.seconds.WithLabelValues(agency.Slug, registry.Mode(s.live), cmp.Or(r.Reason(), "ok")).Observe(r.Duration.Seconds())
	return dues, refused, r
}

// sweep forgets subjects that nobody asks about. The caller holds mu.
func (d *Dues) sweep() {
	if time.Since(d.swept) < sweepEvery {
		return
	}
	d.swept = time.Now()
	now := d.cfg.Now()
	maps.DeleteFunc(d.rechecked, func(_ string, at time.Time) bool { return now.After(at.Add(recheckedWithin)) })
	for s, p := range d.subjects {
		age := time.Since(p.lastAt)
		switch {
		case p.running != nil:
		case age > remembered:
			delete(d.subjects, s)
		case age > d.cfg.Shared:
			p.last = Answer{AsOf: p.last.AsOf}
		}
	}
}
