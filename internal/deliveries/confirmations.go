package deliveries

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/schemas/record"
)

// acceptConfirmations stores which payments an ERP has accepted. These rows outlive
// the daily tables of deliveries.
func (s *Store) acceptConfirmations(ctx context.Context, tx pgx.Tx, outcomes []*record.Attempt) error {
	confirming := s.kinds.Names(func(r Registration) bool { return r.Confirms })
	var accepted []*record.Attempt
	for _, a := range outcomes {
		if Outcome(a.Outcome) == OutcomeDelivered && slices.Contains(confirming, a.Delivery.Kind) {
			accepted = append(accepted, a)
		}
	}
	// Complete writes the same rows. Both write them in the same order and so cannot deadlock.
	slices.SortStableFunc(accepted, func(a, b *record.Attempt) int { return strings.Compare(a.Delivery.EventID, b.Delivery.EventID) })
	accepted = slices.CompactFunc(accepted, func(a, b *record.Attempt) bool { return a.Delivery.EventID == b.Delivery.EventID })
	if len(accepted) == 0 {
		return nil
	}
	var rows [][]any
	for _, a := range accepted {
		rows = append(rows, []any{a.Delivery.EventID, a.Delivery.TenantID, a.Delivery.Livemode, a.At})
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO erp_confirmations AS c (transaction_id, tenant_id, livemode, accepted_at)
		SELECT * FROM unnest($1::text[], $2::text[], $3::bool[], $4::timestamptz[])
		ON CONFLICT (transaction_id) DO UPDATE SET accepted_at = coalesce(c.accepted_at, excluded.accepted_at)`, byColumn(rows)...)
	return failed("storing accepted confirmations", err)
}

// Completion is a completed payment of a due, of which the agency's ERP is to be told.
type Completion struct {
	TransactionID string
	SessionID     string
	TenantID      string
	Live          bool
	CompletedAt   time.Time
	// AcceptedAt is when the ERP accepted the confirmation, as the session knows it; zero: not yet.
	AcceptedAt time.Time
}

// CompletionColumns returns the columns of erp_confirmations that a completion decides, the key first. Whether the ERP has accepted
// it, outcomes of deliveries say, too.
func CompletionColumns() []string {
	return []string{"transaction_id", "session_id", "tenant_id", "livemode", "completed_at"}
}

// Row returns the values of the columns of CompletionColumns.
func (c Completion) Row() []any {
	return []any{c.TransactionID, c.SessionID, c.TenantID, c.Live, c.CompletedAt}
}

// Complete queues the statement that stores a completed payment. What the completion says replaces what is stored, which differs
// only if somebody else wrote it; an acceptance that is known stays. The caller queues completions by TransactionID in ascending
// order.
func Complete(batch *pgx.Batch, c Completion) {
	var accepted *time.Time
	if !c.AcceptedAt.IsZero() {
		accepted = &c.AcceptedAt
	}
	batch.Queue(`
		INSERT INTO erp_confirmations AS c (transaction_id, session_id, tenant_id, livemode, completed_at, accepted_at)
		VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (transaction_id) DO UPDATE SET session_id = excluded.session_id, tenant_id = excluded.tenant_id, livemode = excluded.livemode,
			completed_at = excluded.completed_at, accepted_at = coalesce(c.accepted_at, excluded.accepted_at)
		WHERE (c.session_id, c.tenant_id, c.livemode, c.completed_at) IS DISTINCT FROM (excluded.session_id, excluded.tenant_id, excluded.livemode, excluded.completed_at)
			OR c.accepted_at IS NULL AND excluded.accepted_at IS NOT NULL`,
		append(c.Row(), accepted)...)
}

// Forget removes the row of a payment and session that no event has completed, and reports whether there was one.
func Forget(ctx context.Context, pool *pgxpool.Pool, transactionID, sessionID string) (bool, error) {
	tag, err := pool.Exec(ctx, `DELETE FROM erp_confirmations WHERE transaction_id = $1 AND session_id = $2`, transactionID, sessionID)
	if err != nil {
		return false, fmt.Errorf("removing a row that no event makes: %w", err)
	}
	return tag.RowsAffected() > 0, nil
}

// outstandingWhere selects the payments whose confirmation an ERP has not accepted. It
// leaves out agencies that have no ERP in the payment's mode, and payments that were given
// back before an ERP was told of them: nobody will tell it.
const outstandingWhere = `
	FROM erp_confirmations c JOIN erp_settings s ON s.agency_id::text = c.tenant_id AND s.live = c.livemode
	WHERE c.accepted_at IS NULL AND c.session_id IS NOT NULL
		AND (NOT EXISTS (SELECT FROM cases r WHERE r.session_id = c.session_id AND r.kind = 'reversal')
			OR EXISTS (SELECT FROM deliveries t WHERE t.event_id = c.transaction_id))`

// Outstanding is a completed payment without an accepted confirmation, and the reason.
type Outstanding struct {
	TransactionID string
	SessionID     string
	// Agency by its slug.
	Agency      string
	Live        bool
	CompletedAt time.Time
	// DeliveryID and the fields below it are empty when no outcome is recorded: the
	// confirmation is on its way, or was never planned.
	DeliveryID string
	State      string
	Attempts   int
	Reason     string
	// NextAttemptAt is when the next call may be made, also while the ERP is on hold. A time that is past means
	// now; zero: no attempt is planned.
	NextAttemptAt time.Time
}

// Parked reports whether the confirmation waits for a person to retry it.
func (o Outstanding) Parked() bool { return o.State == StateNeedsOperator || o.State == StateExhausted }

// OutstandingConfirmations returns completed payments whose ERP has not accepted the
// confirmation, the oldest first, at most 10,000. now is the service's clock.
func (s *Store) OutstandingConfirmations(ctx context.Context, now time.Time) ([]Outstanding, error) {
	return collect[Outstanding](ctx, s.pool, "listing outstanding confirmations", `
		SELECT c.transaction_id, c.session_id, a.slug, c.livemode, c.completed_at,
			coalesce(d.delivery_id, ''), coalesce(d.state, ''), coalesce(d.attempts, 0), coalesce(d.reason, ''),
			CASE WHEN d.next_attempt_at IS NULL THEN '0001-01-01Z' ELSE greatest(d.next_attempt_at, h.hold_until) END
		FROM (SELECT c.* `+outstandingWhere+` AND c.completed_at <= $1 ORDER BY c.completed_at, c.transaction_id LIMIT 10000) c
		JOIN agencies a ON a.id::text = c.tenant_id
		LEFT JOIN deliveries d ON d.event_id = c.transaction_id AND d.kind = ANY($2)
		LEFT JOIN delivery_destinations h ON h.kind = d.kind AND h.destination_id = d.destination_id
		ORDER BY c.completed_at, c.transaction_id`, now, s.kinds.Names(func(r Registration) bool { return r.Confirms }))
}

// CountOutstanding returns the number of outstanding confirmations and the time at
// which the oldest of their payments was completed; zero: there are none.
func (s *Store) CountOutstanding(ctx context.Context) (n int64, oldest time.Time, err error) {
	err = s.pool.QueryRow(ctx, `SELECT count(*), coalesce(min(c.completed_at), '0001-01-01Z')`+outstandingWhere).Scan(&n, &oldest)
	return n, oldest, failed("counting outstanding confirmations", err)
}
