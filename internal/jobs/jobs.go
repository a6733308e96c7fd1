package jobs

import (
	"cmp"
	"encoding/json"
	"time"

	"quittance/internal/deliveries"
	"quittance/internal/identity"
	"quittance/internal/operation"
)

// Kind is what a job does with each of its rows.
type Kind string

// The kinds of jobs.
const (
	// KindRetry sends deliveries again. Its rows are deliveries.
	KindRetry Kind = "deliveries.retry"
)

// Kinds lists all kinds.
func Kinds() []Kind { return []Kind{KindRetry} }

// needs is the permission to ask for a job of the kind.
func (Kind) needs() identity.Permission { return identity.MayRetry }

// State is the state of a job.
type State string

// The states of jobs. The last three are final.
const (
	Prepared State = "prepared" // its rows are listed, and nobody has started it
	Proposed State = "proposed" // it waits for a second person
	Running  State = "running"
	Done     State = "done"    // each row is done or refused
	Stopped  State = "stopped" // by a person, or by the service, which says why
	Refused  State = "refused" // no person is known to have asked for it
)

// States lists all states.
func States() []State { return []State{Prepared, Proposed, Running, Done, Stopped, Refused} }

// Ended reports whether the state is final.
func (s State) Ended() bool { return s == Done || s == Stopped || s == Refused }

const (
	// MostRows is the largest number of rows of a job.
	MostRows = 10_000
	// TypedAbove is the number of rows above which the person types the count.
	TypedAbove = 100
	// AloneAtMost is the largest number of rows that one person has carried out.
	AloneAtMost = 1000
	// PreparedLife is how long a prepared job may be started, ProposedLife how long it waits for a second person.
	PreparedLife, ProposedLife = time.Hour, 24 * time.Hour
	// runWithin is how long after its last step a job may run. Its steps are signed for that long.
	runWithin = 7 * 24 * time.Hour
)

// Codes of refused operations (operation.Error). Their Args are in brackets.
const (
	CodeUnknown       = "job.unknown"
	CodeIDMalformed   = "job.id_malformed"
	CodeDayMalformed  = "job.day_malformed"
	CodeOther         = "job.other"           // the id is that of another job
	CodeEmpty         = "job.empty"           // nothing matches
	CodeTooMany       = "job.too_many"        // more rows than a job has (most)
	CodeSame          = "job.same"            // one of the same conditions is running or waits (id)
	CodeCountMissing  = "job.count_missing"   // the count is to be typed (n)
	CodeCountOther    = "job.count_malformed" // another number was typed (n)
	CodeEnded         = "job.ended"           // the job has ended, or was started before (state)
	CodeLate          = "job.late"            // nobody has started or approved it in time
	CodeSecondPerson  = "job.second_person"   // whoever has asked for it may not approve it
	CodeNeedsOne      = "job.not_proposed"    // the job waits for nobody
	CodeNothingAgain  = "job.nothing_again"   // no row was refused or left
	CodeAgencyMissing = "job.agency_missing"  // an agency's people choose deliveries of their agency
	CodeNotBelieved   = "job.not_believed"    // no step that holds says that a person has asked for it (why)
)

// Conditions choose the rows of a job. Empty fields choose all.
type Conditions struct {
	// Kind, DestinationID, AgencyID and State are those of deliveries. State is one of deliveries.Retryable; empty for any of
	// these.
	Kind          deliveries.Kind `json:"kind,omitempty"`
	DestinationID string          `json:"destination,omitempty"`
	AgencyID      string          `json:"agency,omitempty"`
	State         string          `json:"state,omitempty"`
	// Since and Until bound the time of the event; Since is inclusive.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Of is the id of a job whose rows that were refused, or not carried out, are the rows of this one.
	Of string `json:"of,omitempty"`
}

// text returns the conditions as they are stored and signed.
func (c Conditions) text() string {
	c.Since, c.Until = c.Since.UTC(), c.Until.UTC()
	b, _ := json.Marshal(c) // texts and times always encode
	return string(b)
}

// filter returns the deliveries of the conditions whose events are before an end.
func (c Conditions) filter(end time.Time, limit int) deliveries.Filter {
	if !c.Until.IsZero() && c.Until.Before(end) {
		end = c.Until
	}
	return deliveries.Filter{Kind: c.Kind, DestinationID: c.DestinationID, TenantID: c.AgencyID, State: c.State, Since: c.Since, Until: end, Limit: limit}
}

// Maker is who has asked for a job.
type Maker struct {
	// Kind is operation.ActorPerson or operation.ActorCommandLine.
	Kind operation.ActorKind
	// ID is that of the person, or the user of the machine.
	ID, Name string
	// Group is the id of the person's agency; empty for operations, and for the command line.
	Group string
	// Origin is the address of the browser, or the machine.
	Origin string
}

// actor is the maker in the audit table.
func (m Maker) actor() operation.Actor {
	return operation.Actor{Kind: m.Kind, Name: m.ID, Origin: m.Origin}
}

// signedAs names the maker in what is signed.
func (m Maker) signedAs() string {
	if m.Kind == operation.ActorPerson {
		return m.ID
	}
	return string(m.Kind) + ":" + m.ID
}

// Job is a job without its rows.
type Job struct {
	ID         string
	Kind       Kind
	AgencyID   string // empty: of several agencies
	Conditions Conditions
	// EndsAt is the frozen end: events before it.
	EndsAt time.Time
	// Total is the number of rows, Done and Refused are those that are carried out.
	Total, Done, Refused int
	Maker                Maker
	MadeAt               time.Time
	State                State
	// StartedAt is when the maker has started it; zero: not yet.
	StartedAt time.Time
	// Decider is the name of the second person, with the time; empty: none.
	Decider   string
	DecidedAt time.Time
	// StoppedBy is the name of who has stopped it. Code and Args say why the service has stopped or refused it.
	StoppedBy  string
	Code       string
	Args       operation.Args
	FinishedAt time.Time

	steps
}

// steps are the signed steps, as they are stored.
type steps struct {
	conditions   string
	rows         []byte // SHA-256 of the subjects
	proposed     []byte // signature
	proposedBy   string // id of the proof
	decidedID    string // of the person
	decidedGroup string
	decided      []byte
	decidedBy    string
}

// NeedsTwo reports whether a second person approves the job.
func (j Job) NeedsTwo() bool { return j.Total > AloneAtMost }

// Left is the number of rows that are not carried out.
func (j Job) Left() int { return j.Total - j.Done - j.Refused }

// Again reports whether the job has ended and left rows that may be asked for again. Nobody knows what a forged job was about.
func (j Job) Again() bool {
	return j.State.Ended() && !j.StartedAt.IsZero() && j.Total > j.Done && j.Code != CodeNotBelieved
}

// Over reports whether nobody may start or approve the job any more.
func (j Job) Over(now time.Time) bool {
	switch j.State {
	case Prepared:
		return !now.Before(j.MadeAt.Add(PreparedLife))
	case Proposed:
		return !now.Before(j.StartedAt.Add(ProposedLife))
	case Running, Done, Stopped, Refused:
	}
	return j.State.Ended()
}

// Refusal is why the service has stopped or refused the job; nil if it has not.
func (j Job) Refusal() error {
	if j.Code == "" {
		return nil
	}
	return operation.Refuse(j.Code, "", j.Args)
}

// RowState is the state of a row.
type RowState string

// The states of rows.
const (
	RowWaiting RowState = "waiting"
	RowDone    RowState = "done"
	RowRefused RowState = "refused"
)

// Row is a row of a job.
type Row struct {
	N       int    // from 1
	Subject string // id of the delivery
	State   RowState
	// Code and Args say why it was refused.
	Code   string
	Args   operation.Args
	DoneAt time.Time
}

// Refusal is why the row was refused; nil for one that was not.
func (r Row) Refusal() error {
	if r.State != RowRefused {
		return nil
	}
	return operation.Refuse(r.Code, "", r.Args)
}

// By is who acts on a job: a person on a page, or a user of a machine with the master keys.
type By struct {
	acting identity.Acting
	actor  operation.Actor
	// staff is who acts on a command line with a key; the zero value for others.
	staff    identity.Staff
	prepares *identity.Statement
}

// OnPage returns the person who is signed in on a page.
func OnPage(a identity.Acting) By { return By{acting: a, actor: a.Actor} }

// OnCommandLine returns who acts with a command: the person whose key was checked, or for the zero value the user of the machine.
func OnCommandLine(actor operation.Actor, person identity.Staff) By {
	return By{actor: actor, staff: person}
}

// person is who acts, if it is a member of staff.
func (b By) person() identity.Staff {
	if b.acting.SignedIn() {
		return b.acting.Person
	}
	return b.staff
}

// maker returns who acts as the maker of a job.
func (b By) maker() Maker {
	m := Maker{Kind: b.actor.Kind, ID: b.actor.Name, Name: b.actor.Name, Origin: b.actor.Origin}
	if who := b.person(); who.ID != "" {
		m.Kind, m.ID, m.Name, m.Group = operation.ActorPerson, who.ID, who.Name, who.AgencyID
	}
	return m
}

// is reports whether who acts is the maker.
func (b By) is(m Maker) bool {
	own := b.maker()
	return own.Kind == m.Kind && own.ID == m.ID
}

// at returns the time of a step: that in the statement that the passkey has signed, else now.
func (b By) at(now time.Time) time.Time {
	return cmp.Or(b.acting.SignedAt(), now.UTC().Truncate(time.Millisecond))
}
