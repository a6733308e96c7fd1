package calls

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// slots bounds the calls under way. Requests for money and enquiries have separate
// slots, so that many enquiries, which wait for the operator's rate, never delay a
// payment. Safe for concurrent use.
type slots struct {
	mu sync.Mutex
	by map[slot]*semaphore.Weighted
}

// slot is the key of a bound: of an operator's calls of a kind, or of an account's
// enquiries.
type slot struct {
	operator string
	enquiry  bool
	tenant   string
	live     bool
}

const (
	// callsAtOnce is how many requests for money, and separately how many
	// enquiries, are under way with one operator.
	callsAtOnce = 128
	// accountEnquiries is how many enquiries of one account are under way,
	// so that a busy account leaves room for others.
	accountEnquiries = 16
)

func (s *slots) of(key slot, size int64) *semaphore.Weighted {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.by[key]
	if w == nil {
		w = semaphore.NewWeighted(size)
		s.by[key] = w
	}
	return w
}

// move waits for a slot to have an operator move money. ok is false when ctx ended first.
func (s *slots) move(ctx context.Context, operator string) (release func(), ok bool) {
	w := s.of(slot{operator: operator}, callsAtOnce)
	if w.Acquire(ctx, 1) != nil {
		return nil, false
	}
	return func() { w.Release(1) }, true
}

// enquire waits for a slot to ask an operator about a payment of an account. ok is false
// when ctx ended first.
func (s *slots) enquire(ctx context.Context, operator, tenant string, live bool) (release func(), ok bool) {
	account := s.of(slot{operator, true, tenant, live}, accountEnquiries)
	if account.Acquire(ctx, 1) != nil {
		return nil, false
	}
	w := s.of(slot{operator: operator, enquiry: true}, callsAtOnce)
	if w.Acquire(ctx, 1) != nil {
		account.Release(1)
		return nil, false
	}
	return func() { w.Release(1); account.Release(1) }, true
}

// newest has the number of the latest enquiry of each payment that has one in hand.
// Safe for concurrent use.
type newest struct {
	mu   sync.Mutex
	byID map[string]enquiries
}

// enquiries are those of one payment.
type enquiries struct {
	inHand int
	latest int32 // the highest number since inHand was zero
}

// arrive adds an enquiry.
func (n *newest) arrive(id string, number int32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	e := n.byID[id]
	n.byID[id] = enquiries{e.inHand + 1, max(e.latest, number)}
}

// overtaken reports whether a later enquiry of the payment has arrived.
func (n *newest) overtaken(id string, number int32) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.byID[id].latest > number
}

// leave removes an enquiry.
func (n *newest) leave(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	e := n.byID[id]
	if e.inHand--; e.inHand == 0 {
		delete(n.byID, id)
		return
	}
	n.byID[id] = e
}
