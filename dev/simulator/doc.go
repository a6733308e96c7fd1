// Package simulator stands in, in developer mode, for everything Quittance talks
// to outside its own house: the mobile money operators, the card acquirer, the
// agencies' counters and ERPs and the integrators' webhook receivers. The mobile
// money operators speak their own public protocols, the acquirer the one that package
// connector/card asks for, so the connectors under test are the real connectors; the
// receivers are strict, so a fault shows here before it shows at an agency.
//
// One handler serves it all, each surface in a file of its own:
//
//	/mtn/…           mobile money A: MTN MoMo Collections   mtn.go
//	/airtel/…        mobile money B: Airtel Money           airtel.go
//	/card/…          the card acquirer and its page         card.go, cardpage.go
//	/control/counter an agency's counter, whose desk        counter.go
//	                 software calls the service's own API
//	/erp/{agency}/…  an agency's ERP                        erp.go
//	/inbox/{name}    a webhook receiver                     inbox.go
//	/control/…       what the payer, the ERP and the        control*.go
//	                 receiver do, and the clock
//
// A further operator is one more file: it puts its payments into the same book,
// whose magic numbers, timers, callbacks and controls it then shares; what gateways
// have in common beside it is in gateway.go.
//
// Everything is kept in memory, bounded, and gone when the process ends. What
// happens to a payment depends on nothing but the payer's number or card, the clock
// and /control.
package simulator
