// Package providers is the conformance suite of the providers of messages. It takes a
// registration and a simulator that speaks the provider's protocol. A further provider
// passes the same suite.
package providers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"quittance/internal/provider"
	"quittance/internal/secret"
)

// Received is a message that the simulator has accepted.
type Received struct {
	ID, To, Subject, Text string
}

// Subject is a provider with its simulator.
type Subject struct {
	Registration provider.Registration
	// To is an address of the channel.
	To string
	// Text has the characters of the channel that are hardest to carry.
	Text string
	// Start starts a simulator of the test's own.
	Start func(t *testing.T) World
	// NamesUnknown is true for a provider whose reports say that a number has no subscriber.
	NamesUnknown bool
}

// World is a running simulator.
type World struct {
	// Address and Secret are those of an account that the simulator knows.
	Address, Secret string
	// Elsewhere returns the address of the same account at another host:port.
	Elsewhere func(hostPort string) string
	// Received returns the accepted messages in order.
	Received func() []Received
	// Temporary, Permanent and Silent make the simulator refuse the next message for now,
	// refuse it for good, or accept it and never answer.
	Temporary, Permanent, Silent func()
	// Report chooses which delivery reports follow the next accepted message: "delivered",
	// "undelivered" (no such number), "absent" (phone off), "twice", "disordered" (a failure
	// after "delivered"), "stranger" (of a message that was never sent), "early" (before the
	// answer) or "none". Nil where the provider does not report.
	Report func(which string)
	// Subscribe registers the address for all reports; nil where each message has its own.
	Subscribe func(url string)
}

// waits is the time-out of calls in this suite.
const waits = 700 * time.Millisecond

// Run runs the suite.
func Run(t *testing.T, s Subject) {
	t.Run("a message arrives once, with its id and its text", func(t *testing.T) { s.arrives(t) })
	t.Run("refusals say whether they last", func(t *testing.T) { s.refusals(t) })
	t.Run("what was sent and not answered is unknown", func(t *testing.T) { s.silence(t) })
	t.Run("without a connection nothing is sent", func(t *testing.T) { s.nobody(t) })
	t.Run("wrong credentials are named", func(t *testing.T) { s.credentials(t) })
	t.Run("settings are checked", func(t *testing.T) { s.settings(t) })
	t.Run("delivery reports are read", func(t *testing.T) { s.reports(t) })
}

// open makes the provider.
func (s Subject) open(t *testing.T, address, key string) provider.Provider {
	t.Helper()
	p, err := s.try(address, key)
	if err != nil {
		t.Fatalf("opening %s: %v", s.Registration.Name, err)
	}
	return p
}

func (s Subject) try(address, key string) (provider.Provider, error) {
	return provider.Table{s.Registration}.Open(s.Registration.Channel, address, provider.Settings{
		Secret: secret.NewText(key), Plain: true, Now: func() time.Time { return time.Now().UTC() }, Timeout: waits,
	})
}

// message returns a message with a number.
func (s Subject) message(n int) provider.Message {
	m := provider.Message{ID: fmt.Sprintf("msg_abcdefghijklmnopqrstuvwx%02d", n), To: s.To, Text: s.Text, At: time.Now().UTC(), NotAfter: time.Now().Add(10 * time.Minute)}
	if s.Registration.Channel == provider.ChannelEmail {
		m.Subject = "Votre code d’accès : été à Brazzaville"
	}
	return m
}

// fault returns the fault of an error, and checks that it tells no secret.
func (s Subject) fault(t *testing.T, err error, hidden ...string) provider.Fault {
	t.Helper()
	var e *provider.Error
	if !errors.As(err, &e) {
		t.Fatalf("%v is no *provider.Error", err)
	}
	for _, h := range append(hidden, s.To, s.Text) {
		if h != "" && strings.Contains(err.Error(), h) {
			t.Errorf("the error tells %q: %v", h, err)
		}
	}
	return e.Fault
}

func (s Subject) arrives(t *testing.T) {
	w := s.Start(t)
	p := s.open(t, w.Address, w.Secret)
	if p.Name() != s.Registration.Name {
		t.Errorf("it is called %q", p.Name())
	}
	if err := p.Check(t.Context()); err != nil {
		t.Errorf("checking: %v", err)
	}
	for n := range 2 {
		m := s.message(n)
		if err := p.Send(t.Context(), m); err != nil {
			t.Fatalf("sending: %v", err)
		}
		got := w.Received()
		if len(got) != n+1 {
			t.Fatalf("%d messages arrived after %d", len(got), n+1)
		}
		last := got[n]
		if !strings.HasPrefix(last.ID, m.ID) || last.To != m.To || strings.TrimRight(last.Text, "\n") != m.Text || last.Subject != m.Subject {
			t.Errorf("arrived: %+v\nsent: %+v", last, m)
		}
	}
	first := w.Received()[0]
	if err := p.Send(t.Context(), s.message(0)); err != nil {
		t.Fatal(err)
	}
	if again := w.Received()[2]; again.ID != first.ID {
		t.Errorf("the id changed from %q to %q", first.ID, again.ID)
	}
}

func (s Subject) refusals(t *testing.T) {
	w := s.Start(t)
	p := s.open(t, w.Address, w.Secret)
	w.Temporary()
	if f := s.fault(t, p.Send(t.Context(), s.message(1)), w.Secret); f != provider.FaultBusy {
		t.Errorf("refused for now: %s", f)
	}
	w.Permanent()
	if f := s.fault(t, p.Send(t.Context(), s.message(1)), w.Secret); f != provider.FaultRefused {
		t.Errorf("refused for good: %s", f)
	}
	if got := w.Received(); len(got) > 0 {
		t.Errorf("refused messages arrived: %d", len(got))
	}
	if err := p.Send(t.Context(), s.message(1)); err != nil || len(w.Received()) != 1 {
		t.Errorf("afterwards: %v, %d arrived", err, len(w.Received()))
	}
}

func (s Subject) silence(t *testing.T) {
	w := s.Start(t)
	p := s.open(t, w.Address, w.Secret)
	w.Silent()
	begun := time.Now()
	if f := s.fault(t, p.Send(t.Context(), s.message(1)), w.Secret); f != provider.FaultUnknown {
		t.Errorf("sent, not answered: %s", f)
	}
	if took := time.Since(begun); took > 10*waits {
		t.Errorf("the time-out of %v took %v", waits, took)
	}
	if n := len(w.Received()); n != 1 {
		t.Errorf("%d arrived, want 1", n)
	}
	w.Silent()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(waits/4, cancel)
	if f := s.fault(t, p.Send(ctx, s.message(2)), w.Secret); f != provider.FaultUnknown {
		t.Errorf("sent, and cancelled: %s", f)
	}
}

func (s Subject) nobody(t *testing.T) {
	w := s.Start(t)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	_ = l.Close()
	p := s.open(t, w.Elsewhere(closed), w.Secret)
	if f := s.fault(t, p.Send(t.Context(), s.message(1)), w.Secret, closed); f != provider.FaultNotSent {
		t.Errorf("nobody listens: %s", f)
	}
	if f := s.fault(t, p.Check(t.Context()), w.Secret); f != provider.FaultNotSent {
		t.Errorf("checking: %s", f)
	}
}

func (s Subject) credentials(t *testing.T) {
	w := s.Start(t)
	const wrong = "another-secret-of-ours"
	p := s.open(t, w.Address, wrong)
	if f := s.fault(t, p.Send(t.Context(), s.message(1)), wrong); f != provider.FaultCredentials {
		t.Errorf("a wrong secret: %s", f)
	}
	if f := s.fault(t, p.Check(t.Context()), wrong); f != provider.FaultCredentials {
		t.Errorf("checking: %s", f)
	}
	if n := len(w.Received()); n > 0 {
		t.Errorf("%d arrived", n)
	}
}

func (s Subject) settings(t *testing.T) {
	w := s.Start(t)
	for address, want := range map[string]string{
		w.Address + "&colour=blue":                                 "colour",
		strings.Replace(w.Address, "://", "://u:"+w.Secret+"@", 1): "password",
		"":                   "must be an address such as",
		"pigeon://127.0.0.1": "pigeon",
	} {
		if strings.Contains(address, "@") && strings.Count(address, "@") > 1 && want == "password" {
			continue // the address has a user already
		}
		if _, err := s.try(address, w.Secret); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), w.Secret) {
			t.Errorf("%s: %v, want it to name %q", address, err, want)
		}
	}
	if _, err := s.try(w.Address, ""); err == nil || !strings.Contains(err.Error(), "secret") {
		t.Errorf("without a secret: %v", err)
	}
}
