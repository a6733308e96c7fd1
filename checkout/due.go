package checkout

import "slices"

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
}

// Partial reports whether a part of the due stays owed after the payment, as far as the
// ERP had told (contract, "Partial payment").
func (i Item) Partial() bool { return i.Outstanding > i.Amount }

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
