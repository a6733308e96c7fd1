package page

import (
	"maps"
	"regexp"
	"testing"

	"quittance/money/language/languagetest"
)

// Both languages have every text, with the same verbs of package fmt.
func TestBothLanguagesSayEverything(t *testing.T) {
	t.Parallel()
	space := regexp.MustCompile(` [:;?!»]|« `)
	languagetest.Whole(t, texts, func(name, french string) {
		// With an ordinary space the line could begin with the punctuation.
		if space.MatchString(french) {
			t.Errorf("%s breaks before its punctuation: %q", name, french)
		}
	})
	if len(french.Errors) != len(ErrorCodes) {
		t.Errorf("words for %d faults of forms, want %d", len(french.Errors), len(ErrorCodes))
	}
	for _, code := range ErrorCodes {
		if french.Errors[code] == "" {
			t.Errorf("no words for %s", code)
		}
	}
	for code := range maps.Keys(definite) {
		if french.Failures[code] == "" {
			t.Errorf("definite refusal %s has no words", code)
		}
	}
}
