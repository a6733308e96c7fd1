package counter

import (
	"cmp"
	"errors"
	"time"

	"quittance/checkout"
	"quittance/ingress/problem"
)

// Codes of this surface, beside those of the processors' answers.
const (
	codeMistyped    = "counter.reference_mistyped"
	codeAmbiguous   = "counter.reference_ambiguous"
	codeTaken       = "counter.taken"
	codeDueChanged  = "counter.due_changed"
	codeNoERP       = "counter.erp_unavailable"
	codeGuessed     = "counter.too_many_unknown_references"
	codeUnavailable = "generic.unavailable"
)

// refusal says why a clerk's request had no effect, or that its outcome is unknown.
// The API answers it as a problem, the page says it in the clerk's language.
type refusal struct {
	code string
	// session is the session as it is now, where it is the reason.
	session *checkout.Session
	quota   *problem.Quota
	// limits are those of the clerk.
	limits checkout.Limits
	// until is the time until the request can succeed, for codeGuessed.
	until time.Duration
}

func refused[C ~string](code C) *refusal { return &refusal{code: string(code)} }

func (r *refusal) Error() string { return r.code }

// asRefusal returns the refusal that an error is. Any other error means that the
// service cannot answer.
func asRefusal(err error) *refusal {
	if r := (*refusal)(nil); errors.As(err, &r) {
		return r
	}
	return refused(codeUnavailable)
}

// status is the HTTP status of the refusal.
func (r *refusal) status() int { return problem.New(r.code).Status }

// after is the time until the request can succeed, 0 if it is not known.
func (r *refusal) after() time.Duration {
	if r.quota != nil {
		return max(r.quota.Reset, r.until)
	}
	return r.until
}

// problem is the refusal for desk software, which shows the detail to its clerk.
func (r *refusal) problem(now time.Time) *problem.Problem {
	p := problem.New(r.code)
	p.Quota, p.RetryAfter = r.quota, max(p.RetryAfter, r.after())
	switch r.code {
	case codeUnavailable:
		return p.Saying("The service cannot answer in time. The cash may be on record: repeat the same call with the same collection_id; it counts once.")
	case string(checkout.CodeSessionNotFound):
		return p.Saying("Your agency has no payment with this reference. Test keys see test payments only, live keys live ones.")
	case string(checkout.CodeOrderUnderReview):
		return p.Saying("Money for the same order has already arrived: take no cash, and send the citizen to the agency's office.")
	case string(checkout.CodeDueInPayment):
		return p.Saying("Another session is paying the same due, or has paid it: take no cash.")
	case string(checkout.CodeSessionEnded):
		return p.Saying("%s", cmp.Or(ended[r.session.Status], "This payment has ended: take no cash."))
	case string(checkout.CodeReserved):
		if r.session == nil || !held(*r.session, now) {
			return p.Saying("Another clerk holds this payment.")
		}
		c := r.session.Collection
		return p.Saying("Clerk %s holds this payment until %s, or until the clerk releases it.", c.Clerk, timestamp(c.WindowEndsAt))
	case string(checkout.CodePaymentLimit):
		return p.Saying("This clerk may take at most %d XAF for one payment. Nothing was put on record: take no cash, or hand it back. Another counter can take it, or the agency changes the limit.", r.limits.Payment)
	case string(checkout.CodeDayLimit):
		return p.Saying("This clerk may take at most %d XAF a day, and this payment would exceed it. Nothing was put on record: take no cash, or hand it back. Another counter can take it today, or the agency changes the limit.", r.limits.Day)
	case string(checkout.CodeTotalChanged):
		if r.session != nil {
			if offer, ok := r.session.Offer(checkout.OfferCashAgency); ok {
				return p.Saying("The total must be the due amount and the fee, %d %s. Nothing was put on record.", r.session.Amount+offer.Fee, r.session.Currency)
			}
		}
		return p.Saying("The total must be the due amount and the fee: look the payment up again.")
	}
	return p
}

// ended are the details for sessions that have ended.
var ended = map[checkout.Status]string{
	checkout.StatusCompleted: "This payment is paid already: take no cash.",
	checkout.StatusExpired:   "This payment has expired: take no cash; the citizen begins a new one.",
	checkout.StatusCancelled: "This payment was cancelled: take no cash; the citizen begins a new one.",
	checkout.StatusFailed:    "This payment has failed: take no cash; the citizen begins a new one.",
}

func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
