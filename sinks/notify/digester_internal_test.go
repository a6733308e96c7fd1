package notify

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"quittance/internal/digests"
)

// A list of a digest fits into a variable of a message. What is left out is a number.
func TestListsOfDigests(t *testing.T) {
	t.Parallel()
	var items []digests.Item
	for n := range 40 {
		items = append(items, digests.Item{
			Topic: digests.TopicCase, Subject: fmt.Sprintf("case_%032d", n), Detail: "match_proposal, an-agency-with-a-long-slug, test", Since: time.Date(2026, 11, 26, 21, n, 0, 0, time.UTC),
		})
	}
	for n, want := range map[int]string{0: "-", 1: "case_" + strings.Repeat("0", 32) + " (match_proposal, an-agency-with-a-long-slug, test) - 26/11/2026 22:00"} {
		if count, list := listed(items[:n], digests.TopicCase); count != n || list != want {
			t.Errorf("%d items are %d: %q", n, count, list)
		}
	}
	count, list := listed(items, digests.TopicCase)
	lines := strings.Split(list, "\n")
	if last := fmt.Sprintf("+ %d", 40-len(lines)+1); count != 40 || len(lines) < 5 || len(list) > 800 || lines[len(lines)-1] != last {
		t.Errorf("%d items in %d bytes: %q", count, len(list), list)
	}
	if count, list := listed(items, digests.TopicERP); count != 0 || list != "-" {
		t.Errorf("another topic: %d, %q", count, list)
	}
}
