package problem

import (
	"slices"

	"quittance/checkout"
	"quittance/internal/form"
)

// API is a set of APIs that answer with problems.
type API uint8

// The APIs. A test holds each one's openapi.yaml against the catalogue.
const (
	Ministry API = 1 << iota
	Counter
)

// Entry is one error code: how it is answered, and what its page under
// /docs/errors/ says. Texts may have code in backticks, Detail and Faults excepted.
type Entry struct {
	// In are the APIs that answer the code.
	In     API
	Code   string
	Status int
	// Title is the same in every problem of the code. Detail is the usual detail; a
	// handler that knows more says more (Problem.Saying). Faults belong to the example
	// on the page.
	Title, Detail string
	Faults        []form.Fault
	// Meaning begins the page. Causes are the likely ones, likeliest first. Mend is
	// what to do, in order.
	Meaning      string
	Causes, Mend []string
}

// Catalogue returns the codes that these APIs answer, in the order of their pages.
func Catalogue(in API) []Entry {
	return slices.DeleteFunc(slices.Clone(catalogue), func(e Entry) bool { return e.In&in == 0 })
}

// New returns the problem of a code, as the catalogue has it. A code that the
// catalogue does not have is answered as generic.unavailable.
func New[C ~string](code C) *Problem {
	i := slices.IndexFunc(catalogue, func(e Entry) bool { return e.Code == string(code) })
	if i < 0 {
		return New("generic.unavailable")
	}
	e := catalogue[i]
	p := &Problem{Status: e.Status, Code: e.Code, Title: e.Title, Detail: e.Detail}
	if e.Status == 429 || e.Status == 503 {
		p.RetryAfter = shortestRetry
	}
	return p
}

var catalogue = []Entry{
	{
		In: Ministry | Counter, Code: "generic.malformed_json", Status: 400, Title: "Malformed JSON",
		Detail:  "The body is not one JSON object.",
		Meaning: "The body is not one JSON object in UTF-8, or an object in it has a field twice. Nothing was done, and the `Idempotency-Key` is still unused.",
		Causes: []string{
			"The body is empty, is cut short, or has something after the JSON object.",
			"The body was put together by hand: a comma after the last field, single quotes, a quote without its escape.",
			"The body is encoded as Latin-1 or UTF-16.",
			"The body is form data, although the `Content-Type` says JSON.",
		},
		Mend: []string{"Let your JSON library write the body.", "Log what you send, without the key, and put it through a JSON checker."},
	},
	{
		In: Ministry, Code: "generic.invalid_query", Status: 400, Title: "Invalid query",
		Detail:  "page_size must be from 1 to 100.",
		Faults:  []form.Fault{{Field: "page_size", Rule: "range", Message: "page_size must be from 1 to 100."}},
		Meaning: "A query parameter is unknown, is repeated, or breaks its rule. Unknown parameters are refused so that a misspelt filter does not list everything.",
		Causes: []string{
			"A misspelt name, such as `orderId` for `order_id`.",
			"A parameter of another operation, such as `page` on a single session.",
			"The same parameter twice.",
			"A value out of its range: `page` starts at 1, `page_size` goes from 1 to 100.",
		},
		Mend: []string{"Read `errors`: each entry names a parameter and its rule.", "Compare with the parameters of the operation in the reference."},
	},
	{
		In: Ministry | Counter, Code: "generic.unauthorized", Status: 401, Title: "Unauthorized",
		Detail:  "The API key is missing, unknown or revoked: send Authorization: Bearer sk_test_… or sk_live_….",
		Meaning: "The key is missing, unknown, revoked or malformed. The answer does not say which.",
		Causes: []string{
			"The header `Authorization` is missing, is sent twice, or was removed by a proxy or a redirect.",
			"The header does not begin with Bearer and a space.",
			"The key was copied without its end, or with a line break.",
			"The key was revoked or replaced.",
			"The key belongs to another installation.",
			"The request asks for a completion token, and the `client_secret` belongs to another session or is no longer accepted.",
		},
		Mend: []string{
			"Send `Authorization: Bearer sk_test_… or sk_live_…` once; at a counter the key begins with `ck_`.",
			"Compare the beginning and the end of the key with those in your secret store. Never log the whole key.",
			"If the key was revoked, ask the agency's administrator for a new one.",
		},
	},
	{
		In: Ministry, Code: "generic.forbidden", Status: 403, Title: "Forbidden",
		Detail:  "This platform key is not granted the agency that tenant_id names.",
		Meaning: "The platform key is valid, but it is not granted the agency that `tenant_id` names.",
		Causes: []string{
			"`tenant_id` is the id of something else, such as the application.",
			"The agency has joined the platform, but the key is not granted the agency yet.",
			"`tenant_id` is the agency's id in another installation.",
		},
		Mend: []string{"Check `tenant_id` against the agencies of your platform.", "Ask the platform's administrator to grant the agency to the key."},
	},
	{
		In: Ministry | Counter, Code: "generic.not_found", Status: 404, Title: "Not found",
		Detail:  "This path does not exist.",
		Meaning: "The path does not exist.",
		Causes: []string{
			"`QUITTANCE_URL` already ends in `/api/v1`, and the path repeats it.",
			"The path has one slash too many, or ends in a slash.",
			"An id in the path is empty.",
		},
		Mend: []string{"Compare the path with the reference."},
	},
	{
		In: Ministry | Counter, Code: "generic.method_not_allowed", Status: 405, Title: "Method not allowed",
		Detail:  "This path does not take this method; the Allow header names the methods that it takes.",
		Meaning: "The path exists, but it does not take this method. The header `Allow` names the methods that it takes.",
		Causes: []string{
			"A redirect turned POST into GET, because the address is http where it must be https.",
			"PUT, PATCH or DELETE: a session cannot be changed. Cancel it and create another.",
		},
		Mend: []string{"Use a method that `Allow` names.", "Call the https address directly."},
	},
	{
		In: Ministry | Counter, Code: "generic.body_too_large", Status: 413, Title: "Body too large",
		Detail:  "The body is larger than 65536 bytes.",
		Meaning: "The body is larger than 64 KiB. A request that keeps the rules of its fields is much smaller.",
		Causes:  []string{"A document or a picture in `metadata`.", "A whole record of your own instead of the fields of the request."},
		Mend:    []string{"Send references, such as your case number, instead of documents."},
	},
	{
		In: Ministry | Counter, Code: "generic.unsupported_media_type", Status: 415, Title: "Unsupported media type",
		Detail:  "The body must be JSON: send Content-Type: application/json.",
		Meaning: "The body is not sent as `application/json`.",
		Causes: []string{
			"The header `Content-Type` is missing: by default `curl -d` sends a form.",
			"The client library sends forms by default.",
		},
		Mend: []string{"Send `Content-Type: application/json`."},
	},
	{
		In: Ministry | Counter, Code: "generic.validation_failed", Status: 422, Title: "Validation failed",
		Detail: "2 fields are at fault; errors names each of them.",
		Faults: []form.Fault{
			{Field: "amount", Rule: "type", Message: "amount must be an integer in minor units of the currency."},
			{Field: "oder_id", Rule: "unknown", Message: "oder_id is not a field of this request."},
		},
		Meaning: "At least one field breaks its rule. One answer names all faults of the request: `errors` has each field, the rule that it breaks and what to do.",
		Causes: []string{
			"`amount` is a text or has decimals: it must be an integer in minor units.",
			"The request has a field that does not exist, often a misspelt one.",
			"`service_code` is unknown or inactive in the agency's catalogue.",
			"No offer of the application takes the currency.",
			"`tenant_id` is missing with a platform key, or names another agency with an application key.",
			"`success_url` or `cancel_url` is not https; test keys may use http.",
		},
		Mend: []string{
			"Mend every field that `errors` names, and send the request again. If the request alone shows the fault, the `Idempotency-Key` is still unused.",
			"If another body gets the same answer: faults of configuration are remembered with the key. Use a new `Idempotency-Key`.",
			"Show `message` to your developers, not to citizens.",
		},
	},
	{
		In: Ministry | Counter, Code: "generic.rate_limited", Status: 429, Title: "Too many requests",
		Detail:  "The quota of this minute is used up; Retry-After says when the next minute begins.",
		Meaning: "The quota of this minute is used up: 30 creations for each application, over all its keys, or 600 reads for each key; at a counter 60 look-ups and 60 entries for each key. The request did nothing, and the `Idempotency-Key` is still unused.",
		Causes: []string{
			"A loop asks for the state of many sessions: webhooks report it without asking.",
			"A program retries without a pause.",
			"A batch creates sessions before anybody wants to pay.",
		},
		Mend: []string{
			"Wait as many seconds as `Retry-After` says, then send the request again with the same `Idempotency-Key`.",
			"Watch `RateLimit`, which says what is left, and slow down before it reaches zero.",
			"Create a session when the citizen goes to pay.",
		},
	},
	{
		In: Ministry | Counter, Code: "generic.unavailable", Status: 503, Title: "Unavailable",
		Detail:  "The service cannot answer in time. Send the request again; a creation with the same Idempotency-Key.",
		Meaning: "The service could not answer in time. The request may still have been carried out.",
		Causes:  []string{"A restart or a fault on our side, mostly for seconds."},
		Mend: []string{
			"Send the same request again after `Retry-After`. A creation with the same `Idempotency-Key` and body, and cash with the same `collection_id`, count once, whatever happened to the first request.",
			"If a repeated cancellation is answered 409, the first one was carried out.",
			"If it lasts, tell us the `request_id`.",
		},
	},
	{
		In: Ministry, Code: "idempotency.key_required", Status: 400, Title: "Idempotency-Key required",
		Detail:  "The header Idempotency-Key is required: a new value, such as a UUID, for each new creation.",
		Meaning: "A creation must carry the header `Idempotency-Key`, so that it can be sent again safely when the answer is lost.",
		Causes:  []string{"The header is missing or empty.", "A proxy removes headers that it does not know."},
		Mend:    []string{"Make a new value, such as a UUID, for each new creation.", "Keep it with the order before you call, and send the same value again when no answer comes."},
	},
	{
		In: Ministry, Code: "idempotency.key_invalid", Status: 400, Title: "Idempotency-Key invalid",
		Detail:  "The header Idempotency-Key must be sent once and have 1 to 255 printable ASCII characters.",
		Meaning: "The header `Idempotency-Key` must be sent once and have 1 to 255 printable ASCII characters, without a space at either end.",
		Causes:  []string{"The value has an accent or a line break, often from a name.", "The value is longer than 255 characters.", "The header is sent twice."},
		Mend:    []string{"Use a UUID."},
	},
	{
		In: Ministry, Code: string(checkout.CodeKeyReused), Status: 409, Title: "Idempotency-Key reused",
		Detail:  "This Idempotency-Key was used with another body: use a new key for a new request.",
		Meaning: "This `Idempotency-Key` was used before with another body. Keys are remembered for 30 days, for each application and mode.",
		Causes: []string{
			"The key is a constant or the `order_id` alone, and the order is tried again with another amount.",
			"The body has something that changes with each try, such as a time.",
			"Two orders share a key by mistake.",
		},
		Mend: []string{
			"Make a new key for a new request.",
			"Send exactly the same body for the same request: keep the body with the key.",
			"To learn what became of the first request, list by its `order_id`.",
		},
	},
	{
		In: Ministry, Code: string(checkout.CodeOriginsRequired), Status: 422, Title: "Embed origins required",
		Detail:  "mode embedded needs embed origins, and none are configured for this key's scope.",
		Faults:  []form.Fault{{Field: "mode", Rule: "origins_required", Message: "mode embedded needs embed origins, and none are configured for this key's scope."}},
		Meaning: "`mode` is embedded, but no embed origins are configured for the key: no page would be allowed to show the checkout.",
		Causes: []string{
			"The application has no embed origins yet. With a platform key the platform's list counts, not the application's.",
			"`mode` is embedded by mistake; the session should be hosted.",
		},
		Mend: []string{
			"Have the https origins of your pages configured, such as `https://guichet.example`.",
			"Then send the request again with a new `Idempotency-Key`: this answer is remembered with the old key.",
			"Or leave `mode` out, and send the citizen to `checkout_url`.",
		},
	},
	{
		In: Ministry | Counter, Code: string(checkout.CodeSessionNotFound), Status: 404, Title: "Session not found",
		Detail:  "There is no such session for this key. Test keys see test sessions only, live keys live ones.",
		Meaning: "There is no such session for this key. A session of another application or agency is answered like one that does not exist.",
		Causes: []string{
			"A test key asks for a live session, or a live key for a test session.",
			"The id is an `order_id`, a `payment_ref`, or is cut short.",
			"The key belongs to another application.",
			"`tenant_id`, sent with a platform key, names an agency that does not have the session.",
			"At a counter: the `payment_ref` belongs to another agency.",
		},
		Mend: []string{"Use the key of the session's mode.", "List by `order_id` to find the session."},
	},
	{
		In: Ministry | Counter, Code: string(checkout.CodeSessionEnded), Status: 409, Title: "Session has ended",
		Detail:  "The session is completed; only an open one can be cancelled.",
		Meaning: "The session has ended: it is completed, expired, failed or cancelled. Only an open session can be cancelled, or reserved at a counter.",
		Causes: []string{
			"The session was cancelled before: the call that cancels is answered 200, each later one 409.",
			"The citizen paid in the meantime.",
			"The session's lifetime is over.",
		},
		Mend: []string{"Read the session: `status` says how it ended.", "If it is completed, the case is paid: unlock the case, or refund it your way.", "At a counter: take no cash."},
	},
	{
		In: Ministry, Code: string(checkout.CodeOrderOpen), Status: 409, Title: "Order has an open session",
		Detail:  "The order_id has an open session: let the citizen pay that one, or cancel it first.",
		Meaning: "The `order_id` has an open session. An order has one open session at a time, so that it cannot be paid twice.",
		Causes: []string{
			"The citizen came back, and your page creates another session.",
			"An answer was lost, and the creation was sent again with a new `Idempotency-Key`.",
			"Two orders have the same `order_id`.",
		},
		Mend: []string{
			"List by `order_id` and status `open`, and send the citizen to its `checkout_url`.",
			"To change the amount, cancel that session, then create another with a new `Idempotency-Key`: this answer is remembered with the old key.",
		},
	},
	{
		In: Ministry | Counter, Code: string(checkout.CodeOrderPaid), Status: 409, Title: "Order is paid",
		Detail:  "The order_id has been paid. Use another order_id for another payment.",
		Meaning: "The order has been paid. An order is paid once, and that is remembered for ever.",
		Causes: []string{
			"Your system has not processed the webhook and still treats the case as unpaid.",
			"Your `order_id` repeats, such as a number that starts again each year.",
			"At a counter: money for the same order arrived, though too late for its session.",
		},
		Mend: []string{
			"List by `order_id` and status `completed`, and unlock the case.",
			"Use another `order_id` for another payment.",
			"At a counter: take no cash, and send the citizen to the agency's office.",
		},
	},
	{
		In: Ministry, Code: string(checkout.CodeNotCompleted), Status: 409, Title: "Session is not completed",
		Detail:  "The session is open; a completion token is issued once it is completed.",
		Meaning: "A completion token is issued only for a completed session, and this session is not completed.",
		Causes:  []string{"The citizen has not paid yet, or the operator has not confirmed.", "The session expired, failed or was cancelled."},
		Mend:    []string{"Wait for `onComplete` of the embedded checkout, which brings the token.", "Let your back end read the session or wait for the webhook."},
	},
	{
		In: Ministry, Code: string(checkout.CodeTokenNotFound), Status: 404, Title: "Completion token not found",
		Detail:  "There is no such completion token for this key. Test keys see test sessions only, live keys live ones.",
		Meaning: "There is no such completion token for this key.",
		Causes: []string{
			"Something else was sent, such as the session's id or its `client_secret`.",
			"The token was cut short on its way from the page.",
			"A test key verifies a live token, or a live key a test token.",
			"The token belongs to another application's session, or is more than 30 days old.",
		},
		Mend: []string{"Send `completion_token` from `onComplete` unchanged, with the key that created the session.", "List by `order_id`: the list also says whether the session is paid."},
	},
	{
		In: Ministry, Code: string(checkout.CodeTokenExpired), Status: 410, Title: "Completion token expired",
		Detail:  "The completion token was not used within its ten minutes: ask for the session by its order_id.",
		Meaning: "The token was not verified within its ten minutes. The payment itself is not affected.",
		Causes:  []string{"The page was asleep, or your back end took the token from a queue.", "The citizen opened the page again from the history, and it sent its old token."},
		Mend:    []string{"List by `order_id`, or wait for the webhook.", "Verify a token in the request that brings it."},
	},
	{
		In: Ministry, Code: string(checkout.CodeTokenConsumed), Status: 409, Title: "Completion token consumed",
		Detail:  "The completion token was used, and its ten minutes are over: ask for the session by its order_id.",
		Meaning: "The token was verified before, and its ten minutes are over. Within the ten minutes each verification is answered 200.",
		Causes:  []string{"The page was loaded again and sent its old token.", "Somebody else has used the token."},
		Mend:    []string{"Rely on the first verification, or list by `order_id`.", "Unlock a case once for each `order_id`, however many confirmations arrive."},
	},
	{
		In: Counter, Code: "counter.reference_mistyped", Status: 422, Title: "Reference mistyped",
		Detail:  "The check digits of payment_ref are wrong: read all 16 digits again from the citizen's page.",
		Meaning: "The check digits of `payment_ref` are wrong. No payment was looked up.",
		Causes:  []string{"A digit was misread or mistyped.", "The number is another one: of a notice, a card or a phone."},
		Mend:    []string{"Read all 16 digits again from the citizen's page."},
	},
	{
		In: Counter, Code: string(checkout.CodeReserved), Status: 409, Title: "Held by another clerk",
		Detail:  "Clerk c02 holds this payment until 2026-11-21T10:24:05.000Z, or until the clerk releases it.",
		Meaning: "Another clerk has reserved the payment and may be taking the cash now.",
		Causes:  []string{"The citizen gave the reference at two desks.", "A clerk reserved the payment and did not release it."},
		Mend:    []string{"Take no cash.", "Wait until the time in `detail`, or ask the other clerk to release the payment; then look it up again."},
	},
	{
		In: Counter, Code: "counter.taken", Status: 409, Title: "Cash is taken",
		Detail:  "This cash is on record as taken, so the reservation cannot be released; a second clerk can reverse it today.",
		Meaning: "The reservation cannot be released: its cash is on record.",
		Causes:  []string{"The cash was put on record, but the answer was lost."},
		Mend:    []string{"Give the citizen the receipt.", "If it was a mistake, a second clerk can reverse it on the same day."},
	},
	{
		In: Counter, Code: string(checkout.CodeNotTaken), Status: 409, Title: "Not taken",
		Detail:  "No cash with this collection_id is on record for this payment, so there is none to reverse.",
		Meaning: "No cash with this `collection_id` is on record as the payment of this reference.",
		Causes:  []string{"The `collection_id` belongs to another reservation.", "The cash became an operator case, which the agency's office settles.", "The citizen paid by other means."},
		Mend:    []string{"Read the payment with `GET payments/{payment_ref}` and use its `collection_id`."},
	},
	{
		In: Counter, Code: string(checkout.CodeTooMany), Status: 409, Title: "Too many entries",
		Detail:  "A hundred payments in cash are on record for this reference beside its own, and no more are accepted. A program makes a new collection_id for each try: it must use the one of the reservation.",
		Meaning: "A hundred payments in cash are on record for this reference beside its own, each as an operator case. No more are accepted.",
		Causes:  []string{"A program makes a new `collection_id` for each try."},
		Mend:    []string{"Use the `collection_id` of the reservation, and repeat the same call.", "Ask the agency's office to look at the cases."},
	},
	{
		In: Counter, Code: string(checkout.CodeSecondPerson), Status: 409, Title: "Second person required",
		Detail:  "The clerk who took the cash cannot reverse it: another clerk has to.",
		Meaning: "The clerk who took the cash cannot put on record that it was given back.",
		Causes:  []string{"The reversal was sent with the key of the clerk who took the cash."},
		Mend:    []string{"Let another clerk sign in and reverse it, on the same day."},
	},
	{
		In: Counter, Code: string(checkout.CodeReversalLate), Status: 409, Title: "Day is over",
		Detail:  "The day on which the cash was taken is over: the agency's office gives it back.",
		Meaning: "Cash can be reversed at the counter only on the day on which it was taken, in Brazzaville time.",
		Causes:  []string{"That day is over."},
		Mend:    []string{"Send the citizen to the agency's office."},
	},
	{
		In: Counter, Code: string(checkout.CodeInFlight), Status: 409, Title: "Being paid",
		Detail:  "The citizen is paying by other means, or this collection_id is not that of the current reservation: take no cash, and look the payment up again in a few minutes.",
		Meaning: "The citizen is paying by other means, or another reservation than yours is the current one.",
		Causes:  []string{"The citizen has confirmed a mobile money or card payment on their page."},
		Mend:    []string{"Take no cash.", "Look the payment up again in a few minutes."},
	},
	{
		In: Counter, Code: string(checkout.CodePreviousUndecided), Status: 409, Title: "Earlier payment undecided",
		Detail:  "An earlier payment of the same order may still succeed: take no cash, and look the payment up again in a minute.",
		Meaning: "An earlier session of the same order ended before its operator decided: its money may still arrive.",
		Causes:  []string{"A mobile money payment was not answered in time."},
		Mend:    []string{"Take no cash.", "Look the payment up again in a minute: the service is asking the operator."},
	},
	{
		In: Counter, Code: string(checkout.CodeOfferUnknown), Status: 409, Title: "No cash",
		Detail:  "This payment cannot be made in cash: take no cash. Cash is possible in XAF only, where the integrator offers it.",
		Meaning: "The payment cannot be made in cash.",
		Causes:  []string{"The integrator does not offer cash.", "The amount is not in XAF."},
		Mend:    []string{"Ask the citizen to choose another means on their page."},
	},
	{
		In: Counter, Code: string(checkout.CodeTotalChanged), Status: 409, Title: "Other total",
		Detail:  "The total must be the due amount and the fee, 5050 XAF. Nothing was put on record.",
		Meaning: "`total` is not the sum of the due amount and the fee. Nothing was put on record.",
		Causes:  []string{"The amount was typed instead of taken from the reservation."},
		Mend:    []string{"Send the `total` of the reservation."},
	},
}
