package signed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/internal/operation"
	"quittance/internal/secret"
)

// Codes of refused operations.
const (
	// CodeNoKey says that the change needs the master keys.
	CodeNoKey = "rows.no_key"
	// CodeForged says that the change would sign a row that somebody else has written.
	CodeForged = "rows.forged"
	// CodeUnsigned says that rows are not signed yet.
	CodeUnsigned = "rows.unsigned"
	// CodeUnknown says that there is no such row.
	CodeUnknown = "rows.unknown"
	// CodeChanged says that a row is not what somebody has looked at.
	CodeChanged = "rows.changed"
	// CodeUnknownTable says that the rows of no such table are signed.
	CodeUnknownTable = "rows.unknown_table"
)

// Set are the rows of all tables as they were when a transaction began.
type Set struct {
	keys     *secret.Keys
	verifier *Verifier
	rows     map[ID]Row
	unsigned []string // tables whose rows were not signed yet
	waiting  bool     // one of them had rows
	anew     map[ID]bool
	manifest []manifest // of each family
	queued   *pgx.Batch
	lost     []string // tables that were not as the manifest says
}

// Begin reads the rows at the beginning of a transaction, which must be REPEATABLE READ. Without keys
// nothing is verified, and Sign refuses changes.
func Begin(ctx context.Context, tx pgx.Tx, keys *secret.Keys) (*Set, error) {
	s := &Set{keys: keys, verifier: NewVerifier(keys), rows: map[ID]Row{}, anew: map[ID]bool{}, queued: &pgx.Batch{}}
	list, err := all(ctx, tx, nil) // a row is verified when something depends on it
	if err != nil {
		return nil, err
	}
	for _, r := range list {
		s.rows[r.ID] = r
	}
	if s.manifest, err = readManifests(ctx, tx); err != nil {
		return nil, err
	}
	for _, m := range s.manifest {
		s.unsigned = append(s.unsigned, m.unsigned(keys, list)...)
		if keys != nil {
			s.lost = append(s.lost, m.differs(keys, list)...)
		}
	}
	slices.Sort(s.lost)
	s.waiting = needing(list, s.unsigned)
	return s, nil
}

// Forged reports whether the row does not verify. It is false for an unknown row, and without keys.
func (s *Set) Forged(id ID) bool {
	r, ok := s.rows[id]
	return s.verifier != nil && ok && !s.verified(r)
}

func (s *Set) verified(r Row) bool { return s.verifier.verify(find(r.Table), r) }

// Anew deletes a row that does not verify, so that the transaction can insert it with values of its own
// in every column. It does nothing to a row that verifies.
func (s *Set) Anew(ctx context.Context, tx pgx.Tx, id ID) error {
	if !s.Forged(id) {
		return nil
	}
	t := find(id.Table)
	where, args := t.where(s.rows[id].keys)
	if _, err := tx.Exec(ctx, `DELETE FROM `+t.Name+` WHERE `+where, args...); err != nil {
		return fmt.Errorf("making %s anew: %w", id, err)
	}
	s.anew[id] = true
	return nil
}

// where returns the condition for the row with a primary key, and its parameters from $1 on.
func (t *Table) where(keys []any) (string, []any) {
	parts := make([]string, len(t.Key))
	for i, name := range t.Key {
		parts[i] = fmt.Sprintf("%s = $%d", name, i+1)
	}
	return strings.Join(parts, " AND "), keys
}

// Sign signs the rows that the transaction has changed since Begin, and the manifest. Call it at the
// end of the transaction. Refusals are CodeNoKey, CodeUnsigned and CodeForged: the transaction must not
// commit then. at is the time of the service's clock.
func (s *Set) Sign(ctx context.Context, tx pgx.Tx, at time.Time) error {
	after, err := all(ctx, tx, nil)
	if err != nil {
		return err
	}
	changed := map[Family]bool{}
	seen := map[ID]bool{}
	var signed []Row
	for _, r := range after {
		seen[r.ID] = true
		before, known := s.rows[r.ID]
		if known && before.digest == r.digest && !s.anew[r.ID] {
			signed = append(signed, before)
			continue
		}
		changed[find(r.Table).Of] = true
		if err := s.refused(r, before, known); err != nil {
			return err
		}
		if r, err = s.sign(r); err != nil {
			return err
		}
		signed = append(signed, r)
	}
	for id := range s.rows {
		if !seen[id] {
			changed[find(id.Table).Of] = true
		}
	}
	if len(changed) == 0 {
		return nil
	}
	switch {
	case s.keys == nil:
		return operation.Refuse(CodeNoKey, "", nil)
	case s.waiting: // the manifest would call them signed
		return operation.Refuse(CodeUnsigned, "", nil)
	}
	if err := s.store(ctx, tx); err != nil {
		return err
	}
	return noKey(s.write(ctx, tx, signed, s.lost, at, func(f Family) bool { return changed[f] || changed[OfRegistry] }))
}

// write replaces the manifests of some families.
func (s *Set) write(ctx context.Context, tx pgx.Tx, rows []Row, lost []string, at time.Time, which func(Family) bool) error {
	for _, m := range s.manifest {
		if !which(m.of) {
			continue
		}
		mine := slices.DeleteFunc(slices.Clone(lost), func(table string) bool { return find(table).Of != m.of })
		if err := m.write(ctx, tx, s.keys, rows, mine, at); err != nil {
			return err
		}
	}
	return nil
}

// signer returns the label of the key of this process that signs rows of a table; false if it has none.
func (s *Set) signer(table string) (label string, ok bool) {
	for _, label := range find(table).labels() {
		if s.keys != nil && s.keys.Holds(secret.Use{Purpose: secret.PurposeSign, Label: label}) {
			return label, true
		}
	}
	return "", false
}

// Signs reports whether this process can sign the rows of a table.
func (s *Set) Signs(table string) bool {
	_, ok := s.signer(table)
	return ok
}

// refused returns why the transaction may not change a row.
func (s *Set) refused(r, before Row, known bool) error {
	_, holds := s.signer(r.Table)
	switch {
	case !holds:
		return operation.Refuse(CodeNoKey, "", nil)
	case s.waiting:
		return operation.Refuse(CodeUnsigned, "", nil)
	case known && !s.anew[before.ID] && !s.verified(before):
		return operation.Refuse(CodeForged, "", operation.Args{"table": before.Table, "key": before.Key})
	}
	return nil
}

// sign makes the signature of a row and queues that it is stored.
func (s *Set) sign(r Row) (Row, error) {
	label, ok := s.signer(r.Table)
	if !ok {
		return r, fmt.Errorf("signing %s: %w", r.ID, secret.ErrNotHeld)
	}
	signature, err := s.keys.Sign(label, r.digest[:])
	if err != nil {
		return r, fmt.Errorf("signing %s: %w", r.ID, err)
	}
	t := find(r.Table)
	where, args := t.where(r.keys)
	args = append(slices.Clone(args), signature)
	s.queued.Queue(fmt.Sprintf(`UPDATE %s SET %s = $%d WHERE %s`, t.Name, column, len(args), where), args...)
	r.signature, r.Signed, r.Verified = signature, true, true
	return r, nil
}

// store stores the signatures that are queued.
func (s *Set) store(ctx context.Context, tx pgx.Tx) error {
	batch := s.queued
	s.queued = &pgx.Batch{}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("storing signatures: %w", err)
	}
	return nil
}

// Waits reports whether there are tables that are not signed yet.
func (s *Set) Waits() bool { return len(s.unsigned) > 0 }

// SignAll signs the rows of tables that are not signed yet, because an earlier release has written them,
// and returns how many by table. It does nothing to a table that is signed: a row without a signature was
// then written by somebody else.
func (s *Set) SignAll(ctx context.Context, tx pgx.Tx, at time.Time) (map[string]int, error) {
	counts := map[string]int{}
	if !s.Waits() {
		return counts, nil
	}
	list, err := all(ctx, tx, nil)
	if err != nil {
		return nil, err
	}
	for i, r := range list {
		if !slices.Contains(s.unsigned, r.Table) {
			continue
		}
		if list[i], err = s.sign(r); err != nil {
			return nil, noKey(err)
		}
		counts[r.Table]++
		s.rows[r.ID] = list[i]
	}
	if len(counts) == 0 && !s.manifest[0].known {
		return counts, nil
	}
	if err := s.store(ctx, tx); err != nil {
		return nil, err
	}
	return counts, noKey(s.write(ctx, tx, list, s.lost, at, every))
}

// noKey turns the errors of keys that do not sign into a refusal.
func noKey(err error) error {
	if errors.Is(err, secret.ErrNotHeld) || errors.Is(err, secret.ErrKeys) {
		return operation.Refuse(CodeNoKey, "", nil)
	}
	return err
}

// SignAs signs a row as it is now, although it does not verify: seen is what somebody has looked at.
// Refusals are CodeUnknown, CodeChanged and CodeNoKey.
func (s *Set) SignAs(ctx context.Context, tx pgx.Tx, seen Row) (Row, error) {
	r, ok := s.rows[seen.ID]
	switch {
	case !ok:
		return r, operation.Refuse(CodeUnknown, "", operation.Args{"table": seen.Table})
	case r.digest != seen.digest:
		return r, operation.Refuse(CodeChanged, "", operation.Args{"table": r.Table, "key": r.Key})
	}
	r, err := s.sign(r)
	if err != nil {
		return r, noKey(err)
	}
	s.rows[r.ID] = r
	return r, s.store(ctx, tx)
}

// Adopt has Sign sign a row as the transaction leaves it, although it does not verify: seen is what somebody has looked
// at. Refusals are CodeUnknown and CodeChanged.
func (s *Set) Adopt(seen Row) error {
	r, ok := s.rows[seen.ID]
	switch {
	case !ok:
		return operation.Refuse(CodeUnknown, "", operation.Args{"table": seen.Table})
	case r.digest != seen.digest:
		return operation.Refuse(CodeChanged, "", operation.Args{"table": r.Table, "key": r.Key})
	}
	s.anew[r.ID] = true
	return nil
}

// Lost returns the tables from which signed rows were deleted, or in which some were put back to an
// earlier state, sorted.
func (s *Set) Lost() []string { return s.lost }

// Again signs up to batch rows with the newest master key that verify with an older one. more means
// that others are left. unverified is the number of rows that do not verify: they stay as they are.
func (s *Set) Again(ctx context.Context, tx pgx.Tx, batch int) (again, before, unverified int, more bool, err error) {
	for id, r := range s.rows {
		switch {
		case !s.verified(r):
			unverified++
		case !r.Signed: // says nothing
		case s.keys.SignedWithNewest(r.signature):
			before++
		case again == batch:
			more = true
		default:
			if s.rows[id], err = s.sign(r); err != nil {
				return again, before, unverified, false, noKey(err)
			}
			again++
		}
	}
	return again, before, unverified, more, s.store(ctx, tx)
}

// Conclude signs the manifest over the rows as they are now. With accept it forgets which tables had
// lost rows: somebody has looked at them.
func (s *Set) Conclude(ctx context.Context, tx pgx.Tx, accept bool, at time.Time) error {
	if s.waiting {
		return operation.Refuse(CodeUnsigned, "", nil) // the manifest would call them signed
	}
	list, err := all(ctx, tx, nil)
	if err != nil {
		return err
	}
	lost := s.lost
	if accept {
		lost = nil
	}
	return noKey(s.write(ctx, tx, list, lost, at, every))
}

func every(Family) bool { return true }

// Keys counts the signatures by the id of the master key that made them.
func (s *Set) Keys() map[string]int {
	counts := map[string]int{}
	for _, r := range s.rows {
		if id, ok := secret.SealedWith(r.signature); ok && r.Signed {
			counts[id]++
		}
	}
	return counts
}
