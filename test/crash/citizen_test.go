package crash_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"quittance/checkout"
	"quittance/internal/citizens"
	"quittance/internal/commands"
	"quittance/internal/contact"
	"quittance/internal/kafka"
	"quittance/internal/secret"
	"quittance/money"
	"quittance/schemas"
	"quittance/test/harness"
)

// citizen is the browser of somebody who has signed in.
type citizen struct{ cookie string }

// portal has the citizens, in couples that owe together.
type portal struct {
	couples  [][2]*citizen
	accounts *citizens.Store
	// commands cancels carts whose payment is under way, which no citizen can.
	commands *commands.Checkout
	done     chan error
}

// openPortal signs the citizens of a number of couples in, and connects to the processors.
// The portal runs until ctx ends; done has its error.
func openPortal(ctx context.Context, s *harness.Stack, codec *schemas.Codec, couples int) (*portal, error) {
	p := &portal{done: make(chan error, 1), couples: make([][2]*citizen, couples)}
	var err error
	if p.accounts, err = citizens.New(citizens.Config{Pool: s.Pool, Keys: s.Keys, Reference: s.Reference, Now: time.Now}); err != nil {
		return nil, err
	}
	for k := range p.couples {
		if k%40 == 0 { // another hour, or they would be beyond the codes of one
			if _, err := s.Pool.Exec(ctx, `UPDATE sign_in_requests SET at = at - interval '2 hours'`); err != nil {
				return nil, err
			}
		}
		for i := range p.couples[k] {
			if p.couples[k][i], err = p.signIn(ctx, 2*k+i); err != nil {
				return nil, fmt.Errorf("signing a citizen in: %w", err)
			}
		}
	}
	cfg := kafka.Config{Brokers: []string{s.Kafka.Addr()}, Prefix: harness.Prefix}
	cl, err := cfg.Client()
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	topology, err := kafka.Load(ctx, cfg, cl)
	if err != nil {
		return nil, err
	}
	signer, err := commands.NewSigner(s.Keys, "ingress")
	if err != nil {
		return nil, err
	}
	if p.commands, err = commands.New(ctx, commands.Config[checkout.Command, checkout.Answer]{
		Kafka: cfg, Topology: topology, Family: schemas.Checkout, Signer: signer, Protocol: commands.CheckoutProtocol(codec, topology),
		Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
	}); err != nil {
		return nil, err
	}
	go func() { p.done <- p.commands.Run(ctx) }()
	return p, nil
}

// signIn makes an account with the code that a message would have brought.
func (p *portal) signIn(ctx context.Context, n int) (*citizen, error) {
	address, err := contact.ParseEmail(fmt.Sprintf("citizen%d@example.org", n))
	if err != nil {
		return nil, err
	}
	browser := secret.NewText(uuid.NewString())
	code, verdict, err := p.accounts.Begin(ctx, citizens.Request{Address: address, Browser: browser, Client: fmt.Sprintf("%d.%d.0.1", 20+n/250, n%250)})
	if err != nil || verdict != citizens.Sent {
		return nil, fmt.Errorf("%s: %w", verdict, err)
	}
	token, _, err := p.accounts.Enter(ctx, address, browser, code.Reveal(), money.English)
	return &citizen{"quittance_citizen=" + token.Reveal()}, err
}

// code returns the code that the agency hands out for the family's subject.
func (p *portal) code(ctx context.Context, f family) (string, error) {
	return p.accounts.LinkCode(ctx, citizens.Subject{AgencyID: f.portal.Tenant, Ref: f.subject})
}

// citizen calls the citizen API from a page of the portal.
func (l *load) citizen(ctx context.Context, who *citizen, method string, at int, path, body, key string) (status int, answer string, err error) {
	header := map[string]string{"Cookie": who.cookie, "Sec-Fetch-Site": "same-origin"}
	if key != "" {
		header["Idempotency-Key"] = key
	}
	return l.call(ctx, method, at, "/api/v1/citizen"+path, "application/json", body, header)
}

// cancelCart cancels a cart, also while its payment is under way. It returns false when the
// journey's time is over.
func (l *load) cancelCart(ctx context.Context, f family, c creation) bool {
	for try := 0; ; try++ {
		a, err := l.portal.commands.Ask(ctx, checkout.Command{
			At: time.Now().UTC().Truncate(time.Millisecond), TenantID: f.portal.Tenant, SessionID: c.session, ApplicationID: f.portal.ID,
			Do: checkout.Cancel{By: checkout.ByIntegrator},
		})
		switch {
		case err == nil && a.Code == checkout.CodeOK:
			l.mu.Lock()
			l.cancelled = append(l.cancelled, c.session)
			l.mu.Unlock()
			return true
		case err == nil:
			return true // it has ended
		case !errors.Is(err, commands.ErrUnavailable):
			l.surprise("cancelling the cart %s: %v", c.session, err)
			return false
		}
		if !l.again(ctx, try) {
			return false
		}
	}
}

// markPath is the address to which citizens return, before the key of their cart.
const markPath = "/portal/payments?cart="

// markOf returns the key of the cart that returns to an address; empty for another session.
func markOf(url string) string {
	_, key, _ := strings.Cut(url, markPath)
	return key
}
