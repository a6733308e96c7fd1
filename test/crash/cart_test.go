package crash_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quittance/internal/form"
	"quittance/test/harness"
)

// One journey in partnerEvery, of remainder cartEvery, is that of two citizens. Both pay dues
// of one subject, and one due is in the carts of both.
const cartEvery = 9

// family is a subject of an agency's ERP with its dues, the first of which two carts share.
type family struct {
	portal  harness.Application
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

// seen is a due as the portal shows it.
type seen struct {
	Outstanding int64  `json:"outstanding_minor"`
	State       string `json:"payment_state"`
}

// chosen is a due of a cart.
type chosen struct {
	Tenant      string `json:"tenant_id"`
	Subject     string `json:"subject_ref"`
	Ref         string `json:"erp_due_ref"`
	Amount      int64  `json:"amount_minor"`
	Outstanding int64  `json:"outstanding_minor"`
}

const duesOfFamily = 7

// carts plays the two citizens.
func (l *load) carts(ctx context.Context, n int) {
	l.mu.Lock()
	l.started++
	l.mu.Unlock()
	k := n / partnerEvery
	f := family{portal: l.stack.Portals[k%len(l.stack.Portals)], subject: fmt.Sprintf("subject-%06d", n), n: n}
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
	couple := l.portal.couples[k%len(l.portal.couples)]
	more := 1 + k%3 // dues of the cart's own: 2 to 4 in all
	var both sync.WaitGroup
	both.Go(func() {
		l.cart(ctx, f, couple[0], [...]string{"01", "late", "01", "09", "04"}[k%5], 0, indices(1, more))
	})
	both.Go(func() { l.cart(ctx, f, couple[1], "01", 1, indices(1+more, 4-more)) })
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
		status, answer, err := l.send(ctx, http.MethodPost, l.stack.Simulator+"/control/erp/"+f.portal.Slug, "application/json", string(body), nil)
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

// look lists the family's dues as the portal shows them to a citizen. It is repeated until
// it is answered.
func (l *load) look(ctx context.Context, f family, who *citizen, at int) (map[string]seen, bool) {
	for try := 0; ; try++ {
		status, answer, err := l.citizen(ctx, who, http.MethodGet, at+try, "/dues?tenant_id="+f.portal.Tenant+"&subject_ref="+f.subject, "", "")
		var list struct {
			Status string `json:"source_status"`
			Items  []struct {
				Ref string `json:"erp_due_ref"`
				seen
			} `json:"items"`
		}
		switch {
		case err != nil || unanswered(status):
		case status == http.StatusNotFound && refusalOf(answer).Code == "citizen.link_not_found":
			l.link(ctx, f, who, at+try)
		case status != http.StatusOK || json.Unmarshal([]byte(answer), &list) != nil:
			l.surprise("the dues of %s were answered with %d %s", f.subject, status, answer)
			return nil, false
		case list.Status == "ok":
			out := map[string]seen{}
			for _, d := range list.Items {
				out[d.Ref] = d.seen
			}
			return out, true
		}
		if !l.again(ctx, try) {
			return nil, false
		}
	}
}

// link proves that the citizen may see the family's dues. Its answer may be lost: the next
// call shows whether the citizen has the link.
func (l *load) link(ctx context.Context, f family, who *citizen, at int) {
	code, err := l.portal.code(ctx, f)
	if err != nil {
		return // PostgreSQL is away
	}
	body := fmt.Sprintf(`{"tenant_id": %q, "subject_ref": %q, "link_code": %q}`, f.portal.Tenant, f.subject, code)
	status, answer, err := l.citizen(ctx, who, http.MethodPost, at, "/links", body, "")
	if err == nil && !unanswered(status) && status != http.StatusCreated && status != http.StatusOK {
		l.surprise("a link to %s was answered with %d %s", f.subject, status, answer)
	}
}

// unanswered reports whether a status asks the client to repeat the request.
func unanswered(status int) bool {
	return status >= http.StatusInternalServerError || status == http.StatusTooManyRequests
}

// refusal is a problem document.
type refusal struct {
	Code   string       `json:"code"`
	Errors []form.Fault `json:"errors"`
}

func refusalOf(answer string) (r refusal) {
	_ = json.Unmarshal([]byte(answer), &r) // another answer has no code
	return r
}

// cart plays a citizen who pays the dues with the indices. At first the citizen looks at the
// dues and pays them; while another payment of a due is under way, the citizen waits until
// the portal shows its end. One cart in two asks to replace the carts that nobody is paying.
func (l *load) cart(ctx context.Context, f family, who *citizen, what string, number int, dues []int) {
	for try := 0; ; try++ {
		shown, ok := l.look(ctx, f, who, f.n+number+try)
		if !ok {
			return
		}
		var items []chosen
		free := true
		for _, i := range dues {
			if d := shown[f.due(i)]; d.Outstanding > 0 {
				items = append(items, f.choose(i, d, (f.n/partnerEvery+i+number)%2 == 0))
				free = free && d.State == "payable"
			}
		}
		if len(items) == 0 {
			return
		}
		if free || try == 0 {
			switch c, made := l.createCart(ctx, f, who, items, number == 0 && try == 0, number+try); made {
			case cartRefused:
			case cartGivenUp:
				return
			case cartMade:
				l.payCart(ctx, f, who, c, what)
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

// choose pays a due, or half of it.
func (f family) choose(i int, d seen, half bool) chosen {
	c := chosen{Tenant: f.portal.Tenant, Subject: f.subject, Ref: f.due(i), Amount: d.Outstanding, Outstanding: d.Outstanding}
	if half && i%2 == 0 && d.Outstanding/2 >= 100 {
		c.Amount = d.Outstanding / 2
	}
	return c
}

// ordered is a cart that was made, with its request and its answer.
type ordered struct {
	creation
	body, answer string
}

// The ends of createCart.
type cartEnd int

const (
	cartMade cartEnd = iota
	cartRefused
	cartGivenUp
)

// createCart sends a cart with one Idempotency-Key until it is answered, each time to another
// ingress. The address to which the citizen returns has the key, so that the log shows which
// request made a session.
func (l *load) createCart(ctx context.Context, f family, who *citizen, items []chosen, replace bool, at int) (ordered, cartEnd) {
	c := ordered{creation: creation{application: f.portal.ID, key: uuid.NewString()}}
	body, err := json.Marshal(map[string]any{"items": items, "replace": replace, "success_url": l.stack.Ingress[0] + markPath + c.key})
	if err != nil {
		l.surprise("a cart of %s: %v", f.subject, err)
		return c, cartGivenUp
	}
	c.body = string(body)
	for _, it := range items {
		c.amount += it.Amount
	}
	begun := time.Now()
	answer, code, ok := l.sendCart(ctx, f, who, c, f.n+at)
	if !ok {
		return c, cartGivenUp
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch code {
	case "citizen.due_in_payment":
		l.cartsRefused = append(l.cartsRefused, c.key)
		return c, cartRefused
	case "citizen.due_changed":
		l.duesChanged = append(l.duesChanged, c.key)
		return c, cartRefused
	}
	c.answer = answer
	c.session, c.order, c.reference = madeCart(answer)
	l.creations = append(l.creations, c.creation)
	l.latencies = append(l.latencies, latency{begun, time.Since(begun)})
	l.cartsMade++
	return c, cartMade
}

// madeCart reads the answer to a cart.
func madeCart(answer string) (session, order, reference string) {
	var s struct {
		ID         string `json:"id"`
		OrderID    string `json:"order_id"`
		PaymentRef string `json:"payment_ref"`
	}
	_ = json.Unmarshal([]byte(answer), &s) // sendCart has read it
	return s.ID, s.OrderID, s.PaymentRef
}

// sendCart repeats a cart until it is made or refused.
func (l *load) sendCart(ctx context.Context, f family, who *citizen, c ordered, at int) (answer, refusal string, ok bool) {
	for try := 0; ; try++ {
		status, answer, err := l.citizen(ctx, who, http.MethodPost, at+try, "/checkout", c.body, c.key)
		no := refusalOf(answer)
		switch {
		case err != nil || unanswered(status):
		case status == http.StatusCreated:
			if session, _, reference := madeCart(answer); session == "" || reference == "" {
				l.surprise("a cart of %s was answered with %q", f.subject, answer)
				return "", "", false
			}
			return answer, "", true
		case status == http.StatusConflict && (no.Code == "citizen.due_in_payment" || no.Code == "citizen.due_changed"):
			return "", no.Code, true
		case status == http.StatusUnprocessableEntity && no.unlinked():
			l.link(ctx, f, who, at+try)
		default:
			l.surprise("a cart of %s was answered with %d %s", f.subject, status, answer)
			return "", "", false
		}
		if !l.again(ctx, try) {
			return "", "", false
		}
	}
}

// unlinked reports whether a cart was refused because the citizen is not linked to the
// subject: PostgreSQL was restored to a time before the link.
func (r refusal) unlinked() bool {
	return len(r.Errors) > 0 && !slices.ContainsFunc(r.Errors, func(f form.Fault) bool { return f.Rule != "linked" })
}

// repeatCart sends a cart again that was answered, as a client does that has lost its memory.
// The answer is the first one, whatever has become of the session and of the dues.
func (l *load) repeatCart(ctx context.Context, f family, who *citizen, c ordered, at int) {
	answer, code, ok := l.sendCart(ctx, f, who, c, at)
	if !ok {
		return
	}
	l.mu.Lock()
	l.cartsRepeated++
	again := c.creation
	again.session, _, _ = madeCart(answer)
	l.creations = append(l.creations, again)
	l.mu.Unlock()
	if answer != c.answer {
		l.surprise("the cart %s was answered with %s, and repeated with %s%s", c.key, c.answer, code, answer)
	}
}

// payCart pays a cart on its page. A late payer approves after the cart was cancelled. Half
// of the carts are repeated before they are paid, the others afterwards.
func (l *load) payCart(ctx context.Context, f family, who *citizen, c ordered, what string) {
	if f.n/partnerEvery%2 == 0 {
		l.repeatCart(ctx, f, who, c, f.n)
	} else {
		defer l.repeatCart(ctx, f, who, c, f.n)
	}
	if what != "late" {
		if l.pay(ctx, c.session, "06 600 00 "+what, f.n) && f.n/partnerEvery%3 == 0 {
			l.mu.Lock()
			l.parts = append(l.parts, c.session)
			l.mu.Unlock()
		}
		return
	}
	l.payLate(ctx, c.creation, f.n, func() bool { return l.cancelCart(ctx, f, c.creation) })
}

// readReturns reads what ClickHouse and the read model say of dues whose money was given back, with
// the fee, by transaction. The read model has no sums: what it says is 0.
func (w *witness) readReturns(ctx context.Context) ([]returns, error) {
	lines, err := w.clickhouse(ctx, `SELECT transaction_id, -sum(total_amount) FROM receipts WHERE movement = 'reversal' AND transaction_id != '' GROUP BY transaction_id`)
	if err != nil {
		return nil, err
	}
	view := returns{name: "the view receipts", sums: map[string]int64{}}
	for _, line := range lines {
		n, err := integers(line[1:])
		if err != nil {
			return nil, err
		}
		view.sums[line[0]] = n[0]
	}
	model := returns{name: "the read model", sums: map[string]int64{}, readModel: true}
	rows, err := w.stack.Pool.Query(ctx, `
		SELECT unnest(returned) FROM sessions WHERE returned IS NOT NULL
		UNION SELECT unnest(transactions) FROM sessions WHERE reversed_at IS NOT NULL AND transactions IS NOT NULL`)
	if err != nil {
		return nil, err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, id := range ids {
		model.sums[id] = 0
	}
	return []returns{view, model}, err
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
