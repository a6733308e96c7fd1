package ministry

import (
	"fmt"
	"net/http"
	"time"

	"quittance/checkout"
	"quittance/ingress/problem"
	"quittance/internal/form"
)

func unauthorized() *problem.Problem {
	return &problem.Problem{
		Status: http.StatusUnauthorized, Code: "generic.unauthorized", Title: "Unauthorized",
		Detail: "The API key is missing, unknown or revoked: send Authorization: Bearer sk_test_… or sk_live_….",
	}
}

func secretRefused() *problem.Problem {
	p := unauthorized()
	p.Detail = "The client_secret is missing, not this session's, or no longer accepted: send Authorization: Bearer chs_secret_…."
	return p
}

func forbiddenAgency() *problem.Problem {
	return &problem.Problem{
		Status: http.StatusForbidden, Code: "generic.forbidden", Title: "Forbidden",
		Detail: "This platform key is not granted the agency that tenant_id names.",
	}
}

func notFound() *problem.Problem {
	return &problem.Problem{
		Status: http.StatusNotFound, Code: string(checkout.CodeSessionNotFound), Title: "Session not found",
		Detail: "There is no such session for this key. Test keys see test sessions only, live keys live ones.",
	}
}

func notFoundPath() *problem.Problem {
	return &problem.Problem{Status: http.StatusNotFound, Code: "generic.not_found", Title: "Not found", Detail: "There is nothing at this path."}
}

func methodNotAllowed() *problem.Problem {
	return &problem.Problem{
		Status: http.StatusMethodNotAllowed, Code: "generic.method_not_allowed", Title: "Method not allowed",
		Detail: "This path does not take this method; the Allow header names those it takes.",
	}
}

func unavailable() *problem.Problem {
	return &problem.Problem{
		Status: http.StatusServiceUnavailable, Code: "generic.unavailable", Title: "Unavailable",
		Detail:     "The service cannot answer in time. Send the request again; a creation with the same Idempotency-Key.",
		RetryAfter: time.Second,
	}
}

func badQuery(faults []form.Fault) *problem.Problem {
	p := problem.Invalid(faults)
	p.Status, p.Code, p.Title = http.StatusBadRequest, "generic.invalid_query", "Invalid query"
	return p
}

// rateLimited tells a quota that is used up; quota may be nil, when a flood is
// shed that no quota of the contract counts.
func rateLimited(quota *problem.Quota, after time.Duration) *problem.Problem {
	return &problem.Problem{
		Status: http.StatusTooManyRequests, Code: string(checkout.CodeRateLimited), Title: "Too many requests", RetryAfter: max(after, time.Second),
		Detail: "The quota of this minute is used up; Retry-After says when the next begins.", Quota: quota,
	}
}

func keyRequired() *problem.Problem {
	return &problem.Problem{
		Status: http.StatusBadRequest, Code: "idempotency.key_required", Title: "Idempotency-Key required",
		Detail: "The header Idempotency-Key is required: a new value, such as a UUID, for each new creation.",
	}
}

func keyInvalid() *problem.Problem {
	return &problem.Problem{
		Status: http.StatusBadRequest, Code: "idempotency.key_invalid", Title: "Idempotency-Key invalid",
		Detail: "The header Idempotency-Key must be sent once and have 1 to 255 printable ASCII characters.",
	}
}

func tokenNotFound() *problem.Problem {
	return &problem.Problem{
		Status: http.StatusNotFound, Code: string(checkout.CodeTokenNotFound), Title: "Completion token not found",
		Detail: "There is no such completion token for this key. Test keys see test sessions only, live keys live ones.",
	}
}

// refusal is what an answer that is not ok is told as.
func refusal(a checkout.Answer) *problem.Problem {
	conflict := func(title, detail string) *problem.Problem {
		return &problem.Problem{Status: http.StatusConflict, Code: string(a.Code), Title: title, Detail: detail}
	}
	switch a.Code { //nolint:exhaustive // the others are not answers to this surface's commands
	case checkout.CodeSessionNotFound:
		return notFound()
	case checkout.CodeSessionEnded:
		return conflict("Session has ended", fmt.Sprintf("The session is %s; only an open one can be cancelled.", a.Session.Status))
	case checkout.CodeOrderOpen:
		return conflict("Order has an open session", "The order_id has an open session: let the citizen pay that one, or cancel it first.")
	case checkout.CodeOrderPaid:
		return conflict("Order is paid", "The order_id has been paid. Use another order_id for another payment.")
	case checkout.CodeKeyReused:
		return conflict("Idempotency-Key reused", "This Idempotency-Key was used with another body: use a new key for a new request.")
	case checkout.CodeRateLimited:
		return rateLimited(nil, a.RetryAfter)
	case checkout.CodeNotCompleted:
		return conflict("Session is not completed", fmt.Sprintf("The session is %s; a completion token is issued once it is completed.", a.Session.Status))
	case checkout.CodeSecretRefused:
		return secretRefused()
	case checkout.CodeTokenNotFound:
		return tokenNotFound()
	case checkout.CodeTokenConsumed:
		return conflict("Completion token consumed", "The completion token was used, and its ten minutes are over: ask for the session by its order_id.")
	case checkout.CodeTokenExpired:
		return &problem.Problem{
			Status: http.StatusGone, Code: string(a.Code), Title: "Completion token expired",
			Detail: "The completion token was not used within its ten minutes: ask for the session by its order_id.",
		}
	}
	if len(a.Faults) > 0 {
		faults := make([]form.Fault, len(a.Faults))
		code := a.Faults[0].Code
		for i, f := range a.Faults {
			faults[i] = form.Fault{Field: f.Field, Rule: f.Rule, Message: f.Message}
			if f.Code != code {
				code = checkout.CodeValidationFailed
			}
		}
		p := problem.Invalid(faults)
		p.Code = string(code)
		if code == checkout.CodeOriginsRequired {
			p.Title = "Embed origins required"
		}
		return p
	}
	return unavailable()
}
