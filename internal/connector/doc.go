// Package connector is the one way to those who take money: mobile operators, a card
// acquirer, the counters of agencies. Every offer has a Connector, which reads what
// they report; operators that are asked for the money have a Collector. Package
// connectortest is the suite that every one passes.
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
// A report arrives at ingress/callbacks, where its address and signature prove it and
// what it leaves open is asked; a clerk's at ingress/counter, where a key proves it and
// the clerk is answered what became of the cash.
package connector
