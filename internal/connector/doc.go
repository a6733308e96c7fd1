// Package connector defines how the service talks to operators: those who are asked
// for money, such as mobile operators and card acquirers. Each operator has a package
// below this one; test/connectors is the suite that every one of them passes.
//
// Three rules hold for all of them:
//
//   - A collection has one id, which the operator is given. A second request with the
//     same id asks for the same money, never for more.
//   - Only a definite refusal is a refusal. A time-out, an incomplete answer or a
//     state that the operator calls pending, delayed or ambiguous decides nothing: the
//     connector returns an error or a pending outcome, and the service asks about the
//     payment later (contract decisions § 6).
//   - Errors and logs hold no numbers, no keys and no prose of the operator, only the
//     operator's own codes.
//
// Reports arrive at ingress/callbacks, which verifies their address and signature, and
// asks the operator about what a report leaves open. Cash at a counter has no
// operator: ingress/counter reads what clerks report.
//
// # Adding an operator
//
// Write a package below this one that exports a Registration, and its conformance
// test. Add its line to internal/connector/all, a row to checkout.Offers unless the
// offer exists, the offer's name in both languages to checkout/page, its simulator to
// dev/simulator, and the offer to the enumeration of ingress/ministry/openapi.yaml. The
// registry reads, seals and opens its accounts, and callbacks, collect sink and pages
// use it, without a change. test/connectors/fifth_test.go is an example in one file.
package connector
