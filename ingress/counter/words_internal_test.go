package counter

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"quittance/money"
	"quittance/money/language"
	"quittance/money/language/languagetest"
	"quittance/money/localtime"
)

// Both languages have every text, with the same verbs.
func TestBothLanguagesAreWhole(t *testing.T) {
	t.Parallel()
	languagetest.Whole(t, texts)
	// Every code that openapi.yaml has for a clerk's operations has a text.
	for _, code := range regexp.MustCompile(`(?m)^            - ((?:counter|checkout)\..*)$`).FindAllStringSubmatch(string(openAPI), -1) {
		if french.Refusals[code[1]] == "" {
			t.Errorf("no words for %s", code[1])
		}
	}
	for _, lang := range money.Languages {
		for month := time.January; month <= time.December; month++ {
			if name := language.Date(lang, time.Date(2026, month, 2, 12, 0, 0, 0, time.UTC)); strings.Contains(name, "2  ") || !strings.Contains(name, " 2026") {
				t.Errorf("a month has no name: %q", name)
			}
		}
	}
}

func TestDatesAreBrazzavilles(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 10, 31, 23, 5, 0, 0, time.UTC)
	if fr, en := language.Date(money.French, at), language.Date(money.English, at); fr != "1er novembre 2026 à 00:05" || en != "1 November 2026, 00:05" {
		t.Errorf("%q, %q", fr, en)
	}
	if localtime.SameDay(at, at.Add(-10*time.Minute)) || !localtime.SameDay(at, at.Add(23*time.Hour)) {
		t.Error("the day does not change at midnight in Brazzaville")
	}
	if got := digits(" 1234\u00a05678-9012.3456\u202f"); got != "1234567890123456" {
		t.Errorf("%q", got)
	}
}
