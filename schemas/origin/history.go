package origin

import (
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/schemas"
)

// History is the one rule of who is believed in a topic of one partition that is kept for ever: its writers, which sign
// their records with SignKeyed. Records before the first one that the present keys prove are believed as they are: they are
// of a release that proved nothing, or of master keys that are gone. Nobody can write there any more. It is safe for
// concurrent use.
type History struct {
	writers Verifier
	first   func(from, to int64) (offset int64, found bool, err error)

	mu      sync.Mutex
	checked int64 // no record below it is proven
	proven  int64 // the first proven record that is known; -1 if none is
	refused func(reason error)
}

// NewHistory returns the rule. first returns the first record of the topic from from up to but not including to that the
// writers prove.
func NewHistory(writers Verifier, first func(from, to int64) (offset int64, found bool, err error)) *History {
	return &History{writers: writers, first: first, proven: -1}
}

// Refusing has refused called for each record that is refused from now on, with ErrUnsigned or ErrForged.
func (h *History) Refusing(refused func(reason error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refused = refused
}

// Verify returns nil for a record that is believed. The error of another one wraps schemas.ErrUndecodable, because it never
// gets a proof, and ErrUnsigned or ErrForged. Other errors are those of reading the topic.
func (h *History) Verify(r *kgo.Record) error {
	_, err := h.writers.VerifyKeyed(r)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		if h.proven < 0 || r.Offset < h.proven {
			h.proven = r.Offset
		}
		return nil
	}
	if known := h.proven >= 0 && h.proven <= r.Offset; !known && r.Offset > h.checked {
		at, found, err := h.first(h.checked, r.Offset)
		switch {
		case err != nil:
			return fmt.Errorf("looking for the first record that is proven: %w", err)
		case found:
			h.proven, h.checked = at, at
		default:
			h.checked = r.Offset
		}
	}
	if h.proven < 0 || r.Offset < h.proven {
		h.checked = max(h.checked, r.Offset+1)
		return nil
	}
	if h.refused != nil {
		h.refused(err)
	}
	return fmt.Errorf("%w: %w", err, schemas.ErrUndecodable)
}
