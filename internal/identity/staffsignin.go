package identity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/identity/internal/db"
	"quittance/internal/openid"
	"quittance/internal/operation"
	"quittance/internal/passkeys"
	"quittance/internal/secret"
	"quittance/internal/signed"
)

// The session of a member of staff ends StaffSessionLifetime after the sign-in, and StaffSessionIdle after the last
// request of the person. What a page asks by itself prolongs nothing.
const (
	StaffSessionLifetime = 8 * time.Hour
	StaffSessionIdle     = 15 * time.Minute
)

// MaxStaffSessions is the number of sessions of a person. A further one ends the oldest.
const MaxStaffSessions = 3

// LabelStaffSignIns is of the MACs of sessions of staff, which the role office writes and reads.
const LabelStaffSignIns = "staff sign-ins"

// ErrStaffSessionEnded says that a session of staff is unknown or has ended: it is too old, the person signed out or
// may not act any more, or the passkey was removed.
var ErrStaffSessionEnded = fmt.Errorf("%w: the session has ended", ErrUnauthorized)

// DeskConfig configures a Desk. All fields but Loopback are required.
type DeskConfig struct {
	Pool *pgxpool.Pool
	// Keys prove sessions (LabelStaffSignIns) and verify the rows of people.
	Keys *secret.Keys
	// URL is where browsers reach the pages of staff. Its host is what passkeys are bound to (RP id).
	URL string
	Log *slog.Logger
	// Now returns the time of the service's clock in UTC.
	Now func() time.Time
	// Loopback allows identity providers on this machine, in developer mode.
	Loopback bool
}

// Desk signs members of staff in with their passkeys, and at the identity provider of their group, and verifies what a passkey
// has signed. Safe for concurrent use.
type Desk struct {
	cfg     DeskConfig
	party   *passkeys.Party
	macs    *secret.MACs
	issuers *openid.Client
}

// OpenDesk makes the Desk of a host.
func OpenDesk(cfg DeskConfig) (*Desk, error) {
	if cfg.Pool == nil || cfg.Keys == nil || cfg.URL == "" || cfg.Log == nil || cfg.Now == nil {
		return nil, errors.New("opening the staff desk: Pool, Keys, URL, Log and Now are required")
	}
	party, err := passkeys.New(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("opening the staff desk: %w", err)
	}
	macs, err := cfg.Keys.MACs(LabelStaffSignIns)
	if err != nil {
		return nil, fmt.Errorf("opening the staff desk: %w", err)
	}
	return &Desk{cfg, party, macs, openid.New(openid.Config{Loopback: cfg.Loopback})}, nil
}

// Available reports whether browsers allow passkeys at the address of the pages.
func (d *Desk) Available() bool { return d.party.Available() }

// Party makes and verifies the passkeys of the pages' host.
func (d *Desk) Party() *passkeys.Party { return d.party }

// BeginSignIn returns the options with which a browser proves a passkey (PublicKeyCredentialRequestOptionsJSON, below
// publicKey). They name no passkey. browser is a secret of the browser alone.
func (d *Desk) BeginSignIn(ctx context.Context, browser secret.Text) (json.RawMessage, error) {
	options, challenge, err := d.party.BeginSignIn()
	if err == nil {
		err = pgx.BeginFunc(ctx, d.cfg.Pool, func(tx pgx.Tx) error {
			return passkeys.Keep(ctx, tx, browser, passkeys.PurposeSignIn, challenge, d.cfg.Now().UTC())
		})
	}
	if err != nil {
		return nil, fmt.Errorf("beginning a sign-in of staff: %w", err)
	}
	return options, nil
}

// SignedIn is where the proof of a passkey leads.
type SignedIn struct {
	Who Staff
	// Session is the session that has begun; empty while the identity provider of the group has to answer first.
	Session secret.Text
	// Turn is the secret with which the browser goes to the identity provider; empty with a session.
	Turn secret.Text
}

// SignIn takes the passkey that a browser has proved (AuthenticationResponseJSON). It begins a session of the person, or, when the
// group has an identity provider, a visit there (Depart, Arrive). next is the address of this site to which the visit leads; origin is
// the address of the browser, for the audit table. Refusals are *operation.Error: staff.passkey_refused, and for a person who has
// proved the passkey staff.suspended, staff.revoked, staff.not_approved, staff.waits, issuer.unbound or issuer.gone.
func (d *Desk) SignIn(ctx context.Context, browser secret.Text, response []byte, next, origin string) (in SignedIn, err error) {
	now := d.cfg.Now().UTC()
	refused := operation.Refuse("staff.passkey_refused", "", nil)
	answer, err := passkeys.ParseAssertion(response)
	// The challenge of a decision is longer, and its answer is stored: nobody signs in with one that somebody has copied.
	if err != nil || len(answer.Challenge()) != passkeys.SignInChallenge {
		return in, refused
	}
	challenge, err := passkeys.Take(ctx, d.cfg.Pool, browser, passkeys.PurposeSignIn, now)
	if errors.Is(err, passkeys.ErrRefused) {
		return in, refused
	}
	if err != nil {
		return in, fmt.Errorf("signing staff in: %w", err)
	}
	err = pgx.BeginFunc(ctx, d.cfg.Pool, func(tx pgx.Tx) error {
		key, err := d.passkey(ctx, tx, answer.CredentialID())
		if err != nil {
			return err
		}
		staff, err := LockStaff(ctx, tx, d.cfg.Keys, key.StaffID)
		if err != nil {
			return err
		}
		in.Who = staff[key.StaffID]
		owner, err := in.Who.owner(key)
		if err != nil || key.ID == "" || !key.InForce() || key.Host != d.party.Host() {
			return refused
		}
		proven, _, err := d.party.Verify(owner, challenge, answer)
		if err != nil {
			return refused
		}
		if err := in.Who.refusedSignIn(); err != nil {
			return err
		}
		if err := d.used(ctx, tx, key.ID, proven, now); err != nil {
			return err
		}
		issuer, away, err := d.issuerOf(ctx, tx, in.Who, now)
		if err != nil {
			return err
		}
		if issuer.ID != "" {
			in.Turn, err = d.turn(ctx, tx, atIssuer{issuerID: issuer.ID, staffID: in.Who.ID, passkeyID: key.ID, next: next, at: now})
			return err
		}
		detail := map[string]any{"passkey": key.ID}
		if away {
			detail["issuer"] = "away"
		}
		in.Session, err = d.begin(ctx, tx, in.Who, key.ID, origin, now, detail)
		return err
	})
	return in, signingIn(err)
}

// signingIn is the error of a sign-in: a refusal as it is.
func signingIn(err error) error {
	var refusal *operation.Error
	if err == nil || errors.As(err, &refusal) {
		return err
	}
	return fmt.Errorf("signing staff in: %w", err)
}

// begin begins a session of a person with a passkey, and records it.
func (d *Desk) begin(ctx context.Context, tx pgx.Tx, who Staff, passkeyID, origin string, now time.Time, detail map[string]any) (secret.Text, error) {
	session := secret.Mint("")
	hash := hashOf(session)
	q := db.New(tx)
	if err := q.BeginStaffSession(ctx, db.BeginStaffSessionParams{
		Hash: hash, StaffID: who.ID, PasskeyID: passkeyID, Now: now, Mac: signed.MAC(d.macs, "staff_sessions", sessionOf(hash, who, passkeyID, now)...),
	}); err != nil {
		return secret.Text{}, err
	}
	if err := q.KeepNewestStaffSessions(ctx, db.KeepNewestStaffSessionsParams{StaffID: who.ID, Hash: hash, Now: now, Others: MaxStaffSessions - 1}); err != nil {
		return secret.Text{}, err
	}
	return session, operation.Record(ctx, tx, who.Actor(origin), now, operation.Entry{Action: "staff.sign_in", Subject: who.ID, AgencyID: who.AgencyID, Detail: detail})
}

// refusedSignIn returns why a person who has proved a passkey may not sign in; nil for none.
func (s Staff) refusedSignIn() error {
	switch {
	case s.Forged:
		return refuseForged(s)
	case s.State() == StaffStateRevoked:
		return operation.Refuse("staff.revoked", "", operation.Args{"name": s.Name})
	case s.State() == StaffStateSuspended:
		return operation.Refuse("staff.suspended", "", operation.Args{"name": s.Name})
	case !s.InForce():
		return operation.Refuse("staff.not_approved", "", operation.Args{"name": s.Name, "id": s.ID})
	}
	return nil
}

// owner returns the person as the owner of a passkey, with the stored count of signatures.
func (s Staff) owner(keys ...StaffPasskey) (passkeys.Owner, error) {
	id, err := uuid.Parse(s.ID)
	if err != nil {
		return passkeys.Owner{}, fmt.Errorf("the id of a person: %w", err)
	}
	o := passkeys.Owner{ID: id, Name: s.Name}
	for _, k := range keys {
		o.Credentials = append(o.Credentials, k.Counted())
	}
	return o, nil
}

// passkey returns the passkey with a credential id, or the zero StaffPasskey.
func (d *Desk) passkey(ctx context.Context, tx pgx.Tx, credentialID []byte) (key StaffPasskey, err error) {
	err = signed.Find(ctx, tx, signed.NewVerifier(d.cfg.Keys), func(r passkeyRow, row signed.Row) {
		key = toStaffPasskey(r, !row.Verified)
	}, "staff_passkeys", "credential_id", credentialID)
	return key, err
}

// used stores the new count of a passkey.
func (d *Desk) used(ctx context.Context, tx pgx.Tx, id string, proven passkeys.Credential, now time.Time) error {
	return db.New(tx).UseStaffPasskey(ctx, db.UseStaffPasskeyParams{ID: id, SignCount: int64(proven.Authenticator.SignCount), LastUsedAt: &now})
}

// sessionOf are the values that the MAC of a session covers. Who the person is at an identity provider is among them: a session
// ends when that changes.
func sessionOf(hash []byte, who Staff, passkeyID string, begunAt time.Time) []any {
	values := []any{hash, who.ID, passkeyID, begunAt}
	if who.Issuer != "" {
		values = append(values, who.Issuer, who.Subject)
	}
	return values
}

// Session returns who acts in a session. asks is true for a request that a page makes by itself, which prolongs
// nothing. It reads Postgres, so that a suspension, a revocation or a sign-out counts at once. The error is
// ErrStaffSessionEnded when the session is over; any other error means that Postgres does not answer.
func (d *Desk) Session(ctx context.Context, session secret.Text, asks bool, origin string) (a Acting, err error) {
	now := d.cfg.Now().UTC()
	hash := hashOf(session)
	err = pgx.BeginFunc(ctx, d.cfg.Pool, func(tx pgx.Tx) error {
		q := db.New(tx)
		row, err := q.StaffSession(ctx, hash)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return ErrStaffSessionEnded
		case err != nil:
			return err
		case !now.Before(row.BegunAt.Add(StaffSessionLifetime)), !now.Before(row.UsedAt.Add(StaffSessionIdle)):
			return ErrStaffSessionEnded
		}
		staff, err := StaffOf(ctx, tx, d.cfg.Keys, row.StaffID)
		if err != nil {
			return err
		}
		who := staff[row.StaffID]
		key := slices.IndexFunc(who.Passkeys, func(k StaffPasskey) bool { return k.ID == row.PasskeyID })
		if !who.InForce() || key < 0 || !who.Passkeys[key].InForce() || who.Passkeys[key].Host != d.party.Host() ||
			!signed.VerifyMAC(d.macs, row.Mac, "staff_sessions", sessionOf(hash, who, row.PasskeyID, row.BegunAt)...) {
			return ErrStaffSessionEnded
		}
		// AddIssuer and BindSubject end the sessions that they see. One of a sign-in that was not committed yet ends here.
		if who.Issuer == "" {
			i, err := issuerOf(ctx, tx, signed.NewVerifier(d.cfg.Keys), notVerified, who.AgencyID)
			switch {
			case err != nil:
				return err
			case i.ID != "" && !i.Forged:
				return ErrStaffSessionEnded
			}
		}
		a = Acting{Person: who, Actor: who.Actor(origin), BegunAt: row.BegunAt, desk: d, session: hash}
		a.EndsAt = row.BegunAt.Add(StaffSessionLifetime)
		if asks {
			return nil
		}
		return q.UseStaffSession(ctx, db.UseStaffSessionParams{Hash: hash, UsedAt: now})
	})
	if err != nil && !errors.Is(err, ErrStaffSessionEnded) {
		err = fmt.Errorf("reading a session of staff: %w", err)
	}
	return a, err
}

// SignOut ends a session. One that has ended stays so.
func (d *Desk) SignOut(ctx context.Context, session secret.Text) error {
	if err := db.New(d.cfg.Pool).EndStaffSession(ctx, hashOf(session)); err != nil {
		return fmt.Errorf("ending a session of staff: %w", err)
	}
	return nil
}

// StaffSession is a session as its person sees it.
type StaffSession struct {
	BegunAt, UsedAt time.Time
	PasskeyID       string
	// Own is true for the session that asks.
	Own bool
}

// Sessions returns the sessions of the person who acts that have not ended, the newest first.
func (d *Desk) Sessions(ctx context.Context, a Acting) (out []StaffSession, err error) {
	now := d.cfg.Now().UTC()
	rows, err := db.New(d.cfg.Pool).StaffSessions(ctx, db.StaffSessionsParams{StaffID: a.Person.ID, BegunAfter: now.Add(-StaffSessionLifetime), UsedAfter: now.Add(-StaffSessionIdle)})
	if err != nil {
		return nil, fmt.Errorf("reading the sessions of staff: %w", err)
	}
	for _, r := range rows {
		out = append(out, StaffSession{r.BegunAt, r.UsedAt, r.PasskeyID, slices.Equal(r.Hash, a.session)})
	}
	return out, nil
}

// SignOutOthers ends all sessions of the person but the one that acts.
func (d *Desk) SignOutOthers(ctx context.Context, a Acting) error {
	if err := db.New(d.cfg.Pool).EndOtherStaffSessions(ctx, db.EndOtherStaffSessionsParams{StaffID: a.Person.ID, Hash: a.session}); err != nil {
		return fmt.Errorf("ending sessions of staff: %w", err)
	}
	return nil
}
