// Package cases holds operator cases: money that fits no open session, confirmations that
// an ERP has not accepted, and records that could not be processed. Each case has an age, evidence and one exit (contract decisions
// § 14).
//
// The rows of cases are derived from checkout.events and the poison topics. Apply writes
// them with the consumer's positions. To rebuild them,
// stop the sink cases, empty the tables cases and cases_positions, and start it. The
// table case_proposals is a record and stays.
//
// The state of a session holds the cases of its money, and the processor alone closes
// them. Two cases have no session: a report of a collection of no known session, whose
// case is only in the detail of its event, and poison. Their exit is a row in Postgres.
//
// Proposals are records. One member of staff proposes a resolution and another approves it.
// The sink cases has the processor make an event of each step (Note), and then sends the
// approved proposal to it. Its answer, and the event that closes the case, end the proposal.
// All operations are in the audit table. Proposals about cases without a session have no
// events.
package cases
