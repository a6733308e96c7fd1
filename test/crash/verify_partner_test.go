package crash_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
)

// notice is an unsigned webhook that arrived at a partner.
type notice struct {
	application string
	body        noticeBody
	text        string // the body's bytes
	bare        bool   // the only header of ours is Content-Type
	accepted    bool   // answered with 2xx
}

// noticeBody has the fields of the contract ("Events", rule 6).
type noticeBody struct {
	PaymentID      int64   `json:"paymentId"`
	ExternalNumber string  `json:"externalNumber"`
	Amount         int64   `json:"amount"`
	Status         string  `json:"status"`
	PaidAt         *string `json:"paidAt"`
}

// noticeKinds are the events of which partners are told without a signature.
var noticeKinds = []string{kindCompleted, kindFailed, kindCancelled, kindExpired}

var paymentNumber = regexp.MustCompile(`^T[0-9]{4}[0-9]{6}$`)

// partners checks the payments of the deprecated cash-in surface: their numbers, what the
// partners' programs were told, and the unsigned webhooks.
func (v *verdict) partners(h history, l *log) {
	payments := v.numbers(l)
	v.charges(h, l, payments)
	v.notices(h, l, payments)
}

// numbers checks that a paymentId and a number are given once and stay, and that the numbers
// of a partner's month are 1, 2, 3 … It returns the sessions by paymentId.
func (v *verdict) numbers(l *log) map[int64]string {
	type month struct{ application, name string }
	months, payments := map[month][]int{}, map[int64]string{}
	for session, events := range l.sessions {
		first := events[0]
		if first.partner == "" {
			continue
		}
		for _, e := range events {
			if e.paymentID != first.paymentID || e.number != first.number {
				v.diverge("payment %d (%s) of %s became payment %d (%s)", first.paymentID, first.number, session, e.paymentID, e.number)
			}
		}
		if other, again := payments[first.paymentID]; again {
			v.double("paymentId %d is of %s and of %s", first.paymentID, other, session)
		}
		payments[first.paymentID] = session
		if !paymentNumber.MatchString(first.number) {
			v.diverge("%s has the number %q", session, first.number)
			continue
		}
		n, _ := strconv.Atoi(first.number[5:])
		k := month{first.application, first.number[1:5]}
		months[k] = append(months[k], n)
	}
	longest := 0
	for k, numbers := range months {
		slices.Sort(numbers)
		next := 1
		for _, n := range numbers {
			switch {
			case n < next:
				v.double("number %d of %s in %s is given twice", n, k.application, k.name)
			case n > next:
				v.gap("%s has number %d in %s where %d was expected", k.application, n, k.name, next)
			}
			next = n + 1
		}
		longest = max(longest, len(numbers))
	}
	v.count("payments of partners", len(payments))
	v.count("  most numbers of a partner's month", longest)
	return payments
}

// charges checks that every payment that a partner was told is in the log as it was told,
// that init-checkout made one payment of each externalNumber however often it was repeated,
// and that partners/payments debited once, or never after a 502.
func (v *verdict) charges(h history, l *log, payments map[int64]string) {
	debits := map[string]int{} // by payment_ref
	for _, p := range h.payments {
		debits[p.reference]++
	}
	type external struct{ application, number, partner string }
	sessions := map[external][]string{}
	for _, session := range payments {
		e := l.last(session)
		k := external{e.application, e.order, e.partner}
		sessions[k] = append(sessions[k], session)
	}
	for k, made := range sessions {
		debited := slices.DeleteFunc(slices.Clone(made), func(s string) bool { return debits[l.last(s).reference] == 0 })
		if k.partner == "init" && len(made) > 1 || len(debited) > 1 {
			v.double("externalNumber %s has the payments %v, of which %v were collected", k.number, made, debited)
		}
	}
	acknowledged, refused := 0, 0
	for _, c := range h.charges {
		if c.paymentID == 0 {
			refused++
			for _, s := range sessions[external{c.application, c.external, "partner"}] {
				if e := l.last(s); debits[e.reference] > 0 || e.after.status != "failed" {
					v.diverge("payment %s was answered with 502: it is %s, and the operator has %d collections", c.external, e.after.status, debits[e.reference])
				}
			}
			continue
		}
		acknowledged++
		session, found := payments[c.paymentID]
		if !found {
			v.lose("acknowledged payment %d (%s, %s) is not in the log", c.paymentID, c.external, c.number)
			continue
		}
		e, asked := l.last(session), slices.ContainsFunc(l.sessions[session], func(e event) bool { return e.after.amount == c.amount })
		if e.application != c.application || e.order != c.external || !asked || c.number != "" && c.number != e.number || c.session != "" && c.session != session {
			v.diverge("payment %+v is %+v in the log", c, e)
		}
	}
	v.count("  answers that acknowledged them", acknowledged)
	v.count("  refused, nothing was sent (502)", refused)
}

// notices checks that every partner was told of every payment that ended, that it accepted
// the call once at least, and that each call has the contract's content and headers.
func (v *verdict) notices(h history, l *log, payments map[int64]string) {
	type told struct {
		paymentID int64
		status    string
	}
	status := func(e event) string {
		if e.kind == kindCompleted {
			return "completed"
		}
		return "failed"
	}
	accepted, texts := map[told]bool{}, map[told]string{}
	for _, n := range h.notices {
		k := told{n.body.PaymentID, n.body.Status}
		session, found := payments[k.paymentID]
		i := slices.IndexFunc(l.sessions[session], func(e event) bool {
			return slices.Contains(noticeKinds, e.kind) && status(e) == k.status
		})
		switch {
		case !found || i < 0:
			v.diverge("an unsigned webhook tells %s, of which the log has no event", n.text)
			continue
		case l.sessions[session][i].application != n.application:
			v.diverge("%s was told %s, which is a payment of %s", n.application, n.text, l.sessions[session][i].application)
		case l.sessions[session][i].order != n.body.ExternalNumber || l.sessions[session][i].after.amount != n.body.Amount || (n.body.PaidAt != nil) != (k.status == "completed"):
			v.diverge("an unsigned webhook tells %s, the log has %+v", n.text, l.sessions[session][i])
		case !n.bare || !exact(n.text):
			v.diverge("the unsigned webhook %s has other headers or fields than the contract's", n.text)
		case texts[k] != "" && texts[k] != n.text:
			v.diverge("an unsigned webhook was sent as %s and as %s", texts[k], n.text)
		}
		texts[k] = n.text
		accepted[k] = accepted[k] || n.accepted
	}
	for session, events := range l.sessions {
		for _, e := range events {
			if e.partner == "" || !slices.Contains(noticeKinds, e.kind) {
				continue
			}
			v.expected++
			// A partner that has accepted completed is not told of an earlier failure any more.
			if !accepted[told{e.paymentID, status(e)}] && !accepted[told{e.paymentID, "completed"}] {
				v.lose("the partner was never told that payment %d (%s) is %s", e.paymentID, session, status(e))
			}
		}
	}
	v.count("unsigned webhooks expected", v.expected)
	v.count("  calls that arrived", len(h.notices))
}

// exact reports whether a body has exactly the six fields of the contract.
func exact(text string) bool {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &fields); err != nil || len(fields) != 6 {
		return false
	}
	for _, name := range []string{"paymentId", "externalNumber", "amount", "status", "paidAt", "note"} {
		if _, ok := fields[name]; !ok {
			return false
		}
	}
	return true
}
