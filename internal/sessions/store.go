package sessions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

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
		for _, due := range s.Dues() {
			if s.Status != checkout.StatusCompleted || due.ERPDueRef == "" {
				continue
			}
			deliveries.Complete(batch, deliveries.Completion{
				TransactionID: due.TransactionID, SessionID: s.ID, TenantID: s.TenantID, Live: s.Live,
				CompletedAt: s.EndedAt, AcceptedAt: due.Confirmation.SettledAt,
			})
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
		transactions, paidAt, reversedAt := paidIn(s.Session)
		returned, returnedAt := returnedIn(s.Session)
		batch.Queue(`
			INSERT INTO sessions AS s (id, application_id, livemode, order_id, customer_id, payment_ref, status, sequence, snapshot, citizen_id, dues,
				transactions, paid_at, reversed_at, returned, returned_at, completed_at, undecided_since)
			VALUES ($1, $2, $3, $4, nullif($5, ''), $6, $7, $8, $9, nullif($10, ''), $11, $12, $13, $14, $15, $16, $17, $18)
			ON CONFLICT (id) DO UPDATE SET
				application_id = excluded.application_id, livemode = excluded.livemode, order_id = excluded.order_id,
				customer_id = excluded.customer_id, payment_ref = excluded.payment_ref, status = excluded.status,
				sequence = excluded.sequence, snapshot = excluded.snapshot, citizen_id = excluded.citizen_id, dues = excluded.dues,
				transactions = excluded.transactions, paid_at = excluded.paid_at, reversed_at = excluded.reversed_at,
				returned = excluded.returned, returned_at = excluded.returned_at, completed_at = excluded.completed_at,
				undecided_since = excluded.undecided_since
			WHERE s.sequence < excluded.sequence`,
			s.ID, s.ApplicationID, s.Live, s.OrderID, s.CustomerID, s.PaymentRef, string(s.Status), s.Sequence, s.Value, s.CitizenID, duesOf(s.Session),
			transactions, paidAt, reversedAt, returned, returnedAt, completedAt(s.Session), optional(s.UndecidedSince()))
		for _, m := range s.Cash() {
			writeCash(batch, m)
		}
		if s.Cashin != nil && s.Status == checkout.StatusCompleted && !s.ReversedAt.IsZero() {
			writeReversal(batch, s)
		}
	}
	writeEvents(batch, snapshots)
	personal.Adopt(batch, adopted)
	personal.Delete(batch, slices.Sorted(maps.Keys(erased)))
	return batch
}

// writeReversal adds the statement for a payment of the deprecated cash-in surface whose money
// was given back. A session is reversed once, so a stored row stays as it is.
func writeReversal(batch *pgx.Batch, s Snapshot) {
	batch.Queue(`
		INSERT INTO cashin_reversals (session_id, application_id, livemode, number, external_number, amount, reason, reversed_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT DO NOTHING`,
		s.ID, s.ApplicationID, s.Live, s.Cashin.Number, storable(s.OrderID), s.Amount, string(s.ReversalReason), s.ReversedAt)
}

// completedAt returns what the column completed_at of a session has.
func completedAt(s checkout.Session) *time.Time {
	if s.Status != checkout.StatusCompleted {
		return nil
	}
	return optional(s.EndedAt)
}

// optional returns nil for the zero time.
func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
