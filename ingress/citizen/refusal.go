package citizen

import (
	"errors"
	"time"

	"quittance/checkout"
	"quittance/ingress/problem"
	"quittance/internal/form"
)

// The codes of refusals, beside those of the processors' answers.
const (
	CodeSignedOut     = "citizen.signed_out"
	CodeInvalid       = "citizen.code_invalid"
	CodeMailLimited   = "citizen.mail_limited"
	CodeLinkRefused   = "citizen.link_refused"
	CodeForeignOrigin = "citizen.foreign_origin"
	CodeLinkNotFound  = "citizen.link_not_found"
	CodeDueChanged    = string(checkout.CodeDueChanged)
	CodeDueInPayment  = "citizen.due_in_payment"
	// CodeSourceUnavailable: the agency's ERP does not tell what is owed.
	CodeSourceUnavailable   = string(checkout.CodeSourceUnavailable)
	CodePasskeyRefused      = "citizen.passkey_refused"
	CodePasskeyInvalid      = "citizen.passkey_invalid"
	CodePasskeyNotFound     = "citizen.passkey_not_found"
	CodePasskeysFull        = "citizen.passkeys_full"
	CodePasskeysUnavailable = "citizen.passkeys_unavailable"
	CodeSignInAgain         = "citizen.sign_in_again"
	codeUnavailable         = "generic.unavailable"
)

// Refusal says why an operation had no effect. Its texts for people are those of the page
// or, in the API, of the catalogue of problems.
type Refusal struct { //nolint:errname // it is one, and an answer
	Code string
	// RetryAfter is when the call may succeed; zero where waiting does not help.
	RetryAfter time.Duration
	// Faults are the fields at fault.
	Faults []form.Fault
	// Dues are those of the cart as the ERP states them now, for citizen.due_changed. One that
	// has gone is missing.
	Dues []Due
}

func refused(code string) *Refusal { return &Refusal{Code: code} }

// Error is the code. It has no value of the request.
func (r *Refusal) Error() string { return r.Code }

// RefusalOf returns the refusal that an error of an operation is. Another error means that
// the service cannot answer now.
func RefusalOf(err error) *Refusal {
	if r := (*Refusal)(nil); errors.As(err, &r) {
		return r
	}
	return refused(codeUnavailable)
}

// limited refuses a call until a time is over.
func limited(after time.Duration) *Refusal {
	return &Refusal{Code: string(checkout.CodeRateLimited), RetryAfter: after}
}

// problem is the refusal as the API answers it.
func (r *Refusal) problem() *problem.Problem {
	p := problem.New(r.Code)
	if len(r.Faults) > 0 {
		p = p.Naming(r.Faults)
	}
	if r.Code == string(checkout.CodeRateLimited) {
		p = p.Saying("Too many requests: Retry-After says when the next one may succeed.")
	}
	p.RetryAfter = max(p.RetryAfter, r.RetryAfter)
	return p
}
