// Package registry holds who uses the service and how: agencies with their
// catalogue, fees, ERP and merchant accounts; integrators' applications with their
// webhook endpoints; and the platform.
//
// Postgres stores the registry. Package registryfile applies registry files to it.
// A Registry keeps all of it in memory and follows changes within a second. While
// Postgres is away the Registry keeps its last snapshot, so that sessions can still be
// created. The nouns are plain values. Their slices and pointers belong to the snapshot
// and are read only.
//
// Keys that others present to the service are stored as SHA-256. Secrets that the
// service presents or signs with are sealed (internal/secret), each bound to its row.
package registry
