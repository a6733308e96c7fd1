package citizens

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/internal/operation"
)

// MaxOverlap is the longest time for which codes of the epoch before are accepted.
const MaxOverlap = 180 * 24 * time.Hour

// CodeEpoch is an epoch of all link codes of the installation. It is not that of one subject, which Renew raises.
type CodeEpoch struct {
	// Number is 0 for the first one.
	Number  int
	BeganAt time.Time // zero for the first one
	// FormerUntil is until when codes of the epoch before are accepted; zero: they are not.
	FormerUntil time.Time

	salt []byte // empty for the first one
}

// label returns what the texts of the epoch's codes begin with. The first epoch has none, so that printed codes stay
// valid. No other text begins so: others begin with the id of an agency.
func (e CodeEpoch) label() string {
	if e.Number == 0 {
		return ""
	}
	return "e" + strconv.Itoa(e.Number) + "|" + hex.EncodeToString(e.salt) + "|"
}

// CodeEpoch returns the present epoch of all link codes.
func (s *Store) CodeEpoch(ctx context.Context) (CodeEpoch, error) {
	accepted, err := s.codeEpochs(ctx, s.cfg.Pool)
	if err != nil {
		return CodeEpoch{}, failed("reading the epoch of link codes", err)
	}
	return accepted[0], nil
}

// codeEpochs returns the epochs whose codes are accepted: the present one, and the one before during an overlap.
func (s *Store) codeEpochs(ctx context.Context, db querier) ([]CodeEpoch, error) {
	var present, before CodeEpoch
	var until *time.Time
	var number *int
	err := db.QueryRow(ctx, `
		SELECT e.epoch, e.salt, e.began_at, e.former_until, b.epoch, b.salt
		FROM link_code_epochs e LEFT JOIN link_code_epochs b ON b.epoch = e.epoch - 1 ORDER BY e.epoch DESC LIMIT 1`).
		Scan(&present.Number, &present.salt, &present.BeganAt, &until, &number, &before.salt)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return []CodeEpoch{{}}, nil
	case err != nil:
		return nil, err
	case number != nil:
		before.Number = *number
	case present.Number > 1:
		return nil, fmt.Errorf("epoch %d of link codes has none before it", present.Number)
	}
	present.BeganAt = present.BeganAt.UTC()
	if until != nil {
		present.FormerUntil = until.UTC()
	}
	if s.cfg.Now().Before(present.FormerUntil) {
		return []CodeEpoch{present, before}, nil
	}
	return []CodeEpoch{present}, nil
}

// RenewCodes begins a new epoch: all link codes of all agencies are others. Codes of the epoch before are accepted for
// overlap, those of earlier ones are not. Links that there are stay. A refusal is an *operation.Error with the field
// overlap.
func (s *Store) RenewCodes(ctx context.Context, actor operation.Actor, overlap time.Duration) (CodeEpoch, error) {
	return s.changeCodes(ctx, actor, "links.renew_all", overlap, func(tx pgx.Tx, e *CodeEpoch) error {
		e.Number, e.BeganAt, e.salt = e.Number+1, s.cfg.Now().UTC(), make([]byte, 32)
		_, _ = rand.Read(e.salt) // never fails
		_, err := tx.Exec(ctx, `INSERT INTO link_code_epochs (epoch, salt, began_at) VALUES ($1, $2, $3)`, e.Number, e.salt, e.BeganAt)
		return err
	})
}

// AcceptFormer sets for how long from now codes of the epoch before are accepted; 0 ends it. A refusal is an
// *operation.Error with the field overlap: in the first epoch there is none before.
func (s *Store) AcceptFormer(ctx context.Context, actor operation.Actor, overlap time.Duration) (CodeEpoch, error) {
	return s.changeCodes(ctx, actor, "links.accept_former", overlap, func(_ pgx.Tx, e *CodeEpoch) error {
		if e.Number == 0 {
			return operation.Refuse("links.first_epoch", "overlap", nil)
		}
		return nil
	})
}

func (s *Store) changeCodes(ctx context.Context, actor operation.Actor, action string, overlap time.Duration, change func(pgx.Tx, *CodeEpoch) error) (e CodeEpoch, err error) {
	if overlap < 0 || overlap > MaxOverlap {
		return CodeEpoch{}, operation.Refuse("links.overlap_range", "overlap", operation.Args{"most": MaxOverlap.Hours()})
	}
	err = pgx.BeginFunc(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('link_code_epochs', 0))`); err != nil {
			return err
		}
		accepted, err := s.codeEpochs(ctx, tx)
		if err != nil {
			return err
		}
		e = accepted[0]
		if err := change(tx, &e); err != nil {
			return err
		}
		e.FormerUntil = time.Time{}
		var until *time.Time
		if overlap > 0 {
			e.FormerUntil = s.cfg.Now().UTC().Add(overlap)
			until = &e.FormerUntil
		}
		if _, err := tx.Exec(ctx, `UPDATE link_code_epochs SET former_until = $2 WHERE epoch = $1`, e.Number, until); err != nil {
			return err
		}
		return operation.Record(ctx, tx, actor, s.cfg.Now().UTC(), operation.Entry{Action: action, Subject: strconv.Itoa(e.Number), Detail: map[string]any{"epoch": e.Number, "former_until": until}})
	})
	return e, failed("changing the epoch of link codes", err)
}
