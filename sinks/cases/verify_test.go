package cases_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/internal/cases"
	"quittance/internal/comparison"
	"quittance/internal/journal"
	"quittance/schemas"
	"quittance/schemas/record"
	sink "quittance/sinks/cases"
	deliverytest "quittance/test/deliveries"
)

func (w *world) verify(t *testing.T, atOnce int) comparison.Result {
	t.Helper()
	got, err := cases.Comparison(w.codec, deliverytest.Cases(w.kafka), sink.PoisonTopics()).Verify(t.Context(), comparison.Config{Kafka: w.kafka, Pool: w.Pool, AtOnce: atOnce})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// saidOf returns the differences as short lines.
func saidOf(got comparison.Result) (out []string) {
	for _, d := range got.Differences {
		names := make([]string, len(d.Columns))
		for i, c := range d.Columns {
			names[i] = c.Name
		}
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", d.Table, d.Fault, d.Row, strings.Join(names, ","))))
	}
	return out
}

// story makes a case of each source: of a session, of a lost report, of a poison record, of breaks that were cleared and
// explained, and of a close that another one replaced. It returns their ids and stops the sink.
func (w *world) story(t *testing.T) (ids []string) {
	t.Helper()
	poison := sink.PoisonTopics()[0]
	original := &kgo.Record{Topic: w.topology.Name(schemas.TopicEvents), Partition: 1, Offset: 42, Value: []byte("junk")}
	if err := w.client.ProduceSync(t.Context(), schemas.Poison(w.topology.Name(poison), original, errors.New("cannot be decoded"))).FirstErr(); err != nil {
		t.Fatal(err)
	}
	stop := w.runs(t, w)
	_, honoured := w.late(t, 1)
	w.agree(t, honoured, checkout.ResolutionHonour)
	w.carriedOut(t, honoured)
	_, open := w.late(t, 2)
	lost := w.lost(t, 3)
	w.propose(t, w.ops, lost, checkout.ResolutionRefund, "wire 7")
	cleared, explained, left := w.broken(t, "brk_1", 25), w.broken(t, "brk_2", 26), w.broken(t, "brk_3", -27)
	w.propose(t, w.one, explained, cases.ResolutionExplain, "tariff")
	w.approve(t, w.two, explained, 1)
	w.within(t, "the approval", func() bool { return len(w.steps(t, explained)) == 3 })
	w.finding(t, record.Finding{FindingID: "brk_1", CaseID: cleared, State: journal.FindingCleared, Amount: 25})
	w.finding(t, record.Finding{FindingID: "brk_2", CaseID: explained, State: journal.FindingResolved, Resolution: "explain", Amount: 26})
	w.carriedOut(t, explained)
	w.within(t, "the end of the break", func() bool { return w.show(t, cleared).State() == cases.StateClosed })
	var set string
	w.within(t, "the poison", func() bool {
		return w.Pool.QueryRow(t.Context(), `SELECT id FROM cases WHERE kind = 'poison'`).Scan(&set) == nil
	})
	ids = []string{honoured, open, lost, cleared, explained, left, set}
	w.within(t, "the openings", func() bool {
		var n int
		_ = w.Pool.QueryRow(t.Context(), `SELECT count(*) FROM cases WHERE NOT in_session AND NOT recorded`).Scan(&n)
		return n == 0 && w.show(t, open).ID != "" && w.show(t, left).ID != ""
	})
	stop()
	return ids
}

// Whoever could write to Postgres changed what people see of a case, took one away or made one up, and nobody noticed. Each
// row is compared with what Kafka makes of it.
func TestVerify(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := w.story(t)
	for _, atOnce := range []int{0, 2} {
		if got := w.verify(t, atOnce); len(got.Differences) != 0 || got.Unnamed != 0 || got.Rows != int64(len(ids)) || got.Records == 0 {
			t.Fatalf("%d at once: %d rows of %d, %+v", atOnce, got.Rows, len(ids), got.Differences)
		}
	}
	w.Exec(t, `DELETE FROM cases WHERE id = $1`, ids[0])
	w.Exec(t, `UPDATE cases SET amount = 1, resolution = 'refund', sequence = 99 WHERE id = $1`, ids[1])
	w.Exec(t, `UPDATE cases SET evidence = evidence || '{"account": "acc-1"}' WHERE id = $1`, ids[2])
	w.Exec(t, `UPDATE cases SET ended_as = 'resolved' WHERE id = $1`, ids[3])
	w.Exec(t, `UPDATE cases SET recorded = false WHERE id = $1`, ids[4])
	w.Exec(t, `UPDATE cases SET ended_as = 'cleared', ended_at = now() WHERE id = $1`, ids[5])
	w.Exec(t, `INSERT INTO cases (id, kind, in_session, sequence, opened_at) SELECT 'case_forged', kind, false, 0, now() FROM cases WHERE id = $1`, ids[6])
	want := []string{
		"cases missing " + ids[0], "cases different " + ids[1] + " sequence,amount,resolution", "cases different " + ids[2] + " evidence", "cases different " + ids[3] + " ended_as",
		"cases different " + ids[4] + " recorded", "cases different " + ids[5] + " ended_as", "cases added case_forged",
	}
	slices.Sort(want)
	for _, atOnce := range []int{0, 2} {
		got := w.verify(t, atOnce)
		if lines := saidOf(got); !slices.Equal(slices.Sorted(slices.Values(lines)), want) {
			t.Errorf("%q, want %q", lines, want)
		}
		for _, d := range got.Differences {
			if (d.Record() == "") != (d.Fault == comparison.FaultAdded) {
				t.Errorf("the evidence of %+v is %q", d, d.Record())
			}
		}
	}
	// The way back: the sink reads all again.
	w.Exec(t, `TRUNCATE cases, case_positions`)
	if got := w.verify(t, 0); len(got.Differences) != 0 {
		t.Errorf("emptied: %q", saidOf(got))
	}
	stop := w.runs(t, w)
	w.within(t, "the rows", func() bool {
		var n int
		_ = w.Pool.QueryRow(t.Context(), `SELECT count(*) FROM cases WHERE in_session OR recorded`).Scan(&n)
		return n == len(ids)
	})
	w.within(t, "no difference", func() bool { return len(w.verify(t, 0).Differences) == 0 })
	stop()
}

// Somebody edits each column of a case of each source: none is left that nobody finds.
func TestTamper(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := w.story(t)
	rows, _ := w.Pool.Query(t.Context(), `SELECT column_name::text, udt_name::text FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = 'cases' ORDER BY 1`)
	type column struct{ Name, Kind string }
	columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[column])
	if err != nil || len(columns) < 26 {
		t.Fatal(columns, err)
	}
	other := map[string]string{
		"text": `coalesce(%s, '') || 'x'`, "bool": `NOT coalesce(%s, false)`, "int8": `coalesce(%s, 0) + 1`, "timestamptz": `coalesce(%s, now()) + interval '1 hour'`,
		"_text": `array_append(%s, 'x')`, "jsonb": `%s || '{"x": "y"}'`,
	}
	w.Exec(t, `CREATE TABLE before_cases AS SELECT * FROM cases`)
	tried, believed := 0, 0
	for round := range columns { // each column of each case once
		edited := map[string]string{}
		for i, id := range ids {
			c := columns[(round+i)%len(columns)]
			change := other[c.Kind]
			if change == "" {
				t.Fatalf("no other value of %s %s", c.Name, c.Kind)
			}
			w.Exec(t, fmt.Sprintf(`UPDATE cases SET %s = `+change+` WHERE id = $1`, c.Name, c.Name), id)
			edited[id] = c.Name
			tried++
		}
		for _, d := range w.verify(t, 0).Differences {
			delete(edited, d.Row)
		}
		for id, name := range edited {
			believed++
			t.Errorf("%s of %s is believed", name, id)
		}
		w.Exec(t, `TRUNCATE cases`)
		w.Exec(t, `INSERT INTO cases SELECT * FROM before_cases`)
	}
	t.Logf("tried=%d believed=%d", tried, believed)
}
