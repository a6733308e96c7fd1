package pages_test

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/dev/bench/measure"
	"quittance/ingress/web"
)

// A flood of 200,000 addresses of one provider's network shuts no citizen out who is paying, and
// makes none wait twice as long. Citizens pay behind the few addresses of mobile operators, at an
// instance with limits as in production, or smaller ones in the suites. In the suites the flood is short and no time is judged;
// `make test/flood` runs the whole, and names the file of its report.
func TestFlood(t *testing.T) {
	addresses, citizens, perSecond := 20_000, 100, 5000
	perInstance := 600.0 // so that also a slow machine floods it
	file := os.Getenv("QUITTANCE_FLOOD_REPORT")
	if file != "" {
		addresses, citizens, perSecond = 200_000, 1000, 2000
		perInstance = 2000
	}
	w, server := serveGated(t, web.GateConfig{PerClient: 100, PerInstance: perInstance, Lifetime: time.Hour, Now: func() time.Time { return start }})
	quiet, _, paid := w.payAll(t, server, "quiet", citizens)
	if paid != citizens {
		t.Fatalf("%d of %d citizens pay without a flood", paid, citizens)
	}
	var refused, sent atomic.Int64
	var flood sync.WaitGroup
	begun, raging := time.Now(), make(chan struct{})
	rages := sync.OnceFunc(func() { close(raging) })
	for worker := range 4 {
		flood.Go(func() {
			defer rages()
			for n := worker; n < addresses; n += 4 {
				measure.Until(t.Context(), begun.Add(time.Duration(n)*time.Second/time.Duration(perSecond)))
				if refused.Load() > 0 { // the burst of the network is over
					rages()
				}
				r := httptest.NewRequest(http.MethodGet, floods[n%len(floods)](n), nil)
				r.RemoteAddr = "127.0.0.1:1"
				r.Header.Set("X-Forwarded-For", fmt.Sprintf("2001:db8:%x:%x::1", n%65536, n/65536))
				answer := httptest.NewRecorder()
				server.Config.Handler.ServeHTTP(answer, r)
				sent.Add(1)
				if answer.Code == http.StatusTooManyRequests {
					refused.Add(1)
				}
			}
		})
	}
	<-raging
	before := sent.Load()
	busy, calls, paid := w.payAll(t, server, "flood", citizens)
	during := sent.Load() - before
	flood.Wait()
	ratio := float64(measure.Percentile(busy, 0.99)) / float64(measure.Percentile(quiet, 0.99))
	line := fmt.Sprintf("flood addresses=%d citizens=%d paid=%d p99_ratio=%.2f p99_quiet_ms=%d p99_flood_ms=%d refused=%d during=%d calls_a_payment=%.1f",
		addresses, citizens, paid, ratio, measure.Percentile(quiet, 0.99).Milliseconds(), measure.Percentile(busy, 0.99).Milliseconds(), refused.Load(), during, float64(calls)/float64(citizens))
	t.Log(line)
	if paid != citizens {
		t.Errorf("%d of %d citizens pay beside a flood", paid, citizens)
	}
	if refused.Load() == 0 || during == 0 {
		t.Errorf("the flood was none: %d calls beside the citizens, %d refused", during, refused.Load())
	}
	if file == "" {
		return
	}
	if ratio > 2 {
		t.Errorf("citizens wait %.2f times as long as without a flood, want at most 2", ratio)
	}
	if err := os.WriteFile(file, []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// floods are addresses of pages that a stranger asks for: a made-up session, and one that can no longer
// be paid.
var floods = []func(n int) string{
	func(n int) string { return "/c/" + made(n)[:len(made(n))-10] + "0123456789/live" },
	func(n int) string { return "/c/" + made(n) },
}

func made(n int) string {
	var random [16]byte
	binary.BigEndian.PutUint64(random[:], uint64(n))
	return ids.NewSession(start.Add(-2*time.Hour), 3, random)
}

// operators are the addresses behind which the citizens are.
var operators = []netip.Addr{
	netip.MustParseAddr("41.202.10.9"), netip.MustParseAddr("41.202.11.9"), netip.MustParseAddr("102.129.20.9"), netip.MustParseAddr("102.129.21.9"),
}

// payAll has citizens pay, 16 at the same time. It returns how long each call took, their number,
// and how many citizens saw that they have paid.
func (w *world) payAll(t *testing.T, server *httptest.Server, name string, citizens int) (took []time.Duration, calls, paid int) {
	t.Helper()
	var mu sync.Mutex
	var group sync.WaitGroup
	next := make(chan int)
	for range 16 {
		group.Go(func() {
			for n := range next {
				times, ok := w.payOne(t, server, fmt.Sprint(name, n), operators[n%len(operators)])
				mu.Lock()
				took = append(took, times...)
				if ok {
					paid++
				}
				mu.Unlock()
			}
		})
	}
	for n := range citizens {
		next <- n
	}
	close(next)
	group.Wait()
	return took, len(took), paid
}

// payOne has a citizen pay by phone, from the first page to the receipt.
func (w *world) payOne(t *testing.T, server *httptest.Server, order string, from netip.Addr) (took []time.Duration, ok bool) {
	id := w.create(order, func(s *checkout.Session) {
		var random [16]byte
		copy(random[:], order)
		s.ID = ids.NewSession(start, 3, random)
	})
	b := browse(t, server)
	b.header.Set("X-Forwarded-For", from.String())
	for _, step := range []func(){
		func() { b.get("/c/" + id) },
		func() { b.forward("phone", "06 600 00 02") },
		func() { b.forward() },
		func() { b.get("/c/" + id + "/live") },
		func() { b.get("/c/" + id) },
	} {
		if len(took) == 3 {
			w.outcome(id, checkout.OutcomeApproved, "")
		}
		begun := time.Now()
		step()
		took = append(took, time.Since(begun))
		if b.status != http.StatusOK {
			t.Errorf("%s: %s is answered %d", order, b.at, b.status)
			return took, false
		}
	}
	return took, w.Session(id).Status == checkout.StatusCompleted
}
