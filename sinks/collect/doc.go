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
// says more.
//
// # Old records
//
// A request for money is settled without a call and without a report fifteen
// minutes after not_after, an enquiry when the processor's next one was due more
// than about fifteen minutes ago: the processor enquires on its own schedule until
// the payment is final. So a week of records that is read again, because the
// group's offsets were lost, keeps no current one waiting. They are counted as old.
//
// # A partition that moves to another member
//
// Calls under way are finished and reported. No further request for money begins
// here: the new owner reads the record and decides by its own clock.
package collect
