package operations

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"quittance/ingress/staff"
	"quittance/internal/cases"
	"quittance/money"
)

// The reasons of the matcher stood in English on French pages. Each text with which it opens a break has its French.
func TestReasonsOfBreaksAreInFrench(t *testing.T) {
	t.Parallel()
	stated := map[string]bool{}
	phrase := regexp.MustCompile(`"([a-z][^"]* [^"]* [^"]*)"`)
	files, err := filepath.Glob("../../reconciliation/match/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(text), "\n") {
			if !strings.Contains(line, "reason") && !strings.Contains(line, "Break") {
				continue
			}
			for _, m := range phrase.FindAllStringSubmatch(line, -1) {
				stated[m[1]] = true
			}
		}
	}
	for reason := range stated {
		if frenchBreaks[reason] == "" {
			t.Errorf("%q has no French", reason)
		}
	}
	for reason := range frenchBreaks {
		if !stated[reason] {
			t.Errorf("the matcher does not say %q", reason)
		}
	}

	fr := &visit{Visit: &staff.Visit{}, w: &french}
	fr.Lang = money.French
	en := &visit{Visit: &staff.Visit{}, w: &english}
	en.Lang = money.English
	const refused = "what people agreed on in case_1 was refused, because its rows had changed: the amounts differ"
	for _, c := range []struct {
		v            *visit
		reason, want string
	}{
		{fr, "the amounts differ", "Les montants diffèrent."},
		{en, "the amounts differ", "the amounts differ"},
		{fr, refused, "Une décision approuvée n’a pas pu être appliquée. Les montants diffèrent."},
		{en, refused, refused},
		{fr, "a text of a later release", "a text of a later release"},
		{fr, "", ""},
	} {
		if got := c.v.openedBecause(c.reason); got != c.want {
			t.Errorf("%q: %q, want %q", c.reason, got, c.want)
		}
	}

	d := &cases.Detail{}
	d.Kind, d.Amount, d.Currency = cases.KindBreak, -5000, "XAF"
	d.Case.Evidence = map[string]string{cases.EvidenceFindings: "missing_line", cases.EvidenceStage: "none", "day": "2026-11-20"}
	said := ""
	for _, f := range fr.evidence(d) {
		said += f.Label + "=" + f.Value + ";"
	}
	if want := "Nature de l’écart=Somme attendue sans ligne;"; !strings.Contains(said, want) || !strings.Contains(said, "Règle du rapprochement=Aucune;") || !strings.Contains(said, "Jour=2026-11-20;") {
		t.Errorf("%s, want %s", said, want)
	}
}
