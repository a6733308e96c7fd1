package access

import (
	"context"

	"quittance/internal/postgres"
	"quittance/internal/registry"
	"quittance/internal/sessions"
	"quittance/internal/support"
)

// Sessions returns the ids of the sessions that the flags --session, --order and --payment-ref name; nil if none of
// them is given.
func Sessions(ctx context.Context, pool *postgres.Pool, dir registry.Directory, session, order, paymentRef string) ([]string, error) {
	switch {
	case session != "":
		return []string{session}, nil
	case order == "" && paymentRef == "":
		return nil, nil
	}
	return sessions.NewStore(pool).Named(ctx, sessions.Search{OrderID: order, PaymentRef: support.PaymentRef(paymentRef), ApplicationIDs: ApplicationIDs(dir, nil)})
}
