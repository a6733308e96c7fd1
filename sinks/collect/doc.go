// Package collect is the sink that has operators collect money. It reads
// collections.requests, asks operators for money or about payments, and turns their
// answers into commands on checkout.commands. Package calls has the loop: what is tried
// again, when an operator is asked about a request in place of a repetition, and what
// happens to a record that is read a second time.
//
// # Too late
//
// A request that is too late (not_after) is not sent. A payment that the operator does not
// know is reported as unknown, never as a refusal. The processor accepts an unknown one
// minute after not_after, because a request that was sent in time has arrived by then.
//
// # Words
//
// A request may name an address at which somebody waits for what becomes of it
// (partners/payments of the deprecated cash-in surface). The sink writes one word there,
// accepted, refused or not_sent, once the broker has the report. It writes none when it
// cannot tell, and not_sent only when surely nothing was sent and nothing will be.
//
// # Answers without a report
//
// When the operator answers that the payment is pending, nothing is reported, unless the
// enquiry was requested after the approval window. Then the session waits for the answer.
//
// # Calls in the journal
//
// Each call goes to collections.calls with its answer, from which the sink journal makes an
// entry for support: without the payer's number. Nothing is decided by these records and no
// payment waits for them, so that a call is missing if the broker does not take its record
// at the first try. A fault that repeats while a request is in hand is written once.
//
// # Overtaken enquiries
//
// The processor emits an enquiry every ten seconds while the result matters, even when
// the previous one has no answer. When a later enquiry of the same collection arrives,
// the sink drops earlier ones that still wait for their turn.
//
// # Old records
//
// The sink settles a request for money without a call and without a report fifteen
// minutes after not_after. It settles an enquiry in the same way when the processor's
// next enquiry was due more than about fifteen minutes ago. The processor enquires on
// its own schedule until the payment is final, so nothing is lost. When the group's
// offsets are lost and a week of records is read again, current records do not wait
// behind old ones. Old records are counted.
package collect
