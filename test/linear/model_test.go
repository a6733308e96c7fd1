package linear_test

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// The model of linearizability describes what integrators see of one order of one
// application if every request takes effect at one moment between its call and its return.
//
// The state of an order holds each Idempotency-Key with its first answer, a session or a
// refusal, and the status of each session. Every key of a history has an amount of its
// own, so that the amount of a session identifies its creation.
//
//	create(key)   key decided before: that answer again, marked as a replay
//	              an order with a completed session: 409 checkout.order_paid
//	              an order with an open session: 409 checkout.order_open
//	              an order with late money: 409 checkout.order_under_review
//	              else 201, a new session, open
//	get(id)       200 with the present session; 404 if it does not exist
//	list(order)   exactly the present sessions of the order
//	cancel(id)    an open session: 200, and it is cancelled from then on
//	              else 409 checkout.session_ended
//	pay(id)       the payer has approved: an open session is completed; an ended
//	              session does not change, and its order has late money
//
// Only cancel and pay change a session, and only an open one. The model therefore rejects
// these histories: a read that misses what an earlier answer has shown (stale), an answered
// creation that is in no list (lost), two open sessions of one order, a session that
// changes after its end, a key that is answered with two sessions or decided twice, and a
// session that was not requested or differs from its request.
//
// A request without a definite answer (no answer or a 5xx) may be carried out at any later
// time or never. Its return is therefore the end of the history. The id of a session that
// such a creation made is learnt from the first answer that shows it. A payment is
// confirmed on the page and made later, when the operator's answer arrives. So pay is
// always such a request, from the confirmation on.
//
// Orders are independent, because no two orders share a key. A history is checked order by
// order.
//
// Some histories are about a due of the agency's ERP, which many orders want to pay. In the
// model such a due takes the place of the order: each key has an order of its own, and
//
//	create(key)    a due with a session that is open, undecided, late, or completed without an
//	               acceptance: 409 checkout.due_in_payment
//	list(key)      exactly the present session of the key's order
//	ask(id)        the payment was confirmed: the operator of an open session is asked. Without
//	               it, pay does nothing. A session that ends after it is undecided until pay
//	accept(id)     the ERP has accepted the payment of a completed session
//
// Ask and accept happen at some time after the confirmation, or never, as pay does.

// action is the kind of a request.
type action string

const (
	actionCreate action = "create"
	actionGet    action = "get"
	actionList   action = "list"
	actionCancel action = "cancel"
	actionPay    action = "pay"
	actionAsk    action = "ask"
	actionAccept action = "accept"
)

// request is the input of an operation.
type request struct {
	do      action
	order   string
	due     bool   // order is a due, which the orders of several keys pay
	amount  int64  // of a creation, or of the list of a key's order; identifies the key
	session string // of get, cancel and pay: as sighting.session
}

// reply is the output of an operation. The zero value means no answer.
type reply struct {
	definite bool
	code     string     // of a refusal, in the contract's spelling
	replayed bool       // Idempotent-Replayed
	sessions []sighting // one; any number for a list, in any order
}

// sighting is a session as an answer shows it.
type sighting struct {
	amount  int64
	session string // id and payment_ref
	status  string // as answered, also if the contract does not know it
}

// decided is a key with its first answer.
type decided struct {
	amount  int64
	refused string // code of a refusal; empty for a session
	session string // empty until an answer has shown it
	status  string
	late    bool // the money arrived after the session's end
	// Of a due: the operator was asked, the payment decided, and accepted by the ERP.
	asked, paid, accepted bool
}

// holds reports whether the session keeps other orders from paying its due.
func (d decided) holds() bool {
	return d.refused == "" && (d.status == "open" || d.late || d.status == "completed" && !d.accepted || d.asked && !d.paid)
}

// orderState is the state of the model: all decided keys, ordered by amount. It is never
// changed in place.
type orderState []decided

// linearizable is the model for porcupine.
func linearizable() porcupine.Model {
	return porcupine.Model{
		Partition: byOrder,
		Init:      func() any { return orderState(nil) },
		Step: func(state, input, output any) (bool, any) {
			return state.(orderState).step(input.(request), output.(reply))
		},
		Equal: func(a, b any) bool { return slices.Equal(a.(orderState), b.(orderState)) },
		Hash: func(state any) uint64 {
			h := fnv.New64a()
			for _, d := range state.(orderState) {
				_, _ = fmt.Fprint(h, d.amount, d.refused, d.session, d.status, d.late, d.asked, d.paid, d.accepted, ";")
			}
			return h.Sum64()
		},
		DescribeOperation: func(input, output any) string { return input.(request).String() + " → " + output.(reply).String() },
		DescribeState:     func(state any) string { return state.(orderState).String() },
	}
}

func byOrder(history []porcupine.Operation) [][]porcupine.Operation {
	at := map[string]int{}
	var out [][]porcupine.Operation
	for _, op := range history {
		order := op.Input.(request).order
		i, ok := at[order]
		if !ok {
			i = len(out)
			at[order] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], op)
	}
	return out
}

// step reports whether the request can have that answer now, and returns the next state.
func (o orderState) step(q request, a reply) (bool, orderState) {
	switch q.do {
	case actionCreate:
		return o.create(q, a)
	case actionGet:
		return o.get(q, a)
	case actionList:
		return o.list(q, a)
	case actionCancel:
		return o.cancel(q, a)
	case actionPay:
		return true, o.pay(q)
	case actionAsk:
		return true, o.set(q.session, func(d *decided) { d.asked = d.asked || d.status == "open" })
	case actionAccept:
		return true, o.set(q.session, func(d *decided) { d.accepted = d.accepted || d.status == "completed" })
	}
	return false, o
}

// set returns the state after a change of a session.
func (o orderState) set(session string, change func(*decided)) orderState {
	i := slices.IndexFunc(o, func(d decided) bool { return d.session == session && session != "" })
	if i < 0 {
		return o
	}
	o = slices.Clone(o)
	change(&o[i])
	return o
}

func (o orderState) create(q request, a reply) (bool, orderState) {
	i, replayed := o.find(q.amount)
	if !replayed {
		first := decided{amount: q.amount}
		switch {
		case q.due && slices.ContainsFunc(o, decided.holds):
			first.refused = "checkout.due_in_payment"
		case q.due:
			first.status = "open"
		case o.has("completed"):
			first.refused = "checkout.order_paid"
		case o.has("open"):
			first.refused = "checkout.order_open"
		case slices.ContainsFunc(o, func(d decided) bool { return d.late }):
			first.refused = "checkout.order_under_review"
		default:
			first.status = "open"
		}
		o = slices.Insert(slices.Clone(o), i, first)
	}
	if !a.definite {
		return true, o
	}
	if a.replayed != replayed || a.code != o[i].refused {
		return false, o
	}
	if a.code != "" {
		return true, o
	}
	// A replay repeats the first answer, whatever the session's present status.
	if len(a.sessions) != 1 || a.sessions[0].amount != q.amount || a.sessions[0].status != "open" {
		return false, o
	}
	return o.learn(a.sessions[0])
}

func (o orderState) get(q request, a reply) (bool, orderState) {
	switch {
	case !a.definite:
		return true, o
	case a.code != "":
		return a.code == notFound && !o.knows(q.session), o
	case len(a.sessions) != 1 || a.sessions[0].session != q.session:
		return false, o
	}
	return o.shows(a.sessions[0])
}

func (o orderState) list(q request, a reply) (bool, orderState) {
	if !a.definite {
		return true, o
	}
	n := 0
	for _, d := range o {
		if d.refused == "" && (!q.due || d.amount == q.amount) {
			n++
		}
	}
	if a.code != "" || n != len(a.sessions) {
		return false, o
	}
	// The numbers are equal. Each answered session must be a known one, and no two the same.
	for i, s := range a.sessions {
		if q.due && s.amount != q.amount || slices.ContainsFunc(a.sessions[:i], func(e sighting) bool { return e.amount == s.amount }) {
			return false, o
		}
		var ok bool
		if ok, o = o.shows(s); !ok {
			return false, o
		}
	}
	return true, o
}

func (o orderState) cancel(q request, a reply) (bool, orderState) {
	after := o.end(q.session, "cancelled")
	if !a.definite {
		return true, after
	}
	open := !slices.Equal(o, after)
	switch a.code {
	case "":
		return open && len(a.sessions) == 1 && a.sessions[0].session == q.session && after.is(a.sessions[0]), after
	case "checkout.session_ended":
		return !open && o.knows(q.session), o
	case notFound:
		return !o.knows(q.session), o
	}
	return false, o
}

const notFound = "checkout.session_not_found"

// find returns the index of a key, or where it would be inserted.
func (o orderState) find(amount int64) (int, bool) {
	return slices.BinarySearchFunc(o, amount, func(d decided, amount int64) int { return cmp.Compare(d.amount, amount) })
}

func (o orderState) has(status string) bool {
	return slices.ContainsFunc(o, func(d decided) bool { return d.status == status })
}

func (o orderState) knows(session string) bool {
	return slices.ContainsFunc(o, func(d decided) bool { return d.session == session })
}

// end returns the state after the end of an open session.
func (o orderState) end(session, status string) orderState {
	i := slices.IndexFunc(o, func(d decided) bool { return d.session == session && d.status == "open" })
	if i < 0 {
		return o
	}
	o = slices.Clone(o)
	o[i].status = status
	return o
}

// pay returns the state after an approval.
func (o orderState) pay(q request) orderState {
	if q.due {
		return o.set(q.session, func(d *decided) {
			if !d.asked || d.paid {
				return
			}
			d.paid, d.late = true, d.status != "open"
			if d.status == "open" {
				d.status = "completed"
			}
		})
	}
	session := q.session
	i := slices.IndexFunc(o, func(d decided) bool { return d.session == session && session != "" })
	if i < 0 || o[i].status == "open" {
		return o.end(session, "completed")
	}
	if o[i].status != "completed" {
		o = slices.Clone(o)
		o[i].late = true
	}
	return o
}

// learn reports whether s can be the session of its creation: the known session or, if
// none is known yet, one that no other creation has.
func (o orderState) learn(s sighting) (bool, orderState) {
	i, ok := o.find(s.amount)
	switch {
	case !ok || o[i].refused != "" || s.session == "":
		return false, o
	case o[i].session == s.session:
		return true, o
	case o[i].session != "" || o.knows(s.session):
		return false, o
	}
	o = slices.Clone(o)
	o[i].session = s.session
	return true, o
}

// is reports whether s shows a known session with its present status.
func (o orderState) is(s sighting) bool {
	i, ok := o.find(s.amount)
	return ok && o[i].session == s.session && o[i].status == s.status
}

// shows reports whether s shows a session with its present status, perhaps for the first
// time.
func (o orderState) shows(s sighting) (bool, orderState) {
	ok, o := o.learn(s)
	return ok && o.is(s), o
}

// ---- texts in the picture of a violation ----

func (q request) String() string {
	switch q.do {
	case actionCreate:
		return fmt.Sprintf("create key %d", q.amount)
	case actionList:
		return "list"
	case actionGet, actionCancel, actionPay, actionAsk, actionAccept:
	}
	return string(q.do) + " " + q.session
}

func (a reply) String() string {
	if !a.definite {
		return "?"
	}
	var b strings.Builder
	b.WriteString(cmp.Or(a.code, "ok"))
	for _, s := range a.sessions {
		fmt.Fprintf(&b, " [key %d %s %s]", s.amount, s.session, s.status)
	}
	if a.replayed {
		b.WriteString(" again")
	}
	return b.String()
}

func (o orderState) String() string {
	var b strings.Builder
	for _, d := range o {
		fmt.Fprintf(&b, "[key %d %s%s %s] ", d.amount, d.refused, cmp.Or(d.session, "id unknown"), d.status)
	}
	return strings.TrimSpace(b.String())
}
