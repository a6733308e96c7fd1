package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/google/uuid"

	"quittance/internal/call"
	"quittance/internal/erp"
)

const pollEvery = 200 * time.Millisecond

// payment is a payment that never took place.
type payment struct {
	due    erp.Due
	amount int64
	id     string
	body   []byte
}

// pay makes a payment of the smallest amount that a due takes.
func (c *check) pay(due erp.Due, at time.Time) payment {
	p := payment{due: due, amount: due.Outstanding, id: uuid.NewString()}
	if due.AllowPartial {
		p.amount = due.Minimum
	}
	digits := func(n int) string {
		out := make([]byte, n)
		for i := range out {
			out[i] = byte('0' + rand.IntN(10)) //nolint:gosec // no secret
		}
		return string(out)
	}
	// The members of schemas/payload, docs/design/decisions.md § 10.
	p.body, _ = json.Marshal(map[string]any{ // texts, numbers and booleans only
		"erp_due_ref": due.Ref, "transaction_id": p.id, "notice_ref": fmt.Sprintf("AV%d%s", at.Year(), digits(10)), "payment_ref": digits(16),
		"subject_ref": c.Subject, "amount_minor": p.amount, "currency": due.Currency, "partial": p.amount < due.Outstanding,
		"paid_at": at.UTC().Format("2006-01-02T15:04:05.000Z"), "service_code": nil,
		"payment": map[string]any{"channel": "MOBILE_MONEY", "offer_id": "momo", "operator_ref": "CHECK-" + digits(8), "payer_masked": "+242 06 ••• •• 00"},
	})
	return p
}

func (c *check) post(ctx context.Context, p payment) call.Result {
	return c.Client.Confirm(ctx, c.Settings, p.id, p.body)
}

// choose returns the due that suits the checks best: one that can be paid twice.
func choose(payable []erp.Due) erp.Due {
	for _, d := range payable {
		if d.AllowPartial && d.Outstanding >= 2*d.Minimum {
			return d
		}
	}
	return payable[0]
}

// confirmations confirms a payment, confirms it again, and confirms one that took place
// before it.
func (c *check) confirmations(ctx context.Context, payable []erp.Due) {
	now := time.Now()
	first := c.pay(choose(payable), now)
	if r := c.post(ctx, first); !r.OK() {
		wanted := "A confirmation is answered 2xx once it is stored; amount_minor is what was paid, and the money has been taken whatever the ERP answers."
		if r.Status == http.StatusConflict {
			wanted = "409 is for a transaction_id that is stored already; this one was new."
		}
		c.fail("confirmation", r, wanted)
		c.add("confirmation.repeated", OutcomeSkipped, "Not tried, because no confirmation was accepted.", "")
		return
	}
	c.add("confirmation", OutcomeOK, fmt.Sprintf("A confirmation of %d %s of %s was accepted.", first.amount, first.due.Currency, first.due.Ref), "")
	left := first.due.Outstanding - first.amount
	balance := c.balance(ctx, first.due.Ref, left, c.Settle)
	if balance == left {
		c.add("confirmation.balance", OutcomeOK, fmt.Sprintf("The outstanding amount went from %d to %d.", first.due.Outstanding, left), "")
	} else {
		c.add("confirmation.balance", OutcomeFailed, fmt.Sprintf("After the confirmation of %d, outstanding_minor is %d and not %d.", first.amount, balance, left),
			fmt.Sprintf("Take amount_minor off outstanding_minor of the due within %v, and lower minimum_amount_minor to what is left if it is less. A due on which nothing is left has outstanding_minor 0 or is gone.", c.Settle))
	}
	c.repeated(ctx, first, balance)
	c.outOfOrder(ctx, first, now.Add(-time.Hour))
}

// repeated posts the same bytes again: our service does so when an answer is lost.
func (c *check) repeated(ctx context.Context, p payment, before int64) {
	const name = "confirmation.repeated"
	r := c.post(ctx, p)
	switch {
	case r.Status == http.StatusConflict:
		c.add(name, OutcomeOK, "The same confirmation again was answered 409.", "Tell whoever sets the agency up: conflict_is_done: true.")
	case r.OK():
		c.add(name, OutcomeOK, fmt.Sprintf("The same confirmation again was answered %d.", r.Status), "")
	default:
		c.fail(name, r, "The same transaction_id with the same body is answered 2xx or 409: it is sent again whenever an answer was lost.")
	}
	if after := c.balance(ctx, p.due.Ref, before-p.amount, c.Settle/10); after != before {
		c.add(name+".balance", OutcomeFailed, fmt.Sprintf("The repetition changed the outstanding amount from %d to %d: the payment was counted twice.", before, after),
			"Store each transaction_id (also in the header Idempotency-Key) under a unique constraint, in the transaction that changes the balance.")
		return
	}
	c.add(name+".balance", OutcomeOK, "The repetition changed no balance.", "")
}

// outOfOrder confirms a payment that took place before one that is confirmed already.
func (c *check) outOfOrder(ctx context.Context, first payment, at time.Time) {
	const name = "confirmation.out_of_order"
	dues, _, _ := c.Client.Dues(ctx, c.Settings, c.Subject)
	for _, d := range dues {
		if d.Paid() || d.Ref == first.due.Ref && !d.AllowPartial {
			continue
		}
		if r := c.post(ctx, c.pay(d, at)); !r.OK() {
			c.fail(name, r, "Confirmations come in any order, days late when a network was down: the paid_at of one says nothing about the next.")
			return
		}
		c.add(name, OutcomeOK, "A confirmation with an earlier paid_at than the last was accepted.", "")
		return
	}
	c.add(name, OutcomeSkipped, "Not tried: no further payment is possible on the dues of "+c.Subject+".", "Give the test subject a due with allow_partial, or a second one.")
}

// balance returns what is outstanding of a due, 0 if it is gone. It waits until that is
// wanted, but not longer than patience. A list that cannot be read counts as -1.
func (c *check) balance(ctx context.Context, ref string, wanted int64, patience time.Duration) int64 {
	for end := time.Now().Add(patience); ; {
		now := int64(-1)
		if dues, _, r := c.Client.Dues(ctx, c.Settings, c.Subject); r.OK() {
			now = 0
			for _, d := range dues {
				if d.Ref == ref {
					now = d.Outstanding
				}
			}
		}
		if now == wanted || time.Now().After(end) || ctx.Err() != nil {
			return now
		}
		select {
		case <-ctx.Done():
		case <-time.After(pollEvery):
		}
	}
}
