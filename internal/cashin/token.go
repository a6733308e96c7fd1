package cashin

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/internal/signed"
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

// Config of a Store. Pool, Keys and Now are required.
type Config struct {
	// Pool, with the migrations of internal/postgres.
	Pool *pgxpool.Pool
	// Keys verify pairs and applications, and prove tokens (LabelTokens).
	Keys *secret.Keys
	// Now is the service's clock, UTC.
	Now func() time.Time
	// Demo accepts the pairs of the demo registry, which are public.
	Demo bool
}

// LabelTokens is of the MACs of tokens in the database, which bind a token to its pair.
const LabelTokens = "cash-in tokens"

// tokens is the table of access tokens.
const tokens = "cashin_tokens"

// Store generates, recognises and revokes access tokens. It is safe for concurrent use.
type Store struct {
	cfg      Config
	macs     *secret.MACs
	verifier *signed.Verifier
}

// New makes a store.
func New(cfg Config) (*Store, error) {
	if cfg.Pool == nil || cfg.Keys == nil || cfg.Now == nil {
		return nil, errors.New("cash-in credentials: Pool, Keys and Now are required")
	}
	macs, err := cfg.Keys.MACs(LabelTokens)
	if err != nil {
		return nil, fmt.Errorf("cash-in credentials: %w", err)
	}
	return &Store{cfg, macs, signed.NewVerifier(cfg.Keys)}, nil
}

// Check checks a pair. p is the access with the apiKey, in force or not, and zero when nobody
// has it. right reports whether the secretKey belongs to it, the pair is in force, and its
// application is active. Each answer takes the same work and the same time.
func (s *Store) Check(ctx context.Context, apiKey, secretKey string) (p Principal, right bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	key, presented := secret.NewText(apiKey), registry.DigestOf(secret.NewText(secretKey))
	digest := registry.DigestOf(key)
	// Both queries are made for every apiKey. No secret has the hash of the zero pair.
	var pair stored
	var inForce bool
	err = pgx.BeginTxFunc(ctx, s.cfg.Pool, reading, func(tx pgx.Tx) error {
		if err := signed.Find(ctx, tx, s.verifier, func(r pairRow, row signed.Row) {
			pair, inForce = toStored(r), row.Verified && r.RevokedAt == nil
		}, "cashin_pairs", "api_key_hash", digest[:]); err != nil {
			return err
		}
		active, err := s.active(ctx, tx, pair.ApplicationID)
		inForce = inForce && active
		return err
	})
	if err != nil {
		return Principal{}, false, fmt.Errorf("reading a pair: %w", err)
	}
	same := subtle.ConstantTimeCompare(pair.secretKey[:], presented[:]) == 1
	demo := secret.IsDemo(key) && !s.cfg.Demo
	return pair.principal(), same && inForce && !demo, nil
}

// reading is a transaction that sees one snapshot.
var reading = pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}

// active reports whether the application is active and its row is as it was signed.
func (s *Store) active(ctx context.Context, tx pgx.Tx, applicationID string) (active bool, err error) {
	err = signed.One(ctx, tx, s.verifier, func(r struct{ Active bool }, row signed.Row) {
		active = row.Verified && r.Active
	}, "applications", cmp.Or(applicationID, uuid.Nil.String()))
	return active, err
}

func (p stored) principal() Principal { return Principal{p.ID, p.ApplicationID, p.Live} }

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
	mac := signed.MAC(s.macs, tokens, hash[:], pairID, expiresAt)
	if _, err := s.cfg.Pool.Exec(ctx, `WITH expired AS (DELETE FROM cashin_tokens WHERE expires_at <= $4)
		INSERT INTO cashin_tokens (hash, pair_id, expires_at, mac) VALUES ($1, $2, $3, $5)`, hash[:], pairID, expiresAt, now, mac); err != nil {
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
	err = pgx.BeginTxFunc(ctx, s.cfg.Pool, reading, func(tx pgx.Tx) error {
		var pairID string
		var expiresAt time.Time
		var mac []byte
		err := tx.QueryRow(ctx, `SELECT pair_id::text, expires_at, mac FROM cashin_tokens WHERE hash = $1 AND expires_at > $2`, hash[:], s.cfg.Now().UTC()).Scan(&pairID, &expiresAt, &mac)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return ErrUnauthorized
		case err != nil:
			return err
		case !signed.VerifyMAC(s.macs, mac, tokens, hash[:], pairID, expiresAt):
			return ErrUnauthorized
		}
		inForce := false
		if err := signed.One(ctx, tx, s.verifier, func(r pairRow, row signed.Row) {
			p, inForce = toStored(r).principal(), row.Verified && r.RevokedAt == nil
		}, "cashin_pairs", pairID); err != nil {
			return err
		}
		active, err := s.active(ctx, tx, p.ApplicationID)
		if err == nil && (!inForce || !active) {
			err = ErrUnauthorized
		}
		return err
	})
	switch {
	case errors.Is(err, ErrUnauthorized):
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
