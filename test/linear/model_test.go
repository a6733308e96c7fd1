package linear_test

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
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
//
// Other histories are about carts: portal sessions of several dues of one subject, which takes
// the place of the order. A session takes all its dues or none, and each due is free again
// with its own acceptance.
//
//	create(key)    a due of the cart in a session that holds it: 409 citizen.due_in_payment,
//	               and nothing changes. With replace, an open session whose operator was not
//	               asked does not hold its dues: it is cancelled, with all of them
//	look           the state of every due at one moment: payable if no session holds it
//	payments(who)  exactly the completed sessions of a citizen
//	changed(key)   an unanswered creation found another outstanding amount than its citizen had
//	               seen: 409 citizen.due_changed
//
// The ERP is asked before the decision. A cart is therefore also refused when its due was
// accepted between the two, as at the moment when the ERP was asked.

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
	// Of carts alone.
	actionLook     action = "look"
	actionPayments action = "payments"
	actionChanged  action = "changed"
	// actionEnd is the mark of the end of a history.
	actionEnd action = "end"
)

// dueSet is a set of dues of a subject, a bit for each.
type dueSet uint8

// The states of a due that look shows.
const (
	duePayable   = "payable"
	dueInPayment = "in_payment"
	dueRecording = "recording"
)

// The refusals of carts.
const (
	refusedInPayment = "citizen.due_in_payment"
	refusedChanged   = "citizen.due_changed"
)

// request is the input of an operation.
type request struct {
	do      action
	order   string
	due     bool   // order is a due, which the orders of several keys pay
	amount  int64  // of a creation, or of the list of a key's order; identifies the key
	session string // of get, cancel and pay: as sighting.session
	// Of carts. owner is the citizen of a key, from 1, and of payments.
	owner   int
	items   dueSet // of a creation and of accept
	replace bool
}

// reply is the output of an operation. The zero value means no answer.
type reply struct {
	definite bool
	code     string     // of a refusal, in the contract's spelling
	replayed bool       // Idempotent-Replayed
	sessions []sighting // one; any number for a list, in any order
	dues     []string   // the states that look shows
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
	// Of dues: the operator was asked, and the payment decided.
	asked, paid bool
	// The dues of the session, and those whose payment the ERP has accepted.
	items, accepted dueSet
	owner           int
}

// holds returns the dues that the session keeps others from paying.
func (d decided) holds() dueSet {
	switch {
	case d.refused != "":
		return 0
	case d.undecided():
		return d.items
	case d.status == "completed":
		return d.items &^ d.accepted
	}
	return 0
}

// undecided reports whether the session may still be paid, or has late money.
func (d decided) undecided() bool {
	return d.refused == "" && (d.status == "open" || d.late || d.asked && !d.paid)
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
			before, answer := state.(orderState), output.(reply)
			switch {
			case input.(request).do == actionEnd:
				return true, append(slices.Clone(before), decided{amount: math.MaxInt64})
			case before.ended():
				return !answer.definite, before
			}
			ok, after := before.step(input.(request), answer)
			return ok && (answer.definite || !slices.Equal(before, after)), after
		},
		Equal: func(a, b any) bool { return slices.Equal(a.(orderState), b.(orderState)) },
		Hash: func(state any) uint64 {
			h := fnv.New64a()
			for _, d := range state.(orderState) {
				_, _ = fmt.Fprint(h, d.amount, d.refused, d.session, d.status, d.late, d.asked, d.paid, d.items, d.accepted, d.owner, ";")
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
	for i, ops := range out {
		out[i] = marked(ops)
	}
	return out
}

// marked adds the mark of the end to the history of an order. Requests without an answer
// return after it.
func marked(ops []porcupine.Operation) []porcupine.Operation {
	var end int64
	for _, op := range ops {
		end = max(end, op.Call)
		if op.Output.(reply).definite {
			end = max(end, op.Return)
		}
	}
	last := 0
	for i, op := range ops {
		last = max(last, op.ClientId)
		if !op.Output.(reply).definite {
			ops[i].Return = end + 3
		}
	}
	return append(ops, porcupine.Operation{
		ClientId: last + 1, Input: request{do: actionEnd, order: ops[0].Input.(request).order}, Call: end + 1, Output: reply{definite: true}, Return: end + 2,
	})
}

// ended reports whether the mark of the end has passed.
func (o orderState) ended() bool { return len(o) > 0 && o[len(o)-1].amount == math.MaxInt64 }

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
		return true, o.set(q.session, func(d *decided) {
			if d.status == "completed" {
				d.accepted |= max(q.items, 1)
			}
		})
	case actionLook:
		return !a.definite || o.look(a.dues), o
	case actionPayments:
		return o.payments(q, a)
	case actionChanged:
		return true, o.changed(q)
	case actionEnd: // the model itself
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
		case q.owner > 0:
			first, o = o.cart(q, a)
		case q.due && slices.ContainsFunc(o, func(d decided) bool { return d.holds() != 0 }):
			first.refused = "checkout.due_in_payment"
		case q.due:
			first.status, first.items = "open", 1
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
	// The portal does not say of a refusal that it is an earlier one.
	if a.code != o[i].refused || a.replayed != replayed && (q.owner == 0 || a.code == "") {
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

// cart returns the decision about a new cart, and the state without what it replaces.
func (o orderState) cart(q request, a reply) (decided, orderState) {
	first := decided{amount: q.amount, owner: q.owner}
	if a.code == refusedChanged && o.isPaid(q.items) {
		first.refused = refusedChanged
		return first, o
	}
	free := o
	for i, d := range o {
		switch {
		case d.holds()&q.items == 0:
		case q.replace && d.status == "open" && !d.asked:
			if &free[0] == &o[0] {
				free = slices.Clone(o)
			}
			free[i].status = "cancelled"
		default:
			first.refused = refusedInPayment
			return first, o
		}
	}
	first.status, first.items = "open", q.items
	return first, free
}

// isPaid reports whether one of the dues was ever paid.
func (o orderState) isPaid(items dueSet) bool {
	return slices.ContainsFunc(o, func(d decided) bool { return d.status == "completed" && d.items&items != 0 })
}

// changed refuses a cart whose creation nobody has answered.
func (o orderState) changed(q request) orderState {
	i, known := o.find(q.amount)
	if known || !o.isPaid(q.items) {
		return o
	}
	return slices.Insert(slices.Clone(o), i, decided{amount: q.amount, owner: q.owner, refused: refusedChanged})
}

// look reports whether the dues can be shown in these states. A due that was paid may be
// shown as recording until the ERP's answer is younger than its acceptance.
func (o orderState) look(dues []string) bool {
	for i, state := range dues {
		of := dueSet(1) << i
		var held, undecided bool
		for _, d := range o {
			held = held || d.holds()&of != 0
			undecided = undecided || d.undecided() && d.items&of != 0
		}
		switch {
		case state == duePayable && !held:
		case state == dueInPayment && undecided:
		case state == dueRecording && o.isPaid(of):
		default:
			return false
		}
	}
	return true
}

// payments compares the payments of a citizen.
func (o orderState) payments(q request, a reply) (bool, orderState) {
	if !a.definite {
		return true, o
	}
	n := 0
	for _, d := range o {
		if d.owner == q.owner && d.status == "completed" {
			n++
		}
	}
	if a.code != "" || n != len(a.sessions) {
		return false, o
	}
	for i, s := range a.sessions {
		if slices.ContainsFunc(a.sessions[:i], func(e sighting) bool { return e.amount == s.amount }) {
			return false, o
		}
		var ok bool
		if ok, o = o.shows(s); !ok {
			return false, o
		}
	}
	return true, o
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
		if q.owner > 0 {
			return fmt.Sprintf("create key %d of dues %b, replace %t", q.amount, q.items, q.replace)
		}
		return fmt.Sprintf("create key %d", q.amount)
	case actionList:
		return "list"
	case actionPayments:
		return fmt.Sprintf("payments of citizen %d", q.owner)
	case actionChanged:
		return fmt.Sprintf("changed key %d", q.amount)
	case actionLook, actionEnd:
		return string(q.do)
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
	if len(a.dues) > 0 {
		fmt.Fprintf(&b, " %v", a.dues)
	}
	if a.replayed {
		b.WriteString(" again")
	}
	return b.String()
}

func (o orderState) String() string {
	var b strings.Builder
	for _, d := range o {
		fmt.Fprintf(&b, "[key %d %s%s %s", d.amount, d.refused, cmp.Or(d.session, "id unknown"), d.status)
		if d.owner > 0 {
			fmt.Fprintf(&b, " dues %b accepted %b", d.items, d.accepted)
		}
		b.WriteString("] ")
	}
	return strings.TrimSpace(b.String())
}
