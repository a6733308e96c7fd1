package disbursement

import (
	"time"

	"quittance/disbursement/digest"
)

// RequestKind says what the operator is asked for.
type RequestKind string

// The kinds of a request.
const (
	RequestPay     RequestKind = "pay"
	RequestEnquire RequestKind = "enquire"
)

// Request is an effect: pay a line, or ask about an attempt to pay it.
type Request struct {
	Kind     RequestKind
	TenantID string
	Live     bool
	Line     Line // with the attempt meant
	// Account is the code of the payout account, Fingerprint that of its credentials.
	Account, Fingerprint, Currency string
	// Closings is that of the account. One that the operator has refused since is asked nothing.
	Closings int
	At       time.Time
	// NotAfter is when a request to pay that nobody has read ends: its first reader sends nothing then and says so. Any
	// other reader enquires.
	NotAfter time.Time
}

// Same reports whether opened content is what the approvers signed of the line, and what the state knows of it. The sender
// calls it before each request to pay. If it is another content, the sender sends nothing and answers WordChanged.
func (r Request) Same(salt [32]byte, content digest.Line) bool {
	leaf, err := digest.Leaf(salt, content)
	return err == nil && leaf == r.Line.Leaf && content.LineRef == r.Line.Ref && content.Amount == r.Line.Amount && content.Currency == r.Currency &&
		content.PayoutAccount == r.Account && content.Corrects == r.Line.CorrectsRef
}

// Question is an effect: ask the ERP whether it still has the lines of a batch.
type Question struct {
	Batch Batch
	At    time.Time
}
