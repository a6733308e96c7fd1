// Package notify sends messages to people: what a message is, its texts, and how to send one.
//
//	Sender.Send ──► notifications ──► planner ──► notifications.deliveries ──► sinks/notify ──► provider
//
// # To send a message
//
// Sender.Send is the only way. The message has a kind, a channel, an address, a language and
// the variables of its text. Address and variables are sealed (internal/personal) before they
// leave the process, so that no topic, row or log has them in plain.
//
// # To add a kind
//
// A kind is one Kind in Kinds, and its texts in templates: NAME.VERSION.LANGUAGE.CHANNEL, in
// French and English for each of its channels. The first line of an e-mail is its subject.
// A changed text is a new version; messages on their way name the version that they were
// made for. Kind.Once chooses between the two promises that exist:
//
//   - At least once (the default): a call whose result nobody knows is made again. The provider
//     gets the same id, and the person may get the message twice. An acceptance is recorded
//     (Reports, Sends), and an accepted message is not sent again, also when Kafka has it twice.
//   - At most once (Once): the intention is written to Postgres before the call (Sends), so
//     that a message is never sent again after a time-out or after the death of a worker. It
//     may be lost. Sign-in codes are like that: a person asks for a new one, and two equal
//     codes would frighten them.
//
// # Texts
//
// An SMS is GSM-7: one other character, such as ê, would cut 160 characters to 70. Variables
// are transliterated (Fold). A text has no address but the service's own (Templates).
package notify
