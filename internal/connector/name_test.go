package connector_test

import (
	"testing"

	"quittance/internal/connector"
)

// What the payroll of an agency writes, and what an operator has of the number.
func TestCompareNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		given, held string
		want        connector.NameVerdict
	}{
		{"MABIALA Awa", "Awa Mabiala", connector.NameMatch},
		{"Hélène Ngoma", "HELENE N'GOMA", connector.NameMatch},
		{"Jean-Pierre Moukoko", "MOUKOKO JEAN PIERRE", connector.NameMatch},
		{"De La Cruz Ana", "DELACRUZ ANA", connector.NameMatch},
		{"  awa   mabiala. ", "Awa Mabiala", connector.NameMatch},
		{"Awa Mabiala", "Mabiala Awa Christelle", connector.NameClose},
		{"A. Mabiala", "Awa Mabiala", connector.NameClose},
		{"Awa Mabiala", "M. Awa C.", connector.NameClose},
		{"Awa Mabialla", "Awa Mabiala", connector.NameClose},
		{"Awa Mabaila", "Awa Mabiala", connector.NameClose},
		{"Awa Mabiela", "Awa Mabiala", connector.NameClose},
		{"Mabiala", "Awa Mabiala", connector.NameClose},
		{"Awa Mabiala", "Brice Mabiala", connector.NameDifferent},
		{"Jean Mabiala", "Sean Mabiala", connector.NameDifferent},
		{"A. M.", "Awa Mabiala", connector.NameDifferent},
		{"Awa Mabiala", "A. M.", connector.NameDifferent},
		{"Awa Awa", "Awa Mabiala", connector.NameDifferent},
		{"Awa Mabiala", "Brice Okemba", connector.NameDifferent},
		{"Awa Mabiala", "", connector.NameUnknown},
		{"Awa Mabiala", " - ", connector.NameUnknown},
		{"", "Awa Mabiala", connector.NameDifferent},
	} {
		if got := connector.CompareNames(c.given, c.held); got != c.want {
			t.Errorf("%q and %q: %s, want %s", c.given, c.held, got, c.want)
		}
		if got := connector.CompareNames(c.held, c.given); c.want != connector.NameUnknown && c.given != "" && got != c.want {
			t.Errorf("%q and %q: %s, want %s", c.held, c.given, got, c.want)
		}
	}
}
