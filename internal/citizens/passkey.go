package citizens

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quittance/internal/operation"
	"quittance/internal/passkeys"
	"quittance/internal/secret"
	"quittance/internal/signed"
	"quittance/money"
)

const (
	// RecentSignIn is how long after a sign-in a passkey may be added without another one.
	RecentSignIn = 15 * time.Minute
	// RecentForRemoval is how long after a sign-in a passkey may be removed without another one.
	RecentForRemoval = 10 * time.Minute
	// MaxPasskeys is the most passkeys of an account.
	MaxPasskeys = 10
)

// The refusals of passkeys.
var (
	// ErrSignInAgain says that the sign-in was too long ago to add or to remove a passkey.
	ErrSignInAgain = errors.New("the sign-in is not recent")
	// ErrTooManyPasskeys says that the account has MaxPasskeys, or has added as many in the last
	// day, whatever it has removed since: each is told by message.
	ErrTooManyPasskeys = errors.New("the account has, or has added today, the most passkeys that it may have")
)

// Passkeys are the passkeys of the accounts of a Store. Safe for concurrent use.
type Passkeys struct {
	party *passkeys.Party
	store *Store
}

// NewPasskeys makes the passkeys of a service at an address, as passkeys.New does.
func NewPasskeys(store *Store, publicURL string) (*Passkeys, error) {
	party, err := passkeys.New(publicURL)
	return &Passkeys{party, store}, err
}

// Available reports whether browsers allow passkeys at the address of the service.
func (k *Passkeys) Available() bool { return k.party.Available() }

// Host is the name of the host at which browsers make and use the passkeys; empty without one.
func (k *Passkeys) Host() string { return k.party.Host() }

// Passkey is a passkey as its owner sees it.
type Passkey struct {
	ID                string
	CreatedAt, UsedAt time.Time
	// Synced means that the owner's other devices may have it too.
	Synced bool
}

// List returns the passkeys of an account, the oldest first.
func (k *Passkeys) List(ctx context.Context, citizenID string) ([]Passkey, error) {
	rows, _ := k.store.cfg.Pool.Query(ctx, `SELECT id, name::text, created_at, used_at, credential, mac FROM citizen_passkeys WHERE citizen_id = $1 ORDER BY created_at, name`, citizenID) // the rows return its error
	var list []Passkey
	var p Passkey
	var id, mac []byte
	var credential passkeys.Credential
	_, err := pgx.ForEachRow(rows, []any{&id, &p.ID, &p.CreatedAt, &p.UsedAt, &credential, &mac}, func() error {
		if k.store.believesPasskey(ctx, mac, id, p.ID, citizenID, p.CreatedAt, credential) {
			p.Synced = credential.Synced()
			list = append(list, p)
		}
		credential = passkeys.Credential{}
		return nil
	})
	return list, failed("reading the passkeys of a citizen", err)
}

// believesPasskey reports whether one of our roles has added the passkey to this account.
func (s *Store) believesPasskey(ctx context.Context, mac, id []byte, name, citizenID string, createdAt time.Time, c passkeys.Credential) bool {
	return s.believes(ctx, mac, "citizen_passkeys", name+" of account "+citizenID, passkeyValues(id, name, citizenID, createdAt, c))
}

// Remove deletes a passkey of the account of a session. The other sessions of the account end,
// and its addresses are told. ok is false if the account has no such passkey. The sign-in must
// be recent (RecentForRemoval), else the error is ErrSignInAgain.
func (k *Passkeys) Remove(ctx context.Context, session secret.Text, id string) (ok bool, err error) {
	name, malformed := uuid.Parse(id)
	now := k.store.cfg.Now().UTC()
	err = pgx.BeginFunc(ctx, k.store.cfg.Pool, func(tx pgx.Tx) error {
		citizenID, begun, err := k.store.begun(ctx, tx, session, now)
		switch {
		case err != nil:
			return err
		case !now.Before(begun.Add(RecentForRemoval)):
			return ErrSignInAgain
		case malformed != nil:
			return nil // no such passkey
		}
		tag, err := tx.Exec(ctx, `DELETE FROM citizen_passkeys WHERE name = $1 AND citizen_id = $2`, name, citizenID)
		if ok = tag.RowsAffected() > 0; err != nil || !ok {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM citizen_sessions WHERE citizen_id = $1 AND token <> $2`, citizenID, tokenHash(session)); err != nil {
			return err
		}
		if err := notice(ctx, tx, citizenID, NoticePasskeyRemoved, now); err != nil {
			return err
		}
		return k.store.record(ctx, tx, citizenID, "passkey.remove")
	})
	return ok, failed("removing a passkey", err)
}

// Offered reports whether a passkey should be offered to whoever has the session: the account
// has none, and the sign-in is recent enough to add one.
func (k *Passkeys) Offered(ctx context.Context, session secret.Text) (offered bool, err error) {
	if !k.Available() {
		return false, nil
	}
	now := k.store.cfg.Now().UTC()
	citizenID, begun, err := k.store.begun(ctx, k.store.cfg.Pool, session, now)
	switch {
	case errors.Is(err, ErrSignedOut):
		return false, nil
	case err == nil && now.Before(begun.Add(RecentSignIn)):
		err = k.store.cfg.Pool.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM citizen_passkeys WHERE citizen_id = $1)`, citizenID).Scan(&offered)
	}
	return offered, failed("reading whether a citizen has a passkey", err)
}

// record writes what a citizen did to the audit table.
func (s *Store) record(ctx context.Context, tx pgx.Tx, citizenID, action string) error {
	return operation.Record(ctx, tx, operation.Actor{Kind: operation.ActorPerson, Name: citizenID}, s.cfg.Now(), operation.Entry{Action: action, Subject: citizenID})
}

// recent returns the account of a session that began not long ago.
func (k *Passkeys) recent(ctx context.Context, session secret.Text) (passkeys.Owner, error) {
	if !k.Available() {
		return passkeys.Owner{}, passkeys.ErrUnavailable
	}
	who, err := k.store.Session(ctx, session)
	if err != nil {
		return passkeys.Owner{}, err
	}
	o := passkeys.Owner{Name: k.Host()}
	if len(who.Addresses) > 0 {
		o.Name = who.Addresses[0] // masked
	}
	if o.ID, err = uuid.Parse(who.ID); err != nil {
		return passkeys.Owner{}, err
	}
	_, begun, err := k.store.begun(ctx, k.store.cfg.Pool, session, k.store.cfg.Now().UTC())
	if err != nil {
		return passkeys.Owner{}, err
	}
	if !k.store.cfg.Now().Before(begun.Add(RecentSignIn)) {
		return passkeys.Owner{}, ErrSignInAgain
	}
	rows, _ := k.store.cfg.Pool.Query(ctx, `SELECT credential FROM citizen_passkeys WHERE citizen_id = $1`, o.ID) // the rows return its error
	if o.Credentials, err = pgx.CollectRows(rows, pgx.RowTo[passkeys.Credential]); err != nil {
		return passkeys.Owner{}, err
	}
	return o, nil
}

// full returns ErrTooManyPasskeys if the account may not add another passkey now.
func (k *Passkeys) full(ctx context.Context, db querier, id uuid.UUID, now time.Time) error {
	var has, today int
	err := db.QueryRow(ctx, `SELECT (SELECT count(*) FROM citizen_passkeys WHERE citizen_id = $1), (SELECT count(*) FROM citizen_notices WHERE citizen_id = $1 AND kind = $2 AND at > $3)`,
		id, string(NoticeNewPasskey), now.Add(-24*time.Hour)).Scan(&has, &today)
	if err == nil && max(has, today) >= MaxPasskeys {
		err = ErrTooManyPasskeys
	}
	return err
}

// BeginRegistration returns the options with which the browser of a session makes a passkey
// (PublicKeyCredentialCreationOptionsJSON, below publicKey). The sign-in must be recent.
func (k *Passkeys) BeginRegistration(ctx context.Context, session secret.Text) (json.RawMessage, error) {
	o, err := k.recent(ctx, session)
	if err == nil {
		err = k.full(ctx, k.store.cfg.Pool, o.ID, k.store.cfg.Now().UTC()) // so that nobody makes one for nothing
	}
	if err != nil {
		return nil, failed("beginning to add a passkey", err)
	}
	options, challenge, err := k.party.BeginRegistration(o)
	if err == nil {
		err = k.keep(ctx, session, passkeys.PurposeRegister, challenge)
	}
	return options, failed("beginning to add a passkey", err)
}

// keep stores a challenge for a browser.
func (k *Passkeys) keep(ctx context.Context, browser secret.Text, purpose passkeys.Purpose, c passkeys.Challenge) error {
	return k.store.locked(ctx, "storing a challenge", nil, func(tx pgx.Tx) error {
		return passkeys.Keep(ctx, tx, browser, purpose, c, k.store.cfg.Now().UTC())
	})
}

// FinishRegistration adds the passkey that the browser of a session has made
// (RegistrationResponseJSON). The account's addresses are told.
func (k *Passkeys) FinishRegistration(ctx context.Context, session secret.Text, response []byte) (Passkey, error) {
	o, err := k.recent(ctx, session)
	if err != nil {
		return Passkey{}, failed("adding a passkey", err)
	}
	challenge, err := passkeys.Take(ctx, k.store.cfg.Pool, session, passkeys.PurposeRegister, k.store.cfg.Now())
	if err != nil {
		return Passkey{}, failed("adding a passkey", err)
	}
	credential, err := k.party.Register(o, challenge, response)
	if err != nil {
		return Passkey{}, err
	}
	now := k.store.cfg.Now().UTC()
	p := Passkey{ID: uuid.NewString(), CreatedAt: now, UsedAt: now, Synced: credential.Synced()}
	err = k.store.locked(ctx, "adding a passkey", [][]byte{append([]byte("passkeys|"), o.ID[:]...)}, func(tx pgx.Tx) error {
		if err := k.full(ctx, tx, o.ID, now); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `INSERT INTO citizen_passkeys (id, name, citizen_id, credential, created_at, used_at, mac) VALUES ($1, $2, $3, $4, $5, $5, $6)
			ON CONFLICT (id) DO NOTHING`, credential.ID, p.ID, o.ID, credential, now, k.store.passkeyMAC(credential.ID, p.ID, o.ID, now, credential))
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return passkeys.ErrRefused // somebody has it already
		}
		if err := notice(ctx, tx, o.ID.String(), NoticeNewPasskey, now); err != nil {
			return err
		}
		return k.store.record(ctx, tx, o.ID.String(), "passkey.add")
	})
	return p, err
}

// passkeyMAC proves a passkey.
func (s *Store) passkeyMAC(id []byte, name string, owner uuid.UUID, createdAt time.Time, c passkeys.Credential) []byte {
	return signed.MAC(s.macs, "citizen_passkeys", passkeyValues(id, name, owner.String(), createdAt, c)...)
}

// BeginSignIn returns the options with which a browser proves a passkey
// (PublicKeyCredentialRequestOptionsJSON, below publicKey). They name no passkey, so that they
// tell nothing about an account.
//
// A challenge has no limit for an account, because nobody knows yet whose it is, and none is
// needed: an answer cannot be guessed. What limits it is the rate of a client at the edge and
// the turn of a sign-in; a challenge is one row, which the next ones delete after five minutes.
func (k *Passkeys) BeginSignIn(ctx context.Context, browser secret.Text) (json.RawMessage, error) {
	if !k.Available() {
		return nil, passkeys.ErrUnavailable
	}
	done, err := k.store.admit(ctx)
	if err != nil {
		return nil, failed("beginning a sign-in with a passkey", err)
	}
	defer done()
	options, challenge, err := k.party.BeginSignIn()
	if err == nil {
		err = k.keep(ctx, browser, passkeys.PurposeSignIn, challenge)
	}
	return options, failed("beginning a sign-in with a passkey", err)
}

// FinishSignIn signs in with the answer of a browser to its challenge
// (AuthenticationResponseJSON), and returns the session's secret. Sessions that the browser had
// before end with it.
func (k *Passkeys) FinishSignIn(ctx context.Context, browser secret.Text, response []byte, before ...secret.Text) (token secret.Text, c Citizen, err error) {
	const what = "signing in with a passkey"
	if !k.Available() {
		return secret.Text{}, Citizen{}, passkeys.ErrUnavailable
	}
	done, err := k.store.admit(ctx)
	if err != nil {
		return secret.Text{}, Citizen{}, failed(what, err)
	}
	defer done()
	challenge, err := passkeys.Take(ctx, k.store.cfg.Pool, browser, passkeys.PurposeSignIn, k.store.cfg.Now())
	if err != nil {
		return secret.Text{}, Citizen{}, failed(what, err)
	}
	assertion, err := passkeys.ParseAssertion(response)
	if err != nil {
		return secret.Text{}, Citizen{}, err
	}
	now := k.store.cfg.Now().UTC()
	err = k.store.locked(ctx, what, nil, func(tx pgx.Tx) error {
		if c, err = k.prove(ctx, tx, challenge, assertion, now); err != nil {
			return err
		}
		token, err = k.store.open(ctx, tx, c.ID, now, before)
		return err
	})
	if err != nil {
		return secret.Text{}, Citizen{}, err
	}
	err = k.store.mask(ctx, &c)
	return token, c, err
}

// prove verifies an answer and keeps the passkey's count of signatures and its flags. A count of
// a passkey that may be synced and did not rise is recorded in the audit table.
func (k *Passkeys) prove(ctx context.Context, tx pgx.Tx, challenge passkeys.Challenge, assertion passkeys.Assertion, now time.Time) (c Citizen, err error) {
	var o passkeys.Owner
	var stored passkeys.Credential
	var signedIn, createdAt time.Time
	var name, locale string
	var mac []byte
	err = tx.QueryRow(ctx, `SELECT c.id, c.signed_in_at, c.locale, p.name::text, p.created_at, p.credential, p.mac FROM citizen_passkeys p JOIN citizens c ON c.id = p.citizen_id
		WHERE p.id = $1 FOR UPDATE`, assertion.CredentialID()).Scan(&o.ID, &signedIn, &locale, &name, &createdAt, &stored, &mac)
	if errors.Is(err, pgx.ErrNoRows) {
		return Citizen{}, passkeys.ErrRefused
	}
	if err != nil {
		return Citizen{}, err
	}
	if !k.store.believesPasskey(ctx, mac, assertion.CredentialID(), name, o.ID.String(), createdAt, stored) {
		return Citizen{}, passkeys.ErrRefused
	}
	o.Credentials = []passkeys.Credential{stored}
	credential, fell, err := k.party.Verify(o, challenge, assertion)
	if err == nil && fell {
		err = k.store.record(ctx, tx, o.ID.String(), "passkey.count_fell")
	}
	if err != nil {
		return Citizen{}, err
	}
	if _, err := tx.Exec(ctx, `UPDATE citizen_passkeys SET credential = $2, used_at = $3, mac = $4 WHERE id = $1`,
		assertion.CredentialID(), credential, now, k.store.passkeyMAC(assertion.CredentialID(), name, o.ID, createdAt, credential)); err != nil {
		return Citizen{}, err
	}
	c = Citizen{ID: o.ID.String(), Locale: money.Language(locale)}
	return c, signedInAgain(ctx, tx, c, signedIn, now)
}
