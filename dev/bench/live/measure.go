package live

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"quittance/dev/bench/client"
	"quittance/dev/bench/measure"
	"quittance/dev/stack/program"
)

// Limit is the longest time, for 95 of 100 citizens, from the payer's approval until the
// citizen knows that the payment is made.
const Limit = time.Second

// Order creates a session of the demo registry that a citizen can pay by phone.
func Order(ctx context.Context, c *client.Client, order string) (client.Session, error) {
	return c.Create(ctx, program.DemoKey, fmt.Sprintf(`{"order_id":%q,"amount":5000,"description":"Patente 2026","service_code":"patente","success_url":"https://guichet.example/merci","cancel_url":"https://guichet.example/retour"}`, order))
}

// Phone is a number whose payments the simulated operator leaves pending until they are
// approved.
const Phone = "06 600 00 77"

// Result is what Measure has measured.
type Result struct {
	Told []time.Duration // from approval to the update, of each citizen who got it
	Lost []error         // citizens who did not get it, with the cause
}

// String returns the figures of a report.
func (r Result) String() string {
	at := func(p float64) int64 { return measure.Percentile(r.Told, p).Milliseconds() }
	return fmt.Sprintf("lost=%d p50_ms=%d p95_ms=%d p99_ms=%d", len(r.Lost), at(0.5), at(0.95), at(0.99))
}

// Soon says whether 95 of 100 citizens were told within the limit.
func (r Result) Soon() bool { return len(r.Told) > 0 && measure.Percentile(r.Told, 0.95) <= Limit }

// citizen waits at a page for the operator.
type citizen struct {
	client.Session
	collection string
	version    string // of the page
	approved   time.Time
	toldAt     time.Time
}

var versionPattern = regexp.MustCompile(`data-version="([^"]*)"`)

// Measure makes citizens pay and wait at their pages, all at once. Then it approves the
// payments, one every pace, and measures how soon each page's stream says so.
func Measure(ctx context.Context, c *client.Client, citizens int, pace time.Duration) (Result, error) {
	all := make([]*citizen, citizens)
	for i := range all {
		var err error
		if all[i], err = pay(ctx, c); err != nil {
			return Result{}, err
		}
	}
	for _, w := range all {
		if err := w.arrive(ctx, c); err != nil {
			return Result{}, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	// Streams stay open, so they must not use up the connections of other requests.
	streams := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: citizens}}
	defer streams.CloseIdleConnections()
	var here, done sync.WaitGroup
	faults := make([]error, citizens)
	for i, w := range all {
		here.Add(1)
		done.Go(func() { faults[i] = w.follow(ctx, c, streams, here.Done) })
	}
	here.Wait()
	err := approve(ctx, c, all, pace)
	if err != nil {
		cancel()
	}
	done.Wait()
	if err != nil {
		return Result{}, err
	}
	var r Result
	for i, w := range all {
		if faults[i] != nil {
			r.Lost = append(r.Lost, fmt.Errorf("session %s: %w", w.ID, faults[i]))
			continue
		}
		r.Told = append(r.Told, w.toldAt.Sub(w.approved))
	}
	return r, nil
}

// pay makes a citizen who has confirmed a payment.
func pay(ctx context.Context, c *client.Client) (*citizen, error) {
	s, err := Order(ctx, c, "live-"+uuid.NewString())
	if err != nil {
		return nil, err
	}
	return &citizen{Session: s}, c.Citizen(s.ID).Pay(ctx, Phone)
}

// arrive waits until the operator has the payment, and reads the page.
func (w *citizen) arrive(ctx context.Context, c *client.Client) error {
	collection, err := c.Collected(ctx, w.Session)
	if err != nil {
		return err
	}
	page, err := c.Citizen(w.ID).Page(ctx)
	if err != nil {
		return err
	}
	m := versionPattern.FindStringSubmatch(page)
	if m == nil {
		return fmt.Errorf("the page of %s is not live", w.ID)
	}
	w.collection, w.version = collection.ID, m[1]
	return nil
}

// approve approves all payments, one every pace.
func approve(ctx context.Context, c *client.Client, all []*citizen, pace time.Duration) error {
	const atOnce = 16
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	begun := time.Now()
	for i, w := range all {
		measure.Until(ctx, begun.Add(time.Duration(i)*pace))
		g.Go(func() error {
			w.approved = time.Now()
			return c.Approve(ctx, w.collection)
		})
	}
	return g.Wait()
}

// follow listens to the stream of a page until the page shows the receipt. It calls here
// once, when the stream has sent something.
func (w *citizen) follow(ctx context.Context, c *client.Client, streams *http.Client, here func()) error {
	var once sync.Once
	defer once.Do(here)
	page := c.Service + "/c/" + w.ID
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page+"/live", http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Last-Event-ID", w.version)
	resp, err := streams.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		once.Do(here)
		id, isID := strings.CutPrefix(lines.Text(), "id: ")
		if !isID {
			continue
		}
		at := time.Now()
		shown, err := c.Send(ctx, http.MethodGet, page+"?lang=en", "")
		switch {
		case err != nil:
			return err
		case strings.Contains(string(shown.Body), "Payment successful") && strings.Contains(string(shown.Body), w.PaymentRef):
			w.toldAt = at
			return nil
		case !versionPattern.Match(shown.Body):
			return fmt.Errorf("the stream sends version %s, and the page (status %d) shows neither that it waits nor the receipt", id, shown.Status)
		}
	}
	return errors.New("the stream ends before the payment")
}
