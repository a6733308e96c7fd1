// Package checkout is the checkout processor. It reads checkout.commands and has package
// checkout decide them. It writes the results in the transaction of package
// processors/runtime: state, events, collection requests, notifications and replies. It
// calls no service except Kafka.
//
//	command ─► Process ─► checkout.Decide ─► state entries   (checkout.state)
//	                                       ├► events          (checkout.events)
//	                                       ├► effects         (collections.requests, webhooks, erp.confirmations)
//	                                       └► answer          (checkout.replies)
package checkout
