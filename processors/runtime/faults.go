package runtime

import (
	"context"
	"time"
)

// faults break one rule each. Tests turn them on to show that they would notice
// (the zero value is the runtime as it is); nothing else can.
type faults struct {
	mergeAborted       bool // 1: merge the overlay of a transaction that did not commit
	ignoreProduceError bool // 2: commit although a record could not be produced
	restoreToLSO       bool // 3: restore to the last stable offset only
	restoreUncommitted bool // 3: restore what is not committed
	keepStore          bool // 3: trust a store that is ahead of its changelog
	restoreInCallback  bool // 4: restore in the assignment callback
	keepOnAssign       bool // 4: go on with the state of an earlier assignment
	hashPartitioner    bool // 5: state goes where its key hashes to
	applyAgain         bool // 6: decide records at or below the position
	nonce              bool // 7: another transactional id at each start
	tickBehind         bool // let time pass before what lay in the log is decided
	unfencedTicks      bool // ticks commit no offsets, hence without a look at the group

	// stuckAfter replaces the time after which a transaction is given up.
	stuckAfter time.Duration
	// beforeEnd is called when everything is produced and before End. It may ask
	// for an abort, or for the death of the instance: Run returns errDied, the
	// transaction stays open, the stores lose what was not flushed.
	beforeEnd func(ctx context.Context, m *membership, t *transaction) (verdict, error)
	// betweenPolls is called by the loop where callbacks may run.
	betweenPolls func(*membership)
}

// ofBuild are the faults of this build of the program: none, but for one that a
// test makes to see it caught.
var ofBuild faults

type verdict int

const (
	verdictGoOn verdict = iota
	verdictAbort
	verdictDie
)
