package runtime

import "context"

// hooks let tests of this package act at two points of the loop. Both are nil in
// production. Tests that need a broken rule use a patch in test/mutants instead.
type hooks struct {
	// beforeEnd runs after all records are produced and before End. It may request an
	// abort or the death of the instance. After a death, Run returns errDied, the
	// transaction stays open, and the stores lose all changes since their last flush.
	beforeEnd func(ctx context.Context, m *membership, t *transaction) (verdict, error)
	// betweenPolls runs in the loop at the point where rebalance callbacks may run.
	betweenPolls func(*membership)
}

type verdict int

const (
	verdictGoOn verdict = iota
	verdictAbort
	verdictDie
)
