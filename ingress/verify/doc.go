// Package verify is where anybody checks receipts, on the host of the checkout:
//
//	/.well-known/jwks.json    the public keys (RFC 7517, RFC 8615)
//	/.well-known/batches-jwks.json   those of certificates and payment advices of batches (internal/batchseal)
//	/q                        a page that checks a receipt in the browser, also without network
//	                          after the first visit; a form does the same without a script
//	/q/status/{jti}           whether the payment of a receipt stands: paid, reversed, unknown; with the
//	                          digest of what the receipt says of it, whether the record agrees
//	/q/reversed/{kid}.json    the reversed payments among the receipts of a key, signed with it
//
// The token of a receipt is in the fragment of the address of its QR code, which browsers do
// not send: checking a receipt tells the service the id of its transaction, and by a digest whether the receipt
// says of the payment what the record says, not more. Only two
// tokens are sent: those of revoked keys, because only the record proves them, and those that a
// browser without Ed25519 cannot check itself.
//
// The code of a paper of a batch leads to the same page. It is checked by its signature alone: the service that answers here knows
// no batches, so the page says as of when the paper is true, and that the agency knows more.
//
// A jti is a UUID of version 7, 74 bits of which are random, and the calls without a key of a client are
// limited, so that nobody finds payments by trying; what the answer to a hit tells is that some
// payment was made.
//
// The scripts are made from script/ by `go generate ./sdk`.
package verify
