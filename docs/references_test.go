package docs_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// reference matches the path of a page, and the part of it that is meant: § and the number of
// a heading, or the words of one.
var reference = regexp.MustCompile(`\bdocs/[a-z/-]+\.md\b(?:,? § ?(\d+)|, "([^"]+)")?`)

// broken matches the end of a line with what begins the next line of a comment.
var broken = regexp.MustCompile(`\n\s*(?://|--|#)?\s*`)

// Files refer to pages below docs by their paths, and to parts by their headings. Each exists.
func TestReferences(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = ".."
	names, err := list.Output()
	if err != nil {
		t.Fatalf("listing files: %v", err)
	}
	found := 0
	for name := range strings.SplitSeq(string(bytes.TrimRight(names, "\x00")), "\x00") {
		switch filepath.Ext(name) {
		case ".go", ".md", ".sql", ".ts", ".mjs", ".js", ".yaml", ".yml", ".html", ".avsc", "":
		default:
			continue
		}
		if name == "CHANGELOG.md" || name == "docs/references_test.go" {
			continue // entries name pages of their time
		}
		text, err := os.ReadFile(filepath.Join("..", name))
		if os.IsNotExist(err) {
			continue // removed and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		// A comment may break a reference over two lines.
		joined := broken.ReplaceAllString(string(text), " ")
		for _, m := range reference.FindAllStringSubmatch(joined, -1) {
			found++
			path, _, _ := strings.Cut(m[0], ".md")
			if fault := missing(filepath.Join("..", path+".md"), m[1], m[2]); fault != "" {
				t.Errorf("%s refers to %s: %s", name, m[0], fault)
			}
		}
	}
	if found < 50 {
		t.Errorf("%d references were found; the pattern no longer matches how files refer to pages", found)
	}
}

// missing says what of a reference does not exist; empty if all does.
func missing(page, number, heading string) string {
	text, err := os.ReadFile(page)
	if err != nil {
		return "there is no such page"
	}
	for line := range strings.Lines(string(text)) {
		title, ok := strings.CutPrefix(strings.TrimLeft(strings.TrimSpace(line), "#"), " ")
		if !ok || !strings.HasPrefix(line, "#") {
			continue
		}
		if number != "" && strings.HasPrefix(title, number+". ") || heading != "" && title == heading {
			return ""
		}
	}
	if number == "" && heading == "" {
		return ""
	}
	return "the page has no such heading"
}
