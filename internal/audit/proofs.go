package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Proof is what speaks for a row of the audit table.
type Proof struct {
	// Number is that of its record in the topic audit; 0 while no relay has recorded it.
	Number int64
	// Signed is true if a program that holds the key has written the row.
	Signed bool
	// Decision is what the passkey of a person has signed with it; nil for none. It is not verified here.
	Decision *Decision
}

// Decision is a decision of a passkey that a row names.
type Decision struct {
	ID, Kind, Subject, Verdict string
	At                         time.Time // UTC
}

// Reader reads the audit table for people's pages. Safe for concurrent use.
type Reader struct {
	pool   *pgxpool.Pool
	verify Signatures
}

// NewReader makes a reader that verifies the signatures of rows.
func NewReader(pool *pgxpool.Pool, verify Signatures) *Reader { return &Reader{pool, verify} }

// List is the function List.
func (r *Reader) List(ctx context.Context, f Filter) ([]Recorded, error) { return List(ctx, r.pool, f) }

// Person returns the id of the member of staff with a name, of an agency or of the service; of anybody without an agency. It is empty
// for nobody.
func (r *Reader) Person(ctx context.Context, name, agencyID string) (id string, err error) {
	rows, _ := r.pool.Query(ctx, `SELECT id::text FROM staff WHERE lower(name) = lower($1) AND ($2 = '' OR agency_id IS NULL OR agency_id::text = $2) LIMIT 1`, valid(name), agencyID)
	return one(rows)
}

// Name returns the name of the member of staff with an id; empty for nobody.
func (r *Reader) Name(ctx context.Context, id string) (name string, err error) {
	if uuid.Validate(id) != nil {
		return "", nil
	}
	rows, _ := r.pool.Query(ctx, `SELECT name FROM staff WHERE id = $1`, id)
	return one(rows)
}

// one returns the text of a row; empty without one.
func one(rows pgx.Rows) (string, error) {
	text, err := pgx.CollectOneRow(rows, pgx.RowTo[string])
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading who acted: %w", err)
	}
	return text, nil
}

// Proofs returns what speaks for rows, by their ids. It does not compare them with the topic: Verify does.
func (r *Reader) Proofs(ctx context.Context, rows []Recorded) (map[int64]Proof, error) {
	ids, named := make([]int64, len(rows)), map[int64]string{}
	for i, row := range rows {
		ids[i] = row.ID
		var detail struct {
			Proof string `json:"proof"`
		}
		if json.Unmarshal(row.Detail, &detail) == nil && detail.Proof != "" { // else the detail is of another shape
			named[row.ID] = detail.Proof
		}
	}
	found, _ := r.pool.Query(ctx, `SELECT `+columns+` FROM audit a LEFT JOIN audit_sequence s ON s.row_id = a.id WHERE a.id = ANY($1)`, ids)
	read, err := pgx.CollectRows(found, scan)
	if err != nil {
		return nil, fmt.Errorf("reading the proofs of the audit table: %w", err)
	}
	decisions, err := decisionsOf(ctx, r.pool, named)
	if err != nil {
		return nil, err
	}
	out := map[int64]Proof{}
	for _, v := range read {
		p := Proof{Number: v.sequence, Signed: v.proof(r.verify) == proofSigned}
		if d, known := decisions[named[v.id]]; known {
			p.Decision = &d
		}
		out[v.id] = p
	}
	return out, nil
}

// decisionsOf returns the decisions that rows name, by their ids.
func decisionsOf(ctx context.Context, pool *pgxpool.Pool, named map[int64]string) (map[string]Decision, error) {
	if len(named) == 0 {
		return nil, nil
	}
	ids := make([]uuid.UUID, 0, len(named))
	for _, text := range named {
		if id, err := uuid.Parse(text); err == nil { // a row that somebody has inserted may name anything
			ids = append(ids, id)
		}
	}
	found, _ := pool.Query(ctx, `SELECT id::text, kind, subject, verdict, at FROM decisions WHERE id = ANY($1)`, ids)
	list, err := pgx.CollectRows(found, pgx.RowToStructByPos[Decision])
	if err != nil {
		return nil, fmt.Errorf("reading the decisions of the audit table: %w", err)
	}
	out := map[string]Decision{}
	for _, d := range list {
		d.At = d.At.UTC()
		out[d.ID] = d
	}
	return out, nil
}
