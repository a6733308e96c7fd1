package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// root is the folder of the repository.
const root = ".."

// documents returns the Markdown files of the repository by their path from root.
func documents(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || path != root && strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		found[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 30 {
		t.Fatalf("%d documents were found", len(found))
	}
	return found
}

var (
	examples = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	links    = regexp.MustCompile(`\]\(([^)\s]+)\)|<img src="([^"]+)"`)
	headings = regexp.MustCompile(`(?m)^#{1,6} (.*)$`)
	ownID    = regexp.MustCompile(`\s*\{#([\w-]+)\}$`)
	unsaid   = regexp.MustCompile(`[^\p{L}\p{N}\s_-]`)
)

// anchors returns the ids of a document's headings, as hosts of repositories make them, or as
// the heading names its own.
func anchors(text string) map[string]bool {
	ids := map[string]bool{}
	for _, m := range headings.FindAllStringSubmatch(text, -1) {
		title := m[1]
		if own := ownID.FindStringSubmatch(title); own != nil {
			ids[own[1]] = true
			title = ownID.ReplaceAllString(title, "")
		}
		ids[strings.ReplaceAll(unsaid.ReplaceAllString(strings.ToLower(title), ""), " ", "-")] = true
	}
	return ids
}

// Each link in a document leads to a file of the repository, and to a heading that is in it.
func TestLinks(t *testing.T) {
	t.Parallel()
	all := documents(t)
	for name, text := range all {
		for _, m := range links.FindAllStringSubmatch(examples.ReplaceAllString(text, ""), -1) {
			to, anchor, _ := strings.Cut(m[1]+m[2], "#")
			if strings.Contains(to, "://") || strings.HasPrefix(to, "/") || strings.HasPrefix(to, "mailto:") {
				continue // of the web, or of the running service: ingress/docs has a test for these
			}
			target := name
			if to != "" {
				target = filepath.Join(filepath.Dir(name), to)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s leads to %s, which is not there", name, target)
				continue
			}
			if anchor != "" && !anchors(all[target])[anchor] {
				t.Errorf("%s leads to %s#%s, which has no such heading", name, target, anchor)
			}
		}
	}
}

// The README can be read in one go.
func TestReadmeIsShort(t *testing.T) {
	t.Parallel()
	if n := strings.Count(documents(t)["README.md"], "\n"); n > 160 {
		t.Errorf("README.md has %d lines, at most 160 are good", n)
	}
}

// A document shows at most 40 pictures of docs/screens, and there are no others.
func TestScreensAreShown(t *testing.T) {
	t.Parallel()
	const most = 40
	shown := map[string]bool{}
	for name, text := range documents(t) {
		for _, m := range links.FindAllStringSubmatch(text, -1) {
			if target := filepath.Join(filepath.Dir(name), m[1]+m[2]); filepath.Dir(target) == "docs/screens" {
				shown[filepath.Base(target)] = true
			}
		}
	}
	files, err := os.ReadDir("screens")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !shown[f.Name()] {
			t.Errorf("no document shows docs/screens/%s", f.Name())
		}
	}
	if len(files) > most {
		t.Errorf("docs/screens has %d pictures, at most %d are good", len(files), most)
	}
}

// An entry of the changelog is one line of at most 200 characters.
func TestChangelogIsShort(t *testing.T) {
	t.Parallel()
	const most = 200
	for line := range strings.Lines(documents(t)["CHANGELOG.md"]) {
		if n := utf8.RuneCountInString(strings.TrimSpace(line)); strings.HasPrefix(line, "- ") && n > most {
			t.Errorf("%d characters, at most %d are good: %s", n, most, line)
		}
	}
}
