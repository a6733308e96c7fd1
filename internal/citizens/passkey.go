package citizens

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn" // the server's part of WebAuthn: attestation formats, COSE keys, CBOR
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quittance/internal/operation"
	"quittance/internal/secret"
	"quittance/money"
)

const (
	// ChallengeLifetime is how long a browser may take to answer a challenge.
	ChallengeLifetime = 5 * time.Minute
	// RecentSignIn is how long after a sign-in a passkey may be added without another one.
	RecentSignIn = 15 * time.Minute
	// RecentForRemoval is how long after a sign-in a passkey may be removed without another one.
	RecentForRemoval = 10 * time.Minute
	// MaxPasskeys is the most passkeys of an account.
	MaxPasskeys = 10
)

// The refusals of passkeys.
var (
	// ErrPasskeyRefused says that an answer to a challenge does not prove a passkey: its
	// challenge is missing, used or too old, or belongs to another browser, or the answer is
	// malformed, of another origin, without verification of the user, or wrongly signed.
	ErrPasskeyRefused = errors.New("the passkey is not valid")
	// ErrSignInAgain says that the sign-in was too long ago to add or to remove a passkey.
	ErrSignInAgain = errors.New("the sign-in is not recent")
	// ErrTooManyPasskeys says that the account has MaxPasskeys, or has added as many in the last
	// day, whatever it has removed since: each is told by message.
	ErrTooManyPasskeys = errors.New("the account has, or has added today, the most passkeys that it may have")
	// ErrNoPasskeys says that the service has no address at which browsers allow passkeys.
	ErrNoPasskeys = errors.New("passkeys need a name of the host, not a number")
)

// Passkeys are the passkeys of the accounts of a Store (WebAuthn Level 3): discoverable
// credentials, for which the authenticator verifies the user. Safe for concurrent use.
type Passkeys struct {
	store *Store
	party *webauthn.WebAuthn // nil where browsers allow none
}

// NewPasskeys makes the passkeys of a service at an address. Browsers allow passkeys for names
// of hosts only; at a loopback address they are those of localhost.
func NewPasskeys(store *Store, publicURL string) (*Passkeys, error) {
	u, err := url.Parse(publicURL)
	if err != nil || u.Host == "" {
		return nil, errors.New("passkeys: the address of the service must be one such as https://pay.example")
	}
	host, origin := u.Hostname(), u.Scheme+"://"+u.Host
	if ip, err := netip.ParseAddr(host); err == nil {
		if !ip.IsLoopback() {
			return &Passkeys{store: store}, nil
		}
		if host, origin = "localhost", u.Scheme+"://localhost"; u.Port() != "" {
			origin += ":" + u.Port()
		}
	}
	party, err := webauthn.New(&webauthn.Config{
		RPID: host, RPDisplayName: host, RPOrigins: []string{origin}, AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementRequired, RequireResidentKey: protocol.ResidentKeyRequired(), UserVerification: protocol.VerificationRequired,
		},
		Timeouts: webauthn.TimeoutsConfig{Login: webauthn.TimeoutConfig{Timeout: ChallengeLifetime}, Registration: webauthn.TimeoutConfig{Timeout: ChallengeLifetime}},
	})
	if err != nil {
		return nil, fmt.Errorf("passkeys: %w", err)
	}
	return &Passkeys{store, party}, nil
}

// Available reports whether browsers allow passkeys at the address of the service.
func (k *Passkeys) Available() bool { return k.party != nil }

// Passkey is a passkey as its owner sees it.
type Passkey struct {
	ID                string
	CreatedAt, UsedAt time.Time
	// Synced means that the owner's other devices may have it too.
	Synced bool
}

// owner is an account as WebAuthn sees it.
type owner struct {
	id          uuid.UUID
	name        string
	credentials webauthn.Credentials
}

// WebAuthnID implements webauthn.User.
func (o owner) WebAuthnID() []byte { return o.id[:] }

// WebAuthnName implements webauthn.User: the masked address, which authenticators show.
func (o owner) WebAuthnName() string { return o.name }

// WebAuthnDisplayName implements webauthn.User.
func (o owner) WebAuthnDisplayName() string { return o.name }

// WebAuthnCredentials implements webauthn.User.
func (o owner) WebAuthnCredentials() []webauthn.Credential { return o.credentials }

// List returns the passkeys of an account, the oldest first.
func (k *Passkeys) List(ctx context.Context, citizenID string) ([]Passkey, error) {
	rows, _ := k.store.cfg.Pool.Query(ctx, `SELECT name::text, created_at, used_at, credential FROM citizen_passkeys WHERE citizen_id = $1 ORDER BY created_at, name`, citizenID) // the rows return its error
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p Passkey, err error) {
		var credential webauthn.Credential
		err = row.Scan(&p.ID, &p.CreatedAt, &p.UsedAt, &credential)
		p.Synced = credential.Flags.BackupState
		return p, err
	})
	return list, failed("reading the passkeys of a citizen", err)
}

// Host is the name of the host at which browsers make and use the passkeys; empty without one.
func (k *Passkeys) Host() string {
	if k.party == nil {
		return ""
	}
	return k.party.Config.RPID
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
	if k.party == nil {
		return false, nil
	}
	err = k.store.cfg.Pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM citizen_sessions s WHERE token = $1 AND created_at > $2
		AND NOT EXISTS (SELECT FROM citizen_passkeys p WHERE p.citizen_id = s.citizen_id))`, tokenHash(session), k.store.cfg.Now().UTC().Add(-RecentSignIn)).Scan(&offered)
	return offered, failed("reading whether a citizen has a passkey", err)
}

// record writes what a citizen did to the audit table.
func (s *Store) record(ctx context.Context, tx pgx.Tx, citizenID, action string) error {
	return operation.Record(ctx, tx, operation.Actor{Kind: operation.ActorPerson, Name: citizenID}, s.cfg.Now(), operation.Entry{Action: action, Subject: citizenID})
}

// The purposes of challenges.
const (
	purposeRegister = "register"
	purposeSignIn   = "sign_in"
)

// challenge stores a challenge for a browser. An earlier one for the same purpose is void.
func (k *Passkeys) challenge(ctx context.Context, browser secret.Text, purpose string, session *webauthn.SessionData) error {
	now := k.store.cfg.Now().UTC()
	session.Expires = time.Time{} // the row has the time of the service
	batch := &pgx.Batch{}
	batch.Queue(`DELETE FROM passkey_challenges WHERE (browser, purpose) IN (SELECT browser, purpose FROM passkey_challenges WHERE at <= $1 LIMIT 100 FOR UPDATE SKIP LOCKED)`, now.Add(-ChallengeLifetime))
	batch.Queue(`INSERT INTO passkey_challenges (browser, purpose, session, at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (browser, purpose) DO UPDATE SET session = excluded.session, at = excluded.at`, browserHash(browser), purpose, session, now)
	return k.store.locked(ctx, "storing a challenge", nil, func(tx pgx.Tx) error { return tx.SendBatch(ctx, batch).Close() })
}

// answered takes the challenge of a browser: it is used up, whatever the answer is.
func (k *Passkeys) answered(ctx context.Context, browser secret.Text, purpose string) (session webauthn.SessionData, err error) {
	var at time.Time
	err = k.store.cfg.Pool.QueryRow(ctx, `DELETE FROM passkey_challenges WHERE browser = $1 AND purpose = $2 RETURNING session, at`, browserHash(browser), purpose).Scan(&session, &at)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && !k.store.cfg.Now().Before(at.Add(ChallengeLifetime)) {
		err = ErrPasskeyRefused
	}
	return session, err
}

// recent returns the account of a session that began not long ago.
func (k *Passkeys) recent(ctx context.Context, session secret.Text) (owner, error) {
	if k.party == nil {
		return owner{}, ErrNoPasskeys
	}
	who, err := k.store.Session(ctx, session)
	if err != nil {
		return owner{}, err
	}
	o := owner{name: k.party.Config.RPID}
	if len(who.Addresses) > 0 {
		o.name = who.Addresses[0]
	}
	if o.id, err = uuid.Parse(who.ID); err != nil {
		return owner{}, err
	}
	_, begun, err := k.store.begun(ctx, k.store.cfg.Pool, session, k.store.cfg.Now().UTC())
	if err != nil {
		return owner{}, err
	}
	if !k.store.cfg.Now().Before(begun.Add(RecentSignIn)) {
		return owner{}, ErrSignInAgain
	}
	rows, _ := k.store.cfg.Pool.Query(ctx, `SELECT credential FROM citizen_passkeys WHERE citizen_id = $1`, o.id) // the rows return its error
	if o.credentials, err = pgx.CollectRows(rows, pgx.RowTo[webauthn.Credential]); err != nil {
		return owner{}, err
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
		err = k.full(ctx, k.store.cfg.Pool, o.id, k.store.cfg.Now().UTC()) // so that nobody makes one for nothing
	}
	if err != nil {
		return nil, failed("beginning to add a passkey", err)
	}
	options, data, err := k.party.BeginRegistration(o, webauthn.WithExclusions(o.credentials.CredentialDescriptors()))
	if err == nil {
		err = k.challenge(ctx, session, purposeRegister, data)
	}
	if err != nil {
		return nil, failed("beginning to add a passkey", err)
	}
	return json.Marshal(options)
}

// FinishRegistration adds the passkey that the browser of a session has made
// (RegistrationResponseJSON). The account's addresses are told.
func (k *Passkeys) FinishRegistration(ctx context.Context, session secret.Text, response []byte) (Passkey, error) {
	o, err := k.recent(ctx, session)
	if err != nil {
		return Passkey{}, failed("adding a passkey", err)
	}
	data, err := k.answered(ctx, session, purposeRegister)
	if err != nil {
		return Passkey{}, failed("adding a passkey", err)
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(response)
	if err != nil {
		return Passkey{}, ErrPasskeyRefused
	}
	credential, err := k.party.CreateCredential(o, data, parsed)
	if err != nil {
		return Passkey{}, ErrPasskeyRefused
	}
	now := k.store.cfg.Now().UTC()
	p := Passkey{ID: uuid.NewString(), CreatedAt: now, UsedAt: now, Synced: credential.Flags.BackupState}
	// The attestation is verified and never looked at again.
	credential.Attestation = webauthn.CredentialAttestation{}
	err = k.store.locked(ctx, "adding a passkey", [][]byte{append([]byte("passkeys|"), o.id[:]...)}, func(tx pgx.Tx) error {
		if err := k.full(ctx, tx, o.id, now); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `INSERT INTO citizen_passkeys (id, name, citizen_id, credential, created_at, used_at) VALUES ($1, $2, $3, $4, $5, $5)
			ON CONFLICT (id) DO NOTHING`, credential.ID, p.ID, o.id, credential, now)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return ErrPasskeyRefused // somebody has it already
		}
		if err := notice(ctx, tx, o.id.String(), NoticeNewPasskey, now); err != nil {
			return err
		}
		return k.store.record(ctx, tx, o.id.String(), "passkey.add")
	})
	return p, err
}

// BeginSignIn returns the options with which a browser proves a passkey
// (PublicKeyCredentialRequestOptionsJSON, below publicKey). They name no passkey, so that they
// tell nothing about an account.
//
// A challenge has no limit for an account, because nobody knows yet whose it is, and none is
// needed: an answer cannot be guessed. What limits it is the rate of a client at the edge and
// the turn of a sign-in; a challenge is one row, which the next ones delete after five minutes.
func (k *Passkeys) BeginSignIn(ctx context.Context, browser secret.Text) (json.RawMessage, error) {
	if k.party == nil {
		return nil, ErrNoPasskeys
	}
	done, err := k.store.admit(ctx)
	if err != nil {
		return nil, failed("beginning a sign-in with a passkey", err)
	}
	defer done()
	options, data, err := k.party.BeginDiscoverableLogin(webauthn.WithUserVerification(protocol.VerificationRequired))
	if err == nil {
		err = k.challenge(ctx, browser, purposeSignIn, data)
	}
	if err != nil {
		return nil, failed("beginning a sign-in with a passkey", err)
	}
	return json.Marshal(options)
}

// FinishSignIn signs in with the answer of a browser to its challenge
// (AuthenticationResponseJSON), and returns the session's secret. Sessions that the browser had
// before end with it.
func (k *Passkeys) FinishSignIn(ctx context.Context, browser secret.Text, response []byte, before ...secret.Text) (token secret.Text, c Citizen, err error) {
	const what = "signing in with a passkey"
	if k.party == nil {
		return secret.Text{}, Citizen{}, ErrNoPasskeys
	}
	done, err := k.store.admit(ctx)
	if err != nil {
		return secret.Text{}, Citizen{}, failed(what, err)
	}
	defer done()
	data, err := k.answered(ctx, browser, purposeSignIn)
	if err != nil {
		return secret.Text{}, Citizen{}, failed(what, err)
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(response)
	if err != nil {
		return secret.Text{}, Citizen{}, ErrPasskeyRefused
	}
	now := k.store.cfg.Now().UTC()
	err = k.store.locked(ctx, what, nil, func(tx pgx.Tx) error {
		if c, err = k.prove(ctx, tx, data, parsed, now); err != nil {
			return err
		}
		token, err = k.store.open(ctx, tx, c.ID, now, before)
		return err
	})
	if err != nil {
		return secret.Text{}, Citizen{}, err
	}
	addresses, err := k.store.Addresses(ctx, c.ID)
	for _, a := range addresses {
		c.Addresses = append(c.Addresses, a.Masked())
	}
	return token, c, err
}

// prove verifies an answer and keeps the passkey's count of signatures.
func (k *Passkeys) prove(ctx context.Context, tx pgx.Tx, data webauthn.SessionData, parsed *protocol.ParsedCredentialAssertionData, now time.Time) (c Citizen, err error) {
	var o owner
	var stored webauthn.Credential
	var signedIn time.Time
	var locale string
	err = tx.QueryRow(ctx, `SELECT c.id, c.signed_in_at, c.locale, p.credential FROM citizen_passkeys p JOIN citizens c ON c.id = p.citizen_id
		WHERE p.id = $1 FOR UPDATE`, parsed.RawID).Scan(&o.id, &signedIn, &locale, &stored)
	if errors.Is(err, pgx.ErrNoRows) {
		return Citizen{}, ErrPasskeyRefused
	}
	if err != nil {
		return Citizen{}, err
	}
	o.credentials = webauthn.Credentials{stored}
	_, credential, err := k.party.ValidatePasskeyLogin(func(_, _ []byte) (webauthn.User, error) { return o, nil }, data, parsed)
	if err != nil || credential.Authenticator.CloneWarning { // a count that does not rise: somebody may have a copy of the key
		return Citizen{}, ErrPasskeyRefused
	}
	if _, err := tx.Exec(ctx, `UPDATE citizen_passkeys SET credential = $2, used_at = $3 WHERE id = $1`, parsed.RawID, credential, now); err != nil {
		return Citizen{}, err
	}
	c = Citizen{ID: o.id.String(), Locale: money.Language(locale)}
	return c, signedInAgain(ctx, tx, c, signedIn, now)
}
