package linear_test

import (
	"testing"

	"github.com/anishathalye/porcupine"
)

// Requests and replies of the histories.

func create(amount int64) request { return request{do: actionCreate, order: "o", amount: amount} }

func get(session string) request { return request{do: actionGet, order: "o", session: session} }

func cancel(session string) request { return request{do: actionCancel, order: "o", session: session} }

func pay(session string) request { return request{do: actionPay, order: "o", session: session} }

func ask(session string) request { return request{do: actionAsk, order: "o", session: session} }

func accept(session string) request { return request{do: actionAccept, order: "o", session: session} }

func ofDue(q request) request { q.due = true; return q }

func cart(amount int64, items dueSet) request {
	return request{do: actionCreate, order: "o", due: true, amount: amount, owner: 1, items: items}
}

func replacing(q request) request { q.replace = true; return q }

func acceptance(session string, item dueSet) request {
	return request{do: actionAccept, order: "o", due: true, session: session, items: item}
}

var look = request{do: actionLook, order: "o", due: true, owner: 1}

func dues(states ...string) reply { return reply{definite: true, dues: states} }

var payments = request{do: actionPayments, order: "o", due: true, owner: 1}

var list = request{do: actionList, order: "o"}

func shows(sessions ...sighting) reply { return reply{definite: true, sessions: sessions} }

func refused(code string) reply { return reply{definite: true, code: code} }

func again(a reply) reply { a.replayed = true; return a }

var none = reply{}

func sessionA(status string) sighting { return sighting{1, "chs_a", status} }

func sessionB(status string) sighting { return sighting{2, "chs_b", status} }

type op struct {
	call, end int64 // an end of 0 means no answer
	in        request
	out       reply
}

// histories are sequences of requests, and whether the model allows them.
var histories = map[string]struct {
	ok  bool
	ops []op
}{
	"a life": {true, []op{
		{1, 2, create(1), shows(sessionA("open"))},
		{3, 4, create(1), again(shows(sessionA("open")))},
		{3, 4, create(2), refused("checkout.order_open")},
		{5, 6, cancel("chs_a"), shows(sessionA("cancelled"))},
		{7, 8, create(2), again(refused("checkout.order_open"))},
		{7, 8, create(3), shows(sighting{3, "chs_c", "open"})},
		{9, 0, pay("chs_c"), none},
		{10, 11, list, shows(sighting{3, "chs_c", "open"}, sessionA("cancelled"))},
		{12, 13, list, shows(sighting{3, "chs_c", "completed"}, sessionA("cancelled"))},
		{14, 15, create(4), refused("checkout.order_paid")},
		{14, 15, cancel("chs_c"), refused("checkout.session_ended")},
		{16, 17, create(1), again(shows(sessionA("open")))},
	}},
	"two creations at once": {true, []op{
		{1, 9, create(1), refused("checkout.order_open")},
		{1, 9, create(2), shows(sessionB("open"))},
	}},
	"a read beside a cancellation sees either": {true, []op{
		{1, 2, create(1), shows(sessionA("open"))},
		{3, 9, cancel("chs_a"), shows(sessionA("cancelled"))},
		{4, 5, get("chs_a"), shows(sessionA("open"))},
		{6, 7, get("chs_a"), shows(sessionA("cancelled"))},
	}},
	"an unanswered creation happens later": {true, []op{
		{1, 0, create(1), none},
		{2, 3, list, shows()},
		{4, 5, list, shows(sessionA("open"))},
		{6, 7, create(1), again(shows(sessionA("open")))},
	}},
	"an unanswered creation never happens": {true, []op{
		{1, 0, create(1), none},
		{2, 3, list, shows()},
		{4, 5, create(2), shows(sessionB("open"))},
		{6, 7, list, shows(sessionB("open"))},
	}},
	"an unanswered cancellation happens later": {true, []op{
		{1, 2, create(1), shows(sessionA("open"))},
		{3, 0, cancel("chs_a"), none},
		{4, 5, get("chs_a"), shows(sessionA("open"))},
		{6, 7, create(2), shows(sessionB("open"))},
	}},
	"a payment after a cancellation changes no session": {true, []op{
		{1, 2, create(1), shows(sessionA("open"))},
		{3, 0, pay("chs_a"), none},
		{4, 5, cancel("chs_a"), shows(sessionA("cancelled"))},
		{6, 7, create(2), shows(sessionB("open"))},
		{8, 9, get("chs_a"), shows(sessionA("cancelled"))},
	}},
	"late money keeps the order from another session": {true, []op{
		{1, 2, create(1), shows(sessionA("open"))},
		{3, 0, pay("chs_a"), none},
		{4, 5, cancel("chs_a"), shows(sessionA("cancelled"))},
		{6, 7, create(2), refused("checkout.order_under_review")},
		{8, 9, list, shows(sessionA("cancelled"))},
	}},
	"under review without late money": {false, []op{
		{1, 2, create(1), shows(sessionA("open"))},
		{4, 5, cancel("chs_a"), shows(sessionA("cancelled"))},
		{6, 7, create(2), refused("checkout.order_under_review")},
	}},
	"another session although late money was told": {false, []op{
		{1, 2, create(1), shows(sessionA("open"))},
		{3, 0, pay("chs_a"), none},
		{4, 5, cancel("chs_a"), shows(sessionA("cancelled"))},
		{6, 7, create(2), refused("checkout.order_under_review")},
		{8, 9, create(3), shows(sessionB("open"))},
	}},
	"a due is paid twice, the second time after the acceptance": {true, []op{
		{1, 2, ofDue(create(1)), shows(sessionA("open"))},
		{3, 4, ofDue(create(2)), refused("checkout.due_in_payment")},
		{5, 0, ofDue(ask("chs_a")), none},
		{5, 0, ofDue(pay("chs_a")), none},
		{5, 0, ofDue(accept("chs_a")), none},
		{6, 7, ofDue(get("chs_a")), shows(sessionA("completed"))},
		{8, 9, ofDue(create(3)), refused("checkout.due_in_payment")},
		{10, 11, ofDue(create(4)), shows(sighting{4, "chs_d", "open"})},
	}},
	"a due is paid again before the acceptance": {false, []op{
		{1, 2, ofDue(create(1)), shows(sessionA("open"))},
		{5, 0, ofDue(ask("chs_a")), none},
		{5, 0, ofDue(pay("chs_a")), none},
		{6, 7, ofDue(get("chs_a")), shows(sessionA("completed"))},
		{8, 9, ofDue(create(2)), shows(sessionB("open"))},
	}},
	"two open sessions of a due": {false, []op{
		{1, 2, ofDue(create(1)), shows(sessionA("open"))},
		{3, 4, ofDue(create(2)), shows(sessionB("open"))},
	}},
	"a due whose operator was asked before the end of the session": {true, []op{
		{1, 2, ofDue(create(1)), shows(sessionA("open"))},
		{3, 0, ofDue(ask("chs_a")), none},
		{4, 5, ofDue(cancel("chs_a")), shows(sessionA("cancelled"))},
		{6, 7, ofDue(create(2)), refused("checkout.due_in_payment")},
	}},
	"a due that is free is refused": {false, []op{
		{1, 2, ofDue(create(1)), shows(sessionA("open"))},
		{4, 5, ofDue(cancel("chs_a")), shows(sessionA("cancelled"))},
		{6, 7, ofDue(create(2)), refused("checkout.due_in_payment")},
	}},
	"a cart takes all its dues": {true, []op{
		{1, 2, cart(1, 0b011), shows(sessionA("open"))},
		{3, 4, look, dues(dueInPayment, dueInPayment, duePayable)},
		{5, 6, cart(2, 0b110), refused(refusedInPayment)},
		{5, 6, cart(3, 0b001), refused(refusedInPayment)},
		{7, 8, cart(4, 0b100), shows(sighting{4, "chs_d", "open"})},
		{9, 10, look, dues(dueInPayment, dueInPayment, dueInPayment)},
		{11, 12, cart(2, 0b110), refused(refusedInPayment)},
	}},
	"a cart has one of its dues, another cart the other": {false, []op{
		{1, 2, cart(1, 0b011), shows(sessionA("open"))},
		{3, 4, cart(2, 0b110), shows(sessionB("open"))},
	}},
	"a refused cart has one of its dues": {false, []op{
		{1, 2, cart(1, 0b011), shows(sessionA("open"))},
		{3, 4, cart(2, 0b110), refused(refusedInPayment)},
		{5, 6, look, dues(dueInPayment, dueInPayment, dueInPayment)},
	}},
	"a cart that took one of its dues": {false, []op{
		{1, 2, cart(1, 0b011), shows(sessionA("open"))},
		{3, 4, look, dues(dueInPayment, duePayable, duePayable)},
	}},
	"a cart is refused though its dues are free": {false, []op{
		{1, 2, cart(1, 0b011), shows(sessionA("open"))},
		{3, 4, cart(2, 0b100), refused(refusedInPayment)},
	}},
	"two carts at once, one has both dues": {true, []op{
		{1, 9, cart(1, 0b011), refused(refusedInPayment)},
		{1, 9, cart(2, 0b110), shows(sessionB("open"))},
		{10, 11, look, dues(duePayable, dueInPayment, dueInPayment)},
	}},
	"a cart is replaced with all its dues": {true, []op{
		{1, 2, cart(1, 0b011), shows(sessionA("open"))},
		{3, 4, replacing(cart(2, 0b110)), shows(sessionB("open"))},
		{5, 6, look, dues(duePayable, dueInPayment, dueInPayment)},
		{7, 8, cart(1, 0b011), again(shows(sessionA("open")))},
	}},
	"a replaced cart keeps a due": {false, []op{
		{1, 2, cart(1, 0b011), shows(sessionA("open"))},
		{3, 4, replacing(cart(2, 0b110)), shows(sessionB("open"))},
		{5, 6, look, dues(dueInPayment, dueInPayment, dueInPayment)},
	}},
	"a cart whose operator was asked is not replaced": {true, []op{
		{1, 2, cart(1, 0b011), shows(sessionA("open"))},
		{3, 0, ofDue(ask("chs_a")), none},
		{4, 5, replacing(cart(2, 0b110)), refused(refusedInPayment)},
	}},
	"a cart that nobody pays is not replaced": {false, []op{
		{1, 2, cart(1, 0b011), shows(sessionA("open"))},
		{4, 5, replacing(cart(2, 0b110)), refused(refusedInPayment)},
	}},
	"a refused cart replaces another": {false, []op{
		{1, 2, cart(1, 0b001), shows(sessionA("open"))},
		{1, 2, cart(2, 0b010), shows(sessionB("open"))},
		{3, 0, ofDue(ask("chs_b")), none},
		{4, 5, replacing(cart(3, 0b011)), refused(refusedInPayment)},
		{6, 7, look, dues(duePayable, dueInPayment, duePayable)},
	}},
	"a paid cart is replaced": {false, []op{
		{1, 2, cart(1, 0b011), shows(sessionA("open"))},
		{3, 0, ofDue(ask("chs_a")), none},
		{3, 0, ofDue(pay("chs_a")), none},
		{4, 5, payments, shows(sessionA("completed"))},
		{6, 7, replacing(cart(2, 0b110)), shows(sessionB("open"))},
	}},
	"each due of a cart is free with its own acceptance": {true, []op{
		{1, 2, cart(1, 0b011), shows(sessionA("open"))},
		{3, 0, ofDue(ask("chs_a")), none},
		{3, 0, ofDue(pay("chs_a")), none},
		{3, 0, acceptance("chs_a", 0b010), none},
		{4, 5, look, dues(dueRecording, dueRecording, duePayable)},
		{6, 7, look, dues(dueRecording, duePayable, duePayable)},
		{8, 9, cart(2, 0b110), shows(sessionB("open"))},
		{8, 9, cart(3, 0b001), refused(refusedInPayment)},
	}},
	"a due is paid again before its acceptance, after that of another": {false, []op{
		{1, 2, cart(1, 0b011), shows(sessionA("open"))},
		{3, 0, ofDue(ask("chs_a")), none},
		{3, 0, ofDue(pay("chs_a")), none},
		{3, 0, acceptance("chs_a", 0b010), none},
		{4, 5, payments, shows(sessionA("completed"))},
		{8, 9, cart(2, 0b111), shows(sessionB("open"))},
	}},
	"a payment is missing": {false, []op{
		{1, 2, cart(1, 0b011), shows(sessionA("open"))},
		{3, 0, ofDue(ask("chs_a")), none},
		{3, 0, ofDue(pay("chs_a")), none},
		{4, 5, payments, shows(sessionA("completed"))},
		{6, 7, payments, shows()},
	}},
	"a due that was paid has changed": {true, []op{
		{1, 2, cart(1, 0b011), shows(sessionA("open"))},
		{3, 0, ofDue(ask("chs_a")), none},
		{3, 0, ofDue(pay("chs_a")), none},
		{8, 9, cart(2, 0b110), refused(refusedChanged)},
		{10, 11, cart(2, 0b110), refused(refusedChanged)},
	}},
	"a due has changed that nobody paid": {false, []op{
		{1, 2, cart(1, 0b001), shows(sessionA("open"))},
		{8, 9, cart(2, 0b110), refused(refusedChanged)},
	}},
	"orders are independent": {true, []op{
		{1, 2, create(1), shows(sessionA("open"))},
		{3, 4, request{do: actionCreate, order: "p", amount: 2}, shows(sessionB("open"))},
		{5, 6, list, shows(sessionA("open"))},
	}},

	"stale read of a creation": {false, []op{
		{1, 2, create(1), shows(sessionA("open"))},
		{3, 4, list, shows()},
	}},
	"stale read of a cancellation": {false, []op{
		{1, 2, create(1), shows(sessionA("open"))},
		{3, 4, cancel("chs_a"), shows(sessionA("cancelled"))},
		{5, 6, get("chs_a"), shows(sessionA("open"))},
	}},
	"two reads beside a payment, the later is older": {false, []op{
		{1, 2, create(1), shows(sessionA("open"))},
		{3, 0, pay("chs_a"), none},
		{4, 5, get("chs_a"), shows(sessionA("completed"))},
		{6, 7, list, shows(sessionA("open"))},
	}},
	"lost creation": {false, []op{
		{1, 2, create(1), shows(sessionA("open"))},
		{3, 4, get("chs_a"), refused(notFound)},
	}},
	"lost creation, found by the next": {false, []op{
		{1, 2, create(1), shows(sessionA("open"))},
		{3, 4, create(2), shows(sessionB("open"))},
	}},
	"creation lost after a replay": {false, []op{
		{1, 0, create(1), none},
		{2, 3, create(1), again(shows(sessionA("open")))},
		{4, 5, list, shows()},
	}},
	"two open sessions": {false, []op{
		{1, 9, create(1), shows(sessionA("open"))},
		{1, 9, create(2), shows(sessionB("open"))},
		{10, 11, list, shows(sessionA("open"), sessionB("open"))},
	}},
	"two open sessions, of unanswered creations": {false, []op{
		{1, 0, create(1), none},
		{1, 0, create(2), none},
		{10, 11, list, shows(sessionA("open"), sessionB("open"))},
	}},
	"resurrection of a cancelled session": {false, []op{
		{1, 2, create(1), shows(sessionA("open"))},
		{3, 4, cancel("chs_a"), shows(sessionA("cancelled"))},
		{5, 0, pay("chs_a"), none},
		{6, 7, get("chs_a"), shows(sessionA("completed"))},
	}},
	"cancelled twice": {false, []op{
		{1, 2, create(1), shows(sessionA("open"))},
		{3, 4, cancel("chs_a"), shows(sessionA("cancelled"))},
		{5, 6, cancel("chs_a"), shows(sessionA("cancelled"))},
	}},
	"cancellation of a paid session": {false, []op{
		{1, 2, create(1), shows(sessionA("open"))},
		{3, 0, pay("chs_a"), none},
		{4, 5, get("chs_a"), shows(sessionA("completed"))},
		{6, 7, cancel("chs_a"), shows(sessionA("cancelled"))},
	}},
	"cancellation refused, though the session stays open": {false, []op{
		{1, 2, create(1), shows(sessionA("open"))},
		{3, 4, cancel("chs_a"), refused("checkout.session_ended")},
		{5, 6, get("chs_a"), shows(sessionA("open"))},
	}},
	"completed without a payment": {false, []op{
		{1, 2, create(1), shows(sessionA("open"))},
		{3, 4, get("chs_a"), shows(sessionA("completed"))},
	}},
	"failed, although no payer of the test refuses": {false, []op{
		{1, 2, create(1), shows(sessionA("open"))},
		{3, 0, pay("chs_a"), none},
		{4, 5, get("chs_a"), shows(sessionA("failed"))},
	}},
	"an order is paid twice": {false, []op{
		{1, 2, create(1), shows(sessionA("open"))},
		{3, 0, pay("chs_a"), none},
		{4, 5, get("chs_a"), shows(sessionA("completed"))},
		{6, 7, create(2), shows(sessionB("open"))},
	}},
	"replay with another session": {false, []op{
		{1, 2, create(1), shows(sessionA("open"))},
		{3, 4, create(1), again(shows(sighting{1, "chs_z", "open"}))},
	}},
	"a key decided twice": {false, []op{
		{1, 2, create(1), shows(sessionA("open"))},
		{3, 4, cancel("chs_a"), shows(sessionA("cancelled"))},
		{5, 6, create(1), shows(sighting{1, "chs_z", "open"})},
	}},
	"a refusal that its replay takes back": {false, []op{
		{1, 2, create(1), shows(sessionA("open"))},
		{3, 4, create(2), refused("checkout.order_open")},
		{5, 6, cancel("chs_a"), shows(sessionA("cancelled"))},
		{7, 8, create(2), again(shows(sessionB("open")))},
	}},
	"a replay of nothing": {false, []op{
		{1, 2, create(1), again(shows(sessionA("open")))},
	}},
	"a session that was not requested": {false, []op{
		{1, 2, list, shows(sessionA("open"))},
	}},
	"a list with a session twice": {false, []op{
		{1, 2, create(1), shows(sessionA("open"))},
		{3, 4, cancel("chs_a"), shows(sessionA("cancelled"))},
		{5, 6, create(2), shows(sessionB("open"))},
		{7, 8, list, shows(sessionB("open"), sessionB("open"))},
	}},
	"one id for two creations": {false, []op{
		{1, 2, create(1), shows(sessionA("open"))},
		{3, 4, cancel("chs_a"), shows(sessionA("cancelled"))},
		{5, 6, create(2), shows(sighting{2, "chs_a", "open"})},
	}},
	"refused by an order that is free": {false, []op{
		{1, 2, create(1), refused("checkout.order_open")},
	}},
}

// The model accepts and rejects the right histories, which are made by hand here.
func TestLinearizabilityModel(t *testing.T) {
	t.Parallel()
	for name, h := range histories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var history []porcupine.Operation
			for i, o := range h.ops {
				if o.end == 0 {
					o.end = 100
				}
				history = append(history, porcupine.Operation{ClientId: i, Input: o.in, Call: o.call, Output: o.out, Return: o.end})
			}
			if got := porcupine.CheckOperations(linearizable(), history); got != h.ok {
				t.Errorf("linearizable: %t, want %t", got, h.ok)
			}
		})
	}
}
