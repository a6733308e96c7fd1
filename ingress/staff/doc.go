// Package staff is the frame of the portals of staff: sign-in, session, navigation, search box and refusals. The
// portals themselves are sets of pages in packages of their own ([Part]), such as ingress/operations.
//
//	GET  /              leads to /work
//	GET  /sign-in       asks for a passkey; ?next=… is where the person wanted to go
//	POST /sign-in/begin, /sign-in/finish   what its script calls
//	GET  /sign-in/issuer   leads to the identity provider of the person's group, after the passkey
//	GET  /sign-in/issuers/{issuer}   the provider sends the browser back; POST …/logout takes its logout tokens
//	POST /sign-out
//	GET  /join          an invited person makes two passkeys and reads eight digits; the link's secret is behind the #
//	POST /join/accept, /join/issuer, /join/passkey/begin, /join/passkey
//	GET  /sessions      the person's sessions; POST /sessions/end ends the others
//	GET  /assets/…      style and script
//
// # Who may
//
// A part declares its pages as a list of [Route]s. Each names the permission that it asks for, so that no handler
// forgets to ask: the frame reads the session and the person in Postgres, asks identity.Acting.May, and only then
// calls the handler. Somebody without a session is led to the sign-in; a person without the permission reads 403,
// before anything is looked up. A page of the service's people is refused to an agency's.
//
// # The session
//
// The browser has 256 random bits in a cookie with SameSite=Strict, over https with the prefix __Host-. A request that
// comes from another site, such as a link in a message, therefore brings no cookie: it is answered with a page that
// loads the same address again. What the script of a page asks by itself has the header [HeaderAsks], and prolongs no
// session. Pages are not stored, and load anew when the browser shows one from its memory.
//
// # Without a script
//
// Signing in and approving need the script, because a passkey does. Reading and proposing do not.
//
//	staff.go     configuration, parts, routes
//	visit.go     one request: session, permission, view
//	signin.go    sign-in, sign-out, sessions
//	issuer.go    the identity provider of a group
//	join.go      passkeys of invited people
//	refusal.go   the words of refusals
//	words.go     the texts of the frame
package staff
