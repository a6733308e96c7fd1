package crash_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"quittance/test/harness"
)

// payCash plays a clerk who takes the cash of a session and, with reverse, another one who
// gives it back. Every request is repeated until it is answered.
func (l *load) payCash(ctx context.Context, counter harness.Counter, c creation, reverse bool, at int) {
	var reserved struct {
		CollectionID string `json:"collection_id"`
		Total        int64  `json:"total"`
		Status       string `json:"status"`
	}
	if !l.clerk(ctx, counter.Clerks[0], "reservations", map[string]any{"payment_ref": c.reference}, &reserved, at) {
		return
	}
	taken := cash{session: c.session, reference: c.reference, collection: reserved.CollectionID, amount: reserved.Total}
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.taken = append(l.taken, taken)
	}()
	payment := map[string]any{"payment_ref": c.reference, "collection_id": taken.collection, "total": taken.amount, "receipt": c.order}
	if taken.taken = l.clerk(ctx, counter.Clerks[0], "payments", payment, &reserved, at+1); !taken.taken || !reverse {
		return
	}
	returned := map[string]any{"payment_ref": c.reference, "collection_id": taken.collection, "reason": "crash test"}
	taken.reversed = l.clerk(ctx, counter.Clerks[1], "reversals", returned, &reserved, at+2)
}

// clerk repeats a request of a clerk until it is answered.
func (l *load) clerk(ctx context.Context, key, what string, body map[string]any, into any, at int) bool {
	text, err := json.Marshal(body)
	if err != nil {
		l.surprise("%s: %v", what, err)
		return false
	}
	for try := 0; ; try++ {
		status, answer, err := l.call(ctx, http.MethodPost, at+try, "/api/v1/counter/"+what, "application/json", string(text), map[string]string{
			"Authorization": "Bearer " + key,
		})
		switch {
		case err == nil && (status == http.StatusOK || status == http.StatusCreated):
			if err := json.Unmarshal([]byte(answer), into); err != nil {
				l.surprise("%s were answered with %q", what, answer)
				return false
			}
			return true
		case err == nil && status < http.StatusInternalServerError && status != http.StatusTooManyRequests:
			l.surprise("%s of %v were answered with %d %s", what, body["payment_ref"], status, answer)
			return false
		}
		if !l.again(ctx, try) {
			return false
		}
	}
}

// payLate pays with a number whose payer decides by hand, cancels the session, and approves.
// A step without an answer may have reached the operator: approveAbandoned approves such a
// collection later.
func (l *load) payLate(ctx context.Context, c creation, n int, cancel func() bool) {
	if !l.pay(ctx, c.session, "06 600 00 03", n) || !cancel() || !l.approve(ctx, c) {
		l.abandon(c)
	}
}

// approve makes the operator approve the collection of a session as soon as it has one, and
// reports whether it has. It ends when the load is over: the operator may never get the request,
// because the broker was down until its time was over.
func (l *load) approve(ctx context.Context, c creation) bool {
	for try := 0; ; try++ {
		done, err := l.tryApprove(ctx, c)
		switch {
		case done:
			return true
		case err != nil && ctx.Err() == nil:
			l.surprise("approving the collection of %s: %v", c.session, err)
			return false
		}
		select {
		case <-l.over:
			return false
		default:
		}
		if !l.again(ctx, try) {
			return false
		}
	}
}

// tryApprove approves the collection of a session if the operator has it.
func (l *load) tryApprove(ctx context.Context, c creation) (done bool, err error) {
	var found []struct {
		ID string `json:"id"`
	}
	status, answer, err := l.send(ctx, http.MethodGet, l.stack.Simulator+"/control/collections?limit=1&external_id="+c.reference, "", "", nil)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%d %s", status, answer)
	}
	if err == nil {
		err = json.Unmarshal([]byte(answer), &found)
	}
	if err != nil || len(found) == 0 {
		return false, err
	}
	status, answer, err = l.send(ctx, http.MethodPost, l.stack.Simulator+"/control/collections/"+found[0].ID+"/approve", "application/json", "{}", nil)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%d %s", status, answer)
	}
	return err == nil, err
}

// abandon notes a payment whose citizen gave up. approveAbandoned approves it.
func (l *load) abandon(c creation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.abandoned = append(l.abandoned, c)
}

// approveAbandoned makes the operator approve what citizens gave up, as far as the operator
// has it: otherwise those payments stay undecided until their window ends.
func (l *load) approveAbandoned(ctx context.Context) {
	l.mu.Lock()
	abandoned := l.abandoned
	l.abandoned = nil
	l.mu.Unlock()
	for _, c := range abandoned {
		if done, _ := l.tryApprove(ctx, c); !done {
			l.abandon(c)
		}
	}
}
