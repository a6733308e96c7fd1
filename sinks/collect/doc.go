// Package collect is the sink that talks to operators. It reads
// collections.requests, asks for money or about it, and turns what operators say
// into commands on checkout.commands. It decides nothing and keeps nothing that
// matters: a request counts as done, and its offset may be committed, when there
// is nothing to report or the broker has the report.
//
// # Once, however often it is read
//
// A record may come again: after a crash between the call and the commit, after a
// rebalance. The operator is then asked again with the same id, which is the same
// collection to it. A request that is too late (not_after) is not sent: it may
// have been sent before, so the operator is asked about it. What the operator
// then does not know is reported as unknown, never as a refusal; the processor
// believes an unknown one minute after not_after, when whatever was sent has
// arrived or never will.
//
// # Trouble
//
//   - Not sent, 5xx, no answer: again with the same id after a pause, until
//     not_after. Where the operator may have the request, it is asked about it first.
//   - An operator that cannot be asked: nothing is reported. The payment stays
//     pending, and the processor enquires on its own schedule.
//   - Kafka away: reports wait, offsets stay.
//   - Pending is not reported: nothing changed.
//
// # Enquiries that pile up
//
// The processor emits an enquiry every ten seconds while it matters, whether or
// not the last was answered. So an enquiry that still waits its turn when a later
// one of the same collection arrives is dropped: the later one is in hand, and
// says more. An enquiry without a successor in hand is never dropped for its age.
package collect
