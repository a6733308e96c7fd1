// Package secret keeps Quittance's secret material: the master keys and what is
// derived from them, and values that must not reach a log.
//
// There is one list of master keys, newest first. Every use has a label ("webhook
// secrets", "callback addresses", …) and its own key, derived with HKDF-SHA256 (RFC
// 5869), so that a leaked key of one use opens nothing of another.
//
// # Keys of a role
//
// A role gets the derived keys of its uses only (Subset): a process that is taken opens and
// signs nothing of the others. What many roles verify and one makes is signed (Sign), so that
// those who verify hold no key that forges.
//
// # Rotation
//
// Put a new entry at the front of the list. Seal and MAC use the first key, Open
// finds the key by the id in the ciphertext, and VerifyMAC tries all keys. Mark the
// replaced entry ":open" when nobody uses its addresses and cookies any more, or at once
// if it leaked: it then opens old ciphertexts only. An entry may be removed when no
// ciphertext of it is left: `quittance secrets reseal` seals what is in Postgres again, and
// with --check says when the entry can go.
//
// # What never rotates
//
// ReferenceKey is the key of what is printed or must stay valid for ever. It is apart from
// the master keys, opens no ciphertext and signs nobody in. An installation that began
// before it had one has made its references with a permutation of its oldest master key. Its
// reference key carries that permutation, which tells nothing about the master key.
package secret
