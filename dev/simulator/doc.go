// Package simulator plays, for developers and tests, every system that Quittance talks
// to: the mobile money operators, the card acquirer, the agencies' counters and ERPs,
// the integrators' webhook receivers, and the providers
// that carry messages to people. The operators speak the protocols that the
// connectors speak, so the connectors under test are the real ones. The receivers are
// strict, so a fault shows here before it shows at an agency.
//
// One handler serves it all, each surface in a file of its own:
//
//	/mtn/…           mobile money A: MTN MoMo Collections   mtn.go
//	/airtel/…        mobile money B: Airtel Money           airtel.go
//	/card/…          the card acquirer and its page         card.go, cardpage.go
//	/control/counter an agency's counter, whose desk        counter.go
//	                 software calls the service's own API
//	/erp/{agency}/…  an agency's ERP                        erp.go
//	/idp/{name}/…    identity providers of staff            idp.go
//	/inbox/{name}    a webhook receiver                     inbox.go
//	/sms/…           two providers of SMS                   sms.go
//	SMTP             a mail server                          mail.go
//	/inbox/sms, mail what both have accepted                messages.go
//	/control/bank/credit  transfers to a bank account, transfers.go
//	/control/statements  statements of operators, acquirer, statements.go
//	                 counters and a bank, and their faults
//	/control/…       what the payer, the ERP and the        control*.go
//	                 receiver do, and the clock
//
// A further operator is one more file and one line in operators (operator.go). It puts
// its payments into the same book and shares its magic numbers (payer.go), timers,
// callbacks and controls; gateway.go has what gateways share.
//
// Everything is kept in memory, bounded, and lost when the process ends. What becomes
// of a payment depends only on the payer's number or card, the clock and /control.
package simulator
