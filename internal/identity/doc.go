// Package identity holds who acts: applications and the platform with their API keys,
// the clerks of agencies' counters, and the staff who resolve operator cases, with their
// keys. All keys are created, revoked and rotated in the same way.
//
// Staff belong to an agency or to operations. While such a group has fewer than two members
// in force, whoever runs the installation makes its members on the command line. After
// that one member proposes a new one and another approves. The same holds when revocations
// leave fewer than two, because nobody could approve a new one then (contract decisions
// § 14 speaks of the first two only).
//
// People of the pages have roles and passkeys, and join by invitations that another person confirms. Once two of a group can
// decide about its people on a page, two do, and the command line does not (docs/design/staff.md). What they ask for on pages is
// stored as requests, which another role carries out (Book).
//
// Identities are read together with the registry, so that a key and its application or
// agency have the same revision. A revocation reaches every instance within a second.
// While Postgres is away the last keys that were read stay valid for 15 minutes. After that
// nobody is authenticated, because a revocation may be missing.
//
// A clerk who signs in to the page of the counter has a session in Postgres. Each request
// reads it, so that a sign-out counts on every instance at once.
//
// A key is stored as its SHA-256. Its secret is shown once, when it is created.
package identity
