package counter

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"quittance/checkout"
	"quittance/ingress/problem"
	"quittance/internal/erp"
	"quittance/internal/identity"
	"quittance/internal/sessions"
)

// The kinds of entries.
const (
	entryReserve = "reserve"
	entryTake    = "take"
	entryRelease = "release"
	entryReverse = "reverse"
	entryCancel  = "cancel" // because a due has changed
)

// desk is a clerk at work. API and page share it.
type desk struct {
	c *Counter
	identity.ClerkPrincipal
	// quota is what the key has left, once a request was counted.
	quota *problem.Quota
}

// look counts one look-up of the key and finds a session. The error is a *refusal.
func (d *desk) look(ctx context.Context, ref string) (checkout.Session, error) {
	if err := d.count(ctx, "look-ups", d.KeyID); err != nil {
		return checkout.Session{}, err
	}
	return d.find(ctx, ref, "")
}

// findToPut counts one entry of the key, apart from its look-ups, and finds the entry's
// session.
func (d *desk) findToPut(ctx context.Context, ref, collectionID string) (checkout.Session, error) {
	id, err := uuid.Parse(d.KeyID)
	if err == nil {
		err = d.count(ctx, "entries", uuid.NewSHA1(id, []byte("entries")).String())
	}
	if err != nil {
		return checkout.Session{}, err
	}
	return d.find(ctx, ref, collectionID)
}

func (d *desk) count(ctx context.Context, name, id string) error {
	left, ok, err := d.c.cfg.Reads.Admit(ctx, id, perMinute)
	if err != nil {
		return d.unavailable(ctx, "counting a request", err)
	}
	d.quota = &problem.Quota{Name: name, Limit: left.Limit, Remaining: left.Remaining, Reset: left.Reset}
	if !ok {
		return &refusal{code: string(checkout.CodeRateLimited), quota: d.quota}
	}
	return nil
}

func (d *desk) unavailable(ctx context.Context, doing string, err error) error {
	d.c.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "a counter gets no answer", slog.String("doing", doing),
		slog.String("request_id", problem.RequestID(ctx)), slog.Any("error", err))
	return refused(codeUnavailable)
}

// sameRef is how many sessions of one reference are compared. No two should have one.
const sameRef = 10

// find returns the session of a reference, if it belongs to the agency and has the
// key's mode. If the reference belongs to more than one session, collectionID says which
// is meant: cash must never pay the wrong one. The error is a *refusal.
func (d *desk) find(ctx context.Context, ref, collectionID string) (checkout.Session, error) {
	if !checkout.ValidPaymentRef(ref) {
		return checkout.Session{}, refused(codeMistyped)
	}
	until, exhausted, err := d.c.cfg.Unknown.Exhausted(ctx, d.KeyID)
	if err != nil {
		return checkout.Session{}, d.unavailable(ctx, "counting unknown references", err)
	}
	s, err := d.read(ctx, ref, collectionID)
	if r := (*refusal)(nil); err != nil && errors.As(err, &r) && r.code == codeUnavailable {
		return s, err
	}
	if exhausted && (err != nil || !names(s, collectionID)) {
		// The answer is the same whether the reference exists.
		d.c.unknown.WithLabelValues("refused").Inc()
		return checkout.Session{}, &refusal{code: codeGuessed, until: until}
	}
	if r := (*refusal)(nil); errors.As(err, &r) && r.code == string(checkout.CodeSessionNotFound) {
		d.c.unknown.WithLabelValues("unknown").Inc()
		if err := d.c.cfg.Unknown.Note(ctx, d.KeyID); err != nil {
			return s, d.unavailable(ctx, "counting an unknown reference", err)
		}
	}
	return s, err
}

// read reads the session that find returns.
func (d *desk) read(ctx context.Context, ref, collectionID string) (checkout.Session, error) {
	items, total, err := d.c.cfg.Sessions.List(ctx, sessions.Filter{
		TenantIDs: []string{d.AgencyID}, ApplicationIDs: d.c.cfg.Registry.ApplicationsOf(d.AgencyID), Live: d.Live, PaymentRef: ref, PageSize: sameRef,
	})
	if err != nil {
		return checkout.Session{}, d.unavailable(ctx, "finding a session", err)
	}
	if total > 1 {
		d.c.ambiguous.Inc()
		d.c.cfg.Log.LogAttrs(ctx, slog.LevelError, "a reference belongs to more than one session: cash cannot be taken with it", slog.Int64("sessions", total),
			slog.String("agency_id", d.AgencyID), slog.Bool("live", d.Live), slog.String("request_id", problem.RequestID(ctx)))
		items = slices.DeleteFunc(items, func(s checkout.Session) bool { return !names(s, collectionID) })
		if len(items) != 1 {
			return checkout.Session{}, refused(codeAmbiguous)
		}
	}
	if len(items) == 0 || items[0].TenantID != d.AgencyID || items[0].Live != d.Live {
		return checkout.Session{}, refused(checkout.CodeSessionNotFound)
	}
	return items[0], nil
}

// names reports whether cash with the id was reserved or recorded for the session.
func names(s checkout.Session, collectionID string) bool {
	if s.Collection != nil && s.Collection.ID == collectionID {
		return true
	}
	_, ok := s.CashOrphan(collectionID)
	return ok
}

// limits are those of the clerk.
func (d *desk) limits() checkout.Limits {
	return checkout.Limits{Payment: d.PaymentLimit, Day: d.DayLimit}
}

// ask carries out what the clerk does with the session. An answer that changes nothing
// is an error. The error is a *refusal.
func (d *desk) ask(ctx context.Context, entry string, s checkout.Session, do checkout.Action) (checkout.Answer, error) {
	a, err := d.c.cfg.Commands.Ask(ctx, checkout.Command{
		At: d.c.now(), TenantID: s.TenantID, SessionID: s.ID, ApplicationID: s.ApplicationID, Live: s.Live, Do: do,
	})
	if err != nil {
		d.c.entries.WithLabelValues(entry, codeUnavailable).Inc()
		return a, d.unavailable(ctx, entry, err)
	}
	d.c.entries.WithLabelValues(entry, string(a.Code)).Inc()
	switch a.Code {
	case checkout.CodeOK, checkout.CodeCase:
		return a, nil
	default:
		return a, &refusal{code: string(a.Code), session: a.Session, limits: d.limits()}
	}
}

// reserve reserves the session for the clerk's cash. fresh is false when the clerk
// already holds the reservation.
func (d *desk) reserve(ctx context.Context, ref string) (s checkout.Session, fresh bool, err error) {
	if s, err = d.look(ctx, ref); err != nil {
		return s, false, err
	}
	if err := d.recheck(ctx, s); err != nil {
		return s, false, err
	}
	a, err := d.ask(ctx, entryReserve, s, checkout.Reserve{CollectionID: uuid.NewString(), By: d.Code, Window: Window, Limits: d.limits()})
	if err != nil {
		return s, false, err
	}
	return *a.Session, !a.Replayed, nil
}

// recheck asks the agency's ERP once more about the dues of a portal session, before the
// session is reserved. A due that has changed cancels the session. The error is a *refusal.
func (d *desk) recheck(ctx context.Context, s checkout.Session) error {
	switch d.c.cfg.Dues.Recheck(ctx, s) {
	case erp.RecheckChanged:
		if _, err := d.ask(ctx, entryCancel, s, checkout.Cancel{By: checkout.ByDueChange}); err != nil {
			// The session was reserved, paid or ended meanwhile.
			if r := (*refusal)(nil); errors.As(err, &r) && r.code == string(checkout.CodeInFlight) && held(*r.session, d.c.now()) {
				r.code = string(checkout.CodeReserved)
			}
			return err
		}
		return refused(codeDueChanged)
	case erp.RecheckUnknown:
		d.c.entries.WithLabelValues(entryReserve, codeNoERP).Inc()
		return refused(codeNoERP)
	case erp.RecheckUnchanged:
	}
	return nil
}

// What happened to cash that was put on record.
const (
	takenCompleted = "completed" // it paid the session
	takenLate      = "late"      // the session had ended
	takenCase      = "case"      // the session is paid, or being paid, by other means
	takenReversed  = "reversed"  // it was given back later
)

// take puts the cash that the clerk reports on record.
func (d *desk) take(ctx context.Context, t report) (s checkout.Session, became string, replayed bool, err error) {
	if s, err = d.findToPut(ctx, t.paymentRef, t.collectionID); err != nil {
		return s, "", false, err
	}
	a, err := d.ask(ctx, entryTake, s, checkout.Take{CollectionID: t.collectionID, By: d.Code, Total: t.total, Receipt: t.receipt, Desk: d.Counter, Limits: d.limits()})
	if err != nil {
		return s, "", false, err
	}
	became = takenLate
	switch {
	case a.Code == checkout.CodeCase:
		became = takenCase
		if c, ok := a.Session.CashOrphan(t.collectionID); ok && c.Resolution == checkout.ResolutionCashReturned {
			became = takenReversed
		}
	case a.Session.Collection.ReversedBy != "":
		became = takenReversed // the call is a late repetition
	case a.Session.Paid():
		became = takenCompleted
	}
	return *a.Session, became, a.Replayed, nil
}

// release ends a reservation.
func (d *desk) release(ctx context.Context, ref, collectionID string) error {
	s, err := d.findToPut(ctx, ref, collectionID)
	if err != nil {
		return err
	}
	_, err = d.ask(ctx, entryRelease, s, checkout.Release{CollectionID: collectionID, By: d.Code})
	if r := (*refusal)(nil); errors.As(err, &r) && r.session != nil && isTaken(*r.session, collectionID) {
		r.code = codeTaken
	}
	return err
}

// reverse puts on record that cash was given back.
func (d *desk) reverse(ctx context.Context, ref, collectionID, reason string) (checkout.Session, bool, error) {
	s, err := d.findToPut(ctx, ref, collectionID)
	if err != nil {
		return s, false, err
	}
	a, err := d.ask(ctx, entryReverse, s, checkout.Reverse{CollectionID: collectionID, By: d.Code, Reason: reason})
	if err != nil {
		return s, false, err
	}
	return *a.Session, a.Replayed, nil
}

// isTaken reports whether the cash with this id is on record as the session's payment.
func isTaken(s checkout.Session, collectionID string) bool {
	c := s.Collection
	return c.Origin() == checkout.OriginCounter && c.ID == collectionID && c.Status == checkout.CollectionApproved
}

// held reports whether a clerk holds the session at this time.
func held(s checkout.Session, now time.Time) bool {
	c := s.Collection
	return c.Origin() == checkout.OriginCounter && !c.Final() && now.Before(c.WindowEndsAt)
}
