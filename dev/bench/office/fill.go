package office

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"quittance/checkout"
	"quittance/dev/bench"
	"quittance/internal/sessions"
	"quittance/schemas"
	"quittance/schemas/mapping"
)

const (
	// agencies have one application each. The first one has every third session.
	agencies = 64
	// between is the time between two sessions, so that 10⁷ of them are of eight months.
	between = 2 * time.Second
	// step is the number of sessions that are stored in one transaction.
	step = 2000
)

// made returns the n-th of rows sessions that ended before a time. Most are paid; one of fifty has failed, one of twenty expired.
func made(n, rows int, partitions int32, now time.Time) checkout.Event {
	agency := n % agencies
	if n%3 == 0 {
		agency = 0
	}
	at := now.Add(-time.Duration(rows-n)*between - time.Hour).Truncate(time.Millisecond)
	var random [16]byte
	binary.BigEndian.PutUint64(random[:], uint64(n)*0x9E3779B97F4A7C15) //nolint:gosec // spread over the space of ids
	tenant := bench.AgencyID(agency)
	s := checkout.Session{
		ID: checkout.NewSessionID(at, schemas.PartitionOf(tenant, partitions), random), ApplicationID: bench.ApplicationID(agency), TenantID: tenant,
		OrderID: fmt.Sprintf("DOSSIER-%09d", n), Amount: int64(1000 + n%90*500), Currency: "XAF", Mode: checkout.ModeHosted, ServiceCode: bench.ServiceCode, ServiceLabel: "Contribution de la patente",
		Description: "Patente 2026", PaymentRef: fmt.Sprintf("%016d", n), NoticeRef: fmt.Sprintf("AV2026%010d", n), TransactionID: fmt.Sprintf("T%015d", n),
		CreatedAt: at, ExpiresAt: at.Add(24 * time.Hour), EndedAt: at.Add(time.Minute), Status: checkout.StatusCompleted, Sequence: 3,
	}
	s.Collection = &checkout.Collection{
		ID: uuid.NewSHA1(uuid.Nil, random[:]).String(), OfferID: checkout.OfferMomo, Channel: checkout.ChannelMobileMoney, Status: checkout.CollectionApproved, Amount: s.Amount + 75, Fee: 75, Currency: s.Currency,
		PayerMasked: "06 6•• •• 01", RequestedAt: at.Add(20 * time.Second), DecidedAt: s.EndedAt, OperatorRef: fmt.Sprintf("MP%012d", n),
	}
	of := checkout.EventCompleted
	switch {
	case n%50 == 7:
		of, s.Status, s.FailureCode, s.Collection.Status = checkout.EventFailed, checkout.StatusFailed, checkout.FailureApprovalTimeout, checkout.CollectionRefused
	case n%20 == 3:
		of, s.Status, s.Collection, s.EndedAt = checkout.EventExpired, checkout.StatusExpired, nil, s.ExpiresAt
	}
	return checkout.Event{ID: "evt_" + s.TransactionID, Type: of, SessionID: s.ID, Sequence: s.Sequence, OccurredAt: s.EndedAt, Session: s}
}

// fill stores sessions as the sink readmodel does.
func fill(ctx context.Context, pool *pgxpool.Pool, codec *schemas.Codec, rows int, partitions int32, now time.Time, log *slog.Logger) error {
	store, begun := sessions.NewStore(pool), time.Now()
	g, storing := errgroup.WithContext(ctx)
	g.SetLimit(2)
	for from := 0; from < rows; from += step {
		if from%(rows/5+1) < step {
			log.Info("storing sessions", slog.Int("stored", from), slog.Int("of", rows), slog.Duration("took", time.Since(begun).Round(time.Second)))
		}
		g.Go(func() error {
			var batch []sessions.Snapshot
			for n := from; n < min(from+step, rows); n++ {
				value, err := codec.Encode(mapping.FromEvent(made(n, rows, partitions, now)))
				if err != nil {
					return err
				}
				_, s, err := sessions.Read(codec, value)
				if err != nil {
					return err
				}
				batch = append(batch, *s)
			}
			return store.Apply(storing, batch, nil)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, table := range []string{"sessions", "session_events"} {
		if _, err := pool.Exec(ctx, "VACUUM ANALYZE "+table); err != nil {
			return fmt.Errorf("analysing %s: %w", table, err)
		}
	}
	return nil
}
