package counter

import (
	"fmt"
	"net/http"
	"time"

	"quittance/checkout"
	"quittance/ingress/problem"
)

// Codes of this surface, beside those of the processors' answers.
const (
	codeMistyped     = "counter.reference_mistyped"
	codeTaken        = "counter.taken"
	codeUnauthorized = "generic.unauthorized"
	codeUnavailable  = "generic.unavailable"
)

// refusal is why a clerk's wish has no effect, or none that can be told. The API
// tells it as a problem, the page in the clerk's language.
type refusal struct {
	status int
	code   string
	// session as it stands, where that is the reason.
	session *checkout.Session
	quota   *problem.Quota
}

func (r *refusal) Error() string { return r.code }

func unknownReference() *refusal {
	return &refusal{status: http.StatusNotFound, code: string(checkout.CodeSessionNotFound)}
}

// problem is the refusal as desk software is told it. The words are for the clerk
// who reads them there.
func (r *refusal) problem(now time.Time) *problem.Problem {
	p := &problem.Problem{Status: r.status, Code: r.code, Quota: r.quota}
	p.Title, p.Detail = r.words(now)
	switch r.status {
	case http.StatusTooManyRequests:
		p.RetryAfter = time.Second
		if r.quota != nil {
			p.RetryAfter = r.quota.Reset
		}
	case http.StatusServiceUnavailable:
		p.RetryAfter = time.Second
	}
	return p
}

func (r *refusal) words(now time.Time) (title, detail string) {
	switch r.code {
	case codeUnauthorized:
		return "Unauthorized", "The clerk's key is missing, unknown or revoked: send Authorization: Bearer ck_test_… or ck_live_…."
	case codeUnavailable:
		return "Unavailable", "The service cannot answer in time. The cash may be on record: repeat the same call, with the same collection_id; it counts once."
	case codeMistyped:
		return "Reference mistyped", "The digits of payment_ref do not fit its check: read all 16 again from the citizen's page."
	case codeTaken:
		return "Cash is taken", "This cash is on record as taken, so the reservation cannot be given up; a second clerk can reverse it today."
	case string(checkout.CodeRateLimited):
		return "Too many requests", "This key has asked too often in this minute; Retry-After says when to go on."
	case string(checkout.CodeSessionNotFound):
		return "Payment not found", "Your agency has no payment of this reference. Test keys see test payments only, live keys live ones."
	case string(checkout.CodeSessionEnded):
		return "Payment has ended", ended(r.session)
	case string(checkout.CodeReserved):
		detail = "Another clerk holds this payment."
		if c := r.session.Collection; held(*r.session, now) {
			detail = fmt.Sprintf("Clerk %s holds this payment until %s, or until it is given up there.", c.Clerk, timestamp(c.WindowEndsAt))
		}
		return "Held by another clerk", detail
	case string(checkout.CodeInFlight):
		return "Being paid", "The citizen is paying by other means, or the id is not that of the current reservation: take no cash, and look it up again in a few minutes."
	case string(checkout.CodePreviousUndecided):
		return "Earlier payment undecided", "An earlier payment of the same order may still succeed: take no cash, and look it up again in a minute."
	case string(checkout.CodeOrderPaid):
		return "Already paid", "Money for the same order has arrived already: take no cash, and send the citizen to the agency's office."
	case string(checkout.CodeOfferUnknown):
		return "No cash", "This payment cannot be made in cash: take none. Cash is taken in XAF only, where the integrator offers it."
	case string(checkout.CodeTotalChanged):
		detail = "The total is not due and fee: look the payment up again."
		if r.session != nil {
			if offer, ok := r.session.Offer(checkout.OfferCashAgency); ok {
				detail = fmt.Sprintf("The total is not due and fee, which are %d %s. Nothing was put on record.", r.session.Amount+offer.Fee, r.session.Currency)
			}
		}
		return "Other total", detail
	case string(checkout.CodeNotTaken):
		return "Not taken", "No cash of this collection_id is on record as this payment's, so there is none to reverse."
	case string(checkout.CodeTooMany):
		return "Too many entries", "A hundred payments in cash are on record for this reference beside its own: nothing more is. A program makes up a collection_id for each try; use that of the reservation."
	case string(checkout.CodeSecondPerson):
		return "Second person required", "Whoever took the cash cannot reverse it: another clerk has to."
	case string(checkout.CodeReversalLate):
		return "Day is over", "The day on which the cash was taken is over: the agency's office gives it back."
	}
	return "Refused", "The payment does not allow this now."
}

func ended(s *checkout.Session) string {
	switch s.Status {
	case checkout.StatusCompleted:
		return "This payment is paid already: take no cash."
	case checkout.StatusExpired:
		return "This payment has expired: take no cash; the citizen begins a new one."
	case checkout.StatusCancelled:
		return "This payment was cancelled: take no cash; the citizen begins a new one."
	case checkout.StatusFailed:
		return "This payment has failed: take no cash; the citizen begins a new one."
	case checkout.StatusOpen:
	}
	return "This payment has ended: take no cash."
}

func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
