package roles

import (
	"cmp"
	"math"
	"runtime/debug"
	"slices"

	"github.com/KimMachineGun/automemlimit/memlimit" // reads the limits of control groups of both versions

	"quittance/internal/secret"
)

// Need is a part that a role needs besides Kafka and the schema registry.
type Need string

// The needs of roles.
const (
	NeedPostgres     Need = "postgres"
	NeedClickHouse   Need = "clickhouse"
	NeedMasterKeys   Need = "master keys"
	NeedRegistry     Need = "registry" // the configuration in Postgres, which needs both
	NeedReferenceKey Need = "reference key"
	NeedERPs         Need = "erps"      // the agencies' ERPs answer
	NeedDues         Need = "dues"      // `sink erp` asks the agencies' ERPs for us
	NeedProviders    Need = "providers" // providers of SMS and e-mail accept our credentials
	NeedChannels     Need = "channels"  // the applications' citizens can pay
	NeedOperators    Need = "operators" // operators answer calls about collections
	NeedPayouts      Need = "payouts"   // operators answer calls about payouts, and no payout account is paused
)

// Kind groups the roles of one command.
type Kind string

// The kinds of roles. Each is a command of the program.
const (
	KindIngress   Kind = "ingress"
	KindProcessor Kind = "processor"
	KindSink      Kind = "sink"
	KindOffice    Kind = "office"
)

// Role is a part of the service that runs until it is stopped. Commands, help, the checks of doctor, rights at Kafka and
// the metrics of lag derive from it.
type Role struct {
	Kind Kind
	// Name is the role's name among those of its kind, as in `quittance sink webhook`.
	Name  string
	Short string
	Needs []Need
	// Keys are the keys that the role derives from the master keys. It gets no others.
	Keys []secret.Use
	// Senders are those whose commands a processor takes: it has the keys that prove them.
	Senders []string
	// Access is what the role needs at Kafka, Databases what it needs in Postgres and ClickHouse.
	Access
	Databases
	// Host returns where the role answers HTTP, and Surfaces make what it answers there. Both are nil for a role that
	// does not.
	Host     func(*Base) (Host, error)
	Surfaces []opener
	// GCPercent and MemoryLimit, in bytes, set the garbage collector of a process that runs the role alone. Zero keeps
	// the default.
	GCPercent   int
	MemoryLimit int64
	// Run adds the role's other parts to the base, which runs them.
	Run func(*Base) error
}

// Table returns all roles. The first processor is the default one. A new role comes last: the samples of units give each
// role the port after that of the one before it.
func Table() []Role {
	table := []Role{
		ingressRole(), checkoutRole(), collectRole(), webhookRole(), cashinRole(), erpRole(), notifyRole(),
		scheduleRole(), casesRole(), readmodelRole(), journalRole(), matchRole(), tidyRole(), officeRole(), disbursementRole(), disburseRole(),
	}
	for i := range table {
		if table[i].Kind == KindOffice { // its page of health says how far all groups are
			for _, g := range groupsOf(table) {
				table[i].Describes = append(table[i].Describes, g.Name)
			}
		}
		table[i].Keys = append(table[i].Keys, sharedKeys(table[i])...)
	}
	return table
}

// Start checks that the role has its rights at Kafka and in the databases, and that the topics keep what they are given, opens what
// the role needs, and starts its parts.
func (r Role) Start(b *Base) error {
	if err := b.await("Kafka", func() error { return b.checkRights(r) }); err != nil {
		return err
	}
	if err := b.await("Kafka", b.checkTopics); err != nil {
		return err
	}
	for _, part := range []struct {
		need Need
		open func(*Base) error
	}{{NeedPostgres, (*Base).OpenPostgres}, {NeedMasterKeys, (*Base).openKeys}, {NeedRegistry, (*Base).OpenRegistry}, {NeedReferenceKey, (*Base).openReferenceKey}} {
		if !slices.Contains(r.Needs, part.need) {
			continue
		}
		if err := part.open(b); err != nil {
			return err
		}
		if part.need == NeedPostgres {
			if err := b.await("Postgres", func() error { return b.CheckDatabase(b.ctx, b.Pool, r.Name) }); err != nil {
				return err
			}
		}
	}
	if b.Keys != nil {
		if err := b.checkKeys(r, b.Keys); err != nil {
			return err
		}
	}
	serve := func() error { return nil }
	if r.Host != nil {
		var err error
		if serve, err = b.surfaces(r); err != nil {
			return err
		}
	}
	if err := r.Run(b); err != nil {
		return err
	}
	if err := serve(); err != nil {
		return err
	}
	b.followSkew(r)
	return b.reportLag(r)
}

// TuneProcess sets the garbage collector for a process that runs this role alone. Its memory is bounded
// to 90 % of the container's, so that the collector works harder before the kernel kills it, and to
// MemoryLimit. GOGC and GOMEMLIMIT win.
func (r Role) TuneProcess() {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(min(cmp.Or(r.MemoryLimit, math.MaxInt64), containerMemory()))
	}
	if r.GCPercent > 0 {
		if set := debug.SetGCPercent(r.GCPercent); set != 100 {
			debug.SetGCPercent(set)
		}
	}
}

// containerMemory returns 90 % of the memory of the process's control group; without a limit or without
// control groups the largest number.
func containerMemory() int64 {
	limit, err := memlimit.FromCgroup()
	if err != nil || limit > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(limit / 10 * 9)
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
