package deliveries

import (
	"fmt"

	"quittance/schemas/record"
)

// Kind is the name of a kind of delivery. It stands in rows and records, in
// metrics and in the names of consumer groups, and never changes.
type Kind string

// Registration is all that the rest of the service needs to know of a kind.
type Registration struct {
	Kind Kind
	// Notifications is the topic of the events to deliver, Deliveries the topic of
	// the planned deliveries; both without the installation's prefix.
	Notifications, Deliveries string
	// Suspends: sending to a destination ends after 410 Gone, after five days of
	// nothing but failures, or when an operator suspends it. Otherwise nothing is
	// ever withheld.
	Suspends bool
	// Redelivers: an operator may have an accepted delivery sent once more.
	Redelivers bool
	// Confirms: an accepted delivery settles the payment's row in
	// erp_confirmations; the event's id is the transaction_id.
	Confirms bool
	// Directory knows the destinations. It may be nil where nothing is planned,
	// sent or claimed: for operations on rows.
	Directory Directory
}

// Directory knows the destinations of a kind as they are configured now. It
// answers from memory and is safe for concurrent use.
type Directory interface {
	// Destinations are the ids of those that a notification goes to.
	Destinations(n *record.Notification) []string
	// Destination is one by its id; false when it does not exist (any more).
	Destination(id string) (Destination, bool)
}

// Destination is what the engine knows of where deliveries go.
type Destination struct {
	// MaxInFlight calls at once; at least 1.
	MaxInFlight int
	// MaxPerSecond calls may begin; 0 is no limit.
	MaxPerSecond int
	// Locked destinations wait: this process cannot open their secrets.
	Locked bool
}

// Stage is a topic and the group that reads it, both without the prefix.
type Stage struct {
	Topic, Group string
}

// Planning is the stage that turns notifications into deliveries.
func (r Registration) Planning() Stage {
	return Stage{Topic: r.Notifications, Group: string(r.Kind) + "-planner"}
}

// Sending is the stage that sends deliveries.
func (r Registration) Sending() Stage {
	return Stage{Topic: r.Deliveries, Group: string(r.Kind) + "-worker"}
}

// Kinds are the registered kinds.
type Kinds []Registration

// Of is the registration of a kind. A kind that is not registered is an error.
func (k Kinds) Of(kind Kind) (Registration, error) {
	for _, r := range k {
		if r.Kind == kind {
			return r, nil
		}
	}
	return Registration{}, fmt.Errorf("unknown kind of delivery %q", string(kind))
}

// Names are the kinds for which pick is true, in the order of their registration;
// nil picks all.
func (k Kinds) Names(pick func(Registration) bool) []string {
	var names []string
	for _, r := range k {
		if pick == nil || pick(r) {
			names = append(names, string(r.Kind))
		}
	}
	return names
}
