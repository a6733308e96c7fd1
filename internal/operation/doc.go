// Package operation holds what all operations on nouns share: the Actor who asks for an
// operation, its record in the audit table (Record) and the reason of a refusal (Error).
//
// An operation is a change that a person asks for: a key is revoked, an endpoint is
// suspended, a delivery is retried. The package of the noun makes the change and its
// record in one transaction. The command line and the portals call the same operations.
// Each of them has its own words for a refusal.
package operation
