// Package operation holds what every operation on a noun shares: who acts
// (Actor), what is recorded of it (Record) and why it is refused (Error).
//
// An operation is a change that a person asks for: a key is revoked, an endpoint
// is suspended, a delivery is retried. The packages of the nouns carry it out, in
// one transaction with its record in the audit table. The command line and the
// portals call the same operations; each says in its own words why one was refused.
package operation
