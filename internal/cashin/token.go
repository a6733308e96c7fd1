package cashin

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/registry"
	"quittance/internal/secret"
)

// TokenLifetime is how long an access token is valid (contract, "Limits").
const TokenLifetime = 2 * time.Hour

// patience bounds every request to Postgres.
const patience = 2 * time.Second

// ErrUnauthorized says that a pair or a token is unknown, wrong, ended, or of an inactive
// application. Nobody is told which.
var ErrUnauthorized = errors.New("the credentials are refused")

// Principal is the application that a pair or a token belongs to.
type Principal struct {
	// PairID identifies the access that quotas count.
	PairID        string
	ApplicationID string
	Live          bool
}

// Config of a Store. Pool and Now are required.
type Config struct {
	// Pool, with the migrations of internal/postgres.
	Pool *pgxpool.Pool
	// Now is the service's clock, UTC.
	Now func() time.Time
	// Demo accepts the pairs of the demo registry, which are public.
	Demo bool
}

// Store generates, recognises and revokes access tokens. It is safe for concurrent use.
type Store struct{ cfg Config }

// New makes a store.
func New(cfg Config) (*Store, error) {
	if cfg.Pool == nil || cfg.Now == nil {
		return nil, errors.New("cash-in credentials: Pool and Now are required")
	}
	return &Store{cfg}, nil
}

// Check checks a pair. p is the access with the apiKey, in force or not, and zero when nobody
// has it. right reports whether the secretKey belongs to it, the pair is in force, and its
// application is active. Each answer takes the same work and the same time.
func (s *Store) Check(ctx context.Context, apiKey, secretKey string) (p Principal, right bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	key, presented := secret.NewText(apiKey), registry.DigestOf(secret.NewText(secretKey))
	digest := registry.DigestOf(key)
	var none registry.Digest // no secret has this hash
	var stored []byte
	var inForce bool
	// The query has one row, and searches both tables, for every apiKey.
	err = s.cfg.Pool.QueryRow(ctx, `SELECT coalesce(p.id::text, ''), coalesce(p.application_id::text, ''), coalesce(p.live, false), coalesce(p.secret_hash, $2), coalesce(p.revoked_at IS NULL AND a.active, false)
		FROM (SELECT $1::bytea AS hash) k LEFT JOIN cashin_pairs p ON p.api_key_hash = k.hash
		LEFT JOIN applications a ON a.id = coalesce(p.application_id, '00000000-0000-0000-0000-000000000000')`, digest[:], none[:]).Scan(&p.PairID, &p.ApplicationID, &p.Live, &stored, &inForce)
	if err != nil {
		return Principal{}, false, fmt.Errorf("reading a pair: %w", err)
	}
	same := subtle.ConstantTimeCompare(stored, presented[:]) == 1
	demo := secret.IsDemo(key) && !s.cfg.Demo
	return p, same && inForce && !demo, nil
}

// Generate mints an access token for a pair that Check found right. It also deletes the
// tokens that have expired.
func (s *Store) Generate(ctx context.Context, pairID string) (token secret.Text, expiresAt time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	now := s.cfg.Now().UTC()
	token, expiresAt = secret.Mint(prefixToken), now.Add(TokenLifetime)
	hash := registry.DigestOf(token)
	// The foreign key is checked, but a rotation may have ended the pair meanwhile. The token
	// then opens nothing, see Authenticate.
	if _, err := s.cfg.Pool.Exec(ctx, `WITH expired AS (DELETE FROM cashin_tokens WHERE expires_at <= $4)
		INSERT INTO cashin_tokens (hash, pair_id, expires_at) VALUES ($1, $2, $3)`, hash[:], pairID, expiresAt, now); err != nil {
		return secret.Text{}, time.Time{}, fmt.Errorf("storing a token: %w", err)
	}
	return token, expiresAt, nil
}

var tokenPattern = regexp.MustCompile(`^oat_[0-9A-Za-z]{43}$`)

// Authenticate returns the application of an access token. It asks Postgres each time. The
// error is ErrUnauthorized, or that of a Postgres that is away.
func (s *Store) Authenticate(ctx context.Context, token string) (p Principal, err error) {
	if !tokenPattern.MatchString(token) {
		return Principal{}, ErrUnauthorized
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	hash := registry.DigestOf(secret.NewText(token))
	err = s.cfg.Pool.QueryRow(ctx, `SELECT p.id, p.application_id, p.live FROM cashin_tokens t
		JOIN cashin_pairs p ON p.id = t.pair_id JOIN applications a ON a.id = p.application_id
		WHERE t.hash = $1 AND t.expires_at > $2 AND p.revoked_at IS NULL AND a.active`, hash[:], s.cfg.Now().UTC()).Scan(&p.PairID, &p.ApplicationID, &p.Live)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Principal{}, ErrUnauthorized
	case err != nil:
		return Principal{}, fmt.Errorf("reading a token: %w", err)
	}
	return p, nil
}

// RevokeToken ends an access token at once.
func (s *Store) RevokeToken(ctx context.Context, token string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	hash := registry.DigestOf(secret.NewText(token))
	if _, err := s.cfg.Pool.Exec(ctx, `DELETE FROM cashin_tokens WHERE hash = $1`, hash[:]); err != nil {
		return fmt.Errorf("revoking a token: %w", err)
	}
	return nil
}
