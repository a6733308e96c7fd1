// Package openapi checks answers against an OpenAPI file.
package openapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

// Spec is an OpenAPI file as JSON values.
type Spec map[string]any

// Parse reads a file in YAML.
func Parse(file []byte) (Spec, error) {
	raw, err := yaml.YAMLToJSON(file)
	if err != nil {
		return nil, err
	}
	var out Spec
	return out, json.Unmarshal(raw, &out)
}

// At returns the object under a path of keys, nil if there is none. It follows references.
func (s Spec) At(path ...string) map[string]any { return at(s, s, path...) }

// at is At, from a node of the file.
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

// Answer is an answer of the service.
type Answer struct {
	Status int
	Header http.Header
	// Body is the JSON value of Raw.
	Body any
	Raw  string
}

// Conforms checks an answer against the file. An address that the file does not name is no
// operation: other tests cover it.
func (s Spec) Conforms(t testing.TB, method, path string, a Answer) {
	t.Helper()
	template := ""
	for p := range s.At("paths") {
		pattern := regexp.MustCompile(`\\\{[a-z_]+\\\}`).ReplaceAllString(regexp.QuoteMeta(p), `[^/]*`)
		if regexp.MustCompile("^"+pattern+"$").MatchString(path) && s.At("paths", p, strings.ToLower(method)) != nil {
			template = p
		}
	}
	if template == "" {
		return
	}
	media, _, _ := strings.Cut(a.Header.Get("Content-Type"), ";")
	schema := s.At("paths", template, strings.ToLower(method), "responses", fmt.Sprint(a.Status), "content", media, "schema")
	if schema == nil {
		t.Errorf("%s %s answers %d as %s, which openapi.yaml does not describe", method, template, a.Status, media)
		return
	}
	for _, fault := range s.Validate(schema, a.Body) {
		t.Errorf("%s %s answers %d%s: %s", method, template, a.Status, fault, a.Raw)
	}
}

// Validate returns the faults of a JSON value. It implements the part of JSON Schema that the
// files use.
func (s Spec) Validate(schema map[string]any, value any) []string {
	return validate(s, schema, value, "")
}

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
