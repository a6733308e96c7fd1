// Package verify is where anybody checks receipts: the key set at /.well-known/jwks.json (RFC
// 7517, RFC 8615).
package verify
