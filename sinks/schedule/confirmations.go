package schedule

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/sinks/delivery"
)

// acceptConfirmations notes which payments an ERP has accepted. That stays when
// the deliveries of its day are dropped.
func acceptConfirmations(ctx context.Context, tx pgx.Tx, outcomes []outcome) error {
	var accepted []outcome
	for _, o := range outcomes {
		if o.attempt.Delivery.Kind == string(delivery.KindERP) && delivery.Outcome(o.attempt.Outcome) == delivery.OutcomeDelivered {
			accepted = append(accepted, o)
		}
	}
	// The read model writes the same rows: in one order, none waits for the other.
	slices.SortFunc(accepted, func(a, b outcome) int { return strings.Compare(a.attempt.Delivery.EventID, b.attempt.Delivery.EventID) })
	accepted = slices.CompactFunc(accepted, func(a, b outcome) bool { return a.attempt.Delivery.EventID == b.attempt.Delivery.EventID })
	if len(accepted) == 0 {
		return nil
	}
	n := len(accepted)
	ids, tenants, live, at := make([]string, n), make([]string, n), make([]bool, n), make([]time.Time, n)
	for i, o := range accepted {
		d := &o.attempt.Delivery
		ids[i], tenants[i], live[i], at[i] = d.EventID, d.TenantID, d.Livemode, o.attempt.At
	}
	if _, err := tx.Exec(ctx, `
		INSERT INTO erp_confirmations AS c (transaction_id, tenant_id, livemode, accepted_at)
		SELECT * FROM unnest($1::text[], $2::text[], $3::bool[], $4::timestamptz[])
		ON CONFLICT (transaction_id) DO UPDATE SET accepted_at = coalesce(c.accepted_at, excluded.accepted_at)`, ids, tenants, live, at); err != nil {
		return fmt.Errorf("noting accepted confirmations: %w", err)
	}
	return nil
}

// owedWhere picks the payments that an ERP is to be told of and has not accepted.
// An agency without an ERP in the payment's mode is owed nothing.
const owedWhere = `
	FROM erp_confirmations c JOIN erp_settings s ON s.agency_id::text = c.tenant_id AND s.live = c.livemode
	WHERE c.accepted_at IS NULL AND c.session_id IS NOT NULL`

// Owed is a completed payment without an accepted confirmation, and why.
type Owed struct {
	TransactionID string
	SessionID     string
	// Agency by its slug.
	Agency      string
	Live        bool
	CompletedAt time.Time
	// DeliveryID is empty, and the rest with it, when no attempt is on record:
	// it is on its way, or was never planned.
	DeliveryID    string
	State         string
	Attempts      int
	Reason        string
	NextAttemptAt time.Time // zero: no attempt is planned
}

// OwedConfirmations lists completed payments whose ERP has not accepted the
// confirmation, the oldest first, at most 10,000: the standing query of
// delivery.md, whose answer must be empty or explained. now is the service's clock.
func OwedConfirmations(ctx context.Context, pool *pgxpool.Pool, now time.Time) ([]Owed, error) {
	rows, err := pool.Query(ctx, `
		SELECT c.transaction_id, c.session_id, a.slug, c.livemode, c.completed_at,
			coalesce(d.delivery_id, ''), coalesce(d.state, ''), coalesce(d.attempts, 0), coalesce(d.reason, ''), d.next_attempt_at
		FROM (SELECT c.* `+owedWhere+` AND c.completed_at <= $1 ORDER BY c.completed_at, c.transaction_id LIMIT 10000) c
		JOIN agencies a ON a.id::text = c.tenant_id
		LEFT JOIN deliveries d ON d.event_id = c.transaction_id AND d.kind = 'erp'
		ORDER BY c.completed_at, c.transaction_id`, now)
	if err != nil {
		return nil, fmt.Errorf("listing confirmations that are owed: %w", err)
	}
	owed, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Owed, error) {
		var o Owed
		var next *time.Time
		err := row.Scan(&o.TransactionID, &o.SessionID, &o.Agency, &o.Live, &o.CompletedAt, &o.DeliveryID, &o.State, &o.Attempts, &o.Reason, &next)
		o.CompletedAt = o.CompletedAt.UTC()
		if next != nil {
			o.NextAttemptAt = next.UTC()
		}
		return o, err
	})
	if err != nil {
		return nil, fmt.Errorf("listing confirmations that are owed: %w", err)
	}
	return owed, nil
}

// Parked says that nothing will send the confirmation until a person says so.
func (o Owed) Parked() bool { return o.State == stateNeedsOperator || o.State == stateExhausted }
