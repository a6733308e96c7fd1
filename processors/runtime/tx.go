package runtime

import (
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/processors/runtime/store"
)

// reservedKey is the key of the record in which the changelog keeps the position
// in the input. Keys of the application must not begin with its first byte.
var reservedKey = []byte{0, 'p', 'o', 's', 'i', 't', 'i', 'o', 'n'}

var (
	errKey   = errors.New("state key is empty or begins with a zero byte")
	errEmit  = errors.New("emitted record without a topic, or for the changelog")
	errStore = errors.New("local store")
)

// entry is a value with its deadline.
type entry struct {
	value    []byte // nil: there is none
	deadline store.Deadline
}

// cell is an entry as one transaction sees it.
type cell struct {
	entry
	dirty bool // not as in the store

	// What the store holds, when the transaction has looked: the deadline that
	// leaves the index when this cell is written.
	looked bool
	former store.Deadline
}

// overlay is what a transaction has changed, or read, of one partition's state.
type overlay struct {
	cells map[string]*cell
	dirty []string // keys in the order of their first change

	input     int64 // last input record applied
	hasInput  bool  // input moved on
	changelog *kgo.Record
}

// layer is what one record has changed so far, on top of the overlay.
type layer struct {
	writes map[string]entry
	order  []string
	emits  []*kgo.Record
	err    error // the application misused the transaction
	store  error // the local store failed
}

func (l *layer) reset() {
	clear(l.writes)
	l.order, l.emits, l.err, l.store = l.order[:0], l.emits[:0], nil, nil
}

// Tx is the part of a transaction that one call of the Processor sees: the state
// of one partition, with what earlier calls of the same transaction changed. It
// is valid during the call, for the calling goroutine.
//
// When the call returns an error its own changes and records vanish; those of
// the other calls stay.
type Tx struct {
	part *partition
	over *overlay
	own  *layer
	cfg  *Config
}

// Partition is the partition of the input, and of the state.
func (tx *Tx) Partition() int32 { return tx.part.id }

// Get returns the value of key, nil when there is none. It must not be
// modified. After an error the transaction is given up, whatever the caller
// makes of it.
func (tx *Tx) Get(key []byte) ([]byte, error) {
	if len(tx.own.order) > 0 {
		if w, ok := tx.own.writes[string(key)]; ok {
			return w.value, nil
		}
	}
	c, err := tx.look(key)
	if err != nil {
		return nil, err
	}
	return c.value, nil
}

// look returns the cell of key, from the overlay or else from the store.
func (tx *Tx) look(key []byte) (*cell, error) {
	c := tx.over.cells[string(key)]
	if c != nil {
		return c, nil
	}
	e, err := tx.part.store.Get(key)
	if err != nil {
		tx.own.store = fmt.Errorf("%w: %w", errStore, err)
		return nil, tx.own.store
	}
	c = &cell{entry: entry{e.Value, e.Deadline}, looked: true, former: e.Deadline}
	tx.over.cells[string(key)] = c
	return c, nil
}

// Put sets the value of key, which must not be empty and must not begin with a zero
// byte. The value belongs to the transaction from then on. An empty value is a value.
// The deadline must be what Processor.Deadline returns for key and value, because a
// restore asks Processor.Deadline.
func (tx *Tx) Put(key, value []byte, deadline time.Time) {
	if value == nil {
		value = []byte{}
	}
	tx.write(key, entry{value, storeDeadline(deadline)})
}

// Delete removes key, present or not.
func (tx *Tx) Delete(key []byte) { tx.write(key, entry{}) }

func (tx *Tx) write(key []byte, e entry) {
	if len(key) == 0 || key[0] == reservedKey[0] {
		tx.own.err = errKey
		return
	}
	k := string(key)
	if _, again := tx.own.writes[k]; !again {
		tx.own.order = append(tx.own.order, k)
	}
	tx.own.writes[k] = e
}

// Emit produces r when the transaction commits. The caller sets topic, partition
// (nothing else chooses one), key, value and headers, and lets go of it.
func (tx *Tx) Emit(r *kgo.Record) {
	if r.Topic == "" || r.Topic == tx.cfg.StateTopic {
		tx.own.err = errEmit
		return
	}
	tx.own.emits = append(tx.own.emits, r)
}

// merge takes the layer over into the overlay.
func (o *overlay) merge(l *layer) {
	for _, k := range l.order {
		c := o.cells[k]
		if c == nil {
			c = &cell{}
			o.cells[k] = c
		}
		if !c.dirty {
			c.dirty = true
			o.dirty = append(o.dirty, k)
		}
		c.entry = l.writes[k]
	}
}
