package crash_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"quittance/dev/bench/measure"
	"quittance/test/harness"

	"github.com/google/uuid"
)

// load plays the integrators that create sessions, the citizens that pay them with the
// forms of the pages, citizens with carts of dues, and partners of the deprecated cash-in
// surface. Safe for concurrent use.
type load struct {
	stack    *harness.Stack
	client   *http.Client
	partners []*partner
	portal   *portal

	// next numbers journeys over all phases of a run.
	next    atomic.Int64
	under   atomic.Int64 // journeys under way
	retries atomic.Int64
	over    <-chan struct{} // closed when no further journey begins

	mu         sync.Mutex
	creations  []creation
	cancelled  []string
	taken      []cash
	refunds    []string         // sessions that staff give back once they are paid
	parts      []string         // carts of which staff give back one due once they are paid
	abandoned  []creation       // "late" journeys that did not end in time
	charges    []charge         // of partners' programs, each answer
	unanswered int              // payments that partners asked for and got no answer
	refused    int              // calls of partners that a quota refused, and no time was left
	owed       map[string]int64 // of dues that carts pay, before any payment, by erp_due_ref
	cartsMade  int              // that were answered
	// cartsRefused has the keys of carts that were refused because another payment of a due was
	// under way.
	cartsRefused  []string
	cartsRepeated int      // requests of carts that were repeated after their answer
	duesChanged   []string // keys of carts that were refused because a due had changed
	started       int
	confirmed     int       // confirmations that were answered
	gaveUp        int       // journeys that did not end in time
	skipped       int       // journeys not begun because too many were under way
	latencies     []latency // of creations
	surprises     []string  // the first unexpected answers
	surprised     int       // number of unexpected answers
}

// latency is how long a creation took, retries included.
type latency struct {
	begun time.Time
	took  time.Duration
}

// during returns the latencies of the creations that began in a time.
func during(all []latency, from, until time.Time) (out []time.Duration) {
	for _, l := range all {
		if !l.begun.Before(from) && l.begun.Before(until) {
			out = append(out, l.took)
		}
	}
	return out
}

const maxUnderWay = 5000

func newLoad(s *harness.Stack, p *portal) *load {
	transport := &http.Transport{MaxIdleConns: 1024, MaxIdleConnsPerHost: 512, IdleConnTimeout: 30 * time.Second}
	return &load{stack: s, portal: p, owed: map[string]int64{}, partners: newPartners(s, transport), client: &http.Client{
		Timeout:       harness.RequestPatience,
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// run begins journeys at a rate until begin ends, then waits for their ends. The rate does
// not depend on earlier journeys (an open loop). It returns how many journeys were under
// way when begin ended.
func (l *load) run(ctx, begin context.Context, rate float64) (leftOver int64) {
	var journeys sync.WaitGroup
	l.over = begin.Done()
	begun := time.Now()
	for n := 0; ; n++ {
		at := time.Duration(float64(n) / rate * float64(time.Second))
		if !measure.Pause(begin, time.Until(begun.Add(at))) {
			break
		}
		if l.under.Load() >= maxUnderWay {
			l.mu.Lock()
			l.skipped++
			l.mu.Unlock()
			continue
		}
		id := l.next.Add(1)
		l.under.Add(1)
		journeys.Go(func() {
			defer l.under.Add(-1)
			ctx, cancel := context.WithTimeout(ctx, harness.JourneyPatience)
			defer cancel()
			switch id % partnerEvery {
			case partnerEvery - 1:
				l.partnerJourney(ctx, int(id))
			case cartEvery:
				l.carts(ctx, int(id))
			default:
				l.journey(ctx, int(id))
			}
		})
	}
	leftOver = l.under.Load()
	journeys.Wait()
	return leftOver
}

// plan returns what happens in journey n: the last two digits of the payer's magic
// number, or a word of journey.
func plan(n int) string {
	switch n %= 100; {
	case n < 66:
		return "01" // approved at once
	case n < 69:
		return "cash" // taken by a clerk
	case n < 72:
		return "reversed" // taken by a clerk, given back by another
	case n < 75:
		return "late" // approved after the integrator has cancelled
	case n < 76:
		return "refund" // approved at once, then given back by staff
	case n < 84:
		return "09" // approved, called back twice
	case n < 89:
		return "08" // approved, callback lost
	case n < 94:
		return "04" // rejected
	case n < 96:
		return "11" // the operator's first answer is a 500
	case n < 97:
		return "12" // ambiguous for a while
	case n < 99:
		return "cancel"
	}
	return "leave"
}

// journey is one order from its creation to the citizen's confirmation.
func (l *load) journey(ctx context.Context, n int) {
	l.mu.Lock()
	l.started++
	l.mu.Unlock()
	what, app := plan(n), l.stack.Apps[n%len(l.stack.Apps)]
	counter := l.stack.Counters[n%len(l.stack.Counters)]
	if what == "cash" || what == "reversed" {
		app = counter.Application
	}
	c := creation{application: app.ID, order: fmt.Sprintf("order-%06d", n), key: uuid.NewString(), amount: int64(1000 + n%9000)}
	request := map[string]any{"order_id": c.order, "amount": c.amount, "service_code": "tax", "description": "Crash test"}
	if n%10 != 0 { // one in ten has no due of an ERP
		request["metadata"] = map[string]string{"erp_due_ref": fmt.Sprintf("due-%06d", n)}
	}
	body, err := json.Marshal(request)
	if err != nil {
		l.surprise("order %s: %v", c.order, err)
		return
	}
	begun := time.Now()
	if !l.create(ctx, app, &c, body, n) {
		return
	}
	l.mu.Lock()
	l.latencies = append(l.latencies, latency{begun, time.Since(begun)})
	l.mu.Unlock()
	if n%20 == 7 { // the client repeats the creation and gets the same answer
		if again := c; !l.create(ctx, app, &again, body, n+1) {
			return
		}
	}
	switch what {
	case "leave":
	case "cancel":
		l.cancel(ctx, app, c.session, n, false)
	case "cash", "reversed":
		l.payCash(ctx, counter, c, what == "reversed", n)
	case "late":
		l.payLate(ctx, c, n, func() bool { l.cancel(ctx, app, c.session, n, true); return true })
	case "refund":
		if l.pay(ctx, c.session, "06 600 00 01", n) {
			l.mu.Lock()
			l.refunds = append(l.refunds, c.session)
			l.mu.Unlock()
		}
	default:
		l.pay(ctx, c.session, "06 600 00 "+what, n)
	}
}

// create repeats a creation with the same key until it is answered, each time at another
// ingress.
func (l *load) create(ctx context.Context, app harness.Application, c *creation, body []byte, at int) bool {
	for try := 0; ; try++ {
		status, answer, err := l.call(ctx, http.MethodPost, at+try, "/api/v1/checkout/sessions", "application/json", string(body), map[string]string{
			"Authorization": "Bearer " + app.Key, "Idempotency-Key": c.key,
		})
		switch {
		case err == nil && status == http.StatusCreated:
			var session struct {
				ID         string `json:"id"`
				PaymentRef string `json:"payment_ref"`
			}
			if err := json.Unmarshal([]byte(answer), &session); err != nil || session.ID == "" || session.PaymentRef == "" {
				l.surprise("creation of %s was answered with %q", c.order, answer)
				return false
			}
			c.session, c.reference = session.ID, session.PaymentRef
			l.mu.Lock()
			l.creations = append(l.creations, *c)
			l.mu.Unlock()
			return true
		case err == nil && status < http.StatusInternalServerError:
			l.surprise("creation of %s was answered with %d %s", c.order, status, answer)
			return false
		}
		if !l.again(ctx, try) {
			return false
		}
	}
}

// cancel repeats a cancellation until it is answered. After a lost answer, 409 can mean
// that an earlier try cancelled the session; only a 200 counts as acknowledged. A session
// whose payer has confirmed may have failed before: its request was not sent in time.
func (l *load) cancel(ctx context.Context, app harness.Application, session string, at int, confirmed bool) {
	for try := 0; ; try++ {
		status, answer, err := l.call(ctx, http.MethodPost, at+try, "/api/v1/checkout/sessions/"+session+"/cancel", "", "", map[string]string{
			"Authorization": "Bearer " + app.Key,
		})
		switch {
		case err == nil && status == http.StatusOK:
			l.mu.Lock()
			l.cancelled = append(l.cancelled, session)
			l.mu.Unlock()
			return
		case err == nil && status == http.StatusConflict && (try > 0 || confirmed):
			return
		case err == nil && status < http.StatusInternalServerError:
			l.surprise("cancellation of %s was answered with %d %s", session, status, answer)
			return
		}
		if !l.again(ctx, try) {
			return
		}
	}
}

// pay pays on the page without a script: number, review, confirmation. Without an answer
// it loads the page from another ingress and continues with the form that it shows. It
// returns whether the citizen has confirmed.
func (l *load) pay(ctx context.Context, session, phone string, at int) bool {
	form := harness.PageForm{}
	for try := 0; ; {
		method, path, body := http.MethodGet, "/c/"+session+"?lang=en", ""
		if form.Action != "" {
			method, path, body = http.MethodPost, form.Action, form.Fields.Encode()
		}
		paying := form.Step() == "pay"
		if paying && at%30 == 11 { // a double click
			l.twice(ctx, at+try, path, body)
		}
		status, answer, err := l.call(ctx, method, at+try, path, "application/x-www-form-urlencoded", body, nil)
		switch {
		case err != nil || status >= http.StatusInternalServerError:
			form = harness.PageForm{}
			try++
			if !l.again(ctx, try) {
				return false
			}
			continue
		case status == http.StatusSeeOther:
			form = harness.PageForm{} // load the page next
			if paying {
				l.mu.Lock()
				l.confirmed++
				l.mu.Unlock()
				return true
			}
		case status == http.StatusOK, status == http.StatusConflict, status == http.StatusUnprocessableEntity:
			if form = harness.ReadForm(answer); form.Action == "" {
				return true // the page waits for the payer or shows the end
			}
			if form.Step() == "phone" {
				form.Fields.Set("phone", phone)
			}
		default:
			l.surprise("%s %s was answered with %d %s", method, path, status, answer)
			return false
		}
		if status != http.StatusOK && !l.again(ctx, try) {
			return false
		}
		if ctx.Err() != nil {
			l.giveUp()
			return false
		}
	}
}

// twice sends a form once more, before pay sends it.
func (l *load) twice(ctx context.Context, at int, path, body string) {
	_, _, _ = l.call(ctx, http.MethodPost, at+1, path, "application/x-www-form-urlencoded", body, nil)
}

// again waits before the next try. It returns false when the journey's time is over.
func (l *load) again(ctx context.Context, try int) bool {
	l.retries.Add(1)
	wait := min(time.Duration(try+1)*100*time.Millisecond, time.Second)
	if !measure.Pause(ctx, wait+rand.N(wait)) {
		l.giveUp()
		return false
	}
	return true
}

func (l *load) giveUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gaveUp++
}

func (l *load) surprise(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.surprised++
	if len(l.surprises) < maxFindings {
		l.surprises = append(l.surprises, fmt.Sprintf(format, args...))
	}
}

// call sends a request to the ingress of number at, modulo their number.
func (l *load) call(ctx context.Context, method string, at int, path, contentType, body string, header map[string]string) (status int, answer string, err error) {
	return l.send(ctx, method, l.stack.Ingress[at%len(l.stack.Ingress)]+path, contentType, body, header)
}

func (l *load) send(ctx context.Context, method, url, contentType, body string, header map[string]string) (status int, answer string, err error) {
	status, answer, _, err = request(ctx, l.client, method, url, contentType, body, header)
	return status, answer, err
}

// request sends a request. An incomplete answer counts as none.
func request(ctx context.Context, client *http.Client, method, url, contentType, body string, header map[string]string) (status int, answer string, got http.Header, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", nil, err
	}
	if body != "" {
		req.Header.Set("Content-Type", contentType)
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return 0, "", nil, err
	}
	if resp.StatusCode == http.StatusSeeOther && resp.Header.Get("Location") == "" {
		return 0, "", nil, errors.New("redirection without an address")
	}
	return resp.StatusCode, string(text), resp.Header, nil
}
