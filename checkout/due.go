package checkout

import (
	"cmp"
	"slices"
	"time"
)

// MetadataERPDueRef is the metadata key by which a ministry session names the
// due that it pays (contract, "What the service does" 9).
const MetadataERPDueRef = "erp_due_ref"

// Item is one due that a session pays, or a part of one.
type Item struct {
	// ERPDueRef is the agency's reference of the due; empty if no ERP knows it.
	ERPDueRef string
	// SubjectRef is the agency's reference of who owes it; empty if unknown.
	SubjectRef   string
	Label        string
	ServiceCode  string
	ServiceLabel string
	Amount       int64 // what is paid of it, without fees
	// Outstanding is what was owed when the ERP was asked, in minor units; 0 if unknown.
	Outstanding int64
	// Fee is the item's part of the collection's fee (docs/design/decisions.md § 7). It is set when the
	// collection is approved and never computed again.
	Fee           int64
	TransactionID string
	NoticeID      string
	NoticeRef     string
	// Confirmation is what is known of the ERP's part in the payment of the due.
	Confirmation Confirmation
	// ReversedAt is when this item's money was given back while others stayed paid; zero if it was
	// not, and if the money of the whole session was given back at once. See [Session.Returned].
	// ReversalRef names the refund.
	ReversedAt  time.Time
	ReversalRef string
}

// Total returns what was paid for the item: its amount and its part of the fee, in minor units.
func (i Item) Total() int64 { return i.Amount + i.Fee }

// Partial reports whether a part of the due stays owed after the payment, as far as the
// ERP had told (contract, "Partial payment").
func (i Item) Partial() bool { return i.Outstanding > i.Amount }

// ToConfirm reports whether a payment of the session is to be confirmed to the agency's ERP.
func (s Session) ToConfirm() bool {
	return s.ERP && slices.ContainsFunc(s.Dues(), func(due Item) bool { return due.ERPDueRef != "" })
}

// Portal reports whether the citizen portal made the session.
func (s Session) Portal() bool { return s.CitizenID != "" }

// Dues returns the dues that the session pays: its items, or the one that its own fields
// describe.
func (s Session) Dues() []Item {
	if len(s.Items) > 0 {
		return s.Items
	}
	due := Item{
		ERPDueRef: s.Metadata[MetadataERPDueRef], ServiceCode: s.ServiceCode, ServiceLabel: s.ServiceLabel, Amount: s.Amount,
		TransactionID: s.TransactionID, NoticeID: s.NoticeID, NoticeRef: s.NoticeRef, Confirmation: s.Confirmation,
	}
	if s.Collection != nil && s.Collection.Status == CollectionApproved {
		due.Fee = s.Collection.Fee
	}
	return []Item{due}
}

// Due returns the session's due with the transaction id. An empty id means the first due: a
// case or an event of an earlier version names none, and its session has one due.
func (s Session) Due(transactionID string) (Item, bool) {
	dues := s.Dues()
	if transactionID == "" {
		return dues[0], true
	}
	i := slices.IndexFunc(dues, func(d Item) bool { return d.TransactionID == transactionID })
	if i < 0 {
		return Item{}, false
	}
	return dues[i], true
}

// Total returns what was paid for dues, fees included, in minor units.
func Total(dues []Item) (sum int64) {
	for _, due := range dues {
		sum += due.Total()
	}
	return sum
}

// Returned returns when the money of a due of the session was given back; zero if it was not.
func (s Session) Returned(due Item) time.Time { return cmp.Or(due.ReversedAt, s.ReversedAt) }

// Kept returns the dues whose money was not given back.
func (s Session) Kept() (out []Item) {
	for _, due := range s.Dues() {
		if s.Returned(due).IsZero() {
			out = append(out, due)
		}
	}
	return out
}

// keeps reports whether the session completed and the money of the due was not given back.
func (s Session) keeps(due Item) bool { return s.Paid() && due.ReversedAt.IsZero() }

// withConfirmation returns the session with what is known of the confirmation of one due.
func (s Session) withConfirmation(transactionID string, c Confirmation) Session {
	if len(s.Items) == 0 {
		s.Confirmation = c
		return s
	}
	s.Items = slices.Clone(s.Items)
	for i := range s.Items {
		if s.Items[i].TransactionID == transactionID {
			s.Items[i].Confirmation = c
		}
	}
	return s
}
