// Package mutants breaks the rules of the commit path, of reconciliation and of disbursements, one
// rule with each patch. Tests show that they notice the broken rule. Production code has no switch for
// this: a patch becomes an overlay of go build or go test.
//
// A patch is a unified diff. The lines before the diff describe the broken rule and name the
// test that must fail:
//
//	Package: ./processors/runtime      the package of the test, below the module's folder
//	Test: TestRule…                    a test or subtest that must fail; may be repeated
//	Built by the test                  the test builds a program with the overlay
//
// A hunk is found by its lines, not by its line numbers. When these lines change in the
// code, change the patch, too.
package mutants

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

//go:embed *.patch
var patches embed.FS

// Mutant is one patch.
type Mutant struct {
	// Name is the name of the file without .patch.
	Name string
	// Package is the package of Tests, as a path below the module's folder.
	Package string
	// Tests are the tests that must all fail.
	Tests []string
	// Program says that the test builds a program with the overlay.
	Program bool

	files map[string][]hunk // by path below the module's folder
}

// hunk replaces the text before by the text after.
type hunk struct{ before, after string }

// All returns every mutant, ordered by name.
func All() ([]Mutant, error) {
	names, err := fs.Glob(patches, "*.patch")
	if err != nil {
		return nil, err
	}
	out := make([]Mutant, len(names))
	for i, name := range names {
		if out[i], err = Named(strings.TrimSuffix(name, ".patch")); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Named returns the mutant with that name.
func Named(name string) (Mutant, error) {
	text, err := patches.ReadFile(name + ".patch")
	if err != nil {
		return Mutant{}, fmt.Errorf("reading a mutant: %w", err)
	}
	m, err := parse(string(text))
	if err != nil {
		return Mutant{}, fmt.Errorf("%s.patch: %w", name, err)
	}
	m.Name = name
	return m, nil
}

func parse(text string) (Mutant, error) {
	m := Mutant{files: map[string][]hunk{}}
	file, in := "", false
	for line := range strings.Lines(text) {
		word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch {
		case word == "+++":
			file, in = strings.TrimPrefix(rest, "b/"), false
		case word == "@@":
			if file == "" {
				return m, errors.New("a hunk comes before the name of its file")
			}
			m.files[file], in = append(m.files[file], hunk{}), true
		case word == "---":
			in = false
		case in:
			h := &m.files[file][len(m.files[file])-1]
			if line[0] != '+' {
				h.before += line[1:]
			}
			if line[0] != '-' {
				h.after += line[1:]
			}
		case word == "Package:":
			m.Package = rest
		case word == "Test:":
			m.Tests = append(m.Tests, rest)
		case word == "Built":
			m.Program = true
		}
	}
	if m.Package == "" || len(m.Tests) == 0 || len(m.files) == 0 {
		return m, errors.New("the package, the test or the change is missing")
	}
	return m, nil
}

// Overlay writes the changed files to dir. It returns the JSON file for the flag -overlay of
// the go command. root is the folder of the module.
func (m Mutant) Overlay(root, dir string) (string, error) {
	replace := map[string]string{}
	for path, hunks := range m.files {
		original := filepath.Join(root, path)
		b, err := os.ReadFile(original)
		if err != nil {
			return "", fmt.Errorf("applying %s.patch: %w", m.Name, err)
		}
		text := string(b)
		for _, h := range hunks {
			if n := strings.Count(text, h.before); n != 1 {
				return "", fmt.Errorf("%s.patch does not apply: %s has these lines %d times instead of once; adapt the patch to the code:\n%s", m.Name, path, n, h.before)
			}
			text = strings.Replace(text, h.before, h.after, 1)
		}
		changed := filepath.Join(dir, strings.ReplaceAll(path, "/", "__"))
		if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("writing a mutant: %w", err)
		}
		replace[original] = changed
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		return "", fmt.Errorf("writing an overlay: %w", err)
	}
	return file, nil
}
