package counter_test

import (
	"sync"
	"testing"

	"quittance/ingress/counter"
	"quittance/test/openapi"
)

// specification is openapi.yaml.
var specification = sync.OnceValues(func() (openapi.Spec, error) { return openapi.Parse(counter.OpenAPI()) })

// conforms checks an answer against the description.
func conforms(t testing.TB, method, path string, a answer) {
	t.Helper()
	spec, err := specification()
	if err != nil {
		t.Fatal(err)
	}
	spec.Conforms(t, method, path, openapi.Answer{Status: a.status, Header: a.header, Body: a.body, Raw: a.raw})
}

// A check of an answer finds faults.
func TestTheDescriptionIsHeld(t *testing.T) {
	t.Parallel()
	spec, err := specification()
	if err != nil {
		t.Fatal(err)
	}
	schema := spec.At("components", "schemas", "Released")
	good := map[string]any{"collection_id": "x", "payment_ref": "4821093377150264", "status": "released"}
	if faults := spec.Validate(schema, good); faults != nil {
		t.Errorf("a good answer has %v", faults)
	}
	for field, value := range map[string]any{"status": "gone", "payment_ref": "48", "collection_id": nil, "more": "x"} {
		bad := map[string]any{"collection_id": "x", "payment_ref": "4821093377150264", "status": "released"}
		if bad[field] = value; spec.Validate(schema, bad) == nil {
			t.Errorf("%s = %v passes", field, value)
		}
	}
	if spec.Validate(schema, map[string]any{}) == nil {
		t.Error("an empty answer passes")
	}
}
