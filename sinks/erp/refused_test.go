package erp_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/internal/deliveries"
)

// An agency renewed the token of its ERP in the evening and told nobody. For two days the ERP answered 401:
// each confirmation was parked and had a case of its own, or had one after a day, and a person sent them again
// one by one. Then a firewall answered 403 for an hour, and all began anew.
func TestBadDayOfCredentials(t *testing.T) {
	t.Parallel()
	c := newCircle(t)
	var answer atomic.Int32
	answer.Store(http.StatusUnauthorized)
	accepted := make(chan string, 100)
	c.receiver.Answer(func(w http.ResponseWriter, req *http.Request) {
		status := int(answer.Load())
		if status == http.StatusOK {
			accepted <- req.Header.Get("Idempotency-Key")
		}
		w.WriteHeader(status)
	})
	stop := c.delivers()
	c.reports(c)
	var ids []string
	pay := func(n int) {
		for range n {
			id := fmt.Sprintf("s%d", len(ids))
			ids = append(ids, id)
			c.pay(id)
		}
	}
	waiting := func() (n int) {
		for _, id := range ids {
			if c.state(id) == deliveries.StateWaiting {
				n++
			}
		}
		return n
	}
	cases := func(open bool) (n int) {
		for _, id := range ids {
			for _, k := range c.Session(id).Cases {
				if k.Kind == checkout.CaseConfirmation && k.Open() == open {
					n++
				}
			}
		}
		return n
	}
	calls := func() int { return len(c.receiver.Got()) }

	pay(6)
	c.eventually("all wait", func() bool { return waiting() == len(ids) })
	c.eventually("one case", func() bool { return cases(true) == 1 })
	before := calls()
	if before > 4 {
		t.Errorf("%d calls before the ERP was held, want at most those that it may have at once", before)
	}
	// Quarters of an hour pass, each with one call; in one of them the worker is replaced.
	for quarter := range 4 {
		if quarter == 2 {
			stop()
			stop = c.delivers()
		}
		c.Bench.Advance(16 * time.Minute)
		c.eventually("a probe", func() bool { return calls() == before+quarter+1 })
		c.eventually("all wait again", func() bool { return waiting() == len(ids) })
	}
	// Two days pass, and the sessions have their ticks.
	days := func(hours int) {
		for range hours / 7 {
			c.Bench.Advance(7 * time.Hour)
			c.Change(func() { c.Time = c.Bench.Now().Truncate(time.Millisecond) })
			for _, id := range ids {
				c.do(id, checkout.Tick{})
			}
		}
	}
	before = calls()
	days(49)
	c.eventually("a probe", func() bool { return calls() > before })
	c.eventually("all wait again", func() bool { return waiting() == len(ids) })
	if n := cases(true) + cases(false); n != 1 {
		t.Errorf("%d cases, want 1", n)
	}
	if n, err := c.Store.ConfirmationsWaiting(t.Context(), "agency", false); err != nil || n != int64(len(ids)) {
		t.Errorf("%d confirmations wait, want %d, %v", n, len(ids), err)
	}
	// The agency gives the token back: all flow, and the case ends by itself.
	mended := func() {
		answer.Store(http.StatusOK)
		c.Bench.Advance(16 * time.Minute)
		c.eventually("all are accepted", func() bool {
			c.Bench.Advance(time.Second)
			for _, id := range ids {
				if c.state(id) != deliveries.StateDelivered || c.status(id) != checkout.ConfirmationAccepted {
					return false
				}
			}
			return true
		})
	}
	mended()
	if open, closed := cases(true), cases(false); open != 0 || closed != 1 {
		t.Errorf("%d open and %d closed cases, want 0 and 1", open, closed)
	}
	answer.Store(http.StatusForbidden)
	pay(5)
	c.eventually("the new ones wait", func() bool { return waiting() == 5 && cases(true) == 1 })
	mended()
	if open, closed := cases(true), cases(false); open != 0 || closed != 2 {
		t.Errorf("%d open and %d closed cases, want 0 and 2", open, closed)
	}
	close(accepted)
	got := map[string]int{}
	for id := range accepted {
		got[id]++
	}
	for _, id := range ids {
		if got["tx-"+id] != 1 {
			t.Errorf("%s was accepted %d times", id, got["tx-"+id])
		}
	}
	var refusing int
	if err := c.Pool.QueryRow(t.Context(), `SELECT count(*) FROM delivery_destinations WHERE refused_since IS NOT NULL`).Scan(&refusing); err != nil || refusing != 0 {
		t.Errorf("%d destinations refuse our credentials, %v", refusing, err)
	}
}

// One confirmation is answered 403 and all others are taken: it is parked at its third refusal, and
// the others wait half an hour at most.
func TestConfirmationThatIsForbidden(t *testing.T) {
	t.Parallel()
	c := newCircle(t)
	c.receiver.Answer(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Idempotency-Key") == "tx-forbidden" {
			w.WriteHeader(http.StatusForbidden)
		}
	})
	c.delivers()
	c.reports(c)
	c.pay("forbidden")
	c.eventually("the case", func() bool { return c.status("forbidden") == checkout.ConfirmationRefused })
	c.pay("other")
	n := 0
	c.eventually("it is parked", func() bool {
		if n++; n%20 == 0 { // in between there is a payment that is accepted
			c.pay(fmt.Sprintf("more-%d", n))
		}
		c.Bench.Advance(time.Minute)
		return c.state("forbidden") == deliveries.StateNeedsOperator
	})
	c.eventually("the other one is accepted", func() bool { return c.state("other") == deliveries.StateDelivered })
	if n := c.receiver.Count()["tx-forbidden"]; n != 3 {
		t.Errorf("it was sent %d times, want 3", n)
	}
	// Its first two refusals were taken for those of the ERP, whose case ended when another one was accepted.
	c.eventually("its own case is the only open one", func() bool {
		open := 0
		for _, k := range c.Session("forbidden").Cases {
			if k.Open() && !k.AboutERP() {
				open++
			} else if k.Resolution != checkout.ResolutionAccepted {
				return false
			}
		}
		return open == 1
	})
}
