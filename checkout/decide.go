package checkout

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrUnknownCommand says that this version does not know the command. Nothing is decided.
var ErrUnknownCommand = errors.New("unknown command")

// Decision is the result of a command. The caller must commit all of it or nothing.
type Decision struct {
	// Events in order. Those with Type.Webhook() are for integrators, those with a
	// ConfirmationRequest for the agency's ERP.
	Events []Event
	// Collections to ask operators for or about.
	Collections []CollectionRequest
	// Answer is set exactly when the command has a ReplyTo.
	Answer *Answer

	// The entries that change.
	Sessions    map[string]Session
	Orders      map[OrderKey]Order
	Idempotency map[IdempotencyKey]Idempotency
	Quotas      map[string]Quota
	Tokens      map[string]Token
	TokenLists  map[string]TokenList // by session
	// ForgottenTokens are the hashes of tokens whose entries are deleted.
	ForgottenTokens []string
	Tills           map[TillKey]Till
	Months          map[MonthKey]int     // last number of a month
	Numbers         map[NumberKey]string // session by number
	Externals       map[ExternalKey]External
	Claims          map[ClaimKey]Claim // the zero Claim: the entry is deleted
	RefusingERPs    map[ERPKey]RefusingERP
}

// RequestKind says what the operator is asked for.
type RequestKind string

// The kinds of a collection request.
const (
	RequestCollect RequestKind = "collect"
	RequestEnquire RequestKind = "enquire"
)

// CollectionRequest is an effect: ask the operator for the session's collection,
// or about it.
type CollectionRequest struct {
	Kind    RequestKind
	Session Session // with the collection meant
	// PayerSealed and Payer are those of Collect, only to collect.
	PayerSealed []byte
	Payer       string
	// Language and ByReference are those of Collect, only to collect.
	Language    string
	ByReference bool
	At          time.Time
	// Word is where somebody waits for what the operator says about the request; nil when
	// nobody does.
	Word *ReplyTo
}

// unknownAfter is the time after NotAfter from which on "unknown" by an operator is
// believed: a request that was sent at the last moment has then arrived or is lost.
const unknownAfter = time.Minute

// enquireAgain is the shortest time between two enquiries that unproven callbacks cause.
const enquireAgain = 10 * time.Second

// Decide returns what the command leads to. It is deterministic and changes nothing
// itself. Its only error is ErrUnknownCommand.
func Decide(view View, cmd Command) (Decision, error) {
	d := &decider{view: view, cmd: cmd}
	var a Answer
	switch do := cmd.Do.(type) {
	case Create:
		a = d.create(do)
	case Cancel:
		a = d.cancel(do)
	case Collect:
		a = d.collect(do)
	case Redirected:
		a = d.redirected(do)
	case Outcome:
		a = d.outcome(do)
	case Enquire:
		a = d.enquire(do)
	case Reserve:
		a = d.reserve(do)
	case Take:
		a = d.take(do)
	case Release:
		a = d.release(do)
	case Reverse:
		a = d.reverse(do)
	case IssueToken:
		a = d.issueToken(do)
	case ConsumeToken:
		a = d.consumeToken(do)
	case OpenRefundRequest:
		a = d.openRefundRequest(do)
	case Resolve:
		a = d.resolve(do)
	case Erase:
		a = d.erase(do)
	case NoteProposal:
		a = d.noteProposal(do)
	case Confirmed:
		a = d.confirmed(do)
	case Credit:
		a = d.credit(do)
	case CreditWithdrawn:
		a = d.creditWithdrawn(do)
	case InitCheckout:
		a = d.initCheckout(do)
	case PartnerPay:
		a = d.partnerPay(do)
	case LookUp:
		a = d.lookUp(do)
	case Tick:
		a = d.tick()
	default:
		return Decision{}, fmt.Errorf("%T: %w", cmd.Do, ErrUnknownCommand)
	}
	if cmd.ReplyTo != nil {
		d.out.Answer = &a
	}
	return d.out, nil
}

// decider collects a decision. Its reads see its own changes.
type decider struct {
	view View
	cmd  Command
	out  Decision
	// report is what an operator said, until the next event remembers it.
	report *collectionReport
}

// visible returns the command's session if the caller may see it.
func (d *decider) visible() (Session, bool) {
	s, ok := d.session(d.cmd.SessionID)
	if !ok || d.cmd.ApplicationID != "" && (s.ApplicationID != d.cmd.ApplicationID || s.Live != d.cmd.Live) {
		return Session{}, false
	}
	return s, true
}

func (d *decider) session(id string) (Session, bool) {
	if s, ok := d.out.Sessions[id]; ok {
		return s, true
	}
	return d.view.Session(id)
}

func (d *decider) order(k OrderKey) Order {
	if o, ok := d.out.Orders[k]; ok {
		return o
	}
	return d.view.Order(k)
}

func (d *decider) putOrder(k OrderKey, o Order) { put(&d.out.Orders, k, o) }

func put[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = v
}

// emit records an event of s and returns s after it.
func (d *decider) emit(s Session, t EventType, c change, detail map[string]string) Session {
	id, sequence := s.ID, s.Sequence+1
	c.report, d.report = d.report, nil
	if c.created != nil {
		id, sequence = c.created.ID, 1
	}
	e := Event{ID: eventID(id, sequence), Type: t, SessionID: id, Sequence: sequence, OccurredAt: d.cmd.At, Detail: detail, change: c}
	e.Session = apply(s, e)
	d.out.Events = append(d.out.Events, e)
	put(&d.out.Sessions, id, e.Session)
	d.tally(s, e.Session)
	d.settleClaims(e.Session)
	return e.Session
}

// finish emits an event that ends the session. The order becomes free or paid, and
// remembers a collection that is not final.
func (d *decider) finish(s Session, t EventType, c change, detail map[string]string) Session {
	return d.settle(d.emit(s, t, c, detail))
}

// with and without copy the list, because an order may be shared with the state.
func with(ids []string, id string) []string {
	if slices.Contains(ids, id) {
		return ids
	}
	return append(slices.Clone(ids), id)
}

func without(ids []string, id string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(x string) bool { return x == id })
}

// expire ends a session whose lifetime is over, even if its tick is late, so that the
// answer to a command does not depend on when the tick runs.
func (d *decider) expire(s Session) Session {
	if s.Status == StatusOpen && !s.InFlight() && !d.cmd.At.Before(s.ExpiresAt) {
		return d.finish(s, EventExpired, change{}, nil)
	}
	return s
}

func (d *decider) create(do Create) Answer {
	s := do.Session
	key := IdempotencyKey{s.ApplicationID, s.Live, do.IdempotencyKey}
	if known, ok := d.view.Idempotency(key); ok && d.cmd.At.Before(known.ForgetAt) {
		if !bytes.Equal(known.BodyHash, do.BodyHash) {
			return Answer{Code: CodeKeyReused}
		}
		a := Answer{Code: known.Code, Replayed: true, Faults: known.Faults}
		if known.SessionID != "" {
			if first, ok := d.session(known.SessionID); ok {
				a.Session = &first
			}
		}
		return a
	}
	if a, known := d.repeated(s); known {
		return a
	}

	if s.Portal() {
		// No quota: there is no key whose use it could limit.
		a := d.decideCreate(do)
		if a.Code.passes() {
			return a
		}
		return d.remember(key, do, a)
	}
	remaining, ok := d.count(s.ApplicationID, do.CreationsPerMinute)
	quota := Answer{QuotaLimit: do.CreationsPerMinute, QuotaRemaining: remaining}
	if !ok {
		quota.Code = CodeRateLimited
		quota.RetryAfter = d.cmd.At.Truncate(time.Minute).Add(time.Minute).Sub(d.cmd.At)
		return quota // the idempotency key stays unused
	}

	a := d.decideCreate(do)
	a.QuotaLimit, a.QuotaRemaining = quota.QuotaLimit, quota.QuotaRemaining
	return d.remember(key, do, a)
}

// repeated returns the answer to a creation whose session exists. A session id is random, so this is the
// creation itself once more, after what else would know it was forgotten. It must not make the session
// new: its money would be forgotten.
func (d *decider) repeated(s Session) (Answer, bool) {
	known, ok := d.session(s.ID)
	return Answer{Code: CodeOK, Session: &known, Replayed: true}, ok
}

// passes reports whether the refusal of a citizen's cart leaves its idempotency key unused. Such
// a cart asks the processor only for the first answer of the key.
func (c Code) passes() bool {
	return c == CodeSourceUnavailable || c == CodeValidationFailed || c == CodeNoChannel
}

// remember keeps the answer to a creation.
func (d *decider) remember(key IdempotencyKey, do Create, a Answer) Answer {
	retention := IdempotencyRetention
	if do.Session.Portal() && a.Code != CodeOK {
		retention = RefusedCartRetention
	}
	remembered := Idempotency{BodyHash: do.BodyHash, Code: a.Code, Faults: a.Faults, ForgetAt: d.cmd.At.Add(retention)}
	if a.Session != nil {
		remembered.SessionID = a.Session.ID
	}
	put(&d.out.Idempotency, key, remembered)
	return a
}

func (d *decider) decideCreate(do Create) Answer {
	s := do.Session
	if len(do.Faults) > 0 {
		return Answer{Code: do.Faults[0].Code, Faults: do.Faults}
	}
	k := s.orderKey()
	o := d.order(k)
	if o.OpenSessionID != "" {
		if open, ok := d.session(o.OpenSessionID); ok {
			d.expire(open)
			o = d.order(k)
		}
	}
	switch {
	case o.PaidSessionID != "":
		return d.taken(CodeOrderPaid, o.PaidSessionID)
	case o.OpenSessionID != "":
		return d.taken(CodeOrderOpen, o.OpenSessionID)
	case len(o.Late) > 0:
		return Answer{Code: CodeOrderUnderReview}
	}
	if faults := d.claim(s, do.Replace); len(faults) > 0 {
		return Answer{Code: CodeDueInPayment, Faults: faults}
	}
	s.CreatedAt = d.cmd.At
	s = d.settle(d.emit(Session{}, EventCreated, change{created: &s}, nil))
	return Answer{Code: CodeOK, Session: &s}
}

// taken is the answer to the creation of a session for an order that another session has.
func (d *decider) taken(code Code, id string) Answer {
	a := Answer{Code: code}
	if s, ok := d.session(id); ok {
		a.Session = &s
	}
	return a
}

// count takes one creation from the quota of the time stamp's minute. ok is false when
// none is left.
func (d *decider) count(applicationID string, limit int) (remaining int, ok bool) {
	q := d.view.Quota(applicationID)
	minute := d.cmd.At.Unix() / 60
	m := &q[0]
	switch {
	case m.Minute == minute:
	case q[1].Minute == minute:
		m = &q[1]
	default: // the new minute replaces the older one
		if q[1].Minute < m.Minute {
			m = &q[1]
		}
		*m = MinuteCount{Minute: minute}
	}
	if m.Count >= limit {
		return 0, false
	}
	m.Count++
	put(&d.out.Quotas, applicationID, q)
	return limit - m.Count, true
}

func (d *decider) cancel(do Cancel) Answer {
	s, ok := d.visible()
	if !ok {
		return Answer{Code: CodeSessionNotFound}
	}
	s = d.expire(s)
	switch {
	case s.Ended():
		return Answer{Code: CodeSessionEnded, Session: &s}
	case do.By == ByCitizen && s.InFlight(), do.By == ByDueChange && s.Collection != nil:
		return Answer{Code: CodeInFlight, Session: &s}
	}
	s = d.finish(s, EventCancelled, change{}, map[string]string{DetailBy: string(do.By)})
	return Answer{Code: CodeOK, Session: &s}
}

func (d *decider) erase(do Erase) Answer {
	s, ok := d.visible()
	if !ok {
		return Answer{Code: CodeSessionNotFound}
	}
	s = d.expire(s)
	switch {
	case !s.Ended():
		return Answer{Code: CodeSessionOpen, Session: &s}
	case !s.HoldsPersonalData():
		return Answer{Code: CodeOK, Session: &s, Replayed: true}
	}
	s = d.emit(s, EventErased, change{}, map[string]string{DetailBy: do.By})
	return Answer{Code: CodeOK, Session: &s}
}

func (d *decider) collect(do Collect) Answer {
	s, ok := d.visible()
	if !ok {
		return Answer{Code: CodeSessionNotFound}
	}
	s = d.expire(s)
	if s.Collection != nil && s.Collection.ID == do.CollectionID || s.refusedByReference(do.CollectionID) {
		return Answer{Code: CodeOK, Session: &s, Replayed: true}
	}
	offer, code := d.payable(s, do.OfferID)
	switch {
	case code != CodeOK:
		return Answer{Code: code, Session: &s}
	case offer.Channel.Origin() != OriginAsked:
		return Answer{Code: CodeOfferUnknown, Session: &s} // cash begins with a clerk's reservation
	case do.Total != s.Amount+offer.Fee:
		return Answer{Code: CodeTotalChanged, Session: &s}
	}
	if until := s.pausedUntil(); do.ByReference && d.cmd.At.Before(until) {
		return Answer{Code: CodeReferencePaused, Session: &s, RetryAfter: until.Sub(d.cmd.At)}
	}
	s = d.begin(s, offer, do, nil)
	return Answer{Code: CodeOK, Session: &s}
}

// begin begins a collection at an operator. word is where somebody waits for what the
// operator says.
func (d *decider) begin(s Session, offer Offer, do Collect, word *ReplyTo) Session {
	s = d.emit(s, EventCollectionRequested, change{collection: &Collection{
		ID: do.CollectionID, OfferID: offer.ID, Channel: offer.Channel, Status: CollectionPending,
		Amount: do.Total, Fee: offer.Fee, Currency: s.Currency, PayerMasked: do.PayerMasked,
		RequestedAt: d.cmd.At, NotAfter: d.cmd.At.Add(do.SendWithin), WindowEndsAt: d.cmd.At.Add(do.ApprovalWindow),
		NextEnquiryAt: d.cmd.At.Add(enquiryStep), Account: do.Account, ByReference: do.ByReference,
	}}, nil)
	d.out.Collections = append(d.out.Collections, CollectionRequest{
		Kind: RequestCollect, Session: s, PayerSealed: do.PayerSealed, Payer: do.Payer, Language: do.Language, ByReference: do.ByReference, At: d.cmd.At, Word: word,
	})
	return s
}

// payable returns the offer if a collection with it may begin now.
func (d *decider) payable(s Session, offerID string) (Offer, Code) {
	offer, known := s.Offer(offerID)
	switch {
	case s.Ended():
		return offer, CodeSessionEnded
	case s.Collection != nil:
		return offer, CodeInFlight
	case !known:
		return offer, CodeOfferUnknown
	}
	if code := d.blocked(s); code != CodeOK {
		return offer, code
	}
	if d.claimedByMoney(s) || d.overpays(s, true) {
		return offer, CodeDueInPayment
	}
	return offer, CodeOK
}

// redirected stores the redirect once: the acquirer has one page for each collection.
func (d *decider) redirected(do Redirected) Answer {
	s, ok := d.visible()
	if !ok || s.Collection == nil || s.Collection.ID != do.CollectionID {
		return Answer{Code: CodeSessionNotFound}
	}
	if s.InFlight() && s.Collection.RedirectSealed == nil {
		s = d.emit(s, EventCollectionRedirected, change{redirect: do.Sealed}, nil)
	}
	return Answer{Code: CodeOK, Session: &s}
}

// ask emits an enquiry about the session's collection, unless one was emitted within
// enquireAgain.
func (d *decider) ask(s Session) {
	c := s.Collection
	if c.Final() || c.Origin() != OriginAsked || s.Ended() && c.Mismatched || d.cmd.At.Before(c.LastEnquiryAt.Add(enquireAgain)) {
		return
	}
	d.enquiry(s)
}

// enquiry emits an enquiry and schedules the next.
func (d *decider) enquiry(s Session) {
	next := nextEnquiry(*s.Collection, d.cmd.At)
	if again := d.cmd.At.Add(enquiryOfOpenSession); s.outlivesRefusal() && d.cmd.At.Before(s.Collection.RequestedAt.Add(15*time.Minute)) {
		next = earliest(next, again)
	}
	s = d.emit(s, EventCollectionEnquired, change{next: next}, nil)
	d.out.Collections = append(d.out.Collections, CollectionRequest{Kind: RequestEnquire, Session: s, At: d.cmd.At})
}

const enquiryStep = 10 * time.Second

// nextEnquiry returns the time of the next enquiry after one at now: every 10 s up to the
// end of the approval window and once at its end, then 15 min, 1 h, 6 h and 24 h after
// the request, then daily.
func nextEnquiry(c Collection, now time.Time) time.Time {
	if now.Before(c.WindowEndsAt) {
		return earliest(now.Add(enquiryStep), c.WindowEndsAt)
	}
	for _, after := range []time.Duration{15 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour} {
		if at := c.RequestedAt.Add(after); at.After(now) {
			return at
		}
	}
	return now.Add(24 * time.Hour)
}

func (d *decider) enquire(do Enquire) Answer {
	s, ok := d.visible()
	if !ok || s.Collection == nil || s.Collection.ID != do.CollectionID {
		// There is no collection to ask about, and an unproven report is no evidence of money.
		return Answer{Code: CodeSessionNotFound}
	}
	d.ask(s)
	s, _ = d.session(s.ID)
	return Answer{Code: CodeOK, Session: &s}
}

// tick carries out what is due: the end of the approval window, the end of the lifetime,
// the next enquiry. A tick before the deadline does nothing. A session whose window has
// ended asks the operator before it fails, so that a service that was away at that time
// fails no payment that it never asked about.
func (d *decider) tick() Answer {
	s, ok := d.visible()
	if !ok {
		return Answer{Code: CodeSessionNotFound}
	}
	switch c := s.Collection; {
	case s.reserved():
		if !d.cmd.At.Before(c.WindowEndsAt.Add(reservationGrace)) {
			s = d.releaseReservation(s, "")
		}
	case s.InFlight() && !c.ClosingEnquiryAt.IsZero():
		if !d.cmd.At.Before(s.timeoutAt()) {
			s = d.timeout(s)
		}
	case s.InFlight() && !d.cmd.At.Before(c.WindowEndsAt):
		d.enquiry(s)
		s, _ = d.session(s.ID)
	}
	s = d.expire(s)
	if at := s.undecidedCaseAt(); !at.IsZero() && !d.cmd.At.Before(at) {
		s = d.openUndecided(s)
	}
	for _, due := range s.Dues() {
		if at := s.confirmationCaseOf(due); !at.IsZero() && !d.cmd.At.Before(at) {
			s = d.notAccepted(s, due)
		}
	}
	if s.Ended() && !s.Archived && !d.cmd.At.Before(s.EndedAt.Add(archiveAfter)) {
		s = d.emit(s, EventArchived, change{}, nil)
	}
	if c := s.Collection; !c.Final() && !c.NextEnquiryAt.IsZero() && !d.cmd.At.Before(c.NextEnquiryAt) {
		d.enquiry(s)
		s, _ = d.session(s.ID)
	}
	return Answer{Code: CodeOK, Session: &s}
}

// timeout returns the failure code of a session whose approval window ended without an
// answer of the operator.
func (c *Collection) timeout() FailureCode {
	switch {
	case c.Mismatched, c.Unreadable:
		return FailureOperatorError // the payer approved, but the report did not fit
	case c.Channel == ChannelCard:
		return FailureCardAbandoned
	}
	return FailureApprovalTimeout
}
