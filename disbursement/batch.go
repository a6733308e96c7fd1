package disbursement

import (
	"slices"
	"time"

	"quittance/disbursement/digest"
	"quittance/disbursement/policy"
	"quittance/money/localtime"
)

// Status is the state of a batch.
type Status string

// The statuses of a batch. The first four are live.
const (
	StatusDraft     Status = "draft"
	StatusSealed    Status = "sealed"
	StatusApproved  Status = "approved"
	StatusReleasing Status = "releasing"
	StatusDone      Status = "done"
	StatusDiscarded Status = "discarded"
	StatusRejected  Status = "rejected"
	StatusRecalled  Status = "recalled"
	StatusExpired   Status = "expired"
)

// Statuses has all statuses of a batch.
func Statuses() []Status {
	return []Status{StatusDraft, StatusSealed, StatusApproved, StatusReleasing, StatusDone, StatusDiscarded, StatusRejected, StatusRecalled, StatusExpired}
}

// Live reports whether the batch may still be approved or pay.
func (s Status) Live() bool {
	return s == StatusDraft || s == StatusSealed || s == StatusApproved || s == StatusReleasing
}

// Void reports whether the batch ended without having paid anything: its references are free.
func (s Status) Void() bool {
	return s == StatusDiscarded || s == StatusRejected || s == StatusRecalled || s == StatusExpired
}

// Source says where the lines of a batch come from.
type Source string

// The sources.
const (
	SourceFile Source = "file"
	SourceERP  Source = "erp"
)

// Scope says among which lines a line_ref is unique.
type Scope string

// The scopes.
const (
	ScopeAgency Scope = "agency"
	ScopeBatch  Scope = "batch" // among the batches of one batch_ref
)

// Limits of a batch and of an agency. With them a state entry and a command stay far below a Kafka record, and a tick
// within its transaction.
const (
	MaxLines       = 100_000
	MaxSum         = digest.MaxInteger
	MaxLive        = 200 // batches of an agency and mode
	MaxAccounts    = 32  // payout accounts of a batch
	MaxLinesAdded  = 200 // lines of AddLines
	MaxBytesAdded  = 256 << 10
	MaxBytesSealed = 2 << 10 // of the sealed content of a line
	MaxLinesTicked = 200
	MaxInFlight    = 256 // requests of an account that are not answered
	MaxAttempts    = 3   // by people
	MaxUnsent      = 20  // attempts in a row that moved no money and are made again without a person
	MaxCorrections = 16  // of one payment: lines that correct each other, without the first one
	MaxText        = 140 // of references, in characters
)

// Times of the lifecycle.
const (
	DraftLife = 7 * 24 * time.Hour
	// MaxAhead is how far ahead the date of a batch may be when it is opened.
	MaxAhead = 366 * 24 * time.Hour
	// RequestLife is how long after it was made a request may be carried out for the first time.
	RequestLife = 10 * time.Minute
	// ResendWithin is how long after the first request an attempt may be requested again under its id.
	ResendWithin = 24 * time.Hour
	// UndecidedAfter is when people are asked about a line that is still sent.
	UndecidedAfter = 24 * time.Hour
	// ProbeEvery is how often an account without funds tries a line.
	ProbeEvery = 15 * time.Minute
	// EnquireEvery is the time between two enquiries about a line, if the operator's rate allows it.
	EnquireEvery = time.Minute
	// enquireAgain is the shortest time between two enquiries that answers cause.
	enquireAgain = 10 * time.Second
	// AskAgain is the time after which the ERP is asked again whether its lines are the same. The question before is void then.
	AskAgain = 10 * time.Minute
)

// Hold says why nothing of a batch is released or sent. The zero value is a batch that is not held.
type Hold struct {
	Reason string
	By     string // person; empty for the service
	Since  time.Time
}

// Total is a number of lines and the sum of their amounts, in minor units.
type Total struct {
	Count int
	Sum   int64
}

// Totals are the lines of a batch by status.
type Totals struct{ Ready, Sent, Paid, Refused, Cancelled, Returned Total }

// Of returns the total of a status, to be read or changed; nil for no status.
func (t *Totals) Of(s LineStatus) *Total {
	switch s {
	case LineReady:
		return &t.Ready
	case LineSent:
		return &t.Sent
	case LinePaid:
		return &t.Paid
	case LineRefused:
		return &t.Refused
	case LineCancelled:
		return &t.Cancelled
	case LineReturned:
		return &t.Returned
	}
	return nil
}

func (t *Totals) add(s LineStatus, count int, amount int64) {
	total := t.Of(s)
	total.Count += count
	total.Sum += amount
}

// Funding is a payout account of a batch: what the batch pays from it, and the queue of lines that wait for it.
type Funding struct {
	Code, Fingerprint string
	// PerSecond is how many enquiries the operator takes.
	PerSecond int
	Count     int
	Sum       int64
	// Head and Tail are the numbers of the queue's first entry and after its last one.
	Head, Tail int64
}

// Batch is the state of a batch without its lines. The entry has a few kilobytes, whatever the number of lines.
type Batch struct {
	ID       string
	TenantID string
	Live     bool
	BatchRef string
	Revision int
	Scope    Scope
	Source   Source
	Currency string
	Date     string // local date
	Maker    string // id of the person who prepared it
	ImportID string

	Status Status
	Hold   Hold
	Holds  int // how often it was held

	Count        int
	Sum, Largest int64
	LastRef      string // line_ref of the last line
	Tree         digest.Tree
	Lines        Totals
	Accounts     []Funding

	// Of a sealed batch.
	Digest       digest.Hash
	ApproveUntil time.Time
	PayUntil     string // local date
	CountedOn    string // local day of the agency on which the sum counts
	OnDate       bool   // is released on its date
	Waiver       string // why the payees' names were not checked

	OpenedAt, SealedAt, ReleasedAt, EndedAt time.Time
	// AskedAt is when the ERP was asked whether its lines are the same; zero without a release that waits for it.
	AskedAt time.Time
	// Stopped and Overdue end sending for good. Sweeping is then on until Cursor has passed all lines.
	Stopped, Overdue, Sweeping bool
	Cursor                     int
	// Sequence is that of the batch's last event.
	Sequence int64
}

// Held reports whether nothing of the batch is released or sent.
func (b Batch) Held() bool { return !b.Hold.Since.IsZero() }

// late reports whether a time is after pay_until.
func (b Batch) late(at time.Time) bool { return b.PayUntil != "" && localtime.Day(at) > b.PayUntil }

// over reports whether the batch sends nothing any more.
func (b Batch) over(at time.Time) bool { return b.Stopped || b.Overdue || b.late(at) }

// sends reports whether lines of the batch may be sent at a time.
func (b Batch) sends(at time.Time) bool {
	return b.Status == StatusReleasing && !b.Held() && !b.over(at)
}

// payEnds returns when the last day of payment ends.
func (b Batch) payEnds() time.Time { return dayBegins(b.PayUntil).AddDate(0, 0, 1) }

// dayBegins returns when a local day begins; the zero time for no day.
func dayBegins(day string) time.Time {
	at, err := localtime.Begin(day)
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}

// Deadline returns when the batch needs a tick; the zero time if it needs none.
func (b Batch) Deadline() time.Time {
	switch {
	case b.Sweeping:
		return b.OpenedAt // at once
	case b.Status == StatusDraft:
		return b.OpenedAt.Add(DraftLife)
	case b.Status == StatusSealed:
		return earlier(b.ApproveUntil, b.payEnds())
	case b.Status == StatusApproved && b.Held():
		return b.payEnds()
	case b.Status == StatusApproved && !b.AskedAt.IsZero():
		return earlier(b.AskedAt.Add(AskAgain), b.payEnds())
	case b.Status == StatusApproved && b.OnDate:
		return earlier(dayBegins(b.Date), b.payEnds())
	case b.Status == StatusApproved:
		return b.payEnds()
	case (b.Status == StatusReleasing || b.Status == StatusDone && b.Lines.Refused.Count > 0) && !b.Overdue && !b.Stopped:
		return b.payEnds()
	}
	return time.Time{}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// copied returns a batch that can be changed without changing b.
func (b Batch) copied() Batch {
	b.Accounts = slices.Clone(b.Accounts)
	return b
}

// Sealing is what a sealed batch is approved by. It is written at sealing and at each approval.
type Sealing struct {
	Content   digest.Batch
	Approvals []Approved
}

// Approved is an approval that counts, with the signature of its passkey.
type Approved struct {
	policy.Approval
	At     time.Time
	Signed Signed
}

func (s Sealing) copied() Sealing {
	s.Approvals = slices.Clone(s.Approvals)
	return s
}

// Given returns the approvals without their signatures.
func (s Sealing) Given() (out []policy.Approval) {
	for _, a := range s.Approvals {
		out = append(out, a.Approval)
	}
	return out
}
