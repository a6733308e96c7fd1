// Package session is the checkout processor: it reads checkout.commands, lets
// package checkout decide, and writes what follows in the transaction of
// package processors/runtime: state, events, collection requests, notifications
// and replies. It calls nothing but Kafka.
//
//	command ─► Process ─► checkout.Decide ─► state entries   (checkout.state)
//	                                       ├► events          (checkout.events)
//	                                       ├► effects         (collections.requests, webhooks, erp.confirmations)
//	                                       └► answer          (checkout.replies)
package session
