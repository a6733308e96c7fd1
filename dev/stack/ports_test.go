package stack_test

import (
	"testing"

	"quittance/dev/stack"
)

func TestFreePortsAreARowOfTheirOwn(t *testing.T) {
	t.Parallel()
	given := map[int]bool{}
	for range 20 {
		row, err := stack.FreePorts(9)
		if err != nil {
			t.Fatal(err)
		}
		for i, port := range row {
			if port != row[0]+i || given[port] {
				t.Errorf("%v after %v", row, given)
			}
			given[port] = true
		}
	}
}
