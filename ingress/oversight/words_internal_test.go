package oversight

import (
	"maps"
	"slices"
	"testing"

	"quittance/internal/report"
	"quittance/money/language/languagetest"
)

// Both languages have every text, and words for the same actions.
func TestBothLanguagesAreWhole(t *testing.T) {
	t.Parallel()
	languagetest.Whole(t, texts)
	for _, tables := range [][2]map[string]string{{frenchActions, englishActions}, {french.Reports.Names, english.Reports.Names}, {french.Reports.About, english.Reports.About}, {french.Reports.Columns, english.Reports.Columns}} {
		if a, b := slices.Sorted(maps.Keys(tables[0])), slices.Sorted(maps.Keys(tables[1])); !slices.Equal(a, b) {
			t.Errorf("words in French for %q, in English for %q", a, b)
		}
	}
	for _, r := range report.All() {
		if french.Reports.Names[r.Name] == "" || french.Reports.About[r.Name] == "" {
			t.Errorf("no words for the report %s", r.Name)
		}
	}
}
