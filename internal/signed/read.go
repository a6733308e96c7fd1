package signed

import (
	"context"
	"crypto/sha256"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"quittance/internal/secret"
)

// Querier is a transaction of Postgres.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Verifier verifies signatures. It remembers those that it has verified, because an Ed25519
// verification takes longer than everything else of a reading. It is safe for concurrent use. Nil
// verifies nothing.
type Verifier struct {
	keys *secret.Keys

	mu       sync.Mutex
	now, old map[[sha256.Size]byte]bool // digests of rows with their signatures
}

// NewVerifier makes a Verifier. It is nil without keys.
func NewVerifier(keys *secret.Keys) *Verifier {
	if keys == nil {
		return nil
	}
	return &Verifier{keys: keys, now: map[[sha256.Size]byte]bool{}}
}

// Forget drops what no reading since the last Forget has used. Call it after a reading of everything.
func (v *Verifier) Forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.old, v.now = v.now, make(map[[sha256.Size]byte]bool, len(v.now))
}

// verify reports whether the row may be believed.
func (v *Verifier) verify(t *Table, r Row) bool {
	if v == nil {
		return false
	}
	if !r.Signed {
		return t.saysNothing(r.columns)
	}
	at := sha256.Sum256(append(r.digest[:], r.signature...))
	v.mu.Lock()
	known := v.now[at] || v.old[at]
	if known {
		v.now[at] = true
	}
	v.mu.Unlock()
	signed := func(label string) bool { return v.keys.VerifySignature(label, r.digest[:], r.signature) }
	if known || !slices.ContainsFunc(t.labels(), signed) {
		return known
	}
	v.mu.Lock()
	v.now[at] = true
	v.mu.Unlock()
	return true
}

// Read calls take with each row of a table of Tables, in the order of the table, and with the row that
// says whether it verifies. R is a struct with a field for each column that the caller needs, named
// after it without underscores. The row is read once, so what is believed is what was verified. Columns
// that R lacks are signed, too: those that a newer release has added.
func Read[R any](ctx context.Context, q Querier, v *Verifier, table string, take func(R, Row)) error {
	return read(ctx, q, v, find(table), "", nil, take)
}

func read[R any](ctx context.Context, q Querier, v *Verifier, t *Table, where string, args []any, take func(R, Row)) error {
	rows, err := t.query(ctx, q, where, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	var into []int // field of R by column
	for rows.Next() {
		var out R
		at := reflect.ValueOf(&out).Elem()
		if into == nil {
			if into, err = fields(at.Type(), rows); err != nil {
				return fmt.Errorf("reading %s: %w", t.Name, err)
			}
		}
		r, err := t.scan(rows)
		if err != nil {
			return fmt.Errorf("reading %s: %w", t.Name, err)
		}
		r.Verified = v.verify(t, r)
		targets := make([]any, len(into))
		for i, field := range into {
			if field >= 0 {
				targets[i] = at.Field(field).Addr().Interface()
			}
		}
		if err := rows.Scan(targets...); err != nil {
			return fmt.Errorf("reading %s: %w", t.Name, err)
		}
		take(out, r)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("reading %s: %w", t.Name, err)
	}
	return nil
}

// One calls take with the row of a table that has the primary key, if there is one. Otherwise it is
// like Read.
func One[R any](ctx context.Context, q Querier, v *Verifier, take func(R, Row), table string, key ...any) error {
	t := find(table)
	where, args := t.where(key)
	return read(ctx, q, v, t, `WHERE `+where, args, take)
}

// Find calls take with each row that has a value in a column. Otherwise it is like Read.
func Find[R any](ctx context.Context, q Querier, v *Verifier, take func(R, Row), table, column string, value any) error {
	return read(ctx, q, v, find(table), `WHERE `+column+` = $1`, []any{value}, take)
}

// fields returns the index of the field of a struct for each column; -1 for none. A field without a
// column is an error.
func fields(of reflect.Type, rows pgx.Rows) ([]int, error) {
	var out []int
	matched := 0
	for _, column := range rows.FieldDescriptions() {
		field, ok := of.FieldByNameFunc(func(name string) bool {
			return strings.EqualFold(name, strings.ReplaceAll(column.Name, "_", ""))
		})
		if !ok {
			out = append(out, -1)
			continue
		}
		out, matched = append(out, field.Index[0]), matched+1
	}
	if matched != of.NumField() {
		return nil, fmt.Errorf("the table has %d of the %d columns of %s", matched, of.NumField(), of)
	}
	return out, nil
}

func (t *Table) query(ctx context.Context, q Querier, where string, args ...any) (pgx.Rows, error) {
	order := t.Order
	if order == "" {
		order = strings.Join(t.Key, ", ")
	}
	// A prepared statement would fail after a migration has added a column.
	rows, err := q.Query(ctx, `SELECT * FROM `+t.Name+` `+where+` ORDER BY `+order, append([]any{pgx.QueryExecModeDescribeExec}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", t.Name, err)
	}
	return rows, nil
}

// all reads the rows of all tables of Tables, in their order.
func all(ctx context.Context, q Querier, v *Verifier) (out []Row, err error) {
	for _, name := range Names() {
		if err := List(ctx, q, v, name, func(r Row) { out = append(out, r) }); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// List calls take with each row of a table of Tables, for a caller that does not need its values.
func List(ctx context.Context, q Querier, v *Verifier, table string, take func(Row)) error {
	t := find(table)
	rows, err := t.query(ctx, q, "")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		r, err := t.scan(rows)
		if err != nil {
			return fmt.Errorf("reading %s: %w", t.Name, err)
		}
		r.Verified = v.verify(t, r)
		take(r)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("reading %s: %w", t.Name, err)
	}
	return nil
}
