package disbursements

import (
	"reflect"
	"testing"

	"quittance/disbursement"
	"quittance/internal/disbursements"
)

// A file of 100,000 lines is added by 500 steps. They are one row of the history; what people did, and what another line or another
// reason has, keeps a row of its own.
func TestHistoryJoinsStepsOfManyLines(t *testing.T) {
	t.Parallel()
	step := func(kind disbursement.EventType, offset int64, lines int, detail ...string) disbursements.Step {
		s := disbursements.Step{Type: kind, Lines: lines, Partition: 1, Offset: offset}
		if len(detail) > 0 {
			s.Detail = map[string]string{detail[0]: detail[1]}
		}
		return s
	}
	elsewhere := step(disbursement.EventLinesAdded, 9, 200)
	elsewhere.Partition = 2
	var got [][3]int64
	for _, s := range together([]disbursements.Step{
		step(disbursement.EventOpened, 1, 0), step(disbursement.EventLinesAdded, 2, 200), step(disbursement.EventLinesAdded, 5, 200), step(disbursement.EventLinesAdded, 6, 17), elsewhere,
		step(disbursement.EventHeld, 10, 0, "by", "ben"), step(disbursement.EventHeld, 11, 0, "by", "ben"),
		step(disbursement.EventLineRetried, 12, 1, "line", "3"), step(disbursement.EventLineRetried, 13, 1, "line", "4"),
	}) {
		got = append(got, [3]int64{s.Offset, s.until, int64(s.Lines)})
	}
	if want := [][3]int64{{1, 1, 0}, {2, 6, 417}, {9, 9, 200}, {10, 10, 0}, {11, 11, 0}, {12, 12, 1}, {13, 13, 1}}; !reflect.DeepEqual(got, want) {
		t.Errorf("the rows are %v, want %v", got, want)
	}
}
