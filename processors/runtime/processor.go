package runtime

import (
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Processor is the application: pure decisions over the state of one partition.
// Its methods are called by one goroutine at a time, must be deterministic and
// must not do I/O, except Deadline, which several goroutines may call.
type Processor interface {
	// Process decides one input record. It reads and writes state and emits
	// records through tx only.
	//
	// An error that wraps ErrPoison sends the record to the poison topic. Any
	// other error, or a panic, is tried again; the third time of the same, or the
	// tenth of whatever kind, sends it there, too. The record's changes and
	// emissions are dropped in each case.
	Process(tx *Tx, rec *kgo.Record) error
	// Deadline returns when the entry needs a tick, the zero time when never. It
	// depends on the entry alone. A restore calls it for each entry; Process and Tick
	// pass the same time to Tx.Put.
	Deadline(key, value []byte) time.Time
	// Tick is called when the deadline of key is at or before now and the entry
	// still has it, in a transaction that has nothing but ticks in it. It should
	// change the entry so that its deadline moves or goes; it is called again
	// otherwise. Errors are handled as those of Process: an entry whose tick ends
	// in the poison topic is not ticked again until it is written or restored.
	Tick(tx *Tx, key []byte, now time.Time) error
}

// ErrPoison marks an input record that can never be decided.
var ErrPoison = errors.New("poison record")

// Poison marks err as one that trying again does not mend.
func Poison(err error) error {
	if err == nil {
		return nil
	}
	return &poisonError{err}
}

type poisonError struct{ err error }

func (e *poisonError) Error() string { return e.err.Error() }

func (e *poisonError) Unwrap() []error { return []error{ErrPoison, e.err} }
