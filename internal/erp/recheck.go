package erp

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"quittance/checkout"
)

// recheckedWithin is how old the last good answer about the dues of a portal session may be
// when it is paid while the ERP does not answer.
const recheckedWithin = 15 * time.Minute

// Recheck says whether a session may be paid as far as the agency's ERP is concerned.
type Recheck string

// What Dues.Recheck finds.
const (
	// RecheckUnchanged: the dues are as they were when the session was made, or the last good
	// answer said so at most 15 minutes ago and the ERP does not answer now. Also of a session
	// that does not come from the citizen portal, and of one that is paid, being paid,
	// reserved or ended: the processor decides about those.
	RecheckUnchanged Recheck = "unchanged"
	// RecheckChanged: a due has another outstanding amount, can no longer be paid with the
	// session's amount, or is gone. Cancel the session with checkout.ByDueChange.
	RecheckChanged Recheck = "changed"
	// RecheckUnknown: the ERP does not answer, and its last good answer is too old. Nothing may
	// be collected now; the same call can succeed later.
	RecheckUnknown Recheck = "unknown"
)

// Recheck asks the agency's ERP again for the dues of a portal session, before money is
// collected or the session is reserved for a counter. The calls begin after the call of
// Recheck, and each may take as long as one of Fresh. What changes at the ERP after that is
// the ERP's own affair: it records what was paid.
func (d *Dues) Recheck(ctx context.Context, s checkout.Session) Recheck {
	if !s.Portal() || s.Status != checkout.StatusOpen || s.Collection != nil {
		return RecheckUnchanged
	}
	asked := d.cfg.Now()
	found := d.compare(ctx, s)
	switch found {
	case RecheckUnchanged:
		d.mu.Lock()
		d.rechecked[s.ID] = asked
		d.mu.Unlock()
	case RecheckUnknown:
		d.mu.Lock()
		last := d.rechecked[s.ID]
		d.mu.Unlock()
		if s.PulledAt.After(last) {
			last = s.PulledAt
		}
		if !asked.After(last.Add(recheckedWithin)) {
			found = RecheckUnchanged
			d.rechecks.WithLabelValues("trusted").Inc()
			return found
		}
	case RecheckChanged:
	}
	d.rechecks.WithLabelValues(string(found)).Inc()
	return found
}

// compare asks for the dues of everybody whose dues the session pays. A change that one answer
// shows counts, even if another one is missing.
func (d *Dues) compare(ctx context.Context, s checkout.Session) Recheck {
	bySubject := map[string][]checkout.Item{}
	for _, due := range s.Dues() {
		bySubject[due.SubjectRef] = append(bySubject[due.SubjectRef], due)
	}
	results := make(chan Recheck, len(bySubject))
	var group errgroup.Group
	for ref, items := range bySubject {
		group.Go(func() error {
			a, err := d.Fresh(ctx, s.TenantID, s.Live, ref)
			switch {
			case err != nil || a.Status != SourceOK:
				results <- RecheckUnknown
			case a.agree(items, s.Currency):
				results <- RecheckUnchanged
			default:
				results <- RecheckChanged
			}
			return nil
		})
	}
	_ = group.Wait() // no function returns an error
	close(results)
	found := RecheckUnchanged
	for r := range results {
		if r == RecheckChanged || found == RecheckUnchanged {
			found = r
		}
	}
	return found
}

// agree reports whether every item is still owed as it was, and may be paid. A due that breaks
// the contract now is not payable, so that it is not found.
func (a Answer) agree(items []checkout.Item, currency string) bool {
	for _, item := range items {
		due, ok := a.Find(item.ERPDueRef)
		if !ok || due.Currency != currency || due.Outstanding != item.Outstanding || !due.Takes(item.Amount) {
			return false
		}
	}
	return true
}
