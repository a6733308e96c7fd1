// Package journal writes the reconciliation journal to ClickHouse: entries, receipts,
// expected money and names. Package reconciliation has the tables and their views.
package journal

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"quittance/internal/kafka/consume"
)

// ErrRefused is the error of entries that ClickHouse refuses because of their content.
var ErrRefused = fmt.Errorf("row refused by ClickHouse: %w", consume.ErrRefused)

// Store writes the journal. It is safe for concurrent use.
type Store struct{ conn driver.Conn }

// NewStore makes a store on a migrated database. It does not close the connection.
func NewStore(conn driver.Conn) *Store { return &Store{conn} }

// Row is a row of one of the tables: a pointer to a row type of this package, such as *Entry.
type Row interface {
	// Validate returns an error that wraps ErrInvalidEntry unless the row can be written.
	Validate() error
	table() *table
	key() string // names the row in errors
}

// Rows returns rows of one type as Insert takes them.
func Rows[T any, P interface {
	*T
	Row
}](rows []T) []Row {
	out := make([]Row, len(rows))
	for i := range rows {
		out[i] = P(&rows[i])
	}
	return out
}

// Insert writes rows in one batch a table, the tables in the order of tables. The entries of
// operator cases have a row in case_rows, too. A row that is inserted again, in any batch, stays
// one row under FINAL. Without rows it does nothing. Few big batches are faster than many small
// ones.
//
// When a row is invalid, Insert writes nothing and returns ErrInvalidEntry. ErrRefused means that
// ClickHouse refuses a row of the batch. For a batch of one row Insert returns it only after
// ClickHouse has refused the row twice and has accepted another row of the table in between,
// because a faulty server refuses everything. After any other error the batch may have been
// written: insert it again.
func (s *Store) Insert(ctx context.Context, rows ...Row) error {
	batches := make(map[*table][]Row, len(tables))
	for _, r := range rows {
		if err := r.Validate(); err != nil {
			return err
		}
		batches[r.table()] = append(batches[r.table()], r)
		if e, ok := r.(*Entry); ok && e.ofCase() {
			batches[caseTable] = append(batches[caseTable], e.caseRow())
		}
	}
	for _, t := range tables {
		if err := s.insert(ctx, t, batches[t]); err != nil {
			return err
		}
	}
	return nil
}

// table is a table with its columns. Statements name the columns, so that a column that a
// newer build has added gets its default.
type table struct {
	name, columns string
	row           reflect.Type
	// day is the field that selects the partition by its month. It and identity name a row: of rows that have
	// them in common the table shows one. A table without them is not made of records.
	day      int
	identity []int
}

// tables are the tables of rows in the order in which Insert writes them.
var tables = []*table{
	entryTable, caseTable, receiptTable, expectedTable, lineTable, matchTable, breakTable, totalTable, runTable, closeTable, nameTable,
}

// tableOf returns the table of rows of type T.
func tableOf[T any](name string) *table {
	t := reflect.TypeFor[T]()
	names := make([]string, t.NumField())
	for i := range names {
		names[i] = t.Field(i).Tag.Get("ch")
	}
	return &table{name: name, columns: strings.Join(names, ", "), row: t}
}

// by sets the columns that name a row.
func (t *table) by(day string, identity ...string) *table {
	columns := strings.Split(t.columns, ", ")
	t.day = slices.Index(columns, day)
	for _, column := range identity {
		t.identity = append(t.identity, slices.Index(columns, column))
	}
	return t
}

// insert writes the rows of a table.
func (s *Store) insert(ctx context.Context, t *table, rows []Row) error {
	if len(rows) == 0 {
		return nil
	}
	err := s.insertOnce(ctx, t, rows)
	if err == nil || errors.Is(err, ErrInvalidEntry) || !refuses(err) {
		return err
	}
	if len(rows) == 1 {
		// Inserting a row of the table again changes nothing.
		if other := s.conn.Exec(ctx, "INSERT INTO "+t.name+" SELECT * FROM "+t.name+" LIMIT 1"); other != nil {
			return fmt.Errorf("%w; another row of %s is refused too: %w", err, t.name, other)
		}
		// Try again: the cause may be gone.
		if err = s.insertOnce(ctx, t, rows); err == nil || !refuses(err) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", ErrRefused, err)
}

func (s *Store) insertOnce(ctx context.Context, t *table, rows []Row) error {
	batch, err := s.conn.PrepareBatch(ctx, "INSERT INTO "+t.name+" ("+t.columns+")")
	if err != nil {
		return fmt.Errorf("preparing a batch for %s: %w", t.name, err)
	}
	defer func() { _ = batch.Close() }()
	for _, r := range rows {
		if err := batch.AppendStruct(r); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrInvalidEntry, r.key(), err)
		}
	}
	if err := batch.Send(); err != nil {
		return fmt.Errorf("inserting %d rows into %s: %w", len(rows), t.name, err)
	}
	return nil
}

// passing are ClickHouse's codes for faults that concern all entries alike. They end
// after some time, or an operator ends them.
var passing = map[int32]bool{
	16:  true, // NO_SUCH_COLUMN_IN_TABLE
	60:  true, // UNKNOWN_TABLE
	81:  true, // UNKNOWN_DATABASE
	159: true, // TIMEOUT_EXCEEDED
	160: true, // TOO_SLOW
	164: true, // READONLY
	192: true, // UNKNOWN_USER
	201: true, // QUOTA_EXCEEDED
	202: true, // TOO_MANY_SIMULTANEOUS_QUERIES
	203: true, // NO_FREE_CONNECTION
	209: true, // SOCKET_TIMEOUT
	210: true, // NETWORK_ERROR
	218: true, // TABLE_IS_DROPPED
	225: true, // NO_ZOOKEEPER
	236: true, // ABORTED
	241: true, // MEMORY_LIMIT_EXCEEDED
	242: true, // TABLE_IS_READ_ONLY
	243: true, // NOT_ENOUGH_SPACE
	252: true, // TOO_MANY_PARTS
	285: true, // TOO_FEW_LIVE_REPLICAS
	286: true, // UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE
	319: true, // UNKNOWN_STATUS_OF_INSERT
	394: true, // QUERY_WAS_CANCELLED
	439: true, // CANNOT_SCHEDULE_TASK
	473: true, // DEADLOCK_AVOIDED
	497: true, // ACCESS_DENIED
	516: true, // AUTHENTICATION_FAILED
	999: true, // KEEPER_EXCEPTION
}

// refuses reports whether an insert seems to have failed because of its content: the
// same batch would fail again.
func refuses(err error) bool {
	var exc *clickhouse.Exception
	if !errors.As(err, &exc) {
		return false // the network, a proxy, our own time limit
	}
	// The code of this message is also in passing. A batch of more than a hundred months
	// must be divided.
	return !passing[exc.Code] || strings.Contains(exc.Message, "Too many partitions for single INSERT")
}
