package identity

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/casework"
	"quittance/internal/identity/internal/db"
	"quittance/internal/operation"
	"quittance/internal/secret"
)

const (
	// MaxSuspended is the number of people whom one person may suspend within SuspendedWithin.
	MaxSuspended    = 2
	SuspendedWithin = 24 * time.Hour
)

// SuspendStaff suspends a person at once, until another person lifts it: the person's sessions end, the person signs in nowhere, the keys open
// nothing, and what the person has proposed lapses. One person who manages people of the group is enough, and signs StaffEntry.Statement;
// nobody suspends more than MaxSuspended people within SuspendedWithin. The command line always may. named is the id or the name.
// now is the time of the service's clock. A refusal is an *operation.Error with the field id or reason. After an error nothing
// has changed.
func SuspendStaff(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, by By, named, reason string, now time.Time) (suspended StaffEntry, err error) {
	err = change(ctx, pool, keys, now, func(t *Tx) error {
		suspended, err = t.suspend(ctx, by, named, reason, "")
		return err
	})
	if err != nil {
		return StaffEntry{}, fmt.Errorf("suspending a member of staff: %w", err)
	}
	return suspended, nil
}

// suspend is SuspendStaff within a transaction. The id is that of the change; empty for a new one.
func (t *Tx) suspend(ctx context.Context, by By, named, reason, id string) (StaffEntry, error) {
	return t.changeAtOnce(ctx, by, StaffChange{ID: id, Kind: StaffChangeSuspend, Reason: reason}, named, func(m, me Staff) (db.SuspendStaffParams, error) {
		switch {
		case m.State() != StaffStateActive:
			return db.SuspendStaffParams{}, operation.Refuse("staff.not_active", "id", operation.Args{"name": m.Name, "state": m.State()})
		case me.ID == m.ID:
			return db.SuspendStaffParams{}, operation.Refuse("staff.suspends_self", "id", nil)
		}
		if me.ID != "" {
			if err := t.suspendsTooMany(ctx, me, m); err != nil {
				return db.SuspendStaffParams{}, err
			}
		}
		return db.SuspendStaffParams{ID: m.ID, SuspendedAt: &t.tx.Now, SuspendedBy: given(me.ID)}, nil
	})
}

// suspendsTooMany refuses a further suspension by a person who has suspended MaxSuspended others lately.
func (t *Tx) suspendsTooMany(ctx context.Context, me, m Staff) error {
	list, err := t.changes(ctx)
	if err != nil {
		return err
	}
	others := map[string]bool{}
	for _, c := range list {
		if c.Kind == StaffChangeSuspend && c.ProposedBy == me.ID && c.StaffID != m.ID && t.tx.Now.Before(c.ProposedAt.Add(SuspendedWithin)) {
			others[c.StaffID] = true
		}
	}
	if len(others) >= MaxSuspended {
		return operation.Refuse("staff.suspends_too_many", "id", operation.Args{"most": MaxSuspended, "hours": int(SuspendedWithin.Hours())})
	}
	return nil
}

// LiftSuspension ends a suspension. by is another person than who suspended, manages people of the group, and signs
// StaffEntry.Statement. While fewer than two people of the group can decide about its people on a page, the command line may,
// too: so two people who have suspended each other come back. named is the id or the name. now is the time of the service's
// clock. A refusal is an *operation.Error with the field id or reason. After an error nothing has changed.
func LiftSuspension(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, by By, named, reason string, now time.Time) (lifted StaffEntry, err error) {
	err = change(ctx, pool, keys, now, func(t *Tx) error {
		lifted, err = t.lift(ctx, by, named, reason, "")
		return err
	})
	if err != nil {
		return StaffEntry{}, fmt.Errorf("lifting the suspension of a member of staff: %w", err)
	}
	return lifted, nil
}

// lift is LiftSuspension within a transaction. The id is that of the change; empty for a new one.
func (t *Tx) lift(ctx context.Context, by By, named, reason, id string) (StaffEntry, error) {
	return t.changeAtOnce(ctx, by, StaffChange{ID: id, Kind: StaffChangeLift, Reason: reason}, named, func(m, me Staff) (db.SuspendStaffParams, error) {
		switch {
		case m.State() != StaffStateSuspended:
			return db.SuspendStaffParams{}, operation.Refuse("staff.not_suspended", "id", operation.Args{"name": m.Name, "state": m.State()})
		case me.ID != "" && me.ID == m.SuspendedBy:
			return db.SuspendStaffParams{}, operation.Refuse("staff.lifts_own", "id", operation.Args{"name": m.Name})
		}
		return db.SuspendStaffParams{ID: m.ID}, nil
	})
}

// changeAtOnce makes a change about a person that one person decides about. check refuses it, or returns what is stored.
func (t *Tx) changeAtOnce(ctx context.Context, by By, c StaffChange, named string, check func(m, me Staff) (db.SuspendStaffParams, error)) (changed StaffEntry, err error) {
	m, err := t.subject(named, c.Reason)
	if err != nil {
		return changed, err
	}
	me, actor := Staff{}, by.Actor
	if by.Signer != nil || c.Kind != StaffChangeSuspend { // whoever runs the installation may stop anybody
		if me, actor, err = t.acts(by, m.AgencyID); err != nil {
			return changed, err
		}
	}
	row, err := check(m, me)
	if err != nil {
		return changed, err
	}
	if err := by.signed(ctx, t, t.staffEntry(m).Statement(c.Kind, c.Reason)); err != nil {
		return changed, err
	}
	if c.Kind == StaffChangeSuspend {
		if err := t.endChanges(ctx, func(o StaffChangeEntry) bool { return o.ProposedBy == m.ID }); err != nil {
			return changed, err
		}
	}
	if err := t.q.SuspendStaff(ctx, row); err != nil {
		return changed, fmt.Errorf("storing the suspension of %s: %w", m.ID, err)
	}
	if err := t.q.EndSessionsOfStaff(ctx, m.ID); err != nil { // a suspension that is lifted brings none back
		return changed, fmt.Errorf("ending the sessions of %s: %w", m.ID, err)
	}
	c.StaffID, c.ProposedBy, c.State = m.ID, me.ID, casework.DecisionApproved
	stored, err := t.storeChange(ctx, c)
	if err != nil {
		return changed, err
	}
	if _, err := t.reread(ctx, ""); err != nil {
		return changed, err
	}
	changed = t.staffEntry(t.member(m.ID))
	return changed, operation.Record(ctx, t.tx, actor, t.tx.Now, changeEntry("staff."+string(c.Kind), stored))
}
