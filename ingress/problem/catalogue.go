package problem

import (
	"bytes"
	_ "embed" // catalogue.yaml
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/goccy/go-yaml"

	"quittance/internal/form"
)

// API is a set of operations that answer with problems.
type API string

// The APIs. A test holds each one's openapi.yaml against the catalogue.
const (
	Ministry API = "ministry"
	Counter  API = "counter"
	Citizen  API = "citizen"
)

// Entry is one error code: how it is answered, and what its page under
// /docs/errors/ says. Texts may have code in backticks, Detail and Faults excepted.
type Entry struct {
	// In are the APIs that answer the code.
	In     []API
	Code   string
	Status int
	// Title is the same in every problem of the code. Detail is the usual detail; a
	// handler that knows more says more (Problem.Saying). Faults belong to the example
	// on the page.
	Title, Detail string
	Faults        []form.Fault
	// Meaning begins the page. Causes are the likely ones, likeliest first. Mend is
	// what to do, in order.
	Meaning      string
	Causes, Mend []string
}

//go:embed catalogue.yaml
var catalogueYAML []byte

// catalogue reads the embedded file at its first use: commands that answer no request
// do not need it.
var catalogue = sync.OnceValue(func() (entries []Entry) {
	if err := yaml.UnmarshalWithOptions(catalogueYAML, &entries, yaml.DisallowUnknownField()); err != nil {
		panic("problem: catalogue.yaml is embedded: " + err.Error())
	}
	return entries
})

// Catalogue returns the codes that at least one of these APIs answers, in the order of
// their pages.
func Catalogue(in ...API) []Entry {
	return slices.DeleteFunc(slices.Clone(catalogue()), func(e Entry) bool {
		return !slices.ContainsFunc(in, func(api API) bool { return slices.Contains(e.In, api) })
	})
}

// New returns the problem of a code, as the catalogue has it. A code that the
// catalogue does not have is answered as generic.unavailable.
func New[C ~string](code C) *Problem {
	entries := catalogue()
	i := slices.IndexFunc(entries, func(e Entry) bool { return e.Code == string(code) })
	if i < 0 {
		return New("generic.unavailable")
	}
	e := entries[i]
	p := &Problem{Status: e.Status, Code: e.Code, Title: e.Title, Detail: e.Detail}
	if e.Status == 429 || e.Status == 503 {
		p.RetryAfter = shortestRetry
	}
	return p
}

// Example returns a problem document of the code, as the service at an address answers it.
func (e Entry) Example(address string) (string, error) {
	response := New(e.Code)
	response.Faults = e.Faults
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(response.Document(address, "4c1e6f7a-3f5e-4c65-9a55-0d8e3c0c1c7b")); err != nil {
		return "", fmt.Errorf("writing the example of %s: %w", e.Code, err)
	}
	return b.String(), nil
}
