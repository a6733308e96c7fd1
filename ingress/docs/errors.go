package docs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"quittance/ingress/problem"
)

// explanation is the page of an error code.
type explanation struct{ problem.Entry }

// Explanations of the integrators' API, in the order of the schema ProblemCode, and
// of the codes that only desk software at a counter gets.
var (
	explanations        = explain(problem.Catalogue(problem.Ministry))
	counterExplanations = slices.DeleteFunc(explain(problem.Catalogue(problem.Counter)), func(e explanation) bool { return e.In&problem.Ministry != 0 })
)

func explain(entries []problem.Entry) []explanation {
	out := make([]explanation, len(entries))
	for i, e := range entries {
		out[i] = explanation{e}
	}
	return out
}

// Example returns a problem document of the code, as it is answered.
func (e explanation) Example() (string, error) {
	response := problem.New(e.Code)
	response.Faults = e.Faults
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(response.Document("4c1e6f7a-3f5e-4c65-9a55-0d8e3c0c1c7b")); err != nil {
		return "", fmt.Errorf("writing the example of %s: %w", e.Code, err)
	}
	return b.String(), nil
}

// matching compares the codes of the OpenAPI file with the pages. The error names
// the codes without a page and the pages without a code.
func matching(codes []string, pages []explanation) error {
	var faults []error
	if len(codes) == 0 {
		faults = append(faults, errors.New("the schema ProblemCode lists no codes"))
	}
	for _, code := range codes {
		if !slices.ContainsFunc(pages, func(e explanation) bool { return e.Code == code }) {
			faults = append(faults, fmt.Errorf("the error code %s has no page", code))
		}
	}
	for _, e := range pages {
		if !slices.Contains(codes, e.Code) {
			faults = append(faults, fmt.Errorf("the page %s is of no error code", e.Code))
		}
	}
	return errors.Join(faults...)
}
