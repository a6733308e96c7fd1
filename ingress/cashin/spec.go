package cashin

import (
	_ "embed" // openapi.yaml
	"net/http"
)

//go:embed openapi.yaml
var openAPI []byte

// OpenAPI returns the description of the surface, OpenAPI 3.1 in YAML.
func OpenAPI() []byte { return openAPI }

// pathSpec is where the description is served.
const pathSpec = "/cashin/openapi.yaml"

func serveSpec(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	w.Header().Set("Cache-Control", "public, max-age=300")
	_, _ = w.Write(openAPI)
}
