package oversight

import (
	"testing"

	"quittance/money/language/languagetest"
)

// Both languages have every text, and words for the same actions.
func TestBothLanguagesAreWhole(t *testing.T) {
	t.Parallel()
	languagetest.Whole(t, texts)
}
