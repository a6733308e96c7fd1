package crash_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"quittance/test/harness"
)

// history holds all answers and messages of a run and everything that the service has
// stored.
type history struct {
	creations []creation
	cancelled []string // ids of sessions whose cancellation was acknowledged
	taken     []cash
	payments  []payment
	events    []event // in the order of each partition
	webhooks  []webhook
	confirmed []confirmation
	stores    []store // must agree with the events
	charges   []charge
	notices   []notice
	owed      map[string]int64 // of dues that carts pay, before any payment
	receipts  []receipt
	refused   []string // keys of carts that were refused
	// told are what others than the log say of money that was given back, by name.
	told []returns

	cases       map[string]operatorCase // by id, in the processors' state
	rows        map[string]operatorCase // by id, in the table of staff
	underReview []string                // sessions that block their order
}

// operatorCase is money that fits no open session, and its exit.
type operatorCase struct{ session, kind, resolution string }

// creation is a 201 that a client got for an order, also a repeated one.
type creation struct {
	application, order, key string
	session, reference      string
	amount                  int64
}

// cash is a payment that a clerk put on record. The request may have had no answer.
type cash struct {
	session, reference, collection string
	amount                         int64
	taken, reversed                bool // the answer said so
}

// payment is a collection as the operator has it.
type payment struct {
	id         string
	reference  string // payment_ref of the session
	approved   bool
	amount     int64
	currency   string
	duplicates int // repeated requests with the same id, without a further debit
}

// event is one record of checkout.events.
type event struct {
	id, kind    string
	session     string
	sequence    int64
	application string
	tenant      string
	order       string
	reference   string
	cart        bool   // it has items
	mark        string // Idempotency-Key of the cart
	dues        []due  // that an ERP knows
	collection  string
	paid        int64 // amount of the collection, fee included
	late        bool  // a completion with late money
	caseID      string
	back        []due // whose money the event gave back
	after       standing

	// Of payments of the deprecated cash-in surface.
	partner   string // the call that made it: init or partner
	paymentID int64
	number    string
}

// due is a due that a session pays, or a part of one.
type due struct {
	transaction, ref string
	amount, fee      int64 // fee only of carts
}

// receipt is a payment of one due in ClickHouse.
type receipt struct {
	session, transaction, due string
	item, amount, fee         int64
}

// standing is the state of a session on which all stores must agree.
type standing struct {
	status   string
	sequence int64
	currency string
	amount   int64
	fee      int64
	total    int64
}

// webhook is one message that arrived at an endpoint.
type webhook struct {
	inbox       string // id of its application
	id, eventID string // webhook-id and x-service-event-id
	kind        string
	session     string
	body        string
	signed      bool // with a valid signature
	accepted    bool // answered with 2xx
}

// confirmation is a transaction that an agency's ERP has accepted.
type confirmation struct {
	tenant      string
	transaction string
	dueRef      string
	reference   string
	amount      int64
	accepted    int // number of answers 201
}

// store is a place that keeps sessions.
type store struct {
	name     string
	sessions map[string]standing
	sums     map[sumKey]sum   // as the store computes them
	items    map[string]int64 // sum of the items of each session; nil for a store without them
}

type sumKey struct{ status, currency string }

type sum struct{ sessions, amount, fee, total int64 }

func (s sum) String() string {
	return fmt.Sprintf("%d sessions, amount %d, fee %d, total %d", s.sessions, s.amount, s.fee, s.total)
}

// Kinds of events that the verifier knows. They are repeated here, so that a change of the
// domain's constants fails the test.
const (
	kindCreated     = "checkout.created"
	kindCompleted   = "checkout.completed"
	kindFailed      = "checkout.failed"
	kindCancelled   = "checkout.cancelled"
	kindExpired     = "checkout.expired"
	kindLatePayment = "checkout.late_payment"
	kindReversed    = "checkout.reversed"
	kindPartly      = "checkout.partially_reversed"
	kindResolved    = "case.resolved"
	kindRecorded    = "confirmation.recorded"
)

// verdict counts the faults of a history and what was checked.
type verdict struct {
	// lost counts acknowledged creations, payments and cancellations that are not in the log,
	// approved collections that neither completed their session nor are late payments,
	// events that their subscriber never accepted, and completed sessions that their ERP
	// never accepted.
	lost int
	// doubled counts creations, sessions, events, completions, debits, event ids of
	// webhooks, accepted confirmations, numbers and paymentIds that occur twice.
	doubled int
	// gaps counts sequence numbers that are missing or out of order, and numbers that are
	// missing in a month of a partner.
	gaps int
	// diverged counts disagreements between stores and false messages: a completion
	// without approval, another amount, a webhook or a confirmation without an event, an
	// invalid signature, a case whose table and state disagree.
	diverged int
	// blocked counts orders and sums without an exit: an order under review and a late
	// payment whose case staff cannot find.
	blocked int
	// untold counts dues of which a view or a read model says another returned sum than the log.
	untold int

	late, reversed int // late payments, and sessions whose money was given back
	expected       int // unsigned webhooks
	carts          cartSums

	findings []string // the first few
	table    []row
	sums     map[sumKey]sum // of the events
}

type row struct {
	what  string
	count int
}

const maxFindings = 40

func (v *verdict) clean() bool { return v.lost+v.doubled+v.gaps+v.diverged+v.blocked+v.untold == 0 }

func (v *verdict) find(counter *int, kind, format string, args ...any) {
	*counter++
	if len(v.findings) < maxFindings {
		v.findings = append(v.findings, kind+": "+fmt.Sprintf(format, args...))
	}
}

func (v *verdict) lose(format string, args ...any)   { v.find(&v.lost, "lost", format, args...) }
func (v *verdict) double(format string, args ...any) { v.find(&v.doubled, "doubled", format, args...) }
func (v *verdict) gap(format string, args ...any)    { v.find(&v.gaps, "gap", format, args...) }
func (v *verdict) diverge(format string, args ...any) {
	v.find(&v.diverged, "diverged", format, args...)
}
func (v *verdict) count(what string, n int) { v.table = append(v.table, row{what, n}) }

// verify judges a history.
func verify(h history) *verdict {
	v := &verdict{}
	log := v.readLog(h.events)
	v.sums = log.sums()
	v.creations(h, log)
	v.cancellations(h, log)
	v.payments(h, log)
	v.cash(h, log)
	v.exits(h, log)
	v.webhooks(h, log)
	v.confirmations(h, log)
	v.partners(h, log)
	v.stores(h, log)
	v.cart(h, log)
	v.returned(h, log)
	return v
}

// log holds the events by session.
type log struct {
	sessions map[string][]event
	all      []event
}

// last returns the last event of a session.
func (l *log) last(session string) event {
	events := l.sessions[session]
	return events[len(events)-1]
}

// of returns a session's events of a kind.
func (l *log) of(session, kind string) (found []event) {
	for _, e := range l.sessions[session] {
		if e.kind == kind {
			found = append(found, e)
		}
	}
	return found
}

func (l *log) sums() map[sumKey]sum {
	sums := map[sumKey]sum{}
	for session := range l.sessions {
		add(sums, l.last(session).after)
	}
	return sums
}

func add(sums map[sumKey]sum, s standing) {
	k := sumKey{s.status, s.currency}
	n := sums[k]
	n.sessions++
	n.amount += s.amount
	n.fee += s.fee
	n.total += s.total
	sums[k] = n
}

// readLog groups the events by session. It checks that each session's sequence is 1, 2, 3 …
// and that each event id occurs once in the whole log.
func (v *verdict) readLog(events []event) *log {
	l := &log{sessions: map[string][]event{}, all: events}
	ids := map[string]bool{}
	for _, e := range events {
		if ids[e.id] {
			v.double("event %s (%s %d %s) is in the log twice", e.id, e.session, e.sequence, e.kind)
		}
		ids[e.id] = true
		if e.sequence == 0 {
			v.lose("%s without a session (collection %s)", e.kind, e.collection)
			continue
		}
		l.sessions[e.session] = append(l.sessions[e.session], e)
	}
	for session, list := range l.sessions {
		seen := map[int64]bool{}
		next := int64(1)
		for _, e := range list {
			switch {
			case seen[e.sequence]:
				v.double("%s has event %d twice", session, e.sequence)
			case e.sequence != next:
				v.gap("%s has event %d where %d was expected", session, e.sequence, next)
			}
			seen[e.sequence] = true
			next = e.sequence + 1
		}
		if list[0].kind != kindCreated {
			v.gap("%s begins with %s", session, list[0].kind)
		}
	}
	v.count("events in the log", len(events))
	v.count("sessions in the log", len(l.sessions))
	return l
}

// creations checks that every acknowledged creation is in the log once with the requested
// values, and that no order has two sessions.
func (v *verdict) creations(h history, l *log) {
	type request struct{ application, key string }
	answered := map[request]string{}
	for _, c := range h.creations {
		k := request{c.application, c.key}
		if first, again := answered[k]; again {
			if first != c.session {
				v.double("creation %s was answered with %s and with %s", c.key, first, c.session)
			}
			continue
		}
		answered[k] = c.session
		created := l.of(c.session, kindCreated)
		switch {
		case len(created) == 0:
			v.lose("acknowledged session %s (order %s) is not in the log", c.session, c.order)
		case len(created) > 1:
			v.double("session %s was created %d times", c.session, len(created))
		case created[0].application != c.application || created[0].order != c.order || created[0].after.amount != c.amount:
			v.diverge("session %s differs from its request: %+v", c.session, created[0])
		}
	}
	type order struct{ application, id string }
	orders := map[order]string{}
	for session := range l.sessions {
		e := l.last(session)
		if e.partner != "" { // several payments may share an externalNumber: partners checks them
			continue
		}
		k := order{e.application, e.order}
		if other, again := orders[k]; again {
			v.double("order %s has sessions %s and %s", e.order, other, session)
		}
		orders[k] = session
	}
	v.count("creations acknowledged", len(answered))
	v.count("  repeated answers to them", len(h.creations)-len(answered))
}

func (v *verdict) cancellations(h history, l *log) {
	for _, session := range h.cancelled {
		if n := len(l.of(session, kindCancelled)); n == 0 {
			v.lose("acknowledged cancellation of %s is not in the log", session)
		} else if n > 1 {
			v.double("%s was cancelled %d times", session, n)
		}
	}
	v.count("cancellations acknowledged", len(h.cancelled))
}

// payments checks that every approved collection completed its session once or is its late
// payment, that no session was debited twice, and that none was completed without an
// approval.
func (v *verdict) payments(h history, l *log) {
	type outcome struct{ completed, late, honoured int }
	outcomes := map[string]outcome{}
	collectionOf := map[string]event{}
	for _, e := range l.all {
		if e.kind != kindCompleted && e.kind != kindLatePayment {
			continue
		}
		o := outcomes[e.collection]
		switch {
		case e.kind == kindLatePayment:
			o.late++
		case e.late:
			o.honoured++
		default:
			o.completed++
		}
		outcomes[e.collection] = o
		collectionOf[e.collection] = e
	}
	approved := map[string]payment{}
	debits := map[string]string{} // by payment_ref
	late, repeated := 0, 0
	for _, p := range slices.Concat(h.payments, h.cash(collectionOf)) {
		repeated += p.duplicates
		if !p.approved {
			continue
		}
		if _, again := approved[p.id]; again {
			v.double("collection %s was approved twice", p.id)
		}
		approved[p.id] = p
		if other, again := debits[p.reference]; again {
			v.double("payment_ref %s was debited as %s and as %s", p.reference, other, p.id)
		}
		debits[p.reference] = p.id
		o := outcomes[p.id]
		late += o.late
		switch {
		case o.completed+o.late == 0:
			v.lose("collection %s (payment_ref %s) was approved and completed no session", p.id, p.reference)
		case o.completed+o.late > 1:
			v.double("collection %s has %d completions and %d late payments", p.id, o.completed, o.late)
		case o.honoured > o.late:
			v.double("collection %s has %d late payments and %d completions with them", p.id, o.late, o.honoured)
		case collectionOf[p.id].paid != p.amount || collectionOf[p.id].after.currency != p.currency:
			v.diverge("collection %s is %d %s at the operator and %d %s in the log", p.id, p.amount, p.currency, collectionOf[p.id].paid, collectionOf[p.id].after.currency)
		case collectionOf[p.id].reference != p.reference:
			v.diverge("collection %s is of payment_ref %s at the operator and %s in the log", p.id, p.reference, collectionOf[p.id].reference)
		}
	}
	for id, e := range collectionOf {
		if _, ok := approved[id]; !ok {
			v.diverge("%s of %s by collection %s, which the operator has not approved", e.kind, e.session, id)
		}
	}
	completed := 0
	for session := range l.sessions {
		n := len(l.of(session, kindCompleted))
		if n > 1 {
			v.double("%s was completed %d times", session, n)
		}
		if n > 0 {
			completed++
		}
	}
	v.count("collections at the operator", len(h.payments))
	v.count("  approved, and payments in cash", len(approved))
	v.count("  repeated requests (no second debit)", repeated)
	v.count("sessions completed", completed)
	v.late = late
	v.count("  late payments", late)
}

// cash returns the payments that clerks put on record: those that were acknowledged, and
// of the others those that are in the log.
func (h history) cash(logged map[string]event) (out []payment) {
	for _, c := range h.taken {
		e, ok := logged[c.collection]
		if !c.taken && !ok {
			continue
		}
		currency := "XAF"
		if ok {
			currency = e.after.currency
		}
		out = append(out, payment{id: c.collection, reference: c.reference, approved: true, amount: c.amount, currency: currency})
	}
	return out
}

// cash checks that every acknowledged reversal is in the log, and that no session's money
// was given back twice.
func (v *verdict) cash(h history, l *log) {
	reversed, taken := 0, 0
	for _, c := range h.taken {
		if c.taken {
			taken++
		}
		if !c.reversed {
			continue
		}
		reversed++
		if len(l.of(c.session, kindReversed)) == 0 {
			v.lose("acknowledged reversal of %s is not in the log", c.session)
		}
	}
	all := 0
	for session := range l.sessions {
		n := len(l.of(session, kindReversed))
		all += n
		if n > 1 {
			v.double("%s was reversed %d times", session, n)
		}
	}
	v.count("cash payments acknowledged", taken)
	v.count("  reversals acknowledged to clerks", reversed)
	v.reversed = all
	v.count("sessions reversed", all)
}

// exits checks that staff find every sum that waits for them, and that each has at most one
// exit.
func (v *verdict) exits(h history, l *log) {
	open, closed := 0, 0
	for id, c := range h.cases {
		row, found := h.rows[id]
		switch {
		case c.resolution == "" && (!found || row.resolution != ""):
			v.find(&v.blocked, "blocked", "case %s (%s of %s) is open, and staff cannot find it", id, c.kind, c.session)
		case !found || row != c:
			v.diverge("case %s is %+v, and staff see %+v", id, c, row)
		}
		if c.resolution == "" {
			open++
		} else {
			closed++
		}
	}
	for id := range h.rows {
		if _, found := h.cases[id]; !found {
			v.diverge("staff see case %s, which no session has", id)
		}
	}
	waiting := map[string]bool{}
	for _, c := range h.rows {
		if c.resolution == "" {
			waiting[c.session] = true
		}
	}
	for _, session := range h.underReview {
		if !waiting[session] {
			v.find(&v.blocked, "blocked", "the order of %s is under review without an open case", session)
		}
	}
	resolved := map[string]int{}
	for _, e := range l.all {
		switch e.kind {
		case kindLatePayment:
			if _, found := h.cases[e.caseID]; !found {
				v.find(&v.blocked, "blocked", "the late payment of %s has no case", e.session)
			}
		case kindResolved:
			if resolved[e.caseID]++; resolved[e.caseID] > 1 {
				v.double("case %s was resolved %d times", e.caseID, resolved[e.caseID])
			}
		}
	}
	v.count("operator cases closed", closed)
	v.count("  left open", open)
	v.count("orders under review", len(h.underReview))
}

// webhooks checks that the subscriber of every event accepted it at least once, and that
// each call had the event's id, the same bytes and a valid signature.
func (v *verdict) webhooks(h history, l *log) {
	events := map[string]event{}
	expected := 0
	for _, e := range l.all {
		events[e.id] = e
		if slices.Contains(harness.WebhookKinds, e.kind) {
			expected++
		}
	}
	type received struct {
		accepted int
		body     string
	}
	byID := map[string]*received{}
	ids := map[[2]string]string{} // (session, kind) → event id: one event, one id
	calls := 0
	for _, w := range h.webhooks {
		calls++
		e, ok := events[w.id]
		switch {
		case w.eventID != w.id:
			v.diverge("webhook %s carries the event id %s", w.id, w.eventID)
		case !ok:
			v.diverge("webhook %s (%s of %s) has no event in the log", w.id, w.kind, w.session)
		case e.kind != w.kind || e.session != w.session || e.application != w.inbox:
			v.diverge("webhook %s says %s of %s to %s, the log %s of %s of %s", w.id, w.kind, w.session, w.inbox, e.kind, e.session, e.application)
		case !w.signed:
			v.diverge("webhook %s has no valid signature", w.id)
		}
		k := [2]string{w.session, w.kind}
		if other, again := ids[k]; again && other != w.id && w.kind != kindPartly {
			v.double("%s of %s was sent with the ids %s and %s", w.kind, w.session, other, w.id)
		}
		ids[k] = w.id
		t := byID[w.id]
		if t == nil {
			t = &received{body: w.body}
			byID[w.id] = t
		}
		if t.body != w.body {
			v.diverge("webhook %s was sent with different bodies", w.id)
		}
		if w.accepted {
			t.accepted++
		}
	}
	for _, e := range l.all {
		if !slices.Contains(harness.WebhookKinds, e.kind) {
			continue
		}
		if t := byID[e.id]; t == nil || t.accepted == 0 {
			v.lose("webhook %s (%s of %s) was never accepted", e.id, e.kind, e.session)
		}
	}
	v.count("webhooks expected", expected)
	v.count("  calls that arrived", calls)
}

// confirmations checks that the ERP of every completed session accepted one confirmation of
// each due, by its own transaction_id, and that no more was paid of a due than was owed. Staff may withdraw the confirmation of a payment that was given back
// before its ERP accepted it.
func (v *verdict) confirmations(h history, l *log) {
	type confirmed struct {
		event
		due
	}
	expected := map[string]confirmed{} // by transaction_id
	for _, e := range l.all {
		if e.kind != kindCompleted {
			continue
		}
		for _, d := range e.dues {
			if other, again := expected[d.transaction]; again {
				v.double("%s and %s have the transaction %s", other.session, e.session, d.transaction)
			}
			expected[d.transaction] = confirmed{e, d}
		}
	}
	accepted := map[string]bool{}
	dues, paid := map[string]string{}, map[string]int64{}
	for _, c := range h.confirmed {
		e, ok := expected[c.transaction]
		switch {
		case !ok:
			v.diverge("the ERP of %s accepted %s, which belongs to no completed session", c.tenant, c.transaction)
		case accepted[c.transaction] || c.accepted > 1:
			v.double("transaction %s was accepted more than once", c.transaction)
		case c.accepted < 1:
			v.lose("transaction %s was never accepted", c.transaction)
		case e.tenant != c.tenant || e.ref != c.dueRef || e.amount != c.amount || e.reference != c.reference:
			v.diverge("the ERP of %s accepted %+v, the log has %+v", c.tenant, c, e)
		}
		accepted[c.transaction] = true
		// Carts may pay a due in parts.
		paid[c.dueRef] += c.amount
		other, again := dues[c.dueRef]
		owed, parts := h.owed[c.dueRef]
		switch {
		case parts && paid[c.dueRef] > owed:
			v.double("%d of %d were paid of the due %s, lastly as %s", paid[c.dueRef], owed, c.dueRef, c.transaction)
		case !parts && again && other != c.transaction:
			v.double("due %s was confirmed as %s and as %s", c.dueRef, other, c.transaction)
		}
		dues[c.dueRef] = c.transaction
	}
	withdrawn := 0
	for id, e := range expected {
		switch {
		case accepted[id]:
		case len(l.of(e.session, kindRecorded)) > 0 && l.returns(e.session, id):
			withdrawn++
		default:
			v.lose("the ERP never accepted %s (transaction %s)", e.session, id)
		}
	}
	v.count("ERP confirmations expected", len(expected))
	v.count("  accepted", len(accepted))
	v.count("  withdrawn, the payment was given back", withdrawn)
}

// stores checks that each store has the sessions and the sums of the log.
func (v *verdict) stores(h history, l *log) {
	want := l.sums()
	for _, s := range h.stores {
		for session := range l.sessions {
			if got, ok := s.sessions[session]; !ok {
				v.diverge("%s lacks %s", s.name, session)
			} else if after := l.last(session).after; got != after {
				v.diverge("%s has %s as %+v, the log as %+v", s.name, session, got, after)
			}
		}
		for session := range s.sessions {
			if _, ok := l.sessions[session]; !ok {
				v.diverge("%s has %s, which is not in the log", s.name, session)
			}
		}
		keys := map[sumKey]bool{}
		for k := range want {
			keys[k] = true
		}
		for k := range s.sums {
			keys[k] = true
		}
		for k := range keys {
			if s.sums[k] != want[k] {
				v.diverge("%s adds up %s %s to %v, the log to %v", s.name, k.status, k.currency, s.sums[k], want[k])
			}
		}
		v.count("sessions in "+s.name, len(s.sessions))
	}
}

// report renders the verdict as text.
func (v *verdict) report(title string, more []row, commands, kills int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", title)
	for _, r := range slices.Concat(more, v.table) {
		fmt.Fprintf(&b, "  %-42s %10d\n", r.what, r.count)
	}
	fmt.Fprintf(&b, "  %-12s %-5s %10s %14s %12s %14s\n", "status", "", "sessions", "amount", "fee", "total")
	keys := slices.SortedFunc(maps.Keys(v.sums), func(a, b sumKey) int {
		return cmp.Or(cmp.Compare(a.status, b.status), cmp.Compare(a.currency, b.currency))
	})
	for _, k := range keys {
		s := v.sums[k]
		fmt.Fprintf(&b, "  %-12s %-5s %10d %14d %12d %14d\n", k.status, k.currency, s.sessions, s.amount, s.fee, s.total)
	}
	for _, f := range v.findings {
		fmt.Fprintf(&b, "  %s\n", f)
	}
	if n := v.lost + v.doubled + v.gaps + v.diverged + v.blocked + v.untold - len(v.findings); n > 0 {
		fmt.Fprintf(&b, "  … and %d more\n", n)
	}
	fmt.Fprintf(&b, "%s\n", v.carts)
	fmt.Fprintf(&b, "lost=%d doubled=%d gaps=%d diverged=%d blocked=%d untold=%d commands=%d kills=%d\n", v.lost, v.doubled, v.gaps, v.diverged, v.blocked, v.untold, commands, kills)
	return b.String()
}
