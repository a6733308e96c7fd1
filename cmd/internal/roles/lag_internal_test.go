package roles

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// Dashboards and alerts select the lag of a group and a topic by these labels.
func TestLagLabels(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("testdata/lag.txt")
	if err != nil {
		t.Fatal(err)
	}
	var labels []string
	for _, r := range Table() {
		for _, g := range r.Groups {
			for _, topic := range g.Topics {
				labels = append(labels, g.Name+" "+topic+"\n")
			}
		}
	}
	slices.Sort(labels)
	if got := strings.Join(labels, ""); got != string(b) {
		t.Errorf("groups and topics are\n%s\nwant those of testdata/lag.txt:\n%s", got, b)
	}
}
