// Package cases holds operator cases: money that fits no open session, confirmations that
// an ERP has not accepted, and records that could not be processed. Each case has an age, evidence and one exit (contract decisions
// § 14).
//
// The rows of cases are derived from checkout.events, the poison topics and cases.events.
// Apply writes them with the consumer's positions. To rebuild them, stop the sink cases,
// empty the tables cases and case_positions, and start it. The table case_proposals is a
// record and stays.
//
// The state of a session holds the cases of its money, and the processor alone closes
// them. Some cases have no session: a report of a collection of no known session, whose
// money is only in the detail of its event, poison, and the breaks and proposals of the matcher
// (reconciliation.events). The topic cases.events holds what
// happens to them: their opening, the steps of their proposals and their exit. The sink
// cases writes it. All its events are made of rows that do not change any more, and have
// derived ids: after a crash they are written again and are the same. The row of such a
// case is closed when the sink reads the event of the exit, so that a restored Postgres
// learns of exits that it has forgotten before another one can be recorded.
//
// The matcher reads the approvals of its cases in cases.events and carries them out or refuses them. Its
// record in reconciliation.events (Finding, Close) ends the case: as people agreed, as refused with a
// reason, or because a later run has settled the rows. The sink first records it as the answer to the
// approved proposal, and then writes the exit of the case.
//
// Proposals are records. One member of staff proposes a resolution and another approves it.
// The sink cases makes an event of each step (Note), or has the processor make it, and then
// carries the approved proposal out, or waits for the matcher. The answer ends the proposal as
// carried_out, or as refused with a code; while there is none, it is approved, and its outcome is not
// known. All operations and answers are in the audit table.
package cases
