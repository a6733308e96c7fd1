package docs

import (
	"html"
	"regexp"
	"strings"
	"testing"

	guides "quittance/docs"
)

// The guide for analysts is a page, with its sections in the navigation and its examples as
// they are in the file.
func TestGuide(t *testing.T) {
	t.Parallel()
	page := get(t, server(t), "/docs/analysts")
	if strings.Count(page, "<h1") != 1 || !strings.Contains(page, "<title>Reports and analysis – Quittance API</title>") {
		t.Error("it has not one title")
	}
	sections := regexp.MustCompile(`(?m)^## (.*)$`).FindAllSubmatch(guides.Analysts, -1)
	if len(sections) < 10 {
		t.Fatalf("the file has %d sections", len(sections))
	}
	for _, m := range sections {
		to := regexp.MustCompile(`<li><a href="#([\w-]+)">` + regexp.QuoteMeta(string(m[1])) + `</a>`).FindStringSubmatch(page)
		if to == nil || strings.Count(page, `<h2 id="`+to[1]+`">`) != 1 {
			t.Errorf("no way leads to %q", m[1])
		}
	}
	text := html.UnescapeString(page)
	for _, m := range regexp.MustCompile("(?s)```\\w+\n(.*?)```").FindAllSubmatch(guides.Analysts, -1) {
		if !strings.Contains(text, string(m[1])) {
			t.Errorf("it lacks the example\n%s", m[1])
		}
	}
	if strings.Contains(page, "<!--") || strings.Contains(page, "<pre>") || strings.Contains(page, "```") {
		t.Error("it has marks of the file, or examples that a keyboard cannot scroll")
	}
	for _, column := range []string{"approved_on", "confirmation_state", "proposed_resolution"} {
		if !strings.Contains(page, "<td><code>"+column+"</code></td>") {
			t.Errorf("it lacks the column %s", column)
		}
	}
	if got, err := renderGuide([]byte("# T\n\n<!-- sql: x -->\n<b onclick=\"x\">raw</b>\n")); err != nil || strings.Contains(string(got), "<b") {
		t.Errorf("%s, %v", got, err)
	}
}
