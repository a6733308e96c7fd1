// Package connector defines how the service talks to operators: those who are asked
// for money, such as mobile operators and card acquirers. Each operator has a package
// below this one; test/connectors is the suite that every one of them passes.
//
// Three rules hold for all of them:
//
//   - A collection has one id, told to the operator. Asking again with the same
//     id is asking for the same money, never for more.
//   - Only a definite refusal is a refusal. A time-out, a torn answer, a state
//     that the operator calls pending, delayed or ambiguous is no decision: it
//     comes back as an error or as pending, and the payment is asked about later
//     (contract decisions § 6).
//   - Numbers, keys and what an operator wrote in prose stand in no error and no
//     log; only the operator's own codes do.
//
// Reports arrive at ingress/callbacks. Their address and signature prove them; what
// they leave open is asked. Cash at a counter has no operator: ingress/counter reads
// what clerks report.
package connector
