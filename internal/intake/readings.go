package intake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/operation"
	"quittance/internal/secret"
)

// LabelReading is the label of the keys of files that people may read on pages. Whoever has it opens the files that two people
// have allowed, and no other one.
const LabelReading = "statement reading"

// ReadingsConfig configures Readings. All fields but Every are required.
type ReadingsConfig struct {
	Pool *pgxpool.Pool
	// Keys open the keys of files, seal those of readings and verify what people have signed.
	Keys *secret.Keys
	Now  func() time.Time
	Log  *slog.Logger
	// Every is the time between two looks; two seconds when zero.
	Every time.Duration
}

// Readings seal, for the pages, the keys of files that two people have allowed a person to read there. The pages have no key of
// other files.
type Readings struct {
	cfg ReadingsConfig
	// refused are the requests that were refused before, by id, so that each is logged once.
	refused map[string]bool
	// others are the requests whose file was not the allowed one, by id: each file is hashed once.
	others map[string][2]string
}

// NewReadings makes Readings.
func NewReadings(cfg ReadingsConfig) (*Readings, error) {
	if cfg.Pool == nil || cfg.Keys == nil || cfg.Now == nil || cfg.Log == nil {
		return nil, errors.New("readings of statements: Pool, Keys, Now and Log are required")
	}
	if cfg.Every == 0 {
		cfg.Every = 2 * time.Second
	}
	return &Readings{cfg: cfg, refused: map[string]bool{}, others: map[string][2]string{}}, nil
}

// Run opens what waits until ctx ends. An error of the database is logged, and the next look tries again.
func (r *Readings) Run(ctx context.Context) error {
	ticker := time.NewTicker(r.cfg.Every)
	defer ticker.Stop()
	for {
		if err := r.Open(ctx); err != nil && ctx.Err() == nil {
			r.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "files of statements are not opened for the pages", slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Open seals the keys of all requests that were approved on pages and can be read still, and deletes those that were sealed for
// requests that are over. One that people have not signed, or whose file is gone, stays as it is. An error about one request
// does not stop the others.
func (r *Readings) Open(ctx context.Context) error {
	now := r.cfg.Now()
	if _, err := r.cfg.Pool.Exec(ctx, `UPDATE statement_original_requests SET reading = NULL WHERE reading IS NOT NULL AND approved_at < $1`, now.Add(-requestLife)); err != nil {
		return fmt.Errorf("deleting keys of files: %w", err)
	}
	rows, err := r.cfg.Pool.Query(ctx, `SELECT id::text FROM statement_original_requests WHERE reading IS NULL AND approved_proof IS NOT NULL AND approved_at >= $1 ORDER BY approved_at`, now.Add(-requestLife))
	if err != nil {
		return fmt.Errorf("reading approved requests: %w", err)
	}
	waiting, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("reading approved requests: %w", err)
	}
	var failed []error
	for _, id := range waiting {
		err := r.open(ctx, id, now)
		var refusal *operation.Error
		switch known := errors.As(err, &refusal) || errors.Is(err, ErrOriginal); {
		case err == nil:
			delete(r.refused, id)
		case !known:
			failed = append(failed, fmt.Errorf("opening a file for the pages, request %s: %w", id, err))
		case !r.refused[id]:
			r.refused[id] = true
			r.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "a request to read the file of an import is not carried out", slog.String("request", id), slog.Any("error", err))
		}
	}
	return errors.Join(failed...)
}

// errOtherFile says that the stored file is not the one that was allowed.
var errOtherFile = fmt.Errorf("%w: its SHA-256 is not that of the file that two people have allowed", ErrOriginal)

// open seals the key of a file for a request. What was allowed is a file with a digest, and whoever writes Postgres has the request
// name another import, whose row says the same: so the file is hashed first, outside of a transaction, since it can be large.
func (r *Readings) open(ctx context.Context, id string, now time.Time) error {
	var first OriginalRequest
	var key []byte
	err := pgx.BeginFunc(ctx, r.cfg.Pool, func(tx pgx.Tx) (err error) {
		if first, err = oneRequest(ctx, tx, id, ""); err != nil || first.Readable {
			return err
		}
		if err := first.pact.agreed(ctx, tx, r.cfg.Keys, now, now); err != nil {
			return err
		}
		key, err = originalKey(ctx, tx, r.cfg.Keys, uuid.MustParse(first.ImportID))
		return err
	})
	if err != nil || first.Readable {
		return err
	}
	if other, seen := r.others[id]; seen && other == first.bindings() {
		return errOtherFile
	}
	sum := sha256.New()
	if err := writeOriginal(ctx, r.cfg.Pool, uuid.MustParse(first.ImportID), key, sum); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != first.digest {
		r.others[id] = first.bindings()
		return errOtherFile
	}
	return pgx.BeginFunc(ctx, r.cfg.Pool, func(tx pgx.Tx) error {
		q, err := oneRequest(ctx, tx, id, " FOR UPDATE OF r")
		if err != nil || q.Readable {
			return err
		}
		if q.bindings() != first.bindings() {
			return errOtherFile
		}
		if err := q.pact.agreed(ctx, tx, r.cfg.Keys, now, now); err != nil {
			return err
		}
		sealed, err := r.cfg.Keys.Seal(LabelReading, key, q.bound())
		if err == nil {
			_, err = tx.Exec(ctx, `UPDATE statement_original_requests SET reading = $2 WHERE id = $1`, q.ID, sealed)
		}
		return err
	})
}

// bindings are the import of a request and the digest that was allowed.
func (r OriginalRequest) bindings() [2]string { return [2]string{r.ImportID, r.digest} }
