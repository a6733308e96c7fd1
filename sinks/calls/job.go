package calls

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/connector"
	"quittance/internal/exemplar"
	"quittance/internal/kafka/consume"
	"quittance/schemas/record"
)

const (
	// EnquiryPatience bounds the time in which an enquiry is tried again while the
	// operator does not answer. The bound keeps a dead operator from holding back the
	// offsets; the processor emits the next enquiry anyway.
	EnquiryPatience = time.Minute
	// LateTries is the number of times an operator is asked about a late request.
	LateTries = 3
	// BackoffMax is the longest pause between two tries, unless the operator asks for a
	// longer one.
	BackoffMax = 5 * time.Second
	// Glance bounds the time between two readings of the clock, which may jump.
	Glance = 500 * time.Millisecond
	// ClockTolerance is the greatest difference between the clocks of two members.
	ClockTolerance = 5 * time.Second
	// TellWithin bounds the one try to write calls for the journal.
	TellWithin = 2 * time.Second

	// lateGrace is the time after NotAfter that a request for money, begun in time, may
	// still take, including the fetching of a token. It is well below the minute after
	// which a processor accepts that an operator does not know the payment.
	lateGrace    = 20 * time.Second
	backoffStart = 250 * time.Millisecond
)

// Outcomes of requests, in addition to the names of operators' answers.
const (
	OutcomePoison    = "poison"
	OutcomeOvertaken = "overtaken"
	OutcomeOld       = "old"
	OutcomeSilent    = "no_answer"
	// OutcomeLeft: the record is left to the next member.
	OutcomeLeft = "left"
)

// Reasons why a call was not made or was cancelled.
var (
	errLate      = errors.New("too late to ask for money")
	errLeft      = errors.New("left to the next member")
	errOvertaken = errors.New("a later enquiry is in hand")
)

// job is a request in hand.
type job[A any] struct {
	*Hand
	loop    *Loop[A]
	request Request[A]
	about   About
	// waiting ends with Run, or when the partition moves to another member.
	waiting context.Context

	noted   []record.Record // calls that are not written yet
	faulted string          // kind and fault of the last call; empty after an answer
}

// Do processes one request. It returns true when the record is done, false when it is left
// to the next member. waiting and calls are as in consume.Work.
func (l *Loop[A]) Do(waiting, calls context.Context, r *kgo.Record, q Request[A]) (done bool) {
	about := q.About()
	j := &job[A]{loop: l, request: q, about: about, waiting: waiting, Hand: &Hand{Context: calls, record: r, about: about, cfg: &l.cfg, broker: l.Broker, unknown: l.unknown, complain: &l.complain}}
	var outcome string
	switch {
	case q.Old():
		outcome = OutcomeOld
	case about.Kind == KindEnquire:
		outcome = j.enquireAbout()
	default:
		outcome = j.move()
	}
	l.count(about, outcome)
	j.tell()
	return outcome != OutcomeLeft
}

// move asks for the money until the operator has the request or it is too late. Like
// late and enquireAbout it returns the name of the outcome.
func (j *job[A]) move() string {
	// An earlier reader of the record may have sent the request.
	sent := !j.broker.First(j.record)
	var cause error
	for n := 0; ; n++ {
		a, err := j.ask()
		switch {
		case errors.Is(err, errLate) && j.request.Old():
			return OutcomeOld
		case errors.Is(err, errLate) && !sent:
			if !j.surelyLate() {
				return OutcomeLeft
			}
			return j.request.NeverSent(j.Hand, cause)
		case errors.Is(err, errLate):
			return j.late()
		case errors.Is(err, errLeft):
			return OutcomeLeft
		case err == nil && j.request.Confirms(a):
			return j.confirm(a)
		case err == nil:
			return j.request.Answered(j.Hand, a, j.about.Kind)
		}
		j.Warn("asking for money", err)
		cause = err
		if !sent && j.request.Unsendable(err) {
			return j.request.NeverSent(j.Hand, cause)
		}
		if connector.Uncertain(err) {
			sent = true
			// The operator may have the request. If it does, do not send it again.
			a, enquiry := j.enquire(nil)
			switch {
			case errors.Is(enquiry, errLeft):
				return OutcomeLeft
			case enquiry == nil && j.request.Settles(a):
				return j.request.Answered(j.Hand, a, KindEnquire)
			}
		}
		if !j.pause(n, err, j.about.NotAfter) {
			return OutcomeLeft
		}
	}
}

// confirm enquires about an answer that counts only with an enquiry, without the slot of the call, and reports both.
func (j *job[A]) confirm(a A) string {
	for n := 0; ; n++ {
		enquired, err := j.enquire(nil)
		switch {
		case errors.Is(err, errLeft):
			return OutcomeLeft
		case err == nil:
			return j.request.Answered(j.Hand, j.request.Confirm(a, &enquired), j.about.Kind)
		case !j.cfg.Now().Before(j.about.NotAfter):
			return j.request.Answered(j.Hand, j.request.Confirm(a, nil), j.about.Kind)
		}
		j.Warn("confirming a refusal", err)
		if !j.pause(n, err, j.about.NotAfter) {
			return OutcomeLeft
		}
	}
}

// surelyLate waits until it is too late for every member, and reports whether the record
// still belongs to this one. After a crash of this member the next one reads the record
// again. Its clock may be behind, and it sends the request while NotAfter is not past by
// its own clock: then a payment that was reported as never sent would be made. The wait is
// by the machine's time, so that a member that was stopped for a while learns first that it
// has lost the partition.
func (j *job[A]) surelyLate() bool {
	for {
		if !consume.Sleep(j.waiting, ClockTolerance) {
			return false
		}
		if j.cfg.Now().Sub(j.about.NotAfter) > ClockTolerance {
			return true
		}
	}
}

// late asks about a request that is too late to be sent. An earlier reader of the record
// may have sent it. When the operator does not answer, the payment stays undecided.
func (j *job[A]) late() string {
	for n := 0; ; n++ {
		a, err := j.enquire(nil)
		switch {
		case errors.Is(err, errLeft):
			return OutcomeLeft
		case err == nil:
			return j.request.Enquired(j.Hand, a)
		case n+1 == LateTries:
			j.Warn("asking about a late request", err)
			return OutcomeSilent
		}
		if !consume.Sleep(j.waiting, backoff(n)) {
			return OutcomeLeft
		}
	}
}

// enquireAbout asks about the result of a payment.
func (j *job[A]) enquireAbout() string {
	newest := &j.loop.newest
	newest.arrive(j.about.ID, j.about.Enquiry)
	defer newest.leave(j.about.ID)
	overtaken := func() bool { return newest.overtaken(j.about.ID, j.about.Enquiry) }
	until := j.cfg.Now().Add(EnquiryPatience)
	for n := 0; ; n++ {
		a, err := j.enquire(overtaken)
		switch {
		case errors.Is(err, errLeft):
			return OutcomeLeft
		case errors.Is(err, errOvertaken):
			return OutcomeOvertaken
		case err == nil:
			return j.request.Enquired(j.Hand, a)
		}
		j.Warn("asking about a payment", err)
		if !j.pause(n, err, until) {
			return OutcomeLeft
		}
		if !j.cfg.Now().Before(until) {
			return OutcomeSilent
		}
	}
}

// ask makes one request for money. It makes none when, once it has a slot, it is too
// late or the record belongs to another member.
func (j *job[A]) ask() (none A, _ error) {
	begun := time.Now()
	release, ok := j.loop.slots.move(j.waiting, j.about.Operator)
	if !ok {
		return none, errLeft
	}
	defer release()
	if j.waiting.Err() != nil {
		return none, errLeft
	}
	left := j.about.NotAfter.Sub(j.cfg.Now())
	if left < 0 {
		return none, errLate
	}
	if err := j.prepare(j.about.Kind); err != nil {
		return none, err
	}
	ctx, cancel := context.WithTimeout(j.Context, left+lateGrace)
	defer cancel()
	a, err := j.request.Ask(ctx)
	return a, j.called(j.about.Kind, begun, a, err)
}

// enquire makes one enquiry, unless unwanted returns true once it has a slot.
func (j *job[A]) enquire(unwanted func() bool) (none A, _ error) {
	begun := time.Now()
	release, ok := j.loop.slots.enquire(j.waiting, j.about.Operator, j.about.TenantID, j.about.Live)
	if !ok {
		return none, errLeft
	}
	defer release()
	if unwanted != nil && unwanted() {
		return none, errOvertaken
	}
	if err := j.prepare(KindEnquire); err != nil {
		return none, err
	}
	a, err := j.request.Enquire(j.Context)
	return a, j.called(KindEnquire, begun, a, err)
}

// prepare is Request.Prepare. The journal is told of a call that was not made.
func (j *job[A]) prepare(kind Kind) error {
	err := j.request.Prepare(j.Hand, kind)
	if err != nil {
		var none A
		j.note(kind, 0, none, err)
	}
	return err
}

// called counts and notes a call and returns its error. A call that the end of the drain
// cancelled is not counted, and the error is errLeft.
func (j *job[A]) called(kind Kind, begun time.Time, a A, err error) error {
	if err != nil && j.Err() != nil {
		return errLeft
	}
	took := time.Since(begun)
	outcome := j.note(kind, took, a, err)
	exemplar.Observe(j.loop.calls.WithLabelValues(j.about.Operator, string(kind), outcome), took.Seconds(), j.cfg.Exemplar, j.about.ID)
	return err
}

// note keeps a call for the journal: kind is that of the call, which may be an enquiry
// within a request for money. While a request is in hand, a fault that repeats is kept once.
// It returns the name of the answer or of the fault.
func (j *job[A]) note(kind Kind, took time.Duration, a A, err error) (outcome string) {
	fault := ""
	if err != nil {
		outcome = string(connector.FaultOf(err))
		if fault = string(kind) + outcome; fault == j.faulted {
			return outcome
		}
	} else {
		outcome = j.request.Status(a)
	}
	j.faulted = fault
	j.noted = append(j.noted, j.request.Call(kind, j.cfg.Now().Add(-took), took, outcome, a, err))
	return outcome
}

// tell writes the noted calls to their topic. Nothing is decided by them, so it tries once: a
// payment never waits for them.
func (j *job[A]) tell() {
	if len(j.noted) == 0 {
		return
	}
	records := make([]*kgo.Record, 0, len(j.noted))
	var err error
	for _, c := range j.noted {
		value, encoding := j.cfg.Codec.Encode(c)
		err = errors.Join(err, encoding)
		records = append(records, &kgo.Record{
			Topic: j.cfg.Topology.Name(j.cfg.Calls), Partition: j.cfg.Topology.Partition(j.cfg.Calls, j.about.ID), Key: []byte(j.about.ID), Value: value,
		})
	}
	j.noted = nil
	if err == nil {
		ctx, cancel := context.WithTimeout(j.Context, TellWithin)
		defer cancel()
		err = j.broker.Produce(ctx, records...)
	}
	if err != nil && j.Err() == nil {
		j.loop.untold.Add(float64(len(records)))
		j.Warn("writing calls for the journal", err)
	}
}

// pause waits before the next try: for the backoff or the delay that the operator asked
// for, but not beyond until. It reports whether the sink still runs and the record still
// belongs to this member.
func (j *job[A]) pause(n int, err error, until time.Time) bool {
	j.tell()
	wait := backoff(n)
	var e *connector.Error
	if errors.As(err, &e) {
		wait = max(wait, e.RetryAfter)
	}
	for wait > 0 && j.cfg.Now().Before(until) {
		step := min(wait, Glance)
		if !consume.Sleep(j.waiting, step) {
			return false
		}
		wait -= step
	}
	return j.waiting.Err() == nil
}

// backoff returns a delay that doubles with each try. It is random, so that requests
// that failed together are not repeated together.
func backoff(n int) time.Duration {
	d := min(backoffStart<<min(n, 10), BackoffMax)
	return d/2 + rand.N(d) //nolint:gosec // no secret
}

// mostFault is the length of the text of a fault in a record, in characters.
const mostFault = 200

// FaultText returns the beginning of the text of a call's error, for the record of the call.
func FaultText(err error) string {
	text := err.Error()
	if letters := []rune(text); len(letters) > mostFault {
		return string(letters[:mostFault]) + "…"
	}
	return text
}
