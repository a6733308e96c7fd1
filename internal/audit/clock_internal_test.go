package audit

import (
	"testing"
	"time"

	"quittance/schemas/record"
)

// In developer mode people move the clock to the next night. Rows of the second before were recorded "a day later", and the comparison
// of that night named each as one that somebody had dated back.
func TestMovedClockMakesNoRowLate(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for moves, want := range map[bool]bool{false: true, true: false} {
		c := comparison{clockMoves: moves, byRow: map[proof]*entry{}, bySequence: map[int64]*entry{}, byID: map[int64][]*entry{}}
		first := false // rows before were in time
		c.take(&record.AuditRow{Sequence: 1, RowID: 1, At: at, RecordedAt: at.Add(24 * time.Hour), Digest: []byte{1}}, &first)
		if got := c.list[0].late; got != want {
			t.Errorf("a clock that moves is %v: late is %v, want %v", moves, got, want)
		}
	}
}
