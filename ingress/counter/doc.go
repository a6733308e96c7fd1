// Package counter is the counter of an agency: clerks take cash there for sessions
// that citizens bring by their payment_ref. It has an API for an agency's desk
// software below /api/v1/counter (openapi.yaml), and a page that needs no script at
// /counter. Both act for a clerk with a ck_ key of the registry.
//
// A look-up reserves the session for ten minutes, so that nothing else can pay it while
// the citizen counts the notes. Then the clerk puts the cash on record. That is never
// refused for being late, and it can be repeated safely: the reservation has an id, and
// the same id is the same cash. On the same day a second clerk can put on record that
// the cash was given back. The processors decide everything; the clerk's code is in the
// session and its events.
//
// # Who sees what
//
// A key opens the sessions of its agency and its mode, whichever application made them,
// and never the citizen's contact data. The look-ups of a key are counted over all
// instances. Entries are counted apart, so that look-ups never keep a clerk from putting
// cash on record. A key that looked up MaxUnknown unknown references finds nothing for the
// rest of the hour, so that nobody finds references by guessing; cash that it has reserved
// or recorded can still be put on record and given back.
//
// # Limits
//
// An agency may limit the total of a clerk's payment and the sum of a clerk's day
// (identity.Clerk). The command carries the limits, and the processor holds them: all
// commands of an agency are decided in one place, so the sum is exact over all instances.
// The same collection_id counts once. Cash that was given back still counts. Otherwise
// somebody with two stolen keys could put cash on record and give it back without end.
//
// # Dues that change
//
// Before a session of the citizen portal is reserved, the agency's ERP is asked again for its
// dues (erp.Dues.Recheck). A change cancels the session, and the clerk takes no cash. Cash that
// a clerk has taken is put on record without a question.
//
// # The page
//
// A clerk signs in with the key and gets a session on the server (identity.ClerkSession).
// The browser has its id in a sealed cookie (web.SignIn), so that made-up cookies cost no
// query. The session ends with the sign-out, after 12 hours, after 30 minutes without use,
// and as soon as the key is revoked; a copy of the cookie then opens nothing, on any
// instance. A key has at most ten sessions.
//
// A clerk can choose a PIN for the device (identity.RememberDevice). The browser then has the
// id of the device in a second sealed cookie, and the clerk signs in with code and PIN.
//
// The page of a payment leads to its receipt, the paper that citizens have elsewhere, without
// the payer's name.
//
// The list of the day and the report of a till print with a button, whose script is the only
// one of the page.
//
//	counter.go   configuration, and what API and page share
//	desk.go      what a clerk can do: reserve, take, release, reverse
//	refusal.go   why it was refused
//	api.go       the API; report.go reads its bodies
//	page.go      the page: addresses, sign-in, forms; scan.go reads references
//	pin.go       the page: devices and PINs
//	day.go       the page: the list of the day
//	paper.go     the page: the receipt as a file
//	till.go      the page: tills (internal/tills)
//	view.go      the page: what it shows; words.go has its texts
package counter
