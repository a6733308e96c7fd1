package linear_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"quittance/dev/bench/client"
	"quittance/dev/bench/measure"
	"quittance/test/harness"

	"github.com/anishathalye/porcupine"
)

const (
	clientsPerHistory = 7
	ordersAtOnce      = 2
	// The clients use an order until it has this many sessions or keys, or until this many
	// requests have followed its payment.
	sessionsPerOrder, keysPerOrder, afterPayment = 12, 40, 12
	// paymentsOfDue is how often the clients pay a due.
	paymentsOfDue = 2
	// approvedAtOnce is the magic number of a payer who approves at once.
	approvedAtOnce = "06 600 00 01"
)

// recording records a history. Clients of one application create, read, cancel and pay
// sessions of a few orders at random ingresses. Each request is kept with its times and
// its answer. Safe for concurrent use.
type recording struct {
	name    string  // of the history, in orders and keys
	dues    bool    // the clients work on dues
	carts   *portal // of histories about carts; nil for others
	app     harness.Application
	ingress []string
	client  *http.Client
	begun   time.Time

	amounts atomic.Int64 // one for each key

	mu         sync.Mutex
	number     int // of orders
	current    [ordersAtOnce]*worked
	all        []*worked
	operations []porcupine.Operation
	// whenever holds the requests without an answer, with the time of the first. Each may
	// be carried out at any later time. A repetition is the same request, because a second
	// creation with the same key or a second end of a session changes nothing.
	whenever   map[request]int64
	unanswered int
	limited    int // requests beyond the rate of an account
	surprises  []string
}

// worked is an order that the clients use.
type worked struct {
	id       string
	due      bool             // a due: each key has an order of its own
	baskets  map[int64]basket // of a subject, by key
	keys     []int64          // amounts
	sessions []string         // as sighting.session
	paid     []string         // sessions
	over     int              // requests since the last payment was seen
}

// orderOf returns the order of a key.
func (q request) orderOf(amount int64) string {
	if q.due {
		return fmt.Sprintf("%s-%d", q.order, amount)
	}
	return q.order
}

func (o *worked) request(do action) request { return request{do: do, order: o.id, due: o.due} }

// finished reports whether the clients have paid what they wanted to pay.
func (o *worked) finished() bool {
	return len(o.paid) > 0 && (!o.due && len(o.baskets) == 0 || len(o.paid) >= paymentsOfDue)
}

func newRecording(name string, dues bool, carts *portal, app harness.Application, ingress []string, client *http.Client) *recording {
	r := &recording{name: name, dues: dues, carts: carts, app: app, ingress: ingress, client: client, begun: time.Now(), whenever: map[request]int64{}}
	for i := range r.current {
		r.current[i] = r.another()
	}
	return r
}

// another returns a new order.
func (r *recording) another() *worked {
	r.number++
	o := &worked{id: orderName(r.name, r.number), due: r.dues}
	if r.carts != nil {
		o.baskets = map[int64]basket{}
	}
	r.all = append(r.all, o)
	return o
}

func orderName(history string, n int) string { return fmt.Sprintf("%s-order-%d", history, n) }

// run lets the clients send requests until the context until ends. Then it reads every
// order once more: everything acknowledged must be there.
func (r *recording) run(ctx, until context.Context) {
	var clients sync.WaitGroup
	for n := range clientsPerHistory {
		clients.Go(func() {
			for until.Err() == nil {
				r.request(ctx, n)
				measure.Pause(until, rand.N(20*time.Millisecond))
			}
		})
	}
	clients.Wait()
	for n, o := range r.all {
		clients.Go(func() {
			if r.carts != nil {
				r.lastOfCarts(ctx, n%clientsPerHistory, o)
				return
			}
			r.last(ctx, n%clientsPerHistory, o)
		})
	}
	clients.Wait()
}

// request sends one random request of a client about a random order.
func (r *recording) request(ctx context.Context, client int) {
	o, session := r.draw()
	if r.carts != nil {
		r.cartRequest(ctx, client, o, session)
		return
	}
	switch n := rand.IntN(100); {
	case session == "" || n < 30:
		key := r.key(o)
		for !r.create(ctx, client, o, key) && rand.IntN(4) > 0 {
			// The contract says to repeat with the same key.
			if !measure.Pause(ctx, 50*time.Millisecond+rand.N(200*time.Millisecond)) {
				return
			}
		}
	case n < 52:
		r.get(ctx, client, o, session)
	case n < 74:
		r.list(ctx, client, o, r.known(o))
	case n < 92:
		r.cancel(ctx, client, o, session)
	default:
		r.pay(ctx, o, session)
	}
}

// draw picks an order and one of its sessions, mostly the newest. The session is empty if
// the order has none.
func (r *recording) draw() (o *worked, session string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := rand.IntN(len(r.current))
	o = r.current[i]
	if o.finished() {
		o.over++
	}
	full := r.carts != nil && r.number >= ordersOfHistory
	if !full && (o.over > afterPayment || len(o.sessions) >= sessionsPerOrder || len(o.keys) >= keysPerOrder) {
		o = r.another()
		r.current[i] = o
	}
	if n := len(o.sessions); n > 0 {
		session = o.sessions[n-1]
		if rand.IntN(4) == 0 {
			session = o.sessions[rand.IntN(n)]
		}
	}
	return o, session
}

// key returns a new key of the order, or one of the last keys, which other clients may be
// using.
func (r *recording) key(o *worked) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(o.keys); n > 0 && rand.IntN(2) == 0 {
		return o.keys[n-1-rand.IntN(min(3, n))]
	}
	key := 1000 + r.amounts.Add(1)
	o.keys = append(o.keys, key)
	return key
}

// known returns a key of the order, 0 if it has none.
func (r *recording) known(o *worked) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(o.keys) == 0 {
		return 0
	}
	return o.keys[rand.IntN(len(o.keys))]
}

// create reports whether the creation was answered.
func (r *recording) create(ctx context.Context, client int, o *worked, key int64) bool {
	q := o.request(actionCreate)
	q.amount = key
	body := fmt.Sprintf(`{"order_id": %q, "amount": %d}`, q.orderOf(key), key)
	if o.due {
		body = fmt.Sprintf(`{"order_id": %q, "amount": %d, "metadata": {"erp_due_ref": %q}}`, q.orderOf(key), key, o.id)
	}
	return r.ask(ctx, client, o, q, http.StatusCreated,
		http.MethodPost, "", body, "Content-Type", "application/json", "Idempotency-Key", r.name+"-"+strconv.FormatInt(key, 10))
}

func (r *recording) get(ctx context.Context, client int, o *worked, session string) bool {
	q := o.request(actionGet)
	q.session = session
	return r.ask(ctx, client, o, q, http.StatusOK, http.MethodGet, "/"+idOf(session), "")
}

// list lists the order: that of a key if the clients work on a due.
func (r *recording) list(ctx context.Context, client int, o *worked, key int64) bool {
	q := o.request(actionList)
	if o.due {
		q.amount = key
	}
	return r.ask(ctx, client, o, q, http.StatusOK, http.MethodGet, "?page_size=100&order_id="+url.QueryEscape(q.orderOf(key)), "")
}

func (r *recording) cancel(ctx context.Context, client int, o *worked, session string) bool {
	q := o.request(actionCancel)
	q.session = session
	return r.ask(ctx, client, o, q, http.StatusOK, http.MethodPost, "/"+idOf(session)+"/cancel", "")
}

// last reads an order and its sessions after all other requests, and repeats each read
// until it is answered.
func (r *recording) last(ctx context.Context, client int, o *worked) {
	r.mu.Lock()
	keys := []int64{0}
	if o.due {
		keys = slices.Clone(o.keys)
	}
	r.mu.Unlock()
	for _, key := range keys {
		for !r.list(ctx, client, o, key) {
			if !measure.Pause(ctx, 100*time.Millisecond) {
				r.surprise("order %s could not be read at the end", o.id)
				return
			}
		}
	}
	r.mu.Lock()
	sessions := slices.Clone(o.sessions)
	r.mu.Unlock()
	for _, s := range sessions {
		for !r.get(ctx, client, o, s) && measure.Pause(ctx, 100*time.Millisecond) {
		}
	}
}

// ask sends a request to the API, records it, and reports whether it was answered.
func (r *recording) ask(ctx context.Context, client int, o *worked, q request, success int, method, path, body string, headers ...string) bool {
	call := time.Since(r.begun).Nanoseconds()
	a, err := r.send(ctx, method, "/api/v1/checkout/sessions"+path, body, append(headers, "Authorization", "Bearer "+r.app.Key)...)
	return r.record(client, o, q, success, call, a, err)
}

// record records a request whose answer has just come, or did not come.
func (r *recording) record(client int, o *worked, q request, success int, call int64, a harness.Answer, err error) bool {
	end := time.Since(r.begun).Nanoseconds()
	if refusedToTalk(err) {
		return false // nothing was sent
	}
	answer := reply{definite: err == nil && a.Status < http.StatusInternalServerError}
	if answer.definite {
		if err := answer.read(a, q, success); err != nil {
			r.surprise("%s of %s was answered with %d %s: %v", q, o.id, a.Status, a.Body, err)
			return true
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !answer.definite {
		r.unanswered++
		if q.do == actionCreate || q.do == actionCancel { // a read changes nothing
			r.later(q, call)
		}
		if q.do == actionCreate && q.owner > 0 {
			q.do = actionChanged
			r.later(q, call)
		}
		return false
	}
	r.operations = append(r.operations, porcupine.Operation{ClientId: client, Input: q, Call: call, Output: answer, Return: end})
	for _, s := range answer.sessions {
		if !slices.Contains(o.sessions, s.session) {
			o.sessions = append(o.sessions, s.session)
		}
		if s.status == "completed" && !slices.Contains(o.paid, s.session) {
			o.paid = append(o.paid, s.session)
		}
	}
	return true
}

// read reads a definite answer.
func (a *reply) read(got harness.Answer, q request, success int) error {
	a.replayed = got.Header.Get("Idempotent-Replayed") == "true"
	var items []harness.Session
	switch {
	case q.owner > 0 && got.Status == success:
		return a.readCart(got.Body, q)
	case got.Status != success && (got.Status == http.StatusConflict || got.Status == http.StatusNotFound):
		var problem struct {
			Code string `json:"code"`
		}
		if err := json.Unmarshal(got.Body, &problem); err != nil || problem.Code == "" {
			return errors.Join(errors.New("a refusal without a code"), err)
		}
		a.code = problem.Code
		return nil
	case got.Status != success:
		return errors.New("the status is not expected")
	case q.do == actionList:
		var page struct {
			Items []harness.Session `json:"items"`
			Total int               `json:"total"`
		}
		if err := json.Unmarshal(got.Body, &page); err != nil {
			return err
		}
		if page.Total != len(page.Items) {
			return fmt.Errorf("the list has %d items and the total %d", len(page.Items), page.Total)
		}
		items = page.Items
	default:
		items = make([]harness.Session, 1)
		if err := json.Unmarshal(got.Body, &items[0]); err != nil {
			return err
		}
	}
	for _, s := range items {
		if s.OrderID != q.orderOf(s.Amount) || s.Paid != (s.Status == "completed") {
			return errors.New("the session contradicts itself or the request")
		}
		a.sessions = append(a.sessions, sighting{s.Amount, s.ID + "/" + s.PaymentRef, s.Status})
	}
	return nil
}

// idOf returns the id of a sighting.session.
func idOf(session string) string {
	id, _, _ := strings.Cut(session, "/")
	return id
}

// pay pays on the page without a script, with a payer who approves at once. Only the
// confirmation is recorded. A page without a form has nothing to confirm.
func (r *recording) pay(ctx context.Context, o *worked, session string) {
	form := harness.PageForm{}
	for range 3 { // the page, the number, the confirmation
		method, path, body := http.MethodGet, "/c/"+idOf(session)+"?lang=en", ""
		if form.Action != "" {
			method, path, body = http.MethodPost, form.Action, form.Fields.Encode()
		}
		call := time.Since(r.begun).Nanoseconds()
		a, err := r.send(ctx, method, path, body, "Content-Type", "application/x-www-form-urlencoded")
		unanswered := err != nil || a.Status >= http.StatusInternalServerError
		if form.Step() == "pay" && !refusedToTalk(err) && (unanswered || a.Status == http.StatusSeeOther) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if unanswered {
				r.unanswered++
			}
			kinds := []action{actionPay}
			switch {
			case r.carts != nil:
				r.payLater(o, session, call)
				return
			case o.due:
				kinds = []action{actionAsk, actionPay, actionAccept}
			}
			for _, do := range kinds {
				q := o.request(do)
				q.session = session
				r.later(q, call)
			}
			return
		}
		if unanswered {
			return
		}
		if form = harness.ReadForm(string(a.Body)); form.Action == "" {
			return
		}
		if form.Step() == "phone" {
			form.Fields.Set("phone", approvedAtOnce)
		}
	}
}

// answers returns the number of requests with a definite answer.
func (r *recording) answers() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.operations)
}

// later notes a request that may be carried out at any time after call. The caller holds
// r.mu.
func (r *recording) later(q request, call int64) {
	if first, ok := r.whenever[q]; !ok || call < first {
		r.whenever[q] = call
	}
}

// history returns what was recorded, after run.
func (r *recording) history() []porcupine.Operation {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := slices.Clone(r.operations)
	for q, call := range r.whenever {
		// Each of them is a client of its own, because it has no end in the picture.
		client := clientsPerHistory + len(out) - len(r.operations)
		out = append(out, porcupine.Operation{ClientId: client, Input: q, Call: call, Output: reply{}})
	}
	return out
}

func (r *recording) surprise(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.surprises = append(r.surprises, fmt.Sprintf(format, args...))
}

// send sends one request to a random ingress.
func (r *recording) send(ctx context.Context, method, path, body string, headers ...string) (harness.Answer, error) {
	return send(ctx, r.client, method, r.ingress[rand.IntN(len(r.ingress))]+path, body, headers...)
}

func send(ctx context.Context, with *http.Client, method, url, body string, headers ...string) (harness.Answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return harness.Answer{}, err
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	// net/http repeats a request with an Idempotency-Key by itself, which the history would
	// not show. Without GetBody it cannot.
	req.GetBody = nil
	resp, err := with.Do(req)
	if err != nil {
		return harness.Answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return harness.Answer{}, err
	}
	return harness.Answer{Answer: client.Answer{Status: resp.StatusCode, Header: resp.Header, Body: text}}, err
}

// refusedToTalk reports that no connection was made, so that no request was sent.
func refusedToTalk(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
