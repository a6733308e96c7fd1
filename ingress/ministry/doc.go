// Package ministry is the checkout API of integrators' back ends: create, get,
// list, cancel and verify sessions with an sk_ key (contract, "Endpoints";
// decisions §§ 1-4, 9), and the path on which an embedded page gets its
// completion token. It resolves configuration, refuses what the request alone
// shows to be wrong, and leaves every decision to the processors.
//
// openapi.yaml is the source. internal/api is generated from it: types, routes,
// and the reading of parameters (`make generate`). Beside that, guard holds each
// request against its operation before the generated code reads it: who sends it,
// the quota of reads, the query with all its faults at once, the body as one JSON
// value. Bodies are decoded here (request.go), as generated code would stop at
// the first fault. Errors are problem documents, whoever finds them (fail).
//
// A request that may become a command passes flood first: the exact quota of
// creations is the processor's, and what goes far beyond it must not reach Kafka.
package ministry
