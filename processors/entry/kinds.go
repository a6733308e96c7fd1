package entry

import (
	"fmt"
	"time"

	"quittance/schemas"
)

// Kind is an Entry of any types.
type Kind interface {
	letter() byte
	forgets() bool
	wakes() bool
	deadline(c *schemas.Codec, value []byte) time.Time
}

// Kinds are the kinds of entries of a processor, by letter.
type Kinds map[byte]Kind

// NewKinds returns the kinds of a processor. It panics if two have the same letter, or one has
// none: a processor calls it once, at start-up.
func NewKinds(kinds ...Kind) Kinds {
	out := make(Kinds, len(kinds))
	for _, k := range kinds {
		if _, twice := out[k.letter()]; twice || k.letter() == 0 {
			panic(fmt.Sprintf("the letter %q of a kind of entries is zero or declared twice", k.letter()))
		}
		out[k.letter()] = k
	}
	return out
}

// Deadline returns when an entry needs a tick, or the zero time if it needs none. It is the time
// that Put passes to the transaction. Safe for concurrent use.
func (k Kinds) Deadline(c *schemas.Codec, key, value []byte) time.Time {
	if kind := k.of(key); kind != nil {
		return kind.deadline(c, value)
	}
	return time.Time{}
}

// Tick carries out the tick of an entry: it deletes an entry that is forgotten, and calls wake
// with the letter and the text of the key of one that its processor decides about.
func (k Kinds) Tick(tx Tx, key []byte, wake func(letter byte, id string) error) error {
	switch kind := k.of(key); {
	case kind == nil:
	case kind.forgets():
		tx.Delete(key)
	case kind.wakes():
		return wake(key[0], string(key[2:]))
	}
	return nil
}

func (k Kinds) of(key []byte) Kind {
	if len(key) < 2 {
		return nil
	}
	return k[key[0]]
}
