// Package identity holds who acts: applications and the platform with their API keys,
// and the clerks of agencies' counters with their keys. All keys are created, revoked
// and rotated in the same way.
//
// Identities are read together with the registry, so that a key and its application or
// agency have the same revision. A revocation reaches every instance within a second.
// While Postgres is away the last keys that were read stay valid.
//
// A key is stored as its SHA-256. Its secret is shown once, when it is created.
package identity
