package citizens_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"quittance/internal/citizens"
	"quittance/internal/contact"
	"quittance/internal/secret"
	"quittance/money"
)

// mailbox is an address of a domain.
func mailbox(t *testing.T, n int, domain string) contact.Address {
	t.Helper()
	a, err := contact.ParseEmail(fmt.Sprintf("u%d@%s", n, domain))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// far is a client in a provider's network of its own.
func far(n int) string { return fmt.Sprintf("%d.%d.0.1", 20+n/250, n%250) }

// mail asks for codes and returns how many were sent, and the last refusal. Of each ten, enter are
// entered.
func (o *office) mail(s *citizens.Store, from, n, enter int, domain func(n int) string, client func(n int) string) (sent int, refusal citizens.Verdict) {
	o.t.Helper()
	for i := from; i < from+n; i++ {
		a := mailbox(o.t, i, domain(i))
		code, v, err := s.Begin(o.t.Context(), citizens.Request{Address: a, Browser: browser, Client: client(i)})
		switch {
		case v == citizens.Sent:
			sent++
			if i%10 < enter {
				if _, _, err := s.Enter(o.t.Context(), a, browser, code.Reveal(), money.French); err != nil {
					o.t.Fatal(err)
				}
			}
		case !errors.Is(err, citizens.ErrMailLimited):
			o.t.Fatal(v, err)
		default:
			refusal = v
		}
	}
	return sent, refusal
}

// Codes by e-mail had no limit of the service: whoever had many addresses written to had the
// service's messages refused as spam.
func TestMailOfTheService(t *testing.T) {
	t.Parallel()
	o := open(t)
	many := func(n int) string { return fmt.Sprintf("d%d.example.org", n%50) }
	stopped := func() bool {
		t.Helper()
		s, err := citizens.ReadState(t.Context(), o.pool, o.cfg.Now(), citizens.DefaultSMSPerHour, citizens.DefaultMailPerHour)
		if err != nil {
			t.Fatal(err)
		}
		return s.MailStopped
	}
	if sent, v := o.mail(o.Store, 0, 650, 10, many, far); sent != 600 || v != citizens.MailLimit {
		t.Errorf("the first hour: %d codes, %s, want 600", sent, v)
	}
	if !stopped() {
		t.Error("the limit is reached, and the state does not say so")
	}
	known := func(s *citizens.Store, n int) citizens.Verdict {
		a := mailbox(t, n, many(n))
		_, c, err := s.Enter(t.Context(), a, secret.NewText("x"), "000000", money.French)
		_ = c
		if !errors.Is(err, citizens.ErrCodeInvalid) {
			t.Fatal(err)
		}
		var id string
		if err := o.pool.QueryRow(t.Context(), `SELECT citizen_id FROM citizen_addresses WHERE hash = (SELECT address FROM sign_in_requests WHERE entered ORDER BY id OFFSET $1 LIMIT 1)`, n).Scan(&id); err != nil {
			t.Fatal(err)
		}
		cookie, err := s.Remember(t.Context(), id, a, secret.Text{})
		if err != nil {
			t.Fatal(err)
		}
		_, v, err := s.Begin(t.Context(), citizens.Request{Address: a, Browser: browser, Client: far(n), Known: cookie})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if v := known(o.Store, 3); v != citizens.Sent {
		t.Errorf("a known browser above the limit of strangers: %s", v)
	}
	// 600 people entered their codes: the next rush may have three times as many.
	o.wait(2 * time.Hour)
	if stopped() {
		t.Error("two hours later the state says that the limit is reached")
	}
	if sent, _ := o.mail(o.instance(o.pool), 1000, 700, 10, many, far); sent != 700 {
		t.Errorf("after an hour of 600 codes that were entered: %d of 700", sent)
	}
	// A flood that nobody enters shrinks the limit to a quarter.
	o.wait(2 * time.Hour)
	if sent, _ := o.mail(o.instance(o.pool), 2000, 200, 0, many, far); sent != 200 {
		t.Errorf("the flood begins with %d codes", sent)
	}
	o.wait(15 * time.Minute) // the codes can no longer be entered
	if sent, v := o.mail(o.instance(o.pool), 3000, 600, 0, many, far); sent >= 600 || v != citizens.MailLimit {
		t.Errorf("under a flood that nobody enters: %d codes more, %s", sent, v)
	}
	o.cfg.MailPerHour = -1
	if _, err := citizens.New(o.cfg); err == nil {
		t.Error("a ceiling below 0 is taken")
	}
}

// One domain, or one network, does not take the codes of the others.
func TestMailShares(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		domain func(n int) string
		client func(n int) string
		want   int
		v      citizens.Verdict
	}{
		"domain":   {func(int) string { return "flood.example" }, far, 200, citizens.MailDomainLimit},
		"site":     {func(n int) string { return fmt.Sprintf("d%d.example.org", n) }, func(n int) string { return fmt.Sprintf("198.51.100.%d", n%250) }, 60, citizens.MailNetworkLimit},
		"provider": {func(n int) string { return fmt.Sprintf("d%d.example.org", n) }, func(n int) string { return fmt.Sprintf("2001:db8:%x::/64", n) }, 150, citizens.MailNetworkLimit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := open(t)
			if sent, v := o.mail(o.Store, 0, c.want+20, 0, c.domain, c.client); sent != c.want || v != c.v {
				t.Errorf("a flood of one %s: %d codes, %s, want %d", name, sent, v, c.want)
			}
			if sent, v := o.mail(o.Store, 5000, 20, 0, func(int) string { return "other.example" }, func(n int) string { return far(n - 4000) }); sent != 20 {
				t.Errorf("beside it others get %d of 20 codes, %s", sent, v)
			}
		})
	}
}
