package matcher

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quittance/internal/clickhouse"
	"quittance/internal/journal"
	"quittance/internal/registry"
	"quittance/schemas"
	sink "quittance/sinks/journal"
	"quittance/statement"
	deliverytest "quittance/test/deliveries"
	"quittance/test/registries"
	"quittance/test/servers"
)

// The hash of a text is ClickHouse's, whose columns have the hashes of references and of rows.
func TestHashOf(t *testing.T) {
	t.Parallel()
	addr, database := servers.ClickHouse(t)
	conn, err := clickhouse.Open(t.Context(), "http://"+addr+"/"+database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	var texts []string
	for n := range 200 {
		texts = append(texts, strings.Repeat("Ré9/#", n)[:n])
	}
	var got []uint64
	if err := conn.QueryRow(t.Context(), "SELECT arrayMap(text -> cityHash64(text), "+list(texts)+")").Scan(&got); err != nil || len(got) != len(texts) {
		t.Fatalf("%d hashes, %v", len(got), err)
	}
	for i, text := range texts {
		if hashOf(text) != got[i] {
			t.Errorf("%q: %d, ClickHouse has %d", text, hashOf(text), got[i])
		}
	}
}

// entryOf is an entry as ClickHouse makes it.
func entryOf(hash uint64, day statement.Day) uint64 { return hash&^dayMask | uint64(day) }

// The references have every hash that was added, with its days, and no others.
func TestReferences(t *testing.T) {
	t.Parallel()
	refs := references{months: map[uint32][]uint64{}}
	const all, days = 100_000, 90
	hashes := make([]uint64, 2*all) // those after the first half are not added
	on := make([]statement.Day, all)
	for n := range hashes {
		hashes[n] = hashOf(fmt.Sprint("ref ", n))
	}
	if known, at := refs.known(hashes); len(known)+len(at) != 0 {
		t.Error("empty references have a hash")
	}
	random := rand.New(rand.NewPCG(1, 2))
	for begin := 0; begin < all; {
		byMonth := map[uint32][]uint64{}
		for end := min(all, begin+1+random.IntN(all/5)); begin < end; begin++ {
			on[begin] = statement.Day(20_000 + random.IntN(days))
			month := uint32(on[begin] / 30)
			byMonth[month] = append(byMonth[month], entryOf(hashes[begin], on[begin]))
			if begin%3 == 0 { // its line
				byMonth[month] = append(byMonth[month], byMonth[month][len(byMonth[month])-1])
			}
		}
		for month, entries := range byMonth {
			refs.add(month, entries)
		}
	}
	size := 0
	for month, entries := range refs.months {
		size += len(entries)
		if !slices.IsSorted(entries) || cap(entries) > 2*len(entries) {
			t.Errorf("%d: %d of %d, sorted %t", month, len(entries), cap(entries), slices.IsSorted(entries))
		}
	}
	if size != all {
		t.Errorf("%d entries of %d", size, all)
	}
	for _, asked := range []int{1, 300, len(hashes)} {
		var some, want []uint64
		wantDays := map[statement.Day]bool{}
		for _, n := range random.Perm(len(hashes))[:asked] {
			if some = append(some, hashes[n]); n < all {
				want, wantDays[on[n]] = append(want, hashes[n]), true
			}
		}
		slices.Sort(some)
		slices.Sort(want)
		if known, at := refs.known(some); !slices.Equal(known, want) || !maps.Equal(at, wantDays) {
			t.Errorf("of %d: %d of %d, days %d of %d", asked, len(known), len(want), len(at), len(wantDays))
		}
	}
}

// A hash that is on several days has all of them, and those of the ends of a list are found.
func TestReferenceOfSeveralDays(t *testing.T) {
	t.Parallel()
	refs := references{months: map[uint32][]uint64{}}
	least, most := uint64(0x1ffff), ^uint64(0)
	refs.add(202601, []uint64{entryOf(most, 20_457), entryOf(least, 20_454), entryOf(least, 20_455)})
	refs.add(202602, []uint64{entryOf(least, 20_490)})
	known, days := refs.known([]uint64{1, least, 1 << 40, most})
	if want := []uint64{least, most}; !slices.Equal(known, want) {
		t.Errorf("%x, want %x", known, want)
	}
	if want := map[statement.Day]bool{20_454: true, 20_455: true, 20_457: true, 20_490: true}; !maps.Equal(days, want) {
		t.Errorf("%v, want %v", days, want)
	}
}

// The memory has the references of money that a registry file gave to the account later, although its
// payments are older than what was in the memory.
func TestMemoryOfGivenMoney(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.journal()
	m := o.matcher()
	m.few = 0
	old := registry.StatementAccountKey{AgencyID: registries.AgencyA, Code: "mtn-old"}
	paid := o.now.AddDate(0, 0, -60)
	e := o.event(money{"A2", "P2", "", 700, paid, false})
	e.Session.Collection.Account = "abcdabcdabcdabcd"
	o.produce(schemas.TopicEvents, registries.AgencyA, e)
	o.lines(o.line("mtn-old", paid, 700, "A2", "", ""))
	if s := o.runs(m, old); len(s.Breaks) != 1 {
		t.Fatalf("%+v", s.Changes)
	}
	o.agrees(old)
	o.lines(o.line("mtn-old", o.now, 300, "A3", "", "")) // for which the memory learns what there is
	o.runs(m, old)
	o.agrees(old)
	o.house.Seed(t, registries.Edit(t, "fingerprint: 0123456789abcdef", "fingerprint: abcdabcdabcdabcd"))
	o.reg = o.house.Open(t).Registry
	m.cfg.Registry = o.reg
	o.now = o.now.AddDate(0, 0, 1)
	if s := o.runs(m, old); len(s.Matches) != 1 {
		t.Fatalf("%+v", s.Changes)
	}
	o.agrees(old)
	for _, ref := range []string{"P1", "P2"} {
		o.now = o.now.AddDate(0, 0, 1)
		o.lines(o.line("mtn-old", o.now, 700, "", ref, ""))
		s := o.runs(m, old)
		if known := ref == "P2"; len(s.Breaks) != 1 || (len(s.Breaks[0].NotTaken) == 1) != known {
			t.Errorf("the line with %s: %+v", ref, s.Changes)
		}
		o.agrees(old)
	}
}

// Rows that ClickHouse had lost when they came into the memory of a process, and that a rebuild or a replay
// wrote again, are found by that process.
func TestMemoryAfterRewrite(t *testing.T) {
	t.Parallel()
	for name, rewrite := range map[string]func(context.Context, *sink.Journal) error{
		"rebuild": func(ctx context.Context, j *sink.Journal) error {
			_, err := j.Rebuild(ctx, time.Now(), nil)
			return err
		},
		"replay": func(ctx context.Context, j *sink.Journal) error {
			_, err := j.Replay(ctx, schemas.TopicEvents, time.Unix(0, 0), time.Now().Add(time.Hour), false, nil)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			o.journal()
			paid := o.now.AddDate(0, 0, -60)
			o.pay(money{"A1", "P1", "", 500, paid, false})
			o.lines(o.line("mtn", paid, 500, "A1", "", ""))
			if s := o.runs(o.matcher(), mtn); len(s.Matches) != 1 {
				t.Fatalf("%+v", s.Changes)
			}
			o.agrees(mtn)
			if err := o.conn.Exec(t.Context(), "ALTER TABLE expected_money DELETE WHERE operator_ref = 'A1' SETTINGS mutations_sync = 2"); err != nil {
				t.Fatal(err)
			}
			m := o.matcher()
			m.few = 0
			o.lines(o.line("mtn", o.now, 500, "A2", "", ""))
			if s := o.runs(m, mtn); len(s.Breaks) != 1 {
				t.Fatalf("%+v", s.Changes)
			}
			j, err := sink.New(sink.Config{Kafka: o.kafka, Codec: o.codec, Store: journal.NewStore(o.conn), Outcomes: deliverytest.Outcomes(), Cases: deliverytest.Cases(o.kafka), Log: servers.Logger(t), Metrics: prometheus.NewRegistry()})
			if err != nil {
				t.Fatal(err)
			}
			if err := rewrite(t.Context(), j); err != nil {
				t.Fatal(err)
			}
			o.lines(o.line("mtn", o.now, 500, "", "P1", "")) // which only the payment has
			if s := o.runs(m, mtn); len(s.Breaks) != 1 || len(s.Breaks[0].NotTaken) != 1 {
				t.Errorf("%+v", s.Changes)
			}
			o.agrees(mtn)
		})
	}
}
