package identity

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/identity/internal/db"
	"quittance/internal/operation"
	"quittance/internal/secret"
)

// joined lists roles for a refusal.
func joined(roles []Role) string { return strings.Join(texts(roles), ", ") }

// rolesFor returns the roles that people of a group may have.
func rolesFor(agencyID string) []Role {
	return slices.DeleteFunc(Roles(), func(r Role) bool { return r.OfService() != (agencyID == "") })
}

// checkRoles refuses roles that a person of a group may not have, or not together. The field is role.
func (t *Tx) checkRoles(agencyID string, roles []Role) error {
	may := rolesFor(agencyID)
	for _, r := range roles {
		_, known := r.rule()
		switch {
		case !known:
			return operation.Refuse("staff.role_unknown", "role", operation.Args{"roles": joined(may)})
		case !slices.Contains(may, r):
			return operation.Refuse("staff.role_of_others", "role", operation.Args{"role": string(r), "group": t.group(agencyID), "roles": joined(may)})
		}
	}
	if a, b, found := Exclusive(roles); found {
		return operation.Refuse("staff.roles_exclusive", "role", operation.Args{"role": string(a), "other": string(b)})
	}
	return nil
}

// RolesRequest asks for other roles of a person.
type RolesRequest struct {
	Add, Remove []Role
}

// planned returns the roles that a person has after a request. Roles that the person has, or has not, are no fault; a
// request that changes nothing is refused. The fields are add, remove and role.
func (t *Tx) planned(m Staff, req RolesRequest) ([]Role, error) {
	after := slices.DeleteFunc(union(m.Roles, req.Add), func(r Role) bool { return slices.Contains(req.Remove, r) })
	for _, r := range req.Remove {
		_, known := r.rule()
		switch {
		case slices.Contains(req.Add, r):
			return nil, operation.Refuse("staff.role_twice", "remove", operation.Args{"role": string(r)})
		case !known && !slices.Contains(m.doubted, r) && !slices.Contains(m.Roles, r):
			return nil, operation.Refuse("staff.role_unknown", "remove", operation.Args{"roles": joined(rolesFor(m.AgencyID))})
		}
	}
	if err := t.checkRoles(m.AgencyID, after); err != nil {
		return nil, err
	}
	doubted := slices.ContainsFunc(m.doubted, func(r Role) bool { return slices.Contains(req.Remove, r) })
	if slices.Equal(after, m.Roles) && !doubted {
		return nil, operation.Refuse("staff.roles_same", "", operation.Args{"name": m.Name, "roles": joined(m.Roles)})
	}
	if !Allowed(after, MayManagePeople) {
		return after, t.keepsManagers(m)
	}
	return after, nil
}

// setRoles gives and ends roles so that a person has those of after. Rows that are not as they were signed are gone then.
// It reads all identities again.
func (t *Tx) setRoles(ctx context.Context, m Staff, after []Role) error {
	for _, r := range slices.Concat(m.Roles, m.doubted) {
		if slices.Contains(after, r) {
			continue
		}
		if err := t.q.EndStaffRole(ctx, db.EndStaffRoleParams{StaffID: m.ID, Role: string(r)}); err != nil {
			return fmt.Errorf("ending a role of %s: %w", m.ID, err)
		}
	}
	for _, r := range after {
		if slices.Contains(m.Roles, r) {
			continue
		}
		if err := t.tx.Anew(ctx, "staff_roles", m.ID, string(r)); err != nil {
			return err
		}
		if err := t.q.GrantStaffRole(ctx, db.GrantStaffRoleParams{StaffID: m.ID, Role: string(r), GrantedAt: t.tx.Now}); err != nil {
			return fmt.Errorf("giving %s a role: %w", m.ID, err)
		}
	}
	_, err := t.reread(ctx, "")
	return err
}

// SetStaffRoles gives and ends roles of a person on the command line, while the group has fewer than two people who can
// decide about its people on a page; after that two of them decide (ProposeStaffChange). named is the id or the name.
// now is the time of the service's clock. A refusal is an *operation.Error with the field id, role, add or remove.
// After an error nothing has changed.
func SetStaffRoles(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, named string, req RolesRequest, now time.Time) (StaffEntry, error) {
	var changed StaffEntry
	err := change(ctx, pool, keys, now, func(t *Tx) error {
		m, err := t.staffNamed(named)
		if err != nil {
			return err
		}
		if m.State() == StaffStateRevoked {
			return operation.Refuse("staff.is_revoked", "id", operation.Args{"name": m.Name})
		}
		if _, _, err := t.acts(By{Actor: actor}, m.AgencyID); err != nil {
			return err
		}
		after, err := t.planned(m, req)
		if err != nil {
			return err
		}
		if err := t.setRoles(ctx, m, after); err != nil {
			return err
		}
		changed = t.staffEntry(t.member(m.ID))
		return operation.Record(ctx, t.tx, actor, now, rolesEntry(changed, m.Roles))
	})
	if err != nil {
		return StaffEntry{}, fmt.Errorf("changing the roles of a member of staff: %w", err)
	}
	return changed, nil
}

// rolesEntry is the entry of the audit table about a change of roles.
func rolesEntry(e StaffEntry, before []Role) operation.Entry {
	entry := staffRecord("staff.roles", e)
	entry.Detail["roles"], entry.Detail["roles_before"] = e.Roles, append([]Role{}, before...)
	return entry
}

// union returns the roles of two lists, sorted, each once.
func union(a, b []Role) []Role {
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}
