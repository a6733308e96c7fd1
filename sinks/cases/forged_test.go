package cases_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/casework"
	"quittance/checkout"
	"quittance/internal/cases"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/schemas/origin"
	deliverytest "quittance/test/deliveries"
	"quittance/test/registries"
)

// caseEvent returns the record of an event of a case, which sign may prove.
func (w *world) caseEvent(t *testing.T, e checkout.Event, sign func(*kgo.Record)) *kgo.Record {
	t.Helper()
	value, err := w.codec.Encode(mapping.FromEvent(e))
	if err != nil {
		t.Fatal(err)
	}
	r := &kgo.Record{Topic: w.topology.Name(schemas.TopicCases), Key: []byte(e.Detail[checkout.DetailCaseID]), Value: value}
	if sign != nil {
		sign(r)
	}
	return r
}

// Whoever had the Kafka user of the sink of cases opened cases and closed others, without its keys. What an earlier release
// has written without a proof is still believed, and nothing like it after the sink of this release has begun.
func TestForgedEventsOfCases(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := cases.Case{
		Case:     casework.Case{ID: "case_old", Kind: checkout.CaseOrphan, OpenedAt: registries.Epoch.Add(-time.Hour)},
		Evidence: map[string]string{}, Clerks: []string{},
	}
	write := func(r *kgo.Record) {
		t.Helper()
		if err := w.client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	write(w.caseEvent(t, old.Opening(), nil))
	w.runs(t, w)
	w.within(t, "the case of before", func() bool { return w.show(t, old.ID).ID != "" })
	w.within(t, "the first proof", func() bool {
		proven, err := w.events.Proven(t.Context())
		return err == nil && proven
	})

	strange, err := secret.GenerateKeys().MACs(secret.LabelCaseEvents)
	if err != nil {
		t.Fatal(err)
	}
	closes := old.Exit(cases.Approved{CaseID: old.ID, Number: 1, Resolution: checkout.ResolutionRefund, Reference: "wire 7", Proposer: "One", Decider: "Two", DecidedAt: w.Now()})
	invented := old
	invented.ID = "case_invented"
	attacks := map[string]func(*kgo.Record){
		"no proof":               nil,
		"another installation's": origin.NewSigner(cases.Writer, strange).SignKeyed,
		"another writer":         origin.NewSigner("journal", deliverytest.CaseEvents()).SignKeyed,
		"the proof of another": func(r *kgo.Record) {
			r.Headers = w.caseEvent(t, old.Opening(), origin.NewSigner(cases.Writer, deliverytest.CaseEvents()).SignKeyed).Headers
		},
	}
	for _, sign := range attacks {
		write(w.caseEvent(t, closes, sign))
		write(w.caseEvent(t, invented.Opening(), sign))
	}
	poisoned := func() (n int) {
		_, err := w.kafka.ReadAll(t.Context(), w.topology.Name(schemas.TopicPoisonCases), func(*kgo.Record) error { n++; return nil })
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	w.within(t, "all are set aside", func() bool { return poisoned() == 2*len(attacks) })
	if d := w.show(t, old.ID); !d.Open() {
		t.Errorf("a forged exit closed the case: %+v", d)
	}
	if d := w.show(t, invented.ID); d.ID != "" {
		t.Errorf("a forged opening made a case: %+v", d)
	}
	if got := w.verify(t, 0); len(got.Differences) != 0 {
		t.Errorf("%q", saidOf(got))
	}
	// The true one counts.
	write(w.caseEvent(t, closes, origin.NewSigner(cases.Writer, deliverytest.CaseEvents()).SignKeyed))
	w.within(t, "the true exit", func() bool { return !w.show(t, old.ID).Open() })
}
