package crash_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"quittance/test/harness"
)

// sound returns a small history without faults: sessions that are paid, paid late,
// refused, cancelled, left open, paid late and honoured, and paid in cash that is given
// back; and payments of a partner: one that was updated and paid, two of one externalNumber
// of which one was collected, one that was answered with 502.
func sound() history {
	var h history
	current := map[string]standing{}
	emit := func(n int, kind, status string) {
		session := fmt.Sprintf("chs_%d", n)
		s := current[session]
		s.sequence++
		s.status, s.currency, s.amount = status, "XAF", int64(1000*n)
		e := event{
			id: fmt.Sprintf("evt_%d_%d", n, s.sequence), kind: kind, session: session, sequence: s.sequence,
			application: "app", tenant: "agency", order: fmt.Sprintf("order-%d", n), reference: fmt.Sprintf("%016d", n),
			dues: []due{{transaction: fmt.Sprintf("transaction-%d", n), ref: fmt.Sprintf("due-%d", n), amount: s.amount}},
		}
		if n > 7 {
			e.order, e.dues, e.application = "case", nil, "shop"
			e.partner, e.paymentID, e.number = "partner", int64(n), fmt.Sprintf("T2611%06d", n-7)
			if n == 8 {
				e.order, e.partner = "first", "init"
			}
			if n == 10 {
				e.order = "refused"
			}
		}
		if s.sequence > 1 && kind != kindCancelled && kind != "checkout.updated" {
			s.fee, s.total = 15, s.amount+15
			e.collection, e.paid = fmt.Sprintf("collection-%d", n), s.total
		}
		e.after = s
		current[session] = s
		h.events = append(h.events, e)
		if kind == kindCreated && n < 8 {
			c := creation{application: "app", order: e.order, key: fmt.Sprintf("key-%d", n), session: session, amount: s.amount}
			h.creations = append(h.creations, c, c)
		}
		if kind == kindCancelled {
			h.cancelled = append(h.cancelled, session)
		}
		if slices.Contains(harness.WebhookKinds, kind) {
			w := webhook{inbox: e.application, id: e.id, eventID: e.id, kind: kind, session: session, body: "{}", signed: true}
			failed := w
			w.accepted = true
			h.webhooks = append(h.webhooks, failed, w, w)
		}
		if n > 7 && slices.Contains(noticeKinds, kind) {
			told := noticeBody{PaymentID: int64(n), ExternalNumber: e.order, Amount: s.amount, Status: "failed"}
			if kind == kindCompleted {
				told.Status, told.PaidAt = "completed", new(string)
			}
			text, _ := json.Marshal(struct {
				noticeBody
				Note *string `json:"note"`
			}{noticeBody: told})
			refused := notice{application: "shop", body: told, text: string(text), bare: true}
			got := refused
			got.accepted = true
			h.notices = append(h.notices, refused, got)
		}
		if kind == kindCompleted && n < 8 {
			h.confirmed = append(h.confirmed, confirmation{tenant: "agency", transaction: e.dues[0].transaction, dueRef: e.dues[0].ref, reference: e.reference, amount: s.amount, accepted: 1})
		}
		if kind == kindCompleted && (n < 6 || n > 7) || kind == kindLatePayment || kind == kindFailed && n < 6 && n != 2 {
			h.payments = append(h.payments, payment{id: e.collection, reference: e.reference, approved: kind != kindFailed, amount: s.total, currency: "XAF", duplicates: 1})
		}
	}
	h.cases, h.rows = map[string]operatorCase{}, map[string]operatorCase{}
	inCase := func(n int, kind, resolution string) {
		id := fmt.Sprintf("case_%d", n)
		h.cases[id] = operatorCase{session: fmt.Sprintf("chs_%d", n), kind: kind, resolution: resolution}
		h.rows[id] = h.cases[id]
		h.events[len(h.events)-1].caseID = id
	}
	for n := 1; n <= 7; n++ {
		emit(n, kindCreated, "open")
	}
	for _, n := range []int{1, 2, 3, 6, 7} {
		emit(n, "collection.requested", "open")
	}
	emit(1, kindCompleted, "completed")
	emit(2, kindFailed, "failed")
	emit(2, kindLatePayment, "failed")
	inCase(2, "late_payment", "")
	h.underReview = []string{"chs_2"}
	emit(3, kindFailed, "failed")
	emit(4, kindCancelled, "cancelled")
	emit(6, kindFailed, "failed")
	emit(6, kindLatePayment, "failed")
	inCase(6, "late_payment", "honour")
	emit(6, kindResolved, "failed")
	inCase(6, "late_payment", "honour")
	emit(6, kindCompleted, "completed")
	h.events[len(h.events)-1].late = true
	emit(7, kindCompleted, "completed")
	h.taken = []cash{{session: "chs_7", reference: fmt.Sprintf("%016d", 7), collection: "collection-7", amount: 7015, taken: true, reversed: true}}
	emit(7, kindReversed, "completed")
	for n := 8; n <= 11; n++ {
		emit(n, kindCreated, "open")
	}
	emit(8, "checkout.updated", "open")
	for n := 8; n <= 11; n++ {
		emit(n, "collection.requested", "open")
	}
	emit(8, kindCompleted, "completed")
	emit(9, kindCompleted, "completed")
	emit(10, kindFailed, "failed")
	emit(11, kindFailed, "failed")
	h.charges = []charge{
		{application: "shop", external: "first", paymentID: 8, session: "chs_8", amount: 8000},
		{application: "shop", external: "case", paymentID: 9, number: "T2611000002", amount: 9000},
		{application: "shop", external: "refused", amount: 10000},
	}

	for n, amounts := range map[int][]int64{12: {500, 700}, 13: {300, 900, 100}} {
		current[fmt.Sprintf("chs_%d", n)] = h.addCart(n, amounts)
	}

	sums := map[sumKey]sum{}
	items := map[string]int64{}
	for session, s := range current {
		add(sums, s)
		items[session] = 0
	}
	items["chs_12"], items["chs_13"] = 1200, 1300
	for _, name := range []string{"state", "the read model", "ClickHouse"} {
		s := store{name: name, sessions: maps.Clone(current), sums: maps.Clone(sums)}
		if name != "ClickHouse" {
			s.items = maps.Clone(items)
		}
		h.stores = append(h.stores, s)
	}
	return h
}

// addCart adds a cart that is paid. The first due of all carts is one due of 1,000, of which
// each pays a part.
func (h *history) addCart(n int, amounts []int64) standing {
	session := fmt.Sprintf("chs_%d", n)
	e := event{
		session: session, application: "app", tenant: "agency", order: fmt.Sprintf("order-%d", n), reference: fmt.Sprintf("%016d", n),
		cart: true, mark: fmt.Sprintf("key-%d", n), after: standing{currency: "XAF"},
	}
	for i, amount := range amounts {
		d := due{transaction: fmt.Sprintf("transaction-%d-%d", n, i), ref: fmt.Sprintf("due-%d-%d", n, i), amount: amount, fee: 5}
		if i == 0 {
			d.ref = "due-shared"
		}
		e.dues = append(e.dues, d)
		e.after.amount += amount
		e.after.fee += d.fee
	}
	total := e.after.amount + e.after.fee
	emit := func(kind, status string, change func(*event)) {
		e.kind, e.after.status = kind, status
		e.sequence++
		e.after.sequence++
		e.id = fmt.Sprintf("evt_%d_%d", n, e.sequence)
		e.dues = slices.Clone(e.dues)
		now := e
		change(&now)
		h.events = append(h.events, now)
	}
	emit(kindCreated, "open", func(now *event) { now.after.fee = 0 })
	e.collection, e.paid, e.after.total = fmt.Sprintf("collection-%d", n), total, total
	emit(kindCompleted, "completed", func(*event) {})
	h.creations = append(h.creations, creation{application: "app", order: e.order, key: fmt.Sprintf("key-%d", n), session: session, amount: e.after.amount})
	h.payments = append(h.payments, payment{id: e.collection, reference: e.reference, approved: true, amount: total, currency: "XAF"})
	h.webhooks = append(h.webhooks, webhook{inbox: "app", id: e.id, eventID: e.id, kind: kindCompleted, session: session, body: "{}", signed: true, accepted: true})
	if h.owed == nil {
		h.owed = map[string]int64{}
	}
	for i, d := range e.dues {
		h.owed[d.ref] = d.amount
		h.confirmed = append(h.confirmed, confirmation{tenant: "agency", transaction: d.transaction, dueRef: d.ref, reference: e.reference, amount: d.amount, accepted: 1})
		h.receipts = append(h.receipts, receipt{session: session, transaction: d.transaction, due: d.ref, item: int64(i + 1), amount: d.amount, fee: d.fee})
	}
	h.owed["due-shared"] = 1000
	return e.after
}

// ofCart returns the index of the confirmation of a due of the cart chs_12.
func (h *history) ofCart(item int) int {
	return slices.IndexFunc(h.confirmed, func(c confirmation) bool { return c.transaction == fmt.Sprintf("transaction-12-%d", item) })
}

func TestCrashVerifierAcceptsSoundHistory(t *testing.T) {
	t.Parallel()
	v := verify(sound())
	if !v.clean() {
		t.Errorf("the verifier finds faults in a sound history:\n%s", strings.Join(v.findings, "\n"))
	}
	report := v.report("a sound history", nil, 17, 4)
	if lines := strings.Split(strings.TrimSpace(report), "\n"); lines[len(lines)-1] != "lost=0 doubled=0 gaps=0 diverged=0 blocked=0 untold=0 commands=17 kills=4" {
		t.Errorf("the report ends with %q", lines[len(lines)-1])
	}
}

// A late payment that completes a failed one may overtake the webhook of the failure.
func TestCrashVerifierAcceptsSupersededNotice(t *testing.T) {
	t.Parallel()
	h := sound()
	at := slices.IndexFunc(h.events, func(e event) bool { return e.session == "chs_9" && e.kind == kindCompleted })
	failed := h.events[at]
	failed.id, failed.kind, failed.after.status = "evt_9_f", kindFailed, "failed"
	h.events[at].sequence++
	h.events[at].after.sequence++
	h.events = slices.Insert(h.events, at, failed)
	h.webhooks = append(h.webhooks, webhook{inbox: "shop", id: failed.id, eventID: failed.id, kind: kindFailed, session: "chs_9", body: "{}", signed: true, accepted: true})
	for _, s := range h.stores {
		s.sessions["chs_9"] = h.events[at+1].after
	}
	if v := verify(h); !v.clean() {
		t.Errorf("the verifier finds faults:\n%s", strings.Join(v.findings, "\n"))
	}
}

// drop removes the events of a kind.
func drop(h *history, kind string) {
	h.events = slices.DeleteFunc(h.events, func(e event) bool { return e.kind == kind })
}

// again repeats the first event of a kind, with a change.
func again(h *history, kind string, change func(*event)) {
	i := slices.IndexFunc(h.events, func(e event) bool { return e.kind == kind })
	e := h.events[i]
	change(&e)
	h.events = append(h.events, e)
}

// renumber gives the payment of a session another id and number.
func renumber(h *history, session string, paymentID int64, number string) {
	for i, e := range h.events {
		if e.session == session {
			h.events[i].paymentID, h.events[i].number = paymentID, number
		}
	}
}

// corruptions are changes to a sound history, and what the verdict must count.
var corruptions = []struct {
	name    string
	corrupt func(*history)
	want    string // the counter that must not be 0
}{
	{"an acknowledged session is missing", func(h *history) {
		h.events = slices.DeleteFunc(h.events, func(e event) bool { return e.session == "chs_5" })
	}, "lost"},
	{"a key was answered with two sessions", func(h *history) { h.creations[1].session = "chs_2" }, "doubled"},
	{"an order has a second session that no client knows", func(h *history) {
		again(h, kindCreated, func(e *event) { e.session, e.id = "chs_9", "evt_9_1" })
	}, "doubled"},
	{"a session has another amount", func(h *history) { h.creations[0].amount++; h.creations[1].amount++ }, "diverged"},
	{"an acknowledged cancellation is missing", func(h *history) { drop(h, kindCancelled) }, "lost"},
	{"an approved collection completed no session", func(h *history) { drop(h, kindCompleted) }, "lost"},
	{"a late payment is missing", func(h *history) { drop(h, kindLatePayment) }, "lost"},
	{"an approved collection is in no event", func(h *history) {
		h.payments = append(h.payments, payment{id: "collection-x", reference: "x", approved: true})
	}, "lost"},
	{"a payment without a session", func(h *history) {
		h.events = append(h.events, event{id: "evt_o", kind: "collection.orphaned", collection: "collection-1"})
	}, "lost"},
	{"a session is completed twice", func(h *history) {
		again(h, kindCompleted, func(e *event) { e.sequence++; e.id = "evt_1_4" })
	}, "doubled"},
	{"one order is debited twice", func(h *history) {
		p := h.payments[0]
		p.id = "collection-y"
		h.payments = append(h.payments, p)
	}, "doubled"},
	{"a completion without approval", func(h *history) { h.payments[0].approved = false }, "diverged"},
	{"the operator took another amount", func(h *history) { h.payments[0].amount++ }, "diverged"},
	{"an acknowledged cash payment is missing", func(h *history) {
		h.events = slices.DeleteFunc(h.events, func(e event) bool { return e.session == "chs_7" && e.kind == kindCompleted })
	}, "lost"},
	{"an acknowledged reversal is missing", func(h *history) { drop(h, kindReversed) }, "lost"},
	{"a session is reversed twice", func(h *history) {
		again(h, kindReversed, func(e *event) { e.sequence++; e.id = "evt_7_r" })
	}, "doubled"},
	{"cash that no clerk took", func(h *history) { h.taken = nil }, "diverged"},
	{"a late payment completes its session without a resolution", func(h *history) {
		i := slices.IndexFunc(h.events, func(e event) bool { return e.late })
		h.events[i].late = false
	}, "doubled"},
	{"a case is resolved twice", func(h *history) {
		again(h, kindResolved, func(e *event) { e.sequence += 2; e.id = "evt_6_r" })
	}, "doubled"},
	{"staff cannot find an open case", func(h *history) { delete(h.rows, "case_2") }, "blocked"},
	{"an open case looks closed", func(h *history) {
		h.rows["case_2"] = operatorCase{session: "chs_2", kind: "late_payment", resolution: "refund"}
	}, "blocked"},
	{"a late payment has no case", func(h *history) {
		delete(h.cases, "case_2")
		delete(h.rows, "case_2")
	}, "blocked"},
	{"an order is under review for ever", func(h *history) { h.underReview = append(h.underReview, "chs_6") }, "blocked"},
	{"a closed case looks open", func(h *history) {
		h.rows["case_6"] = operatorCase{session: "chs_6", kind: "late_payment"}
	}, "diverged"},
	{"staff see a case that does not exist", func(h *history) { h.rows["case_9"] = operatorCase{session: "chs_5"} }, "diverged"},
	{"an event is in the log twice", func(h *history) { again(h, "collection.requested", func(*event) {}) }, "doubled"},
	{"a sequence has a gap", func(h *history) { drop(h, "collection.requested") }, "gaps"},
	{"events out of order", func(h *history) { slices.Reverse(h.events) }, "gaps"},
	{"a webhook never arrived", func(h *history) {
		h.webhooks = slices.DeleteFunc(h.webhooks, func(w webhook) bool { return w.kind == kindCompleted })
	}, "lost"},
	{"a webhook was never accepted", func(h *history) {
		for i := range h.webhooks {
			h.webhooks[i].accepted = false
		}
	}, "lost"},
	{"a webhook came under another id", func(h *history) { h.webhooks[0].id, h.webhooks[0].eventID = "evt_other", "evt_other" }, "doubled"},
	{"a webhook's two ids differ", func(h *history) { h.webhooks[0].eventID = "evt_other" }, "diverged"},
	{"a webhook has a wrong signature", func(h *history) { h.webhooks[0].signed = false }, "diverged"},
	{"a webhook came with other bytes", func(h *history) { h.webhooks[0].body = "{ }" }, "diverged"},
	{"a webhook went to another application", func(h *history) { h.webhooks[0].inbox = "other" }, "diverged"},
	{"a webhook of a transaction that was aborted", func(h *history) {
		h.webhooks = append(h.webhooks, webhook{inbox: "app", id: "evt_a", eventID: "evt_a", kind: kindFailed, session: "chs_5", signed: true, accepted: true})
	}, "diverged"},
	{"a confirmation is missing", func(h *history) { h.confirmed = nil }, "lost"},
	{"a confirmation was accepted twice", func(h *history) { h.confirmed[0].accepted = 2 }, "doubled"},
	{"a due was confirmed under two transactions", func(h *history) {
		c := h.confirmed[0]
		c.transaction = "transaction-2"
		h.confirmed = append(h.confirmed, c)
	}, "doubled"},
	{"a confirmation of a session that is not completed", func(h *history) {
		h.confirmed = append(h.confirmed, confirmation{transaction: "transaction-5", dueRef: "due-5", accepted: 1})
	}, "diverged"},
	{"a confirmation of another amount", func(h *history) { h.confirmed[0].amount++ }, "diverged"},
	{"an item of a cart is never confirmed", func(h *history) { h.confirmed = slices.Delete(h.confirmed, h.ofCart(1), h.ofCart(1)+1) }, "lost"},
	{"a cart is confirmed by the transaction of its first item", func(h *history) {
		h.confirmed[h.ofCart(1)].transaction = "transaction-12-0"
	}, "doubled"},
	{"an item of a cart is confirmed twice", func(h *history) { h.confirmed[h.ofCart(1)].accepted++ }, "doubled"},
	{"an item of a cart is confirmed with the amount of the cart", func(h *history) { h.confirmed[h.ofCart(1)].amount = 1200 }, "diverged"},
	{"a due is paid by two carts", func(h *history) { h.owed["due-shared"] = 799 }, "doubled"},
	{"a key of a cart made two sessions", func(h *history) {
		for i := range h.events {
			if h.events[i].session == "chs_13" {
				h.events[i].mark = "key-12"
			}
		}
	}, "doubled"},
	{"a cart was refused, and its session was made", func(h *history) { h.refused = []string{"key-12"} }, "diverged"},
	{"the items are less than the session", func(h *history) {
		for i := range h.events {
			if h.events[i].session == "chs_12" {
				h.events[i].dues[1].amount--
			}
		}
	}, "diverged"},
	{"the fees of the items are more than the session's", func(h *history) { h.events[len(h.events)-1].dues[0].fee++ }, "diverged"},
	{"the read model has lost an item", func(h *history) { h.stores[1].items["chs_12"] = 500 }, "diverged"},
	{"ClickHouse lacks the receipt of an item", func(h *history) { h.receipts = h.receipts[1:] }, "lost"},
	{"ClickHouse has the receipt of an item twice", func(h *history) { h.receipts = append(h.receipts, h.receipts[0]) }, "doubled"},
	{"ClickHouse has another amount of an item", func(h *history) { h.receipts[0].amount++ }, "diverged"},
	{"the processors' state lags", func(h *history) {
		s := h.stores[0].sessions["chs_1"]
		s.sequence--
		h.stores[0].sessions["chs_1"] = s
	}, "diverged"},
	{"the read model misses a session", func(h *history) { delete(h.stores[1].sessions, "chs_4") }, "diverged"},
	{"the read model invents a session", func(h *history) { h.stores[1].sessions["chs_x"] = standing{} }, "diverged"},
	{"ClickHouse is off by one unit", func(h *history) {
		k := sumKey{"completed", "XAF"}
		s := h.stores[2].sums[k]
		s.total++
		h.stores[2].sums[k] = s
	}, "diverged"},
	{"ClickHouse has a status that no session has", func(h *history) { h.stores[2].sums[sumKey{"expired", "XAF"}] = sum{sessions: 1} }, "diverged"},
	{"an acknowledged payment of a partner is missing", func(h *history) {
		h.events = slices.DeleteFunc(h.events, func(e event) bool { return e.session == "chs_9" })
	}, "lost"},
	{"a payment has another amount than the partner was told", func(h *history) { h.charges[1].amount++ }, "diverged"},
	{"a payment has another number than the partner was told", func(h *history) { h.charges[1].number = "T2611000009" }, "diverged"},
	{"two payments have one number", func(h *history) { renumber(h, "chs_11", 11, "T2611000003") }, "doubled"},
	{"two payments have one paymentId", func(h *history) { renumber(h, "chs_11", 10, "T2611000004") }, "doubled"},
	{"a month's numbers have a gap", func(h *history) { renumber(h, "chs_11", 11, "T2611000005") }, "gaps"},
	{"a month's numbers begin at 2", func(h *history) { renumber(h, "chs_11", 11, "T2612000002") }, "gaps"},
	{"a payment gets another number when it is updated", func(h *history) {
		i := slices.IndexFunc(h.events, func(e event) bool { return e.kind == "checkout.updated" })
		h.events[i].number = "T2611000009"
	}, "diverged"},
	{"init-checkout made two payments", func(h *history) {
		for i := range h.events {
			if h.events[i].session == "chs_11" {
				h.events[i].partner, h.events[i].order = "init", "first"
			}
		}
	}, "doubled"},
	{"partners/payments debited twice", func(h *history) {
		h.payments = append(h.payments, payment{id: "collection-11", reference: fmt.Sprintf("%016d", 11)})
	}, "doubled"},
	{"a payment that was answered with 502 was collected", func(h *history) {
		h.payments = append(h.payments, payment{id: "collection-10", reference: fmt.Sprintf("%016d", 10)})
	}, "diverged"},
	{"a partner is never told", func(h *history) { h.notices = nil }, "lost"},
	{"a partner never accepts what it is told", func(h *history) {
		for i := range h.notices {
			h.notices[i].accepted = false
		}
	}, "lost"},
	{"a partner is told another status", func(h *history) { h.notices[0].body.Status = "failed" }, "diverged"},
	{"a partner is told another amount", func(h *history) { h.notices[0].body.Amount++ }, "diverged"},
	{"a partner is told of another's payment", func(h *history) { h.notices[0].application = "app" }, "diverged"},
	{"a call to a partner is signed", func(h *history) { h.notices[0].bare = false }, "diverged"},
	{"a partner is told other bytes the second time", func(h *history) { h.notices[1].text += " " }, "diverged"},
	{"a call to a partner lacks a field", func(h *history) { h.notices[0].text, h.notices[1].text = "{}", "{}" }, "diverged"},
}

// The verifier finds each kind of corruption and counts it under the right heading.
func TestCrashVerifierSeesCorruption(t *testing.T) {
	t.Parallel()
	for _, c := range corruptions {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := sound()
			c.corrupt(&h)
			v := verify(h)
			got := map[string]int{"lost": v.lost, "doubled": v.doubled, "gaps": v.gaps, "diverged": v.diverged, "blocked": v.blocked}
			if got[c.want] == 0 {
				t.Errorf("%s=0, want more than 0; all counts: %v\n%s", c.want, got, strings.Join(v.findings, "\n"))
			}
			if len(v.findings) == 0 {
				t.Error("the verdict has no finding")
			}
		})
	}
}
