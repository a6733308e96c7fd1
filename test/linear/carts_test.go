package linear_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"quittance/dev/bench/measure"
	"quittance/internal/citizens"
	"quittance/internal/contact"
	"quittance/internal/secret"
	"quittance/money"
	"quittance/test/harness"
)

const (
	// citizensOfHistory keeps each account below the rate at which it may make carts.
	citizensOfHistory = 2 * clientsPerHistory
	duesOfOrder       = 3 // of each order
	// ordersOfHistory is how many orders a history has at most.
	ordersOfHistory = 16
	// owedAtFirst is enough for every cart, of which each pays little.
	owedAtFirst = 1_000_000_000
)

// portal has the citizens of a history. All are linked to its subject.
type portal struct {
	linear   *linear
	accounts *citizens.Store
	agency   harness.Application
	subject  string
	people   []person // from 1
}

// person is a citizen who has signed in.
type person struct{ id, cookie string }

// basket is the request of a key: the same each time it is repeated.
type basket struct {
	owner   int
	items   dueSet
	replace bool
	body    string
}

// openPortal signs the citizens of a history in.
func (l *linear) openPortal(ctx context.Context, name string) (*portal, error) {
	accounts, err := citizens.New(citizens.Config{Pool: l.stack.Pool, Keys: l.stack.Keys, Reference: l.stack.Reference, Now: time.Now})
	if err != nil {
		return nil, err
	}
	// Each history has another hour, or the last ones would be beyond the codes of one.
	if _, err := l.stack.Pool.Exec(ctx, `UPDATE sign_in_requests SET at = at - interval '2 hours'`); err != nil {
		return nil, err
	}
	p := &portal{linear: l, accounts: accounts, subject: name, agency: l.stack.Portals[l.histories%len(l.stack.Portals)], people: make([]person, citizensOfHistory+1)}
	group, each := errgroup.WithContext(ctx)
	for n := range citizensOfHistory {
		group.Go(func() (err error) {
			p.people[n+1], err = p.signIn(each, fmt.Sprintf("%s-%d", name, n))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return p, p.openSubject(ctx)
}

// signIn makes an account with the code that a message would have brought.
func (p *portal) signIn(ctx context.Context, name string) (person, error) {
	address, err := contact.ParseEmail(name + "@example.org")
	if err != nil {
		return person{}, err
	}
	browser := secret.NewText(uuid.NewString())
	code, verdict, err := p.accounts.Begin(ctx, citizens.Request{Address: address, Browser: browser, Client: name})
	for errors.Is(err, citizens.ErrBusy) && ctx.Err() == nil { // the citizens of a history sign in at the same time
		time.Sleep(100 * time.Millisecond)
		code, verdict, err = p.accounts.Begin(ctx, citizens.Request{Address: address, Browser: browser, Client: name})
	}
	if err != nil || verdict != citizens.Sent {
		return person{}, fmt.Errorf("signing a citizen in: %s: %w", verdict, err)
	}
	token, who, err := p.accounts.Enter(ctx, address, browser, code.Reveal(), money.English)
	return person{who.ID, "quittance_citizen=" + token.Reveal()}, err
}

// openSubject gives the agency's ERP one subject with the dues of all orders of a history, and
// links the citizens to it.
func (p *portal) openSubject(ctx context.Context) error {
	var dues []map[string]any
	for n := range ordersOfHistory {
		for i := range duesOfOrder {
			dues = append(dues, map[string]any{
				"erp_due_ref": dueOf(orderName(p.subject, n+1), i), "label": "Due", "amount_minor": owedAtFirst, "outstanding_minor": owedAtFirst,
				"original_minor": owedAtFirst, "currency": "XAF", "allow_partial": true, "minimum_amount_minor": 1,
			})
		}
	}
	body, err := json.Marshal(map[string]any{"dues": map[string]any{p.subject: dues}})
	if err != nil {
		return err
	}
	a, err := send(ctx, p.linear.client, http.MethodPost, p.book(), string(body), "Content-Type", "application/json")
	if err != nil || a.Status != http.StatusNoContent {
		return fmt.Errorf("giving the ERP its dues: %d %s: %w", a.Status, a.Body, err)
	}
	of := citizens.Subject{AgencyID: p.agency.Tenant, Ref: p.subject}
	code, err := p.accounts.LinkCode(ctx, of)
	if err != nil {
		return err
	}
	for _, who := range p.people[1:] {
		if _, err := p.accounts.Prove(ctx, who.id, of, code); err != nil {
			return err
		}
	}
	return nil
}

// book is where the simulated ERP shows and takes its dues.
func (p *portal) book() string { return p.linear.stack.Simulator + "/control/erp/" + p.agency.Slug }

func dueOf(order string, i int) string { return fmt.Sprintf("%s-due-%d", order, i) }

// outstanding returns what is owed now of the dues of an order.
func (p *portal) outstanding(ctx context.Context, order string) ([duesOfOrder]int64, error) {
	var out [duesOfOrder]int64
	a, err := send(ctx, p.linear.client, http.MethodGet, p.book()+"?limit=1&after=999999999", "")
	if err != nil {
		return out, err
	}
	var book struct {
		Dues map[string][]struct {
			Ref         string `json:"erp_due_ref"`
			Outstanding int64  `json:"outstanding_minor"`
		} `json:"dues"`
	}
	if err := json.Unmarshal(a.Body, &book); err != nil {
		return out, fmt.Errorf("the ERP's book: %w", err)
	}
	for _, d := range book.Dues[p.subject] {
		for i := range out {
			if d.Ref == dueOf(order, i) {
				out[i] = d.Outstanding
			}
		}
	}
	return out, nil
}

// cartRequest sends one random request about a random order of carts.
func (r *recording) cartRequest(ctx context.Context, client int, o *worked, session string) {
	switch n := rand.IntN(100); {
	case session == "" || n < 40:
		key := r.key(o)
		b, err := r.basket(ctx, o, key)
		if err != nil {
			r.surprise("a basket of %s: %v", o.id, err)
			return
		}
		for !r.createCart(ctx, client, o, key, b) && rand.IntN(4) > 0 {
			// The contract says to repeat with the same key.
			if !measure.Pause(ctx, 50*time.Millisecond+rand.N(200*time.Millisecond)) {
				return
			}
		}
	case n < 65:
		r.look(ctx, client, o)
	case n < 80:
		r.payments(ctx, client, o, r.ownerOf(o))
	default:
		r.pay(ctx, o, session)
	}
}

// basket returns the request of a key: two or three dues, of which the citizen pays as much
// as the key says. The first client that uses the key makes it.
func (r *recording) basket(ctx context.Context, o *worked, key int64) (basket, error) {
	r.mu.Lock()
	b, known := o.baskets[key]
	r.mu.Unlock()
	if known {
		return b, nil
	}
	owed, err := r.carts.outstanding(ctx, o.id)
	if err != nil {
		return b, err
	}
	b = basket{owner: 1 + rand.IntN(citizensOfHistory), items: 1<<duesOfOrder - 1, replace: rand.IntN(3) == 0}
	if leave := rand.IntN(duesOfOrder + 1); leave < duesOfOrder {
		b.items &^= 1 << leave
	}
	var items []map[string]any
	rest := key - int64(bits.OnesCount8(uint8(b.items)))
	for i := range duesOfOrder {
		if b.items>>i&1 == 1 {
			items = append(items, map[string]any{
				"tenant_id": r.carts.agency.Tenant, "subject_ref": r.carts.subject, "erp_due_ref": dueOf(o.id, i), "amount_minor": 1 + rest, "outstanding_minor": owed[i],
			})
			rest = 0
		}
	}
	body, err := json.Marshal(map[string]any{"items": items, "replace": b.replace})
	if err != nil {
		return b, err
	}
	b.body = string(body)
	r.mu.Lock()
	defer r.mu.Unlock()
	if other, known := o.baskets[key]; known {
		return other, nil
	}
	o.baskets[key] = b
	return b, nil
}

// ownerOf returns a citizen with a cart of the order, mostly.
func (r *recording) ownerOf(o *worked) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range o.baskets {
		return b.owner // a random one
	}
	return 1
}

func (r *recording) createCart(ctx context.Context, client int, o *worked, key int64, b basket) bool {
	q := request{do: actionCreate, order: o.id, due: true, amount: key, owner: b.owner, items: b.items, replace: b.replace}
	return r.askPortal(ctx, client, o, q, http.StatusCreated, http.MethodPost, "/checkout", b.body, "Content-Type", "application/json",
		"Idempotency-Key", fmt.Sprintf("%s-%d", r.name, key), "Sec-Fetch-Site", "same-origin")
}

// look reads the states of the order's dues.
func (r *recording) look(ctx context.Context, client int, o *worked) bool {
	q := request{do: actionLook, order: o.id, due: true, owner: 1 + rand.IntN(citizensOfHistory)}
	return r.askPortal(ctx, client, o, q, http.StatusOK, http.MethodGet, "/dues?tenant_id="+r.carts.agency.Tenant+"&subject_ref="+r.carts.subject, "")
}

// payments reads what a citizen has paid of the order.
func (r *recording) payments(ctx context.Context, client int, o *worked, owner int) bool {
	q := request{do: actionPayments, order: o.id, due: true, owner: owner}
	return r.askPortal(ctx, client, o, q, http.StatusOK, http.MethodGet, "/payments?page_size=100", "")
}

// askPortal sends a request of a citizen, records it, and reports whether it was answered.
func (r *recording) askPortal(ctx context.Context, client int, o *worked, q request, success int, method, path, body string, headers ...string) bool {
	call := time.Since(r.begun).Nanoseconds()
	a, err := r.send(ctx, method, "/api/v1/citizen"+path, body, append(headers, "Cookie", r.carts.people[q.owner].cookie)...)
	if err == nil && a.Status == http.StatusTooManyRequests { // nothing was decided
		r.mu.Lock()
		defer r.mu.Unlock()
		r.limited++
		return true
	}
	return r.record(client, o, q, success, call, a, err)
}

// readCart reads a successful answer of the citizen API.
func (a *reply) readCart(body []byte, q request) error {
	var got struct {
		ID         string `json:"id"`
		PaymentRef string `json:"payment_ref"`
		Status     string `json:"status"`
		Amount     int64  `json:"amount"`
		Items      []struct {
			Ref        string `json:"erp_due_ref"`
			State      string `json:"payment_state"`
			SessionID  string `json:"session_id"`
			PaymentRef string `json:"payment_ref"`
			Amount     int64  `json:"amount"`
			Items      []struct {
				Ref string `json:"erp_due_ref"`
			} `json:"items"`
		} `json:"items"`
	}
	if err := json.Unmarshal(body, &got); err != nil {
		return err
	}
	switch q.do {
	case actionCreate:
		if len(got.Items) != bits.OnesCount8(uint8(q.items)) {
			return errors.New("the session has other dues than the request")
		}
		a.sessions = []sighting{{got.Amount, got.ID + "/" + got.PaymentRef, got.Status}}
	case actionLook:
		a.dues = make([]string, duesOfOrder)
		for _, d := range got.Items {
			for i := range a.dues {
				if d.Ref == dueOf(q.order, i) {
					a.dues[i] = d.State
				}
			}
		}
		if slices.Contains(a.dues, "") {
			return errors.New("the list lacks a due")
		}
	default:
		for _, s := range got.Items {
			if len(s.Items) > 0 && ofOrder(s.Items[0].Ref, q.order) {
				a.sessions = append(a.sessions, sighting{s.Amount, s.SessionID + "/" + s.PaymentRef, "completed"})
			}
		}
	}
	return nil
}

func ofOrder(due, order string) bool {
	for i := range duesOfOrder {
		if due == dueOf(order, i) {
			return true
		}
	}
	return false
}

// payLater notes that the payment of a cart was confirmed. The ERP accepts each due by
// itself. The caller holds r.mu.
func (r *recording) payLater(o *worked, session string, call int64) {
	for _, do := range []action{actionAsk, actionPay} {
		q := o.request(do)
		q.due, q.session = true, session
		r.later(q, call)
	}
	for i := range duesOfOrder {
		q := o.request(actionAccept)
		q.due, q.session, q.items = true, session, 1<<i
		r.later(q, call)
	}
}

// lastOfCarts reads an order after all other requests: its dues, and the payments of each
// citizen who had a cart.
func (r *recording) lastOfCarts(ctx context.Context, client int, o *worked) {
	until := func(read func() bool) {
		for !read() {
			if !measure.Pause(ctx, 100*time.Millisecond) {
				r.surprise("order %s could not be read at the end", o.id)
				return
			}
		}
	}
	until(func() bool { return r.look(ctx, client, o) })
	owners := map[int]bool{}
	r.mu.Lock()
	for _, b := range o.baskets {
		owners[b.owner] = true
	}
	r.mu.Unlock()
	for owner := range owners {
		until(func() bool { return r.payments(ctx, client, o, owner) })
	}
}
