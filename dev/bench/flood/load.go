package flood

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"quittance/checkout"
	"quittance/dev/bench/measure"
)

// load is the applications. A request without an answer is sent again with the same key
// until it has one, so that the outcome of every creation is known. Safe for concurrent
// use.
type load struct {
	ingress []string // base URLs
	keys    []string
	client  *http.Client

	mu                sync.Mutex
	accepted, refused []answer
	latest            map[int]answer // accepted, by application
	replays, retries  int
	faults            []string
}

// answer is the outcome of a creation.
type answer struct {
	app        int // index
	order, key string

	status    int
	session   string
	remaining int       // rest of the quota, from the answer; -1 when the answer has none
	sent      time.Time // of the first request when it was accepted, else of the last
	answered  time.Time
}

// run makes the quiet applications create from now on, which also warms the service up,
// and the flooding ones from a time on. All end at to.
func (l *load) run(ctx context.Context, from, to time.Time) {
	ctx, cancel := context.WithDeadline(ctx, to.Add(journeyPatience))
	defer cancel()
	var all sync.WaitGroup
	for app := range l.keys {
		if app >= flooding {
			all.Go(func() { l.stayBelow(ctx, app, to) })
		} else {
			all.Go(func() { l.flood(ctx, &all, app, from, to) })
		}
	}
	all.Wait()
}

// stayBelow sends one creation after the other, evenly spread.
func (l *load) stayBelow(ctx context.Context, app int, to time.Time) {
	const every = time.Minute / below
	next := time.Now().Add(every * time.Duration(app-flooding) / numQuiet)
	for n := app; next.Before(to) && measure.Pause(ctx, time.Until(next)); n++ {
		if a, ok := l.create(ctx, app, n); ok && a.status != http.StatusCreated {
			l.fault("application %d, which is below its quota, was refused at %s", app, a.sent.Format(time.TimeOnly))
		}
		for next = next.Add(every); next.Before(time.Now()); next = next.Add(every) {
		}
	}
}

// flood sends creations to all instances at the same time, without waiting for earlier
// answers. In between it sends an accepted creation again, while some of the quota is
// left and while none is left.
func (l *load) flood(ctx context.Context, all *sync.WaitGroup, app int, from, to time.Time) {
	const every = Instances * time.Minute / offered
	next := from.Add(every * time.Duration(app) / flooding)
	for n := 0; next.Before(to) && measure.Pause(ctx, time.Until(next)); n++ {
		for instance := range Instances {
			all.Go(func() { _, _ = l.create(ctx, app, instance) })
		}
		if n%2 == 1 {
			all.Go(func() { l.replay(ctx, app, n/2) })
		}
		next = next.Add(every)
	}
}

// create creates the session of a new order. ok is false when there was no answer.
func (l *load) create(ctx context.Context, app, instance int) (answer, bool) {
	a := answer{app: app, order: uuid.NewString(), key: uuid.NewString()}
	ok := l.ask(ctx, &a, instance, false)
	if !ok {
		return a, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch a.status {
	case http.StatusCreated:
		l.accepted = append(l.accepted, a)
		l.latest[app] = a
	case http.StatusTooManyRequests:
		l.refused = append(l.refused, a)
	}
	return a, true
}

// replay sends an accepted creation again. An instance that gets more than 120 requests a
// minute of an application refuses them before it can recognize a replay. This flood
// stays below that: 75 creations and 9 replays a minute for each instance.
func (l *load) replay(ctx context.Context, app, instance int) {
	l.mu.Lock()
	first, ok := l.latest[app]
	l.mu.Unlock()
	if !ok {
		return
	}
	again := answer{app: app, order: first.order, key: first.key}
	if !l.ask(ctx, &again, instance, true) {
		return
	}
	if again.status != http.StatusCreated || again.session != first.session {
		l.fault("application %d: the creation of %s was answered with %d %s when it was sent again", app, first.session, again.status, again.session)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.replays++
}

// ask sends a creation until it is answered, each time to another instance, and checks
// the answer. It returns false when there was no correct answer; that is a fault.
func (l *load) ask(ctx context.Context, a *answer, instance int, again bool) bool {
	body, err := json.Marshal(map[string]any{"order_id": a.order, "amount": 5000, "description": "Quota test"})
	if err != nil {
		l.fault("order %s: %v", a.order, err)
		return false
	}
	a.sent = time.Now().UTC()
	for try := 0; ; try++ {
		last := time.Now().UTC()
		status, header, text, err := l.post(ctx, l.ingress[(instance+try)%Instances], *a, body)
		a.answered = time.Now().UTC()
		if err == nil && status < http.StatusInternalServerError {
			if status != http.StatusCreated {
				a.sent = last
			}
			if err := a.read(status, header, text, again || try > 0); err != nil {
				l.fault("application %d at %s: %v: %d\n%s", a.app, a.answered.Format(time.TimeOnly), err, status, text)
				return false
			}
			return true
		}
		l.mu.Lock()
		l.retries++
		l.mu.Unlock()
		if !measure.Pause(ctx, time.Second) {
			l.fault("application %d had no answer for order %s", a.app, a.order)
			return false
		}
	}
}

func (l *load) post(ctx context.Context, base string, a answer, body []byte) (status int, header http.Header, text []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/api/v1/checkout/sessions", strings.NewReader(string(body)))
	if err != nil {
		return 0, nil, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+l.keys[a.app])
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", a.key)
	resp, err := l.client.Do(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err = io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, resp.Header, text, err
}

// rateLimit is the RateLimit header of the quota of creations: the rest, and the seconds
// until the quota is full again.
var rateLimit = regexp.MustCompile(`^"creations";r=(\d+);t=(\d+)$`)

// read checks an answer against the contract and its decisions (§§ 1, 2). The answer to a
// request that was sent before may be a replay, which does not count.
func (a *answer) read(status int, header http.Header, text []byte, before bool) error {
	a.status, a.remaining = status, -1
	var body struct{ ID, Code string }
	if err := json.Unmarshal(text, &body); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	replayed := header.Get("Idempotent-Replayed") == "true"
	if replayed && !before {
		return errors.New("a new creation is answered as a replay")
	}
	if !replayed {
		if policy, want := header.Get("RateLimit-Policy"), fmt.Sprintf(`"creations";q=%d;w=60`, granted); policy != want {
			return fmt.Errorf("RateLimit-Policy is %q, want %q", policy, want)
		}
		state := rateLimit.FindStringSubmatch(header.Get("RateLimit"))
		if state == nil {
			return fmt.Errorf("RateLimit is %q", header.Get("RateLimit"))
		}
		a.remaining, _ = strconv.Atoi(state[1])
		if reset, err := strconv.Atoi(state[2]); err != nil || reset > 60 {
			return fmt.Errorf("RateLimit is %q, want a t of 60 at most", state[0])
		}
	}
	switch status {
	case http.StatusCreated:
		a.session = body.ID
		if _, err := checkout.SessionPartition(a.session); err != nil {
			return fmt.Errorf("session %q: %w", a.session, err)
		}
		return nil
	case http.StatusTooManyRequests:
		after, err := strconv.Atoi(header.Get("Retry-After"))
		switch nextMinute := a.sent.Truncate(time.Minute).Add(time.Minute); {
		case err != nil || after < 1 || after > 60:
			return fmt.Errorf("Retry-After is %q, want 1 to 60", header.Get("Retry-After"))
		case a.answered.Add(time.Duration(after) * time.Second).Before(nextMinute):
			return fmt.Errorf("Retry-After is %d, which ends in the same minute", after)
		case body.Code != "generic.rate_limited" || a.remaining != 0:
			return fmt.Errorf("code %q with %d creations left", body.Code, a.remaining)
		}
		return nil
	}
	return errors.New("neither accepted nor refused")
}

func (l *load) fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.faults) < 50 {
		l.faults = append(l.faults, fmt.Sprintf(format, args...))
	}
}
