// Package ministry is the checkout API for the back ends of integrators: create, get,
// list, cancel and verify sessions with an sk_ key (contract, "Endpoints"; decisions
// §§ 1-4, 9). It also has the path where an embedded page gets its completion token. It
// adds configuration to a request, refuses what the request alone shows to be wrong,
// and leaves every decision to the processors.
//
// openapi.yaml is the source. internal/api is generated from it (`make generate`):
// types, routes, and the reading of parameters. Before the generated code reads a
// request, guard checks it against its operation: the sender, the quota of reads, all
// faults of the query at once, and that the body is one JSON value. Bodies are decoded
// here (request.go), because generated code would stop at the first fault. Every error
// becomes a problem document (fail).
//
// A request that may become a command must pass flood first. The processor keeps the
// exact quota of creations; flood keeps a caller that is far beyond it out of Kafka.
package ministry
