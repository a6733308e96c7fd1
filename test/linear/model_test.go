package linear_test

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// The model of linearizability: what one order of one application looks like to
// integrators when every request happens at one moment between its call and its
// return, and nothing else ever happens.
//
// The state of an order is what has been decided of it: each Idempotency-Key with
// its first answer, which is a session or a refusal, and the status of each
// session. Every key of a history has an amount of its own, so that the amount
// of a session tells which creation made it.
//
//	create(key)   key decided before: that answer again, marked as a replay
//	              an order with a completed session: 409 checkout.order_paid
//	              an order with an open session: 409 checkout.order_open
//	              else 201, a new session, open
//	get(id)       200 with the session as it is; 404 if it does not exist
//	list(order)   exactly the sessions of the order, as they are
//	cancel(id)    an open session: 200, and it is cancelled from then on
//	              else 409 checkout.session_ended
//	pay(id)       the payer has approved: an open session is completed; one that
//	              has ended stays as it is
//
// Nothing but cancel and pay changes a session, and only an open one. So these
// have no explanation, and are violations: a read that does not show what an
// answer before it has shown (stale), a creation that was answered and is in no
// list (lost), two open sessions of one order, a session that changes after its
// end, a key that is answered with another session or decided twice, a session
// that nobody asked for, or that is not what was asked for.
//
// A request without a definite answer (none at all, or a 5xx) may be carried out
// at any later time or never: its return is the end of the history, and whatever
// it did not visibly do it may do after everything else, when nobody looks any
// more. The id of a session that such a creation made is learnt from the first
// answer that shows it. A payment is confirmed at the page and taken later, when
// the operator's word arrives: pay is always such a request, from the moment of
// the confirmation on. Nothing says when it must be taken.
//
// Orders know nothing of one another (keys are never shared between two), so a
// history is checked order by order.

// action is what a client asks for.
type action string

const (
	actionCreate action = "create"
	actionGet    action = "get"
	actionList   action = "list"
	actionCancel action = "cancel"
	actionPay    action = "pay"
)

// request is the input of an operation.
type request struct {
	do      action
	order   string
	amount  int64  // of a creation: stands for its key
	session string // of get, cancel and pay: as sighting.session
}

// reply is the output of an operation. The zero value is none.
type reply struct {
	definite bool
	code     string     // of a refusal, in the contract's spelling
	replayed bool       // Idempotent-Replayed
	sessions []sighting // one, of a list any number in any order
}

// sighting is a session as an answer shows it.
type sighting struct {
	amount  int64
	session string // id and payment_ref
	status  string // what the contract does not know, or contradicts itself, is told as it is
}

// decided is a key that has its answer.
type decided struct {
	amount  int64
	refused string // else there is a session
	session string // empty until an answer has shown it
	status  string
}

// orderState is the state of the model: all that is decided, by amount. It is
// never changed in place.
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
				_, _ = fmt.Fprint(h, d.amount, d.refused, d.session, d.status, ";")
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

// step says whether the request can have that answer now, and what is after it.
func (o orderState) step(q request, a reply) (bool, orderState) {
	switch q.do {
	case actionCreate:
		return o.create(q, a)
	case actionGet:
		return o.get(q, a)
	case actionList:
		return o.list(a)
	case actionCancel:
		return o.cancel(q, a)
	case actionPay:
		return true, o.end(q.session, "completed")
	}
	return false, o
}

func (o orderState) create(q request, a reply) (bool, orderState) {
	i, replayed := o.find(q.amount)
	if !replayed {
		first := decided{amount: q.amount}
		switch {
		case o.has("completed"):
			first.refused = "checkout.order_paid"
		case o.has("open"):
			first.refused = "checkout.order_open"
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
	// A replay is the first answer, whatever became of the session.
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

func (o orderState) list(a reply) (bool, orderState) {
	if !a.definite {
		return true, o
	}
	n := 0
	for _, d := range o {
		if d.refused == "" {
			n++
		}
	}
	if a.code != "" || n != len(a.sessions) {
		return false, o
	}
	// As many, each of them one of ours, and no two the same.
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

// find is where a key is, or would be.
func (o orderState) find(amount int64) (int, bool) {
	return slices.BinarySearchFunc(o, amount, func(d decided, amount int64) int { return cmp.Compare(d.amount, amount) })
}

func (o orderState) has(status string) bool {
	return slices.ContainsFunc(o, func(d decided) bool { return d.status == status })
}

func (o orderState) knows(session string) bool {
	return slices.ContainsFunc(o, func(d decided) bool { return d.session == session })
}

// end is the state after an open session has ended.
func (o orderState) end(session, status string) orderState {
	i := slices.IndexFunc(o, func(d decided) bool { return d.session == session && d.status == "open" })
	if i < 0 {
		return o
	}
	o = slices.Clone(o)
	o[i].status = status
	return o
}

// learn says whether s can be the session of its creation: the one it has always
// been, or if that is not known yet, one that no other creation has.
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

// is says whether s shows a session that is known as it is.
func (o orderState) is(s sighting) bool {
	i, ok := o.find(s.amount)
	return ok && o[i].session == s.session && o[i].status == s.status
}

// shows says whether s is as it is, perhaps for the first time.
func (o orderState) shows(s sighting) (bool, orderState) {
	ok, o := o.learn(s)
	return ok && o.is(s), o
}

// ---- for the picture of a violation ----

func (q request) String() string {
	switch q.do {
	case actionCreate:
		return fmt.Sprintf("create key %d", q.amount)
	case actionList:
		return "list"
	case actionGet, actionCancel, actionPay:
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
