// Package delivery is the sending engine that the webhook and the ERP sink
// share: a Planner turns notifications into one delivery per destination, a
// Worker makes the calls and records what became of them, and package schedule
// remembers in Postgres when to try again.
//
// It promises at least once, nothing dropped, and that a bad destination never
// slows another. What is sent, where to and what an answer means is a Policy.
// DESIGN.md draws the whole.
package delivery
