package deliveries

import (
	"fmt"
	"strings"
	"time"

	"quittance/internal/registry"
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
	// Entries are the destinations in a directory of the registry.
	Entries func(dir registry.Directory) []Entry
}

// Entry is a destination as operators see it.
type Entry struct {
	Kind Kind
	ID   string // as deliveries have it
	Name string // what operators call it
	// Title begins a sentence about it.
	Title string
	// Owner names whose it is. The others are empty where the owner has none.
	Owner, Agency, ApplicationID, Application string
	URL                                       string
	Events                                    []string // empty: all of its kind
	Modes                                     []string // test, live or both
	MaxInFlight, MaxPerSecond                 int      // as in Destination
	// Signing is how many secrets sign now, and OldEndsAt when the older of two
	// ends; zero: none ends.
	Signing   int
	OldEndsAt time.Time
	// Facts are further facts, each with its name.
	Facts [][2]string
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

// Entries are the destinations of all kinds in a directory of the registry.
func (k Kinds) Entries(dir registry.Directory) (all []Entry) {
	for _, r := range k {
		all = append(all, r.Entries(dir)...)
	}
	return all
}

// Entry finds a destination of any kind by its id or its name.
func (k Kinds) Entry(dir registry.Directory, named string) (Entry, bool) {
	for _, e := range k.Entries(dir) {
		if e.Name == named || e.ID == strings.ToLower(named) {
			return e, true
		}
	}
	return Entry{}, false
}

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
