package identity

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/casework"
	"quittance/internal/digests"
	"quittance/internal/form"
	"quittance/internal/identity/internal/db"
	"quittance/internal/operation"
	"quittance/internal/passkeys"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/internal/signed"
)

const (
	// InvitationLife is how long an invitation may be accepted and confirmed.
	InvitationLife = 72 * time.Hour
	// ApprovesAfter is the time from the confirmation of passkeys until they approve. The people who manage the group are
	// told at the confirmation, and can suspend the person meanwhile.
	ApprovesAfter = 24 * time.Hour
	// MaxWrongDigits is the number of wrong digits that ends an invitation.
	MaxWrongDigits = 5
	// maxPasskeyName is the greatest length of the name of a passkey.
	maxPasskeyName = 100
)

// linkPrefix begins the secret of a link, browserPrefix that of the browser that has used it.
const linkPrefix, browserPrefix = "inv_", "inb_"

// InvitedPasskey is a passkey that an invited person has made. It opens nothing before the confirmation.
type InvitedPasskey struct {
	Name, Host string
	CreatedAt  time.Time
}

// Invitation lets a person make passkeys, which another person than the inviter confirms.
type Invitation struct {
	ID, StaffID string
	// Roles are given with the confirmation, besides those that the person has.
	Roles []Role
	// InvitedBy and ConfirmedBy are ids of staff; empty for the command line.
	InvitedBy, ConfirmedBy string
	InvitedAt, EndsAt      time.Time
	AcceptedAt             time.Time // zero: the link was not used
	ConfirmedAt            time.Time // zero: not confirmed
	WithdrawnAt            time.Time // zero: not withdrawn, and fewer than MaxWrongDigits wrong digits
	Wrong                  int       // wrong digits so far
	Passkeys               []InvitedPasskey
	// IssuerAddress and Subject are who the invited person is at the identity provider of the group (iss and sub), once the person
	// has signed in there; Email is what it says beside, which is shown and never compared.
	IssuerAddress, Subject, Email string
	// Forged means that the row is not as it was signed: the invitation opens nothing.
	Forged bool

	made  []invitedRow
	token []byte // SHA-256
}

func toInvitation(r invitationRow, forged bool) Invitation {
	i := Invitation{
		ID: r.ID, StaffID: r.StaffID, InvitedBy: value(r.InvitedBy), ConfirmedBy: value(r.ConfirmedBy), InvitedAt: r.InvitedAt.UTC(), EndsAt: r.EndsAt.UTC(),
		AcceptedAt: value(r.AcceptedAt), ConfirmedAt: value(r.ConfirmedAt), WithdrawnAt: value(r.WithdrawnAt), Wrong: int(r.Wrong), Forged: forged,
		IssuerAddress: value(r.Issuer), Subject: value(r.Subject), Email: value(r.Email),
		made: r.Passkeys, token: r.TokenHash,
	}
	for _, role := range r.Roles {
		i.Roles = append(i.Roles, Role(role))
	}
	for _, p := range r.Passkeys {
		i.Passkeys = append(i.Passkeys, InvitedPasskey{Name: p.Name, Host: p.Host, CreatedAt: p.CreatedAt})
	}
	return i
}

// InvitationState is the state of an invitation.
type InvitationState string

// The states of invitations.
const (
	InvitationSent      InvitationState = "sent"      // the link was not used
	InvitationAccepted  InvitationState = "accepted"  // the person makes passkeys
	InvitationReady     InvitationState = "ready"     // waits for the digits
	InvitationConfirmed InvitationState = "confirmed" // the passkeys are the person's
	InvitationWithdrawn InvitationState = "withdrawn" // by a person, or by wrong digits
	InvitationEnded     InvitationState = "ended"     // after InvitationLife
)

// State returns the state at a time.
func (i Invitation) State(now time.Time) InvitationState {
	switch {
	case !i.ConfirmedAt.IsZero():
		return InvitationConfirmed
	case !i.WithdrawnAt.IsZero():
		return InvitationWithdrawn
	case !now.Before(i.EndsAt):
		return InvitationEnded
	case len(i.Passkeys) >= MinPasskeys:
		return InvitationReady
	case !i.AcceptedAt.IsZero():
		return InvitationAccepted
	}
	return InvitationSent
}

// Open reports whether the invitation can still be accepted or confirmed at a time.
func (i Invitation) Open(now time.Time) bool {
	switch i.State(now) {
	case InvitationSent, InvitationAccepted, InvitationReady:
		return !i.Forged
	case InvitationConfirmed, InvitationWithdrawn, InvitationEnded:
	}
	return false
}

// Digits are the eight digits that the invited person tells whoever confirms, by voice: a hash of the invitation, of both
// passkeys, and of who the person is at the identity provider of the group. They are empty before there are two passkeys.
func (i Invitation) Digits() string {
	if len(i.made) < MinPasskeys {
		return ""
	}
	hashes := make([][]byte, len(i.made))
	for n, p := range i.made {
		hashes[n] = p.SPKIHash
	}
	slices.SortFunc(hashes, bytes.Compare)
	if i.Subject != "" {
		hashes = append(hashes, []byte(i.IssuerAddress), []byte(i.Subject))
	}
	said := []byte("quittance invitation v1\n" + i.ID)
	for _, h := range hashes {
		said = append(binary.BigEndian.AppendUint32(said, uint32(len(h))), h...) //nolint:gosec // a hash, or a line
	}
	sum := sha256.Sum256(said)
	return fmt.Sprintf("%08d", binary.BigEndian.Uint64(sum[:8])%100_000_000)
}

// InvitationEntry is an invitation as people see it.
type InvitationEntry struct {
	Invitation
	Of StaffEntry
	// Issuer is the identity provider of the group; the zero value for none. A list does not have it.
	Issuer Issuer
}

// AtIssuer reports whether the invited person has to sign in at the identity provider before the passkeys.
func (i InvitationEntry) AtIssuer() bool {
	return i.Issuer.ID != "" && (i.Subject == "" || i.IssuerAddress != i.Issuer.Address)
}

// atIssuer refuses what the invited person does after the sign-in at the identity provider.
func (i InvitationEntry) atIssuer() error {
	switch {
	case i.Issuer.Forged:
		return operation.Refuse(signed.CodeForged, "", operation.Args{"table": "staff_issuers", "key": i.Issuer.ID})
	case i.AtIssuer():
		return operation.Refuse("invitation.issuer_first", "id", operation.Args{"name": i.Of.Name, "issuer": i.Issuer.Address})
	}
	return nil
}

// Statement is what a person signs to confirm the invitation with digits as the person typed them.
func (i InvitationEntry) Statement(digits string) Statement {
	content := map[string]string{
		"invitation": i.ID, "person": i.StaffID, "name": i.Of.Name, "number": i.Of.Number, "agency": i.Of.AgencyID, "roles": joined(i.Roles), "digits": typed(digits),
	}
	if i.Subject != "" {
		content["issuer"], content["subject"] = i.IssuerAddress, i.Subject
	}
	for n, p := range i.made {
		content[fmt.Sprintf("passkey_%d", n+1)] = hex.EncodeToString(p.SPKIHash)
	}
	return Statement{Kind: "staff_invitation", Subject: i.ID, Digest: hex.EncodeToString(casework.Digest(content)), Verdict: "confirm", AgencyID: i.Of.AgencyID}
}

// typed returns digits without the spaces that people write between them.
func typed(digits string) string { return strings.Join(strings.Fields(digits), "") }

// InvitationRequest asks for an invitation.
type InvitationRequest struct {
	// Known is a person by id or name, who needs passkeys; empty for a new person.
	Known string
	// Lost says that the known person has lost the passkeys. They end when the invitation is confirmed.
	Lost bool
	// Person is the new person. Of a known one only the Roles count, which are given besides those that the person has.
	Person StaffRequest
}

// NewInvitation is an invitation with the secret of its link. The secret is not stored: show it once.
type NewInvitation struct {
	InvitationEntry
	Secret secret.Text
}

// Statement is what a person signs to invite m, who is known or new.
func (r InvitationRequest) Statement(m Staff) Statement {
	known := ""
	if r.Known != "" {
		known = m.ID
	}
	return Statement{Kind: "staff_invitation", Subject: cmp.Or(known, "new"), Verdict: "invite", AgencyID: m.AgencyID, Digest: hex.EncodeToString(casework.Digest(map[string]string{
		"person": known, "name": m.Name, "number": m.Number, "agency": m.AgencyID, "roles": joined(union(r.Person.Roles, nil)), "has": joined(m.Roles), "lost": strconv.FormatBool(r.Lost),
	}))}
}

// InviteStaff invites a person to make two passkeys. A new person is proposed until the confirmation; a known one stays as
// the person is. While the group has fewer than two people who can decide about its people on a page, the command line
// invites, and for an agency also a security officer of the service; after that a person of the group who manages people
// does, and signs InvitationRequest.Statement. now is the time of the service's clock. A refusal is an *operation.Error with
// the field id, or one of AddStaff. After an error nothing has changed.
func InviteStaff(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, by By, req InvitationRequest, now time.Time) (NewInvitation, error) {
	link := secret.Mint(linkPrefix)
	var made NewInvitation
	err := change(ctx, pool, keys, now, func(t *Tx) error {
		entry, err := t.invite(ctx, by, req, uuid.Must(uuid.NewV7()).String(), hashOf(link))
		made = NewInvitation{entry, link}
		return err
	})
	if err != nil {
		return NewInvitation{}, fmt.Errorf("inviting a member of staff: %w", err)
	}
	return made, nil
}

// invite makes an invitation with an id, to a link that is known by its hash.
func (t *Tx) invite(ctx context.Context, by By, req InvitationRequest, id string, link []byte) (entry InvitationEntry, err error) {
	m, known, err := t.invited(req)
	if err != nil {
		return entry, err
	}
	me, actor, err := t.acts(by, m.AgencyID)
	if err != nil {
		return entry, err
	}
	var over []Invitation
	if known {
		if over, err = t.invitationsOver(ctx, m); err != nil {
			return entry, err
		}
	}
	if err = by.signed(ctx, t, req.Statement(m)); err != nil {
		return entry, err
	}
	for _, i := range over {
		if err := t.withdraw(ctx, i); err != nil {
			return entry, err
		}
	}
	if known {
		err = t.q.ProposeInvited(ctx, db.ProposeInvitedParams{ID: m.ID, ProposedBy: given(me.ID)})
	} else {
		m.ProposedBy, m.Invited = me.ID, true
		err = t.insertStaff(ctx, m, req.Person)
	}
	if err != nil {
		return entry, err
	}
	row := db.InsertInvitationParams{
		ID: id, StaffID: m.ID, Roles: texts(union(req.Person.Roles, nil)), TokenHash: link,
		InvitedBy: given(me.ID), InvitedAt: t.tx.Now, EndsAt: t.tx.Now.Add(InvitationLife),
	}
	if err := t.q.InsertInvitation(ctx, row); err != nil {
		return entry, fmt.Errorf("storing the invitation: %w", err)
	}
	if entry, err = t.invitation(ctx, row.ID); err != nil {
		return entry, err
	}
	return entry, t.recordInvitation(ctx, actor, "staff.invite", entry)
}

// invited returns the person whom a request invites.
func (t *Tx) invited(req InvitationRequest) (m Staff, known bool, err error) {
	if req.Known == "" {
		m, err = t.asked(req.Person)
		return m, false, err
	}
	if m, err = t.staffNamed(req.Known); err != nil {
		return m, true, err
	}
	switch {
	case m.Forged:
		return m, true, refuseForged(m)
	case !m.mayJoin():
		return m, true, operation.Refuse("invitation.not_active", "id", operation.Args{"name": m.Name, "state": m.State()})
	case len(m.InForcePasskeys()) >= MinPasskeys && !req.Lost:
		return m, true, operation.Refuse("invitation.has_passkeys", "id", operation.Args{"name": m.Name})
	}
	return m, true, t.checkRoles(m.AgencyID, union(m.Roles, req.Person.Roles))
}

// mayJoin reports whether the person may have an invitation: one who joins by it, or one who lacks passkeys. A suspension stays
// until somebody lifts it.
func (s Staff) mayJoin() bool {
	switch s.State() {
	case StaffStateActive, StaffStateSuspended:
		return !s.Forged
	case StaffStateProposed:
		return s.Invited && !s.Forged
	case StaffStateWaiting, StaffStateRevoked:
	}
	return false
}

// invitationsOver returns the invitations of a person that are stored as open, and whose time is over. An open one is refused.
func (t *Tx) invitationsOver(ctx context.Context, m Staff) (over []Invitation, err error) {
	list, err := t.invitations(ctx)
	if err != nil {
		return nil, err
	}
	for _, i := range list {
		if i.StaffID != m.ID || !i.ConfirmedAt.IsZero() || !i.WithdrawnAt.IsZero() {
			continue
		}
		if i.Open(t.tx.Now) {
			return nil, operation.Refuse("invitation.open", "id", operation.Args{"name": m.Name, "id": i.ID, "until": stamp(i.EndsAt)})
		}
		over = append(over, i)
	}
	return over, nil
}

func (t *Tx) withdraw(ctx context.Context, i Invitation) error {
	if err := t.q.WithdrawInvitation(ctx, db.WithdrawInvitationParams{ID: i.ID, WithdrawnAt: &t.tx.Now}); err != nil {
		return fmt.Errorf("withdrawing invitation %s: %w", i.ID, err)
	}
	return nil
}

// withdrawInvitations ends the open invitations of a person. A forged one opens nothing, and stays.
func (t *Tx) withdrawInvitations(ctx context.Context, staffID string) error {
	list, err := t.invitations(ctx)
	if err != nil {
		return err
	}
	for _, i := range list {
		if i.StaffID == staffID && i.ConfirmedAt.IsZero() && i.WithdrawnAt.IsZero() && !i.Forged {
			if err := t.withdraw(ctx, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// invitations reads all invitations, the oldest first.
func (t *Tx) invitations(ctx context.Context) ([]Invitation, error) {
	return readInvitations(ctx, t.tx, nil, t.tx.Forged)
}

func readInvitations(ctx context.Context, tx pgx.Tx, v *signed.Verifier, forged func(signed.Row) bool) (out []Invitation, err error) {
	err = signed.Read(ctx, tx, v, "staff_invitations", func(r invitationRow, row signed.Row) { out = append(out, toInvitation(r, forged(row))) })
	return out, err
}

// invitation finds an invitation by its id.
func (t *Tx) invitation(ctx context.Context, id string) (InvitationEntry, error) {
	list, err := t.invitations(ctx)
	if err != nil {
		return InvitationEntry{}, err
	}
	parsed, _ := form.CanonicalUUID(id)
	n := slices.IndexFunc(list, func(i Invitation) bool { return i.ID == parsed })
	if n < 0 {
		return InvitationEntry{}, operation.Refuse("invitation.unknown", "id", nil)
	}
	if list[n].Forged {
		return InvitationEntry{}, operation.Refuse(signed.CodeForged, "", operation.Args{"table": "staff_invitations", "key": parsed})
	}
	return t.invitationEntry(ctx, list[n])
}

func (t *Tx) invitationEntry(ctx context.Context, i Invitation) (InvitationEntry, error) {
	e := InvitationEntry{Invitation: i, Of: t.staffEntry(t.member(i.StaffID))}
	var err error
	e.Issuer, err = issuerOf(ctx, t.tx, nil, t.tx.Forged, e.Of.AgencyID)
	return e, err
}

// ListInvitations lists all invitations, the oldest first. With a verifier it says which are forged; nil lists the rows as
// they are.
func ListInvitations(ctx context.Context, pool *pgxpool.Pool, v *signed.Verifier) (out []InvitationEntry, err error) {
	err = registry.View(ctx, pool, "", func(tx pgx.Tx, reg *registry.Snapshot) error {
		forged := func(r signed.Row) bool { return v != nil && !r.Verified }
		s, err := load(ctx, tx, reg, v, forged)
		if err != nil {
			return err
		}
		list, err := readInvitations(ctx, tx, v, forged)
		for _, i := range list {
			out = append(out, InvitationEntry{Invitation: i, Of: s.staffEntry(s.member(i.StaffID))})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing invitations: %w", err)
	}
	return out, nil
}

// InvitationOf returns the open invitation of a secret: that of the link, or that of the browser that has used it. It reads
// that row and the person alone, as anybody may ask. A refusal is an *operation.Error with the code invitation.link_over.
func InvitationOf(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, s secret.Text, now time.Time) (entry InvitationEntry, err error) {
	err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		var found []InvitationEntry
		if err := signed.Find(ctx, tx, signed.NewVerifier(keys), func(r invitationRow, row signed.Row) {
			found = append(found, InvitationEntry{Invitation: toInvitation(r, keys != nil && !row.Verified)})
		}, "staff_invitations", "token_hash", hashOf(s)); err != nil {
			return err
		}
		for n, i := range found {
			staff, err := StaffOf(ctx, tx, keys, i.StaffID)
			if err != nil {
				return err
			}
			found[n].Of.Staff = staff[i.StaffID]
			if found[n].Of.Agency, err = db.New(tx).AgencySlug(ctx, given(staff[i.StaffID].AgencyID)); err != nil {
				return fmt.Errorf("reading the agency of an invitation: %w", err)
			}
			forged := func(r signed.Row) bool { return keys != nil && !r.Verified }
			if found[n].Issuer, err = issuerOf(ctx, tx, signed.NewVerifier(keys), forged, found[n].Of.AgencyID); err != nil {
				return err
			}
		}
		entry, err = bySecret(found, s, now)
		return err
	})
	return entry, err
}

// bySecret finds the open invitation of a secret. Whoever has a secret learns nothing about why it opens nothing.
func bySecret(list []InvitationEntry, s secret.Text, now time.Time) (InvitationEntry, error) {
	hash := hashOf(s)
	for _, i := range list {
		if bytes.Equal(i.token, hash) && i.Open(now) && i.Of.mayJoin() {
			return i, nil
		}
	}
	return InvitationEntry{}, operation.Refuse("invitation.link_over", "", nil)
}

// open is bySecret within a transaction.
func (t *Tx) open(ctx context.Context, s secret.Text) (InvitationEntry, error) {
	list, err := t.invitations(ctx)
	if err != nil {
		return InvitationEntry{}, err
	}
	entries := make([]InvitationEntry, len(list))
	for n, i := range list {
		entries[n] = InvitationEntry{Invitation: i, Of: t.staffEntry(t.member(i.StaffID))}
	}
	found, err := bySecret(entries, s, t.tx.Now)
	if err != nil {
		return found, err
	}
	return t.invitationEntry(ctx, found.Invitation)
}

// AcceptInvitation uses a link up, and returns the secret with which the browser goes on. origin is the address of the
// browser. A refusal is an *operation.Error with the code invitation.link_over.
func AcceptInvitation(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, link secret.Text, origin string, now time.Time) (entry InvitationEntry, browser secret.Text, err error) {
	if _, err := InvitationOf(ctx, pool, keys, link, now); err != nil { // before the registry is locked
		return InvitationEntry{}, secret.Text{}, err
	}
	err = change(ctx, pool, keys, now, func(t *Tx) error {
		i, err := t.open(ctx, link)
		if err != nil {
			return err
		}
		if !i.AcceptedAt.IsZero() { // the secret is that of a browser
			return operation.Refuse("invitation.link_over", "", nil)
		}
		browser = secret.Mint(browserPrefix)
		if err := t.q.AcceptInvitation(ctx, db.AcceptInvitationParams{ID: i.ID, TokenHash: hashOf(browser), AcceptedAt: &now}); err != nil {
			return fmt.Errorf("accepting invitation %s: %w", i.ID, err)
		}
		if entry, err = t.invitation(ctx, i.ID); err != nil {
			return err
		}
		return t.recordInvitation(ctx, i.Of.Actor(origin), "staff.invitation_accept", entry)
	})
	if err != nil {
		return InvitationEntry{}, secret.Text{}, fmt.Errorf("accepting an invitation: %w", err)
	}
	return entry, browser, nil
}

// BeginInvitedPasskey returns the options with which the browser of an accepted invitation makes a passkey
// (PublicKeyCredentialCreationOptionsJSON, below publicKey). A refusal is an *operation.Error: invitation.link_over,
// invitation.issuer_first, invitation.passkeys_made.
func BeginInvitedPasskey(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, party *passkeys.Party, browser secret.Text, now time.Time) (json.RawMessage, error) {
	i, err := InvitationOf(ctx, pool, keys, browser, now)
	if err != nil {
		return nil, err
	}
	owner, err := i.owner()
	if err != nil {
		return nil, err
	}
	options, challenge, err := party.BeginRegistration(owner)
	if err == nil {
		err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			return passkeys.Keep(ctx, tx, browser, passkeys.PurposeRegister, challenge, now)
		})
	}
	if err != nil {
		return nil, fmt.Errorf("beginning to make a passkey: %w", err)
	}
	return options, nil
}

// owner is the invited person as one who makes a passkey.
func (i InvitationEntry) owner() (passkeys.Owner, error) {
	switch {
	case i.AcceptedAt.IsZero():
		return passkeys.Owner{}, operation.Refuse("invitation.link_over", "", nil)
	case len(i.made) >= MinPasskeys:
		return passkeys.Owner{}, operation.Refuse("invitation.passkeys_made", "", nil)
	}
	if err := i.atIssuer(); err != nil {
		return passkeys.Owner{}, err
	}
	id, err := uuid.Parse(i.StaffID)
	o := passkeys.Owner{ID: id, Name: i.Of.Name}
	for _, p := range i.made { // another authenticator makes the second
		o.Credentials = append(o.Credentials, p.Credential)
	}
	return o, err
}

// AddInvitedPasskey adds the passkey that the browser of an invitation has made (RegistrationResponseJSON). name is what
// the person calls it. A refusal is an *operation.Error: invitation.link_over, invitation.passkeys_made, passkey.refused,
// passkey.known, or passkey.name_malformed with the field name.
func AddInvitedPasskey(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, party *passkeys.Party, browser secret.Text, name string, response []byte, origin string, now time.Time) (entry InvitationEntry, err error) {
	name = strings.Join(strings.Fields(name), " ")
	if !form.IsLine(name, maxPasskeyName) {
		return entry, operation.Refuse("passkey.name_malformed", "name", operation.Args{"most": maxPasskeyName})
	}
	challenge, err := passkeys.Take(ctx, pool, browser, passkeys.PurposeRegister, now)
	if err != nil {
		return entry, refusedPasskey(err)
	}
	err = change(ctx, pool, keys, now, func(t *Tx) error {
		i, err := t.open(ctx, browser)
		if err != nil {
			return err
		}
		owner, err := i.owner()
		if err != nil {
			return err
		}
		credential, err := party.Register(owner, challenge, response)
		if err != nil {
			return refusedPasskey(err)
		}
		public, err := credential.SPKI()
		if err != nil {
			return operation.Refuse("passkey.refused", "", nil)
		}
		sum := sha256.Sum256(public)
		if known, err := t.knows(ctx, credential.ID, sum[:]); err != nil || known {
			return cmp.Or(err, operation.Refuse("passkey.known", "", nil))
		}
		text, err := json.Marshal(append(slices.Clone(i.made), invitedRow{Name: name, Host: party.Host(), SPKIHash: sum[:], Credential: credential, CreatedAt: now}))
		if err != nil {
			return err
		}
		if err := t.q.SetInvitedPasskeys(ctx, db.SetInvitedPasskeysParams{ID: i.ID, Passkeys: text}); err != nil {
			return fmt.Errorf("storing a passkey of invitation %s: %w", i.ID, err)
		}
		if entry, err = t.invitation(ctx, i.ID); err != nil {
			return err
		}
		return t.recordInvitation(ctx, i.Of.Actor(origin), "staff.invitation_passkey", entry)
	})
	if err != nil {
		return InvitationEntry{}, fmt.Errorf("adding a passkey of an invited person: %w", err)
	}
	return entry, nil
}

// refusedPasskey returns what the person is told when a passkey is not proved.
func refusedPasskey(err error) error {
	if errors.Is(err, passkeys.ErrRefused) {
		return operation.Refuse("passkey.refused", "", nil)
	}
	return err
}

// knows reports whether a passkey is of somebody: in force, removed, or made for an invitation that is not over.
func (t *Tx) knows(ctx context.Context, credentialID, spki []byte) (bool, error) {
	for _, m := range t.staff {
		for _, p := range m.Passkeys {
			if bytes.Equal(p.SPKIHash, spki) || bytes.Equal(p.Credential.ID, credentialID) {
				return true, nil
			}
		}
	}
	list, err := t.invitations(ctx)
	for _, i := range list {
		for _, p := range i.made {
			if i.Open(t.tx.Now) && (bytes.Equal(p.SPKIHash, spki) || bytes.Equal(p.Credential.ID, credentialID)) {
				return true, err
			}
		}
	}
	return false, err
}

// ConfirmInvitation makes the passkeys of an invited person valid, and gives the roles. by is another person than the
// inviter and the invited one, who manages people of the group, has heard the digits from the person, and signs
// InvitationEntry.Statement with them. On the command line it is allowed as InviteStaff is. The passkeys approve after
// ApprovesAfter; earlier ones of the person end. The person and the people who manage the group are told. After
// MaxWrongDigits the invitation is withdrawn. now is the time of the service's clock. A refusal is an *operation.Error with
// the field id or digits; after any error but invitation.digits_wrong nothing has changed.
func ConfirmInvitation(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, by By, id, digits string, now time.Time) (StaffEntry, error) {
	var confirmed StaffEntry
	var wrong error // which is counted, so that the transaction commits
	err := change(ctx, pool, keys, now, func(t *Tx) (err error) {
		confirmed, wrong, err = t.confirmInvitation(ctx, by, id, digits)
		return err
	})
	if err = cmp.Or(err, wrong); err != nil {
		return StaffEntry{}, fmt.Errorf("confirming an invitation: %w", err)
	}
	return confirmed, nil
}

// confirmInvitation is ConfirmInvitation within a transaction. wrong is the refusal of wrong digits, which are counted.
func (t *Tx) confirmInvitation(ctx context.Context, by By, id, digits string) (confirmed StaffEntry, wrong, err error) {
	i, err := t.invitation(ctx, id)
	if err != nil {
		return confirmed, nil, err
	}
	me, actor, err := t.acts(by, i.Of.AgencyID)
	if err != nil {
		return confirmed, nil, err
	}
	if err := t.mayConfirm(i, me, by); err != nil {
		return confirmed, nil, err
	}
	if err := by.signed(ctx, t, i.Statement(digits)); err != nil {
		return confirmed, nil, err
	}
	if subtle.ConstantTimeCompare([]byte(typed(digits)), []byte(i.Digits())) != 1 {
		wrong, err = t.countWrong(ctx, actor, i)
		return confirmed, wrong, err
	}
	if confirmed, err = t.confirm(ctx, i, me); err != nil {
		return confirmed, nil, err
	}
	entry, err := t.invitation(ctx, i.ID)
	if err != nil {
		return confirmed, nil, err
	}
	return confirmed, nil, t.recordInvitation(ctx, actor, "staff.confirm", entry)
}

// mayConfirm refuses a confirmation that cannot be, whatever the digits are.
func (t *Tx) mayConfirm(i InvitationEntry, me Staff, by By) error {
	args := operation.Args{"name": i.Of.Name, "state": i.State(t.tx.Now)}
	inviter := t.member(i.InvitedBy)
	switch {
	case !i.Open(t.tx.Now):
		return operation.Refuse("invitation.over", "id", args)
	case i.State(t.tx.Now) != InvitationReady:
		return operation.Refuse("invitation.not_ready", "id", args)
	case i.Of.Forged:
		return refuseForged(i.Of.Staff)
	case !i.Of.mayJoin():
		return operation.Refuse("invitation.not_active", "id", operation.Args{"name": i.Of.Name, "state": i.Of.State()})
	case i.InvitedBy != "" && (!inviter.InForce() || !inviter.May(MayManagePeople)):
		return operation.Refuse("invitation.inviter_gone", "id", args)
	case by.Signer != nil && me.ID == i.InvitedBy:
		return operation.Refuse("invitation.second_person", "id", args)
	case by.Signer != nil && me.ID == i.StaffID:
		return operation.Refuse("invitation.own", "id", args)
	}
	return i.atIssuer()
}

// countWrong counts wrong digits, and returns what the person is told.
func (t *Tx) countWrong(ctx context.Context, actor operation.Actor, i InvitationEntry) (refusal, err error) {
	if err := t.q.CountWrongDigits(ctx, i.ID); err != nil {
		return nil, fmt.Errorf("counting wrong digits: %w", err)
	}
	left := MaxWrongDigits - i.Wrong - 1
	if left <= 0 {
		if err := t.withdraw(ctx, i.Invitation); err != nil {
			return nil, err
		}
	}
	entry, err := t.invitation(ctx, i.ID)
	if err != nil {
		return nil, err
	}
	return operation.Refuse("invitation.digits_wrong", "digits", operation.Args{"left": left}), t.recordInvitation(ctx, actor, "staff.confirm_wrong_digits", entry)
}

// confirm stores what a confirmation gives, and tells the people who manage the group.
func (t *Tx) confirm(ctx context.Context, i InvitationEntry, me Staff) (StaffEntry, error) {
	m, now := i.Of.Staff, t.tx.Now
	roles := union(m.Roles, i.Roles)
	if err := t.checkRoles(m.AgencyID, roles); err != nil {
		return StaffEntry{}, err
	}
	for _, p := range m.Passkeys {
		// A row that somebody has edited ends, too, or the confirmation is refused: put back later, it would open again.
		if p.RemovedAt.IsZero() {
			if err := t.q.RemoveStaffPasskey(ctx, db.RemoveStaffPasskeyParams{ID: p.ID, RemovedAt: &now}); err != nil {
				return StaffEntry{}, fmt.Errorf("removing passkey %s: %w", p.ID, err)
			}
		}
	}
	for _, p := range i.made {
		count := p.Credential.Authenticator.SignCount
		p.Credential.Authenticator.SignCount = 0
		text, err := json.Marshal(p.Credential)
		if err != nil {
			return StaffEntry{}, err
		}
		if err := t.q.InsertStaffPasskey(ctx, db.InsertStaffPasskeyParams{
			ID: uuid.Must(uuid.NewV7()).String(), StaffID: m.ID, Host: p.Host, Name: p.Name, CredentialID: p.Credential.ID, SpkiHash: p.SPKIHash, Credential: text,
			CreatedAt: now, ApprovesFrom: now.Add(ApprovesAfter), SignCount: int64(count),
		}); err != nil {
			return StaffEntry{}, fmt.Errorf("storing a passkey: %w", err)
		}
	}
	if i.Subject != "" && i.Issuer.ID != "" { // it may have been removed since: nobody would be asked for the subject
		if err := t.bind(ctx, m, i.IssuerAddress, i.Subject); err != nil {
			return StaffEntry{}, err
		}
	}
	if m.State() == StaffStateProposed {
		if err := t.q.ApproveStaff(ctx, db.ApproveStaffParams{ID: m.ID, ApprovedBy: given(me.ID), ApprovedAt: &now}); err != nil {
			return StaffEntry{}, fmt.Errorf("approving %s: %w", m.ID, err)
		}
	}
	if err := t.q.ConfirmInvitation(ctx, db.ConfirmInvitationParams{ID: i.ID, ConfirmedBy: given(me.ID), ConfirmedAt: &now}); err != nil {
		return StaffEntry{}, fmt.Errorf("confirming invitation %s: %w", i.ID, err)
	}
	if err := t.setRoles(ctx, m, roles); err != nil {
		return StaffEntry{}, err
	}
	e := t.staffEntry(t.member(m.ID))
	return e, t.tellManagers(ctx, e)
}

// tellManagers tells that a person has passkeys now: the person, and the people who manage the group and the service's. Those
// who are suspended are told, too: whoever runs the installation could suspend all others before.
func (t *Tx) tellManagers(ctx context.Context, e StaffEntry) error {
	var told []string
	for _, s := range t.staff {
		manages := (s.State() == StaffStateActive || s.State() == StaffStateSuspended) && s.May(MayManagePeople) && s.ActsFor(e.AgencyID)
		if !s.Forged && (s.ID == e.ID || manages) && t.contacts[s.ID].Email != "" {
			told = append(told, s.ID)
		}
	}
	return digests.TellAtOnce(ctx, t.tx, told, digests.Item{Topic: digests.TopicPasskeys, Subject: e.ID, Detail: e.Group(), Since: t.tx.Now}, t.tx.Now)
}

// WithdrawInvitation ends an open invitation. The command line always may; on a page a person who manages people of the group
// does. changed is false for one that is over. A refusal is an *operation.Error with the field id. After an error nothing
// has changed.
func WithdrawInvitation(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, by By, id string, now time.Time) (entry InvitationEntry, changed bool, err error) {
	err = change(ctx, pool, keys, now, func(t *Tx) error {
		entry, changed, err = t.withdrawInvitation(ctx, by, id)
		return err
	})
	if err != nil {
		return InvitationEntry{}, false, fmt.Errorf("withdrawing an invitation: %w", err)
	}
	return entry, changed, nil
}

func (t *Tx) withdrawInvitation(ctx context.Context, by By, id string) (entry InvitationEntry, changed bool, err error) {
	if entry, err = t.invitation(ctx, id); err != nil {
		return entry, false, err
	}
	actor := by.Actor
	if by.Signer != nil {
		if _, actor, err = t.acts(by, entry.Of.AgencyID); err != nil {
			return entry, false, err
		}
	}
	if !entry.Open(t.tx.Now) {
		return entry, false, nil
	}
	if err := t.withdraw(ctx, entry.Invitation); err != nil {
		return entry, false, err
	}
	if entry, err = t.invitation(ctx, id); err != nil {
		return entry, false, err
	}
	return entry, true, t.recordInvitation(ctx, actor, "staff.invitation_withdraw", entry)
}

// recordInvitation records an operation on an invitation, without its secret and its digits.
func (t *Tx) recordInvitation(ctx context.Context, actor operation.Actor, action string, i InvitationEntry) error {
	return operation.Record(ctx, t.tx, actor, t.tx.Now, operation.Entry{Action: action, Subject: i.StaffID, AgencyID: i.Of.AgencyID, Detail: map[string]any{
		"invitation": i.ID, "group": i.Of.Group(), "roles": append([]Role{}, i.Roles...), "passkeys": len(i.made), "state": i.State(t.tx.Now), "wrong_digits": i.Wrong,
	}})
}

// hashOf is how the secret of a link, a browser or a session is stored.
func hashOf(s secret.Text) []byte {
	digest := registry.DigestOf(s)
	return digest[:]
}

func texts(roles []Role) []string {
	out := make([]string, len(roles))
	for i, r := range roles {
		out[i] = string(r)
	}
	return out
}
