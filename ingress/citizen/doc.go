// Package citizen is what a taxpayer uses: sign-in, links to references, dues and payments.
//
// A Service has the operations in Go types, and every refusal is a *Refusal with a code of
// the catalogue of problems. The API below {base_url}/citizen turns JSON into its operations
// (openapi.yaml). Pages call the same operations.
//
// # Who sees what
//
// A person signs in with a code that is sent to a phone or a mailbox (internal/citizens).
// Every address gets the same answer in the same time: the answer does not wait for the
// message. What an account sees needs a link to a reference, and a link needs a proof. An
// agency's ERP is never asked about a reference before that.
//
// # Nobody pays from an old answer
//
// A list may be up to ten seconds old; a checkout always asks the ERP again, and compares the
// outstanding amount of each due with what the citizen was shown. The processor decides about
// claims (checkout.Claim), so that a due is in one payment at a time; the states in a list
// are for display.
//
// # Cookies
//
// The session is on the server. Its secret is in the cookie __Host-quittance_citizen, and a
// copy opens nothing after the sign-out. A second cookie names the browser: a code verifies
// only in the browser that asked for it. Both are Secure, HttpOnly and SameSite=Lax. A
// developer's installation is served over http, where the prefix __Host- and Secure would
// make a browser refuse them; they are left out there.
//
// A call that changes something must come from our own origin (OwnOrigin). A table of all
// routes decides that, so that a new route cannot forget it.
//
//	service.go   configuration, and what all operations share
//	signin.go    sign-in, session, sign-out
//	passkey.go   passkeys, and signing in with one
//	link.go      who I am, and the references that I see
//	dues.go      what is owed, and what payments make of it
//	checkout.go  a cart becomes a session
//	payments.go  what was paid
//	refusal.go   why an operation was refused
//	browser.go   cookies, and the rule of origin
//	page.go      the pages at /portal: signing in; page_*.go the others, words.go their texts
//	api.go       the API; answer.go reads its queries and has its answers, passkeyapi.go the passkeys
package citizen
