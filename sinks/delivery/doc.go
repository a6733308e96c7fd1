// Package delivery is the sending engine of all kinds of deliveries. A Planner
// turns notifications into one delivery per destination. A Worker makes the calls
// and records their outcomes. sinks/schedule applies the outcomes to Postgres and
// puts deliveries on their topic again when the next attempt is due.
//
// It promises delivery at least once, that nothing is dropped, and that a bad
// destination never slows another. A kind is a deliveries.Registration and a
// Policy: how to send, and what an answer means. DESIGN.md describes the whole.
package delivery
