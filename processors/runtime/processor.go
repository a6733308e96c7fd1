package runtime

import (
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Processor is the application. It makes pure decisions over the state of one partition.
// Its methods must be deterministic and must not do I/O. One goroutine at a time calls
// Process and Tick; several goroutines may call Deadline.
type Processor interface {
	// Process decides one input record. It reads and writes state and emits records
	// through tx only.
	//
	// An error drops the record's changes and emissions. If it wraps ErrPoison, the
	// record goes to the poison topic. After any other error, or a panic, the runtime
	// calls Process again. After the third failure with the same error, or the tenth
	// failure of any kind, the record goes to the poison topic.
	Process(tx *Tx, rec *kgo.Record) error
	// Deadline returns when the entry needs a tick, or the zero time if it needs none. It
	// depends on the entry alone. A restore calls it for each entry. Process and Tick must
	// pass the same time to Tx.Put.
	Deadline(key, value []byte) time.Time
	// Tick lets time pass for an entry whose deadline is at or before now. Its transaction
	// contains ticks only. Tick should write the entry with a later deadline or without
	// one, or delete it. Otherwise the runtime calls it again. Errors are handled as in
	// Process. After its tick went to the poison topic, an entry has no further ticks
	// until it is written or restored.
	Tick(tx *Tx, key []byte, now time.Time) error
}

// ErrPoison marks an input record that can never be decided.
var ErrPoison = errors.New("poison record")

// Poison marks err as an error that a retry cannot resolve.
func Poison(err error) error {
	if err == nil {
		return nil
	}
	return &poisonError{err}
}

type poisonError struct{ err error }

func (e *poisonError) Error() string { return e.err.Error() }

func (e *poisonError) Unwrap() []error { return []error{ErrPoison, e.err} }
