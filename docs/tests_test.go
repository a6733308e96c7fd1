package docs_test

import (
	"bytes"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The patterns of what pages say about tests: a name, and names with the package that has them.
var (
	namedTest   = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z]\\w*)`")
	namedInside = regexp.MustCompile("((?:`(?:Test|Fuzz|Benchmark)[A-Z]\\w*`(?:\\\\\\*)?(?:, | and )?)+) in `([a-z0-9_/-]+)`")
	declared    = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Z]\w*)\(`)
)

// Pages name the tests that hold what they say. Each exists, in the package that the page names: a test that was
// renamed or removed would hold nothing any more.
func TestNamedTests(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*_test.go")
	list.Dir = ".."
	files, err := list.Output()
	if err != nil {
		t.Fatalf("listing tests: %v", err)
	}
	packages := map[string][]string{} // by test
	for name := range strings.SplitSeq(string(bytes.TrimRight(files, "\x00")), "\x00") {
		text, err := os.ReadFile(filepath.Join("..", name))
		if os.IsNotExist(err) {
			continue // removed and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			packages[m[1]] = append(packages[m[1]], path.Dir(name))
		}
	}
	found := 0
	for name, text := range documents(t) {
		if name == "CHANGELOG.md" {
			continue // entries name tests of their time
		}
		for _, m := range namedTest.FindAllStringSubmatch(text, -1) {
			if found++; len(packages[m[1]]) == 0 {
				t.Errorf("%s names %s, which is no test", name, m[1])
			}
		}
		for _, m := range namedInside.FindAllStringSubmatch(text, -1) {
			for _, test := range namedTest.FindAllStringSubmatch(m[1], -1) {
				within := packages[test[1]]
				if len(within) > 0 && !slices.Contains(within, path.Clean(m[2])) && !slices.Contains(within, path.Join(path.Dir(name), m[2])) {
					t.Errorf("%s names %s in %s, which has no such test", name, test[1], m[2])
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("%d tests are named; the pattern no longer matches how pages name tests", found)
	}
}
