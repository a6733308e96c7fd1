package journal_test

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/tally"
	"quittance/schemas"
	"quittance/schemas/record"
)

// line returns a line of a statement.
func line(n int, amount int64) *record.StatementLine {
	return &record.StatementLine{
		ImportID: "import", TenantID: "tenant", Livemode: true, Account: "mtn", StatementID: "2026-03-31..2026-03-31", LineID: fmt.Sprintf("mtn/%05d", n), Number: int64(n + 1),
		Occurrence: 1, SourceLine: int32(n + 2), SourceColumn: 1, Kind: "payment", At: begin, Day: "2026-04-01", Currency: "XAF", Amount: amount, Fee: 10, OperatorRef: fmt.Sprintf("op_%05d", n), ImportedAt: begin,
	}
}

// Lines of statements become rows, once: also when an overlapping statement has them again, and
// after a rebuild. The first record of a line stays. Other content is a second row.
func TestStatementLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var records []*kgo.Record
	add := func(r record.Record) {
		records = append(records, w.value(schemas.TopicStatements, "tenant/live/mtn", r))
	}
	const n = 700
	for i := range n {
		add(line(i, 1000))
	}
	add(&record.Statement{ImportID: "import", TenantID: "tenant", Account: "mtn", StatementID: "2026-03-31..2026-03-31", Lines: n})
	for i := n - 10; i < n; i++ { // an overlapping statement
		again := line(i, 1000)
		again.StatementID, again.ImportID, again.Number = "2026-04-01..2026-04-02", "second", 1
		add(again)
	}
	add(line(0, 1001)) // other content
	other := line(1, 1000)
	other.Livemode = false // test and live never meet
	add(other)
	records = append(records, &kgo.Record{Topic: w.kafka.Prefix + schemas.TopicStatements, Key: []byte("k"), Value: []byte("garbage")})
	gone := line(3, 1000) // withdrawn, twice told, and imported again
	gone.Withdrawn = true
	add(gone)
	add(gone)
	again := line(3, 1000)
	again.Life = 1
	add(again)
	bad := line(2, 1000)
	bad.Day = "tomorrow"
	add(bad)
	if err := w.cl.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	_, stop := w.run(w.conn)
	eventually(t, "the sink has written all", w.committed)
	stop()
	check := func() {
		t.Helper()
		var rows, firsts uint64
		if err := w.conn.QueryRow(t.Context(), `SELECT count(), countIf(import_id = 'import') FROM statement_lines FINAL`).Scan(&rows, &firsts); err != nil || rows != n+4 || firsts != n+4 {
			t.Errorf("%d rows, %d of the first statement, %v", rows, firsts, err)
		}
		var lines, sum int64
		if err := w.conn.QueryRow(t.Context(), `SELECT sum(if(withdrawn, -1, 1)), sum(net_amount) FROM statement_lines FINAL WHERE line_id = 'mtn/00003'`).Scan(&lines, &sum); err != nil || lines != 1 || sum != 990 {
			t.Errorf("a line that was withdrawn and imported again: %d lines of %d, %v", lines, sum, err)
		}
		var day, at string
		var net, offset int64
		if err := w.conn.QueryRow(t.Context(), `SELECT toString(local_day), toString(at), net_amount, toInt64(source_offset) FROM statement_lines FINAL WHERE line_id = 'mtn/00699'`).Scan(&day, &at, &net, &offset); err != nil || day != "2026-04-01" || at != "2026-03-31 23:00:00.005" || net != 990 || offset != 699 {
			t.Errorf("%s %s %d at %d, %v", day, at, net, offset, err)
		}
	}
	check()

	if err := w.conn.Exec(t.Context(), `ALTER TABLE statement_lines DELETE WHERE cityHash64(line_id) % 2 = 0 SETTINGS mutations_sync = 2`); err != nil {
		t.Fatal(err)
	}
	got, err := w.rebuild(t.Context(), nil)
	if err != nil || !got.Equal() || got.Statements != n+16 || got.Unreadable != 2 || len(got.StatementLines) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, l := range got.StatementLines {
		if l.Live && l.Source != (tally.Count{Events: n + 3, Amount: n*990 + 991}) {
			t.Errorf("%+v", l)
		}
	}
	check()
}
