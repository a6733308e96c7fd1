// Package messages proves what the service promises of messages to people. Real processes of the
// program send some hundreds of them to the simulated providers, with a real broker and a real
// Postgres. Meanwhile workers are killed with SIGKILL, the providers misbehave, and they are away
// for a day of the service's clock. Then the test compares four things: what was asked for, what
// arrived, what Postgres says, and what Kafka says.
//
// The promises, and where they are in verdict.go:
//
//   - Nothing is lost: a message arrives, or lapses for a reason that its policy names.
//   - A message that was recorded as accepted is not sent again. A message arrives twice only
//     when nobody had recorded the acceptance of its first call before the second one.
//   - A sign-in code never arrives twice, and never after its ten minutes.
//
// The report is one line:
//
//	messages=… sent=… lost=0 again=… late_codes=0 kills=…
//
// sent are the messages that arrived, again those of them that arrived twice.
//
// `make test` runs a short form. `make test/messages` runs the full one. Environment:
//
//	QUITTANCE_MESSAGES=full       six rounds of kills and two outages, each with more messages
//	QUITTANCE_MESSAGES_SEED=N     seed of the kills; every run prints its seed
//	QUITTANCE_MESSAGES_REPORT=F   file that also gets the report
package messages
