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

// load is the world's side: integrators that create sessions and citizens that
// pay them, on the pages' own forms. Safe for concurrent use.
type load struct {
	stack  *harness.Stack
	client *http.Client

	// next numbers journeys over all phases of a run.
	next    atomic.Int64
	under   atomic.Int64 // journeys under way
	retries atomic.Int64

	mu        sync.Mutex
	creations []creation
	cancelled []string
	started   int
	confirmed int             // payments that a citizen saw taken
	gaveUp    int             // journeys that came to no end in time
	skipped   int             // not begun, since too many were under way
	latencies []time.Duration // of creations, retries included
	surprises []string        // answers that nobody should get
	surprised int
}

const maxUnderWay = 5000

func newLoad(s *harness.Stack) *load {
	return &load{stack: s, client: &http.Client{
		Timeout:       harness.RequestPatience,
		Transport:     &http.Transport{MaxIdleConns: 1024, MaxIdleConnsPerHost: 512, IdleConnTimeout: 30 * time.Second},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// run begins journeys at a rate, whatever becomes of those before (an open
// loop), until begin ends, then waits for all to end. It returns how many were
// under way when it stopped beginning them.
func (l *load) run(ctx, begin context.Context, rate float64) (leftOver int64) {
	var journeys sync.WaitGroup
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
			l.journey(ctx, int(id))
		})
	}
	leftOver = l.under.Load()
	journeys.Wait()
	return leftOver
}

// plan is what happens to journey n: the payer's last two digits, "cancel" or
// "leave". The numbers are those of the simulators' table.
func plan(n int) string {
	switch n %= 100; {
	case n < 76:
		return "01" // approved at once
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
	app := l.stack.Apps[n%len(l.stack.Apps)]
	c := creation{application: app.ID, order: fmt.Sprintf("order-%06d", n), key: uuid.NewString(), amount: int64(1000 + n%9000)}
	request := map[string]any{"order_id": c.order, "amount": c.amount, "service_code": "tax", "description": "Crash test"}
	if n%10 != 0 { // one in ten is no ERP's due
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
	l.latencies = append(l.latencies, time.Since(begun))
	l.mu.Unlock()
	if n%20 == 7 { // asks again, as one who is not sure: the same answer
		if again := c; !l.create(ctx, app, &again, body, n+1) {
			return
		}
	}
	switch what := plan(n); what {
	case "leave":
	case "cancel":
		l.cancel(ctx, app, c.session, n)
	default:
		l.pay(ctx, c.session, "06 600 00 "+what, n)
	}
}

// create asks until it is told, with the same key, and each time another
// ingress.
func (l *load) create(ctx context.Context, app harness.Application, c *creation, body []byte, at int) bool {
	for try := 0; ; try++ {
		status, answer, err := l.call(ctx, http.MethodPost, at+try, "/api/v1/checkout/sessions", "application/json", string(body), map[string]string{
			"Authorization": "Bearer " + app.Key, "Idempotency-Key": c.key,
		})
		switch {
		case err == nil && status == http.StatusCreated:
			var session struct {
				ID string `json:"id"`
			}
			if err := json.Unmarshal([]byte(answer), &session); err != nil || session.ID == "" {
				l.surprise("creation of %s was answered with %q", c.order, answer)
				return false
			}
			c.session = session.ID
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

// cancel asks until it is told. After an answer that was lost, 409 may mean that
// the first one did it; only a 200 counts as acknowledged.
func (l *load) cancel(ctx context.Context, app harness.Application, session string, at int) {
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
		case err == nil && status == http.StatusConflict && try > 0:
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

// pay walks through the page without a script: number, review, confirmation.
// Whoever gets no answer looks at the page again, at the other ingress, and goes
// on with what it shows.
func (l *load) pay(ctx context.Context, session, phone string, at int) {
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
				return
			}
			continue
		case status == http.StatusSeeOther:
			form = harness.PageForm{} // look at what is now
			if paying {
				l.mu.Lock()
				l.confirmed++
				l.mu.Unlock()
				return
			}
		case status == http.StatusOK, status == http.StatusConflict, status == http.StatusUnprocessableEntity:
			if form = harness.ReadForm(answer); form.Action == "" {
				return // it waits for the payer, or is over
			}
			if form.Step() == "phone" {
				form.Fields.Set("phone", phone)
			}
		default:
			l.surprise("%s %s was answered with %d %s", method, path, status, answer)
			return
		}
		if status != http.StatusOK && !l.again(ctx, try) {
			return
		}
		if ctx.Err() != nil {
			l.giveUp()
			return
		}
	}
}

// twice sends a form a moment before it is sent again.
func (l *load) twice(ctx context.Context, at int, path, body string) {
	_, _, _ = l.call(ctx, http.MethodPost, at+1, path, "application/x-www-form-urlencoded", body, nil)
}

// again waits a moment before another try; false when the journey is over.
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

// call makes one request at the at-th ingress, counted round.
func (l *load) call(ctx context.Context, method string, at int, path, contentType, body string, header map[string]string) (status int, answer string, err error) {
	base := l.stack.Ingress[at%len(l.stack.Ingress)]
	req, err := http.NewRequestWithContext(ctx, method, base+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if body != "" {
		req.Header.Set("Content-Type", contentType)
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := l.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return 0, "", err // the answer broke off: it says nothing
	}
	if resp.StatusCode == http.StatusSeeOther && resp.Header.Get("Location") == "" {
		return 0, "", errors.New("redirection without an address")
	}
	return resp.StatusCode, string(text), nil
}
