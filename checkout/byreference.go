package checkout

import (
	"slices"
	"time"
)

// Whoever knows a payment reference can begin a payment of its session, also with a number
// whose owner refuses it. So a refusal of such a payment does not end the session: its payer
// can still pay. A session whose operator is silent stays open and busy until the operator
// decides or the session's lifetime ends, because the money may still be taken.

// Refusal is a refused payment by reference of a session that stayed open.
type Refusal struct {
	CollectionID string
	FailureCode  FailureCode
	At           time.Time // UTC
	// Collection is the whole refused collection, so that an approval that comes later finds it;
	// nil in a refusal of an earlier version.
	Collection *Collection
}

const (
	// maxRefusals bounds the refusals that one session remembers.
	maxRefusals = 20
	// refusalMemory is how long a refusal counts for the next one.
	refusalMemory = 24 * time.Hour
	// enquiryOfOpenSession is the time between enquiries after the window of a payment by
	// reference, whose session cannot be paid otherwise until the operator decides.
	enquiryOfOpenSession = time.Minute
)

// refusalPauses are the times after a refusal in which nobody pays by the reference: after the
// first, the second and so on; the last one is repeated. Each payment makes somebody's phone
// ring, and for its time nobody else can pay.
var refusalPauses = []time.Duration{0, 0, 5 * time.Minute, 15 * time.Minute, time.Hour}

// pausedUntil is when payments by reference may begin again.
func (s Session) pausedUntil() time.Time {
	if len(s.Refusals) == 0 {
		return time.Time{}
	}
	last := s.Refusals[len(s.Refusals)-1].At
	row := 0 // refusals without a day between them, less one
	for i := len(s.Refusals) - 1; i > 0 && s.Refusals[i].At.Before(s.Refusals[i-1].At.Add(refusalMemory)); i-- {
		row++
	}
	return last.Add(refusalPauses[min(row, len(refusalPauses)-1)])
}

// refusedByReference reports whether the collection is such a refused payment.
func (s Session) refusedByReference(collectionID string) bool {
	_, ok := s.refusal(collectionID)
	return ok
}

// refusal returns the refusal of the collection.
func (s Session) refusal(collectionID string) (Refusal, bool) {
	i := slices.IndexFunc(s.Refusals, func(r Refusal) bool { return r.CollectionID == collectionID })
	if i < 0 {
		return Refusal{}, false
	}
	return s.Refusals[i], true
}

// withRefusal returns the session without its refused collection, which it remembers.
func (s Session) withRefusal() Session {
	c := s.Collection
	s.Refusals = append(slices.Clone(s.Refusals), Refusal{CollectionID: c.ID, FailureCode: c.FailureCode, At: c.DecidedAt, Collection: c})
	s.Refusals = s.Refusals[max(0, len(s.Refusals)-maxRefusals):]
	s.Collection = nil
	return s
}

// outlivesRefusal reports whether the session stays open when its collection brings no money.
// A report that does not fit, or cannot be read, needs a person, so it does end the session.
func (s Session) outlivesRefusal() bool {
	return s.InFlight() && s.Collection.ByReference && !s.Collection.Mismatched && !s.Collection.Unreadable
}
