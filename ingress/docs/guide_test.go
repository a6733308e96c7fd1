package docs

import (
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"

	guides "quittance/docs"
)

// The guide for analysts is a page in each language, with its sections in the navigation and
// its examples as they are in the file.
func TestGuide(t *testing.T) {
	t.Parallel()
	h := server(t)
	for path, guide := range map[string]struct {
		title string
		text  []byte
	}{
		"/docs/analysts":    {"Reports and analysis – Quittance API", guides.Analysts},
		"/docs/fr/analysts": {"États et analyse – API Quittance", guides.AnalystsFrench},
	} {
		page := get(t, h, path)
		if strings.Count(page, "<h1") != 1 || !strings.Contains(page, "<title>"+guide.title+"</title>") {
			t.Errorf("%s has not one title", path)
		}
		sections := regexp.MustCompile(`(?m)^## (.*)$`).FindAllSubmatch(guide.text, -1)
		if len(sections) < 10 {
			t.Fatalf("the file of %s has %d sections", path, len(sections))
		}
		for _, m := range sections {
			to := regexp.MustCompile(`<li><a href="#([\w-]+)">` + regexp.QuoteMeta(string(m[1])) + `</a>`).FindStringSubmatch(page)
			if to == nil || strings.Count(page, `<h2 id="`+to[1]+`">`) != 1 {
				t.Errorf("%s: no way leads to %q", path, m[1])
			}
		}
		text := html.UnescapeString(page)
		for _, example := range examples(guide.text) {
			if !strings.Contains(text, example) {
				t.Errorf("%s lacks the example\n%s", path, example)
			}
		}
		if strings.Contains(page, "<!--") || strings.Contains(page, "<pre>") || strings.Contains(page, "```") {
			t.Errorf("%s has marks of the file, or examples that a keyboard cannot scroll", path)
		}
		for _, column := range []string{"approved_on", "confirmation_state", "proposed_resolution"} {
			if !strings.Contains(page, "<td><code>"+column+"</code></td>") {
				t.Errorf("%s lacks the column %s", path, column)
			}
		}
	}
	if got, err := renderGuide([]byte("# T\n\n<!-- sql: x -->\n<b onclick=\"x\">raw</b>\n")); err != nil || strings.Contains(string(got), "<b") {
		t.Errorf("%s, %v", got, err)
	}
}

// examples returns the examples of a guide.
func examples(guide []byte) (found []string) {
	for _, m := range regexp.MustCompile("(?s)```\\w+\n(.*?)```").FindAllSubmatch(guide, -1) {
		found = append(found, string(m[1]))
	}
	return found
}

// The French guide has the examples of the English one, so that nobody adds a month up
// differently, and its sections and code.
func TestGuidesAgree(t *testing.T) {
	t.Parallel()
	inEnglish, inFrench := examples(guides.Analysts), examples(guides.AnalystsFrench)
	if len(inEnglish) < 15 || !slices.Equal(inEnglish, inFrench) {
		t.Errorf("the guides have %d and %d examples, or different ones", len(inEnglish), len(inFrench))
		for i := range min(len(inEnglish), len(inFrench)) {
			if inEnglish[i] != inFrench[i] {
				t.Errorf("%s\nis in French\n%s", inEnglish[i], inFrench[i])
			}
		}
	}
	for _, pattern := range []string{"(?m)^#", "(?m)^<!-- .*$", `(?m)^\| .[a-z_]+. \| .[A-Z]`, "`[^`\n]+`"} {
		count := func(text []byte) (n int) { return len(regexp.MustCompile(pattern).FindAll(text, -1)) }
		if in, fr := count(guides.Analysts), count(guides.AnalystsFrench); in > fr {
			t.Errorf("the English guide has %d of %s, the French one %d", in, pattern, fr)
		}
	}
}
