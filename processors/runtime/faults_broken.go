//go:build broken_overlay

package runtime

import (
	"context"
	"sync/atomic"
)

// This build breaks rule 1: a transaction that did not commit is merged into the
// local stores all the same. Brokers abort rarely, so it also aborts one
// transaction in ten by itself, once everything is produced. The test of
// linearizability must find out (test/linear).
func init() {
	var transactions atomic.Int64
	ofBuild = faults{
		mergeAborted: true,
		beforeEnd: func(context.Context, *membership, *transaction) (verdict, error) {
			if transactions.Add(1)%10 == 0 {
				return verdictAbort, nil
			}
			return verdictGoOn, nil
		},
	}
}
