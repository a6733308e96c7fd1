package disbursement

import (
	"strconv"
	"time"
)

// History is when the money of a line moved, as the events of this line alone tell it. The zero value is a line that was not
// paid. Times are those at which the service learned of it, UTC.
type History struct {
	PaidAt time.Time
	// Decided says that two people decided that the line was paid.
	Decided bool
	// ReturnedAt is when the whole amount was back.
	ReturnedAt time.Time
	// Parts are what came back of a line that stays paid.
	Parts []Part
}

// Part is a part of a line's money that came back. Amount is in minor units of Currency.
type Part struct {
	Amount   int64
	Currency string
	At       time.Time
}

// After returns the history after an event of the line alone.
func (h History) After(t EventType, at time.Time, detail map[string]string) History {
	switch t {
	case EventLinePaid:
		return History{PaidAt: at}
	case EventLineReturned:
		h.ReturnedAt = at
	case EventReturnWithdrawn:
		h.ReturnedAt = time.Time{}
	case EventLinePart:
		amount, _ := strconv.ParseInt(detail[DetailReported], 10, 64) // the processor writes a number
		h.Parts = append(h.Parts[:len(h.Parts):len(h.Parts)], Part{amount, detail[DetailCurrency], at})
	case EventLineSettled:
		switch to := LineStatus(detail[DetailWord]); {
		case to != LinePaid && to != LineReturned:
			return History{} // no attempt paid
		case h.PaidAt.IsZero():
			return History{PaidAt: at, Decided: true}
		}
	default: // moves no money
	}
	return h
}

// Evidenced reports whether a line is paid, or was and came back, without a doubt, and its history says so. Only then a paper
// says that it was paid.
func (h History) Evidenced(l Line) bool {
	switch {
	case l.Contested || h.PaidAt.IsZero():
		return false
	case l.Status == LinePaid:
		return h.ReturnedAt.IsZero()
	case l.Status == LineReturned:
		return !h.ReturnedAt.IsZero()
	}
	return false
}
