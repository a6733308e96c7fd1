package disburse

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/disbursement"
	"quittance/internal/connector"
	"quittance/internal/kafka/consume"
	"quittance/internal/personal"
	"quittance/schemas"
	"quittance/schemas/mapping/batches"
	"quittance/schemas/record"
	"quittance/sinks/calls"
)

const (
	kindPay     = calls.Kind(disbursement.RequestPay)
	kindEnquire = calls.KindEnquire

	// oldAfter is the time after which a request needs no call: the processor has enquired since, or will.
	oldAfter = 15 * time.Minute
)

// Why nothing is sent.
var (
	errNoAccount = &connector.Error{Doing: "finding the payout account", Fault: connector.FaultCredentials, Err: errors.New("the agency has no payout account with the code and the fingerprint that were approved, or it is locked")}
	errReplaced  = &connector.Error{Doing: "finding the payout account", Fault: connector.FaultCredentials, Err: errors.New("the agency has replaced the payout account that was approved")}
	errChanged   = errors.New("the line has another content than was approved")
	errPayee     = errors.New("the payee's number is none of the operator")
	errKey       = errors.New("the data key of the line cannot be read")
)

// job is one record in hand.
type job struct {
	sink      *Sink
	request   disbursement.Request
	attempt   disbursement.AttemptID
	operator  string // once the account is known
	connector connector.PayoutConnector
	account   connector.Account // of the next call
	reference connector.PayoutReference
	purpose   string
	asked     int // calls to pay that this reader made
}

// errInvariant is the error of a record that no processor of this version writes.
var errInvariant = fmt.Errorf("not a payout request of this version: %w", consume.ErrRefused)

// read reads a record.
func (s *Sink) read(r *kgo.Record) (*job, error) {
	j := &job{sink: s}
	if _, err := s.cfg.Requests.Verify(r); err != nil {
		return j, fmt.Errorf("%w: %w", err, consume.ErrRefused)
	}
	var q record.PayoutRequest
	if err := s.cfg.Codec.Decode(r.Value, &q); err != nil {
		return j, err
	}
	j.request = batches.ToRequest(&q)
	j.attempt = j.request.Line.AttemptID()
	switch kind := j.request.Kind; {
	case kind != disbursement.RequestPay && kind != disbursement.RequestEnquire:
		return j, fmt.Errorf("kind %q: %w", kind, errInvariant)
	case j.request.TenantID == "" || j.request.Line.Batch == "" || j.request.Line.Attempt < 1 || j.request.Account == "":
		return j, fmt.Errorf("agency, batch, attempt or account is missing: %w", errInvariant)
	case j.request.Line.Amount <= 0 || j.request.Currency == "":
		return j, fmt.Errorf("no amount: %w", errInvariant)
	case string(r.Key) != j.attempt.PayoutRef():
		return j, fmt.Errorf("the key is not the payout_ref of the attempt: %w", errInvariant)
	}
	if a, ok := s.cfg.Account(j.request.TenantID, j.request.Live, j.request.Account, j.request.Fingerprint); ok {
		j.operator = a.Operator
	}
	return j, nil
}

// unknownOperator is the label of requests whose account is not known.
const unknownOperator = "unknown"

// About describes the request.
func (j *job) About() calls.About {
	q := &j.request
	about := calls.About{
		Kind: calls.Kind(q.Kind), Operator: j.operator, ID: j.attempt.PayoutRef(), TenantID: q.TenantID, Live: q.Live, NotAfter: q.NotAfter,
	}
	if about.Operator == "" && q.Line.Batch != "" {
		about.Operator = unknownOperator
	}
	if q.Kind == disbursement.RequestEnquire {
		about.Enquiry = int32(max(0, q.At.Unix()-q.Line.SentAt.Unix())) //nolint:gosec // seconds of an attempt
	}
	return about
}

// Old reports whether the processor has enquired about the attempt since, or will. It enquires until the line is decided.
func (j *job) Old() bool {
	q := &j.request
	until := q.NotAfter
	if q.Kind == disbursement.RequestEnquire {
		until = q.At
	}
	return j.sink.cfg.Now().Sub(until) > oldAfter
}

// Prepare finds the account and opens the line. A request to pay needs the content that was approved. An enquiry is made
// whatever the content says: the answer tells what happened. It names no payee then, so that a payment is one to another
// payee, about which people decide.
func (j *job) Prepare(h *calls.Hand, kind calls.Kind) error {
	q := &j.request
	account, ok := j.sink.cfg.Account(q.TenantID, q.Live, q.Account, q.Fingerprint)
	if !ok {
		if h.NoAccount() {
			j.sink.cfg.Log.LogAttrs(h, slog.LevelError, "the payout account of an attempt is unknown or locked: the operator cannot be asked",
				slog.String("kind", string(q.Kind)), slog.String("payout_ref", j.attempt.PayoutRef()), slog.String("tenant_id", q.TenantID),
				slog.Bool("livemode", q.Live), slog.String("account", q.Account))
		}
		return errNoAccount
	}
	j.account, j.connector = account.Account, j.sink.cfg.Connectors[account.Operator]
	switch {
	case j.connector == nil:
		return errNoAccount
	case account.Replaced && kind == kindPay:
		return errReplaced
	}
	j.reference = connector.PayoutReference{ID: j.attempt.UUID(), Amount: q.Line.Amount, Currency: q.Currency}
	salt, content, err := j.sink.cfg.Open(h, q.Line.Batch, q.Line.Position, q.Line.Sealed)
	switch {
	case unopenable(err) && kind == kindPay, err != nil && !unopenable(err):
		return &connector.Error{Doing: connector.DoingOpenLine, Fault: connector.FaultNetwork, Err: opening(err)}
	case err != nil:
		return nil
	case !q.Same(salt, content) && kind == kindPay:
		return &connector.Error{Doing: "comparing the line", Fault: connector.FaultMalformed, Err: errChanged}
	case !q.Same(salt, content):
		return nil
	}
	payee, err := j.connector.Payee(content.MSISDN)
	if err != nil && kind == kindPay {
		return &connector.Error{Doing: "reading the payee's number", Fault: connector.FaultMalformed, Err: errPayee} // not err: it may quote the number
	}
	j.reference.Payee, j.purpose = payee, content.Purpose
	if kind == kindPay {
		return j.sink.gate.enter(q, j.account)
	}
	return nil
}

// unopenable reports whether nobody can open a line any more: its key is deleted, or does not fit its content.
func unopenable(err error) bool {
	return errors.Is(err, personal.ErrErased) || errors.Is(err, personal.ErrMalformed)
}

// opening returns what is told of an error of opening a line: the text of a database's error has addresses and logins.
func opening(err error) error {
	for _, known := range []error{personal.ErrErased, personal.ErrMalformed} {
		if errors.Is(err, known) {
			return known
		}
	}
	return errKey
}

// Ask has the operator pay.
func (j *job) Ask(ctx context.Context) (connector.PayoutOutcome, error) {
	j.asked++
	o, err := j.connector.Pay(ctx, j.account, connector.Payout{PayoutReference: j.reference, PayoutRef: j.attempt.PayoutRef(), Purpose: j.purpose})
	j.sink.gate.leave(&j.request, j.account, o, err)
	if refusesAccount(err) {
		j.asked-- // the operator has certainly done nothing
		return o, refusedBy(string(connector.FaultCredentials))
	}
	return o, err
}

// Enquire asks the operator about the attempt.
func (j *job) Enquire(ctx context.Context) (connector.PayoutOutcome, error) {
	return j.connector.EnquirePayout(ctx, j.account, j.reference)
}

// Unsendable reports whether no reader can ever send the request: the line cannot be opened, is another one, pays nobody
// whom the operator knows, from an account that nobody approved, or from one whose settings the operator refuses.
func (j *job) Unsendable(err error) bool {
	return unopenable(err) || errors.Is(err, errChanged) || errors.Is(err, errPayee) || errors.Is(err, errReplaced) || errors.Is(err, errClosed)
}

// Confirms reports whether the answer is a refusal of the request, about which the operator is to be asked.
func (j *job) Confirms(o connector.PayoutOutcome) bool { return o.Unconfirmed }

// Confirm returns what a refusal of the request and the enquiry after it say together. Without an enquiry the refusal is that of
// the request alone, and the processor has the operator asked.
func (j *job) Confirm(refusal connector.PayoutOutcome, enquired *connector.PayoutOutcome) connector.PayoutOutcome {
	if enquired == nil {
		return refusal
	}
	o, _ := connector.PayoutOfRefused(refusal, *enquired, nil) // its only error is that of the enquiry
	return o
}

// Settles reports that each answer to an enquiry ends the request. Whether an attempt that the operator does not know is
// requested again is the processor's decision: the batch may be held meanwhile.
func (j *job) Settles(connector.PayoutOutcome) bool { return true }

// Status returns the status of an answer.
func (j *job) Status(o connector.PayoutOutcome) string { return string(o.Status) }

// Answered tells what the operator answered to a request to pay, or to the enquiry that followed it.
func (j *job) Answered(h *calls.Hand, o connector.PayoutOutcome, to calls.Kind) string {
	source := disbursement.FromRequest
	if to == kindEnquire {
		source = disbursement.FromEnquiry
	}
	// That the operator has no such payout proves a refusal only if no other call to pay was made, by this reader or an
	// earlier one: it may still arrive.
	o.Absent = o.Absent && j.asked == 1 && h.First()
	return j.told(h, o, source)
}

// Enquired tells the answer to an enquiry.
func (j *job) Enquired(h *calls.Hand, o connector.PayoutOutcome) string {
	return j.told(h, o, disbursement.FromEnquiry)
}

// told tells an outcome: of money that has come back already, first that it was paid.
func (j *job) told(h *calls.Hand, o connector.PayoutOutcome, source disbursement.WordSource) string {
	outcome := j.tell(h, wordOf(o), source, string(o.Status))
	if !o.Returned || !o.Agrees(j.reference) || outcome != string(o.Status) {
		return outcome
	}
	back := wordOf(o)
	back.Kind, back.OtherPayee = disbursement.WordReturned, false
	return j.tell(h, back, source, outcome)
}

// NeverSent tells that nothing was sent, and why.
func (j *job) NeverSent(h *calls.Hand, cause error) string {
	word := disbursement.Word{Kind: disbursement.WordNeverSent}
	var closed *closedError
	switch {
	case errors.As(cause, &closed):
		// The operator refused the account before it looked at the payout, or another one's: it has no such payout.
		word = disbursement.Word{Kind: disbursement.WordClosed, Absent: true, Code: closed.code}
	case unopenable(cause):
		word.Kind = disbursement.WordUnopenable
	case errors.Is(cause, errChanged):
		word.Kind = disbursement.WordChanged
	case errors.Is(cause, errReplaced):
		// No line of the account can be paid as it was approved: the batch is held, and people decide.
		word.Kind, word.Code = disbursement.WordChanged, "account_replaced"
	case errors.Is(cause, errPayee):
		// Our own refusal: the operator was not asked, so it has no such payout.
		word = disbursement.Word{Kind: disbursement.WordRefused, Absent: true, Code: "payee_malformed"}
	}
	return j.tell(h, word, disbursement.FromRequest, string(word.Kind))
}

// wordOf returns what an outcome says of an attempt.
func wordOf(o connector.PayoutOutcome) disbursement.Word {
	w := disbursement.Word{Code: o.Reason, OperatorRef: o.OperatorRef}
	switch o.Status {
	case connector.PayoutPending:
		w.Kind = disbursement.WordPending
	case connector.PayoutUnknown:
		w.Kind = disbursement.WordNotFound
	case connector.PayoutPaid:
		w.Kind, w.Amount, w.Currency, w.OtherPayee = disbursement.WordPaid, o.Amount, o.Currency, o.OtherPayee
	case connector.PayoutRefused:
		w.Kind, w.Unproven, w.Absent = disbursement.WordRefused, o.Unproven, o.Absent
		switch o.Cause {
		case connector.CauseFunds:
			w.Kind = disbursement.WordNoFunds
		case connector.CauseAccount:
			w.Kind = disbursement.WordClosed
		case connector.CausePayeeOrAccount:
			w.Suspect = true
		case connector.CausePayee, connector.CauseOperator:
		}
	default:
		w.Kind = disbursement.WordUndecided
	}
	return w
}

// tell writes a word as a command.
func (j *job) tell(h *calls.Hand, w disbursement.Word, source disbursement.WordSource, outcome string) string {
	q := &j.request
	w.Position, w.Attempt, w.Source = q.Line.Position, q.Line.Attempt, source
	if q.Kind == disbursement.RequestPay {
		w.Try = q.Line.Try
	}
	command, err := batches.FromCommand(disbursement.Command{
		At: j.sink.cfg.Now().UTC().Truncate(time.Millisecond), TenantID: q.TenantID, Live: q.Live, Batch: q.Line.Batch, Do: w,
	})
	if err == nil {
		err = h.Command(schemas.Disbursement.Commands, q.TenantID, command)
	}
	return h.Reported(outcome, err)
}

// Call returns the record of a call, without the payee's number.
func (j *job) Call(kind calls.Kind, at time.Time, took time.Duration, outcome string, o connector.PayoutOutcome, err error) record.Record {
	q := &j.request
	c := &record.PayoutCall{
		Kind: string(kind), PayoutRef: j.attempt.PayoutRef(), Batch: q.Line.Batch, Position: int32(q.Line.Position), Attempt: int32(q.Line.Attempt), //nolint:gosec // of a line
		TenantID: q.TenantID, Livemode: q.Live, Operator: j.About().Operator, Account: q.Account, Amount: q.Line.Amount, Currency: q.Currency,
		At: at, DurationMs: took.Milliseconds(), Outcome: outcome, Code: o.Reason, OperatorRef: o.OperatorRef,
	}
	if err != nil {
		c.Fault = calls.FaultText(err)
	}
	return c
}
