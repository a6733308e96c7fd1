// Package cash is the counter of an agency: clerks take cash there for sessions
// that citizens bring by their payment_ref. It has an API for an agency's desk
// software, below /api/v1/counter (openapi.yaml), and a plain page that needs no
// script, /counter. Both speak for a clerk with a ck_ key of the registry.
//
// A look-up reserves the session for ten minutes, so that nothing else pays it
// while the citizen counts notes; then the cash is taken and put on record, which
// is never refused for being late, and safe to say again: what was reserved has an
// id, and the same id is the same cash. A second clerk can put on record, on the
// same day, that it was given back. Everything is decided by the processors; the
// clerk's code stands in the session and its events.
//
// # Who sees what
//
// A key opens the sessions of its agency and its mode, whichever application made
// them, and never the citizen's contact data. Look-ups are counted for each key
// over all instances, so that references cannot be tried out; what puts cash on
// record is counted apart, so that look-ups never stand in its way.
//
// # The page
//
// A clerk signs in with the key itself. What the browser then holds is a cookie
// with a sealed reference to the key, its times of sign-in and last use: it ends
// after 12 hours, after 30 minutes without use, and as soon as the key is revoked.
// Posts from other sites are refused.
package counter
