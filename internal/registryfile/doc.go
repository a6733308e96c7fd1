// Package registryfile applies registry files: YAML files in which operators describe
// agencies, applications, keys, clerks and endpoints.
//
// deploy/dev/registry.yaml shows the format. Unknown fields are faults. A refusal names
// all faults. What a file omits stays as it is: objects that the file does not name, and
// omitted fields of the agencies, applications, clerks, services, keys and endpoints that
// it names. Fee rows, mappings, ERP settings, connector accounts and cash-in access have
// no such fields: the file replaces the whole value. A file never undoes a revocation, a
// suspension or a rotation.
//
// In developer mode the address http://127.0.0.1:8081 in a file means the simulators.
// Each installation reads it as the address at which its own simulators listen, so that
// one file and one data folder serve every port. Write http://[::1]:8081 for another
// receiver on that port.
package registryfile
