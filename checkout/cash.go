package checkout

import "time"

// CashKind says which way cash moved at a counter.
type CashKind string

// The kinds of movements.
const (
	CashTaken    CashKind = "taken"
	CashReturned CashKind = "returned"
)

// CashMovement is cash that a clerk took or gave back. It never changes once it is on
// record. Session, collection and kind identify it.
type CashMovement struct {
	SessionID    string
	CollectionID string
	Kind         CashKind
	AgencyID     string
	Live         bool
	// Clerk took the cash, or recorded that it was given back.
	Clerk  string
	At     time.Time
	Amount int64 // total in minor units of XAF, above zero for both kinds
	// PaymentRef and NoticeRefs are the references of the session.
	PaymentRef string
	NoticeRefs []string
	// ServiceLabel is the service of the session.
	ServiceLabel string
	// Counter and Receipt are those of the cash when it was taken.
	Counter, Receipt string
}

// Cash returns all movements of cash of the session: those of its own collection, and those
// of cash that was taken beside another payment. Money that staff gave back is not among
// them, because it left no clerk's till.
func (s Session) Cash() (out []CashMovement) {
	base := CashMovement{
		SessionID: s.ID, AgencyID: s.TenantID, Live: s.Live, PaymentRef: s.PaymentRef, NoticeRefs: s.NoticeRefs(), ServiceLabel: s.ServiceLabel,
	}
	if c := s.Collection; c.Origin() == OriginCounter && c.Status == CollectionApproved {
		base.CollectionID, base.Amount, base.Counter, base.Receipt = c.ID, c.Amount, c.Account, c.OperatorRef
		out = append(out, base.taken(c.Clerk, c.DecidedAt))
		if c.ReversedBy != "" {
			out = append(out, base.returned(c.ReversedBy, c.ReversedAt))
		}
	}
	for _, c := range s.Cases {
		if !c.Cash() {
			continue
		}
		base.CollectionID, base.Amount, base.Counter, base.Receipt = c.CollectionID, c.Amount, c.Account, c.OperatorRef
		out = append(out, base.taken(c.By, c.OpenedAt))
		if c.Resolution == ResolutionCashReturned {
			out = append(out, base.returned(c.ClosedBy, c.ClosedAt))
		}
	}
	return out
}

func (m CashMovement) taken(by string, at time.Time) CashMovement {
	m.Kind, m.Clerk, m.At = CashTaken, by, at
	return m
}

func (m CashMovement) returned(by string, at time.Time) CashMovement {
	m.Kind, m.Clerk, m.At = CashReturned, by, at
	return m
}

// NoticeRefs returns the notice numbers of the session: one for each due that it pays.
func (s Session) NoticeRefs() (out []string) {
	for _, item := range s.Items {
		if item.NoticeRef != "" {
			out = append(out, item.NoticeRef)
		}
	}
	if len(out) == 0 && s.NoticeRef != "" {
		out = append(out, s.NoticeRef)
	}
	return out
}
