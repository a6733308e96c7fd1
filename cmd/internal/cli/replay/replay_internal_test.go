package replay

import (
	"testing"

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
