package docs

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// Phrases has texts in English with their French, for texts that a program takes from
// elsewhere: the OpenAPI files, the comments of ClickHouse's columns. A text is found by its
// English: if that changes, the French is missing until somebody has looked at it. Not safe
// for concurrent use.
type Phrases struct {
	french        map[string]string
	used, missing map[string]bool
}

// ReadPhrases reads a list of pairs of en and fr in YAML. White space in en does not count.
func ReadPhrases(text []byte) (*Phrases, error) {
	var list []struct{ EN, FR string }
	if err := yaml.UnmarshalWithOptions(text, &list, yaml.DisallowUnknownField()); err != nil {
		return nil, fmt.Errorf("reading French texts: %w", err)
	}
	p := &Phrases{french: map[string]string{}, used: map[string]bool{}, missing: map[string]bool{}}
	for _, pair := range list {
		key := words(pair.EN)
		switch {
		case key == "" || words(pair.FR) == "":
			return nil, fmt.Errorf("reading French texts: en or fr of %q is empty", key+words(pair.FR))
		case p.french[key] != "":
			return nil, fmt.Errorf("reading French texts: %q occurs twice", key)
		}
		p.french[key] = pair.FR
	}
	return p, nil
}

func words(text string) string { return strings.Join(strings.Fields(text), " ") }

// French returns the French of an English text, or the English text if it has none; then
// Check returns an error.
func (p *Phrases) French(english string) string {
	key := words(english)
	if french, ok := p.french[key]; ok {
		p.used[key] = true
		return french
	}
	p.missing[key] = true
	return english
}

// Check returns an error that names the texts which were asked for and have no French, and
// the French ones whose English nobody asked for.
func (p *Phrases) Check() error {
	var faults []error
	for _, key := range slices.Sorted(maps.Keys(p.missing)) {
		faults = append(faults, fmt.Errorf("no French text for %q", key))
	}
	for _, key := range slices.Sorted(maps.Keys(p.french)) {
		if !p.used[key] {
			faults = append(faults, fmt.Errorf("a French text for %q, which occurs nowhere", key))
		}
	}
	return errors.Join(faults...)
}
