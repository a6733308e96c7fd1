// Package identity knows who acts: integrators' applications and the platform by
// their API keys, and the clerks of agencies' counters by theirs. All keys are
// made, revoked and rotated in one way.
//
// It is read together with the registry: a key and its application or agency are
// always of one revision. A revocation reaches every instance within a second.
// While Postgres is away the keys that were last read go on to open.
//
// A key is stored as its SHA-256. Its secret is shown once, when it is made.
package identity
