package identity

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/internal/operation"
)

// MinManagers is the number of people with whom a group decides about its people on pages alone.
const MinManagers = firstStaff

// By is who changes the people of a group.
type By struct {
	// Actor is who runs the command line. Of a person on a page only its Origin counts.
	Actor operation.Actor
	// Signer is the person on a page; nil for the command line.
	Signer Signer
}

// signed asks for the signature of the person on a page. The command line signs nothing.
func (by By) signed(ctx context.Context, t *Tx, s Statement) error {
	if by.Signer == nil {
		return nil
	}
	return by.Signer.Signed(ctx, t.tx, s)
}

// manages reports whether the person counts as one who can decide about the people of the group on a page. A row that
// somebody has edited counts, too: otherwise whoever breaks the rows of a group could change it on the command line.
func (s Staff) manages() bool {
	return s.State() == StaffStateActive && Allowed(slices.Concat(s.Roles, s.doubted), MayManagePeople) && s.kept() >= MinPasskeys
}

// kept counts the passkeys that were not removed.
func (s Staff) kept() (n int) {
	for _, p := range s.Passkeys {
		if p.RemovedAt.IsZero() {
			n++
		}
	}
	return n
}

// managers counts the members of a group who can decide about its people on a page. With two of them the group decides
// on pages alone; before that the command line does, and for an agency also the security officers of the service.
func (s *snapshot) managers(agencyID string) (n int) {
	for _, m := range s.staff {
		if m.AgencyID == agencyID && m.manages() {
			n++
		}
	}
	return n
}

// page returns the address of the pages of a group; that of any passkey if the group has none.
func (s *snapshot) page(agencyID string) string {
	var host string
	for _, m := range s.staff {
		for _, p := range m.Passkeys {
			if p.RemovedAt.IsZero() && (host == "" || m.AgencyID == agencyID) {
				host = p.Host
			}
		}
	}
	return pageOf(host)
}

func pageOf(host string) string { return "https://" + cmp.Or(host, "…") + "/" }

// acts returns who changes the people of a group, and the actor of the audit table. The command line acts for a group
// until two of its people can decide. The person is the zero Staff then.
func (t *Tx) acts(by By, agencyID string) (Staff, operation.Actor, error) {
	group := t.group(agencyID)
	if by.Signer == nil {
		if t.managers(agencyID) >= firstStaff {
			return Staff{}, by.Actor, t.onPages(agencyID)
		}
		return Staff{}, by.Actor, nil
	}
	me, err := t.now(by.Signer.Person())
	switch {
	case err != nil:
		return me, by.Actor, err
	case !me.May(MayManagePeople):
		return me, by.Actor, notPermitted(me, MayManagePeople)
	case me.AgencyID != agencyID && (!me.Operations() || t.managers(agencyID) >= firstStaff):
		return me, by.Actor, operation.Refuse("staff.other_people", "", operation.Args{"group": group, "own": t.group(me.AgencyID)})
	}
	return me, me.Actor(by.Actor.Origin), nil
}

// onPages is the refusal of what the people of a group decide on a page.
func (t *Tx) onPages(agencyID string) error {
	return operation.Refuse("staff.page_decides", "", operation.Args{"group": t.group(agencyID), "url": t.page(agencyID)})
}

// now returns a person as the transaction reads it. One who may not act is refused.
func (t *Tx) now(who Staff) (Staff, error) {
	switch me := t.member(who.ID); {
	case me.ID == "":
		return me, operation.Refuse("staff.unknown", "", nil)
	case me.Forged:
		return me, refuseForged(me)
	case me.State() == StaffStateSuspended:
		return me, operation.Refuse("staff.suspended", "", operation.Args{"name": me.Name})
	case !me.InForce():
		return me, operation.Refuse("staff.revoked", "", operation.Args{"name": me.Name})
	default:
		return me, nil
	}
}

// group names a group: the slug of an agency, or operations.
func (s *snapshot) group(agencyID string) string {
	return StaffEntry{Staff: Staff{AgencyID: agencyID}, Agency: s.registry.Agencies[agencyID].Slug}.Group()
}

// keepsManagers refuses a change after which a group that two people decide about has fewer than two, because m is none
// of them any more.
func (t *Tx) keepsManagers(m Staff) error {
	if n := t.managers(m.AgencyID); m.manages() && n == firstStaff {
		return operation.Refuse("staff.last_managers", "", operation.Args{"name": m.Name, "group": t.group(m.AgencyID)})
	}
	return nil
}

// NeedsPasskeys reports whether the people of a group approve with passkeys only, at a time: two of them have had two
// passkeys each that approve. agencyID is empty for operations. Passkeys that were removed count, and so do suspended people:
// one person alone must not make the keys of the others approve again. Revoked people do not count, so that a group can begin
// again. Rows count as they are: an edited one must not have that effect either.
func NeedsPasskeys(ctx context.Context, tx pgx.Tx, agencyID string, at time.Time) (bool, error) {
	host, err := passkeysDecide(ctx, tx, agencyID, at)
	return host != "", err
}

// passkeysDecide returns the host of the passkeys of a group that approves with passkeys only; empty for another one.
func passkeysDecide(ctx context.Context, tx pgx.Tx, agencyID string, at time.Time) (string, error) {
	var people int
	var host string
	err := tx.QueryRow(ctx, `SELECT count(*), coalesce(max(host), '') FROM (
			SELECT (SELECT max(p.host) FROM staff_passkeys p WHERE p.staff_id = s.id AND p.approves_from <= $2 HAVING count(*) >= $3) AS host
			FROM staff s WHERE s.agency_id IS NOT DISTINCT FROM $1 AND s.approved_at <= $2 AND (s.revoked_at IS NULL OR s.revoked_at > $2)
		) people WHERE host IS NOT NULL`, given(agencyID), at, MinPasskeys).Scan(&people, &host)
	if err != nil {
		return "", fmt.Errorf("counting the passkeys of a group: %w", err)
	}
	if people < firstStaff {
		return "", nil
	}
	return host, nil
}

// ApprovesWithKey refuses an approval, or the rejection of what another person has proposed, with an st_ key when the people of
// the group approve with passkeys only (NeedsPasskeys). The keys of such a group read and propose, and withdraw what their
// holder has proposed. The refusal is an *operation.Error with the code staff.keys_propose.
func ApprovesWithKey(ctx context.Context, tx pgx.Tx, agencyID string, at time.Time) error {
	host, err := passkeysDecide(ctx, tx, agencyID, at)
	if err == nil && host != "" {
		err = operation.Refuse("staff.keys_propose", "", operation.Args{"url": pageOf(host)})
	}
	return err
}
