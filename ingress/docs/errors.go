package docs

import (
	"bytes"
	"encoding/json"
	"fmt"

	"quittance/ingress/problem"
	"quittance/internal/form"
)

// explanation is the page of an error code.
type explanation struct {
	Code   string
	Status int
	// Title is that of the problem document; Meaning begins the page. What is not
	// the example's may have code in backticks.
	Title, Meaning string
	// Causes are likely ones, likeliest first; Mend is what to do, in order.
	Causes, Mend []string
	// Detail and Faults are those of the example.
	Detail string
	Faults []form.Fault
}

// Example is a problem document of the code, as it is answered.
func (e explanation) Example() (string, error) {
	response := problem.Problem{Status: e.Status, Code: e.Code, Title: e.Title, Detail: e.Detail, Faults: e.Faults}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(response.Document("4c1e6f7a-3f5e-4c65-9a55-0d8e3c0c1c7b"))
	if err != nil {
		return "", fmt.Errorf("writing the example of %s: %w", e.Code, err)
	}
	return b.String(), nil
}

// explanations are those of all codes, in the order of the schema ProblemCode.
var explanations = []explanation{
	{
		Code: "generic.malformed_json", Status: 400, Title: "Malformed JSON",
		Meaning: "The body is not one JSON object in UTF-8, or has a field twice. Nothing was done, and the `Idempotency-Key` is still unused.",
		Causes: []string{
			"The body is empty, cut short, or has something behind the JSON object.",
			"It was put together by hand: a comma after the last field, single quotes, a quote that is not escaped.",
			"It is encoded as Latin-1 or UTF-16.",
			"It is form data; the `Content-Type` is right but the body is not.",
		},
		Mend:   []string{"Let your JSON library write the body.", "Log what you send, without the key, and put it through a JSON checker."},
		Detail: "The body is not JSON.",
	},
	{
		Code: "generic.invalid_query", Status: 400, Title: "Invalid query",
		Meaning: "A query parameter is unknown, repeated, or against its rule. Unknown ones are refused so that a misspelt filter does not list everything.",
		Causes: []string{
			"A misspelt name, such as `orderId` for `order_id`.",
			"A parameter that belongs to another operation, such as `page` on a single session.",
			"The same parameter twice.",
			"A value out of its range: `page` from 1, `page_size` from 1 to 100.",
		},
		Mend:   []string{"Read `errors`: each entry names a parameter and what it must be.", "Compare with the parameters of the operation in the reference."},
		Detail: "page_size must be from 1 to 100.",
		Faults: []form.Fault{{Field: "page_size", Rule: "range", Message: "page_size must be from 1 to 100."}},
	},
	{
		Code: "generic.unauthorized", Status: 401, Title: "Unauthorized",
		Meaning: "The key is missing, unknown, revoked or malformed. The answer does not say which.",
		Causes: []string{
			"The header `Authorization` is missing, sent twice, or lost by a proxy or a redirect.",
			"It does not begin with Bearer and a space.",
			"The key was copied without its end, or with a line break.",
			"The key was revoked, or rotated away.",
			"The key belongs to another installation.",
			"When asking for a completion token: the `client_secret` is of another session, or no longer accepted.",
		},
		Mend: []string{
			"Send `Authorization: Bearer sk_test_… or sk_live_…`, once.",
			"Compare the key's beginning and end with what your secret store has; never log it whole.",
			"Ask the agency's administrator for a new key if it was revoked.",
		},
		Detail: "The API key is missing, unknown or revoked: send Authorization: Bearer sk_test_… or sk_live_….",
	},
	{
		Code: "generic.forbidden", Status: 403, Title: "Forbidden",
		Meaning: "The platform key is valid but is not granted the agency that `tenant_id` names.",
		Causes: []string{
			"`tenant_id` is the id of something else, such as the application.",
			"The agency has joined the platform, but the key has not been granted it yet.",
			"It is the agency's id in another installation.",
		},
		Mend:   []string{"Check `tenant_id` against the agencies of your platform.", "Ask the platform's administrator to grant the agency to the key."},
		Detail: "This platform key is not granted the agency that tenant_id names.",
	},
	{
		Code: "generic.not_found", Status: 404, Title: "Not found",
		Meaning: "There is nothing at this path.",
		Causes: []string{
			"`QUITTANCE_URL` already ends in `/api/v1` and the path has it again.",
			"A slash too many, or one at the end.",
			"An id that is empty, so that the path is another.",
		},
		Mend:   []string{"Compare the path with the reference."},
		Detail: "There is nothing at this path.",
	},
	{
		Code: "generic.method_not_allowed", Status: 405, Title: "Method not allowed",
		Meaning: "The path exists, but does not take this method. The header `Allow` names those it takes.",
		Causes: []string{
			"A redirect turned POST into GET: the address is http where it must be https.",
			"PUT, PATCH or DELETE: a session cannot be changed. Cancel it and create another.",
		},
		Mend:   []string{"Use a method that `Allow` names.", "Call the https address itself."},
		Detail: "This path does not take this method; the Allow header names those it takes.",
	},
	{
		Code: "generic.body_too_large", Status: 413, Title: "Body too large",
		Meaning: "The body is over 64 KiB. No request that keeps to the rules of its fields comes near.",
		Causes:  []string{"A document or a picture in `metadata`.", "A whole record of your own instead of the fields of the request."},
		Mend:    []string{"Send references, such as your case number, instead of documents."},
		Detail:  "The body is larger than 65536 bytes.",
	},
	{
		Code: "generic.unsupported_media_type", Status: 415, Title: "Unsupported media type",
		Meaning: "The body is not sent as `application/json`.",
		Causes: []string{
			"The header `Content-Type` is missing: `curl -d` sends a form unless told otherwise.",
			"A client library that sends forms by default.",
		},
		Mend:   []string{"Send `Content-Type: application/json`."},
		Detail: "The body must be JSON: send Content-Type: application/json.",
	},
	{
		Code: "generic.validation_failed", Status: 422, Title: "Validation failed",
		Meaning: "Fields are not as they must be. All faults of the request are told in one answer: `errors` names each field, the rule it breaks and what to do.",
		Causes: []string{
			"`amount` is a text, or has decimals: it is an integer in minor units.",
			"A field that does not exist, often a misspelt one.",
			"A `service_code` that is unknown or inactive in the agency's catalogue.",
			"A currency that no offer of the application takes.",
			"`tenant_id` is missing with a platform key, or is another agency's with an application key.",
			"`success_url` or `cancel_url` is not https; with test keys http will do.",
		},
		Mend: []string{
			"Mend every field that `errors` names, and send it again. What the request alone showed to be wrong has not used the `Idempotency-Key`.",
			"If the answer is the same though the body is another: faults of configuration are remembered with the key. Use a new `Idempotency-Key`.",
			"Show `message` to your developers, not to citizens.",
		},
		Detail: "2 fields are not as they must be; errors names each.",
		Faults: []form.Fault{
			{Field: "amount", Rule: "type", Message: "amount must be an integer in minor units of the currency."},
			{Field: "oder_id", Rule: "unknown", Message: "oder_id is not a field of this request."},
		},
	},
	{
		Code: "generic.rate_limited", Status: 429, Title: "Too many requests",
		Meaning: "The quota of this minute is used up: 30 creations for each application, over all its keys, or 600 reads for each key. The request did nothing and the `Idempotency-Key` is still unused.",
		Causes: []string{
			"A loop that asks for the state of many sessions: webhooks tell it without asking.",
			"A retry without a pause.",
			"A batch that creates sessions before anybody wants to pay.",
		},
		Mend: []string{
			"Wait as many seconds as `Retry-After` says, then send it again with the same `Idempotency-Key`.",
			"Watch `RateLimit`, which tells what is left, and slow down before it is nothing.",
			"Create a session when the citizen goes to pay.",
		},
		Detail: "The quota of this minute is used up; Retry-After says when the next begins.",
	},
	{
		Code: "generic.unavailable", Status: 503, Title: "Unavailable",
		Meaning: "The service could not answer in time. A creation or cancellation may have happened all the same.",
		Causes:  []string{"A restart or a fault on our side, mostly for seconds."},
		Mend: []string{
			"Send the same request again after `Retry-After`, a creation with the same `Idempotency-Key` and body: it happens once, whatever became of the first.",
			"A cancellation that is then answered 409 had happened.",
			"If it lasts, tell us the `request_id`.",
		},
		Detail: "The service cannot answer in time. Send the request again; a creation with the same Idempotency-Key.",
	},
	{
		Code: "idempotency.key_required", Status: 400, Title: "Idempotency-Key required",
		Meaning: "A creation must carry the header `Idempotency-Key`: it is what makes it safe to send again after a lost answer.",
		Causes:  []string{"The header is missing or empty.", "A proxy removes headers that it does not know."},
		Mend:    []string{"Make a new value, such as a UUID, for each new creation.", "Keep it with the order before you call, and send the same again when no answer comes."},
		Detail:  "The header Idempotency-Key is required: a new value, such as a UUID, for each new creation.",
	},
	{
		Code: "idempotency.key_invalid", Status: 400, Title: "Idempotency-Key invalid",
		Meaning: "The header `Idempotency-Key` must be sent once and have 1 to 255 printable ASCII characters, no space at either end.",
		Causes:  []string{"It holds an accent or a line break, often from a name in it.", "It is longer than 255 characters.", "It is sent twice."},
		Mend:    []string{"Use a UUID."},
		Detail:  "The header Idempotency-Key must be sent once and have 1 to 255 printable ASCII characters.",
	},
	{
		Code: "idempotency.key_reused", Status: 409, Title: "Idempotency-Key reused",
		Meaning: "This `Idempotency-Key` came before with another body. Keys are remembered for 30 days, for each application and mode.",
		Causes: []string{
			"A constant, or the `order_id` alone, is used as the key, and the order is tried again with another amount.",
			"The body holds something that changes with each try, such as a time.",
			"Two orders share a key by mistake.",
		},
		Mend: []string{
			"For a new request make a new key.",
			"For the same request send the very body of the first time: keep it with the key.",
			"To learn what the first became, list by its `order_id`.",
		},
		Detail: "This Idempotency-Key was used with another body: use a new key for a new request.",
	},
	{
		Code: "embed.origins_required", Status: 422, Title: "Embed origins required",
		Meaning: "`mode` is embedded, but no embed origins are configured for the key: no page would be allowed to show the checkout.",
		Causes: []string{
			"The application has no embed origins yet. With a platform key the platform's list counts, not the application's.",
			"`mode: embedded` was meant to be hosted.",
		},
		Mend: []string{
			"Have the https origins of your pages configured, such as `https://guichet.example`.",
			"Then send it again with a new `Idempotency-Key`: this answer is remembered with the old one.",
			"Or leave `mode` out, and send the citizen to `checkout_url`.",
		},
		Detail: "mode embedded needs embed origins, and none are configured for this key's scope.",
		Faults: []form.Fault{{Field: "mode", Rule: "origins_required", Message: "mode embedded needs embed origins, and none are configured for this key's scope."}},
	},
	{
		Code: "checkout.session_not_found", Status: 404, Title: "Session not found",
		Meaning: "There is no such session for this key. A session of another application is answered like one that does not exist.",
		Causes: []string{
			"A live session is asked for with a test key, or the other way round.",
			"The id is an `order_id`, a `payment_ref`, or cut short.",
			"The key belongs to another application.",
			"A platform key, and `tenant_id` names an agency that does not have it.",
		},
		Mend:   []string{"Use the mode's own key.", "List by `order_id` to find the session."},
		Detail: "There is no such session for this key. Test keys see test sessions only, live keys live ones.",
	},
	{
		Code: "checkout.session_ended", Status: 409, Title: "Session has ended",
		Meaning: "Only an open session can be cancelled; this one is completed, expired, failed or cancelled.",
		Causes: []string{
			"It was cancelled before: the call that cancels is answered 200, each later one 409.",
			"The citizen paid in the meantime.",
			"Its lifetime is over.",
		},
		Mend:   []string{"Read the session: `status` says how it ended.", "If it is completed, the case is paid: unlock it, or refund it your way."},
		Detail: "The session is completed; only an open one can be cancelled.",
	},
	{
		Code: "checkout.order_open", Status: 409, Title: "Order has an open session",
		Meaning: "The `order_id` has an open session, and an order has one at a time, so that it cannot be paid twice.",
		Causes: []string{
			"The citizen came back, and your page creates another session.",
			"A lost answer, and the creation was sent again with a new `Idempotency-Key`.",
			"Two orders have the same `order_id`.",
		},
		Mend: []string{
			"List by `order_id` and status `open`, and send the citizen to its `checkout_url`.",
			"To change the amount cancel that session, then create another with a new `Idempotency-Key`: this answer is remembered with the old one.",
		},
		Detail: "The order_id has an open session: let the citizen pay that one, or cancel it first.",
	},
	{
		Code: "checkout.order_paid", Status: 409, Title: "Order is paid",
		Meaning: "The `order_id` has been paid. An order is paid once, and that is remembered for ever.",
		Causes: []string{
			"The webhook has not been processed, and your system takes the case for unpaid.",
			"An `order_id` that comes round again, such as a number that starts anew each year.",
		},
		Mend: []string{
			"List by `order_id` and status `completed`, and unlock the case.",
			"For another payment use another `order_id`.",
		},
		Detail: "The order_id has been paid. Use another order_id for another payment.",
	},
	{
		Code: "checkout.not_completed", Status: 409, Title: "Session is not completed",
		Meaning: "A completion token is issued once the session is completed; it is not.",
		Causes:  []string{"The citizen has not paid yet, or the operator has not confirmed.", "The session expired, failed or was cancelled."},
		Mend:    []string{"Wait for `onComplete` of the embedded checkout, which brings the token.", "Your back end reads the session, or waits for the webhook."},
		Detail:  "The session is open; a completion token is issued once it is completed.",
	},
	{
		Code: "checkout.completion_token_not_found", Status: 404, Title: "Completion token not found",
		Meaning: "There is no such completion token for this key.",
		Causes: []string{
			"Something else was sent, such as the session's id or its `client_secret`.",
			"The token was cut short on its way from the page.",
			"A live token is verified with a test key, or the other way round.",
			"The token is of another application's session, or more than 30 days old.",
		},
		Mend:   []string{"Send `completion_token` from `onComplete` unchanged, with the key that created the session.", "List by `order_id`: that also tells whether it is paid."},
		Detail: "There is no such completion token for this key. Test keys see test sessions only, live keys live ones.",
	},
	{
		Code: "checkout.completion_token_expired", Status: 410, Title: "Completion token expired",
		Meaning: "The token was not verified within its ten minutes. That says nothing about the payment, which stands.",
		Causes:  []string{"The page was asleep, or your back end took the token from a queue.", "A page was opened again from history and sent its old token."},
		Mend:    []string{"List by `order_id`, or wait for the webhook.", "Verify tokens in the request that brings them."},
		Detail:  "The completion token was not used within its ten minutes: ask for the session by its order_id.",
	},
	{
		Code: "checkout.completion_token_consumed", Status: 409, Title: "Completion token consumed",
		Meaning: "The token was verified before, and its ten minutes are over. While they last, verifying again is answered 200 again.",
		Causes:  []string{"The page was loaded again and sent its old token.", "Somebody else has used the token."},
		Mend:    []string{"Trust what the first verification said, or list by `order_id`.", "Unlock a case once for each `order_id`, however often you are told."},
		Detail:  "The completion token was used, and its ten minutes are over: ask for the session by its order_id.",
	},
}
