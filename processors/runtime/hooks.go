package runtime

import "context"

// hooks let tests of this package act at two points of the loop. Both are nil in
// production. Tests that need a broken rule use a patch of test/mutants instead.
type hooks struct {
	// beforeEnd is called when everything is produced and before End. It may ask
	// for an abort, or for the death of the instance: Run returns errDied, the
	// transaction stays open, and the stores lose what was not flushed.
	beforeEnd func(ctx context.Context, m *membership, t *transaction) (verdict, error)
	// betweenPolls is called by the loop where callbacks may run.
	betweenPolls func(*membership)
}

type verdict int

const (
	verdictGoOn verdict = iota
	verdictAbort
	verdictDie
)
