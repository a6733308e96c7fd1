// Package support puts together what the service knows of a payment, for whoever answers a
// call about it: the session with its verdict, its deliveries and its cases from Postgres, the
// journal from ClickHouse, and the commands from Kafka. It changes nothing.
//
// What it returns holds no secret, no contact data and no full phone number.
package support

import (
	"context"
	"errors"
	"strings"
	"time"

	"quittance/checkout"
	"quittance/internal/cases"
	"quittance/internal/deliveries"
	"quittance/internal/identity"
	"quittance/internal/journal"
	"quittance/internal/kafka"
	"quittance/internal/sessions"
	"quittance/schemas"
)

// Config configures a Desk. Fields without a default are required.
type Config struct {
	// Sessions must run.
	Sessions   *sessions.Reader
	Deliveries *deliveries.Store
	Cases      *cases.Store
	// Journal is nil when ClickHouse cannot be asked; NoJournal says why.
	Journal   *journal.Store
	NoJournal error
	// WithoutCommands leaves out the commands of a page, whose reading from Kafka takes up to 5 s.
	WithoutCommands bool

	Kafka    kafka.Config
	Topology *kafka.Topology
	Codec    *schemas.Codec
	// Machine returns the machine's time, which records have, at a time of the service.
	Machine func(ctx context.Context, at time.Time) (time.Time, error)
	// Now is the time of the service.
	Now time.Time

	// ApplicationIDs are the applications whose sessions Viewer sees. A search finds no others.
	ApplicationIDs []string
	// Viewer is the person who asks; nil for whoever runs the installation. An agency's staff
	// see what belongs to the agency.
	Viewer *identity.Staff
}

// Desk answers calls about payments.
type Desk struct{ Config }

// New makes a desk.
func New(cfg Config) (*Desk, error) {
	if cfg.Sessions == nil || cfg.Deliveries == nil || cfg.Cases == nil || cfg.Topology == nil || cfg.Codec == nil || cfg.Machine == nil || cfg.Now.IsZero() {
		return nil, errors.New("support: Sessions, Deliveries, Cases, Topology, Codec, Machine and Now are required")
	}
	if cfg.Journal == nil && cfg.NoJournal == nil {
		return nil, errors.New("support: without a Journal NoJournal is required")
	}
	return &Desk{cfg}, nil
}

// Part is a source that could not be read, or not to its end.
type Part string

// The parts.
const (
	PartReferences Part = "operators' references" // of payments, in ClickHouse
	PartJournal    Part = "journal"
	PartCommands   Part = "commands"
)

// MissingCode says why an answer lacks a part, or the end of it.
type MissingCode string

// The codes, with the fields of Missing that they have.
const (
	// MissingUnread: the source could not be read (Err).
	MissingUnread MissingCode = "unread"
	// MissingLater: reading ended before the end (Until, Err).
	MissingLater MissingCode = "later"
	// MissingBeyond: the source has more than is read for one answer (Read, and Until for commands).
	MissingBeyond MissingCode = "beyond"
	// MissingBehind: events have not arrived yet (Read of All).
	MissingBehind MissingCode = "behind"
	// MissingExpired: records are no longer kept (Kept).
	MissingExpired MissingCode = "expired"
)

// MissingCodes returns all codes.
func MissingCodes() []MissingCode {
	return []MissingCode{MissingUnread, MissingLater, MissingBeyond, MissingBehind, MissingExpired}
}

// Missing says what an answer lacks. It has no text for people: they see it in their language, where it
// is shown.
type Missing struct {
	Part Part
	Code MissingCode
	// Read is the number of entries, events or records that were read, of All.
	Read, All int64
	// Until is the time of the last record that was read, UTC.
	Until time.Time
	// Kept is how long records are kept.
	Kept time.Duration
	// Err is the fault of the source; nil for other codes.
	Err error
}

// Payment is a session with its deliveries.
type Payment struct {
	checkout.Session
	// Deliveries are those of the last 60 days, the newest event first.
	Deliveries []deliveries.Delivery
}

// Found is the result of a search.
type Found struct {
	Payments []Payment // newest first
	// Cases are of money that belongs to no session, with the reference.
	Cases   []cases.Case
	Missing []Missing
}

// deliveriesAtMost is the largest number of deliveries of a search or a page.
const deliveriesAtMost = 1000

// Find searches payments by an order, a payment reference, the id of a session, or a
// reference that an operator has. It searches those that the viewer sees: what others have, however
// many, takes the place of none, and what is theirs is answered like what is unknown. Errors are sessions.ErrBehind and those of the databases.
func (d *Desk) Find(ctx context.Context, term string) (found Found, err error) {
	term = strings.TrimSpace(term)
	search := sessions.Search{OrderID: term, PaymentRef: PaymentRef(term), ApplicationIDs: append([]string{}, d.ApplicationIDs...)} // never nil, which is all
	if strings.HasPrefix(term, sessionPrefix) {
		search.IDs = []string{term}
	}
	known, err := d.Sessions.Search(ctx, search)
	if err != nil {
		return found, err
	}
	more, err := d.byReference(ctx, term, len(known) == 0, &found)
	if err != nil {
		return found, err
	}
	if len(more) > 0 {
		search.IDs = append(search.IDs, more...)
		if known, err = d.Sessions.Search(ctx, search); err != nil {
			return found, err
		}
	}
	var ids []string
	for _, s := range known {
		found.Payments = append(found.Payments, Payment{Session: s})
		ids = append(ids, s.ID)
	}
	if len(ids) == 0 {
		return found, nil
	}
	sent, err := d.Deliveries.List(ctx, deliveries.Filter{SessionIDs: ids, Limit: deliveriesAtMost})
	if err != nil {
		return found, err
	}
	for i := range found.Payments {
		for _, one := range sent {
			if one.SessionID == found.Payments[i].ID {
				found.Payments[i].Deliveries = append(found.Payments[i].Deliveries, one)
			}
		}
	}
	return found, nil
}

const sessionPrefix = "chs_"

// byReference returns the sessions with a reference of an operator. It adds to found the
// cases of money with this reference that belongs to no session. A thorough search reads
// more of the journal.
func (d *Desk) byReference(ctx context.Context, reference string, thorough bool, found *Found) (ids []string, err error) {
	list, err := d.Cases.List(ctx, d.Viewer, cases.Filter{Reference: reference, Limit: deliveriesAtMost})
	if err != nil {
		return nil, err
	}
	for _, c := range list {
		if c.InSession {
			ids = append(ids, c.SessionID)
		} else {
			found.Cases = append(found.Cases, c)
		}
	}
	why := d.NoJournal
	if d.Journal != nil {
		var more []string
		if more, why = d.Journal.SessionsByReference(ctx, d.agency(), reference, thorough); why == nil {
			return append(ids, more...), nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	found.Missing = append(found.Missing, Missing{Part: PartReferences, Code: MissingUnread, Err: why})
	return ids, nil
}

// agency returns the viewer's agency; empty for all.
func (d *Desk) agency() string {
	if d.Viewer == nil {
		return ""
	}
	return d.Viewer.AgencyID
}

// sees reports whether the viewer may see what belongs to an agency.
func (d *Desk) sees(agencyID string) bool { return d.Viewer == nil || d.Viewer.ActsFor(agencyID) }

// PaymentRef returns the payment reference that a person has typed, perhaps in groups; empty
// if it is none.
func PaymentRef(typed string) string {
	ref := checkout.Ungrouped(typed)
	if !checkout.ValidPaymentRef(ref) {
		return ""
	}
	return ref
}

// Page is everything about a payment.
type Page struct {
	Payment
	Cases []cases.Detail
	// Steps are what happened, in its order.
	Steps   []Step
	Missing []Missing
}

// Page returns everything about a session. Errors are sessions.ErrNotFound,
// sessions.ErrBehind and those of Postgres.
func (d *Desk) Page(ctx context.Context, sessionID string) (p Page, err error) {
	s, err := d.Sessions.ByID(ctx, sessionID)
	if err != nil {
		return p, err
	}
	return d.PageOf(ctx, s)
}

// PageOf returns everything about a session that was read a moment ago: reading it again would wait for the read model again.
// Errors are those of Page.
func (d *Desk) PageOf(ctx context.Context, s checkout.Session) (p Page, err error) {
	if !d.sees(s.TenantID) {
		return p, sessions.ErrNotFound
	}
	p.Session = s
	if p.Deliveries, err = d.Deliveries.List(ctx, deliveries.Filter{SessionIDs: []string{s.ID}, Limit: deliveriesAtMost}); err != nil {
		return p, err
	}
	list, err := d.Cases.List(ctx, d.Viewer, cases.Filter{SessionID: s.ID})
	if err != nil {
		return p, err
	}
	for _, c := range list {
		detail, err := d.Cases.Show(ctx, d.Viewer, c.ID, d.Now)
		if err != nil {
			return p, err
		}
		p.Cases = append(p.Cases, detail)
	}
	entries, complete := d.journal(ctx, &p)
	var commands []command
	if !d.WithoutCommands {
		commands = d.commands(ctx, &p)
	}
	if err := ctx.Err(); err != nil {
		return p, err
	}
	p.Steps = steps(d.Topology.Name(schemas.TopicEvents), entries, commands, complete)
	return p, nil
}

// journal returns the session's entries of the journal. complete is false if it lacks
// events.
func (d *Desk) journal(ctx context.Context, p *Page) (entries []journal.Entry, complete bool) {
	lacks := func(m Missing) {
		complete, m.Part = false, PartJournal
		p.Missing = append(p.Missing, m)
	}
	if d.Journal == nil {
		lacks(Missing{Code: MissingUnread, Err: d.NoJournal})
		return nil, complete
	}
	entries, complete, err := d.Journal.History(ctx, p.TenantID, p.ID, p.CreatedAt)
	if err != nil {
		lacks(Missing{Code: MissingUnread, Err: err})
		return nil, complete
	}
	if !complete {
		lacks(Missing{Code: MissingBeyond, Read: int64(len(entries))})
		return entries, complete
	}
	var last int64
	for _, e := range entries {
		last = max(last, e.Sequence)
	}
	if last < p.Sequence {
		lacks(Missing{Code: MissingBehind, Read: last, All: p.Sequence})
	}
	return entries, complete
}
