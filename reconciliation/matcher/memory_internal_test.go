package matcher

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quittance/internal/clickhouse"
	"quittance/internal/journal"
	"quittance/internal/registry"
	"quittance/schemas"
	sink "quittance/sinks/journal"
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

// A filter has every hash that was added, also after it became too small, and few others.
func TestReferences(t *testing.T) {
	t.Parallel()
	var refs references
	hash := func(n int) uint64 { return hashOf(fmt.Sprint("ref ", n)) }
	if refs.has(hash(0)) {
		t.Error("an empty filter has a hash")
	}
	const all = 5 * firstRoom
	for begin := 0; begin < all; { // in pieces that do not fit into one filter, too
		var some []byte
		for end := min(all, 3*begin+firstRoom/3); begin < end; begin++ {
			some = binary.LittleEndian.AppendUint64(some, hash(begin))
		}
		refs.add(some)
	}
	for n := range all {
		if !refs.has(hash(n)) {
			t.Fatalf("hash %d is lost", n)
		}
	}
	others := 0
	for n := range all {
		if refs.has(hash(2*all + n)) {
			others++
		}
	}
	if others > all/200 || len(refs.filters) != 3 {
		t.Errorf("%d of %d others in %d filters", others, all, len(refs.filters))
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
			j, err := sink.New(sink.Config{Kafka: o.kafka, Codec: o.codec, Store: journal.NewStore(o.conn), Log: servers.Logger(t), Metrics: prometheus.NewRegistry()})
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
