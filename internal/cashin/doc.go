// Package cashin holds the credentials of the deprecated cash-in surface: the pair of
// apiKey and secretKey of an application, and the access tokens that the pair generates
// (contract, "Deprecated cash-in API").
//
// An application has at most one pair in force, of one mode. Pairs and tokens are stored as
// SHA-256 hashes. A token is read from Postgres at every request, together with its pair
// and its application, so that a revocation, a rotation and a deactivation count at every
// instance at once.
//
// What the surface may do for an application (origins, webhook address, providers) is
// configuration: package registry. The tables are those of migration 28.
package cashin
