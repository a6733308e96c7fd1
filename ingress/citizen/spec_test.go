package citizen_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"quittance/ingress/citizen"
)

// specification is openapi.yaml as JSON values.
var specification = sync.OnceValues(func() (map[string]any, error) {
	raw, err := yaml.YAMLToJSON(citizen.OpenAPI())
	if err != nil {
		return nil, err
	}
	var out map[string]any
	return out, json.Unmarshal(raw, &out)
})

// at returns the value under a path of keys. It follows references.
func at(spec, node map[string]any, path ...string) map[string]any {
	for i := 0; ; i++ {
		for node["$ref"] != nil {
			ref := strings.Split(strings.TrimPrefix(node["$ref"].(string), "#/"), "/")
			node = at(spec, spec, ref...)
		}
		if i == len(path) {
			return node
		}
		next, ok := node[path[i]].(map[string]any)
		if !ok {
			return nil
		}
		node = next
	}
}

// conforms checks an answer against the description.
func conforms(t testing.TB, method, path string, a answer) {
	t.Helper()
	spec, err := specification()
	if err != nil {
		t.Fatal(err)
	}
	template := ""
	for p := range at(spec, spec, "paths") {
		pattern := regexp.MustCompile(`\\\{[a-z_]+\\\}`).ReplaceAllString(regexp.QuoteMeta(p), `[^/]*`)
		if regexp.MustCompile("^"+pattern+"$").MatchString(path) && at(spec, spec, "paths", p, strings.ToLower(method)) != nil {
			template = p
		}
	}
	if template == "" {
		return // not an operation; other tests cover it
	}
	media, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	schema := at(spec, spec, "paths", template, strings.ToLower(method), "responses", fmt.Sprint(a.status), "content", media, "schema")
	if schema == nil {
		t.Errorf("%s %s answers %d as %s, which openapi.yaml does not describe", method, template, a.status, media)
		return
	}
	for _, fault := range validate(spec, schema, a.body, "") {
		t.Errorf("%s %s answers %d%s: %s", method, template, a.status, fault, a.raw)
	}
}

// validate implements the part of JSON Schema that openapi.yaml uses.
func validate(spec, schema map[string]any, value any, path string) (faults []string) {
	schema = at(spec, schema)
	fault := func(format string, args ...any) { faults = append(faults, path+": "+fmt.Sprintf(format, args...)) }
	if some, ok := schema["oneOf"].([]any); ok {
		for _, s := range some {
			if validate(spec, s.(map[string]any), value, path) == nil {
				return nil
			}
		}
		fault("fits none of its forms")
		return faults
	}
	types, ok := schema["type"].([]any)
	if !ok {
		types = []any{schema["type"]}
	}
	kind := map[bool]string{true: "null", false: fmt.Sprintf("%T", value)}[value == nil]
	kind = map[string]string{"string": "string", "float64": "integer", "[]interface {}": "array", "map[string]interface {}": "object", "null": "null", "bool": "boolean"}[kind]
	if !slices.Contains(types, any(kind)) {
		fault("is a %s, want %v", kind, types)
		return faults
	}
	if enum, ok := schema["enum"].([]any); ok && !slices.Contains(enum, value) {
		fault("%v is not one of %v", value, enum)
	}
	switch v := value.(type) {
	case string:
		if pattern, ok := schema["pattern"].(string); ok && !regexp.MustCompile(pattern).MatchString(v) {
			fault("%q does not match %s", v, pattern)
		}
		if _, err := time.Parse(time.RFC3339, v); schema["format"] == "date-time" && err != nil {
			fault("%q is no time", v)
		}
	case []any:
		for i, item := range v {
			faults = append(faults, validate(spec, schema["items"].(map[string]any), item, fmt.Sprintf("%s[%d]", path, i))...)
		}
	case map[string]any:
		required, _ := schema["required"].([]any)
		for _, name := range required {
			if _, ok := v[name.(string)]; !ok {
				fault("%s is missing", name)
			}
		}
		for name, item := range v {
			if property := at(spec, schema, "properties", name); property != nil {
				faults = append(faults, validate(spec, property, item, path+"."+name)...)
			} else if schema["additionalProperties"] != true {
				fault("%s is not described", name)
			}
		}
	}
	return faults
}
