package identity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"quittance/casework"
	"quittance/internal/decisions"
	"quittance/internal/form"
	"quittance/internal/identity/internal/db"
	"quittance/internal/operation"
	"quittance/internal/secret"
	"quittance/internal/signed"
)

// firstStaff is the number of members that a group needs to decide about others. Until it
// has them, whoever runs the installation makes its members.
const firstStaff = 2

// Staff is a person who resolves operator cases.
type Staff struct {
	ID string
	// Name is unique, also among those who were revoked. Events hold it.
	Name string
	// AgencyID is the person's agency; empty for operations.
	AgencyID string
	// Clerks are what the person is called at counters: agency id/clerk code.
	Clerks    []string
	CreatedAt time.Time
	// ProposedBy and ApprovedBy are ids of other staff; empty when the person was made on
	// the command line.
	ProposedBy, ApprovedBy string
	ApprovedAt             time.Time // zero: the key is not valid yet
	RevokedAt              time.Time // zero: not revoked
	// Number is the staff number; unique in the group, and empty for none.
	Number string
	// Invited means that the person joins by an invitation, and has no st_ key.
	Invited bool
	// SuspendedAt is when the person was suspended; zero while the person is not. SuspendedBy is the id of who
	// did it; empty for the command line.
	SuspendedAt time.Time
	SuspendedBy string
	// Issuer and Subject are who the person is at the identity provider of the group (iss and sub); empty when the person signs in
	// with a passkey alone.
	Issuer, Subject string
	// Roles are sorted. A role whose row is not as it was signed is none.
	Roles   []Role
	doubted []Role // those whose rows are not as they were signed
	// Passkeys are the person's, the oldest first, removed and forged ones included.
	Passkeys []StaffPasskey
	// Forged means that the row of the person is not as it was signed: the person may not act.
	Forged bool
}

func toStaff(r staffRow, forged bool) Staff {
	return Staff{
		ID: r.ID, Name: r.Name, AgencyID: value(r.AgencyID), Clerks: r.Clerks, CreatedAt: r.CreatedAt, ProposedBy: value(r.ProposedBy),
		ApprovedBy: value(r.ApprovedBy), ApprovedAt: value(r.ApprovedAt), RevokedAt: value(r.RevokedAt), Forged: forged,
		Number: value(r.Number), Invited: r.Invited, SuspendedAt: value(r.SuspendedAt), SuspendedBy: value(r.SuspendedBy), Issuer: value(r.Issuer), Subject: value(r.Subject),
	}
}

// StaffState is the state of a member of staff.
type StaffState string

// The states of staff. Only those who are active are in force.
const (
	StaffStateProposed StaffState = "proposed" // waits for the approval, or the confirmation, of another one
	// StaffStateWaiting is that of a person who was made on the command line for a group that has had people before:
	// see StaffWait.
	StaffStateWaiting StaffState = "waiting"
	StaffStateActive  StaffState = "active"
	// StaffStateSuspended is that of a person whom another has suspended, until somebody lifts it.
	StaffStateSuspended StaffState = "suspended"
	StaffStateRevoked   StaffState = "revoked"
)

// State returns the state of the person.
func (s Staff) State() StaffState {
	switch {
	case !s.RevokedAt.IsZero():
		return StaffStateRevoked
	case s.ApprovedAt.IsZero() && s.ProposedBy == "" && !s.Invited:
		return StaffStateWaiting
	case s.ApprovedAt.IsZero():
		return StaffStateProposed
	case !s.SuspendedAt.IsZero():
		return StaffStateSuspended
	}
	return StaffStateActive
}

// MayBegin returns when a person who waits may be approved on the command line.
func (s Staff) MayBegin() time.Time { return s.CreatedAt.Add(StaffWait) }

// InForce reports whether the person may act.
func (s Staff) InForce() bool { return s.State() == StaffStateActive && !s.Forged }

// Until is when the person ceased to act: revoked, or suspended and not lifted. It is zero for one who may act on.
func (s Staff) Until() time.Time {
	if s.SuspendedAt.IsZero() || !s.RevokedAt.IsZero() && s.RevokedAt.Before(s.SuspendedAt) {
		return s.RevokedAt
	}
	return s.SuspendedAt
}

// Operations reports whether the person belongs to no agency and acts for all.
func (s Staff) Operations() bool { return s.AgencyID == "" }

// ActsFor reports whether the person may act for the agency. An empty id is no agency's.
func (s Staff) ActsFor(agencyID string) bool { return s.Operations() || s.AgencyID == agencyID }

// IsClerk reports whether the person is the clerk of an agency.
func (s Staff) IsClerk(agencyID, code string) bool {
	return slices.Contains(s.Clerks, agencyID+"/"+code)
}

// Person returns the person as one who takes part in decisions by two people.
func (s Staff) Person() casework.Person {
	return casework.Person{ID: s.ID, Name: s.Name, InForce: s.InForce()}
}

// AnyClerk reports whether the person is a clerk of an agency.
func (s Staff) AnyClerk(agencyID string) bool {
	return slices.ContainsFunc(s.Clerks, func(c string) bool { return strings.HasPrefix(c, agencyID+"/") })
}

// Actor returns the person as the actor of an operation that came from a place.
func (s Staff) Actor(origin string) operation.Actor {
	return operation.Actor{Kind: operation.ActorPerson, Name: s.ID, Origin: origin}
}

// StaffEntry is a member of staff as operators see it.
type StaffEntry struct {
	Staff
	Agency string   // slug; empty for operations
	Known  []string // the person's clerks as AGENCY/CODE
	// Contact is where the person gets digests; the zero value for none.
	Contact StaffContact
}

// Group names those who decide about the person.
func (e StaffEntry) Group() string {
	if e.Operations() {
		return operations
	}
	return e.Agency
}

// MintedStaff is a new member of staff with the secret of the key. The secret is not
// stored: show it once.
type MintedStaff struct {
	StaffEntry
	Secret secret.Text
}

// StaffRequest asks for a new member of staff.
type StaffRequest struct {
	Name   string
	Agency string // by id or slug; empty for operations
	// Clerks are what the person is called at counters, as AGENCY/CODE.
	Clerks []string
	// Number is the staff number, unique in the group; empty for none.
	Number string
	// Roles are what the person does; none shows no page.
	Roles []Role
	// Contact is where the person gets digests. The zero value is none.
	Contact StaffContactRequest
}

// ListStaff lists all staff, the oldest first. With a verifier it says who is forged, and shows no address whose
// row does not verify; nil lists the rows as they are.
func ListStaff(ctx context.Context, pool *pgxpool.Pool, v *signed.Verifier) ([]StaffEntry, error) {
	var out []StaffEntry
	err := view(ctx, pool, v, func(s *snapshot) {
		for _, m := range s.staff {
			out = append(out, s.staffEntry(m))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listing staff: %w", err)
	}
	return out, nil
}

// FindStaff returns a person by id or name, with the rows as they are. A refusal is an *operation.Error with the field id.
func FindStaff(ctx context.Context, pool *pgxpool.Pool, named string) (person StaffEntry, err error) {
	failed := view(ctx, pool, nil, func(s *snapshot) {
		var m Staff
		if m, err = s.staffNamed(named); err == nil {
			person = s.staffEntry(m)
		}
	})
	return person, errors.Join(failed, err)
}

// AuthenticateStaff finds the person with a key. With keys a row that does not verify is refused. A refusal is an *operation.Error.
func AuthenticateStaff(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, key string, now time.Time) (person StaffEntry, err error) {
	failed := view(ctx, pool, signed.NewVerifier(keys), func(s *snapshot) {
		var m Staff
		if m, err = s.byKey(key, now); err == nil {
			person = s.staffEntry(m)
		}
	})
	return person, errors.Join(failed, err)
}

// LockStaff reads staff by id within a transaction, with their roles and passkeys. A revocation or a suspension waits for the end of the
// transaction. A person whose row does not verify with the keys is not in force; without keys the rows are
// as they are.
func LockStaff(ctx context.Context, tx pgx.Tx, keys *secret.Keys, ids ...string) (map[string]Staff, error) {
	if err := db.New(tx).LockStaff(ctx, ids); err != nil {
		return nil, fmt.Errorf("locking staff: %w", err)
	}
	return StaffOf(ctx, tx, keys, ids...)
}

// StaffOf reads staff by id within a transaction, with their roles and passkeys. A person whose row does not verify with the keys is
// not in force; without keys the rows are as they are.
func StaffOf(ctx context.Context, tx pgx.Tx, keys *secret.Keys, ids ...string) (map[string]Staff, error) {
	out, verifier := map[string]Staff{}, signed.NewVerifier(keys)
	for _, id := range ids {
		forged := func(row signed.Row) bool { return keys != nil && !row.Verified }
		var m Staff
		if err := errors.Join(
			signed.One(ctx, tx, verifier, func(r staffRow, row signed.Row) { m = toStaff(r, forged(row)) }, "staff", id),
			signed.Find(ctx, tx, verifier, func(r roleRow, row signed.Row) { m.grant(r, forged(row)) }, "staff_roles", "staff_id", id),
			signed.Find(ctx, tx, verifier, func(r passkeyRow, row signed.Row) {
				m.Passkeys = append(m.Passkeys, toStaffPasskey(r, forged(row)))
			}, "staff_passkeys", "staff_id", id),
		); err != nil {
			return nil, err
		}
		if m.ID != "" {
			out[m.ID] = m
		}
	}
	return out, nil
}

// LockInForce reads a person again within a transaction. A revocation waits for the end of the
// transaction; a person who was revoked before, or whose row does not verify, is refused.
func LockInForce(ctx context.Context, tx pgx.Tx, keys *secret.Keys, by Staff) (Staff, error) {
	staff, err := LockStaff(ctx, tx, keys, by.ID)
	switch now := staff[by.ID]; {
	case err != nil:
		return now, err
	case now.Forged:
		return now, refuseForged(by)
	case now.State() == StaffStateWaiting && now.ID != "":
		return now, operation.Refuse("staff.waits", "", operation.Args{"name": by.Name, "until": stamp(now.MayBegin())})
	case now.State() == StaffStateSuspended:
		return now, operation.Refuse("staff.suspended", "", operation.Args{"name": by.Name})
	case !now.InForce():
		return now, operation.Refuse("staff.revoked", "", operation.Args{"name": by.Name})
	default:
		return now, nil
	}
}

func refuseForged(who Staff) error {
	return operation.Refuse(signed.CodeForged, "", operation.Args{"table": "staff", "key": who.ID})
}

// AddStaff makes a member of staff with a key. While the group has fewer than two members
// in force, by is empty: the key is valid at once if the group has never had two members, else
// the member waits for StaffWait, and the others are told. After that by is the key of the
// member who proposes the new one, whose own key is valid when another member has called
// ApproveStaff. now is the time of the service's clock. A refusal is an *operation.Error
// with the field name, agency, clerk, email, language or staff-key. After an error nothing has changed.
func AddStaff(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, by string, req StaffRequest, now time.Time) (MintedStaff, error) {
	var minted MintedStaff
	err := change(ctx, pool, keys, now, func(t *Tx) error {
		m, err := t.asked(req)
		if err != nil {
			return err
		}
		if host, err := passkeysDecide(ctx, t.tx, m.AgencyID, now); err != nil || host != "" {
			return cmp.Or(err, operation.Refuse("staff.invite_instead", "", operation.Args{"group": t.group(m.AgencyID), "url": pageOf(host)}))
		}
		if actor, err = t.proposes(actor, by, &m); err != nil {
			return err
		}
		if err := t.insertStaff(ctx, m, req); err != nil {
			return err
		}
		k, err := t.mint(ctx, Key{Live: true, StaffID: m.ID})
		if err != nil {
			return err
		}
		minted = MintedStaff{StaffEntry: t.staffEntry(t.member(m.ID)), Secret: k.Secret}
		if minted.State() == StaffStateWaiting {
			if err := t.warnStaff(ctx, minted.StaffEntry); err != nil {
				return err
			}
		}
		return t.recordStaff(ctx, actor, "staff.add", minted.StaffEntry)
	})
	if err != nil {
		return MintedStaff{}, fmt.Errorf("adding a member of staff: %w", err)
	}
	return minted, nil
}

// asked returns the person of a request, who is stored nowhere yet.
func (t *Tx) asked(req StaffRequest) (Staff, error) {
	m := Staff{ID: uuid.Must(uuid.NewV7()).String(), Name: strings.Join(strings.Fields(req.Name), " "), Number: strings.Join(strings.Fields(req.Number), " "), CreatedAt: t.tx.Now}
	if !form.IsLine(m.Name, maxName) {
		return m, operation.Refuse("staff.name_malformed", "name", operation.Args{"most": maxName})
	}
	if known, taken := t.findStaff(m.Name); taken {
		return m, operation.Refuse("staff.name_taken", "name", operation.Args{"name": known.Name, "state": known.State()})
	}
	if req.Agency != "" {
		a, err := t.agency(req.Agency)
		if err != nil {
			return m, err
		}
		m.AgencyID = a.ID
	}
	if m.Number != "" {
		if !form.IsLine(m.Number, maxNumber) {
			return m, operation.Refuse("staff.number_malformed", "number", operation.Args{"most": maxNumber})
		}
		if i := slices.IndexFunc(t.staff, func(o Staff) bool { return o.AgencyID == m.AgencyID && folded(o.Number) == folded(m.Number) }); i >= 0 {
			return m, operation.Refuse("staff.number_taken", "number", operation.Args{"name": t.staff[i].Name, "group": t.group(m.AgencyID)})
		}
	}
	if err := t.checkRoles(m.AgencyID, union(req.Roles, nil)); err != nil {
		return m, err
	}
	var err error
	m.Clerks, err = t.clerksOf(req.Clerks)
	return m, err
}

// maxNumber is the greatest length of a staff number.
const maxNumber = 50

// insertStaff stores a new person with what a request gives besides. A person who is invited gets the roles with the
// confirmation. It reads all identities again.
func (t *Tx) insertStaff(ctx context.Context, m Staff, req StaffRequest) error {
	if err := t.q.InsertStaff(ctx, db.InsertStaffParams{
		ID: m.ID, Name: m.Name, Folded: folded(m.Name), AgencyID: given(m.AgencyID), Clerks: m.Clerks, CreatedAt: t.tx.Now,
		ProposedBy: given(m.ProposedBy), ApprovedAt: unlessZero(m.ApprovedAt), Number: given(m.Number), Invited: m.Invited,
	}); err != nil {
		return fmt.Errorf("storing the member of staff: %w", err)
	}
	if req.Contact.Email != "" || req.Contact.Language != "" {
		if err := t.setContact(ctx, m, req.Contact); err != nil {
			return err
		}
	}
	if m.Invited {
		_, err := t.reread(ctx, "")
		return err
	}
	return t.setRoles(ctx, m, union(req.Roles, nil))
}

// proposes decides whether a new member is in force at once, and returns who acts.
func (t *Tx) proposes(actor operation.Actor, by string, m *Staff) (operation.Actor, error) {
	group := t.staffEntry(*m).Group()
	if t.members(m.AgencyID) < firstStaff {
		t.begins(m)
		return actor, nil
	}
	if by == "" {
		return actor, operation.Refuse("staff.needs_proposer", "", operation.Args{"group": group})
	}
	proposer, err := t.byKey(by, t.tx.Now)
	if err != nil {
		return actor, err
	}
	if proposer.AgencyID != m.AgencyID {
		return actor, operation.Refuse("staff.other_group", "", operation.Args{"group": group, "own": t.staffEntry(proposer).Group()})
	}
	m.ProposedBy = proposer.ID
	return proposer.Actor(actor.Origin), nil
}

// ApproveStaff makes the key of a proposed member valid. by is the key of another member of
// the group than the one who proposed. A member who waits (StaffWait) needs no key, but time. named is the id or the name. now is the time of the
// service's clock. A refusal is an *operation.Error. After an error nothing has changed.
func ApproveStaff(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, by, named string, now time.Time) (StaffEntry, error) {
	var approved StaffEntry
	err := change(ctx, pool, keys, now, func(t *Tx) error {
		if m, err := t.staffNamed(named); err == nil && m.State() == StaffStateWaiting {
			approved, err = t.endWait(ctx, actor, m)
			return err
		}
		approver, err := t.byKey(by, now)
		if err != nil {
			return err
		}
		m, err := t.staffNamed(named)
		if err != nil {
			return err
		}
		group := t.staffEntry(m).Group()
		switch {
		case m.Invited && m.State() == StaffStateProposed:
			return operation.Refuse("staff.joins_by_invitation", "id", operation.Args{"name": m.Name})
		case m.State() != StaffStateProposed:
			return operation.Refuse("staff.not_proposed", "id", operation.Args{"name": m.Name, "state": m.State()})
		case approver.AgencyID != m.AgencyID:
			return operation.Refuse("staff.other_group", "", operation.Args{"group": group, "own": t.staffEntry(approver).Group()})
		}
		if err := ApprovesWithKey(ctx, t.tx, approver.AgencyID, now); err != nil {
			return err
		}
		return decisions.Approve(ctx, t.tx, decisions.Step{
			Decision: casework.Decision{State: casework.DecisionProposed, ProposedBy: m.ProposedBy, ProposedAt: m.CreatedAt},
			Proposer: t.member(m.ProposedBy).Person(), By: approver.Person(), Actor: approver.Actor(actor.Origin), At: now,
			Refusals: map[error]error{
				casework.ErrSamePerson: operation.Refuse("staff.second_person", "", operation.Args{"group": group}),
				casework.ErrLapsed:     operation.Refuse("staff.proposer_revoked", "id", operation.Args{"name": m.Name}),
			},
			Store: func() (operation.Entry, error) {
				if err := t.q.ApproveStaff(ctx, db.ApproveStaffParams{ID: m.ID, ApprovedBy: &approver.ID, ApprovedAt: &now}); err != nil {
					return operation.Entry{}, fmt.Errorf("approving %s: %w", m.ID, err)
				}
				_, err := t.reread(ctx, "")
				approved = t.staffEntry(t.member(m.ID))
				return staffRecord("staff.approve", approved), err
			},
		})
	})
	if err != nil {
		return StaffEntry{}, fmt.Errorf("approving a member of staff: %w", err)
	}
	return approved, nil
}

// RevokeStaff ends a member of staff and all keys of the person, permanently, and removes the
// person's address. The person's proposals lapse. One who was revoked before stays so, and changed is false. named is the
// id or the name. now is the time of the service's clock. A refusal is an *operation.Error.
// After an error nothing has changed.
func RevokeStaff(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, named string, now time.Time) (revoked StaffEntry, changed bool, err error) {
	err = change(ctx, pool, keys, now, func(t *Tx) error {
		m, err := t.staffNamed(named)
		if err != nil {
			return err
		}
		if changed = m.State() != StaffStateRevoked; !changed {
			revoked = t.staffEntry(m)
			return nil
		}
		if err := t.revoke(ctx, m); err != nil {
			return err
		}
		revoked = t.staffEntry(t.member(m.ID))
		return t.recordStaff(ctx, actor, "staff.revoke", revoked)
	})
	if err != nil {
		return StaffEntry{}, false, fmt.Errorf("revoking a member of staff: %w", err)
	}
	return revoked, changed, nil
}

// revoke ends a person, the keys, the address and what waits for the person. It reads all identities again.
func (t *Tx) revoke(ctx context.Context, m Staff) error {
	if err := t.q.RevokeStaff(ctx, db.RevokeStaffParams{ID: m.ID, RevokedAt: &t.tx.Now}); err != nil {
		return fmt.Errorf("revoking %s: %w", m.ID, err)
	}
	if err := t.q.DeleteStaffContact(ctx, m.ID); err != nil {
		return fmt.Errorf("revoking %s: %w", m.ID, err)
	}
	if err := t.withdrawInvitations(ctx, m.ID); err != nil {
		return err
	}
	if err := t.lapseChanges(ctx, m.ID); err != nil {
		return err
	}
	// Whoever carries out what people ask for on pages signs no keys. Those of a person who is revoked open nothing.
	for _, k := range t.byAge {
		if k.StaffID == m.ID && k.InForce(t.tx.Now) && t.tx.Rows().Signs("api_keys") {
			if _, err := t.end(ctx, k, 0); err != nil {
				return err
			}
		}
	}
	_, err := t.reread(ctx, "")
	return err
}

func (t *Tx) recordStaff(ctx context.Context, actor operation.Actor, action string, e StaffEntry) error {
	return operation.Record(ctx, t.tx, actor, t.tx.Now, staffRecord(action, e))
}

func staffRecord(action string, e StaffEntry) operation.Entry {
	detail := map[string]any{"group": e.Group(), "clerks": e.Known}
	if e.State() == StaffStateWaiting {
		detail["waits_until"] = stamp(e.MayBegin())
	}
	return operation.Entry{Action: action, Subject: e.ID, AgencyID: e.AgencyID, Detail: detail}
}

// byKey finds the person with a key that is valid now.
func (s *snapshot) byKey(key string, now time.Time) (Staff, error) {
	if key == "" {
		return Staff{}, operation.Refuse("staff.key_missing", "", nil)
	}
	k, err := s.find(StaffKeys, key)
	if err == nil {
		err = s.valid(k, now)
	}
	switch m := s.member(k.StaffID); {
	case err == nil:
		return m, nil
	case errors.Is(err, ErrKeyForged):
		return Staff{}, operation.Refuse(signed.CodeForged, "", operation.Args{"table": "api_keys", "key": k.ID})
	case m.Forged:
		return Staff{}, refuseForged(m)
	case m.State() == StaffStateProposed && m.ID != "":
		return Staff{}, operation.Refuse("staff.not_approved", "", operation.Args{"name": m.Name, "id": m.ID})
	case m.State() == StaffStateWaiting && m.ID != "":
		return Staff{}, operation.Refuse("staff.waits", "", operation.Args{"name": m.Name, "until": stamp(m.MayBegin())})
	case m.State() == StaffStateSuspended:
		return Staff{}, operation.Refuse("staff.suspended", "", operation.Args{"name": m.Name})
	case m.State() == StaffStateRevoked:
		return Staff{}, operation.Refuse("staff.revoked", "", operation.Args{"name": m.Name})
	}
	return Staff{}, operation.Refuse("staff.key_unknown", "", nil)
}

// member returns the person with an id, or the zero Staff.
func (s *snapshot) member(id string) Staff {
	i := slices.IndexFunc(s.staff, func(m Staff) bool { return m.ID == id })
	if i < 0 {
		return Staff{}
	}
	return s.staff[i]
}

func (s *snapshot) findStaff(name string) (Staff, bool) {
	i := slices.IndexFunc(s.staff, func(m Staff) bool { return folded(m.Name) == folded(name) })
	if i < 0 {
		return Staff{}, false
	}
	return s.staff[i], true
}

// staffNamed finds a person by id or name. The error does not repeat the text, because it
// may be a secret.
func (s *snapshot) staffNamed(named string) (Staff, error) {
	if id, ok := form.CanonicalUUID(named); ok && s.member(id).ID != "" {
		return s.member(id), nil
	}
	if m, ok := s.findStaff(named); ok {
		return m, nil
	}
	return Staff{}, operation.Refuse("staff.unknown", "id", nil)
}

// clerksOf resolves AGENCY/CODE.
func (t *Tx) clerksOf(named []string) ([]string, error) {
	out := []string{}
	for _, name := range named {
		agency, code, _ := strings.Cut(name, "/")
		c, ok := t.findClerk(agency, code)
		if !ok {
			return nil, operation.Refuse("clerk.unknown", "clerk", nil)
		}
		if ref := c.AgencyID + "/" + c.Code; !slices.Contains(out, ref) {
			out = append(out, ref)
		}
	}
	return out, nil
}

func (s *snapshot) staffEntry(m Staff) StaffEntry {
	e := StaffEntry{Staff: m, Agency: s.registry.Agencies[m.AgencyID].Slug, Known: []string{}, Contact: s.contacts[m.ID]}
	for _, ref := range m.Clerks {
		agency, code, _ := strings.Cut(ref, "/")
		e.Known = append(e.Known, s.registry.Agencies[agency].Slug+"/"+code)
	}
	return e
}

// folded returns a name without differences of case and of Unicode's spellings.
func folded(name string) string {
	return cases.Fold().String(norm.NFKC.String(strings.Join(strings.Fields(name), " ")))
}

func unlessZero(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
