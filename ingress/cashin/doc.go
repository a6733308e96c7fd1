// Package cashin serves the deprecated cash-in surface (contract, "Deprecated cash-in API"):
// six routes under /api and /api/v1, until 30 September 2027, for partners whose programs
// exist already and will not change. Every byte of an answer is part of the contract.
//
// A request is checked in this order: token (401), form (400, 413, 415, 422), quota (429),
// configuration and phone number (403, 404, 422). Then a command asks the processor.
//
// partners/payments waits for what the operator says about the request for money:
//
//	ingress ──PartnerPay──► processor ──collect──► sinks/collect ──► operator
//	   │                        │                        │
//	   ◄──────── answer ────────┘                        │
//	   ◄─────────────── word, through checkout.replies ──┘
//
// Only the word that surely nothing was sent, and that nothing will be, is answered with
// 502. Everything else, also a word that does not come in time, is a pending payment: the
// partner asks for its status.
package cashin
