// Package contract holds the service against what its integrators were promised:
// TestContract each statement of the contract's ministry sections, TestExamples and
// TestQuickstarts what the documentation shows, TestSchemathesis the OpenAPI file,
// TestBadInput what is refused and how, TestBadDays what goes wrong on the way of a
// payment, TestCounter the payments at a counter. They run `quittance-dev up`.
package contract
