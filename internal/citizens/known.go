package citizens

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/internal/contact"
	"quittance/internal/secret"
)

// KnownFor is how long after a sign-in a browser is known for its address.
const KnownFor = 180 * 24 * time.Hour

// knownBrowsers is the number of browsers that an address can have. The one that signed in the
// longest time ago is forgotten first.
const knownBrowsers = 5

// LabelKnownBrowser separates the seal of the cookie from others.
const LabelKnownBrowser = "citizen known browser"

// knownID is the length of a browser's random id. In the cookie, the time follows it.
const knownID = 16

// Remember records that a code of an address was entered in a browser, and returns the value
// of the browser's cookie. cookie is the value that it had; empty for none. The cookie is no
// credential: it gives the browser limits of its own for addresses that have signed in with
// it, and says nothing about them.
func (s *Store) Remember(ctx context.Context, citizenID string, a contact.Address, cookie secret.Text) (secret.Text, error) {
	const what = "remembering a browser"
	now, address := s.cfg.Now().UTC(), s.hash(a)
	id := s.browserID(cookie, now)
	if id == nil {
		id = make([]byte, knownID)
		_, _ = rand.Read(id) // never fails
	}
	err := s.locked(ctx, what, [][]byte{addressLock(address)}, func(tx pgx.Tx) error {
		// The account may have lost the address meanwhile.
		if _, err := tx.Exec(ctx, `INSERT INTO known_browsers (key, address, citizen_id, used_at) SELECT $1, hash, citizen_id, $4 FROM citizen_addresses WHERE hash = $2 AND citizen_id = $3
			ON CONFLICT (key) DO UPDATE SET citizen_id = excluded.citizen_id, used_at = excluded.used_at`, knownKey(address, id), address, citizenID, now); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `DELETE FROM known_browsers WHERE key IN (SELECT key FROM known_browsers WHERE address = $1 ORDER BY used_at DESC, key OFFSET $2)`, address, knownBrowsers)
		return err
	})
	if err != nil {
		return secret.Text{}, err
	}
	sealed, err := s.cfg.Keys.Seal(LabelKnownBrowser, binary.BigEndian.AppendUint64(id, uint64(now.Unix())), nil) //nolint:gosec // after 1970
	return secret.NewText(base64.RawURLEncoding.EncodeToString(sealed)), failed(what, err)
}

// browserID returns the id in a cookie; nil if nobody but us could have made it or it is too
// old.
func (s *Store) browserID(cookie secret.Text, now time.Time) []byte {
	sealed, err := base64.RawURLEncoding.DecodeString(cookie.Reveal())
	if err != nil || len(sealed) == 0 {
		return nil
	}
	plain, err := s.cfg.Keys.OpenCredential(LabelKnownBrowser, sealed, nil)
	if err != nil || len(plain) != knownID+8 {
		return nil
	}
	made := time.Unix(int64(binary.BigEndian.Uint64(plain[knownID:])), 0) //nolint:gosec // our own
	if !now.Before(made.Add(KnownFor)) {
		return nil
	}
	return plain[:knownID:knownID]
}

// knownKey names a browser and an address. Two accounts of one browser have nothing in common.
func knownKey(address, id []byte) []byte {
	sum := sha256.Sum256(append(append([]byte("known browser|"), id...), address...))
	return sum[:]
}

// isKnown reports whether a code of the address was entered in the browser.
func (a *asked) isKnown(ctx context.Context, tx pgx.Tx) (known bool, err error) {
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM known_browsers WHERE key = $1 AND used_at > $2)`, a.known, a.now.Add(-KnownFor)).Scan(&known)
	return known, err
}
