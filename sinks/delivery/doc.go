// Package delivery is the sending engine of all kinds of deliveries. A Planner turns
// each notification into one delivery per destination. A Worker makes the calls and
// records their outcomes. sinks/schedule applies the outcomes to Postgres and puts
// deliveries on their topic again when the next attempt is due.
//
// Deliveries arrive at least once, none is dropped, and a bad destination never slows
// another. A kind of delivery is a deliveries.Registration and a Policy. DESIGN.md
// describes the whole path.
package delivery
