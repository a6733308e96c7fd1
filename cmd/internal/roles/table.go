package roles

import (
	"math"
	"os"
	"runtime/debug"
	"slices"
)

// Need is a part that a role needs besides Kafka and the schema registry.
type Need string

// The needs of roles.
const (
	NeedPostgres     Need = "postgres"
	NeedClickHouse   Need = "clickhouse"
	NeedMasterKeys   Need = "master keys"
	NeedReferenceKey Need = "reference key"
	NeedERPs         Need = "erps"      // the agencies' ERPs answer
	NeedProviders    Need = "providers" // providers of SMS and e-mail accept our credentials
	NeedChannels     Need = "channels"  // the applications' citizens can pay
)

// Kind groups the roles of one command.
type Kind string

// The kinds of roles. Each is a command of the program.
const (
	KindIngress   Kind = "ingress"
	KindProcessor Kind = "processor"
	KindSink      Kind = "sink"
)

// Role is a part of the service that runs until it is stopped.
type Role struct {
	Kind Kind
	// Name is the role's name among those of its kind, as in `quittance sink webhook`.
	Name  string
	Short string
	Needs []Need
	// add adds the role's parts to the base, which runs them.
	add func(*Base) error
}

// Start checks that the role has its rights at Kafka and that the topics keep what they are given, opens what the role needs, and
// starts its parts.
func (r Role) Start(b *Base) error {
	if err := b.checkRights(r); err != nil {
		return err
	}
	if err := b.checkTopics(); err != nil {
		return err
	}
	if slices.Contains(r.Needs, NeedPostgres) {
		if err := b.OpenPostgres(); err != nil {
			return err
		}
	}
	if slices.Contains(r.Needs, NeedMasterKeys) {
		if err := b.OpenRegistry(); err != nil {
			return err
		}
	}
	if slices.Contains(r.Needs, NeedReferenceKey) {
		if err := b.openReferenceKey(); err != nil {
			return err
		}
	}
	if err := r.add(b); err != nil {
		return err
	}
	return b.reportLag(r.Name)
}

// gcPercent of an ingress that has a process of its own. Its live heap is small and most
// of what it allocates lasts for one request: the default of 100 took a sixteenth of its
// CPU time. Processors keep the default, because their block cache is in the heap.
const gcPercent = 400

// matchMemory is the size of the heap near which the sink match collects garbage more often, without
// what it keeps for later runs. A day of a million lines needs about a gigabyte, and twice that without
// a limit. A larger day takes what it needs.
const matchMemory = 1300 << 20

// keepMatch raises the limit of the sink match by what it keeps for later runs, unless GOMEMLIMIT sets the
// limit or the process has other roles.
func keepMatch(bytes int64) {
	if os.Getenv("GOMEMLIMIT") == "" && debug.SetMemoryLimit(-1) != math.MaxInt64 {
		debug.SetMemoryLimit(matchMemory + bytes)
	}
}

// TuneProcess sets the garbage collector for a process that runs this role alone. GOGC and
// GOMEMLIMIT win.
func (r Role) TuneProcess() {
	if r.Kind == KindSink && r.Name == "match" {
		if set := debug.SetMemoryLimit(matchMemory); set != math.MaxInt64 {
			debug.SetMemoryLimit(set)
		}
		return
	}
	if r.Kind != KindIngress {
		return
	}
	if set := debug.SetGCPercent(gcPercent); set != 100 {
		debug.SetGCPercent(set)
	}
}

// Table returns all roles. The first processor is the default one.
func Table() []Role {
	registry := []Need{NeedPostgres, NeedMasterKeys}
	return []Role{
		{KindIngress, "ingress", "the HTTP edge: ministry API, checkout pages, operators' callbacks", []Need{NeedPostgres, NeedMasterKeys, NeedReferenceKey, NeedChannels}, (*Base).ingress},
		{KindProcessor, "checkout", "decides the commands of checkout sessions", nil, (*Base).checkout},
		{KindSink, "collect", "asks operators for payers' money", registry, (*Base).collect},
		{KindSink, "webhook", "sends webhooks", registry, (*Base).webhook},
		{KindSink, "cashin", "tells partners of the deprecated cash-in surface about their payments", registry, (*Base).cashin},
		{KindSink, "erp", "confirms payments to the agencies' ERPs", append(registry, NeedERPs), (*Base).erp},
		{KindSink, "notify", "sends messages to people: SMS and e-mail", append(registry, NeedReferenceKey, NeedProviders), (*Base).notify},
		{KindSink, "schedule", "makes deliveries due again", registry, (*Base).schedule},
		{KindSink, "cases", "opens operator cases and carries out what staff agreed on", []Need{NeedPostgres}, (*Base).cases},
		{KindSink, "readmodel", "writes sessions to Postgres", []Need{NeedPostgres}, (*Base).readmodel},
		{KindSink, "journal", "writes events and attempts to ClickHouse", []Need{NeedPostgres, NeedClickHouse}, (*Base).journal},
		{KindSink, "match", "matches payments with lines of statements", append(registry, NeedClickHouse), (*Base).match},
	}
}

// OfKind returns the roles of one kind.
func OfKind(kind Kind) []Role {
	return slices.DeleteFunc(Table(), func(r Role) bool { return r.Kind != kind })
}

// Names returns the names of roles.
func Names(roles []Role) []string {
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = r.Name
	}
	return names
}
