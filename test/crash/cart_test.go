package crash_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"quittance/checkout"
	"quittance/internal/commands"
	"quittance/internal/kafka"
	"quittance/schemas"
	"quittance/test/harness"
)

// One journey in partnerEvery, of remainder cartEvery, is that of two citizens. Both pay dues
// of one subject, and one due is in the carts of both.
const cartEvery = 9

// portal makes carts as the citizen portal does, with commands. The citizens of the test have
// no accounts, and pull dues from the simulated ERP.
type portal struct {
	commands *commands.Checkout
	topology *kafka.Topology
	numbers  *checkout.References
	counter  atomic.Int64
	done     chan error
}

// openPortal connects to the processors. The portal runs until ctx ends; close waits for its
// end.
func openPortal(ctx context.Context, s *harness.Stack, codec *schemas.Codec) (*portal, error) {
	cfg := kafka.Config{Brokers: []string{s.Kafka.Addr()}, Prefix: harness.Prefix}
	cl, err := cfg.Client()
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	p := &portal{done: make(chan error, 1)}
	if p.topology, err = kafka.Load(ctx, cfg, cl); err != nil {
		return nil, err
	}
	// Numbers under a key of its own are not those of the service, but for a chance of 1 in a
	// million.
	key := make([]byte, 0, 32)
	for range 2 {
		id := uuid.New()
		key = append(key, id[:]...)
	}
	if p.numbers, err = checkout.NewReferences(key); err != nil {
		return nil, err
	}
	if p.commands, err = commands.New(ctx, commands.Config[checkout.Command, checkout.Answer]{
		Kafka: cfg, Topology: p.topology, Family: schemas.Checkout, Protocol: commands.CheckoutProtocol(codec, p.topology),
		Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
	}); err != nil {
		return nil, err
	}
	go func() { p.done <- p.commands.Run(ctx) }()
	return p, nil
}

// family is a subject of an agency's ERP with its dues, the first of which two carts share.
type family struct {
	app     harness.Application
	subject string
	n       int
}

// owed is a due as the simulated ERP has it.
type owed struct {
	Ref         string `json:"erp_due_ref"`
	Label       string `json:"label"`
	Amount      int64  `json:"amount_minor"`
	Outstanding int64  `json:"outstanding_minor"`
	Original    int64  `json:"original_minor"`
	Currency    string `json:"currency"`
	Partial     bool   `json:"allow_partial"`
	Minimum     int64  `json:"minimum_amount_minor,omitempty"`
}

const duesOfFamily = 7

// carts plays the two citizens.
func (l *load) carts(ctx context.Context, n int) {
	l.mu.Lock()
	l.started++
	l.mu.Unlock()
	f := family{app: l.stack.Apps[n%len(l.stack.Apps)], subject: fmt.Sprintf("subject-%06d", n), n: n}
	dues := make([]owed, duesOfFamily)
	for i := range dues {
		amount := int64(1000*(i+1) + n%900)
		dues[i] = owed{Ref: f.due(i), Label: "Crash test", Amount: amount, Outstanding: amount, Original: amount, Currency: "XAF", Partial: i%2 == 0}
		if dues[i].Partial {
			dues[i].Minimum = 100
		}
	}
	if !l.owe(ctx, f, dues) {
		return
	}
	k := n / partnerEvery
	more := 1 + k%3 // dues of the cart's own: 2 to 4 in all
	var both sync.WaitGroup
	both.Go(func() {
		l.cart(ctx, f, [...]string{"01", "late", "01", "09", "04"}[k%5], 0, indices(1, more))
	})
	both.Go(func() { l.cart(ctx, f, "01", 1, indices(1+more, 4-more)) })
	both.Wait()
}

// indices returns 0, the shared due, and count indices from first.
func indices(first, count int) []int {
	out := []int{0}
	for i := range count {
		out = append(out, first+i)
	}
	return out
}

func (f family) due(i int) string { return fmt.Sprintf("%s-due-%d", f.subject, i) }

// owe makes the simulated ERP have the dues.
func (l *load) owe(ctx context.Context, f family, dues []owed) bool {
	body, err := json.Marshal(map[string]any{"dues": map[string][]owed{f.subject: dues}})
	for try := 0; err == nil; try++ {
		status, answer, err := l.send(ctx, http.MethodPost, l.stack.Simulator+"/control/erp/"+f.app.Slug, "application/json", string(body), nil)
		switch {
		case err == nil && status == http.StatusNoContent:
			l.mu.Lock()
			for _, d := range dues {
				l.owed[d.Ref] = d.Original
			}
			l.mu.Unlock()
			return true
		case err == nil:
			l.surprise("the ERP answered its dues with %d %s", status, answer)
			return false
		}
		if !l.again(ctx, try) {
			return false
		}
	}
	return false
}

// pull returns the family's dues as the ERP has them now.
func (l *load) pull(ctx context.Context, f family) (map[string]owed, error) {
	status, answer, err := l.send(ctx, http.MethodGet, l.stack.Simulator+"/control/erp/"+f.app.Slug+"?limit=1&after=999999999", "", "", nil)
	if err != nil {
		return nil, err
	}
	var book struct {
		Dues map[string][]owed `json:"dues"`
	}
	if err := json.Unmarshal([]byte(answer), &book); err != nil || status != http.StatusOK {
		return nil, fmt.Errorf("the ERP's book: %d: %w", status, err)
	}
	out := map[string]owed{}
	for _, d := range book.Dues[f.subject] {
		out[d.Ref] = d
	}
	return out, nil
}

// cart plays a citizen who pays the dues with the indices. While another payment of a due is
// under way the citizen waits and looks at the dues again. One cart in two asks to replace
// the carts that nobody is paying.
func (l *load) cart(ctx context.Context, f family, what string, who int, dues []int) {
	citizen := uuid.NewString()
	for try := 0; ; try++ {
		pulled := time.Now().UTC().Truncate(time.Millisecond)
		now, err := l.pull(ctx, f)
		if err == nil {
			var items []checkout.Item
			for _, i := range dues {
				if d := now[f.due(i)]; d.Outstanding > 0 {
					items = append(items, f.item(d, (f.n/partnerEvery+i+who)%2 == 0))
				}
			}
			if len(items) == 0 {
				return
			}
			c, refused, ok := l.createCart(ctx, f, citizen, pulled, items, who == 0 && try == 0)
			if !ok {
				return
			}
			if !refused {
				l.payCart(ctx, f, c, what)
				return
			}
		}
		select {
		case <-l.over:
			return
		default:
		}
		if !l.again(ctx, try) {
			return
		}
	}
}

// item pays a due, or half of it.
func (f family) item(d owed, half bool) checkout.Item {
	it := checkout.Item{ERPDueRef: d.Ref, SubjectRef: f.subject, Label: d.Label, Amount: d.Outstanding, Outstanding: d.Outstanding}
	if half && d.Partial && d.Outstanding/2 >= d.Minimum {
		it.Amount = d.Outstanding / 2
	}
	return it
}

// createCart repeats a creation until it is answered. refused says that another payment of a
// due is under way.
func (l *load) createCart(ctx context.Context, f family, citizen string, pulled time.Time, items []checkout.Item, replace bool) (c creation, refused, ok bool) {
	s, err := l.portal.session(f, citizen, pulled, items)
	if err != nil {
		l.surprise("a cart of %s: %v", f.subject, err)
		return c, false, false
	}
	c = creation{application: f.app.ID, order: s.OrderID, key: uuid.NewString(), session: s.ID, reference: s.PaymentRef, amount: s.Amount}
	begun := time.Now()
	for try := 0; ; try++ {
		a, err := l.portal.ask(ctx, f, s, checkout.Create{Session: s, IdempotencyKey: c.key, BodyHash: []byte(c.key), CreationsPerMinute: 1_000_000, Replace: replace})
		switch {
		case err == nil && a.Code == checkout.CodeOK:
			l.mu.Lock()
			defer l.mu.Unlock()
			l.creations = append(l.creations, c)
			l.latencies = append(l.latencies, time.Since(begun))
			l.cartsMade++
			return c, false, true
		case err == nil && a.Code == checkout.CodeDueInPayment:
			l.mu.Lock()
			defer l.mu.Unlock()
			l.cartsRefused++
			return c, true, true
		case err == nil || !errors.Is(err, commands.ErrUnavailable):
			l.surprise("the creation of a cart of %s was answered with %s %v: %v", f.subject, a.Code, a.Faults, err)
			return c, false, false
		}
		if !l.again(ctx, try) {
			return c, false, false
		}
	}
}

// payCart pays a cart on its page. A late payer approves after the cart was cancelled.
func (l *load) payCart(ctx context.Context, f family, c creation, what string) {
	if what != "late" {
		l.pay(ctx, c.session, "06 600 00 "+what, f.n)
		return
	}
	if !l.pay(ctx, c.session, "06 600 00 03", f.n) {
		return
	}
	for try := 0; ; try++ {
		a, err := l.portal.ask(ctx, f, checkout.Session{ID: c.session}, checkout.Cancel{By: checkout.ByIntegrator})
		if err == nil {
			if a.Code == checkout.CodeOK {
				l.mu.Lock()
				l.cancelled = append(l.cancelled, c.session)
				l.mu.Unlock()
			}
			break
		}
		if !l.again(ctx, try) {
			return
		}
	}
	l.approve(ctx, c)
	if ctx.Err() != nil {
		l.abandon(c)
	}
}

func (p *portal) ask(ctx context.Context, f family, s checkout.Session, do checkout.Action) (checkout.Answer, error) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	if create, ok := do.(checkout.Create); ok {
		create.Session.CreatedAt, create.Session.ExpiresAt = now, now.Add(24*time.Hour)
		do = create
	}
	return p.commands.Ask(ctx, checkout.Command{At: now, TenantID: f.app.Tenant, SessionID: s.ID, ApplicationID: f.app.ID, Do: do})
}

// session returns a session of the portal with new numbers.
func (p *portal) session(f family, citizen string, pulled time.Time, items []checkout.Item) (checkout.Session, error) {
	now := time.Now().UTC()
	s := checkout.Session{
		ID:            checkout.NewSessionID(now, p.topology.Partition(schemas.Checkout.Commands, f.app.Tenant), [16]byte(uuid.New())),
		ApplicationID: f.app.ID, TenantID: f.app.Tenant, Currency: "XAF", Mode: checkout.ModeHosted, Description: "Crash test", ERP: true,
		CitizenID: citizen, PulledAt: pulled, Items: slices.Clone(items),
	}
	for ok := false; !ok; {
		s.PaymentRef, ok = p.numbers.PaymentRef(p.counter.Add(1))
	}
	for i := range s.Items {
		it := &s.Items[i]
		notice, err := uuid.NewV7()
		if err != nil {
			return s, err
		}
		transaction, err := uuid.NewV7()
		if err != nil {
			return s, err
		}
		it.NoticeID, it.TransactionID, it.NoticeRef = notice.String(), transaction.String(), p.numbers.NoticeRef(now.Year(), p.counter.Add(1))
		s.Amount += it.Amount
	}
	first := s.Items[0]
	s.NoticeID, s.NoticeRef, s.TransactionID, s.OrderID = first.NoticeID, first.NoticeRef, first.TransactionID, first.NoticeRef
	s.Offers = []checkout.Offer{{ID: "momo", Channel: checkout.ChannelMobileMoney, Fee: min(s.Amount*15/1000+10, 5000)}}
	return s, nil
}

// readReceipts reads the money in ClickHouse.
func (w *witness) readReceipts(ctx context.Context) (out []receipt, err error) {
	lines, err := w.clickhouse(ctx, `SELECT session_id, transaction_id, erp_due_ref, item, amount, fee_amount FROM receipts WHERE movement IN ('completed', 'late')`)
	for _, line := range lines {
		n, err := integers(line[3:])
		if err != nil {
			return nil, err
		}
		out = append(out, receipt{session: line[0], transaction: line[1], due: line[2], item: n[0], amount: n[1], fee: n[2]})
	}
	return out, err
}
