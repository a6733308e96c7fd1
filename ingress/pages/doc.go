// Package pages serves the checkout page to citizens: hosted, /c/{session_id}, and
// in an integrator's frame, /embed/{session_id}.
//
//	GET  /c/{id}          where the session stands: a step, waiting, or the end
//	       ?step=offers     choose an offer (skipped when there is only one)
//	       ?step=phone&offer=momo
//	       ?step=review&offer=card
//	       ?step=cash&offer=cash_agency
//	POST /c/{id}/offer    an offer is chosen      → 303 to its step
//	POST /c/{id}/phone    a number is entered     → 200, the review
//	POST /c/{id}/pay      the review is confirmed → 303 to /c/{id}, or next_action as JSON
//	POST /c/{id}/cancel   the citizen's cancel    → 303 to /c/{id}
//	GET  /c/{id}/live     the session's version, as a stream or once
//	GET  /c/assets/…      style and scripts
//
// The same under /embed/{id}, for the holder of the session's client_secret: the
// frame's first GET has it in the query, as the contract says, everything after
// in the Authorization header. See embed.go.
//
// The package decides nothing. What a page shows is read behind the barrier of
// the read model, what a citizen wants goes to the processors as a command, and
// after each command the browser is sent back to the address that shows what
// is. A number is in forms only: never in an address, a log or a cookie, of
// which there are none. That is why the review answers the POST itself.
//
// # Confirming once
//
// The review carries an attempt, a random UUID, and the id of the collection is
// derived from session and attempt (collectionID). A double click, a reload, or
// going back to confirm again therefore confirms the same collection, and a
// forged form cannot name the collection of another session: a payment that
// exists already would look like this session's.
//
// # Cross-site posts
//
// Posts from other sites are refused by what the browser says of them
// (http.CrossOriginProtection). That is a second line: nothing here acts on
// cookies, so another site can do no more than anyone who knows the address.
package pages
