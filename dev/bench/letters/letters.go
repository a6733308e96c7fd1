// Package letters measures how soon the receipt of a payment is in the payer's mailbox.
package letters

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"quittance/dev/bench/client"
	"quittance/dev/bench/installation"
	"quittance/dev/bench/measure"
	"quittance/dev/stack/program"
)

// Limit is the longest time, for 99 of 100 payers, from checkout.completed until the mail
// server has the receipt.
const Limit = 2 * time.Second

// Config of a measurement. All fields are required.
type Config struct {
	// Broker of the `up`: embedded, kafka, or host:port of a running Kafka.
	Broker string
	// Registry is the demo registry file.
	Registry string
	// Rate is the number of payments a second.
	Rate int
	// Warmup is how long payments run before those that are measured, Seconds how long those
	// run, in seconds.
	Warmup, Seconds int
	// Log receives progress.
	Log *slog.Logger
}

// payer is a number whose payments the simulated operator approves at once.
const payer = "06 600 00 01"

// Run starts an `up` of this program with the demo registry, makes payments whose payers gave an
// e-mail address, and writes a line to out: how long each receipt took from the completion of
// its session to the simulated mail server. It returns an error when a receipt is missing or
// doubled, or when more than 1 of 100 took longer than Limit.
func Run(ctx context.Context, cfg Config, out io.Writer) error {
	up := installation.UpConfig{Broker: cfg.Broker, Registry: cfg.Registry, Log: cfg.Log}
	return installation.Up(ctx, up, func(ctx context.Context, port int) error { return cfg.measure(ctx, client.New(port), out) })
}

// payment is a payment with an address of its own.
type payment struct {
	client.Session
	address string
	err     error
}

func (c Config) measure(ctx context.Context, to *client.Client, out io.Writer) error {
	to.HTTP.Transport = &http.Transport{MaxIdleConnsPerHost: 256}
	cold, all := c.Warmup*c.Rate, make([]*payment, (c.Warmup+c.Seconds)*c.Rate)
	c.Log.Info("paying", slog.Int("payments", len(all)), slog.Int("a_second", c.Rate))
	var paying sync.WaitGroup
	begun := time.Now()
	for i := range all {
		measure.Until(ctx, begun.Add(time.Duration(i)*time.Second/time.Duration(c.Rate)))
		all[i] = &payment{address: uuid.NewString() + "@example.org"}
		paying.Go(func() { all[i].pay(ctx, to) })
	}
	paying.Wait()
	took := time.Since(begun)
	for _, p := range all {
		if p.err != nil {
			return fmt.Errorf("a payment failed: %w", p.err)
		}
	}
	at, err := receipts(ctx, to, len(all))
	if err != nil {
		return err
	}
	completed, err := completions(ctx, to, len(all))
	if err != nil {
		return err
	}
	var told []time.Duration
	for _, p := range all[cold:] {
		if len(at[p.address]) != 1 {
			return fmt.Errorf("session %s has %d receipts, want one", p.ID, len(at[p.address]))
		}
		told = append(told, at[p.address][0].Sub(completed[p.ID]))
	}
	ms := func(p float64) int64 { return measure.Percentile(told, p).Milliseconds() }
	_, err = fmt.Fprintf(out, "letters payments=%d a_second=%d offered_s=%.0f took_s=%.1f p50_ms=%d p95_ms=%d p99_ms=%d max_ms=%d\n",
		len(told), c.Rate, math.Round(float64(len(all))/float64(c.Rate)), took.Seconds(), ms(0.5), ms(0.95), ms(0.99), ms(1))
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if p99 := measure.Percentile(told, 0.99); p99 > Limit {
		return fmt.Errorf("p99 is %v, more than %v", p99, Limit)
	}
	return nil
}

// pay makes a session and pays it.
func (p *payment) pay(ctx context.Context, to *client.Client) {
	p.Session, p.err = to.Create(ctx, program.DemoKey, fmt.Sprintf(
		`{"order_id":"letter-%s","amount":5000,"description":"Patente 2026","service_code":"patente","customer":{"email":%q}}`, uuid.NewString(), p.address))
	if p.err == nil {
		p.err = to.Citizen(p.ID).Pay(ctx, payer)
	}
}

// receipts waits until the mail server has a number of receipts, and returns the times of
// arrival by address.
func receipts(ctx context.Context, to *client.Client, want int) (at map[string][]time.Time, err error) {
	at = map[string][]time.Time{}
	seen := 0
	err = read(ctx, to, "/inbox/mail", func(l letter) bool {
		address := strings.ToLower(l.To)
		at[address] = append(at[address], l.ReceivedAt)
		seen++
		return seen >= want
	})
	return at, err
}

// inbox is where the simulators keep the webhooks of the demo registry's integrator.
const inbox = "/inbox/guichet"

// completions waits until the integrator knows that a number of sessions is completed, and
// returns when each was, by session.
func completions(ctx context.Context, to *client.Client, want int) (at map[string]time.Time, err error) {
	at = map[string]time.Time{}
	err = read(ctx, to, inbox, func(m webhook) bool {
		var e struct {
			SessionID   string    `json:"session_id"`
			CompletedAt time.Time `json:"completed_at"`
		}
		if json.Unmarshal([]byte(m.Body), &e) == nil && !e.CompletedAt.IsZero() {
			at[e.SessionID] = e.CompletedAt
		}
		return len(at) >= want
	})
	return at, err
}

type webhook struct {
	ID   int64  `json:"id"`
	Body string `json:"body"`
}

type letter struct {
	ID         int64     `json:"id"`
	ReceivedAt time.Time `json:"received_at"`
	To         string    `json:"to"`
}

func (m webhook) number() int64 { return m.ID }
func (m letter) number() int64  { return m.ID }

// read passes the entries of a list of the simulators to take until it returns true. It waits
// for more.
func read[T interface{ number() int64 }](ctx context.Context, to *client.Client, list string, take func(T) (enough bool)) error {
	var last int64
	return client.Eventually(ctx, "reading "+list, func() error {
		a, err := to.Send(ctx, http.MethodGet, to.Simulators+list+"?after="+strconv.FormatInt(last, 10), "")
		if err != nil {
			return err
		}
		var entries []T
		if err := json.Unmarshal(a.Body, &entries); err != nil {
			return fmt.Errorf("%d: %w", a.Status, err)
		}
		enough := false
		for _, e := range entries {
			last, enough = max(last, e.number()), take(e) || enough
		}
		if !enough {
			return fmt.Errorf("%d entries are not enough", last)
		}
		return nil
	})
}
