package stack

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// avroType is a parsed Avro schema, reduced to the parts that decide whether one
// version can read data that another wrote (Avro 1.12, Schema Resolution).
type avroType struct {
	kind     string // a primitive's name, or record, enum, fixed, array, map, union
	name     string // full name of a record, enum or fixed
	aliases  []string
	fields   []avroField
	symbols  []string
	fallback bool // an enum with a default
	size     float64
	items    *avroType // of an array or map
	branches []*avroType
}

type avroField struct {
	name     string
	aliases  []string
	typ      *avroType
	fallback bool // has a default
}

var avroPrimitives = []string{"null", "boolean", "int", "long", "float", "double", "bytes", "string"}

func parseAvro(schema string) (*avroType, error) {
	var v any
	if err := json.Unmarshal([]byte(schema), &v); err != nil {
		return nil, fmt.Errorf("parsing the schema: %w", err)
	}
	return parseAvroNode(v, "", map[string]*avroType{})
}

func parseAvroNode(v any, namespace string, names map[string]*avroType) (*avroType, error) {
	switch v := v.(type) {
	case string:
		if slices.Contains(avroPrimitives, v) {
			return &avroType{kind: v}, nil
		}
		if t, ok := names[qualify(v, namespace)]; ok {
			return t, nil
		}
		return nil, fmt.Errorf("unknown type %q", v)
	case []any:
		t := &avroType{kind: "union"}
		for _, b := range v {
			branch, err := parseAvroNode(b, namespace, names)
			if err != nil {
				return nil, err
			}
			t.branches = append(t.branches, branch)
		}
		return t, nil
	case map[string]any:
		return parseAvroObject(v, namespace, names)
	default:
		return nil, fmt.Errorf("a schema is a string, a list or an object, not %v", v)
	}
}

func parseAvroObject(v map[string]any, namespace string, names map[string]*avroType) (*avroType, error) {
	kind, ok := v["type"].(string)
	if !ok {
		return parseAvroNode(v["type"], namespace, names)
	}
	t := &avroType{kind: kind}
	var err error
	switch kind {
	case "array":
		t.items, err = parseAvroNode(v["items"], namespace, names)
		return t, err
	case "map":
		t.items, err = parseAvroNode(v["values"], namespace, names)
		return t, err
	case "record", "enum", "fixed":
	default:
		return parseAvroNode(kind, namespace, names)
	}

	name, _ := v["name"].(string)
	if name == "" {
		return nil, fmt.Errorf("a %s without a name", kind)
	}
	if ns, ok := v["namespace"].(string); ok {
		namespace = ns
	}
	t.name = qualify(name, namespace)
	if i := strings.LastIndexByte(t.name, '.'); i >= 0 {
		namespace = t.name[:i]
	}
	for _, a := range stringList(v["aliases"]) {
		t.aliases = append(t.aliases, qualify(a, namespace))
	}
	// Registered before its fields are read: a field may have this type.
	names[t.name] = t
	t.symbols = stringList(v["symbols"])
	t.size, _ = v["size"].(float64)
	_, t.fallback = v["default"]
	if kind != "record" {
		return t, nil
	}
	fields, ok := v["fields"].([]any)
	if !ok {
		return nil, fmt.Errorf("record %s without fields", t.name)
	}
	for _, f := range fields {
		object, ok := f.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("a field of %s is not an object", t.name)
		}
		field := avroField{aliases: stringList(object["aliases"])}
		if field.name, _ = object["name"].(string); field.name == "" {
			return nil, fmt.Errorf("a field of %s without a name", t.name)
		}
		_, field.fallback = object["default"]
		if field.typ, err = parseAvroNode(object["type"], namespace, names); err != nil {
			return nil, fmt.Errorf("field %s of %s: %w", field.name, t.name, err)
		}
		t.fields = append(t.fields, field)
	}
	return t, nil
}

func qualify(name, namespace string) string {
	if namespace == "" || strings.Contains(name, ".") {
		return name
	}
	return namespace + "." + name
}

func stringList(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, e := range list {
		if s, ok := e.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// canRead returns nil when data that was written with one schema can be read with the
// other, else an error that names the place.
func canRead(reader, writer string) error {
	r, err := parseAvro(reader)
	if err != nil {
		return err
	}
	w, err := parseAvro(writer)
	if err != nil {
		return err
	}
	return resolveAvro(r, w, "", map[[2]*avroType]bool{})
}

// resolveAvro implements the schema resolution of the Avro specification. seen holds
// the pairs under examination, so that a recursive type ends the recursion.
func resolveAvro(r, w *avroType, path string, seen map[[2]*avroType]bool) error {
	if seen[[2]*avroType{r, w}] {
		return nil
	}
	seen[[2]*avroType{r, w}] = true

	if w.kind == "union" {
		var errs []error
		for _, b := range w.branches {
			errs = append(errs, resolveAvro(r, b, path, seen))
		}
		return errors.Join(errs...)
	}
	if r.kind == "union" {
		for _, b := range r.branches {
			// A branch that does not fit must not stay in seen: another branch may fit.
			if resolveAvro(b, w, path, maps.Clone(seen)) == nil {
				return nil
			}
		}
		return fmt.Errorf("%s: no branch of the reader's union takes %s", place(path), w)
	}
	if r.kind != w.kind {
		if promotes(w.kind, r.kind) {
			return nil
		}
		return fmt.Errorf("%s: %s was written, %s is read", place(path), w, r)
	}
	if r.name != w.name && !slices.Contains(r.aliases, w.name) {
		return fmt.Errorf("%s: %s was written, %s is read", place(path), w, r)
	}
	switch r.kind {
	case "array", "map":
		return resolveAvro(r.items, w.items, path+"/items", seen)
	case "fixed":
		if r.size != w.size {
			return fmt.Errorf("%s: the size of %s changed", place(path), r.name)
		}
	case "enum":
		for _, s := range w.symbols {
			if !r.fallback && !slices.Contains(r.symbols, s) {
				return fmt.Errorf("%s: the reader's %s lacks %s and has no default", place(path), r.name, s)
			}
		}
	case "record":
		var errs []error
		for _, rf := range r.fields {
			i := slices.IndexFunc(w.fields, func(wf avroField) bool {
				return wf.name == rf.name || slices.Contains(rf.aliases, wf.name)
			})
			switch {
			case i >= 0:
				errs = append(errs, resolveAvro(rf.typ, w.fields[i].typ, path+"/"+rf.name, seen))
			case !rf.fallback:
				errs = append(errs, fmt.Errorf("%s: the reader's field was not written and has no default", place(path+"/"+rf.name)))
			}
		}
		return errors.Join(errs...)
	}
	return nil
}

func (t *avroType) String() string {
	if t.name != "" {
		return t.kind + " " + t.name
	}
	return t.kind
}

func place(path string) string {
	if path == "" {
		return "/"
	}
	return path
}

// promotes reports whether a primitive type can be read as another.
func promotes(from, to string) bool {
	switch from {
	case "int":
		return to == "long" || to == "float" || to == "double"
	case "long":
		return to == "float" || to == "double"
	case "float":
		return to == "double"
	case "string":
		return to == "bytes"
	case "bytes":
		return to == "string"
	}
	return false
}
