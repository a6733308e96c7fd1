package sessions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/checkout"
	"quittance/internal/deliveries"
	"quittance/internal/kafka/consume"
	"quittance/internal/personal"
	"quittance/schemas"
)

// Errors of Store, for errors.Is.
var (
	// ErrMoved says that another writer has applied the same records. Nothing was
	// written.
	ErrMoved = consume.ErrMoved
	// ErrRefused says that Postgres cannot hold a value, such as a text with a zero byte.
	// Another attempt would be refused too. Nothing was written.
	ErrRefused = consume.ErrRefused
)

// Store writes the read model. It is safe for concurrent use.
type Store struct{ pool *pgxpool.Pool }

// NewStore makes a store on a migrated database.
func NewStore(pool *pgxpool.Pool) *Store { return &Store{pool} }

// Positions returns the stored positions of a topic by partition.
func (s *Store) Positions(ctx context.Context, topic string) (map[int32]int64, error) {
	return positions.Read(ctx, s.pool, topic)
}

var positions = consume.Positions{Table: "readmodel_positions", Next: "next"}

// Stored returns a session as the read model has it now. It may be behind checkout.events: for
// what must not miss an event there is Reader. Errors are ErrNotFound, those of Codec.Decode and
// those of a Postgres that is away.
func (s *Store) Stored(ctx context.Context, codec *schemas.Codec, id string) (checkout.Session, error) {
	var value []byte
	err := s.pool.QueryRow(ctx, `SELECT snapshot FROM sessions WHERE id = $1`, id).Scan(&value)
	if errors.Is(err, pgx.ErrNoRows) {
		return checkout.Session{}, ErrNotFound
	}
	if err != nil {
		return checkout.Session{}, fmt.Errorf("reading a stored session: %w", err)
	}
	_, snapshot, err := read(codec, value)
	if err != nil {
		return checkout.Session{}, fmt.Errorf("reading a stored session: %w", err)
	}
	return snapshot.Session, nil
}

// Apply writes sessions and the positions after their records in one transaction. A
// stored session with a higher sequence stays as it is, so that order and repetition do
// not matter. Errors are ErrMoved, ErrRefused and those of a Postgres that is away. After
// the latter the batch may have been written; applying it again does no harm.
func (s *Store) Apply(ctx context.Context, snapshots []Snapshot, moves []consume.Move) error {
	if err := positions.Apply(ctx, s.pool, moves, writing(snapshots)); err != nil {
		return fmt.Errorf("applying events: %w", err)
	}
	return nil
}

// writing returns the statements for snapshots: the confirmations for ERPs, the last state
// of each session with its movements of cash and its reversal, then the events, the adoption of contact
// data by the session that has them, and the deletion of the keys of erased data. All are
// sorted by key, so that two writers cannot deadlock.
func writing(snapshots []Snapshot) *pgx.Batch {
	batch := &pgx.Batch{}
	last := map[string]Snapshot{}
	erased, adopted := map[string]bool{}, map[string]string{}
	for _, s := range slices.SortedFunc(slices.Values(snapshots), func(a, b Snapshot) int { return strings.Compare(a.TransactionID, b.TransactionID) }) {
		for _, c := range completions(s) {
			deliveries.Complete(batch, c)
		}
		if s.Erased {
			erased[s.ID], erased[s.ContactID()] = true, true
		}
		if s.ContactID() != s.ID {
			adopted[s.ContactID()] = s.ID
		}
		if known, ok := last[s.ID]; !ok || known.Sequence < s.Sequence {
			last[s.ID] = s
		}
	}
	for _, id := range slices.Sorted(maps.Keys(last)) {
		s := last[id]
		batch.Queue(upsertSession, sessionRow(s).values...)
		for _, r := range cashRows(s) {
			batch.Queue(insertCash, r.values...)
		}
		for _, r := range reversalRows(s) {
			batch.Queue(insertReversal, r.values...)
		}
	}
	writeEvents(batch, snapshots)
	personal.Adopt(batch, adopted)
	personal.Delete(batch, slices.Sorted(maps.Keys(erased)))
	return batch
}
