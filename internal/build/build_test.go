package build_test

import (
	"regexp"
	"strings"
	"testing"

	"quittance"
	"quittance/internal/build"
)

// A program called itself (devel), so that nobody knew which release an installation ran.
func TestVersion(t *testing.T) {
	t.Parallel()
	is := build.Read()
	if !regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`).MatchString(is.Release) || !strings.Contains(string(quittance.Changelog), "\n## "+is.Release+"\n") || !strings.HasPrefix(is.Go, "go") {
		t.Errorf("this program is %+v", is)
	}
	const revision = "37b291eb8c11aaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	for want, is := range map[string]build.Info{
		"2026-11-29":                       {Release: "2026-11-29"},
		"2026-11-29+37b291eb8c11":          {Release: "2026-11-29", Revision: revision},
		"2026-11-29+37b291eb8c11.modified": {Release: "2026-11-29", Revision: revision, Modified: true},
	} {
		if got := is.Version(); got != want {
			t.Errorf("%+v is %q, want %q", is, got, want)
		}
	}
}
