// Package cases keeps the operator cases (internal/cases) current and carries out what
// staff agreed on.
//
// It reads the cases from checkout.events, the poison topics, reconciliation.events and
// cases.events, and writes them with its positions. It sends each step of a proposal to the processor as the command
// NoteProposal, which makes it an event, and approved proposals as the command Resolve. It
// records the answers. Both commands are idempotent: what has no answer is sent again, and
// what was done answers so again.
//
// No processor knows a case without a session. The sink itself writes the events of its
// opening, of the steps of its proposals and of its exit to cases.events. After a crash
// between two steps it writes an event again, with the same id and contents. It records an
// exit only after it has read the topic to its end and found the case open, so that a case
// has one exit, also after Postgres was restored.
//
// The matcher opens and ends cases of breaks and of its proposals. It reads the approvals in
// cases.events and carries them out, or refuses them; so does it with closes. Its answer in
// reconciliation.events ends the proposal, and then the case, whose exit is an event in cases.events
// too.
//
// It also carries out what people ask for on the page about people (docs/design/staff.md).
package cases

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"quittance/casework"
	"quittance/checkout"
	"quittance/internal/cases"
	"quittance/internal/identity"
	"quittance/internal/journal"
	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/schemas"
	"quittance/schemas/origin"
)

const (
	defaultAgain = 5 * time.Second
	claimEvery   = 500 * time.Millisecond
	claimAtOnce  = 8
	gaugesEvery  = 5 * time.Second
	// openAtOnce is the number of openings that are written together.
	openAtOnce = 100
	// patience bounds the writing of an answer, and the wait for the end of cases.events.
	patience  = 5 * time.Second
	lookEvery = 20 * time.Millisecond
	// answersWithin is how long the answer of the matcher may be on its way when an approval lapses.
	answersWithin = time.Hour
)

// errBehind says that cases.events has records that are not in Postgres yet.
var errBehind = errors.New("the events of cases without a session are not read to their end yet")

// Asker sends a command to the processor and waits for its answer.
type Asker interface {
	Ask(ctx context.Context, cmd checkout.Command) (checkout.Answer, error)
}

// Events is the topic cases.events.
type Events interface {
	Write(ctx context.Context, events ...checkout.Event) error
	// Proven reports whether the topic has a record that the present keys prove.
	Proven(ctx context.Context) (bool, error)
	// Ends returns the full name of the topic and its end by partition.
	Ends(ctx context.Context) (topic string, ends map[int32]int64, err error)
}

// People are what people ask for on the page about people: identity.Book.
type People interface {
	// Waiting returns the ids of the requests that wait, the oldest first, and when the oldest one was made.
	Waiting(ctx context.Context) (ids []string, oldest time.Time, err error)
	// CarryOut carries a request out, once. After an error it waits.
	CarryOut(ctx context.Context, id string, now time.Time) (identity.PeopleRequest, error)
}

// Config of Cases. All fields but Again are required.
type Config struct {
	Kafka     kafka.Config
	Codec     *schemas.Codec
	Store     *cases.Store
	People    People
	Processor Asker
	Events    Events
	// Proof says who is believed in cases.events; required.
	Proof *origin.History
	// Verify verifies the signatures of staff's steps.
	Verify casework.Verify
	// Now returns the service's time in UTC.
	Now func() time.Time
	// Again is how long after a try without an answer a proposal is sent again; 5 s when
	// zero. It must be longer than Processor and Events wait.
	Again   time.Duration
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Cases is the sink. Any number of them share the work.
type Cases struct {
	cfg      Config
	consumer *consume.Consumer
	answers  *prometheus.CounterVec // outcome
	open     *prometheus.GaugeVec   // kind
	oldest   *prometheus.GaugeVec   // kind
	approved prometheus.Gauge
	unproven *prometheus.CounterVec // reason
	people   prometheus.Gauge
}

// Outcomes of an approved proposal.
const (
	outcomeCarriedOut = "carried_out"
	outcomeRefused    = "refused"
	outcomeNoAnswer   = "no_answer"
)

// Group is the consumer group of the sink.
const Group = "cases"

// PoisonTopics returns the topics whose records become cases.
func PoisonTopics() []string {
	var out []string
	for _, t := range schemas.Topics() {
		if strings.HasSuffix(t.Name, ".poison") {
			out = append(out, t.Name)
		}
	}
	return out
}

// Topics returns what the sink reads.
func Topics() []string {
	return append([]string{schemas.TopicEvents, schemas.TopicCases, schemas.TopicReconciliation}, PoisonTopics()...)
}

// New makes a sink. It connects when it runs.
func New(cfg Config) (*Cases, error) {
	if cfg.Codec == nil || cfg.Store == nil || cfg.People == nil || cfg.Processor == nil || cfg.Events == nil || cfg.Proof == nil || cfg.Verify == nil || cfg.Now == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("cases: Codec, Store, People, Processor, Events, Proof, Verify, Now, Log and Metrics are required")
	}
	cfg.Again = cmp.Or(cfg.Again, defaultAgain)
	with := promauto.With(cfg.Metrics)
	c := &Cases{
		cfg: cfg,
		answers: with.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_cases_proposals_total", Help: "Approved proposals that were carried out, by outcome. One without an answer is tried again.",
		}, []string{"outcome"}),
		open: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "quittance_cases_open", Help: "Open operator cases by kind.",
		}, []string{"kind"}),
		oldest: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "quittance_cases_oldest_open_seconds", Help: "Age of the oldest open operator case by kind; 0 when there is none.",
		}, []string{"kind"}),
		approved: with.NewGauge(prometheus.GaugeOpts{
			Name: "quittance_cases_oldest_approved_seconds", Help: "Time since the approval of the oldest proposal that has not been answered; 0 when there is none.",
		}),
	}
	c.people = with.NewGauge(prometheus.GaugeOpts{
		Name: "quittance_cases_oldest_people_request_seconds", Help: "Age of the oldest request of the page about people that was not carried out yet; 0 when there is none.",
	})
	c.unproven = with.NewCounterVec(prometheus.CounterOpts{
		Name: "quittance_cases_unproven_total", Help: "Proposals and approvals that were refused because they are not signed where a person's key was checked, or not as they stand there, by reason.",
	}, []string{"reason"})
	for _, code := range checkout.UnprovenCodes() {
		c.unproven.WithLabelValues(string(code))
	}
	journal.CountCaseEvents(with, "quittance_cases", cfg.Proof)
	for _, outcome := range []string{outcomeCarriedOut, outcomeRefused, outcomeNoAnswer} {
		c.answers.WithLabelValues(outcome)
	}
	var err error
	c.consumer, err = consume.New(consume.Config{
		Kafka: cfg.Kafka, Group: Group, Topics: Topics(), Poison: schemas.TopicPoisonCases,
		Positions: cfg.Store.Positions, Control: true, Log: cfg.Log,
		Poisoned: with.NewCounter(prometheus.CounterOpts{
			Name: "quittance_cases_poison_total", Help: "Records that cannot be decoded or kept.",
		}),
		Failures: with.NewCounter(prometheus.CounterOpts{
			Name: "quittance_cases_failures_total", Help: "Batches that could not be applied and were read again.",
		}),
	})
	if err != nil {
		return nil, err
	}
	with.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "quittance_cases_lag_seconds", Help: "Age of the oldest event read whose cases are not in Postgres yet; 0 when there is none.",
	}, c.consumer.Lag)
	return c, nil
}

// Run works until ctx ends, then returns nil. While Kafka or Postgres is away it waits. It
// returns an error only when it could not begin.
func (c *Cases) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return consume.Batch(ctx, c.consumer, c.decode, c.apply) })
	g.Go(func() error { return c.beginProof(ctx) })
	g.Go(func() error { return c.every(ctx, claimEvery, "carrying out proposals", c.carryOut) })
	g.Go(func() error { return c.every(ctx, claimEvery, "recording cases without a session", c.recordOpenings) })
	g.Go(func() error { return c.every(ctx, claimEvery, "closing cases of the matcher", c.recordEnds) })
	g.Go(func() error {
		return c.every(ctx, claimEvery, "carrying out what people ask for about people", c.carryOutPeople)
	})
	g.Go(func() error { return c.every(ctx, gaugesEvery, "counting cases", c.gauges) })
	return g.Wait()
}

// beginProof writes the opening of a case once more, as it is, unless cases.events has a record that the present keys prove:
// after it readers believe nothing without a proof. A topic without records has nothing to be believed.
func (c *Cases) beginProof(ctx context.Context) error {
	begun := false
	return consume.Every(ctx, claimEvery, func(ctx context.Context) error {
		if begun {
			return nil
		}
		proven, err := c.cfg.Events.Proven(ctx)
		if err != nil || proven {
			begun = err == nil
			return err
		}
		known, err := c.cfg.Store.Recorded(ctx)
		if err != nil || known == nil {
			return err
		}
		return c.cfg.Events.Write(ctx, known.Opening())
	}, func(err error) {
		c.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "the proof of events of cases could not begin; it is tried again", slog.Any("error", err))
	})
}

// every repeats do until ctx ends. It logs the first of several errors in a row.
func (c *Cases) every(ctx context.Context, pause time.Duration, doing string, do func(context.Context) error) error {
	return consume.Every(ctx, pause, do, func(err error) {
		c.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "a step of operator cases failed; it is tried again", slog.String("doing", doing), slog.Any("error", err))
	})
}

func (c *Cases) decode(r *kgo.Record) ([]cases.Case, error) {
	topic := strings.TrimPrefix(r.Topic, c.cfg.Kafka.Prefix)
	switch topic {
	case schemas.TopicEvents:
		return cases.ReadEvent(c.cfg.Codec, r.Value)
	case schemas.TopicCases:
		if err := c.cfg.Proof.Verify(r); err != nil {
			return nil, err
		}
		return cases.ReadCaseEvent(c.cfg.Codec, r.Value)
	case schemas.TopicReconciliation:
		return cases.ReadFinding(c.cfg.Codec, r.Value)
	}
	return []cases.Case{cases.ReadPoison(topic, r)}, nil
}

func (c *Cases) apply(ctx context.Context, records [][]cases.Case, moves []consume.Move) error {
	var all []cases.Case
	for _, r := range records {
		all = append(all, r...)
	}
	return c.cfg.Store.Apply(ctx, all, moves)
}

// recordOpenings writes the openings of cases without a session. They are recorded when
// the sink reads them.
func (c *Cases) recordOpenings(ctx context.Context) error {
	for {
		list, err := c.cfg.Store.Unrecorded(ctx, openAtOnce)
		if err != nil || len(list) == 0 {
			return err
		}
		// Most of them may be in the topic already: after the round before this one, or after
		// the rows were emptied.
		if err := c.caughtUp(ctx); err != nil {
			return err
		}
		if list, err = c.cfg.Store.Unrecorded(ctx, openAtOnce); err != nil || len(list) == 0 {
			return err
		}
		events := make([]checkout.Event, len(list))
		for i := range list {
			events[i] = list[i].Opening()
		}
		if err := c.cfg.Events.Write(ctx, events...); err != nil {
			return err
		}
	}
}

// recordEnds records the answers of the matcher to what people agreed on, and closes the cases that it
// has ended. Their rows are closed when the sink reads the events. After a crash between the two steps
// the answer is recorded already, and the event is written then.
func (c *Cases) recordEnds(ctx context.Context) error {
	list, err := c.cfg.Store.Ended(ctx, openAtOnce)
	if err != nil || len(list) == 0 {
		return err
	}
	// An event of before may close them.
	if err := c.caughtUp(ctx); err != nil {
		return err
	}
	if list, err = c.cfg.Store.Ended(ctx, openAtOnce); err != nil || len(list) == 0 {
		return err
	}
	var events []checkout.Event
	for _, e := range list {
		if !e.Answered {
			if err := c.answered(ctx, *e.Agreed, cmp.Or(e.Refusal(), checkout.CodeOK)); err != nil {
				return err
			}
		}
		if e.Open() {
			events = append(events, e.Event())
		}
	}
	if len(events) == 0 {
		return nil
	}
	return c.cfg.Events.Write(ctx, events...)
}

// caughtUp waits until everything that was in cases.events when it was called is in
// Postgres.
func (c *Cases) caughtUp(ctx context.Context) error {
	topic, ends, err := c.cfg.Events.Ends(ctx)
	if err != nil {
		return err
	}
	for until := time.Now().Add(patience); ; {
		at, err := c.cfg.Store.Positions(ctx, topic)
		if err != nil {
			return err
		}
		behind := false
		for p, end := range ends {
			next, known := at[p]
			behind = behind || !known || next < end
		}
		switch {
		case !behind:
			return nil
		case time.Now().After(until):
			return errBehind
		case !consume.Sleep(ctx, lookEvery):
			return ctx.Err()
		}
	}
}

// carryOut makes events of the steps of proposals, and then carries out the proposals whose
// approval is an event.
func (c *Cases) carryOut(ctx context.Context) error {
	if err := c.cfg.Store.Lapse(ctx, c.cfg.Now()); err != nil {
		return err
	}
	for {
		notes, err := c.cfg.Store.ClaimNotes(ctx, claimAtOnce, c.cfg.Again)
		if err != nil {
			return err
		}
		var g errgroup.Group
		for _, n := range notes {
			g.Go(func() error { return c.note(ctx, n) })
		}
		if err := g.Wait(); err != nil {
			return err
		}
		if len(notes) == 0 {
			break
		}
	}
	due, err := c.cfg.Store.Claim(ctx, claimAtOnce, c.cfg.Again)
	if err != nil {
		return err
	}
	var g errgroup.Group
	for _, p := range due {
		g.Go(func() error { return c.resolve(ctx, p) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return c.unanswered(ctx)
}

// carryOutPeople carries out what waits of the page about people. One that fails does not hold up the others.
func (c *Cases) carryOutPeople(ctx context.Context) error {
	ids, _, err := c.cfg.People.Waiting(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range ids {
		r, err := c.cfg.People.CarryOut(ctx, id, c.cfg.Now())
		if err != nil {
			errs = append(errs, err)
			continue
		}
		c.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "a request about people is over", slog.String("request", id), slog.String("kind", string(r.Kind)), slog.String("state", string(r.State)), slog.String("code", r.Code))
	}
	return errors.Join(errs...)
}

// unanswered refuses approvals of cases of the matcher that it does not carry out, because nobody has signed them or
// they have lapsed: those of an earlier release, for example. People propose again in the same case.
func (c *Cases) unanswered(ctx context.Context) error {
	waiting, err := c.cfg.Store.ClaimOfMatcher(ctx, claimAtOnce, c.cfg.Again)
	if err != nil {
		return err
	}
	for _, p := range waiting {
		if _, _, err := c.proven(ctx, p.CaseID, p.Number, c.cfg.Now().Add(-answersWithin), cases.Agreement.Check); err != nil {
			return err
		}
	}
	return nil
}

// note makes an event of one step. After a crash at any point it is made again, and is one
// event.
func (c *Cases) note(ctx context.Context, n cases.Note) error {
	if n.Step == casework.DecisionProposed || n.Step == casework.DecisionApproved {
		check := cases.Agreement.Check
		if n.Step == casework.DecisionProposed {
			check = cases.Agreement.CheckProposal
		}
		a, proven, err := c.proven(ctx, n.CaseID, n.Number, c.cfg.Now(), check)
		if err != nil || !proven {
			return err
		}
		n.Agreement = a
	}
	if n.SessionID == "" {
		d, err := c.cfg.Store.Show(ctx, nil, n.CaseID, c.cfg.Now())
		if err == nil {
			err = c.cfg.Events.Write(ctx, d.Step(n))
		}
		if err != nil {
			return err
		}
		return c.noted(ctx, n)
	}
	a, err := c.cfg.Processor.Ask(ctx, n.Command(c.cfg.Now()))
	if err != nil && !errors.Is(err, checkout.ErrMalformedID) {
		return err
	}
	if err != nil || a.Code != checkout.CodeOK {
		c.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "the processor does not know the case of a proposal, whose step is no event", slog.String("case", n.CaseID), slog.String("code", string(a.Code)))
	}
	return c.noted(ctx, n)
}

// proven checks the signed steps of a proposal again, before its event and before its effect. One that does not count
// at the time is refused, and its row stays.
func (c *Cases) proven(ctx context.Context, caseID string, number int, at time.Time, check func(cases.Agreement, casework.Verify) checkout.Code) (of casework.Agreement, proven bool, err error) {
	a, err := c.cfg.Store.Agreement(ctx, caseID, number, at)
	if err != nil {
		return of, false, err
	}
	a.Terms.Latest = c.cfg.Now().Add(casework.ClocksDiffer) // at may be earlier
	code := check(a, c.cfg.Verify)
	if code == checkout.CodeOK {
		return a.Agreement, true, nil
	}
	ended, err := c.cfg.Store.Unproven(ctx, caseID, number, code, c.cfg.Now())
	if err == nil && ended {
		c.unproven.WithLabelValues(string(code)).Inc()
		c.cfg.Log.LogAttrs(ctx, slog.LevelError, "a decision about an operator case is refused: nobody has signed it as it stands there", slog.String("case", caseID), slog.Int("proposal", number), slog.String("code", string(code)))
	}
	return of, false, err
}

func (c *Cases) noted(ctx context.Context, n cases.Note) error {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	return c.cfg.Store.Noted(bounded, n)
}

// exit closes a case without a session, and answers as the processor does. The row is
// closed when the sink reads the event.
func (c *Cases) exit(ctx context.Context, p cases.Approved) (checkout.Answer, error) {
	if err := c.caughtUp(ctx); err != nil {
		return checkout.Answer{}, err
	}
	d, err := c.cfg.Store.Show(ctx, nil, p.CaseID, c.cfg.Now())
	switch {
	case err != nil:
		return checkout.Answer{}, err
	case d.Open():
		err = c.cfg.Events.Write(ctx, d.Exit(p))
	case !p.Closed(d.Case):
		return checkout.Answer{Code: checkout.CodeCaseClosed}, nil
	}
	return checkout.Answer{Code: checkout.CodeOK, CaseID: p.CaseID}, err
}

// resolve carries one proposal out. After a crash at any point it is sent again, and the
// answer is the same.
func (c *Cases) resolve(ctx context.Context, p cases.Approved) error {
	of, proven, err := c.proven(ctx, p.CaseID, p.Number, c.cfg.Now(), cases.Agreement.Check)
	if err != nil || !proven {
		return err
	}
	p.Agreement = of
	ask := func() (checkout.Answer, error) { return c.cfg.Processor.Ask(ctx, p.Command(c.cfg.Now())) }
	if p.SessionID == "" {
		ask = func() (checkout.Answer, error) { return c.exit(ctx, p) }
	}
	a, err := ask()
	code := a.Code
	if errors.Is(err, checkout.ErrMalformedID) {
		err, code = nil, checkout.CodeSessionNotFound
	}
	if err != nil {
		c.answers.WithLabelValues(outcomeNoAnswer).Inc()
		return err
	}
	return c.answered(ctx, p, code)
}

// answered records the answer to an approved proposal.
func (c *Cases) answered(ctx context.Context, p cases.Approved, code checkout.Code) error {
	outcome := outcomeCarriedOut
	if code != checkout.CodeOK {
		outcome = outcomeRefused
		c.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "the resolution of an operator case was refused", slog.String("case", p.CaseID), slog.String("code", string(code)))
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if err := c.cfg.Store.Answered(bounded, p, code, c.cfg.Now()); err != nil {
		return err
	}
	c.answers.WithLabelValues(outcome).Inc()
	return nil
}

func (c *Cases) gauges(ctx context.Context) error {
	counts, err := c.cfg.Store.CountOpen(ctx)
	if err != nil {
		return err
	}
	_, approved, err := c.cfg.Store.CountApproved(ctx)
	if err != nil {
		return err
	}
	_, asked, err := c.cfg.People.Waiting(ctx)
	if err != nil {
		return err
	}
	now := c.cfg.Now()
	c.people.Set(age(asked, now))
	byKind := map[casework.Kind]cases.Count{}
	for _, n := range counts {
		byKind[n.Kind] = n
	}
	for _, kind := range cases.Catalog().Kinds {
		n := byKind[kind]
		c.open.WithLabelValues(string(kind)).Set(float64(n.N))
		c.oldest.WithLabelValues(string(kind)).Set(age(n.Oldest, now))
	}
	c.approved.Set(age(approved, now))
	return nil
}

func age(at, now time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return max(0, now.Sub(at).Seconds())
}
