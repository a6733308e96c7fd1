package identity

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/internal/form"
	"quittance/internal/identity/internal/db"
	"quittance/internal/openid"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/internal/signed"
)

// IssuerVisitLife is how long a browser may be at an identity provider.
const IssuerVisitLife = 10 * time.Minute

// IssuerPath is where the callback addresses of issuers are, below the address of the pages; their ids follow. LogoutSuffix
// follows them in the addresses for logout tokens.
const (
	IssuerPath   = "/sign-in/issuers/"
	LogoutSuffix = "/logout"
)

// codeVisitOver is the refusal of an answer that belongs to no visit of the browser.
const codeVisitOver = "issuer.visit_over"

// atIssuer is a browser that is at an identity provider: of a person who has proved a passkey, or of an invited person.
type atIssuer struct {
	issuerID, staffID       string
	passkeyID, invitationID string // one of them
	next                    string
	at                      time.Time
}

// mac proves that this role has made the row, for whom, and for which browser.
func (d *Desk) turnMAC(browser []byte, v atIssuer) []byte {
	return signed.MAC(d.macs, "staff_issuer_sign_ins", v.values(browser)...)
}

func (v atIssuer) values(browser []byte) []any {
	return []any{browser, v.issuerID, v.staffID, v.passkeyID, v.invitationID, v.next, v.at}
}

// turn stores a visit, and returns the secret of its browser.
func (d *Desk) turn(ctx context.Context, tx pgx.Tx, v atIssuer) (secret.Text, error) {
	browser := secret.Mint("")
	v.at = v.at.Truncate(time.Microsecond) // as Postgres keeps it
	hash := hashOf(browser)
	err := db.New(tx).BeginAtIssuer(ctx, db.BeginAtIssuerParams{
		Browser: hash, IssuerID: v.issuerID, StaffID: v.staffID, PasskeyID: given(v.passkeyID), InvitationID: given(v.invitationID), Next: v.next, At: v.at, Mac: d.turnMAC(hash, v),
	})
	return browser, err
}

// verified returns a visit as it was stored; refused when it is over.
func (d *Desk) verified(hash []byte, v atIssuer, mac []byte) (atIssuer, error) {
	if d.cfg.Now().Sub(v.at) >= IssuerVisitLife || !signed.VerifyMAC(d.macs, mac, "staff_issuer_sign_ins", v.values(hash)...) {
		return atIssuer{}, operation.Refuse(codeVisitOver, "", nil)
	}
	return v, nil
}

// issuerOf returns the issuer at which a person has to sign in now; the zero Issuer for none. away is true while an outage lets
// the passkey alone sign in. A person who is bound to an issuer never signs in without one: whoever deletes its row changes
// nothing.
func (d *Desk) issuerOf(ctx context.Context, tx pgx.Tx, who Staff, now time.Time) (i Issuer, away bool, err error) {
	if i, err = issuerOf(ctx, tx, signed.NewVerifier(d.cfg.Keys), notVerified, who.AgencyID); err != nil {
		return i, false, err
	}
	switch {
	case i.Forged:
		return i, false, operation.Refuse(signed.CodeForged, "", operation.Args{"table": "staff_issuers", "key": i.ID})
	case i.ID == "" && who.Issuer != "":
		return i, false, operation.Refuse("issuer.gone", "", nil)
	case i.ID == "":
		return i, false, nil
	case who.Issuer != i.Address || who.Subject == "": // during an outage, too: nobody knows whether the provider would let them in
		return i, false, operation.Refuse("issuer.unbound", "", nil)
	case i.Away(now):
		return Issuer{}, true, nil
	}
	return i, false, nil
}

// settings opens an issuer as internal/openid needs it.
func (d *Desk) settings(i Issuer) (openid.Issuer, error) {
	plain, err := d.cfg.Keys.Open(registry.LabelStaffIssuers, i.sealed, i.aad())
	if err != nil {
		return openid.Issuer{}, fmt.Errorf("opening the secret of issuer %s: %w", i.ID, err)
	}
	return openid.Issuer{
		Address: i.Address, ClientID: i.ClientID, Secret: secret.NewText(string(plain)), Algorithms: i.Algorithms,
		Callback: strings.TrimSuffix(d.cfg.URL, "/") + IssuerPath + i.ID,
	}, nil
}

// issuerByID reads an issuer whose row verifies. A refusal is an *operation.Error.
func (d *Desk) issuerByID(ctx context.Context, id string) (i Issuer, settings openid.Issuer, err error) {
	known, ok := form.CanonicalUUID(id)
	if !ok {
		return i, settings, operation.Refuse("issuer.unknown", "", nil)
	}
	err = pgx.BeginTxFunc(ctx, d.cfg.Pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		return signed.One(ctx, tx, signed.NewVerifier(d.cfg.Keys), func(r issuerRow, row signed.Row) { i = toIssuer(r, notVerified(row)) }, "staff_issuers", known)
	})
	switch {
	case err != nil:
		return i, settings, err
	case i.ID == "":
		return i, settings, operation.Refuse("issuer.unknown", "", nil)
	case i.Forged:
		return i, settings, operation.Refuse(signed.CodeForged, "", operation.Args{"table": "staff_issuers", "key": i.ID})
	}
	settings, err = d.settings(i)
	return i, settings, err
}

// Departure is where a browser goes that visits an identity provider.
type Departure struct {
	// To is the address of its sign-in, Issuer the provider, which the page names.
	To, Issuer string
	// Invited says that an invited person goes there, who has no passkey yet.
	Invited bool
}

// Depart returns where a browser goes that visits an identity provider. A refusal is an *operation.Error: issuer.visit_over, or
// openid.CodeAway.
func (d *Desk) Depart(ctx context.Context, turn secret.Text) (to Departure, err error) {
	hash := hashOf(turn)
	row, err := db.New(d.cfg.Pool).AtIssuer(ctx, hash)
	if errors.Is(err, pgx.ErrNoRows) {
		return to, operation.Refuse(codeVisitOver, "", nil)
	}
	if err != nil {
		return to, fmt.Errorf("reading a visit to an issuer: %w", err)
	}
	v, err := d.verified(hash, atIssuer{row.IssuerID, row.StaffID, value(row.PasskeyID), value(row.InvitationID), row.Next, row.At}, row.Mac)
	if err != nil {
		return to, err
	}
	i, settings, err := d.issuerByID(ctx, v.issuerID)
	if err != nil {
		return to, err
	}
	to = Departure{Issuer: i.Address, Invited: v.invitationID != ""}
	to.To, err = d.issuers.Begin(ctx, settings, openid.TurnOf(turn))
	return to, err
}

// Arrived is where an answer of an identity provider leads.
type Arrived struct {
	// Session is the session that has begun; empty for an invited person.
	Session secret.Text
	// Next is the address of this site.
	Next string
}

// Arrive takes the answer with which an identity provider has sent a browser back to an issuer's callback address. It begins the
// session of the person who has proved the passkey, or binds an invitation to the subject. A visit is used once. Refusals are
// *operation.Error, of internal/openid or with a code that begins with issuer.; what a person who has proved a passkey is refused
// is recorded.
func (d *Desk) Arrive(ctx context.Context, turn secret.Text, issuerID string, answer url.Values, origin string) (Arrived, error) {
	over := operation.Refuse(codeVisitOver, "", nil)
	if !openid.TurnOf(turn).Is(answer.Get("state")) {
		return Arrived{}, over // another browser has begun it
	}
	hash := hashOf(turn)
	v, err := d.answered(ctx, hash)
	if errors.Is(err, pgx.ErrNoRows) {
		return Arrived{}, over
	}
	if err != nil {
		return Arrived{}, signingIn(err)
	}
	arrived := Arrived{Next: v.next}
	claims, err := d.claims(ctx, v, turn, issuerID, answer)
	if err == nil && v.invitationID != "" {
		err = d.bindInvitation(ctx, v, claims, origin)
	} else if err == nil {
		arrived.Session, err = d.arriveIn(ctx, v, hash, claims, origin)
	}
	var refusal *operation.Error
	if errors.As(err, &refusal) && v.passkeyID != "" {
		return Arrived{}, errors.Join(err, d.recordRefused(ctx, v, refusal.Code, origin))
	}
	return arrived, signingIn(err)
}

// claims returns what the issuer of a visit says.
func (d *Desk) claims(ctx context.Context, v atIssuer, turn secret.Text, issuerID string, answer url.Values) (openid.Claims, error) {
	if id, ok := form.CanonicalUUID(issuerID); !ok || id != v.issuerID {
		return openid.Claims{}, operation.Refuse(openid.CodeOther, "", nil) // another issuer has answered in its place
	}
	_, settings, err := d.issuerByID(ctx, v.issuerID)
	if err != nil {
		return openid.Claims{}, err
	}
	return d.issuers.Finish(ctx, settings, openid.TurnOf(turn), answer)
}

// answered takes a visit, which is used once. That of a sign-in is kept under another name until its session begins, so that a
// logout token that comes meanwhile ends it. The error is pgx.ErrNoRows for a visit that is not there.
func (d *Desk) answered(ctx context.Context, hash []byte) (v atIssuer, err error) {
	var refused error
	err = pgx.BeginFunc(ctx, d.cfg.Pool, func(tx pgx.Tx) error {
		q := db.New(tx)
		row, err := q.TakeAtIssuer(ctx, hash)
		if err != nil {
			return err
		}
		v, refused = d.verified(hash, atIssuer{row.IssuerID, row.StaffID, value(row.PasskeyID), value(row.InvitationID), row.Next, row.At}, row.Mac)
		if refused != nil || v.passkeyID == "" {
			return nil // it is used up
		}
		name := d.answeredName(hash)
		return q.BeginAtIssuer(ctx, db.BeginAtIssuerParams{
			Browser: name, IssuerID: v.issuerID, StaffID: v.staffID, PasskeyID: row.PasskeyID, InvitationID: row.InvitationID, Next: v.next, At: v.at, Mac: d.turnMAC(name, v),
		})
	})
	return v, errors.Join(err, refused)
}

// answeredName is the name of a visit whose answer has come. No browser has its secret.
func (d *Desk) answeredName(hash []byte) []byte {
	return signed.MAC(d.macs, "answers in staff_issuer_sign_ins", hash)
}

// arriveIn begins the session of a person who has proved a passkey, and whom the issuer has named. All is read again.
func (d *Desk) arriveIn(ctx context.Context, v atIssuer, hash []byte, claims openid.Claims, origin string) (session secret.Text, err error) {
	now := d.cfg.Now().UTC()
	err = pgx.BeginFunc(ctx, d.cfg.Pool, func(tx pgx.Tx) error {
		staff, err := LockStaff(ctx, tx, d.cfg.Keys, v.staffID)
		if err != nil {
			return err
		}
		if _, err := db.New(tx).TakeAtIssuer(ctx, d.answeredName(hash)); errors.Is(err, pgx.ErrNoRows) { // LogOut has ended it
			return operation.Refuse(codeVisitOver, "", nil)
		} else if err != nil {
			return err
		}
		who := staff[v.staffID]
		if err := who.refusedSignIn(); err != nil {
			return err
		}
		if !who.hasPasskey(v.passkeyID, d.party.Host()) {
			return operation.Refuse("staff.passkey_refused", "", nil)
		}
		i, away, err := d.issuerOf(ctx, tx, who, now)
		switch {
		case err != nil:
			return err
		case !away && i.ID != v.issuerID:
			return operation.Refuse(codeVisitOver, "", nil)
		case who.Issuer != claims.Issuer, subtle.ConstantTimeCompare([]byte(who.Subject), []byte(claims.Subject)) != 1:
			return operation.Refuse("issuer.other_person", "", nil)
		}
		session, err = d.begin(ctx, tx, who, v.passkeyID, origin, now, map[string]any{"passkey": v.passkeyID, "issuer": v.issuerID})
		return err
	})
	return session, err
}

// hasPasskey reports whether a passkey of the person is in force at a host.
func (s Staff) hasPasskey(id, host string) bool {
	for _, k := range s.Passkeys {
		if k.ID == id {
			return k.InForce() && k.Host == host
		}
	}
	return false
}

// recordRefused records that somebody who has proved a passkey was refused after the visit.
func (d *Desk) recordRefused(ctx context.Context, v atIssuer, code, origin string) error {
	return pgx.BeginFunc(ctx, d.cfg.Pool, func(tx pgx.Tx) error {
		staff, err := StaffOf(ctx, tx, d.cfg.Keys, v.staffID)
		if err != nil {
			return err
		}
		who := staff[v.staffID]
		return operation.Record(ctx, tx, who.Actor(origin), d.cfg.Now().UTC(), operation.Entry{
			Action: "staff.issuer_refused", Subject: v.staffID, AgencyID: who.AgencyID, Detail: map[string]any{"issuer": v.issuerID, "code": code},
		})
	})
}

// InvitedTurn begins the visit of an invited person, whose browser has accepted the invitation. next is the address of this site
// to which it leads. A refusal is an *operation.Error: invitation.link_over, issuer.unknown for a group without an issuer.
func (d *Desk) InvitedTurn(ctx context.Context, browser secret.Text, next string) (turn secret.Text, err error) {
	now := d.cfg.Now().UTC()
	i, err := InvitationOf(ctx, d.cfg.Pool, d.cfg.Keys, browser, now)
	switch {
	case err != nil:
		return turn, err
	case i.AcceptedAt.IsZero():
		return turn, operation.Refuse("invitation.link_over", "", nil)
	case i.Issuer.ID == "":
		return turn, operation.Refuse("issuer.unknown", "", nil)
	case len(i.made) > 0 && !i.AtIssuer(): // what was bound stays
		return turn, operation.Refuse("invitation.passkeys_made", "", nil)
	}
	err = pgx.BeginFunc(ctx, d.cfg.Pool, func(tx pgx.Tx) error {
		turn, err = d.turn(ctx, tx, atIssuer{issuerID: i.Issuer.ID, staffID: i.StaffID, invitationID: i.ID, next: next, at: now})
		return err
	})
	return turn, signingIn(err)
}

// bindInvitation stores who an invited person is at the issuer.
func (d *Desk) bindInvitation(ctx context.Context, v atIssuer, claims openid.Claims, origin string) error {
	now := d.cfg.Now().UTC()
	return change(ctx, d.cfg.Pool, d.cfg.Keys, now, func(t *Tx) error {
		i, err := t.invitation(ctx, v.invitationID)
		switch {
		case err != nil:
			return err
		case !i.Open(now), i.AcceptedAt.IsZero(), !i.Of.mayJoin(), i.Issuer.ID != v.issuerID, i.Issuer.Forged:
			return operation.Refuse("invitation.link_over", "", nil)
		case !form.IsLine(claims.Subject, maxIssuerText):
			return operation.Refuse(openid.CodeToken, "", nil)
		}
		if err := t.subjectFree(i.StaffID, claims.Issuer, claims.Subject); err != nil {
			return err
		}
		email := claims.Email
		if !form.IsLine(email, maxIssuerText) {
			email = ""
		}
		if err := t.q.BindInvitation(ctx, db.BindInvitationParams{ID: i.ID, Issuer: &claims.Issuer, Subject: &claims.Subject, Email: given(email)}); err != nil {
			return fmt.Errorf("binding invitation %s: %w", i.ID, err)
		}
		if i, err = t.invitation(ctx, i.ID); err != nil {
			return err
		}
		return t.recordInvitation(ctx, i.Of.Actor(origin), "staff.invitation_issuer", i)
	})
}

// LogOut ends the sessions of the person whom a logout token of an issuer names. Each token works once. A token that names nobody
// of the issuer's group ends nothing. A refusal is an *operation.Error.
func (d *Desk) LogOut(ctx context.Context, issuerID, token, origin string) error {
	i, settings, err := d.issuerByID(ctx, issuerID)
	if err != nil {
		return err
	}
	out, err := d.issuers.Logout(ctx, settings, token)
	if err != nil {
		return err
	}
	used := sha256.Sum256([]byte(out.ID))
	err = pgx.BeginFunc(ctx, d.cfg.Pool, func(tx pgx.Tx) error {
		q := db.New(tx)
		n, err := q.UseLogoutToken(ctx, db.UseLogoutTokenParams{IssuerID: i.ID, Token: used[:], EndsAt: out.EndsAt})
		if err == nil && n == 0 {
			err = operation.Refuse("issuer.replayed", "", nil)
		}
		if err != nil {
			return err
		}
		people, err := q.StaffOfSubject(ctx, db.StaffOfSubjectParams{Issuer: &i.Address, Subject: &out.Subject})
		if err != nil {
			return err
		}
		for _, id := range people {
			staff, err := StaffOf(ctx, tx, d.cfg.Keys, id)
			if err != nil {
				return err
			}
			if staff[id].AgencyID != i.AgencyID {
				continue
			}
			actor := operation.Actor{Kind: operation.ActorService, Name: "issuer " + i.ID, Origin: origin}
			// The visits first: that waits for a sign-in whose session is being made, and the next statement sees it.
			if err := errors.Join(q.EndAtIssuer(ctx, id), q.EndSessionsOfStaff(ctx, id), operation.Record(ctx, tx, actor, d.cfg.Now().UTC(), operation.Entry{
				Action: "staff.issuer_logout", Subject: id, AgencyID: i.AgencyID, Detail: map[string]any{"issuer": i.ID},
			})); err != nil {
				return err
			}
		}
		return nil
	})
	return signingIn(err)
}
