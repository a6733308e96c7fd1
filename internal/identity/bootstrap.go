package identity

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/digests"
	"quittance/internal/identity/internal/db"
	"quittance/internal/operation"
	"quittance/internal/secret"
	"quittance/internal/signed"
)

const (
	// StaffWait is the time until a member of staff who was made on the command line, for a group that has had people
	// before, may be approved there. The others are told at once, and `staff revoke` ends it.
	StaffWait = 24 * time.Hour
	// StaffWaitEnds is the time after which such a member can no longer be approved. A person whom everybody has
	// forgotten must not be approved later without a word.
	StaffWaitEnds = 7 * 24 * time.Hour
)

// begins decides whether a member who is made on the command line is in force at once, as the first of a group are, or
// waits. Whoever runs the command line can revoke the people of a group; without the wait they could put others in
// their place, who approve at once.
func (t *Tx) begins(m *Staff) {
	had := 0
	for _, s := range t.staff {
		if s.AgencyID == m.AgencyID && !s.ApprovedAt.IsZero() {
			had++
		}
	}
	if had < firstStaff {
		m.ApprovedAt = t.tx.Now
	}
}

// members counts the members of a group. One whose row somebody has edited counts, too: otherwise whoever breaks the
// rows of a group could have its next members made without a proposer. So does one who is suspended: otherwise whoever suspends
// the members could.
func (t *Tx) members(agencyID string) int {
	n := 0
	for _, s := range t.staff {
		if (s.State() == StaffStateActive || s.State() == StaffStateSuspended) && s.AgencyID == agencyID {
			n++
		}
	}
	return n
}

// warnStaff tells the people of the group and of operations who have an address that a member waits.
func (t *Tx) warnStaff(ctx context.Context, e StaffEntry) error {
	var told []string
	for _, s := range t.staff {
		if s.ID != e.ID && s.InForce() && s.ActsFor(e.AgencyID) && t.contacts[s.ID].Email != "" {
			told = append(told, s.ID)
		}
	}
	return digests.TellAtOnce(ctx, t.tx, told, digests.Item{Topic: digests.TopicStaff, Subject: e.ID, Detail: e.Group(), Since: t.tx.Now}, t.tx.Now)
}

// SignStaff signs rows of staff that do not verify: seen are what somebody has looked at, from registry.LookAtRows. A
// person whom it signs waits, as one who is made on the command line for a group that has had people, and the others are
// told: otherwise whoever has the master keys and writes to Postgres would put somebody in force at once. A person who
// was revoked stays so. now is the time of the service's clock. A refusal is an *operation.Error. After an error nothing
// has changed.
func SignStaff(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, seen []signed.Row, now time.Time) error {
	err := change(ctx, pool, keys, now, func(t *Tx) error {
		var waiting []string
		for _, row := range seen {
			if err := t.tx.Rows().Adopt(row); err != nil {
				return err
			}
			done, err := t.tx.Exec(ctx, `UPDATE staff SET created_at = $2, invited = false, proposed_by = NULL, approved_by = NULL, approved_at = NULL WHERE id = $1 AND revoked_at IS NULL`, row.Key, t.tx.Now)
			if err != nil {
				return err
			}
			if done.RowsAffected() > 0 {
				waiting = append(waiting, row.Key)
			}
			if err := operation.Record(ctx, t.tx, actor, now, operation.Entry{Action: "rows.sign", Subject: row.ID.String(), Detail: map[string]any{"waits": done.RowsAffected() > 0}}); err != nil {
				return err
			}
		}
		if _, err := t.reread(ctx, ""); err != nil {
			return err
		}
		for _, id := range waiting {
			if err := t.warnStaff(ctx, t.staffEntry(t.member(id))); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("signing rows of staff: %w", err)
	}
	return nil
}

// endWait makes the key of a member who has waited valid.
func (t *Tx) endWait(ctx context.Context, actor operation.Actor, m Staff) (StaffEntry, error) {
	args := operation.Args{"name": m.Name, "group": t.staffEntry(m).Group(), "until": stamp(m.MayBegin())}
	switch now := t.tx.Now; {
	case now.Before(m.MayBegin()):
		return StaffEntry{}, operation.Refuse("staff.waits", "id", args)
	case !now.Before(m.CreatedAt.Add(StaffWaitEnds)):
		return StaffEntry{}, operation.Refuse("staff.wait_ended", "id", args)
	case t.members(m.AgencyID) >= firstStaff:
		return StaffEntry{}, operation.Refuse("staff.group_decides", "id", args)
	}
	if err := t.q.ApproveStaff(ctx, db.ApproveStaffParams{ID: m.ID, ApprovedAt: &t.tx.Now}); err != nil {
		return StaffEntry{}, fmt.Errorf("approving %s: %w", m.ID, err)
	}
	if _, err := t.reread(ctx, ""); err != nil {
		return StaffEntry{}, err
	}
	e := t.staffEntry(t.member(m.ID))
	return e, t.recordStaff(ctx, actor, "staff.approve", e)
}
