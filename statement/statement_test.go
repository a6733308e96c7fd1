package statement_test

import (
	"slices"
	"testing"
	"time"

	"quittance/statement"
)

// A payout says that the money of the other lines was paid out. It is not counted as money again.
func TestBatch(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	var b statement.Batch
	for i, l := range []statement.Line{
		{Kind: statement.KindPayment, Amount: 5000, Fee: 50},
		{Kind: statement.KindPayout, Amount: -3950},
		{Kind: statement.KindRefund, Amount: -1000},
	} {
		l.At = begin.Add(time.Duration(i) * time.Hour)
		b.Add(&l)
	}
	want := statement.Batch{Amount: 3950, Filled: true, First: begin, Last: begin.Add(2 * time.Hour), Payout: -3950, Paid: true}
	if b != want || b.Unpaid() != 0 {
		t.Errorf("%+v, unpaid %d, want %+v", b, b.Unpaid(), want)
	}
}

func TestReferencesOfLine(t *testing.T) {
	t.Parallel()
	l := statement.Line{OperatorRef: "OP1", NoticeRef: "AV1"}
	if got := l.Refs(); !slices.Equal(got, []string{"OP1", "AV1"}) {
		t.Errorf("references %q", got)
	}
}

func TestParseDay(t *testing.T) {
	t.Parallel()
	day, err := statement.ParseDay("2026-11-21")
	if err != nil || day.String() != "2026-11-21" || day+1 != statement.DayOf(time.Date(2026, 11, 21, 23, 30, 0, 0, time.UTC), time.FixedZone("WAT", 3600)) {
		t.Errorf("day %v, %v", day, err)
	}
	if _, err := statement.ParseDay("21/11/2026"); err == nil {
		t.Error("another form is a day")
	}
}
