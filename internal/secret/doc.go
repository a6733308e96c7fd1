// Package secret keeps Quittance's secret material: the master keys and what is
// derived from them, and values that must not reach a log.
//
// There is one list of master keys, newest first. Every use names itself with a
// label ("webhook secrets", "callback addresses", …) and gets a key of its own,
// derived with HKDF-SHA256 (RFC 5869): a key that leaks from one use opens
// nothing of another.
//
// # Rotation
//
// A new entry goes to the front of the list. Seal and MAC use the first key,
// Open finds the key by the id that the ciphertext carries, VerifyMAC tries all
// of them. An entry may be dropped once nothing that it sealed is left, except
// the last one: PermutationKey is derived from it and must stay what it was, or
// references already given out would be given out again. Who has to retire a
// last entry that leaked keeps it in the last place and puts a new one in front:
// it then only permutes counters, which keeps no secret worth having.
package secret
