package checkout

import (
	"cmp"
	"slices"
	"time"
)

// Status is the state of a session in its lifecycle (contract, "Checkout session").
type Status string

// The statuses of a session. All but open are terminal.
const (
	StatusOpen      Status = "open"
	StatusCompleted Status = "completed"
	StatusExpired   Status = "expired"
	StatusCancelled Status = "cancelled"
	StatusFailed    Status = "failed"
)

// Statuses has all statuses, in the contract's order.
func Statuses() []Status {
	return []Status{StatusOpen, StatusCompleted, StatusExpired, StatusCancelled, StatusFailed}
}

// Mode says on which page the citizen pays.
type Mode string

// The modes of a session.
const (
	ModeHosted   Mode = "hosted"
	ModeEmbedded Mode = "embedded"
)

// Channel is the kind of payment in the ERP confirmation.
type Channel string

// The channels.
const (
	ChannelMobileMoney Channel = "MOBILE_MONEY"
	ChannelCash        Channel = "CASH"
	ChannelCard        Channel = "CARD"
	// ChannelBankTransfer is a transfer of the citizen to the agency's bank account.
	ChannelBankTransfer Channel = "BANK_TRANSFER"
	// ChannelSwitch is a request to pay over the regional switch.
	ChannelSwitch Channel = "SWITCH"
)

// Channels has all channels.
func Channels() []Channel {
	return []Channel{ChannelMobileMoney, ChannelCash, ChannelCard, ChannelBankTransfer, ChannelSwitch}
}

// ByPhone reports whether payers of the channel are reached by their number: a request is on their phone.
func (c Channel) ByPhone() bool { return c == ChannelMobileMoney || c == ChannelSwitch }

// OfContract reports whether the contract's first edition names the channel: every ERP knows it.
func (c Channel) OfContract() bool {
	return c == ChannelMobileMoney || c == ChannelCash || c == ChannelCard
}

// Origin says how the money of a channel comes to the service.
type Origin string

// The origins.
const (
	// OriginAsked is money for which an operator was asked. The operator decides, and is asked again
	// until it has.
	OriginAsked Origin = "asked"
	// OriginCounter is cash that a clerk takes. A clerk decides, within the clerk's limits.
	OriginCounter Origin = "counter"
	// OriginStatement is money that nobody asked for. The account's statement shows it.
	OriginStatement Origin = "statement"
)

// Origin returns how the money of the channel comes.
func (c Channel) Origin() Origin {
	switch c { //nolint:exhaustive // operators are asked for all others
	case ChannelCash:
		return OriginCounter
	case ChannelBankTransfer:
		return OriginStatement
	}
	return OriginAsked
}

// The offers a citizen can choose from (contract, "Identifiers").
const (
	OfferMomo       = "momo"
	OfferMomoB      = "momo_b"
	OfferCard       = "card"
	OfferCashAgency = "cash_agency"
	// OfferBankTransfer and OfferSwitch are not of the contract's first edition: docs/design/decisions.md § 17.
	OfferBankTransfer = "bank_transfer"
	OfferSwitch       = "switch"
)

// Offers are all offers with their channels, without fees. Read only.
var Offers = []Offer{
	{ID: OfferMomo, Channel: ChannelMobileMoney},
	{ID: OfferMomoB, Channel: ChannelMobileMoney},
	{ID: OfferCard, Channel: ChannelCard},
	{ID: OfferCashAgency, Channel: ChannelCash},
	{ID: OfferBankTransfer, Channel: ChannelBankTransfer},
	{ID: OfferSwitch, Channel: ChannelSwitch},
}

// TransferTime is how long a bank transfer must be able to take: it is offered while a session has so much of its lifetime
// left.
const TransferTime = 72 * time.Hour

// Offered reports whether citizens are shown the session's offer at a time.
func (s Session) Offered(o Offer, at time.Time) bool {
	return o.Channel.Origin() != OriginStatement || s.ExpiresAt.Sub(at) >= TransferTime
}

// OfferChannel returns the channel of an offer; ok is false for an unknown offer.
func OfferChannel(offer string) (channel Channel, ok bool) {
	for _, o := range Offers {
		if o.ID == offer {
			return o.Channel, true
		}
	}
	return "", false
}

// Session is a checkout session. Amounts are in minor units, times in UTC. The zero value
// stands for no session.
type Session struct {
	ID            string
	ApplicationID string
	TenantID      string
	Live          bool
	// Platform is set when a platform key made it: its webhooks also go to the
	// platform's endpoints.
	Platform bool

	OrderID      string
	Amount       int64 // due, without fees
	Currency     string
	Mode         Mode
	ServiceCode  string
	ServiceLabel string
	Description  string
	Note         string // for the agency, never shown to the citizen
	// CustomerSealed is the customer's contact data, sealed with a key of its own
	// (internal/personal). Only the holder of that key can read it.
	CustomerSealed []byte
	// Customer is the contact data of a session that a version without seals created.
	Customer   *Customer
	CustomerID string
	Metadata   map[string]string
	SuccessURL string
	CancelURL  string

	// Items are the dues of a session that the citizen portal made, or that pays several.
	// Without items the session pays one due, which its own fields describe. Their amounts
	// add up to Amount, and the first one has the session's TransactionID, NoticeID and
	// NoticeRef.
	Items []Item
	// CitizenID is the account of the citizen whose cart the session is. It is empty unless
	// the citizen portal made the session.
	CitizenID string
	// PulledAt is the time just before the agency's ERP was asked for the dues; zero unless
	// the citizen portal made the session.
	PulledAt time.Time

	PaymentRef    string
	NoticeID      string
	NoticeRef     string
	TransactionID string
	Offers        []Offer

	// ClientSecretHash is SHA-256 of the client_secret, ClientSecretSealed its
	// ciphertext for replays of the creation answer. Both empty unless embedded.
	ClientSecretHash   []byte
	ClientSecretSealed []byte

	CreatedAt time.Time
	ExpiresAt time.Time
	// EndedAt is the time of the terminal status; for a completed session it is the
	// contract's completed_at.
	EndedAt time.Time

	Status Status
	// CancelledBy is who cancelled the session; empty unless it was cancelled, and for a
	// session that an earlier version cancelled.
	CancelledBy Canceller
	// Sequence is the number of the session's last event, from 1.
	Sequence   int64
	Collection *Collection
	// Refusals are the last refused payments by reference that did not end the session, oldest
	// first.
	Refusals []Refusal
	// Orphans are the ids of collections whose money was reported for this session
	// although they are not the session's. Each is one operator case.
	Orphans []string
	// Cases are the sums of this session that fit no open session, with their exits.
	Cases []Case
	// ERP is true when the agency had an ERP for payments of this mode at the creation.
	ERP bool
	// Confirmation is what is known of the ERP's part in the payment of a session without
	// items. Each item has its own.
	Confirmation Confirmation
	// Late is true when the session was completed after it had ended (docs/design/decisions.md § 14).
	Late bool
	// ReversedAt is when the session's money was given back; zero if it was not.
	ReversedAt     time.Time
	ReversalReason ReversalReason
	ReversalRef    string
	// Archived is true 30 days after the session's end. Then ids, amounts, references,
	// cases and the status are left.
	Archived bool
	// Cashin is set for a payment of the deprecated cash-in surface.
	Cashin *Cashin

	FailureCode    FailureCode
	FailureMessage string
}

// Customer is contact data for the receipt; any field may be empty. Only the deprecated
// cash-in surface has an address.
type Customer struct {
	Name, Email, Phone, Address string
}

// Offer is a way to pay this session, with the fee for its amount.
type Offer struct {
	ID      string
	Channel Channel
	Fee     int64
}

// CollectionStatus is the state of a collection.
type CollectionStatus string

// The statuses of a collection. Undecided is pending when its session has ended.
const (
	CollectionPending   CollectionStatus = "pending"
	CollectionApproved  CollectionStatus = "approved"
	CollectionRefused   CollectionStatus = "refused"
	CollectionUndecided CollectionStatus = "undecided"
)

// Collection is a session's only request for money, or a clerk's reservation to take
// cash.
type Collection struct {
	ID      string // UUID, the id told to the operator
	OfferID string
	Channel Channel
	Status  CollectionStatus
	Amount  int64 // total, fee included
	Fee     int64
	// Currency of Amount and Fee, the session's.
	Currency    string
	PayerMasked string
	// RequestedAt is when the money was asked for; of a transfer, which nobody asked for, when the bank booked it.
	RequestedAt time.Time
	// NotAfter is the last moment at which the operator may be asked for money.
	NotAfter time.Time
	// WindowEndsAt ends the payer's time to approve.
	WindowEndsAt time.Time
	// Account is the fingerprint of the merchant account that was asked. The answer of
	// another account says nothing about this collection. Of cash that was taken, it is the
	// counter; of a transfer, the code of the statement account.
	Account string
	// Enquiries counts the enquiries so far; NextEnquiryAt is zero once final.
	Enquiries     int
	LastEnquiryAt time.Time
	NextEnquiryAt time.Time
	// ClosingEnquiryAt is the time of the first enquiry at or after WindowEndsAt. The
	// session does not fail for the end of its window before that enquiry is answered
	// or closingPatience has passed.
	ClosingEnquiryAt time.Time
	// Mismatched is true when the operator reported another amount or currency.
	Mismatched bool
	// Unreadable is true when the operator approved without an amount or currency that can be
	// read. It is asked again until it names them.
	Unreadable bool
	// Reports are what the operator said, each once, the oldest first.
	Reports []Report
	// Reopened counts how often a refusal was taken back, or the operator was asked anew.
	Reopened    int
	OperatorRef string
	FailureCode FailureCode
	DecidedAt   time.Time
	// ApprovedAt is the operator's own date of the approval; zero if it told none.
	ApprovedAt time.Time

	// ByReference is true when somebody who knows the payment reference only began it.
	ByReference bool
	// RedirectSealed is the sealed redirect to the acquirer's page, see Redirected.
	RedirectSealed []byte
	// Clerk is the clerk who reserved the session or took the cash. ReversedBy gave the
	// cash back at ReversedAt.
	Clerk      string
	ReversedBy string
	ReversedAt time.Time
}

// Origin returns how the money of the collection comes; empty for nil.
func (c *Collection) Origin() Origin {
	if c == nil {
		return ""
	}
	return c.Channel.Origin()
}

// Final reports whether the collection has a final outcome.
func (c *Collection) Final() bool {
	return c == nil || c.Status == CollectionApproved || c.Status == CollectionRefused
}

// Paid is true only for a completed session whose money was not given back.
func (s Session) Paid() bool { return s.Status == StatusCompleted && s.ReversedAt.IsZero() }

// PaidAt returns when a completed session was paid, in UTC: the operator's own date of its approval,
// or else when the service learned of the payment. Everybody who says when the payment was made says
// this: knowledge that comes late does not move a payment into another month.
func (s Session) PaidAt() time.Time {
	known := s.RecordedAt()
	if c := s.Collection; c != nil {
		return cmp.Or(bounded(c.ApprovedAt, c.RequestedAt, known), known)
	}
	return known
}

// RecordedAt returns when the service learned of the payment of a completed session, in UTC. The
// tokens of its receipts are issued then.
func (s Session) RecordedAt() time.Time {
	if s.Late && s.Collection != nil {
		return s.Collection.DecidedAt
	}
	return s.EndedAt
}

// AgencyOrderID returns the dossier number of the agency; empty unless the agency's system gave the
// session one.
func (s Session) AgencyOrderID() string {
	if s.Portal() || s.Cashin != nil {
		return ""
	}
	return s.OrderID
}

// Ended reports whether the status is terminal.
func (s Session) Ended() bool { return s.Status != StatusOpen }

// Offer returns the session's offer with the id.
func (s Session) Offer(id string) (Offer, bool) {
	i := slices.IndexFunc(s.Offers, func(o Offer) bool { return o.ID == id })
	if i < 0 {
		return Offer{}, false
	}
	return s.Offers[i], true
}

// InFlight reports whether the session is open and its collection waits for an outcome.
func (s Session) InFlight() bool {
	return s.Status == StatusOpen && s.Collection != nil && s.Collection.Status == CollectionPending
}

// undecided reports whether the session has ended and its operator has not told what
// became of its collection.
func (s Session) undecided() bool {
	return s.Ended() && !s.Collection.Final() && !s.Collection.Mismatched
}

// UndecidedSince returns when the session ended, if its operator has not decided since; else the zero
// time. Money that was reported with another amount is a case instead.
func (s Session) UndecidedSince() time.Time {
	if !s.undecided() {
		return time.Time{}
	}
	return s.EndedAt
}

// reserved reports whether a clerk has reserved the session to take cash. The session may
// have ended since. The reservation ends with its window, without any operator.
func (s Session) reserved() bool {
	return s.Collection.Origin() == OriginCounter && !s.Collection.Final()
}

// reservationGrace is how long after its window a clerk's reservation lasts. A clerk who
// confirms in the last second has taken the cash for the reservation.
const reservationGrace = 5 * time.Second

// closingPatience is how long a session waits for the answer to the enquiry made at the
// end of its approval window. It is longer than a connector's time-out for a call.
const closingPatience = 25 * time.Second

// timeoutAt is when the session fails if its operator stays silent. The enquiry at the end of
// its approval window has been made.
func (s Session) timeoutAt() time.Time {
	at := s.Collection.ClosingEnquiryAt.Add(closingPatience)
	if s.outlivesRefusal() && s.ExpiresAt.After(at) {
		return s.ExpiresAt
	}
	return at
}

// Deadline returns the time of the session's next Tick: the earliest of its expiry, the
// end of its approval window and its next enquiry. ok is false when it needs none.
func (s Session) Deadline() (at time.Time, ok bool) {
	switch {
	case s.reserved():
		at = s.Collection.WindowEndsAt.Add(reservationGrace)
	case s.InFlight() && s.Collection.ClosingEnquiryAt.IsZero():
		at = earliest(s.Collection.WindowEndsAt, s.Collection.NextEnquiryAt)
	case s.InFlight():
		at = earliest(s.timeoutAt(), s.Collection.NextEnquiryAt)
	case s.Status == StatusOpen:
		at = s.ExpiresAt
	case !s.Collection.Final():
		at = earliest(s.Collection.NextEnquiryAt, s.undecidedCaseAt())
	}
	at = earliest(at, s.confirmationCaseAt())
	if s.Ended() && !s.Archived {
		at = earliest(at, s.EndedAt.Add(archiveAfter))
	}
	return at, !at.IsZero()
}

// archiveAfter is the time from a session's end to its archiving (docs/design/decisions.md § 15).
const archiveAfter = 30 * 24 * time.Hour

// archived returns the session without contact data, secrets and what only an open
// session needs, so that the state does not grow with them. The citizen's account stays: it
// is a random id, by which the citizen finds earlier payments until the account is erased. So
// does the reference of who owes a due: the ERP may have to be told of its payment again.
func archived(s Session) Session {
	before := s
	s = erased(s)
	s.Archived, s.CitizenID = true, before.CitizenID
	for i := range s.Items {
		s.Items[i].SubjectRef = before.Items[i].SubjectRef
	}
	s.ClientSecretHash, s.ClientSecretSealed = nil, nil
	s.Offers, s.SuccessURL, s.CancelURL = nil, "", ""
	if s.Collection != nil {
		s.Collection.RedirectSealed = nil
	}
	return s
}

// erased returns the session without contact data, without texts that may hold some, and
// without the citizen's account and the references of who owes its dues. Ids, amounts, other
// references, metadata, cases and the status stay. The reference of who owes a due stays
// while the ERP may have to be told of its payment.
func erased(s Session) Session {
	s.CustomerSealed, s.Customer, s.CustomerID, s.Description, s.Note, s.CitizenID = nil, nil, "", "", "", ""
	s.Items = slices.Clone(s.Items)
	for i := range s.Items {
		s.Items[i].Label = ""
		if !s.mayConfirm(s.Items[i]) {
			s.Items[i].SubjectRef = ""
		}
	}
	if s.Collection != nil {
		s.Collection.PayerMasked = ""
	}
	s.Refusals = slices.Clone(s.Refusals)
	for i, r := range s.Refusals {
		if r.Collection != nil {
			c := *r.Collection
			c.PayerMasked = ""
			s.Refusals[i].Collection = &c
		}
	}
	if s.Cashin != nil {
		c := *s.Cashin
		c.Items = nil
		s.Cashin = &c
	}
	return s
}

// HoldsPersonalData reports whether the session has anything that Erase removes.
func (s Session) HoldsPersonalData() bool {
	return len(s.CustomerSealed) > 0 || s.Customer != nil || s.CustomerID != "" || s.Description != "" || s.Note != "" || s.CitizenID != "" ||
		s.Collection.namesPayer() || slices.ContainsFunc(s.Refusals, func(r Refusal) bool { return r.Collection.namesPayer() }) || s.Cashin != nil && len(s.Cashin.Items) > 0 ||
		slices.ContainsFunc(s.Items, func(i Item) bool { return i.Label != "" || i.SubjectRef != "" && !s.mayConfirm(i) })
}

// namesPayer reports whether the collection has a part of the payer's number.
func (c *Collection) namesPayer() bool { return c != nil && c.PayerMasked != "" }

// mayConfirm reports whether the ERP has not accepted the payment of the due, or the session
// may still become one.
func (s Session) mayConfirm(due Item) bool {
	return s.undecided() || slices.ContainsFunc(s.Cases, Case.Open) || s.Paid() && due.Confirmation.Status != "" && !due.Confirmation.settled()
}

// earliest returns the earlier of two times. A zero time means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
