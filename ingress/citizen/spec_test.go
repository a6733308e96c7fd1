package citizen_test

import (
	"sync"
	"testing"

	"quittance/ingress/citizen"
	"quittance/test/openapi"
)

// specification is openapi.yaml.
var specification = sync.OnceValues(func() (openapi.Spec, error) { return openapi.Parse(citizen.OpenAPI()) })

// conforms checks an answer against the description.
func conforms(t testing.TB, method, path string, a answer) {
	t.Helper()
	spec, err := specification()
	if err != nil {
		t.Fatal(err)
	}
	spec.Conforms(t, method, path, openapi.Answer{Status: a.status, Header: a.header, Body: a.body, Raw: a.raw})
}
