package runtime

import (
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/processors/runtime/store"
)

// reservedKey is the key of the changelog record that holds the input position. Keys of
// the application must not begin with its first byte.
var reservedKey = []byte{0, 'p', 'o', 's', 'i', 't', 'i', 'o', 'n'}

var (
	errKey   = errors.New("a state key is empty or begins with a zero byte")
	errEmit  = errors.New("an emitted record has no topic, or its topic is the changelog")
	errStore = errors.New("local store")
)

// entry is a value with its deadline.
type entry struct {
	value    []byte // nil: the entry does not exist
	deadline store.Deadline
}

// cell is an entry as one transaction sees it.
type cell struct {
	entry
	dirty  bool           // the transaction has changed the entry
	former store.Deadline // deadline in the store, zero when unknown
}

// overlay holds the entries of one partition that a transaction has read or changed.
type overlay struct {
	cells map[string]*cell
	dirty []string // keys in the order of their first change

	input     int64       // offset of the last input record applied
	hasInput  bool        // the transaction applies input records
	changelog *kgo.Record // last record for the changelog
}

// layer holds the changes of one record or tick, on top of the overlay.
type layer struct {
	writes map[string]entry
	order  []string
	emits  []*kgo.Record
	err    error // the application used Tx in a wrong way
	store  error // the local store failed
}

func (l *layer) reset() {
	clear(l.writes)
	l.order, l.emits, l.err, l.store = l.order[:0], l.emits[:0], nil, nil
}

// Tx is the part of a transaction that one call of the Processor sees: the state of one
// partition, including the changes of earlier calls in the same transaction. It is valid
// during the call, for the calling goroutine.
//
// If the call returns an error, its own changes and records are dropped. Those of other
// calls stay.
type Tx struct {
	part *partition
	over *overlay
	own  *layer
	cfg  *Config
}

// Partition returns the number of the partition of the input and of the state.
func (tx *Tx) Partition() int32 { return tx.part.id }

// Get returns the value of key, or nil if there is none. The caller must not modify it.
// After an error the runtime gives the transaction up, even if the caller ignores the
// error.
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

// look returns the cell of key from the overlay. It reads the cell from the store first
// if it is not there.
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
	c = &cell{entry: entry{e.Value, e.Deadline}, former: e.Deadline}
	tx.over.cells[string(key)] = c
	return c, nil
}

// Put sets the value of key, which must not be empty and must not begin with a zero
// byte. The caller must not modify the value afterwards. An empty value is a value. The
// deadline must be the one that Processor.Deadline returns for key and value, because a
// restore uses Processor.Deadline.
func (tx *Tx) Put(key, value []byte, deadline time.Time) {
	if value == nil {
		value = []byte{}
	}
	tx.write(key, entry{value, storeDeadline(deadline)})
}

// Delete removes the entry of key, if there is one.
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

// Emit adds r to the transaction. The caller sets topic, partition, key, value and
// headers, and must not modify r afterwards. The runtime chooses no partition.
func (tx *Tx) Emit(r *kgo.Record) {
	if r.Topic == "" || r.Topic == tx.cfg.StateTopic {
		tx.own.err = errEmit
		return
	}
	tx.own.emits = append(tx.own.emits, r)
}

// merge copies the changes of l into o.
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
