package intake

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/journal"
	"quittance/internal/kafka"
	"quittance/schemas/record"
)

// lineKey is a line as the journal keeps it: its id and the hash of what it says, and which life of it this is. The life is
// the number of times that the line was withdrawn before.
type lineKey struct {
	id      string
	content uint64 // of the first life
	life    int32
}

// keyOf returns the key of a line in its first life.
func keyOf(l *record.StatementLine) (lineKey, error) {
	first := *l
	first.Life = 0
	row, err := journal.LineOf(&first, 0, 0)
	if err != nil {
		return lineKey{}, err
	}
	return lineKey{id: row.ID, content: row.Content}, nil
}

// livesOf returns how often lines of the account were withdrawn.
func (l *ledger) livesOf(ctx context.Context, tx pgx.Tx) (map[lineKey]int32, error) {
	rows, err := tx.Query(ctx, `SELECT n.line_id, n.content, count(*)::int FROM statement_imports i JOIN statement_withdrawals w ON w.import_id = i.id JOIN statement_withdrawn_lines n ON n.withdrawal_id = w.id
		WHERE (i.agency_id, i.live, i.code) = ($1, $2, $3) AND i.state = 'withdrawn' AND w.state = 'done' GROUP BY n.line_id, n.content`, l.account()...)
	if err != nil {
		return nil, fmt.Errorf("reading withdrawn lines: %w", err)
	}
	out := map[lineKey]int32{}
	var key lineKey
	var content int64
	var lives int32
	_, err = pgx.ForEachRow(rows, []any{&key.id, &content, &lives}, func() error {
		key.content = uint64(content) //nolint:gosec // the bits count
		out[key] = lives
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading withdrawn lines: %w", err)
	}
	return out, nil
}

// lifeOf returns which life a line has that is imported now.
func (i *attempt) lifeOf(l *record.StatementLine) (int32, error) {
	if len(i.lives) == 0 {
		return 0, nil
	}
	key, err := keyOf(l)
	return i.lives[key], err
}

// ErrRecords says that Kafka has not all records of an accepted import.
var ErrRecords = errors.New("the topic of statements lacks records of an import: it cannot be withdrawn")

// recordsOf gives the records of an accepted import to line and, if it is not nil, to statement.
func (l *ledger) recordsOf(ctx context.Context, w *writer, of *Withdrawal, line func(*record.StatementLine) error, statement func(*record.Statement) error) error {
	lines, heads := 0, len(of.Statements)
	for _, f := range of.Statements {
		lines += f.Lines
	}
	reading, cancel := context.WithTimeout(ctx, transactionTimeout)
	defer cancel()
	err := l.cfg.Kafka.Read(reading, w.topic, map[int32]kafka.Span{of.partition: {From: of.from, To: w.end}}, nil, func(r *kgo.Record) (bool, error) {
		if !hasImport(r, of.ImportID) {
			return true, nil
		}
		name, err := l.cfg.Codec.NameOf(r.Value)
		if err != nil {
			return false, err
		}
		if name == (*record.Statement)(nil).Name() {
			heads--
			if statement == nil {
				return heads > 0, nil
			}
			s := new(record.Statement)
			if err := l.cfg.Codec.Decode(r.Value, s); err != nil {
				return false, err
			}
			return heads > 0, statement(s)
		}
		lines--
		s := new(record.StatementLine)
		if err := l.cfg.Codec.Decode(r.Value, s); err != nil {
			return false, err
		}
		return true, line(s)
	})
	switch {
	case err != nil:
		return fmt.Errorf("reading the records of import %s: %w", of.ImportID, err)
	case lines != 0 || heads != 0:
		return fmt.Errorf("%w: %s lacks %d lines and %d statements", ErrRecords, of.ImportID, lines, heads)
	}
	return nil
}

func hasImport(r *kgo.Record, id string) bool {
	for _, h := range r.Headers {
		if h.Key == headerImport && string(h.Value) == id {
			return true
		}
	}
	return false
}

// importsOf returns the other accepted imports of the account that may have lines of an import: those with days of it,
// or with a statement of the same id.
func importsOf(ctx context.Context, tx pgx.Tx, than *Withdrawal, first, last string) ([]Withdrawal, error) {
	ids := make([]string, len(than.Statements))
	for i, f := range than.Statements {
		ids[i] = f.ID
	}
	rows, err := tx.Query(ctx, `SELECT i.id::text, i.partition, i.from_offset, i.plan -> 'statements' FROM statement_imports i
		WHERE (i.agency_id, i.live, i.code) = ($1, $2, $3) AND i.state = 'accepted' AND i.id <> $4
		AND EXISTS (SELECT FROM statements s WHERE s.import_id = i.id AND (s.from_day <= $6 AND s.to_day >= $5 OR s.from_day = '' OR s.statement_id = ANY ($7)))`,
		than.AgencyID, than.Live, than.Code, than.ImportID, first, last, ids)
	if err != nil {
		return nil, fmt.Errorf("looking for imports of the same days: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (other Withdrawal, err error) {
		return other, row.Scan(&other.ImportID, &other.partition, &other.from, &other.Statements)
	})
}
