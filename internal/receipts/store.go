package receipts

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/singleflight"

	"quittance/checkout"
	"quittance/internal/personal"
	"quittance/internal/secret"
	"quittance/internal/signed"
)

// SealedKeys are the private parts of the keys, for `secrets reseal`.
var SealedKeys = personal.Sealed{Table: "receipt_keys", Label: "receipt key"}

const (
	// maxAge is how old the keys that a Store uses may be.
	maxAge = 10 * time.Second
	// takeover is the time from the revocation of the signing key until its successor signs.
	// It is longer than maxAge, so that all processes agree on the key of a payment.
	takeover = 30 * time.Second
	// readTimeout bounds a read of the keys.
	readTimeout = 3 * time.Second
)

// StoreConfig of NewStore. All fields are required.
type StoreConfig struct {
	Pool *pgxpool.Pool
	// Keys open the private parts.
	Keys *secret.Keys
	// PublicURL is the address of the pages. Its host is the issuer of tokens.
	PublicURL string
}

// Store signs receipts with the keys of the database. It remembers the keys for a few
// seconds. It is safe for concurrent use.
type Store struct {
	cfg    StoreConfig
	base   string
	issuer string
	reads  singleflight.Group

	verifier *signed.Verifier

	mu   sync.Mutex
	last *ring
}

// ring are the keys as they were at a time of this process's monotonic clock.
type ring struct {
	keys    Keys
	private map[string]ed25519.PrivateKey // by kid
	at      time.Time
}

// NewStore makes a Store. A PublicURL without a host is an error.
func NewStore(cfg StoreConfig) (*Store, error) {
	if cfg.Pool == nil || cfg.Keys == nil {
		return nil, errors.New("receipts: Pool and Keys are required")
	}
	u, err := url.Parse(cfg.PublicURL)
	if err != nil || u.Host == "" {
		return nil, errors.New("receipts: PublicURL is not an absolute URL")
	}
	return &Store{cfg: cfg, base: u.Scheme + "://" + u.Host, issuer: u.Host, verifier: signed.NewVerifier(cfg.Keys)}, nil
}

// Issuer returns the host that tokens name: that of the pages.
func (s *Store) Issuer() string { return s.issuer }

// Keys returns all keys, at most a few seconds old. The caller must not change them.
func (s *Store) Keys(ctx context.Context) (Keys, error) {
	r, err := s.ring(ctx)
	if err != nil {
		return nil, err
	}
	return r.keys, nil
}

// Signer returns the signer of the receipts of a mode and the time at which their payment was recorded: always the same one,
// also after rotations, so that a receipt that is made again has the same bytes. The error wraps
// ErrNoKey if there is none.
func (s *Store) Signer(ctx context.Context, live bool, recordedAt time.Time) (*Signer, error) {
	r, err := s.ring(ctx)
	if err != nil {
		return nil, err
	}
	k, err := r.keys.Signing(live, recordedAt)
	if err != nil {
		return nil, err
	}
	return r.signer(k)
}

// SignerOf returns the signer of a key that is neither revoked nor unknown: else ErrUnknownKey.
func (s *Store) SignerOf(ctx context.Context, kid string) (*Signer, error) {
	r, err := s.ring(ctx)
	if err != nil {
		return nil, err
	}
	k, ok := r.keys.Find(kid)
	if !ok || !k.RevokedAt.IsZero() {
		return nil, ErrUnknownKey
	}
	return r.signer(k)
}

// Issue returns the token of the receipt of a paid due, and the address that its QR code holds.
// agency is the slug of the session's agency. Errors are those of NewClaims and Signer.
func (s *Store) Issue(ctx context.Context, agency string, session checkout.Session, transactionID string) (token, address string, err error) {
	claims, err := NewClaims(s.issuer, agency, session, transactionID)
	if err != nil {
		return "", "", err
	}
	signer, err := s.Signer(ctx, session.Live, claims.Issued())
	if err != nil {
		return "", "", fmt.Errorf("signing a receipt: %w", err)
	}
	if token, err = signer.Sign(claims); err != nil {
		return "", "", err
	}
	return token, Address(s.base, token), nil
}

// CheckAddress returns where anybody verifies receipts, as papers print it: HOST/q.
func (s *Store) CheckAddress() string { return s.issuer + "/q" }

// ring returns the keys. They are read again when they are older than maxAge.
func (s *Store) ring(ctx context.Context) (*ring, error) {
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	if last != nil && time.Since(last.at) < maxAge {
		return last, nil
	}
	read, err, _ := s.reads.Do("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
		defer cancel()
		at := time.Now()
		r := &ring{private: map[string]ed25519.PrivateKey{}, at: at}
		rows, err := readRows(ctx, s.cfg.Pool, s.verifier)
		if err != nil {
			return nil, err
		}
		// A key that we cannot sign with is none of ours: it is not published.
		rows = slices.DeleteFunc(rows, func(row row) bool {
			private, failed := row.private(s.cfg.Keys)
			r.private[row.Kid], err = private, cmp.Or(err, failed)
			return failed != nil
		})
		if len(rows) == 0 {
			return nil, cmp.Or(err, ErrNoKeys)
		}
		if r.keys, err = scheduled(rows); err != nil {
			return nil, err
		}
		s.mu.Lock()
		s.last = r
		s.mu.Unlock()
		return r, nil
	})
	if err != nil {
		return nil, err
	}
	return read.(*ring), nil //nolint:forcetypeassert // the function returns nothing else
}

// signer returns the signer of a key.
func (r *ring) signer(k Key) (*Signer, error) {
	private, ok := r.private[k.ID]
	if !ok {
		return nil, ErrNoKey
	}
	return NewSigner(k, private)
}

// row is a stored key, as its table has it.
type row struct {
	ID                   uuid.UUID
	Kid                  string
	Live                 bool
	Public, Sealed       []byte
	SignsFrom, CreatedAt time.Time
	RevokedAt            *time.Time // nil: not revoked
}

// table of the keys, see signed.Tables.
const table = "receipt_keys"

// readRows reads all keys, those of a mode together, in the order in which they sign. With a verifier it
// leaves out those whose rows do not verify.
func readRows(ctx context.Context, q signed.Querier, v *signed.Verifier) (out []row, err error) {
	err = signed.Read(ctx, q, v, table, func(r row, is signed.Row) {
		if v != nil && !is.Verified {
			return
		}
		r.SignsFrom, r.CreatedAt = r.SignsFrom.UTC(), r.CreatedAt.UTC()
		out = append(out, r)
	})
	if err != nil {
		return nil, fmt.Errorf("reading the keys of receipts: %w", err)
	}
	return out, nil
}

// revokedAt returns when the key was revoked, in UTC; zero if it was not.
func (r row) revokedAt() time.Time {
	if r.RevokedAt == nil {
		return time.Time{}
	}
	return r.RevokedAt.UTC()
}

// private opens the private part. The error says that it does not open with these keys, or that it is
// not that of the public key.
func (r row) private(keys *secret.Keys) (ed25519.PrivateKey, error) {
	seed, err := keys.Open(SealedKeys.Label, r.Sealed, r.ID[:])
	if err != nil {
		return nil, fmt.Errorf("opening the private part of the receipt key %s: %w", r.Kid, err)
	}
	if len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("the private part of the receipt key %s has %d bytes", r.Kid, len(seed))
	}
	private := ed25519.NewKeyFromSeed(seed)
	if !bytes.Equal(private[ed25519.SeedSize:], r.Public) {
		return nil, fmt.Errorf("the private part of the receipt key %s is that of another key", r.Kid)
	}
	return private, nil
}

// neverSigns reports whether the key was revoked before it signed anything.
func (r row) neverSigns() bool { return r.RevokedAt != nil && !r.RevokedAt.After(r.SignsFrom) }

// scheduled returns the keys of rows with the times at which they end: a key signs until the
// next key of its mode that is not revoked before.
func scheduled(rows []row) (Keys, error) {
	var out Keys
	for i, r := range rows {
		k, err := NewKey(r.Live, r.Public, r.SignsFrom)
		if err != nil {
			return nil, fmt.Errorf("reading the receipt key %s: %w", r.Kid, err)
		}
		if k.ID != r.Kid {
			return nil, fmt.Errorf("the receipt key %s is stored under the name %s", k.ID, r.Kid)
		}
		k.RevokedAt = r.revokedAt()
		if r.neverSigns() {
			k.Until = k.From
		} else {
			for _, next := range rows[i+1:] {
				if next.Live == r.Live && !next.neverSigns() {
					k.Until = next.SignsFrom
					break
				}
			}
		}
		out = append(out, k)
	}
	return out, nil
}
