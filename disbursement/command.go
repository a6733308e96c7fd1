package disbursement

import (
	"time"

	"quittance/disbursement/assertion"
	"quittance/disbursement/digest"
	"quittance/disbursement/policy"
)

// Command asks for a change. At is its time, in UTC, and the only one that Decide uses: that of the broker, not of the sender.
type Command struct {
	At       time.Time
	TenantID string
	Live     bool
	// Batch is the id of the batch; empty for commands about an agency or an account.
	Batch string
	// Registry is the revision of the registry from which the sender took configuration; 0 if it took none.
	Registry int64
	// ReplyTo says where the sender waits for an answer; nil when nobody waits.
	ReplyTo *ReplyTo
	Do      Action
}

func (c Command) agency() AgencyKey { return AgencyKey{c.TenantID, c.Live} }

// ReplyTo identifies the waiting request.
type ReplyTo struct {
	CorrelationID string
	Partition     int32
}

// Action is what a command asks for.
type Action interface{ action() }

// Signed is what a person has signed with a passkey.
type Signed struct {
	Person    string
	Assertion assertion.Assertion
}

// Open begins a batch.
type Open struct {
	BatchRef string
	Scope    Scope
	Source   Source
	Currency string
	Date     string // local date of the payment
	Maker    string // id of the person who prepares it
	ImportID string
	Accounts []Payout
}

// Payout is a payout account as the registry has it.
type Payout struct {
	Code, Fingerprint string
	// PerSecond is how many enquiries the operator takes, 1 to 200.
	PerSecond int
}

// AddLines adds lines to a draft, in the order of the bytes of their line_ref, which is the order of the leaves.
type AddLines struct {
	ImportID string
	// Position of the first line.
	Position int
	Lines    []NewLine
}

// NewLine is a line to add.
type NewLine struct {
	Ref     string // line_ref
	Account string // code of the payout account
	Amount  int64
	Leaf    digest.Hash
	// Sealed is the content and its salt, encrypted.
	Sealed []byte
	// Corrects is the line_ref that the line pays again; empty for none.
	Corrects string
}

// Seal ends a draft. People, passkeys and policy are those of the state: the sender names none.
type Seal struct {
	Count int
	Sum   int64
	Root  digest.Hash
	// Checked says that the payees' names were checked as the policy demands; otherwise Waiver says why not.
	Checked bool
	Waiver  string
}

// Discard ends a draft.
type Discard struct{ By string }

// Approve approves at a level, from 1.
type Approve struct {
	Level  int
	Signed Signed
}

// Reject ends a batch that is not released. The person is one of its approvers.
type Reject struct {
	Reason string
	Signed Signed
}

// Recall ends a batch that is not released. By is its maker.
type Recall struct{ By string }

// Release begins the payment of an approved batch.
type Release struct{ Signed Signed }

// ERPSame reports what the ERP said when it was asked again for the lines of a batch.
type ERPSame struct {
	// AskedAt is that of the question.
	AskedAt time.Time
	Same    bool
}

// SetHold holds a batch. By is empty for the service.
type SetHold struct{ By, Reason string }

// Lift ends the hold, as two people of the agency have signed.
type Lift struct{ Signed [2]Signed }

// Stop cancels what is not sent.
type Stop struct{ By string }

// Retry makes a refused line ready again.
type Retry struct {
	By       string
	Position int
}

// Cancel ends a line that is ready or refused.
type Cancel struct {
	By       string
	Position int
}

// TryAccount has the next waiting line of a closed payout account try it. The batch is one that pays from the account.
type TryAccount struct {
	By      string
	Account string // code
}

// Settle decides about a line whose case is open, as two people of the agency have signed.
type Settle struct {
	Position int
	// Paid says that the payee has the money; otherwise no attempt can pay any more.
	Paid bool
	// Reference is that of the evidence.
	Reference string
	Signed    [2]Signed
}

// Acknowledge ends a line's case that moves no money.
type Acknowledge struct {
	By       string
	Position int
}

// WordSource says how the operator's word became known.
type WordSource string

// The sources of a word.
const (
	FromRequest   WordSource = "request"
	FromEnquiry   WordSource = "enquiry"
	FromCallback  WordSource = "callback"
	FromStatement WordSource = "statement"
)

// WordKind is what an operator says of an attempt.
type WordKind string

// The words. Pending, undecided, duplicate and not_found prove nothing.
const (
	WordPending WordKind = "pending" // accepted, not decided
	// WordUndecided is a time-out, a broken connection, an unreadable or unknown answer.
	WordUndecided WordKind = "undecided"
	// WordDuplicate says that the operator knows the request: it is our own.
	WordDuplicate WordKind = "duplicate"
	WordNotFound  WordKind = "not_found" // of an enquiry
	WordPaid      WordKind = "paid"
	WordRefused   WordKind = "refused"
	// WordNoFunds is a refusal because of the agency's account: it lacks funds, or may pay no more for now.
	WordNoFunds WordKind = "no_funds"
	// WordClosed is a refusal because of the settings of the agency's account, such as a wrong PIN, a user who may not pay or
	// revoked keys. No other line is tried until a person says so.
	WordClosed WordKind = "closed"
	// WordNeverSent says that the request was read for the first time after its end: it was surely never sent.
	WordNeverSent WordKind = "never_sent"
	// WordChanged says that the content of the line has another leaf, or its account is another one (then with a code).
	// Nothing was sent.
	WordChanged WordKind = "changed"
	// WordUnopenable says that the content of the line can never be opened, as its key is deleted. Nothing was sent.
	WordUnopenable WordKind = "unopenable"
	// WordReturned says that money came back from the payee.
	WordReturned WordKind = "returned"
	// WordNoDebit says that an accepted statement that covers the day has no debit of the attempt.
	WordNoDebit WordKind = "no_debit"
	// WordNoProof and WordNoReturn take back what a statement said that was withdrawn since: that no money of an attempt moved
	// (no_debit), and that money came back (returned).
	WordNoProof  WordKind = "no_proof"
	WordNoReturn WordKind = "no_return"
)

// WordKinds has all words.
func WordKinds() []WordKind {
	return []WordKind{WordPending, WordUndecided, WordDuplicate, WordNotFound, WordPaid, WordRefused, WordNoFunds, WordClosed, WordNeverSent, WordChanged, WordUnopenable, WordReturned, WordNoDebit, WordNoProof, WordNoReturn}
}

// Word reports what an operator says of an attempt. Only a sender that has it from the operator may send it.
type Word struct {
	Position, Attempt int
	// Try is the number of the request that is answered; 0 for other sources than the request.
	Try    int
	Source WordSource
	Kind   WordKind
	// Amount, in minor units, and Currency are what was paid or came back.
	Amount   int64
	Currency string
	// OtherPayee says that the operator names another payee than the line.
	OtherPayee bool
	// Code is the operator's reason, OperatorRef its reference of the payment.
	Code, OperatorRef string
	// Unproven says that the refusal does not prove that no money moved.
	Unproven bool
	// Absent says that the answer to the request was a refusal, that an enquiry after it found no such payout, and that the
	// sender made no other call to pay the attempt.
	Absent bool
	// Suspect says that the refusal may be for want of the agency's funds.
	Suspect bool
}

// SetPolicy changes the policy of an agency and mode.
type SetPolicy struct {
	Policy    policy.Policy // its version is chosen by Decide
	Confirmed []Signed
}

// Enrol changes people of an agency: new ones, and the roles, delegation and passkeys of known ones. The first two people
// of an agency need no confirmation, and are enrolled together.
type Enrol struct {
	People []Enrolled
	// RPID and Origin are those of the passkeys; of the first two only.
	RPID, Origin string
	Confirmed    []Signed
}

// Enrolled is a person with new roles, delegation and passkeys. Passkeys that the person has stay.
type Enrolled struct {
	ID, Number string
	Roles      []string
	For        string
	Until      time.Time
	Keys       [][32]byte // SHA-256 of SubjectPublicKeyInfo
}

// Revoke ends a person, or one passkey of a person, for ever, and holds the batches that the person may approve.
type Revoke struct {
	Person string
	// Key is the hash of the passkey; zero for the person.
	Key [32]byte
}

// Tick lets time pass for a batch, or for the payout account with a code.
type Tick struct{ Account string }

func (Open) action()        {}
func (AddLines) action()    {}
func (Seal) action()        {}
func (Discard) action()     {}
func (Approve) action()     {}
func (Reject) action()      {}
func (Recall) action()      {}
func (Release) action()     {}
func (ERPSame) action()     {}
func (SetHold) action()     {}
func (Lift) action()        {}
func (Stop) action()        {}
func (Retry) action()       {}
func (Cancel) action()      {}
func (TryAccount) action()  {}
func (Settle) action()      {}
func (Acknowledge) action() {}
func (Word) action()        {}
func (SetPolicy) action()   {}
func (Enrol) action()       {}
func (Revoke) action()      {}
func (Tick) action()        {}
