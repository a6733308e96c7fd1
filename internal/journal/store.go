// Package journal writes entries of the reconciliation journal to ClickHouse. Package
// reconciliation has the table and its views.
package journal

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"quittance/internal/kafka/consume"
)

// ErrRefused is the error of entries that ClickHouse refuses because of their content.
var ErrRefused = fmt.Errorf("journal entry refused by ClickHouse: %w", consume.ErrRefused)

// Store writes the journal. It is safe for concurrent use.
type Store struct{ conn driver.Conn }

// NewStore makes a store on a migrated database. It does not close the connection.
func NewStore(conn driver.Conn) *Store { return &Store{conn} }

// columns are the columns of Entry. The statement names them, so that a column that a
// newer build has added gets its default.
var columns = func() string {
	t := reflect.TypeFor[Entry]()
	names := make([]string, t.NumField())
	for i := range names {
		names[i] = t.Field(i).Tag.Get("ch")
	}
	return strings.Join(names, ", ")
}()

// Insert writes entries in one batch. An entry that is inserted again, in any batch,
// stays one row under FINAL. An empty batch does nothing. Few big batches are faster
// than many small ones.
//
// When an entry is invalid, Insert writes nothing and returns ErrInvalidEntry.
// ErrRefused means that ClickHouse refuses an entry of the batch. For a batch of one
// entry Insert returns it only after ClickHouse has refused the entry twice and has
// accepted another entry in between, because a faulty server refuses everything. After
// any other error the batch may have been written: insert it again.
func (s *Store) Insert(ctx context.Context, entries []Entry) error {
	if len(entries) == 0 {
		return nil
	}
	err := s.insert(ctx, entries)
	if err == nil || errors.Is(err, ErrInvalidEntry) || !refuses(err) {
		return err
	}
	if len(entries) == 1 {
		// Inserting an entry of the journal again changes nothing.
		if other := s.conn.Exec(ctx, "INSERT INTO journal SELECT * FROM journal LIMIT 1"); other != nil {
			return fmt.Errorf("%w; an entry of the journal is refused too: %w", err, other)
		}
		// Try again: the cause may be gone.
		if err = s.insert(ctx, entries); err == nil || !refuses(err) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", ErrRefused, err)
}

func (s *Store) insert(ctx context.Context, entries []Entry) error {
	for i := range entries {
		if err := entries[i].Validate(); err != nil {
			return err
		}
	}
	batch, err := s.conn.PrepareBatch(ctx, "INSERT INTO journal ("+columns+")")
	if err != nil {
		return fmt.Errorf("preparing a batch for the journal: %w", err)
	}
	defer func() { _ = batch.Close() }()
	for i := range entries {
		if err := batch.AppendStruct(&entries[i]); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrInvalidEntry, entries[i].ID, err)
		}
	}
	if err := batch.Send(); err != nil {
		return fmt.Errorf("inserting %d journal entries: %w", len(entries), err)
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
