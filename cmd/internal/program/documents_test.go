package program

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"quittance/cmd/internal/cli"

	"github.com/spf13/cobra"
)

var (
	// typed are command lines in documents: lines of examples, and code in a sentence.
	typed = regexp.MustCompile("(?m)^ *(?:\\$ )?(quittance(?:-dev)? .+)$|`(quittance(?:-dev)? [^`\n]+)`")
	// explained is where an example goes on with words: after two spaces, or a comment.
	explained = regexp.MustCompile(`\s{2,}.*$|\s#.*$`)
	subName   = regexp.MustCompile(`^[a-z]+(-[a-z]+)*(\|[a-z]+(-[a-z]+)*)*$`)
	flagName  = regexp.MustCompile(`--([a-z]+(?:-[a-z]+)*)`)
)

// Commands in documents exist, and have the flags with which they are shown.
func TestCommandsInDocuments(t *testing.T) {
	t.Parallel()
	root := New(cli.Program{Name: "quittance"}).Root()
	root.InitDefaultCompletionCmd()
	developer := []string{"up", "simulate", "listen", "bench"} // cmd/quittance-dev adds them
	seen := 0
	check := func(file, line string) {
		words := strings.Fields(line)[1:]
		at := []*cobra.Command{root}
		for _, word := range words {
			if !subName.MatchString(strings.TrimSuffix(word, ",")) || !at[0].HasSubCommands() {
				break
			}
			var next []*cobra.Command
			for name := range strings.SplitSeq(strings.TrimSuffix(word, ","), "|") {
				if at[0] == root && slices.Contains(developer, name) {
					return
				}
				for _, parent := range at {
					i := slices.IndexFunc(parent.Commands(), func(c *cobra.Command) bool { return c.Name() == name })
					if i < 0 {
						t.Errorf("%s: %q: %s has no command %s", file, line, parent.CommandPath(), name)
						return
					}
					next = append(next, parent.Commands()[i])
				}
			}
			if at = next; strings.HasSuffix(word, ",") { // a list of commands
				return
			}
		}
		seen++
		for _, m := range flagName.FindAllStringSubmatch(line, -1) {
			known := func(c *cobra.Command) bool {
				return c.Flags().Lookup(m[1]) != nil || c.InheritedFlags().Lookup(m[1]) != nil || m[1] == "help"
			}
			if m[1] != "port" && !slices.ContainsFunc(at, known) { // --port is of quittance-dev
				t.Errorf("%s: %q: %s has no flag --%s", file, line, at[0].CommandPath(), m[1])
			}
		}
	}
	read := func(path string) {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range typed.FindAllStringSubmatch(string(text), -1) {
			check(strings.TrimPrefix(path, "../../../"), explained.ReplaceAllString(m[1]+m[2], ""))
		}
	}
	read("../../../README.md")
	for _, dir := range []string{"docs", "deploy"} {
		err := filepath.WalkDir("../../../"+dir, func(path string, _ fs.DirEntry, err error) error {
			// Pages of upgrades name commands of earlier releases.
			if err == nil && filepath.Ext(path) == ".md" && filepath.Base(path) != "upgrading.md" {
				read(path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen < 100 {
		t.Errorf("%d commands were found", seen)
	}
}
