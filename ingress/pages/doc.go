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
//	GET  /c/{id}/notice   the payment notice of an open session, to print; notice.pdf is the file
//	GET  /c/{id}/receipt  the receipt of a paid due; receipt.pdf is the file
//	       ?due=…           the transaction of the due, of a session with several
//	POST /c/{id}/send     the receipt is sent to an address → 303 to /c/{id}
//	GET  /c/{id}/live     the session's version, as a stream or once (package watch)
//	GET  /c/assets/…      scripts
//
// The same paths exist under /embed/{id}, for the holder of the session's
// client_secret. The frame's first GET has the secret in the query, as the contract
// says; later requests have it in the Authorization header. See embed.go.
//
// # Paying by reference
//
// The same steps, without the cancel, are under /p/{payment_ref}, for people who have a slip
// with the reference and nothing else; /p has the form to type it. A reference is printed and
// read aloud, so it is no key. The pages show what a slip shows: agency, service, amount, and
// the last four characters of a subject of at least eight. They neither show nor lead to the
// session's id, the customer, order and description, nor the integrator's addresses, which
// often name the order. The operator gets no description, and an acquirer's page leads back to
// /p (Collect.ByReference).
//
// Who paid, how, and the receipt are shown to the browser that confirmed the payment. A sealed
// cookie says so for 24 hours; it names the collection, whose id nobody else can know. Others
// see that the reference is being paid, paid, under review or closed.
//
// Whoever knows a reference can confirm with any number. So a refusal does not end the session
// (checkout.Refusal); the browser that confirmed reads why and can pay again, and after some
// refusals the processor makes payments by the reference wait.
//
// A client looks up 30 references a minute, and all clients together 600 unknown ones, over
// all instances; above these, only clients that looked up none in the hour go on (package
// quota). Another sealed cookie names the references that the browser
// has found, so that a journey counts once.
//
// The package decides nothing. It reads sessions behind the barrier of the read model,
// sends what the citizen does to the processors as a command, and after each command
// sends the browser to the address that shows the result. A phone number is in forms
// only, never in an address, a log or a cookie; only the pages under /p have cookies. That is why
// the POST of the number answers with the review itself.
//
// # Confirming once
//
// The review has an attempt, a random UUID. The id of the collection is derived from
// session and attempt (collectionID). A double click, a reload, or going back to
// confirm again therefore confirms the same collection. A forged form cannot name the
// collection of another session, whose payment would then look like this session's.
//
// # A receipt that is sent
//
// For seven days after the payment its page sends the receipt to a phone number or an e-mail
// address, or to the number that paid, which the page names masked and no form has. The message is
// that of package payment. It has the session's address and says what was paid. So the form is not
// under /p, and the number of somebody who paid by reference is not offered. An address gets the
// receipt once, and package quota has the limits.
//
// # Dues that change
//
// Before a session of the citizen portal is collected, the agency's ERP is asked again for its
// dues (erp.Dues.Recheck). A change cancels the session with checkout.ByDueChange, which the
// processor refuses once money is being collected, and the page leads to the citizen's dues.
//
// # Posts from other sites
//
// Posts from other sites are refused (web.SameSite). This is a second line of defence:
// no post acts on a cookie, so another site can do no more than anybody who
// knows the address.
package pages
