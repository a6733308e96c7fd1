package counter

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/checkout/money"
	"quittance/checkout/page"
)

// Both languages say everything, with the same verbs.
func TestBothLanguagesAreWhole(t *testing.T) {
	t.Parallel()
	verbs := regexp.MustCompile(`%[a-z]`)
	fr, en := reflect.ValueOf(french), reflect.ValueOf(english)
	for i := range fr.NumField() {
		name := fr.Type().Field(i).Name
		if fr.Field(i).Kind() != reflect.String {
			continue
		}
		a, b := fr.Field(i).String(), en.Field(i).String()
		if a == "" || b == "" || !slices.Equal(verbs.FindAllString(a, -1), verbs.FindAllString(b, -1)) {
			t.Errorf("%s is %q and %q", name, a, b)
		}
	}
	if a, b := slices.Sorted(maps.Keys(french.Refusals)), slices.Sorted(maps.Keys(english.Refusals)); !slices.Equal(a, b) {
		t.Errorf("refusals are told of %v and %v", a, b)
	}
	// Every code that openapi.yaml names for what a clerk does has its words.
	for _, code := range regexp.MustCompile(`(?m)^            - ((?:counter|checkout)\..*)$`).FindAllStringSubmatch(string(openAPI), -1) {
		if french.Refusals[code[1]] == "" {
			t.Errorf("no words for %s", code[1])
		}
	}
	for _, lang := range money.Languages {
		for month := time.January; month <= time.December; month++ {
			if name := page.Date(lang, time.Date(2026, month, 2, 12, 0, 0, 0, time.UTC)); strings.Contains(name, "2  ") || !strings.Contains(name, " 2026") {
				t.Errorf("a month has no name: %q", name)
			}
		}
	}
}

func TestDatesAreBrazzavilles(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 10, 31, 23, 5, 0, 0, time.UTC)
	if fr, en := page.Date(money.French, at), page.Date(money.English, at); fr != "1er novembre 2026 à 00:05" || en != "1 November 2026, 00:05" {
		t.Errorf("%q, %q", fr, en)
	}
	if checkout.SameDay(at, at.Add(-10*time.Minute)) || !checkout.SameDay(at, at.Add(23*time.Hour)) {
		t.Error("the day does not change at midnight in Brazzaville")
	}
	if got := digits(" 1234\u00a05678-9012.3456\u202f"); got != "1234567890123456" {
		t.Errorf("%q", got)
	}
}
