package deliveries

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"quittance/internal/registry"
	"quittance/schemas"
	"quittance/schemas/record"
)

// Kind is the name of a kind of delivery. Rows, records, metrics and the names of
// consumer groups contain it, so it never changes.
type Kind string

// Registration describes a kind of delivery to the rest of the service.
type Registration struct {
	Kind Kind
	// Notifications is the topic of the events to deliver. Deliveries is the topic of
	// the planned deliveries. Both names lack the installation's prefix.
	Notifications, Deliveries string
	// Plan returns the deliveries of a record of Notifications, for a kind whose records are
	// not quittance.Notification. Errors wrap schemas.ErrUndecodable, or say that the schema
	// registry is away. Nil: the records are, and the Directory names their destinations.
	Plan func(codec *schemas.Codec, value []byte) ([]record.Delivery, error)
	// Sources are further topics that the planner reads.
	Sources []Source
	// Suspends is true when destinations of the kind can be suspended: by 410 Gone,
	// by five days without a success, or by an operator.
	Suspends bool
	// Redelivers is true when an operator may send an accepted delivery once more.
	Redelivers bool
	// Confirms is true when an accepted delivery settles the payment's row in
	// erp_confirmations. The event's id is the transaction_id.
	Confirms bool
	// Final is the event of a session after which no other event of it is sent: when a
	// destination has accepted it, the other deliveries of the session are superseded.
	// Empty: the deliveries of a session are independent, and receivers order them.
	Final string
	// Addressed reports whether a delivery's destination is one of those whom its proved body is for;
	// nil: the destination is the addressee.
	Addressed func(d *record.Delivery) bool
	// Directory has the destinations. It may be nil for operations on rows, which
	// plan, send and claim nothing.
	Directory Directory
	// Entries returns the destinations in a directory of the registry; nil for a kind whose
	// destinations are not configured.
	Entries func(dir registry.Directory) []Entry
}

// ErrNoApplication says that a record of a Source has a notification, and that the agency has no application that gets it. The
// planner counts it among what has no destination.
var ErrNoApplication = errors.New("the agency has no application that gets the event")

// Source is a topic of events whose writer knows no application. The planner makes the notifications of its records, and
// proves their bodies as the writer of Notifications does: it reads what the writer alone can write.
type Source struct {
	// Topic lacks the installation's prefix.
	Topic string
	// Notifications returns the notifications of a record, without a proof; none for most records. The same record has the
	// same notifications as long as the same application gets them. Errors are as those of Registration.Plan, and
	// ErrNoApplication.
	Notifications func(codec *schemas.Codec, value []byte) ([]*record.Notification, error)
}

// Entry is a destination as operators see it.
type Entry struct {
	Kind Kind
	ID   string // the DestinationID of its deliveries
	Name string // what operators type
	// Title is the subject of a sentence about the destination.
	Title string
	// Owner is the name of the owner. Agency, ApplicationID and Application are empty
	// when they do not apply to the owner.
	Owner, Agency, ApplicationID, Application string
	URL                                       string
	Events                                    []string // empty: all events of the kind
	Modes                                     []string // test, live or both
	MaxInFlight, MaxPerSecond                 int      // as in Destination
	// Signing is the number of secrets that sign now. OldEndsAt is the time at which
	// the older of two secrets ends; zero: no secret ends.
	Signing   int
	OldEndsAt time.Time
	// ByCommand are the fields that a command has set. RemovedAt is the time at which a
	// command removed the destination; zero for one in use.
	ByCommand []string
	RemovedAt time.Time
	// Facts are further pairs of name and value.
	Facts [][2]string
}

// Directory has the destinations of a kind as they are configured now. It answers
// from memory and is safe for concurrent use.
type Directory interface {
	// Destinations returns the ids of the destinations of a notification.
	Destinations(n *record.Notification) []string
	// Destination finds a destination by its id. It returns false when there is none.
	Destination(id string) (Destination, bool)
}

// Destination is a destination as the sending engine sees it.
type Destination struct {
	// MaxInFlight is the number of calls at once; at least 1.
	MaxInFlight int
	// MaxPerSecond is the number of calls that may begin in a second; 0: no limit.
	MaxPerSecond int
	// Locked is true when this process cannot open the secrets of the destination.
	// Its deliveries wait.
	Locked bool
}

// Stage is a topic and the consumer group that reads it, both without the prefix.
type Stage struct {
	Topic, Group string
}

// Planning returns the stage that turns notifications into deliveries. Its group reads the Sources, too.
func (r Registration) Planning() Stage {
	return Stage{Topic: r.Notifications, Group: string(r.Kind) + "-planner"}
}

// Planned returns the topics that the group of Planning reads.
func (r Registration) Planned() []string {
	topics := []string{r.Notifications}
	for _, s := range r.Sources {
		topics = append(topics, s.Topic)
	}
	return topics
}

// source finds a source by its topic.
func (r Registration) source(topic string) (Source, bool) {
	i := slices.IndexFunc(r.Sources, func(s Source) bool { return s.Topic == topic })
	if i < 0 {
		return Source{}, false
	}
	return r.Sources[i], true
}

// Sending returns the stage that sends deliveries.
func (r Registration) Sending() Stage {
	return Stage{Topic: r.Deliveries, Group: string(r.Kind) + "-worker"}
}

// Kinds are the registered kinds.
type Kinds []Registration

// Entries returns the destinations of all kinds in a directory of the registry.
func (k Kinds) Entries(dir registry.Directory) (all []Entry) {
	for _, r := range k {
		if r.Entries != nil {
			all = append(all, r.Entries(dir)...)
		}
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

// Of returns the registration of a kind. A kind that is not registered is an error.
func (k Kinds) Of(kind Kind) (Registration, error) {
	for _, r := range k {
		if r.Kind == kind {
			return r, nil
		}
	}
	return Registration{}, fmt.Errorf("unknown kind of delivery %q", string(kind))
}

// Proves reports whether the processor proves the bodies of the kind. Those of messages to people are
// sealed by their senders instead.
func (r Registration) Proves() bool { return r.Plan == nil }

// Names returns the names of the kinds for which pick is true, in the order of their
// registration. A nil pick selects all kinds.
func (k Kinds) Names(pick func(Registration) bool) []string {
	var names []string
	for _, r := range k {
		if pick == nil || pick(r) {
			names = append(names, string(r.Kind))
		}
	}
	return names
}
