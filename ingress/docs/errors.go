package docs

import (
	"errors"
	"fmt"
	"slices"

	"quittance/ingress/problem"
)

// matching compares the codes of the OpenAPI file with the pages. The error names
// the codes without a page and the pages without a code.
func matching(codes []string, pages []problem.Entry) error {
	var faults []error
	if len(codes) == 0 {
		faults = append(faults, errors.New("the schema ProblemCode lists no codes"))
	}
	for _, code := range codes {
		if !slices.ContainsFunc(pages, func(e problem.Entry) bool { return e.Code == code }) {
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
