package ministry

import (
	_ "embed" // openapi.yaml
	"fmt"
	"net/http"
	"strings"

	"github.com/goccy/go-yaml"
)

//go:embed openapi.yaml
var openAPI []byte

// OpenAPI returns the description of this API, OpenAPI 3.1 in YAML. It is the source of
// the API's types, routes and rules of query parameters.
func OpenAPI() []byte { return openAPI }

// specification is the part of the description that is used while serving.
type specification struct {
	Paths      map[string]map[string]described `yaml:"paths"`
	Components struct {
		Parameters map[string]parameter `yaml:"parameters"`
		Schemas    map[string]schema    `yaml:"schemas"`
	} `yaml:"components"`
}

// described is an operation as the description has it.
type described struct {
	ID          string           `yaml:"operationId"`
	Parameters  []parameter      `yaml:"parameters"`
	RequestBody map[string]any   `yaml:"requestBody"`
	Security    []map[string]any `yaml:"security"`
}

// clientSecret reports whether a citizen's page calls the operation.
func (o described) clientSecret() bool {
	return len(o.Security) == 1 && o.Security[0]["clientSecret"] != nil
}

type parameter struct {
	Ref    string `yaml:"$ref"`
	Name   string `yaml:"name"`
	In     string `yaml:"in"`
	Schema schema `yaml:"schema"`
}

type schema struct {
	Ref       string `yaml:"$ref"`
	Type      any    `yaml:"type"`
	Format    string `yaml:"format"`
	MinLength int    `yaml:"minLength"`
	MaxLength int    `yaml:"maxLength"`
	Minimum   any    `yaml:"minimum"`
	Maximum   any    `yaml:"maximum"`
	Enum      []any  `yaml:"enum"`
}

// operations returns the operations of the description by method and path, such as
// "GET /api/v1/checkout/sessions/{id}".
func operations() (map[string]described, error) {
	var s specification
	if err := yaml.Unmarshal(openAPI, &s); err != nil {
		return nil, fmt.Errorf("reading openapi.yaml: %w", err)
	}
	out := map[string]described{}
	for path, methods := range s.Paths {
		for method, o := range methods {
			for i := range o.Parameters {
				p := &o.Parameters[i]
				if name, ok := strings.CutPrefix(p.Ref, "#/components/parameters/"); ok {
					*p = s.Components.Parameters[name]
				}
				if name, ok := strings.CutPrefix(p.Schema.Ref, "#/components/schemas/"); ok {
					p.Schema = s.Components.Schemas[name]
				}
				if p.Name == "" || p.Schema.Type == nil {
					return nil, fmt.Errorf("reading openapi.yaml: parameter %d of %s %s is not resolved", i, method, path)
				}
			}
			out[strings.ToUpper(method)+" "+path] = o
		}
	}
	return out, nil
}

// hasBody reports whether the operation takes a body.
func (o described) hasBody() bool { return o.RequestBody != nil }

// reads reports whether the request counts against the quota of reads.
func reads(r *http.Request) bool { return r.Method == http.MethodGet }
