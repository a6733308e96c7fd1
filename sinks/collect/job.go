package collect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/internal/connector"
	"quittance/internal/exemplar"
	"quittance/internal/kafka/consume"
	"quittance/internal/personal"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/schemas/record"
)

const (
	kindCollect = string(checkout.RequestCollect)
	kindEnquire = string(checkout.RequestEnquire)

	// enquiryPatience bounds the time in which an enquiry is tried again while the
	// operator does not answer. The bound keeps a dead operator from holding back the
	// offsets; the processor emits the next enquiry anyway.
	enquiryPatience = time.Minute
	// lateGrace is the time after not_after that a request for money, begun in time, may
	// still take, including the fetching of a token. It is well below the minute after
	// which the processor accepts that an operator does not know the payment.
	lateGrace = 20 * time.Second
	// oldAfter is the time after not_after at which a request is too old to be
	// processed. It is longer than any approval window.
	oldAfter = 15 * time.Minute
	// lateTries is the number of times an operator is asked about a late request.
	lateTries = 3

	backoffStart = 250 * time.Millisecond
	backoffMax   = 5 * time.Second
	// glance bounds the time between two readings of the clock, which may jump.
	glance = 500 * time.Millisecond
)

// environmentLive is the checkout_environment of real money.
const environmentLive = "live"

// Values of the outcome label, in addition to the statuses of operators' answers.
const (
	outcomePoison    = "poison"
	outcomeOvertaken = "overtaken"
	outcomeOld       = "old"
	outcomeSilent    = "no_answer"
	outcomeLeft      = "left"
)

// errNoAccount is the error of an agency that does not have the merchant account.
var errNoAccount = &connector.Error{Doing: "finding the agency's account", Fault: connector.FaultCredentials, Err: errors.New("the agency has no account, or not the one that the collection began with")}

// errReplaced is the error of an agency that has another merchant account now.
var errReplaced = &connector.Error{Doing: "finding the agency's account", Fault: connector.FaultCredentials, Err: errors.New("the agency has replaced the account that the collection began with")}

// job processes one record.
type job struct {
	sink   *Sink
	record *kgo.Record
	// waiting ends with the sink's Run, or when the partition moves to another member.
	// calls ends with the drain.
	waiting, calls context.Context

	request    record.CollectionRequest
	connector  connector.Connector
	complained bool   // about the unknown account
	payer      string // the opened number

	noted   []*record.Call // calls that are not written yet
	faulted string         // kind and fault of the last call; empty after an answer
}

// do processes the record. It returns true when the record is done, false when it is
// left to the next member.
func (j *job) do() bool {
	var outcome string
	switch {
	case j.old():
		outcome = outcomeOld
	case j.request.Kind == kindEnquire:
		outcome = j.enquireAbout()
	default:
		outcome = j.collect()
	}
	j.count(outcome)
	j.tell()
	return outcome != outcomeLeft
}

// old reports whether a later enquiry of the processor has been due for oldAfter. The
// processor enquires until the payment is final, so an old record needs neither a call
// nor a report. After a loss of the group's offsets a week of old records is read again,
// and current requests would wait behind them.
//
// The first enquiry follows a request for money within seconds. Later intervals grow up
// to a day. An interval is at most five times as long as the time from not_after to the
// enquiry before it.
func (j *job) old() bool {
	q := &j.request
	now := j.sink.cfg.Now()
	if q.Kind == kindCollect {
		return now.Sub(q.NotAfter) > oldAfter
	}
	next := min(5*max(0, q.RequestedAt.Sub(q.NotAfter)), 24*time.Hour)
	return now.Sub(q.RequestedAt) > oldAfter+next
}

func (j *job) count(outcome string) {
	operator := "none"
	if j.connector != nil {
		operator = j.connector.Operator()
	}
	kind := j.request.Kind
	if kind != kindCollect && kind != kindEnquire {
		kind = "none"
	}
	j.sink.requests.WithLabelValues(operator, kind, outcome).Inc()
}

// decode reads a request. It counts records that are invalid.
func (s *Sink) decode(r *kgo.Record) (*job, error) {
	j := &job{sink: s, record: r}
	err := s.cfg.Codec.Decode(r.Value, &j.request)
	if err == nil {
		err = j.check()
	}
	if errors.Is(err, schemas.ErrUndecodable) || errors.Is(err, consume.ErrRefused) {
		j.count(outcomePoison)
	}
	return j, err
}

// errInvariant is the error of a record that no processor of this version writes.
var errInvariant = fmt.Errorf("not a collection request of this version: %w", consume.ErrRefused)

// check validates the request and finds its connector.
func (j *job) check() error {
	q := &j.request
	c, ok := j.sink.cfg.Connectors[q.OfferID]
	switch {
	case q.Kind != kindCollect && q.Kind != kindEnquire:
		return fmt.Errorf("kind %q: %w", q.Kind, errInvariant)
	case !ok:
		return fmt.Errorf("offer %q has no connector: %w", q.OfferID, errInvariant)
	case q.CollectionID == "" || q.SessionID == "" || q.ApplicationID == "" || q.TenantID == "":
		return fmt.Errorf("an id is empty: %w", errInvariant)
	case q.Amount <= 0 || q.Currency == "":
		return fmt.Errorf("no amount: %w", errInvariant)
	}
	j.connector = c
	return nil
}

// collect asks for the money until the operator has the request or it is too late. Like
// late and enquireAbout it returns the name of the outcome.
func (j *job) collect() string {
	// An earlier reader of the record may have sent the request.
	sent := !j.sink.first(j.record)
	cause := checkout.FailureOperatorUnavailable
	for n := 0; ; n++ {
		o, err := j.ask()
		switch {
		case errors.Is(err, errLate) && j.old():
			return outcomeOld
		case errors.Is(err, errLate) && !sent:
			if !j.surelyLate() {
				return outcomeLeft
			}
			return j.neverSent(cause, "never_sent")
		case errors.Is(err, errLate):
			return j.late()
		case errors.Is(err, errLeft):
			return outcomeLeft
		case err == nil:
			return j.answered(o, checkout.SourceRequest)
		}
		j.warn("asking for money", err)
		if errors.Is(err, personal.ErrErased) && !sent {
			// The number stays unreadable: an erasure or an older database took its key.
			return j.neverSent(checkout.FailureOperatorUnavailable, "payer_erased")
		}
		if errors.Is(err, errNoAccount) || errors.Is(err, errReplaced) {
			cause = checkout.FailurePayeeUnavailable
		}
		if connector.Uncertain(err) {
			sent = true
			// The operator may have the request. If it does, do not send it again.
			o, enquiry := j.enquire(nil)
			switch {
			case errors.Is(enquiry, errLeft):
				return outcomeLeft
			case enquiry == nil && o.Status != checkout.OutcomeUnknown && (o.Decided() || !j.redirects()):
				return j.answered(o, checkout.SourceEnquiry)
			}
		}
		if !j.pause(n, err, j.request.NotAfter) {
			return outcomeLeft
		}
	}
}

// redirects reports whether the payer continues on the operator's own page. Only the
// answer to the request contains the page's address, so the request is repeated until
// it is answered.
func (j *job) redirects() bool {
	_, reachesPayers := j.connector.(connector.PayerReader)
	return !reachesPayers
}

// late asks about a request that is too late to be sent. An earlier reader of the record
// may have sent it. When the operator does not answer, the payment stays pending.
func (j *job) late() string {
	for n := 0; ; n++ {
		o, err := j.enquire(nil)
		switch {
		case errors.Is(err, errLeft):
			return outcomeLeft
		case err == nil:
			return j.report(o, checkout.SourceEnquiry)
		case n+1 == lateTries:
			j.warn("asking about a late request", err)
			return outcomeSilent
		}
		if !consume.Sleep(j.waiting, backoff(n)) {
			return outcomeLeft
		}
	}
}

// enquireAbout asks about the result of a collection.
func (j *job) enquireAbout() string {
	q := &j.request
	j.sink.newest.arrive(q.CollectionID, q.Enquiry)
	defer j.sink.newest.leave(q.CollectionID)
	overtaken := func() bool { return j.sink.newest.overtaken(q.CollectionID, q.Enquiry) }
	until := j.sink.cfg.Now().Add(enquiryPatience)
	for n := 0; ; n++ {
		o, err := j.enquire(overtaken)
		switch {
		case errors.Is(err, errLeft):
			return outcomeLeft
		case errors.Is(err, errOvertaken):
			return outcomeOvertaken
		case err == nil:
			return j.report(o, checkout.SourceEnquiry)
		}
		j.warn("asking about a payment", err)
		if !j.pause(n, err, until) {
			return outcomeLeft
		}
		if !j.sink.cfg.Now().Before(until) {
			return outcomeSilent
		}
	}
}

// Reasons why a call was not made or was cancelled.
var (
	errLate      = errors.New("too late to ask for money")
	errLeft      = errors.New("left to the next member")
	errOvertaken = errors.New("a later enquiry is in hand")
)

// ask makes one request for money. It makes none when, once it has a slot, it is too
// late or the record belongs to another member.
func (j *job) ask() (connector.Outcome, error) {
	q := &j.request
	begun := time.Now()
	release, ok := j.sink.slots.collect(j.waiting, j.connector.Operator())
	if !ok {
		return connector.Outcome{}, errLeft
	}
	defer release()
	if j.waiting.Err() != nil {
		return connector.Outcome{}, errLeft
	}
	left := q.NotAfter.Sub(j.sink.cfg.Now())
	if left < 0 {
		return connector.Outcome{}, errLate
	}
	account, replaced, err := j.account()
	if err == nil && replaced {
		err = errReplaced
	}
	if err != nil {
		j.note(kindCollect, 0, connector.Outcome{}, err)
		return connector.Outcome{}, err
	}
	if err := j.open(); err != nil {
		j.note(kindCollect, 0, connector.Outcome{}, err)
		return connector.Outcome{}, err
	}
	ctx, cancel := context.WithTimeout(j.calls, left+lateGrace)
	defer cancel()
	o, err := j.connector.Collect(ctx, account, connector.Request{
		ID: q.CollectionID, Payer: j.payer, Amount: q.Amount, Currency: q.Currency,
		PaymentRef: q.PaymentRef, Description: q.Description,
		CallbackURL: connector.CallbackURL(j.sink.cfg.Signer, j.sink.cfg.PublicURL, j.connector.Operator(), q.SessionID, q.CollectionID),
		ReturnURL:   j.returnURL(), ExpiresAt: q.WindowEndsAt,
	})
	return o, j.called(kindCollect, begun, o, err)
}

// open opens the payer's number. Requests of earlier versions have it in plain. While it
// cannot be opened, nothing is sent. The error wraps what Config.Payer returns.
func (j *job) open() (err error) {
	q := &j.request
	if j.payer = q.Payer; len(q.PayerSealed) == 0 {
		return nil
	}
	if j.payer, err = j.sink.cfg.Payer(j.calls, q.SessionID, q.PayerSealed); err != nil {
		return &connector.Error{Doing: connector.DoingOpenPayer, Fault: connector.FaultNetwork, Err: err}
	}
	return nil
}

// returnURL returns the address of the citizen's page, in the citizen's language. Somebody who
// knows the payment reference only must not learn the session's id from it.
func (j *job) returnURL() string {
	address := j.sink.cfg.CheckoutURL + "/c/" + j.request.SessionID
	if j.request.ByReference {
		address = j.sink.cfg.CheckoutURL + "/p/" + j.request.PaymentRef
	}
	address += "?" + connector.QueryReturned
	if j.request.Language != "" {
		address += "&lang=" + url.QueryEscape(j.request.Language)
	}
	return address
}

// account returns the merchant account that the collection names. Any other account does
// not have this collection, and its answer "unknown" would be wrong. When the account is
// unknown, nobody can ask about the collection: each record is counted and logged.
func (j *job) account() (account connector.Account, replaced bool, err error) {
	q := &j.request
	account, replaced, ok := j.sink.cfg.Account(q.TenantID, q.Livemode, q.OfferID, q.Account)
	if ok {
		return account, replaced, nil
	}
	if !j.complained {
		j.complained = true
		j.sink.unknown.WithLabelValues(j.connector.Operator(), q.Kind).Inc()
		j.sink.cfg.Log.LogAttrs(j.calls, slog.LevelError, "the merchant account of a collection is unknown or locked: the operator cannot be asked",
			slog.String("operator", j.connector.Operator()), slog.String("kind", q.Kind), slog.String("collection_id", q.CollectionID),
			slog.String("tenant_id", q.TenantID), slog.Bool("livemode", q.Livemode), slog.String("account", q.Account))
	}
	return nil, false, errNoAccount
}

// enquire makes one enquiry, unless unwanted returns true once it has a slot.
func (j *job) enquire(unwanted func() bool) (connector.Outcome, error) {
	q := &j.request
	begun := time.Now()
	release, ok := j.sink.slots.enquire(j.waiting, j.connector.Operator(), q.TenantID, q.Livemode)
	if !ok {
		return connector.Outcome{}, errLeft
	}
	defer release()
	if unwanted != nil && unwanted() {
		return connector.Outcome{}, errOvertaken
	}
	account, _, err := j.account()
	if err != nil {
		j.note(kindEnquire, 0, connector.Outcome{}, err)
		return connector.Outcome{}, err
	}
	o, err := j.connector.Enquire(j.calls, account, connector.Reference{ID: q.CollectionID, Amount: q.Amount, Currency: q.Currency})
	return o, j.called(kindEnquire, begun, o, err)
}

// called counts and notes a call and returns its error. A call that the end of the drain
// cancelled is not counted, and the error is errLeft.
func (j *job) called(call string, begun time.Time, o connector.Outcome, err error) error {
	if err != nil && j.calls.Err() != nil {
		return errLeft
	}
	outcome := string(o.Status)
	if err != nil {
		outcome = string(connector.FaultOf(err))
	}
	took := time.Since(begun)
	exemplar.Observe(j.sink.calls.WithLabelValues(j.connector.Operator(), call, outcome), took.Seconds(), exemplar.CollectionID, j.request.CollectionID)
	j.note(call, took, o, err)
	return err
}

// pause waits before the next try: for the backoff or the delay that the operator asked
// for, but not beyond until. It reports whether the sink still runs and the record still
// belongs to this member.
func (j *job) pause(n int, err error, until time.Time) bool {
	j.tell()
	wait := backoff(n)
	var e *connector.Error
	if errors.As(err, &e) {
		wait = max(wait, e.RetryAfter)
	}
	for wait > 0 && j.sink.cfg.Now().Before(until) {
		step := min(wait, glance)
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
	d := min(backoffStart<<min(n, 10), backoffMax)
	return d/2 + rand.N(d) //nolint:gosec // no secret
}

// report writes the operator's answer as a command, if it changes anything. It returns
// the name of the outcome.
func (j *job) report(o connector.Outcome, source checkout.Source) string {
	q := &j.request
	j.sink.cfg.Log.LogAttrs(j.calls, slog.LevelDebug, "operator answered",
		slog.String("operator", j.connector.Operator()), slog.String("kind", q.Kind), slog.String("collection_id", q.CollectionID),
		slog.String("status", string(o.Status)), slog.String("reason", o.Reason))
	var do checkout.Action
	var err error
	switch o.Status {
	case checkout.OutcomePending, checkout.OutcomeAmbiguous:
		if j.closing() {
			// The session waits for this answer before it fails.
			do = checkout.Outcome{CollectionID: q.CollectionID, Source: source, Status: o.Status, AskedAt: q.RequestedAt}
			break
		}
		if o.Redirect == nil {
			return string(o.Status)
		}
		if (o.Redirect.Environment == environmentLive) != q.Livemode {
			// The account is of the other mode: a live payment would move no money, or a
			// test would take real money. No payer has the address of the page, so nobody
			// can pay there.
			j.sink.cfg.Log.LogAttrs(j.calls, slog.LevelError, "the agency's account is of the other mode (test or live)",
				slog.String("operator", j.connector.Operator()), slog.String("tenant_id", q.TenantID), slog.Bool("livemode", q.Livemode),
				slog.String("environment", o.Redirect.Environment))
			return j.report(connector.Outcome{Status: checkout.OutcomeRefused, FailureCode: checkout.FailurePayeeUnavailable, Reason: "other_mode"}, source)
		}
		var sealed []byte
		sealed, err = connector.SealRedirect(j.sink.cfg.Sealer, q.SessionID, q.CollectionID, *o.Redirect)
		do = checkout.Redirected{CollectionID: q.CollectionID, Sealed: sealed}
	case checkout.OutcomeApproved, checkout.OutcomeRefused, checkout.OutcomeUnknown:
		outcome := checkout.Outcome{
			CollectionID: q.CollectionID, Source: source, Status: o.Status, Amount: o.Amount, Currency: o.Currency,
			OperatorRef: o.OperatorRef, FailureCode: o.FailureCode, ApprovedAt: o.ApprovedAt,
			HonourLate: j.sink.cfg.HonoursLate != nil && j.sink.cfg.HonoursLate(q.TenantID), Account: q.Account,
		}
		if q.Kind == kindEnquire {
			outcome.AskedAt = q.RequestedAt
		}
		do = outcome
	}
	if err == nil {
		err = j.command(do)
	}
	switch {
	case errors.Is(err, errLeft):
		return outcomeLeft
	case err != nil:
		// A fault of the program. The poison topic keeps the record until the fault is fixed.
		if j.sink.consumer.SetAside(j.calls, j.record, fmt.Errorf("reporting an outcome: %w", err)) {
			return outcomePoison
		}
		return outcomeLeft
	}
	return string(o.Status)
}

// command writes a command about the request's session. The error is errLeft when Kafka does not
// take it any more, or a fault of the program.
func (j *job) command(do checkout.Action) error {
	q, topology := &j.request, j.sink.cfg.Topology
	command, err := mapping.FromCommand(checkout.Command{
		At: j.sink.cfg.Now(), TenantID: q.TenantID, SessionID: q.SessionID, ApplicationID: q.ApplicationID, Live: q.Livemode, Do: do,
	})
	if err != nil {
		return err
	}
	value, err := j.sink.cfg.Codec.Encode(command)
	if err != nil {
		return err
	}
	r := &kgo.Record{
		Topic: topology.Name(schemas.TopicCommands), Partition: topology.Partition(schemas.TopicCommands, q.TenantID),
		Key: []byte(q.TenantID), Value: value,
	}
	j.sink.cfg.Commands.Sign(r)
	if !j.produce(r) {
		return errLeft
	}
	return nil
}

// closing reports whether the request is an enquiry that was requested after the
// approval window.
func (j *job) closing() bool {
	q := &j.request
	return q.Kind == kindEnquire && !q.WindowEndsAt.IsZero() && !q.RequestedAt.Before(q.WindowEndsAt)
}

// produce writes a record to all replicas. It tries until the drain ends and reports
// whether it succeeded.
func (j *job) produce(r *kgo.Record) bool {
	for n := 0; ; n++ {
		again := *r // the client changes the record
		err := j.sink.produce(j.calls, &again)
		if err == nil {
			return true
		}
		if j.calls.Err() != nil || errors.Is(err, kgo.ErrClientClosed) {
			return false
		}
		j.warn("reporting an outcome", err)
		if !consume.Sleep(j.calls, backoff(n)) {
			return false
		}
	}
}

// warn logs a failure of an operator or the broker, at most once a second.
func (j *job) warn(doing string, err error) {
	j.sink.complain.Do(func() {
		j.sink.cfg.Log.LogAttrs(j.calls, slog.LevelWarn, "a step of a collection request failed",
			slog.String("doing", doing), slog.String("operator", j.connector.Operator()), slog.String("collection_id", j.request.CollectionID),
			slog.Any("error", err))
	})
}
