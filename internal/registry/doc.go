// Package registry knows who uses the service and how: agencies with their
// catalogue, fees, ERP and merchant accounts, integrators' applications with
// their keys and webhook endpoints, and the platform.
//
// It lies in Postgres. Seed applies a registry file to it in one transaction;
// Registry keeps all of it in memory, follows changes within a second, and goes
// on with what it last read while Postgres is away, so that sessions can be
// created then. The nouns are plain values; slices and pointers in them belong to
// the snapshot and are read only.
//
// Keys that others present to us are stored as SHA-256. Secrets that we present
// or sign with are sealed (internal/secret), each bound to its row.
//
// # Registry files
//
// The format is that of deploy/dev/registry.yaml: unknown fields are refused and
// all faults are named at once. What a file omits stays: an agency, application, clerk,
// service, key or endpoint that it does not name is untouched, and so is an
// omitted field of one that it does. Fee rows, mappings, ERP settings, connector
// accounts and cash-in access are values: naming one replaces it whole. A
// revocation, suspension or rotation is never undone.
//
// In developer mode http://127.0.0.1:8081 in a file means "the simulators": it is
// stored as such and read as wherever the simulators of the installation listen,
// so that one file and one data folder serve every port. A receiver of one's own
// on that port is written http://[::1]:8081.
package registry
