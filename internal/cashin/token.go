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

// Known finds the access with an apiKey, in force or not. It proves nothing: quotas and the
// usage count by it before the secretKey is checked.
func (s *Store) Known(ctx context.Context, apiKey string) (p Principal, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	digest := registry.DigestOf(secret.NewText(apiKey))
	switch err = s.cfg.Pool.QueryRow(ctx, `SELECT id, application_id, live FROM cashin_pairs WHERE api_key_hash = $1`, digest[:]).Scan(&p.PairID, &p.ApplicationID, &p.Live); {
	case errors.Is(err, pgx.ErrNoRows):
		return Principal{}, false, nil
	case err != nil:
		return Principal{}, false, fmt.Errorf("reading a pair: %w", err)
	}
	return p, true, nil
}

// Generate mints an access token for a pair in force of an active application. It also
// deletes the tokens that have expired. The error is ErrUnauthorized, or that of a Postgres
// that is away. A wrong secretKey and an unknown apiKey take the same time.
func (s *Store) Generate(ctx context.Context, apiKey, secretKey string) (token secret.Text, expiresAt time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	key, presented := secret.NewText(apiKey), registry.DigestOf(secret.NewText(secretKey))
	digest := registry.DigestOf(key)
	var pairID string
	stored := make([]byte, len(presented)) // no secret has this hash
	err = s.cfg.Pool.QueryRow(ctx, `SELECT p.id, p.secret_hash FROM cashin_pairs p JOIN applications a ON a.id = p.application_id
		WHERE p.api_key_hash = $1 AND p.revoked_at IS NULL AND a.active`, digest[:]).Scan(&pairID, &stored)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return secret.Text{}, time.Time{}, fmt.Errorf("reading a pair: %w", err)
	}
	if subtle.ConstantTimeCompare(stored, presented[:]) == 0 || pairID == "" || secret.IsDemo(key) && !s.cfg.Demo {
		return secret.Text{}, time.Time{}, ErrUnauthorized
	}
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
