package access

import (
	"context"
	"errors"

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
	search := sessions.Search{OrderID: order, PaymentRef: support.PaymentRef(paymentRef), ApplicationIDs: ApplicationIDs(dir, nil)}
	ids, err := sessions.NewStore(pool).Find(ctx, search)
	if err == nil && len(ids) == 0 {
		err = errors.New(map[bool]string{
			true:  "--order: no session has this order; orders are compared exactly, with capital and small letters",
			false: "--payment-ref: no session has this payment reference",
		}[order != ""])
	}
	return ids, err
}
