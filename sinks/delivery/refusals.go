package delivery

import "time"

const (
	// ownRefusals is how often a delivery is refused, while others are accepted in between, until
	// the refusals are about that delivery and not about our credentials.
	ownRefusals = 2
	// refusalsKept bounds the memory of a mailbox.
	refusalsKept = 1024
	// afterOthers is the time by which a refused delivery waits longer than the others. So the next
	// call is that of another delivery, which tells a refused delivery from refused credentials.
	afterOthers = time.Second
)

// refusals is what a mailbox knows of the answers 401 and 403 of its destination. The zero value
// knows of none.
type refusals struct {
	// standing is true from the first refusal until a delivery is accepted.
	standing bool
	accepted time.Time // the last acceptance
	by       map[string]refusal
}

// refusal is what is known of a delivery that was refused.
type refusal struct {
	at time.Time
	// between is how often another delivery was accepted between two refusals of this one.
	between int
}

// refused counts a refusal of a delivery. first is true for the first one since an acceptance; own
// is true when the delivery is refused, and not our credentials.
func (r *refusals) refused(id string, now time.Time) (first, own bool) {
	was, known := r.by[id]
	if known && r.accepted.After(was.at) {
		was.between++
	}
	if was.between >= ownRefusals {
		delete(r.by, id)
		return false, true
	}
	if r.by == nil || len(r.by) >= refusalsKept {
		r.by = map[string]refusal{}
	}
	was.at = now
	r.by[id] = was
	first, r.standing = !r.standing, true
	return first, false
}

// took notes that a delivery was accepted.
func (r *refusals) took(id string, now time.Time) {
	delete(r.by, id)
	r.standing, r.accepted = false, now
}
