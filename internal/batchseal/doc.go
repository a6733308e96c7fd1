// Package batchseal signs what leaves the service about disbursement batches: the tokens in the codes of certificates and payment
// advices, and exported results. Anybody verifies them with a JOSE library and the key set of [JWKS], which the service publishes.
//
// The keys derive from the master keys, one for each mode, by labels of their own. They are none of the keys of receipts: the pages
// of staff sign these papers, and whoever takes them over can sign no receipt of a citizen. A key is public as long as its master
// key is in the list; whoever keeps papers for longer keeps the key set with them.
//
// A token is a JWS in compact form (RFC 7515), signed with Ed25519 (RFC 8037). As with receipts, the header must be byte for byte the
// one that Sign writes for the key, so that no token chooses an algorithm. An export has a detached JWS (RFC 7515, appendix F) beside
// its file.
//
// A signature says what the service knew at the time of the paper. Money may come back later.
package batchseal
