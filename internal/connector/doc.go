// Package connector is the one way to operators. A Connector speaks one
// operator's protocol; package connectortest is the suite that every one passes.
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
// Cash at an agency's counter is a collection as well, but has no Connector: there
// is no operator to ask. The clerk comes to the service (ingress/cash), and a look-up
// reserves, a payment decides within the session's own transaction. The simulated
// counter plays the same thirteen outcomes as the operators.
package connector
