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
	rows, _ := s.pool.Query(ctx, `SELECT kind, livemode, batch, number, signed, at FROM disbursement_signatures WHERE tenant_id = $1 AND at > $2 ORDER BY at DESC LIMIT 200`,
		in.TenantID, now.Add(-SignatureLife)) // the rows carry its error
	out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (f FirstSignature, err error) {
		var signed []byte
		f.TenantID = in.TenantID
		err = row.Scan(&f.Kind, &f.Live, &f.Batch, &f.Number, &signed, &f.At)
		f.At = f.At.UTC()
		return f, errors.Join(err, json.Unmarshal(signed, &f.Signed))
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
