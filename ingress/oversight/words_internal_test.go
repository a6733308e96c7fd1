package oversight

import (
	"testing"

	"quittance/money/language/languagetest"
)

// Both languages have every text, and words for the same actions.
func TestBothLanguagesAreWhole(t *testing.T) {
	t.Parallel()
	languagetest.Whole(t, texts)
	for action := range frenchActions {
		if englishActions[action] == "" {
			t.Errorf("no English word for %s", action)
		}
	}
	if len(frenchActions) != len(englishActions) {
		t.Errorf("%d actions in French, %d in English", len(frenchActions), len(englishActions))
	}
}
