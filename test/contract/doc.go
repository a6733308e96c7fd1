// Package contract compares the service with what integrators were promised. TestContract
// checks each statement of the contract's ministry sections and each example of the
// OpenAPI file. TestSchemathesis sends requests made from that file, TestQuickstarts runs
// the programs of the documentation. TestBadInput checks refusals, TestBadDays faults
// during a payment, and TestCounter payments at a counter. The tests run
// `quittance-dev up`.
package contract
