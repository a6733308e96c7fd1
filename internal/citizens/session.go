package citizens

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quittance/internal/contact"
	"quittance/internal/secret"
	"quittance/internal/signed"
	"quittance/money"
)

// A session ends SessionIdle after its last use, and SessionLifetime after its sign-in.
const (
	SessionIdle     = 30 * time.Minute
	SessionLifetime = 12 * time.Hour
)

// usedEvery is how precisely the last use of a session is stored.
const usedEvery = time.Minute

// ErrSignedOut says that there is no such session, or that it has ended.
var ErrSignedOut = errors.New("the session has ended")

// open starts a session and ends those that the browser had before.
func (s *Store) open(ctx context.Context, tx pgx.Tx, citizenID string, now time.Time, before []secret.Text) (secret.Text, error) {
	for _, token := range before {
		if _, err := tx.Exec(ctx, `DELETE FROM citizen_sessions WHERE token = $1`, tokenHash(token)); err != nil {
			return secret.Text{}, err
		}
	}
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails
	token := secret.NewText(base64.RawURLEncoding.EncodeToString(random[:]))
	mac := signed.MAC(s.macs, "citizen_sessions", sessionValues(tokenHash(token), citizenID, now)...)
	_, err := tx.Exec(ctx, `INSERT INTO citizen_sessions (token, citizen_id, created_at, used_at, mac) VALUES ($1, $2, $3, $3, $4)`, tokenHash(token), citizenID, now, mac)
	return token, err
}

// Session returns the account of a session and counts the call as a use of it. The error of
// a session that has ended is ErrSignedOut.
func (s *Store) Session(ctx context.Context, token secret.Text) (Citizen, error) {
	now := s.cfg.Now().UTC()
	var c Citizen
	var locale string
	var created, used time.Time
	var mac []byte
	err := s.cfg.Pool.QueryRow(ctx, `
		SELECT c.id::text, c.locale, s.created_at, s.used_at, s.mac FROM citizen_sessions s JOIN citizens c ON c.id = s.citizen_id
		WHERE s.token = $1 AND s.used_at > $2 AND s.created_at > $3`, tokenHash(token), now.Add(-SessionIdle), now.Add(-SessionLifetime)).Scan(&c.ID, &locale, &created, &used, &mac)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Citizen{}, ErrSignedOut
	case err != nil:
		return Citizen{}, failed("reading a citizen's session", err)
	case !s.believesSession(ctx, mac, tokenHash(token), c.ID, created):
		return Citizen{}, ErrSignedOut
	}
	c.Locale = money.Language(locale)
	if now.Sub(used) >= usedEvery {
		if _, err := s.cfg.Pool.Exec(ctx, `UPDATE citizen_sessions SET used_at = greatest(used_at, $2) WHERE token = $1`, tokenHash(token), now); err != nil {
			return Citizen{}, failed("using a citizen's session", err)
		}
	}
	err = s.mask(ctx, &c)
	return c, err
}

// believesSession reports whether one of our roles has begun a session of this account at this time.
func (s *Store) believesSession(ctx context.Context, mac, token []byte, citizenID string, created time.Time) bool {
	return s.believes(ctx, mac, "citizen_sessions", "of account "+citizenID, sessionValues(token, citizenID, created))
}

// mask sets the addresses of an account, for their owner.
func (s *Store) mask(ctx context.Context, c *Citizen) error {
	addresses, err := s.stored(ctx, s.cfg.Pool, c.ID)
	for _, a := range addresses {
		c.Addresses = append(c.Addresses, a.Masked())
		if !s.recent(a) {
			c.Unproven = append(c.Unproven, a.Masked())
		}
	}
	return err
}

// Addresses returns the addresses of an account to which messages may go, the one proven the
// longest time ago first: those that were proven in the last 90 days. A number that nobody has
// proven for so long may belong to somebody else, also when its account is in use by a passkey or
// by another address.
func (s *Store) Addresses(ctx context.Context, citizenID string) (out []contact.Address, err error) {
	all, err := s.stored(ctx, s.cfg.Pool, citizenID)
	for _, a := range all {
		if s.recent(a) {
			out = append(out, a.Address)
		}
	}
	return out, err
}

// storedAddress is an address of an account.
type storedAddress struct {
	contact.Address

	id       uuid.UUID
	provenAt time.Time
}

// recent reports whether messages may go to an address.
func (s *Store) recent(a storedAddress) bool {
	return s.cfg.Now().Before(a.provenAt.Add(proveAgainAfter))
}

// stored returns all addresses of an account that are believed, the one proven the longest time ago first.
func (s *Store) stored(ctx context.Context, db signed.Querier, citizenID string) (out []storedAddress, err error) {
	rows, _ := db.Query(ctx, `SELECT kind, id, hash, sealed, coalesce(mac_at, proven_at), mac FROM citizen_addresses WHERE citizen_id = $1 ORDER BY coalesce(mac_at, proven_at), id`, citizenID) // the rows return its error
	var kind string
	var id uuid.UUID
	var hash, sealed, mac []byte
	var provenAt time.Time
	_, err = pgx.ForEachRow(rows, []any{&kind, &id, &hash, &sealed, &provenAt, &mac}, func() error {
		if !s.believesAddress(ctx, mac, id, hash, citizenID, kind, provenAt) {
			return nil
		}
		a, err := s.openAddress(contact.Kind(kind), id, sealed)
		if err != nil {
			return err
		}
		out = append(out, storedAddress{a, id, provenAt})
		return nil
	})
	return out, failed("reading a citizen's addresses", err)
}

// believesAddress reports whether one of our roles has found the address proven for this account at this time.
func (s *Store) believesAddress(ctx context.Context, mac []byte, id uuid.UUID, hash []byte, citizenID, kind string, provenAt time.Time) bool {
	return s.believes(ctx, mac, "citizen_addresses", id.String()+" of account "+citizenID, addressValues(id.String(), hash, citizenID, kind, provenAt))
}

// addressMAC proves an address.
func (s *Store) addressMAC(id uuid.UUID, hash []byte, citizenID, kind string, provenAt time.Time) []byte {
	return signed.MAC(s.macs, "citizen_addresses", addressValues(id.String(), hash, citizenID, kind, provenAt)...)
}

// SignOut ends a session. It may be repeated.
func (s *Store) SignOut(ctx context.Context, token secret.Text) error {
	_, err := s.cfg.Pool.Exec(ctx, `DELETE FROM citizen_sessions WHERE token = $1`, tokenHash(token))
	return failed("signing out", err)
}

// SignOutEverywhere ends all sessions of the account of a session, this one too, and forgets the
// browsers in which it signed in (Remember). The error of a
// session that has ended is ErrSignedOut.
func (s *Store) SignOutEverywhere(ctx context.Context, token secret.Text) error {
	now := s.cfg.Now().UTC()
	return failed("signing out everywhere", pgx.BeginFunc(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		citizenID, _, err := s.begun(ctx, tx, token, now)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM citizen_sessions WHERE citizen_id = $1`, citizenID); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM known_browsers WHERE citizen_id = $1`, citizenID); err != nil {
			return err
		}
		return s.record(ctx, tx, citizenID, "citizen.sign_out_everywhere")
	}))
}

// begun returns the account of a session and when the session began.
func (s *Store) begun(ctx context.Context, db querier, token secret.Text, now time.Time) (citizenID string, at time.Time, err error) {
	var mac []byte
	err = db.QueryRow(ctx, `SELECT citizen_id::text, created_at, mac FROM citizen_sessions WHERE token = $1 AND used_at > $2 AND created_at > $3`,
		tokenHash(token), now.Add(-SessionIdle), now.Add(-SessionLifetime)).Scan(&citizenID, &at, &mac)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && !s.believesSession(ctx, mac, tokenHash(token), citizenID, at) {
		return "", time.Time{}, ErrSignedOut
	}
	return citizenID, at, err
}

func tokenHash(token secret.Text) []byte {
	sum := sha256.Sum256([]byte(token.Reveal()))
	return sum[:]
}
