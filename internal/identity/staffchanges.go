package identity

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/casework"
	"quittance/internal/decisions"
	"quittance/internal/form"
	"quittance/internal/identity/internal/db"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/internal/signed"
)

const (
	// StaffChangeLife is how long a proposal about a person waits for its approval.
	StaffChangeLife = 7 * 24 * time.Hour
	// maxStaffReason is the greatest length of a reason.
	maxStaffReason = 500
)

// StaffChangeKind is what a change about a person does.
type StaffChangeKind string

// The kinds of changes. Two people decide about the first two; the others are done at once.
const (
	StaffChangeRoles   StaffChangeKind = "roles"
	StaffChangeRevoke  StaffChangeKind = "revoke"
	StaffChangeSuspend StaffChangeKind = "suspend"
	StaffChangeLift    StaffChangeKind = "lift"
)

// StaffChange is what was changed about a person, or waits for the approval of another one.
type StaffChange struct {
	ID, StaffID string
	Kind        StaffChangeKind
	// Add and Remove are the roles of StaffChangeRoles.
	Add, Remove []Role
	Reason      string
	// ProposedBy and DecidedBy are ids of staff; ProposedBy is empty for the command line.
	ProposedBy, DecidedBy string
	ProposedAt, DecidedAt time.Time // DecidedAt is zero while it waits
	// State is as of the reading: a proposal lapses after StaffChangeLife, or when its proposer may not act any more.
	State casework.DecisionState
	// Forged means that the row is not as it was signed: it cannot be approved.
	Forged bool
}

func toStaffChange(r changeRow, forged bool) StaffChange {
	c := StaffChange{
		ID: r.ID, StaffID: r.StaffID, Kind: StaffChangeKind(r.Kind), Reason: r.Reason, ProposedBy: value(r.ProposedBy), DecidedBy: value(r.DecidedBy),
		ProposedAt: r.ProposedAt.UTC(), DecidedAt: value(r.DecidedAt), State: casework.DecisionState(r.State), Forged: forged,
	}
	for _, role := range r.AddRoles {
		c.Add = append(c.Add, Role(role))
	}
	for _, role := range r.EndRoles {
		c.Remove = append(c.Remove, Role(role))
	}
	return c
}

func (c StaffChange) decision() casework.Decision {
	return casework.Decision{State: c.State, ProposedBy: c.ProposedBy, ProposedAt: c.ProposedAt, Life: StaffChangeLife}
}

// StaffChangeEntry is a change as people see it.
type StaffChangeEntry struct {
	StaffChange
	Of StaffEntry
	// Proposer is the name of who proposed; empty for the command line.
	Proposer string
}

// Statement is what a person signs to approve the change: the person, the roles before and after it, and the reason.
func (c StaffChangeEntry) Statement() Statement {
	return Statement{Kind: "staff_change", Subject: c.ID, Verdict: string(casework.DecisionApproved), AgencyID: c.Of.AgencyID, Digest: hex.EncodeToString(casework.Digest(map[string]string{
		"change": c.ID, "kind": string(c.Kind), "person": c.StaffID, "name": c.Of.Name, "number": c.Of.Number, "agency": c.Of.AgencyID,
		"roles": joined(c.Of.Roles), "add": joined(c.Add), "remove": joined(c.Remove), "reason": c.Reason, "proposer": c.ProposedBy,
	}))}
}

// ProposalStatement is what the proposer of the change signs: the person, the roles before and after it, and the reason.
func (c StaffChange) ProposalStatement(of Staff) Statement {
	return Statement{Kind: "staff_change", Subject: of.ID, Verdict: "propose", AgencyID: of.AgencyID, Digest: hex.EncodeToString(casework.Digest(map[string]string{
		"kind": string(c.Kind), "person": of.ID, "name": of.Name, "number": of.Number, "agency": of.AgencyID,
		"roles": joined(of.Roles), "add": joined(c.Add), "remove": joined(c.Remove), "reason": c.Reason,
	}))}
}

// Statement is what a person signs to suspend another one or to lift the suspension, for a reason as it is stored.
func (e StaffEntry) Statement(kind StaffChangeKind, reason string) Statement {
	return Statement{Kind: "staff", Subject: e.ID, Verdict: string(kind), AgencyID: e.AgencyID, Digest: hex.EncodeToString(casework.Digest(map[string]string{
		"person": e.ID, "name": e.Name, "number": e.Number, "agency": e.AgencyID, "state": string(e.State()), "reason": reason,
	}))}
}

// changes reads all changes, the oldest first, with their states now.
func (t *Tx) changes(ctx context.Context) ([]StaffChangeEntry, error) {
	return t.readChanges(ctx, t.tx, nil, t.tx.Forged, t.tx.Now)
}

func (s *snapshot) readChanges(ctx context.Context, tx pgx.Tx, v *signed.Verifier, forged func(signed.Row) bool, now time.Time) (out []StaffChangeEntry, err error) {
	err = signed.Read(ctx, tx, v, "staff_changes", func(r changeRow, row signed.Row) {
		c := toStaffChange(r, forged(row))
		proposer := s.member(c.ProposedBy)
		c.State = c.decision().At(now, proposer.Person())
		out = append(out, StaffChangeEntry{c, s.staffEntry(s.member(c.StaffID)), proposer.Name})
	})
	return out, err
}

// ListStaffChanges lists all changes about people, the oldest first, with their states now. With a verifier it says which are
// forged; nil lists the rows as they are.
func ListStaffChanges(ctx context.Context, pool *pgxpool.Pool, v *signed.Verifier, now time.Time) (out []StaffChangeEntry, err error) {
	err = registry.View(ctx, pool, "", func(tx pgx.Tx, reg *registry.Snapshot) error {
		forged := func(r signed.Row) bool { return v != nil && !r.Verified }
		s, err := load(ctx, tx, reg, v, forged)
		if err != nil {
			return err
		}
		out, err = s.readChanges(ctx, tx, v, forged, now)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing changes of staff: %w", err)
	}
	return out, nil
}

// change finds a change that waits, or has waited, for an approval.
func (t *Tx) change(ctx context.Context, id string) (StaffChangeEntry, error) {
	list, err := t.changes(ctx)
	if err != nil {
		return StaffChangeEntry{}, err
	}
	parsed, _ := form.CanonicalUUID(id)
	n := slices.IndexFunc(list, func(c StaffChangeEntry) bool { return c.ID == parsed })
	if n < 0 {
		return StaffChangeEntry{}, operation.Refuse("staff_change.unknown", "id", nil)
	}
	return list[n], nil
}

// lapseChanges ends the proposals about a person that wait. A forged one cannot be approved, and stays.
func (t *Tx) lapseChanges(ctx context.Context, staffID string) error {
	return t.endChanges(ctx, func(c StaffChangeEntry) bool { return c.StaffID == staffID })
}

// endChanges ends proposals that are stored as waiting.
func (t *Tx) endChanges(ctx context.Context, which func(StaffChangeEntry) bool) error {
	list, err := t.changes(ctx)
	if err != nil {
		return err
	}
	for _, c := range list {
		if !c.DecidedAt.IsZero() || c.Forged || !which(c) {
			continue
		}
		if err := t.endChange(ctx, c.StaffChange, casework.DecisionLapsed, ""); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tx) endChange(ctx context.Context, c StaffChange, state casework.DecisionState, by string) error {
	if err := t.q.EndStaffChange(ctx, db.EndStaffChangeParams{ID: c.ID, State: string(state), DecidedBy: given(by), DecidedAt: &t.tx.Now}); err != nil {
		return fmt.Errorf("ending change %s of a member of staff: %w", c.ID, err)
	}
	return nil
}

// storeChange stores a change. One that is not proposed is decided at once.
func (t *Tx) storeChange(ctx context.Context, c StaffChange) (StaffChangeEntry, error) {
	c.ID = cmp.Or(c.ID, uuid.Must(uuid.NewV7()).String())
	row := db.InsertStaffChangeParams{
		ID: c.ID, StaffID: c.StaffID, Kind: string(c.Kind), AddRoles: texts(c.Add), EndRoles: texts(c.Remove), Reason: c.Reason,
		ProposedBy: given(c.ProposedBy), ProposedAt: t.tx.Now, State: string(c.State),
	}
	if c.State != casework.DecisionProposed {
		row.DecidedAt = &t.tx.Now
	}
	if err := t.q.InsertStaffChange(ctx, row); err != nil {
		return StaffChangeEntry{}, fmt.Errorf("storing a change of a member of staff: %w", err)
	}
	return t.change(ctx, c.ID)
}

// StaffChangeRequest proposes a change about a person that two people decide about.
type StaffChangeRequest struct {
	// Staff is the person's id or name.
	Staff string
	// Kind is StaffChangeRoles or StaffChangeRevoke.
	Kind   StaffChangeKind
	Roles  RolesRequest // of StaffChangeRoles
	Reason string
}

// ProposeStaffChange proposes other roles of a person, or to revoke the person. by is a person who manages people of the group,
// and signs StaffChange.ProposalStatement. An earlier proposal of the same kind about the person that waits is in its way. now is
// the time of the service's clock. A refusal is an *operation.Error with the field id, reason, role, add or remove. After an
// error nothing has changed.
func ProposeStaffChange(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, by By, req StaffChangeRequest, now time.Time) (proposed StaffChangeEntry, err error) {
	err = change(ctx, pool, keys, now, func(t *Tx) error {
		proposed, err = t.proposeChange(ctx, by, req, "")
		return err
	})
	if err != nil {
		return StaffChangeEntry{}, fmt.Errorf("proposing a change of a member of staff: %w", err)
	}
	return proposed, nil
}

// proposeChange is ProposeStaffChange within a transaction. The id is that of the change; empty for a new one.
func (t *Tx) proposeChange(ctx context.Context, by By, req StaffChangeRequest, id string) (proposed StaffChangeEntry, err error) {
	m, err := t.subject(req.Staff, req.Reason)
	if err != nil {
		return proposed, err
	}
	if by.Signer == nil {
		return proposed, t.onPages(m.AgencyID)
	}
	me, actor, err := t.acts(by, m.AgencyID)
	if err != nil {
		return proposed, err
	}
	c := StaffChange{ID: id, StaffID: m.ID, Kind: req.Kind, Reason: req.Reason, ProposedBy: me.ID, State: casework.DecisionProposed}
	if err := t.mayChange(m, &c, req.Roles); err != nil {
		return proposed, err
	}
	lapsed, err := t.changeWaits(ctx, c)
	if err != nil {
		return proposed, err
	}
	err = decisions.Propose(ctx, t.tx, decisions.Step{By: me.Person(), Actor: actor, At: t.tx.Now, Store: func() (operation.Entry, error) {
		if err := by.signed(ctx, t, c.ProposalStatement(m)); err != nil {
			return operation.Entry{}, err
		}
		if err := t.endChanges(ctx, lapsed); err != nil {
			return operation.Entry{}, err
		}
		proposed, err = t.storeChange(ctx, c)
		return changeEntry("staff.propose_change", proposed), err
	}})
	return proposed, err
}

// subject returns the person whom a change is about.
func (t *Tx) subject(named, reason string) (Staff, error) {
	m, err := t.staffNamed(named)
	switch {
	case err != nil:
		return m, err
	case m.Forged:
		return m, refuseForged(m)
	case m.State() == StaffStateRevoked:
		return m, operation.Refuse("staff.is_revoked", "id", operation.Args{"name": m.Name})
	case !form.IsLine(reason, maxStaffReason):
		return m, operation.Refuse("staff.reason_malformed", "reason", operation.Args{"most": maxStaffReason})
	}
	return m, nil
}

// mayChange refuses a change that cannot be made now, and notes its roles.
func (t *Tx) mayChange(m Staff, c *StaffChange, roles RolesRequest) error {
	switch c.Kind {
	case StaffChangeRoles:
		c.Add, c.Remove = union(roles.Add, nil), union(roles.Remove, nil)
		_, err := t.planned(m, roles)
		return err
	case StaffChangeRevoke:
		return t.keepsManagers(m)
	case StaffChangeSuspend, StaffChangeLift:
	}
	return fmt.Errorf("a change of kind %q is not proposed", c.Kind) // a fault of the program
}

// changeWaits refuses a proposal beside another one of the same kind about the person. It returns which ones have lapsed and
// make room.
func (t *Tx) changeWaits(ctx context.Context, c StaffChange) (lapsed func(StaffChangeEntry) bool, err error) {
	list, err := t.changes(ctx)
	if err != nil {
		return nil, err
	}
	same := func(o StaffChangeEntry) bool {
		return o.StaffID == c.StaffID && o.Kind == c.Kind && o.DecidedAt.IsZero()
	}
	for _, o := range list {
		if same(o) && (o.State == casework.DecisionProposed || o.Forged) {
			return nil, operation.Refuse("staff_change.waits", "id", operation.Args{"name": o.Of.Name, "id": o.ID, "proposer": o.Proposer})
		}
	}
	return same, nil
}

// ApproveStaffChange approves the proposal of another person, and carries it out. by signs StaffChangeEntry.Statement. now is
// the time of the service's clock. A refusal is an *operation.Error with the field id, role, add or remove. After an error
// nothing has changed.
func ApproveStaffChange(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, by By, id string, now time.Time) (approved StaffChangeEntry, err error) {
	err = change(ctx, pool, keys, now, func(t *Tx) error {
		approved, err = t.approveChange(ctx, by, id)
		return err
	})
	if err != nil {
		return StaffChangeEntry{}, fmt.Errorf("approving a change of a member of staff: %w", err)
	}
	return approved, nil
}

// approveChange is ApproveStaffChange within a transaction.
func (t *Tx) approveChange(ctx context.Context, by By, id string) (approved StaffChangeEntry, err error) {
	c, me, actor, err := t.waiting(ctx, by, id)
	if err != nil {
		return approved, err
	}
	proposer := t.member(c.ProposedBy)
	step := c.step(me, proposer, actor, t.tx.Now)
	step.Store = func() (operation.Entry, error) {
		if !proposer.May(MayManagePeople) { // the role was withdrawn since
			return operation.Entry{}, casework.ErrLapsed
		}
		if err := t.mayChange(c.Of.Staff, &c.StaffChange, RolesRequest{c.Add, c.Remove}); err != nil {
			return operation.Entry{}, err
		}
		if err := by.signed(ctx, t, c.Statement()); err != nil {
			return operation.Entry{}, err
		}
		if err := t.carryOut(ctx, c); err != nil {
			return operation.Entry{}, err
		}
		if err := t.endChange(ctx, c.StaffChange, casework.DecisionApproved, me.ID); err != nil {
			return operation.Entry{}, err
		}
		approved, err = t.change(ctx, c.ID)
		return changeEntry("staff.approve_change", approved), err
	}
	err = decisions.Approve(ctx, t.tx, step)
	return approved, err
}

// carryOut does what a proposal says. It reads all identities again.
func (t *Tx) carryOut(ctx context.Context, c StaffChangeEntry) error {
	if c.Kind == StaffChangeRevoke {
		if err := t.endChange(ctx, c.StaffChange, casework.DecisionApproved, ""); err != nil { // so that revoke does not let it lapse
			return err
		}
		return t.revoke(ctx, c.Of.Staff)
	}
	after, err := t.planned(c.Of.Staff, RolesRequest{c.Add, c.Remove})
	if err != nil {
		return err
	}
	return t.setRoles(ctx, c.Of.Staff, after)
}

// rejectChange rejects a proposal, or withdraws one's own. A refusal is an *operation.Error with the field id.
func (t *Tx) rejectChange(ctx context.Context, by By, id string) (rejected StaffChangeEntry, err error) {
	c, me, actor, err := t.waiting(ctx, by, id)
	if err != nil {
		return rejected, err
	}
	step := c.step(me, t.member(c.ProposedBy), actor, t.tx.Now)
	step.Store = func() (operation.Entry, error) {
		if err := t.endChange(ctx, c.StaffChange, casework.DecisionRejected, me.ID); err != nil {
			return operation.Entry{}, err
		}
		rejected, err = t.change(ctx, c.ID)
		return changeEntry("staff.reject_change", rejected), err
	}
	err = decisions.Reject(ctx, t.tx, step)
	return rejected, err
}

// waiting returns a proposal, and the person who decides about it.
func (t *Tx) waiting(ctx context.Context, by By, id string) (c StaffChangeEntry, me Staff, actor operation.Actor, err error) {
	if c, err = t.change(ctx, id); err != nil {
		return c, me, by.Actor, err
	}
	if c.Forged {
		return c, me, by.Actor, operation.Refuse(signed.CodeForged, "", operation.Args{"table": "staff_changes", "key": c.ID})
	}
	if _, err := t.subject(c.StaffID, c.Reason); err != nil {
		return c, me, by.Actor, err
	}
	if by.Signer == nil {
		return c, me, by.Actor, t.onPages(c.Of.AgencyID)
	}
	me, actor, err = t.acts(by, c.Of.AgencyID)
	return c, me, actor, err
}

// step returns a step of a person about the proposal, but for how it is stored.
func (c StaffChangeEntry) step(me, proposer Staff, actor operation.Actor, now time.Time) decisions.Step {
	args := operation.Args{"name": c.Of.Name, "state": c.State}
	return decisions.Step{
		Decision: c.decision(), Proposer: proposer.Person(), By: me.Person(), Actor: actor, At: now,
		Refusals: map[error]error{
			casework.ErrSamePerson: operation.Refuse("staff_change.second_person", "id", args),
			casework.ErrLapsed:     operation.Refuse("staff_change.lapsed", "id", args),
			casework.ErrDecided:    operation.Refuse("staff_change.decided", "id", args),
		},
	}
}

// changeEntry is the entry of the audit table about a change.
func changeEntry(action string, c StaffChangeEntry) operation.Entry {
	return operation.Entry{Action: action, Subject: c.StaffID, AgencyID: c.Of.AgencyID, Detail: map[string]any{
		"group": c.Of.Group(), "change": c.ID, "kind": c.Kind, "add": append([]Role{}, c.Add...), "remove": append([]Role{}, c.Remove...), "reason": c.Reason, "proposed_by": c.ProposedBy,
	}}
}
