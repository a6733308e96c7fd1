package ministry

import (
	"time"

	"quittance/checkout"
	"quittance/ingress/problem"
	"quittance/internal/form"
)

func unauthorized() *problem.Problem { return problem.New("generic.unauthorized") }

func forbiddenAgency() *problem.Problem { return problem.New("generic.forbidden") }

func notFound() *problem.Problem { return problem.New(checkout.CodeSessionNotFound) }

func secretRefused() *problem.Problem {
	return unauthorized().Saying("The client_secret is missing, belongs to another session, or is no longer accepted: send Authorization: Bearer chs_secret_….")
}

// rateLimited is the problem of a quota that is used up. The quota is nil when a
// flood is shed that no quota of the contract counts.
func rateLimited(quota *problem.Quota, after time.Duration) *problem.Problem {
	p := problem.New(checkout.CodeRateLimited)
	p.Quota, p.RetryAfter = quota, max(p.RetryAfter, after)
	return p
}

// refusal is the problem of a processor's answer other than ok.
func refusal(a checkout.Answer) *problem.Problem {
	switch a.Code { //nolint:exhaustive // the catalogue has the usual detail of the others
	case checkout.CodeSessionEnded:
		return problem.New(a.Code).Saying("The session is %s; only an open one can be cancelled.", a.Session.Status)
	case checkout.CodeNotCompleted:
		return problem.New(a.Code).Saying("The session is %s; a completion token is issued once it is completed.", a.Session.Status)
	case checkout.CodeRateLimited:
		return rateLimited(nil, a.RetryAfter)
	case checkout.CodeSecretRefused:
		return secretRefused()
	case checkout.CodeOrderOpen, checkout.CodeOrderPaid:
		return taken(a)
	}
	if len(a.Faults) == 0 {
		return problem.New(a.Code)
	}
	faults := make([]form.Fault, len(a.Faults))
	code := a.Faults[0].Code
	for i, f := range a.Faults {
		faults[i] = form.Fault{Field: f.Field, Rule: f.Rule, Message: f.Message}
		if f.Code != code {
			code = checkout.CodeValidationFailed
		}
	}
	return problem.New(code).Naming(faults)
}

// taken is the problem of an order that another session has. An answer that an earlier release
// remembered does not name the session.
func taken(a checkout.Answer) *problem.Problem {
	p := problem.New(a.Code)
	switch {
	case a.Session == nil:
	case a.Code == checkout.CodeOrderPaid:
		p.SessionID = a.Session.ID
		p.Detail = "The order_id has been paid, by the session " + a.Session.ID + ". Use another order_id for another payment."
	default:
		p.SessionID = a.Session.ID
		p.Detail = "The order_id has an open session, " + a.Session.ID + ": let the citizen pay that one, or cancel it first."
	}
	return p
}
