package crash_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"time"

	"quittance/dev/bench/measure"
	"quittance/test/harness"
)

// One journey in partnerEvery is that of a partner's program on the deprecated cash-in
// surface. partnersAtOnce partners take turns, and each makes one journey of every kind, so
// that its numbers follow each other. The quotas of the surface allow 5 calls of each kind a
// minute.
const (
	partnerEvery   = 20
	partnerKinds   = 8
	partnersAtOnce = 8
	partnerPause   = 2 * time.Second // before a call without an answer is repeated, because of the quotas
)

// partnerPatience is how long a partner's program waits for an answer: partners/payments
// answers within 25 seconds.
const partnerPatience = 30 * time.Second

// charge is a payment that a partner's program asked for, and what it was told.
type charge struct {
	application, external string
	paymentID             int64  // 0: nothing was sent to the operator (502)
	number                string // empty for init-checkout, which does not tell it
	session               string // the token of init-checkout; empty for partners/payments
	amount                int64
}

// partner is a partner's program.
type partner struct {
	harness.Partner
	client *http.Client

	mu     sync.Mutex
	token  string
	tokens int // that were generated
}

func newPartners(s *harness.Stack, transport http.RoundTripper) (all []*partner) {
	for _, p := range s.Partners {
		all = append(all, &partner{Partner: p, client: &http.Client{Timeout: partnerPatience, Transport: transport}})
	}
	return all
}

// partnerJourney is one payment by the program of a partner.
func (l *load) partnerJourney(ctx context.Context, n int) {
	l.mu.Lock()
	l.started++
	l.mu.Unlock()
	k := n / partnerEvery
	turn, who := k/partnersAtOnce, k%partnersAtOnce
	p := l.partners[(turn/partnerKinds*partnersAtOnce+who)%len(l.partners)]
	c := charge{application: p.ID, external: fmt.Sprintf("charge-%06d", n), amount: int64(1000 + n%9000)}
	switch (turn + who) % partnerKinds {
	case 0:
		if l.initCheckout(ctx, p, &c, n) {
			l.pay(ctx, c.session, "06 600 00 01", n)
		}
	case 7: // two servers of the partner send it to two ingresses at once
		other := c
		answered := make(chan bool, 1)
		go func() { answered <- l.initCheckout(ctx, p, &other, n+1) }()
		made := l.initCheckout(ctx, p, &c, n)
		if !<-answered || !made {
			return
		}
		if c.paymentID != other.paymentID || c.session != other.session {
			l.surprise("init-checkout of %s, sent twice at once, told %+v and %+v", c.external, c, other)
		}
		l.pay(ctx, c.session, "06 600 00 01", n)
	case 2: // the partner's program changes the amount before the citizen pays
		first := c
		first.amount += 500
		if !l.initCheckout(ctx, p, &first, n) || !l.initCheckout(ctx, p, &c, n+1) {
			return
		}
		if c.paymentID != first.paymentID || c.session != first.session {
			l.surprise("init-checkout of %s told %+v, then %+v", c.external, first, c)
		}
		l.pay(ctx, c.session, "06 600 00 01", n)
	case 4:
		if l.initCheckout(ctx, p, &c, n) {
			l.cancelOnPage(ctx, c.session, n)
		}
	case 1:
		l.charge(ctx, p, &c, "01", n)
	case 3:
		l.charge(ctx, p, &c, "04", n) // rejected
	case 5:
		l.charge(ctx, p, &c, "09", n) // approved, called back twice
	case 6:
		l.charge(ctx, p, &c, "08", n) // approved, callback lost
	}
}

const partnerItems = `[{"number":"1","name":"Cahier","price":10.50,"quantity":2}]`

// initCheckout repeats init-checkout until it is answered. It may: the payment is created,
// so a repetition updates it.
func (l *load) initCheckout(ctx context.Context, p *partner, c *charge, at int) bool {
	body := fmt.Sprintf(`{"externalNumber":%q,"amount":%d,"items":%s}`, c.external, c.amount, partnerItems)
	status, answer, ok := l.partnerCall(ctx, p, http.MethodPost, "/init-checkout", body, at, true)
	var told struct {
		PaymentID      int64  `json:"paymentId"`
		ExternalNumber string `json:"externalNumber"`
		Token          string `json:"token"`
	}
	if !ok || !l.told(status, answer, &told) {
		return false
	}
	c.paymentID, c.session = told.PaymentID, told.Token
	if told.ExternalNumber != c.external || c.session == "" {
		l.surprise("init-checkout of %s was answered with %s", c.external, answer)
		return false
	}
	l.charged(*c)
	return true
}

// charge asks for a payment once. A program that gets no answer does not ask again, because
// it might debit twice. Then it reads the payment's status by its number.
func (l *load) charge(ctx context.Context, p *partner, c *charge, digits string, at int) {
	body := fmt.Sprintf(`{"externalNumber":%q,"amount":%d,"provider":"mobile_money_a","customer":{"phone":"0660000%s"},"items":%s}`, c.external, c.amount, digits, partnerItems)
	status, answer, ok := l.partnerCall(ctx, p, http.MethodPost, "/partners/payments", body, at, false)
	if !ok {
		return
	}
	if status == http.StatusBadGateway {
		l.charged(*c)
		return
	}
	var told struct {
		PaymentID int64  `json:"paymentId"`
		Number    string `json:"number"`
		Status    string `json:"status"`
	}
	if !l.told(status, answer, &told) {
		return
	}
	c.paymentID, c.number = told.PaymentID, told.Number
	if told.Status != "pending" || c.number == "" {
		l.surprise("partners/payments of %s was answered with %s", c.external, answer)
		return
	}
	l.charged(*c)
	status, answer, ok = l.partnerCall(ctx, p, http.MethodGet, "/transactions/"+c.number+"/check-status", "", at+1, true)
	var now struct {
		ID             int64  `json:"id"`
		ExternalNumber string `json:"externalNumber"`
		PaidAmount     int64  `json:"paidAmount"`
	}
	if ok && l.told(status, answer, &now) && (now.ID != c.paymentID || now.ExternalNumber != c.external || now.PaidAmount != c.amount) {
		l.surprise("the status of %+v is %s", *c, answer)
	}
}

// told decodes an answer, which must be a 200.
func (l *load) told(status int, answer string, into any) bool {
	if err := json.Unmarshal([]byte(answer), into); status != http.StatusOK || err != nil {
		l.surprise("a partner was answered %d %s (%v)", status, answer, err)
		return false
	}
	return true
}

func (l *load) charged(c charge) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.charges = append(l.charges, c)
}

// partnerCall calls the surface, under its prefixes in turn, until it is answered. A call
// that is not repeatable is sent again only when the service surely has not carried it out:
// nothing listened, the token or the quota refused it, or Retry-After says so. When the load
// is over nobody waits for the next minute's quota. ok is false without an answer.
func (l *load) partnerCall(ctx context.Context, p *partner, method, path, body string, at int, repeatable bool) (status int, answer string, ok bool) {
	token := ""
	for try := 0; ; try++ {
		var err error
		if token, ok = l.partnerToken(ctx, p, token, at+try); !ok {
			return 0, "", false
		}
		var retryAfter string
		status, answer, retryAfter, err = p.call(ctx, l.partnerURL(at+try, path), method, body, token)
		wait := partnerPause
		switch {
		case err == nil && status == http.StatusUnauthorized: // PostgreSQL has forgotten the token
			continue
		case err == nil && status == http.StatusTooManyRequests:
			if !l.nextMinute(ctx, retryAfter) {
				return 0, "", false
			}
			continue
		case err == nil && status == http.StatusInternalServerError && retryAfter != "":
			seconds, _ := strconv.Atoi(retryAfter)
			wait = time.Duration(seconds) * time.Second
		case err == nil && status != http.StatusInternalServerError:
			return status, answer, true
		case !repeatable && !errors.Is(err, syscall.ECONNREFUSED):
			l.mu.Lock()
			l.unanswered++
			l.mu.Unlock()
			return 0, "", false
		}
		if !measure.Pause(ctx, wait) || !l.again(ctx, try) {
			return 0, "", false
		}
	}
}

// nextMinute waits until a quota is new. It returns false when the load is over.
func (l *load) nextMinute(ctx context.Context, retryAfter string) bool {
	seconds, _ := strconv.Atoi(retryAfter)
	select {
	case <-ctx.Done():
		l.giveUp()
		return false
	case <-l.over:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.refused++
		return false
	case <-time.After(time.Duration(seconds) * time.Second):
		l.retries.Add(1)
		return true
	}
}

// partnerURL returns the address of a path of the surface.
func (l *load) partnerURL(at int, path string) string {
	return l.stack.Ingress[at%len(l.stack.Ingress)] + [...]string{"/api", "/api/v1"}[at/2%2] + path
}

// partnerToken returns the partner's token. It generates another one if that is the stale
// one.
func (l *load) partnerToken(ctx context.Context, p *partner, stale string, at int) (token string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.token != stale {
		return p.token, true
	}
	body := fmt.Sprintf(`{"apiKey":%q,"secretKey":%q}`, p.APIKey, p.SecretKey)
	for try := 0; ; try++ {
		status, answer, retryAfter, err := p.call(ctx, l.partnerURL(at+try, "/generate-application-access-token"), http.MethodPost, body, "")
		wait := partnerPause
		switch {
		case err == nil && status == http.StatusTooManyRequests:
			if !l.nextMinute(ctx, retryAfter) {
				return "", false
			}
			continue
		case err == nil && status == http.StatusInternalServerError:
			seconds, _ := strconv.Atoi(retryAfter)
			wait = time.Duration(seconds) * time.Second
		case err == nil:
			var told struct {
				Token string `json:"token"`
			}
			if !l.told(status, answer, &told) {
				return "", false
			}
			p.token = told.Token
			p.tokens++
			return p.token, true
		}
		if !measure.Pause(ctx, wait) || !l.again(ctx, try) {
			return "", false
		}
	}
}

// call sends one request of the partner's program.
func (p *partner) call(ctx context.Context, url, method, body, token string) (status int, answer, retryAfter string, err error) {
	header := map[string]string{}
	if token != "" {
		header["Authorization"] = "Bearer " + token
	}
	status, answer, got, err := request(ctx, p.client, method, url, "application/json", body, header)
	if err == nil && got.Get("Deprecation") != "true" {
		err = fmt.Errorf("an answer of %d without the header Deprecation", status)
	}
	return status, answer, got.Get("Retry-After"), err
}

// cancelOnPage cancels a payment as the citizen does on the page.
func (l *load) cancelOnPage(ctx context.Context, session string, at int) {
	for try := 0; ; try++ {
		status, _, err := l.call(ctx, http.MethodPost, at+try, "/c/"+session+"/cancel?lang=en", "application/x-www-form-urlencoded", "x=", nil)
		switch {
		case err == nil && status == http.StatusSeeOther:
			l.mu.Lock()
			l.cancelled = append(l.cancelled, session)
			l.mu.Unlock()
			return
		case err == nil && status < http.StatusInternalServerError:
			if try == 0 {
				l.surprise("the citizen's cancel of %s was answered with %d", session, status)
			}
			return // an earlier try cancelled it
		}
		if !l.again(ctx, try) {
			return
		}
	}
}
