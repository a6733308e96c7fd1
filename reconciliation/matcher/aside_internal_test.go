package matcher

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/casework"
	"quittance/internal/cases"
	"quittance/internal/registry"
	"quittance/schemas"
	"quittance/test/registries"
)

// No run takes a record for read that the sink journal has set aside, until the case of the record is closed.
// Records of other agencies, and those of topics that no run reads, stop no run.
func TestRecordSetAside(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.journal()
	m := o.matcher()
	broken := func(topic, key string) {
		t.Helper()
		rec := &kgo.Record{Topic: o.kafka.Prefix + topic, Partition: o.topo.Partition(topic, key), Key: []byte(key), Value: []byte("no record of ours")}
		if err := o.cl.ProduceSync(t.Context(), rec).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	o.pay(money{"A1", "P1", "", 500, o.now, false})
	o.lines(o.line("mtn", o.now, 500, "A1", "", ""))
	broken(schemas.TopicAttempts, registries.AgencyA)
	broken(schemas.TopicEvents, registries.AgencyB)
	broken(schemas.TopicStatements, keyOf(registry.StatementAccountKey{AgencyID: registries.AgencyB, Code: "mtn"}))
	if s := o.runs(m, mtn); len(s.Matches) != 1 {
		t.Fatalf("%+v", s.Changes)
	}
	for topic, key := range map[string]string{
		schemas.TopicEvents: registries.AgencyA, schemas.TopicCases: "case_1", schemas.TopicStatements: keyOf(mtn), schemas.TopicReconciliation: keyOf(mtn),
	} {
		broken(topic, key)
		ref := "A2" + topic
		o.pay(money{ref, "", "", 500, o.now, false})
		o.lines(o.line("mtn", o.now, 500, ref, "", ""))
		if _, err := m.Account(t.Context(), mtn); !errors.Is(err, ErrSetAside) || !strings.Contains(err.Error(), topic+"/") {
			t.Fatalf("a record of %s was set aside: %v", topic, err)
		}
		var list []cases.Case
		if _, err := o.kafka.ReadAll(t.Context(), o.kafka.Prefix+schemas.TopicPoisonJournal, func(r *kgo.Record) error {
			c := cases.ReadPoison(schemas.TopicPoisonJournal, r)
			list = append(list, c)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		store := cases.NewStore(o.house.Pool)
		if err := store.Apply(t.Context(), list, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Account(t.Context(), mtn); !errors.Is(err, ErrSetAside) {
			t.Fatalf("the case of a record of %s is open: %v", topic, err)
		}
		for i := range list {
			list[i].Sequence, list[i].Resolution, list[i].ClosedBy, list[i].ClosedAt = 1, casework.ResolutionAcknowledge, "stf_1", o.now
		}
		if err := store.Apply(t.Context(), list, nil); err != nil {
			t.Fatal(err)
		}
		if s := o.runs(m, mtn); len(s.Matches) != 1 || len(s.Breaks) > 0 {
			t.Fatalf("after the case of a record of %s: %+v", topic, s.Changes)
		}
		o.agrees(mtn)
	}
	// The case is open for longer than the topic keeps the record.
	forgotten := cases.ReadPoison(schemas.TopicPoisonJournal, &kgo.Record{Timestamp: o.now, Headers: []kgo.RecordHeader{
		schemas.Header(schemas.HeaderTopic, o.kafka.Prefix+schemas.TopicStatements), schemas.Header(schemas.HeaderPartition, strconv.Itoa(int(o.topo.Partition(schemas.TopicStatements, keyOf(mtn))))),
		schemas.Header(schemas.HeaderOffset, "0"), schemas.Header(schemas.HeaderError, "undecodable"),
	}})
	store := cases.NewStore(o.house.Pool)
	if err := store.Apply(t.Context(), []cases.Case{forgotten}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Account(t.Context(), mtn); !errors.Is(err, ErrSetAside) {
		t.Fatalf("the record is forgotten, and its case is open: %v", err)
	}
	forgotten.Sequence, forgotten.Resolution, forgotten.ClosedBy, forgotten.ClosedAt = 1, casework.ResolutionAcknowledge, "stf_1", o.now
	if err := store.Apply(t.Context(), []cases.Case{forgotten}, nil); err != nil {
		t.Fatal(err)
	}
	o.runs(m, mtn)
}
