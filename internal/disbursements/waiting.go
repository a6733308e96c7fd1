package disbursements

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/disbursement"
	"quittance/schemas/mapping/batches"
	"quittance/schemas/record"
)

// Waiting is a batch that people have something to do about.
type Waiting struct {
	Batch
	// Cases is how many of its lines have an open case, CaseSince when the oldest of them was opened.
	// Sealing is set for a batch that is sealed or approved.
	Cases     int
	CaseSince time.Time
}

// waitingAtMost is how many batches Waiting returns: those of both modes that may be live, and as many that are done.
const waitingAtMost = 4 * disbursement.MaxLive

// Waiting returns the batches that are sealed, approved or held, and those with a line that has an open case, the newest first.
func (s *Store) Waiting(ctx context.Context, in Scope) (out []Waiting, err error) {
	// Only what is signed now needs what was sealed, which can be large.
	rows, _ := s.pool.Query(ctx, `WITH cases AS (
			SELECT l.batch, count(DISTINCT l.position) AS n, min(x.at) AS since FROM disbursement_lines l JOIN disbursement_batches o ON o.id = l.batch
				LEFT JOIN disbursement_steps x ON x.batch = l.batch AND x.lines = 1 AND x.detail ->> 'line' = l.position::text AND x.type = 'case.opened'
			WHERE l.case_kind <> '' AND ($1 = '' OR o.tenant_id = $1) GROUP BY l.batch)
		SELECT b.snapshot, CASE WHEN b.status IN ('sealed', 'approved') THEN b.sealing END, coalesce(c.n, 0), coalesce(c.since, b.opened_at)
		FROM disbursement_batches b LEFT JOIN cases c ON c.batch = b.id
		WHERE ($1 = '' OR b.tenant_id = $1) AND (b.status IN ('sealed', 'approved') OR b.held AND b.status = 'releasing' OR c.n > 0)
		ORDER BY b.id DESC LIMIT $2`, in.TenantID, waitingAtMost) // the rows carry its error
	var snapshot, sealing []byte
	var n int
	var at time.Time
	_, err = pgx.ForEachRow(rows, []any{&snapshot, &sealing, &n, &at}, func() error {
		b, err := s.decode(snapshot, sealing)
		out = append(out, Waiting{b, n, at.UTC()})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading batches that wait for people: %w", err)
	}
	return out, nil
}

// decode decodes a stored batch. sealing may be empty.
func (s *Store) decode(snapshot, sealing []byte) (b Batch, err error) {
	var r record.Batch
	if err := s.codec.Decode(snapshot, &r); err != nil {
		return b, err
	}
	b.Batch = batches.ToBatch(&r)
	if len(sealing) > 0 {
		var r record.BatchSealing
		if err := s.codec.Decode(sealing, &r); err != nil {
			return b, err
		}
		b.Sealing = batches.ToSealing(&r)
	}
	return b, nil
}

// CaseCount names what OpenCases counts.
type CaseCount struct {
	Kind string
	Live bool
}

// OpenCases returns how many lines have an open case, by its kind and mode, and how many batches are held.
func (s *Store) OpenCases(ctx context.Context) (map[CaseCount]int, error) {
	out := map[CaseCount]int{}
	for _, k := range disbursement.Cases().Kinds {
		out[CaseCount{string(k), false}], out[CaseCount{string(k), true}] = 0, 0
	}
	rows, _ := s.pool.Query(ctx, `SELECT l.case_kind, b.livemode, count(*) FROM disbursement_lines l JOIN disbursement_batches b ON b.id = l.batch WHERE l.case_kind <> '' GROUP BY 1, 2
		UNION ALL SELECT $1, livemode, count(*) FROM disbursement_batches WHERE held AND status IN ('sealed', 'approved', 'releasing') GROUP BY 2`, string(disbursement.CaseHeld)) // the rows carry its error
	var k CaseCount
	var n int
	_, err := pgx.ForEachRow(rows, []any{&k.Kind, &k.Live, &n}, func() error { out[k] = n; return nil })
	if err != nil {
		return nil, fmt.Errorf("counting cases of batches: %w", err)
	}
	return out, nil
}

// FirstSignatures returns the signatures of an agency that wait for a second one at a time, the newest first.
func (s *Store) FirstSignatures(ctx context.Context, in Scope, now time.Time) (out []FirstSignature, err error) {
	rows, _ := s.pool.Query(ctx, `SELECT kind, livemode, batch, number, content, signed, at FROM disbursement_signatures WHERE tenant_id = $1 AND at > $2 ORDER BY at DESC LIMIT 200`,
		in.TenantID, now.Add(-SignatureLife)) // the rows carry its error
	out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (f FirstSignature, err error) {
		var content, signed []byte
		f.TenantID = in.TenantID
		err = row.Scan(&f.Kind, &f.Live, &f.Batch, &f.Number, &content, &signed, &f.At)
		var c proposedContent
		err = errors.Join(err, json.Unmarshal(content, &c), json.Unmarshal(signed, &f.Signed))
		f.At, f.People, f.Policy, f.Settle = f.At.UTC(), c.People, c.Policy, c.Settle
		return f, err
	})
	if err != nil {
		return nil, fmt.Errorf("reading first signatures: %w", err)
	}
	return out, nil
}

// Line returns the line that a signature is about; ok is false for one about something else.
func (k SignatureKey) Line() (batch string, position int, ok bool) {
	batch, number, found := strings.Cut(k.Batch, "/")
	position, err := strconv.Atoi(number)
	return batch, position, found && err == nil
}

// SealedBefore returns how often earlier revisions of a batch's batch_ref were sealed in a time before a moment, as far as the read
// model knows.
func (s *Store) SealedBefore(ctx context.Context, b disbursement.Batch, at time.Time, within time.Duration) (n int, err error) {
	err = s.pool.QueryRow(ctx, `SELECT count(*) FROM disbursement_batches o JOIN disbursement_steps x ON x.batch = o.id AND x.type = 'batch.sealed'
		WHERE o.tenant_id = $1 AND o.livemode = $2 AND o.batch_ref = $3 AND o.revision < $4 AND x.at > $5 AND x.at <= $6`,
		b.TenantID, b.Live, b.BatchRef, b.Revision, at.Add(-within), at).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("counting the sealings of a batch_ref: %w", err)
	}
	return n, nil
}

// Sealed is a batch that waits for its approvals, with the event of its sealing.
type Sealed struct {
	Batch
	EventID string
	At      time.Time // UTC
}

// SealedAgain returns the batches that wait for approvals, that were sealed between two times, and of whose batch_ref at least n
// earlier revisions were sealed in a time before.
func (s *Store) SealedAgain(ctx context.Context, from, to time.Time, n int, within time.Duration) (out []Sealed, err error) {
	rows, _ := s.pool.Query(ctx, `SELECT b.snapshot, b.sealing, x.sequence, x.at FROM disbursement_batches b JOIN disbursement_steps x ON x.batch = b.id AND x.type = 'batch.sealed'
		WHERE b.status = 'sealed' AND x.at > $1 AND x.at <= $2 AND (
			SELECT count(*) FROM disbursement_batches o JOIN disbursement_steps y ON y.batch = o.id AND y.type = 'batch.sealed'
			WHERE o.tenant_id = b.tenant_id AND o.livemode = b.livemode AND o.batch_ref = b.batch_ref AND o.revision < b.revision AND y.at > x.at - $3::interval) >= $4
		ORDER BY x.at LIMIT 1000`, from, to, within, n) // the rows carry its error
	var snapshot, sealing []byte
	var sequence int64
	var at time.Time
	_, err = pgx.ForEachRow(rows, []any{&snapshot, &sealing, &sequence, &at}, func() error {
		b, err := s.decode(snapshot, sealing)
		out = append(out, Sealed{b, disbursement.EventID(b.ID, sequence), at.UTC()})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the batches that were sealed again: %w", err)
	}
	return out, nil
}
