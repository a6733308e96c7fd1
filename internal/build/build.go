// Package build says which program runs.
package build

import (
	"regexp"
	"runtime"
	"runtime/debug"
	"sync"

	"quittance"
)

// Info names a program.
type Info struct {
	// Release is the date of the newest section of the changelog, such as 2026-11-29.
	Release string
	// Revision is the commit from which the program was built; empty if the build does not say.
	Revision string
	// Modified is true if files differed from the commit.
	Modified bool
	// Go is the version of the compiler.
	Go string
}

// Version returns release and commit in one word, such as 2026-11-29+37b291eb8c11.
func (i Info) Version() string {
	if i.Revision == "" {
		return i.Release
	}
	out := i.Release + "+" + i.Revision[:min(12, len(i.Revision))]
	if i.Modified {
		out += ".modified"
	}
	return out
}

// date finds the first date that is a heading.
var date = regexp.MustCompile(`(?m)^## (\d{4}-\d{2}-\d{2})$`)

// Read returns what the running program is.
var Read = sync.OnceValue(func() Info {
	out := Info{Release: "unreleased", Go: runtime.Version()}
	if m := date.FindSubmatch(quittance.Changelog); m != nil {
		out.Release = string(m[1])
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return out
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			out.Revision = s.Value
		case "vcs.modified":
			out.Modified = s.Value == "true"
		}
	}
	return out
})
