package cashin

import (
	_ "embed" // openapi.yaml
	"net/http"
)

// openAPI is the description of the surface, OpenAPI 3.1 in YAML.
//
//go:embed openapi.yaml
var openAPI []byte

// pathSpec is where the description is served.
const pathSpec = "/cashin/openapi.yaml"

func serveSpec(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	w.Header().Set("Cache-Control", "public, max-age=300")
	_, _ = w.Write(openAPI)
}
