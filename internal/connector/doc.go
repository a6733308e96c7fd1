// Package connector defines how the service talks to operators, such as mobile operators
// and card acquirers, which collect money from payers, and of which some pay people. Each
// operator has a package below this one. All of them pass the suite test/connectors and
// embed a Base.
//
// These rules hold for all connectors:
//
//   - A collection has one id, and the operator receives it. A second request with the
//     same id asks for the same money, never for more.
//   - Only a definite refusal is a refusal. A time-out, an incomplete answer or a state
//     that the operator calls pending, delayed or ambiguous decides nothing. The connector
//     returns an error or an undecided outcome, and the service asks about the payment
//     later (contract docs/design/decisions.md § 6).
//   - A payout has the same rules, read from the other side: "the id is known" is our own
//     request and no refusal, and a refusal counts only if an enquiry agrees (PayoutConnector).
//   - Errors and logs hold no numbers, no keys and no prose of the operator, only the
//     operator's codes.
//
// Reports arrive at ingress/callbacks. It verifies their address and signature and asks
// the operator when a report does not decide. Cash at a counter has no operator:
// ingress/counter reads the reports of clerks.
//
// # Adding an operator
//
// Write a package below this one that exports a Registration, and its conformance
// test. Add it to internal/connector/all, with the offers that name it: one, several, or
// none. Add its simulator to dev/simulator. A new offer is a row of checkout.Offers; the
// tests of that package name the other places that list offers. The registry, the
// callbacks, the collect sink and the pages need no change.
// test/connectors/fifth_test.go is an example in one file.
package connector
