package schedule

import (
	"context"

	"quittance/schemas/record"
)

// The steps of a schedule, one at a time.

func (s *Schedule) ReturnLeases(ctx context.Context) error { return s.returnLeases(ctx) }

func (s *Schedule) Tidy(ctx context.Context) error { return s.tidy(ctx) }

func (s *Schedule) MarkQueued(ctx context.Context, claimed []record.Delivery) error {
	return markQueued(ctx, s.cfg.Pool, claimed)
}
