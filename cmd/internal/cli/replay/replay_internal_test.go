package replay

import (
	"io"
	"testing"

	"quittance/cmd/internal/cli"
	"quittance/schemas"
)

// Every topic can be replayed, or replay gives the reason why it cannot.
func TestEveryTopicIsReplayableOrHasAReason(t *testing.T) {
	t.Parallel()
	for _, topic := range schemas.Topics() {
		_, can := replayable()[topic.Name]
		if _, cannot := notReplayable[topic.Name]; can == cannot {
			t.Errorf("%s: replayable %t, with a reason against it %t", topic.Name, can, cannot)
		}
	}
}

// A rebuild that had set a payment aside said that the sums are equal, and nothing else: the sums
// have only what could be read.
func TestRebuildThatSetRecordsAside(t *testing.T) {
	t.Parallel()
	for n, fails := range map[int64]bool{0: false, 2: true} {
		m := &cli.Meta{Out: io.Discard, AsJSON: true}
		if err := showRebuilt(m, "journal", nil, []counted{{"events", 7, "events written"}, {setAside, n, "records"}}); (err != nil) != fails {
			t.Errorf("%d set aside: %v", n, err)
		}
	}
}
