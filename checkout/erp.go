package checkout

import "time"

// ERPKey names the ERP of an agency in a mode.
type ERPKey struct {
	TenantID string
	Live     bool
}

// RefusingERP is an ERP that refuses our credentials, so that all its confirmations wait. The zero
// value is one that does not. It has one case, in a session whose confirmation it has refused; the other
// confirmations get none of their own meanwhile (docs/design/decisions.md § 10).
type RefusingERP struct {
	SessionID string
	// EndedAt is when the service learned that the ERP has accepted a confirmation; zero while it refuses.
	EndedAt time.Time
}

// refuses reports whether the ERP has not accepted a confirmation since.
func (r RefusingERP) refuses() bool { return r.SessionID != "" && r.EndedAt.IsZero() }

// ForgetAt returns when the entry means nothing any more; zero while the ERP refuses.
func (r RefusingERP) ForgetAt() time.Time {
	if r.EndedAt.IsZero() {
		return time.Time{}
	}
	return r.EndedAt.Add(confirmationPatience)
}

// ReasonCredentials is the reason of an answer, and of the case that it opens, by which an ERP refuses our
// credentials, and not one confirmation.
const ReasonCredentials = "credentials_refused"

// AboutERP reports whether the case is about an ERP that refuses our credentials, and not about the
// confirmation that it names.
func (c Case) AboutERP() bool { return c.Kind == CaseConfirmation && c.Reason == ReasonCredentials }

func (s Session) erpKey() ERPKey { return ERPKey{s.TenantID, s.Live} }

func (d *decider) erp(k ERPKey) RefusingERP {
	if r, ok := d.out.RefusingERPs[k]; ok {
		return r
	}
	return d.view.RefusingERP(k)
}

// erpCase returns the open case about the ERP of the session, and the session that has it.
func (d *decider) erpCase(of Session) (s Session, c Case, open bool) {
	s, ok := d.session(d.erp(of.erpKey()).SessionID)
	if !ok {
		return s, c, false
	}
	c, open = s.findCase(func(c Case) bool { return c.Open() && c.AboutERP() })
	return s, c, open
}

// openERPCase opens the case about the ERP, in the session whose confirmation it has refused.
func (d *decider) openERPCase(s Session, due Item) Session {
	put(&d.out.RefusingERPs, s.erpKey(), RefusingERP{SessionID: s.ID})
	return d.openConfirmationCase(s, due, ReasonCredentials)
}

// notAccepted decides on a confirmation that the ERP has not accepted in time. One that waits because the ERP
// refuses our credentials gets the full time again: there is one case about the ERP, or this is the next one
// after people have closed it. So does one of an ERP that has taken them again not long ago, because
// thousands may be on their way.
func (d *decider) notAccepted(s Session, due Item) Session {
	r := d.erp(s.erpKey())
	_, _, open := d.erpCase(s)
	switch {
	case r.refuses() && !open:
		return d.openERPCase(s, due)
	case r.refuses(), d.cmd.At.Before(r.ForgetAt()):
		return d.await(s, due)
	}
	return d.openConfirmationCase(s, due, reasonNotAccepted)
}

// await gives the ERP the full time again to accept the confirmation of a due.
func (d *decider) await(s Session, due Item) Session {
	return d.settle(d.emit(s, EventConfirmationAwaited, change{}, map[string]string{DetailReason: ReasonCredentials, DetailTransactionID: due.TransactionID}))
}

// answers notes that the ERP of the session has accepted a confirmation, and so takes our credentials: the
// case about it ends. The confirmation that the case names is on its way like the others.
func (d *decider) answers(s Session) {
	r := d.erp(s.erpKey())
	if !r.refuses() {
		return
	}
	r.EndedAt = d.cmd.At
	put(&d.out.RefusingERPs, s.erpKey(), r)
	if in, c, open := d.erpCase(s); open {
		in = d.closeCase(in, c, Resolve{Resolution: ResolutionAccepted})
		if due, ok := in.Due(c.TransactionID); ok && !due.Confirmation.settled() && in.keeps(due) {
			d.await(in, due)
		}
	}
}
