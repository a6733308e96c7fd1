package citizens

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/signed"
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

// ErrEpochRefused says that the row of an epoch of link codes is not as it was signed: no code is accepted or made.
var ErrEpochRefused = errors.New("a row of link_code_epochs is not as it was signed: see `quittance rows list`")

// epochRow is a row of link_code_epochs.
type epochRow struct {
	Epoch       int
	Salt        []byte
	BeganAt     time.Time
	FormerUntil *time.Time
}

// codeEpochs returns the epochs whose codes are accepted: the present one, and the one before during an overlap. The
// error is ErrEpochRefused if somebody else has written one: earlier epochs, whose key may be known, are not taken
// instead. The manifest of rows tells of a row that was deleted.
func (s *Store) codeEpochs(ctx context.Context, db signed.Querier) ([]CodeEpoch, error) {
	all := []CodeEpoch{{}}
	refused := false
	err := signed.Read(ctx, db, s.verifier, "link_code_epochs", func(row epochRow, r signed.Row) {
		e := CodeEpoch{Number: row.Epoch, BeganAt: row.BeganAt.UTC(), salt: row.Salt}
		if row.FormerUntil != nil {
			e.FormerUntil = row.FormerUntil.UTC()
		}
		refused = refused || !r.Verified
		all = append(all, e)
	})
	present := all[len(all)-1]
	switch {
	case err != nil:
		return nil, err
	case refused:
		return nil, ErrEpochRefused
	case len(all) > 1 && all[len(all)-2].Number != present.Number-1:
		return nil, fmt.Errorf("epoch %d of link codes has none before it", present.Number)
	case s.cfg.Now().Before(present.FormerUntil):
		return []CodeEpoch{present, all[len(all)-2]}, nil
	}
	return []CodeEpoch{present}, nil
}

// RenewCodes begins a new epoch: all link codes of all agencies are others. Codes of the epoch before are accepted for
// overlap, those of earlier ones are not. Links that there are stay. A refusal is an *operation.Error with the field
// overlap.
func (s *Store) RenewCodes(ctx context.Context, actor operation.Actor, overlap time.Duration) (CodeEpoch, error) {
	return s.changeCodes(ctx, actor, "links.renew_all", overlap, func(tx *registry.Tx, e *CodeEpoch) error {
		e.Number, e.BeganAt, e.salt = e.Number+1, s.cfg.Now().UTC(), make([]byte, 32)
		_, _ = rand.Read(e.salt) // never fails
		_, err := tx.Exec(ctx, `INSERT INTO link_code_epochs (epoch, salt, began_at) VALUES ($1, $2, $3)`, e.Number, e.salt, e.BeganAt)
		return err
	})
}

// AcceptFormer sets for how long from now codes of the epoch before are accepted; 0 ends it. A refusal is an
// *operation.Error with the field overlap: in the first epoch there is none before.
func (s *Store) AcceptFormer(ctx context.Context, actor operation.Actor, overlap time.Duration) (CodeEpoch, error) {
	return s.changeCodes(ctx, actor, "links.accept_former", overlap, func(_ *registry.Tx, e *CodeEpoch) error {
		if e.Number == 0 {
			return operation.Refuse("links.first_epoch", "overlap", nil)
		}
		return nil
	})
}

// changeCodes changes the present epoch, and signs it. It needs the master keys.
func (s *Store) changeCodes(ctx context.Context, actor operation.Actor, action string, overlap time.Duration, change func(*registry.Tx, *CodeEpoch) error) (e CodeEpoch, err error) {
	if overlap < 0 || overlap > MaxOverlap {
		return CodeEpoch{}, operation.Refuse("links.overlap_range", "overlap", operation.Args{"most": MaxOverlap.Hours()})
	}
	err = registry.Change(ctx, s.cfg.Pool, s.cfg.Keys, s.cfg.Now().UTC(), func(tx *registry.Tx) error {
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
