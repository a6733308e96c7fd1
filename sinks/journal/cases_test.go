package journal_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/casework"
	"quittance/checkout"
	"quittance/internal/cases"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/test/processor"
)

// lost reports money of a session that nobody knows, once a day, and returns its case.
func (w *world) lost(l ledger, reference string, reports int) cases.Case {
	w.t.Helper()
	before := len(l.Events)
	for n := range reports {
		l.Time = noon.AddDate(0, 0, n)
		l.Decide(checkout.Command{SessionID: "nobody's " + reference, Live: n == 0, // the first report counts
			Do: checkout.Outcome{
				CollectionID: "lost-" + reference, Status: checkout.OutcomeApproved, Amount: 70 + 30*int64(n), Currency: "XAF", OperatorRef: "op-" + reference, Account: "acc-9", ApprovedAt: noon.AddDate(0, 0, -2),
			}})
	}
	return w.caseOf(l.Events[before])
}

// caseOf returns the case of a report of no known session.
func (w *world) caseOf(e checkout.Event) cases.Case {
	w.t.Helper()
	list, err := cases.ReadEvent(w.codec, w.value(schemas.TopicEvents, "k", mapping.FromEvent(e)).Value)
	if err != nil || len(list) != 1 {
		w.t.Fatalf("%+v, %v", list, err)
	}
	return list[0]
}

// opening returns the record that opens the case of a report of no known session.
func (w *world) opening(e checkout.Event) *kgo.Record {
	w.t.Helper()
	c := w.caseOf(e)
	return w.value(schemas.TopicCases, c.ID, mapping.FromEvent(c.Opening()))
}

// agreed are the events of a case that two people close at a time. They were proposed and
// approved before. Each is written n times.
func (w *world) agreed(c cases.Case, r casework.Resolution, at time.Time, n int) (out []*kgo.Record) {
	w.t.Helper()
	note := func(step casework.DecisionState, by string) checkout.Event {
		return c.Step(cases.Note{CaseID: c.ID, Number: 1, Step: step, Resolution: r, Reference: "wire 7", Reason: "r", By: by, At: at.Add(-time.Hour)})
	}
	for _, e := range []checkout.Event{
		c.Opening(), note(casework.DecisionProposed, "Jean"), note(casework.DecisionApproved, "Mireille"),
		c.Exit(cases.Approved{CaseID: c.ID, Number: 1, Resolution: r, Reference: "wire 7", Reason: "r", Proposer: "Jean", Decider: "Mireille", DecidedAt: at}),
	} {
		for range n {
			out = append(out, w.value(schemas.TopicCases, c.ID, mapping.FromEvent(e)))
		}
	}
	return out
}

// Money of no known session that staff had given back stayed in receipts for ever, and each
// report of another day counted it again. Now it is there once, and its exit takes it away,
// on the local day of the exit, however often the events are written, replayed or rebuilt.
func TestMoneyOfNoKnownSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := ledger{processor.New(t, noon)}
	refunded, kept, waits := w.lost(l, "refunded", 3), w.lost(l, "kept", 1), w.lost(l, "waits", 2)
	poison := cases.ReadPoison(schemas.TopicPoisonReadmodel, &kgo.Record{Offset: 7, Timestamp: noon})
	w.publish(l)
	midnight := time.Date(2026, 11, 30, 23, 30, 0, 0, time.UTC) // in Brazzaville: 0:30 on the first of December
	var records []*kgo.Record
	records = append(records, w.agreed(refunded, checkout.ResolutionRefund, midnight, 2)...)
	records = append(records, w.agreed(kept, casework.ResolutionWriteOff, midnight, 1)...)
	records = append(records, w.agreed(poison, casework.ResolutionAcknowledge, midnight, 1)...)
	records = append(records, w.value(schemas.TopicCases, waits.ID, mapping.FromEvent(waits.Opening())))
	if err := w.cl.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		t.Helper()
		if got, want := w.rows("collection_id, tenant_id, livemode, kind, state, local_date, currency, gross, account, operator_ref, reason, reference, source_topic, source_offset", "FROM expected_money FINAL ORDER BY collection_id, occurred_at"), []string{
			"lost-kept||true|received|orphan|2026-11-28|XAF|70|acc-9|op-kept|||cases.events|8", // 8 records of refunded are before it
			"lost-refunded||true|received|orphan|2026-11-28|XAF|70|acc-9|op-refunded|||cases.events|0",
			"lost-refunded||true|given_back|reversed|2026-12-01|XAF|-70|acc-9|op-refunded|refunded|wire 7|cases.events|6",
			"lost-waits||true|received|orphan|2026-11-28|XAF|70|acc-9|op-waits|||cases.events|16",
		}; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: expected %q, want %q", when, got, want)
		}
		if got := w.notExpected(); got != nil {
			t.Errorf("%s: sums that differ: %q", when, got)
		}
		const columns = "collection_id, tenant_id, livemode, movement, local_date, approved_on, currency, amount, total_amount, account, operator_ref, reason, reference, recorded_by"
		if got, want := w.rows(columns, "FROM receipts ORDER BY collection_id, occurred_at"), []string{
			"lost-kept||true|orphan|2026-11-30|2026-11-28|XAF|70|70|acc-9|op-kept|||",
			"lost-refunded||true|orphan|2026-11-30|2026-11-28|XAF|70|70|acc-9|op-refunded|||",
			"lost-refunded||true|reversal|2026-12-01|2026-11-28|XAF|-70|-70|acc-9|op-refunded|refunded|wire 7|Jean",
			"lost-waits||true|orphan|2026-11-30|2026-11-28|XAF|70|70|acc-9|op-waits|||",
		}; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
		view := w.rows(`if(kind = 'poison', kind, operator_ref), state, livemode, amount, currency, opened_by_event, resolution, reference, resolved_by, approved_by, proposals, opened_at, ifNull(toString(approved_at), '-'), ifNull(toString(closed_at), '-')`,
			"FROM cases ORDER BY kind, operator_ref")
		if want := []string{
			"op-kept|closed|true|70|XAF|collection.orphaned|write_off|wire 7|Jean|Mireille|1|2026-11-30 11:00:00.000|2026-11-30 22:30:00.000|2026-11-30 23:30:00.000",
			"op-refunded|closed|true|70|XAF|collection.orphaned|refund|wire 7|Jean|Mireille|1|2026-11-30 11:00:00.000|2026-11-30 22:30:00.000|2026-11-30 23:30:00.000",
			"op-waits|open|true|70|XAF|collection.orphaned|||||0|2026-11-30 11:00:00.000|-|-",
			"poison|closed|false|0||case.opened|acknowledge|wire 7|Jean|Mireille|1|2026-11-30 11:00:00.000|2026-11-30 22:30:00.000|2026-11-30 23:30:00.000",
		}; !reflect.DeepEqual(view, want) {
			t.Errorf("%s: the cases are %q, want %q", when, view, want)
		}
	}
	_, stop := w.run(w.conn)
	eventually(t, "the exits", func() bool { return fmt.Sprint(w.rows("count()", "FROM cases WHERE state = 'closed'")) == "[3]" })
	eventually(t, "the reports", func() bool {
		return fmt.Sprint(w.rows("count()", "FROM journal FINAL WHERE event = 'collection.orphaned'")) == "[6]"
	})
	stop()
	check("at first")

	// The rows are lost, and Kafka brings them back.
	for _, table := range []string{"receipt_rows", "case_rows", "expected_money", "journal"} {
		if err := w.conn.Exec(t.Context(), "TRUNCATE TABLE "+table); err != nil {
			t.Fatal(err)
		}
	}
	for _, when := range []string{"rebuilt", "rebuilt again"} {
		got, err := w.rebuildAt(midnight.AddDate(0, 0, 7))
		if err != nil || !got.Equal() || got.Cases != int64(len(records)) || got.Events != 6 || got.Unreadable != 0 {
			t.Errorf("%s: %+v, %v", when, got, err)
		}
		check(when)
	}
}
