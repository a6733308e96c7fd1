package citizens

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/contact"
	"quittance/internal/secret"
)

// Config of New. All fields are required.
type Config struct {
	Pool *pgxpool.Pool
	// Keys seal addresses.
	Keys *secret.Keys
	// Reference makes the hashes by which addresses are found, and link codes. It must stay
	// the same, or accounts are not found and printed codes are void.
	Reference *secret.ReferenceKey
	// Now is the time of the service.
	Now func() time.Time
}

// Store holds the accounts. It is safe for concurrent use.
type Store struct {
	cfg                               Config
	addresses, codes, linkCodes, seen func(string) [sha256.Size]byte
}

// New makes a Store.
func New(cfg Config) (*Store, error) {
	if cfg.Pool == nil || cfg.Keys == nil || cfg.Reference == nil || cfg.Now == nil {
		return nil, errors.New("citizens: Pool, Keys, Reference and Now are required")
	}
	return &Store{
		cfg: cfg, addresses: cfg.Reference.MAC("citizen address"), codes: cfg.Reference.MAC("citizen sign-in code"), linkCodes: cfg.Reference.MAC("citizen link code"),
		seen: cfg.Reference.MAC("citizen seen dues"),
	}, nil
}

// hash is the key of an address in all tables.
func (s *Store) hash(a contact.Address) []byte {
	h := s.addresses(a.Key())
	return h[:]
}

// prefixHash is the key of the prefix of a phone number; nil for an e-mail address.
func (s *Store) prefixHash(a contact.Address) []byte {
	if a.Prefix() == "" {
		return nil
	}
	h := s.addresses("prefix|" + a.Prefix())
	return h[:]
}

// locked runs do in a transaction that holds the locks of all names, so that what it counts
// does not change before it commits. Two transactions take their locks in the same order.
func (s *Store) locked(ctx context.Context, what string, names [][]byte, do func(tx pgx.Tx) error) error {
	keys := make([]int64, 0, len(names))
	for _, name := range names {
		sum := sha256.Sum256(append([]byte("citizens|"), name...))
		keys = append(keys, int64(binary.BigEndian.Uint64(sum[:]))) //nolint:gosec // all bits count
	}
	slices.Sort(keys)
	err := pgx.BeginFunc(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		for _, key := range slices.Compact(keys) {
			if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, key); err != nil {
				return err
			}
		}
		return do(tx)
	})
	return failed(what, err)
}

func failed(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
