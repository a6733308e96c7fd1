package receipts

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/singleflight"

	"quittance/checkout"
	"quittance/internal/personal"
	"quittance/internal/secret"
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

	mu   sync.Mutex
	last *ring
}

// ring are the keys as they were at a time of this process's monotonic clock.
type ring struct {
	rows []row
	keys Keys
	at   time.Time
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
	return &Store{cfg: cfg, base: u.Scheme + "://" + u.Host, issuer: u.Host}, nil
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
	return r.signer(s.cfg.Keys, k)
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
	return r.signer(s.cfg.Keys, k)
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
		rows, err := readRows(ctx, s.cfg.Pool)
		if err != nil {
			return nil, err
		}
		keys, err := scheduled(rows)
		if err != nil {
			return nil, err
		}
		r := &ring{rows: rows, keys: keys, at: at}
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

// signer opens the private part of a key.
func (r *ring) signer(keys *secret.Keys, k Key) (*Signer, error) {
	for _, row := range r.rows {
		if row.kid != k.ID {
			continue
		}
		seed, err := keys.Open(SealedKeys.Label, row.sealed, row.id[:])
		if err != nil {
			return nil, fmt.Errorf("opening the private part of the receipt key %s: %w", k.ID, err)
		}
		if len(seed) != ed25519.SeedSize {
			return nil, fmt.Errorf("the private part of the receipt key %s has %d bytes", k.ID, len(seed))
		}
		return NewSigner(k, ed25519.NewKeyFromSeed(seed))
	}
	return nil, ErrNoKey
}

// row is a stored key.
type row struct {
	id        uuid.UUID
	kid       string
	live      bool
	public    []byte
	sealed    []byte
	from      time.Time
	createdAt time.Time
	revokedAt time.Time // zero: not revoked
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// readRows reads all keys, those of a mode together, in the order in which they sign.
func readRows(ctx context.Context, q querier) ([]row, error) {
	found, _ := q.Query(ctx, `SELECT id, kid, live, public, sealed, signs_from, created_at, revoked_at FROM receipt_keys ORDER BY live, signs_from, kid`) // the rows return its error
	rows, err := pgx.CollectRows(found, func(r pgx.CollectableRow) (out row, err error) {
		var revoked *time.Time
		err = r.Scan(&out.id, &out.kid, &out.live, &out.public, &out.sealed, &out.from, &out.createdAt, &revoked)
		out.from, out.createdAt = out.from.UTC(), out.createdAt.UTC()
		if revoked != nil {
			out.revokedAt = revoked.UTC()
		}
		return out, err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the keys of receipts: %w", err)
	}
	return rows, nil
}

// neverSigns reports whether the key was revoked before it signed anything.
func (r row) neverSigns() bool { return !r.revokedAt.IsZero() && !r.revokedAt.After(r.from) }

// scheduled returns the keys of rows with the times at which they end: a key signs until the
// next key of its mode that is not revoked before.
func scheduled(rows []row) (Keys, error) {
	var out Keys
	for i, r := range rows {
		k, err := NewKey(r.live, r.public, r.from)
		if err != nil {
			return nil, fmt.Errorf("reading the receipt key %s: %w", r.kid, err)
		}
		if k.ID != r.kid {
			return nil, fmt.Errorf("the receipt key %s is stored under the name %s", k.ID, r.kid)
		}
		k.RevokedAt = r.revokedAt
		if r.neverSigns() {
			k.Until = k.From
		} else {
			for _, next := range rows[i+1:] {
				if next.live == r.live && !next.neverSigns() {
					k.Until = next.from
					break
				}
			}
		}
		out = append(out, k)
	}
	return out, nil
}
