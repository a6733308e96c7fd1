package registryfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"quittance/internal/form"
)

// read reads one YAML document in the way that package form reads JSON. An empty
// document has no fields. Errors name the line and never quote the file, because it may
// hold secrets.
func read(text []byte) (*form.Form, error) {
	var root any
	if err := yaml.Unmarshal(text, &root); err != nil {
		var positioned yaml.Error
		if !errors.As(err, &positioned) {
			return nil, errors.New("is not valid YAML")
		}
		message, _, _ := strings.Cut(positioned.GetMessage(), "\n")
		if token := positioned.GetToken(); token != nil && token.Position != nil {
			return nil, fmt.Errorf("is not valid YAML at line %d, column %d: %s", token.Position.Line, token.Position.Column, message)
		}
		return nil, fmt.Errorf("is not valid YAML: %s", message)
	}
	fields, ok := asJSON(root).(map[string]any)
	if !ok && root != nil {
		return nil, errors.New("must be a mapping")
	}
	return form.OfWhole("the registry file", fields), nil
}

// asJSON turns a value of YAML into the value that package form reads. Decimal numbers
// stay as they are, because no field takes one.
func asJSON(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = asJSON(e)
		}
	case []any:
		for i, e := range v {
			v[i] = asJSON(e)
		}
	case uint64:
		return json.Number(strconv.FormatUint(v, 10))
	case int64:
		return json.Number(strconv.FormatInt(v, 10))
	}
	return v
}
