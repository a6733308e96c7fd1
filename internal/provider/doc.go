// Package provider defines how the service talks to the companies that carry its messages
// to people: SMS aggregators, and mail servers. Each provider has a package below this one.
// All of them pass the suite test/providers.
//
// A provider accepts a message or it does not. What becomes of an accepted message is told
// later, in a delivery report, or never. Three rules hold for all providers:
//
//   - Every message carries its id to the provider, so that a message that arrives twice can
//     be recognised.
//   - An error says whether the provider may have the message (Error.Fault). A time-out after
//     the request was sent is never "not sent".
//   - No error, log or metric has an address, a text or a secret.
package provider
