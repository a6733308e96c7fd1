package program

import (
	"testing"

	"quittance/cmd/internal/cli"
)

// The command `jobs` had texts of its own for refusals of deliveries and of people. They replaced those of the commands that the
// refusals are of: `deliveries retry` said of an unknown delivery only that it is kept no more.
func TestNoCommandReplacesTheWordsOfAnother(t *testing.T) {
	t.Parallel()
	type of struct{ use, text string }
	known := map[string]of{}
	for code, say := range words {
		known[code] = of{"the program", say(nil)}
	}
	for _, g := range New(cli.Program{Name: "quittance"}).Groups {
		for _, c := range g.Commands {
			for code, say := range c.Words {
				if before, twice := known[code]; twice && before.text != say(nil) {
					t.Errorf("%s has words of %s and others of %s", code, before.use, c.Use)
				}
				known[code] = of{c.Use, say(nil)}
			}
		}
	}
}
