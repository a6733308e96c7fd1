package problem

import (
	_ "embed" // catalogue.fr.yaml
	"sync"

	"github.com/goccy/go-yaml"
)

// Translation has the texts of an Entry's page in another language.
type Translation struct {
	Title, Meaning string
	Causes, Mend   []string
}

//go:embed catalogue.fr.yaml
var frenchYAML []byte

var french = sync.OnceValue(func() (all map[string]Translation) {
	if err := yaml.UnmarshalWithOptions(frenchYAML, &all, yaml.DisallowUnknownField()); err != nil {
		panic("problem: catalogue.fr.yaml is embedded: " + err.Error())
	}
	return all
})

// InFrench returns the entry with the French texts of its page; false when it has none.
// Detail and Faults stay, because answers are in English.
func (e Entry) InFrench() (Entry, bool) {
	t, ok := french()[e.Code]
	if !ok {
		return e, false
	}
	e.Title, e.Meaning, e.Causes, e.Mend = t.Title, t.Meaning, t.Causes, t.Mend
	return e, true
}
