// Package pages serves the checkout page to citizens: hosted at /c/{session_id}, and
// in an integrator's frame at /embed/{session_id}.
//
//	GET  /c/{id}          the session's state: a step, waiting, or the end
//	       ?step=offers     choose an offer (skipped when there is only one)
//	       ?step=phone&offer=momo
//	       ?step=review&offer=card
//	       ?step=cash&offer=cash_agency
//	POST /c/{id}/offer    an offer is chosen      → 303 to its step
//	POST /c/{id}/phone    a number is entered     → 200, the review
//	POST /c/{id}/pay      the review is confirmed → 303 to /c/{id}, or next_action as JSON
//	GET  /c/{id}/cancel   the question before it
//	POST /c/{id}/cancel   the citizen cancels     → 303 to /c/{id}
//	GET  /c/{id}/live     the session's version, as a stream or once (package watch)
//	GET  /c/assets/…      scripts
//
// The same paths exist under /embed/{id}, for the holder of the session's
// client_secret. The frame's first GET has the secret in the query, as the contract
// says; later requests have it in the Authorization header. See embed.go.
//
// The package decides nothing. It reads sessions behind the barrier of the read model,
// sends what the citizen does to the processors as a command, and after each command
// sends the browser to the address that shows the result. A phone number is in forms
// only, never in an address, a log or a cookie; the pages have no cookies. That is why
// the POST of the number answers with the review itself.
//
// # Confirming once
//
// The review has an attempt, a random UUID. The id of the collection is derived from
// session and attempt (collectionID). A double click, a reload, or going back to
// confirm again therefore confirms the same collection. A forged form cannot name the
// collection of another session, whose payment would then look like this session's.
//
// # Posts from other sites
//
// Posts from other sites are refused (web.SameSite). This is a second line of defence:
// the pages do not act on cookies, so another site can do no more than anybody who
// knows the address.
package pages
