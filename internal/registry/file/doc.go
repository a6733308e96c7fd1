// Package file applies registry files: the YAML in which operators write down
// agencies, applications, keys, clerks and endpoints.
//
// The format is that of deploy/dev/registry.yaml: unknown fields are refused and
// all faults are named at once. What a file omits stays: an agency, application,
// clerk, service, key or endpoint that it does not name is untouched, and so is an
// omitted field of one that it does. Fee rows, mappings, ERP settings, connector
// accounts and cash-in access are values: naming one replaces it whole. A
// revocation, suspension or rotation is never undone.
//
// In developer mode http://127.0.0.1:8081 in a file means "the simulators": it is
// stored as such and read as wherever the simulators of the installation listen,
// so that one file and one data folder serve every port. A receiver of one's own
// on that port is written http://[::1]:8081.
package file
