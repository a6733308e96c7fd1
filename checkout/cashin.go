package checkout

import (
	"fmt"
	"strconv"

	"quittance/money/localtime"
)

// CashinKind is the call of the deprecated cash-in surface that made a payment.
type CashinKind string

// The calls that make payments.
const (
	CashinInit    CashinKind = "init"    // init-checkout: the citizen chooses the offer on the hosted page
	CashinPartner CashinKind = "partner" // partners/payments: the partner has named offer and payer
)

// Cashin is what a session of the deprecated cash-in surface has besides (contract,
// "Deprecated cash-in resources"). Its OrderID is the partner's externalNumber, which
// several payments may share. The order of such a session is the payment itself, see
// orderKey.
type Cashin struct {
	Kind CashinKind
	// PaymentID is the contract's paymentId. The sender of the command has it from a
	// counter of the whole installation.
	PaymentID int64
	// Number is the contract's number, such as T2611000042. The decision gives it.
	Number string
	// Type is ecommerce, service or empty.
	Type string
	// Provider is the partner's name of the offer, such as card_network_b; empty for
	// CashinInit.
	Provider string
	// Items is the JSON of the request's items, with their numbers as they were sent. An
	// archived or erased session has none.
	Items []byte
	// WebhookURL receives the unsigned webhooks when the application has no address; may be
	// empty.
	WebhookURL string
	// ContactOf is the id under which the session's contact data are sealed, if it is not
	// the session's own: an update brings the contact data of a session that was not made.
	ContactOf string
}

// PaymentStatus is the status of a payment as the deprecated cash-in surface tells it
// (contract, "Deprecated cash-in payment status").
type PaymentStatus string

// The statuses of a payment.
const (
	PaymentCreated   PaymentStatus = "created"
	PaymentPending   PaymentStatus = "pending"
	PaymentCompleted PaymentStatus = "completed"
	PaymentFailed    PaymentStatus = "failed"
	PaymentCancelled PaymentStatus = "cancelled"
)

// PaymentStatus returns the status of a payment. It stays completed after a reversal. A
// reservation at a counter is a collection in progress. An open payment without one has failed
// if a payment by its reference was refused.
func (s Session) PaymentStatus() PaymentStatus {
	switch s.Status {
	case StatusOpen:
		switch {
		case s.Collection != nil:
			return PaymentPending
		case len(s.Refusals) > 0:
			return PaymentFailed
		}
		return PaymentCreated
	case StatusCompleted:
		return PaymentCompleted
	case StatusCancelled:
		return PaymentCancelled
	case StatusExpired, StatusFailed:
	}
	return PaymentFailed
}

// PartnerNotice returns the status of which an event tells the partner without a signature
// (contract, "Events", rule 6). ok is false for an event that tells nothing: created and
// pending payments, and reversals.
func (e Event) PartnerNotice() (status PaymentStatus, ok bool) {
	if e.Session.Cashin == nil {
		return "", false
	}
	switch e.Type {
	case EventCompleted:
		return PaymentCompleted, true
	case EventFailed, EventCancelled, EventExpired:
		return PaymentFailed, true
	default:
		return "", false
	}
}

// ContactID returns the id under which the session's contact data are sealed.
func (s Session) ContactID() string {
	if s.Cashin != nil && s.Cashin.ContactOf != "" {
		return s.Cashin.ContactOf
	}
	return s.ID
}

// MonthKey names the counter of an application's payments in a month and a mode.
type MonthKey struct {
	ApplicationID string
	Live          bool
	Month         string // local year and month, such as 2611
}

// NumberKey names a payment by its number.
type NumberKey struct {
	ApplicationID string
	Live          bool
	Number        string
}

// ExternalKey scopes an externalNumber to application and mode.
type ExternalKey struct {
	ApplicationID  string
	Live           bool
	ExternalNumber string
}

// External is what the state knows of the payments of an externalNumber. The zero value
// is an externalNumber that was never seen.
type External struct {
	// InitSessionID is the session of the latest payment that init-checkout made.
	InitSessionID string
	// Open counts the open payments, Paid those that are paid, Undecided the ended ones
	// whose collection has no final outcome, Late those with an open case that blocks them.
	Open, Paid, Undecided, Late int
	// Ask are the ids of undecided payments, at most maxAsk, the newest last. Their
	// operators are asked before another payment collects.
	Ask []string
}

// maxAsk bounds the undecided payments of an externalNumber that are asked about at once.
// A partner may give all its payments the same externalNumber. The others are asked about
// on their own schedule, and counted all the same.
const maxAsk = 20

// MaxNumber is the last number of a month.
const MaxNumber = 999_999

// InitCheckout makes a payment that the citizen pays on the hosted page. While the latest
// such payment of the externalNumber is created, the command updates that payment instead.
type InitCheckout struct {
	// Session is the new session as it will be stored, without a number. Its CreatedAt is
	// the command's At.
	Session Session
}

// PartnerPay makes a payment and begins its collection, in one decision. It always makes a
// new payment.
type PartnerPay struct {
	// Session is the new session as it will be stored, without a number.
	Session Session
	// Collect begins the collection. Its Total is the session's amount with the offer's fee.
	Collect Collect
	// Word is where the sender waits for what the operator says; nil when it does not wait.
	Word *ReplyTo
}

// LookUp finds a payment of the command's application by its number.
type LookUp struct{ Number string }

func (InitCheckout) action() {}
func (PartnerPay) action()   {}
func (LookUp) action()       {}

// orderKey returns the session's order. Payments of the deprecated cash-in surface are an
// order each. No order_id of a ministry request can hold the zero character, so the two
// surfaces do not block each other.
func (s Session) orderKey() OrderKey {
	k := OrderKey{s.ApplicationID, s.Live, s.OrderID}
	if s.Cashin != nil {
		k.OrderID += "\x00" + s.Cashin.Number
	}
	return k
}

func (s Session) externalKey() ExternalKey {
	return ExternalKey{s.ApplicationID, s.Live, s.OrderID}
}

func (d *decider) external(k ExternalKey) External {
	if e, ok := d.out.Externals[k]; ok {
		return e
	}
	return d.view.External(k)
}

// tally makes the entry of the externalNumber agree with a payment that an event has
// changed. It adds differences, so that the entry does not grow with the payments.
func (d *decider) tally(before, after Session) {
	if after.Cashin == nil {
		return
	}
	k := after.externalKey()
	e := d.external(k)
	changed := false
	count := func(n *int, was, is bool) {
		if was == is {
			return
		}
		changed = true
		if is {
			*n++
		} else {
			*n--
		}
	}
	count(&e.Open, before.Status == StatusOpen, after.Status == StatusOpen)
	count(&e.Paid, before.Paid(), after.Paid())
	count(&e.Undecided, before.undecided(), after.undecided())
	count(&e.Late, before.underReview(), after.underReview())
	if !changed {
		return
	}
	e.Ask = toggled(e.Ask, after.ID, after.undecided())
	e.Ask = e.Ask[max(0, len(e.Ask)-maxAsk):]
	d.out.putExternal(k, e)
}

func (out *Decision) putExternal(k ExternalKey, e External) { put(&out.Externals, k, e) }

// number takes the next number of the month in which the command was stamped. ok is false
// when the month has none left.
func (d *decider) number(s Session) (number string, ok bool) {
	k := MonthKey{s.ApplicationID, s.Live, localtime.In(d.cmd.At).Format("0601")}
	n := d.view.Month(k) + 1 // a decision takes one number
	if n > MaxNumber {
		return "", false
	}
	put(&d.out.Months, k, n)
	return fmt.Sprintf("T%s%06d", k.Month, n), true
}

// createPayment creates the session of a payment.
func (d *decider) createPayment(s Session) (Session, Code) {
	number, ok := d.number(s)
	if !ok {
		return Session{}, CodeNumbersExhausted
	}
	c := *s.Cashin
	c.Number = number
	s.Cashin, s.CreatedAt = &c, d.cmd.At
	s = d.settle(d.emit(Session{}, EventCreated, change{created: &s}, map[string]string{
		DetailNumber: number, DetailPaymentID: strconv.FormatInt(c.PaymentID, 10),
	}))
	put(&d.out.Numbers, NumberKey{s.ApplicationID, s.Live, number}, s.ID)
	return s, CodeOK
}

func (d *decider) initCheckout(do InitCheckout) Answer {
	if a, known := d.repeated(do.Session); known {
		return a
	}
	k := do.Session.externalKey()
	if id := d.external(k).InitSessionID; id != "" {
		if s, ok := d.session(id); ok {
			s = d.expire(s)
			if s.PaymentStatus() == PaymentCreated {
				s = d.emit(s, EventUpdated, change{updated: &do.Session}, nil)
				return Answer{Code: CodeOK, Session: &s}
			}
		}
	}
	s, code := d.createPayment(do.Session)
	if code != CodeOK {
		return Answer{Code: code}
	}
	e := d.external(k)
	e.InitSessionID = s.ID
	d.out.putExternal(k, e)
	return Answer{Code: CodeOK, Session: &s}
}

func (d *decider) partnerPay(do PartnerPay) Answer {
	if a, known := d.repeated(do.Session); known {
		return a
	}
	offer, known := do.Session.Offer(do.Collect.OfferID)
	switch {
	case !known, offer.Channel.Origin() != OriginAsked:
		return Answer{Code: CodeOfferUnknown}
	case do.Collect.Total != do.Session.Amount+offer.Fee:
		return Answer{Code: CodeTotalChanged}
	}
	s, code := d.createPayment(do.Session)
	if code != CodeOK {
		return Answer{Code: code}
	}
	s = d.begin(s, offer, do.Collect, do.Word)
	return Answer{Code: CodeOK, Session: &s}
}

func (d *decider) lookUp(do LookUp) Answer {
	id := d.view.Numbered(NumberKey{d.cmd.ApplicationID, d.cmd.Live, do.Number})
	if id == "" {
		return Answer{Code: CodeSessionNotFound}
	}
	d.cmd.SessionID = id
	s, ok := d.visible()
	if !ok {
		return Answer{Code: CodeSessionNotFound}
	}
	s = d.expire(s)
	return Answer{Code: CodeOK, Session: &s}
}

// updated returns the payment with what a later init-checkout says. What has been told
// already stays: ids, number, references, and with them the address of the page.
func (s Session) updated(to Session) Session {
	s.Amount, s.Currency, s.Offers, s.ExpiresAt, s.ERP = to.Amount, to.Currency, to.Offers, to.ExpiresAt, to.ERP
	s.Description, s.Note, s.SuccessURL, s.CancelURL = to.Description, to.Note, to.SuccessURL, to.CancelURL
	s.CustomerSealed, s.Customer, s.CustomerID, s.Metadata = to.CustomerSealed, to.Customer, to.CustomerID, to.Metadata
	s.ServiceCode, s.ServiceLabel = to.ServiceCode, to.ServiceLabel
	c := *s.Cashin
	c.Type, c.Items, c.WebhookURL, c.ContactOf = to.Cashin.Type, to.Cashin.Items, to.Cashin.WebhookURL, ""
	if len(to.CustomerSealed) > 0 {
		c.ContactOf = to.ID
	}
	s.Cashin = &c
	return s
}

// otherPaid reports whether another session of the order is paid: for a payment of the
// deprecated cash-in surface, another payment of the externalNumber.
func (d *decider) otherPaid(s Session) bool {
	if s.Cashin != nil {
		n := d.external(s.externalKey()).Paid
		if s.Paid() {
			n--
		}
		return n > 0
	}
	o := d.order(s.orderKey())
	return o.PaidSessionID != "" && o.PaidSessionID != s.ID
}

// openBeside returns the session that may be open beside an ended one of the same order,
// empty if there is none: for a payment of the deprecated cash-in surface, the latest that
// init-checkout made for its externalNumber. The page of that one could collect again.
func (d *decider) openBeside(s Session) string {
	id := d.order(s.orderKey()).OpenSessionID
	if s.Cashin != nil {
		id = d.external(s.externalKey()).InitSessionID
	}
	if id == s.ID {
		return ""
	}
	return id
}

// blocked returns why no collection may begin for the session's order: its money arrived
// too late for an earlier session and a case decides about it, or the operator of an
// earlier collection must be asked first. For a payment of the deprecated cash-in surface
// the payments of its externalNumber count.
func (d *decider) blocked(s Session) Code {
	o := d.order(s.orderKey())
	late, undecided, ask := len(o.Late), len(o.Undecided), o.Undecided
	if s.Cashin != nil {
		e := d.external(s.externalKey())
		late, undecided, ask = e.Late, e.Undecided, e.Ask
	}
	switch {
	case late > 0:
		// The order's money arrived too late for its session. It must not be collected a
		// second time; an operator case decides about it.
		return CodeOrderUnderReview
	case undecided > 0:
		for _, id := range ask {
			if earlier, ok := d.session(id); ok {
				d.ask(earlier)
			}
		}
		return CodePreviousUndecided
	}
	return CodeOK
}

// alone reports whether no session of the order is open, paid or undecided, and no other
// than s is late (docs/design/decisions.md § 14). For a payment of the deprecated cash-in surface the
// payments of its externalNumber count.
func (d *decider) alone(s Session) bool {
	o := d.order(s.orderKey())
	if o.OpenSessionID != "" || o.PaidSessionID != "" || len(o.Undecided) > 0 || len(o.Late) > 1 {
		return false
	}
	if s.Cashin == nil {
		return true
	}
	e := d.external(s.externalKey())
	return e.Open == 0 && e.Paid == 0 && e.Undecided == 0 && e.Late <= 1
}
