// Package receipts signs and verifies the tokens of receipts. A token is a JWS in compact
// form (RFC 7515), signed with Ed25519 (RFC 8037). It stands in the QR code of a receipt,
// in the fragment of an address, so that reading it tells nobody. Anybody can verify it
// with a JOSE library and the key set of [Keys.JWKS].
//
// A key is chosen by its kid. The header names an algorithm, but the algorithm never
// chooses anything: a header that is not byte for byte the one that [Signer.Sign] writes
// for the key is forged. So "none", a MAC made with the public key, embedded keys and
// critical extensions have no code that could accept them.
//
// A [Store] has the keys of the database. The private parts are sealed with a master key. Of
// each mode one key signs, chosen by the time of the payment. [RotateKeys] announces the next
// one 30 days before it signs. [RevokeKey] takes a stolen key out of the key set; a paper of
// its time is still made with it, and [Claims.Agrees] with the record or proves nothing.
//
// A signature says what was paid. It does not say that the payment still stands: a
// reversal comes later, see Verified.
package receipts
