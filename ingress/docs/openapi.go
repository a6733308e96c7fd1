package docs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/goccy/go-yaml"
)

// node is a value of an OpenAPI file. Maps keep the file's order. The zero value stands
// for a value that is missing; its methods return nothing.
type node struct {
	value any
	root  *node
}

func parse(text []byte) (node, error) {
	var v any
	if err := yaml.UnmarshalWithOptions(text, &v, yaml.UseOrderedMap()); err != nil {
		return node{}, fmt.Errorf("reading the OpenAPI file: %w", err)
	}
	root := node{value: v}
	root.root = &root
	if !strings.HasPrefix(root.get("openapi").text(), "3.1.") {
		return node{}, errors.New("reading the OpenAPI file: it is not OpenAPI 3.1")
	}
	return root, nil
}

// get returns the value under a path of keys. It follows references.
func (n node) get(keys ...string) node {
	n = n.resolved()
	for _, key := range keys {
		n = n.child(key).resolved()
	}
	return n
}

// child returns the value of a key. It does not follow a reference.
func (n node) child(key string) node {
	for k, v := range n.entries() {
		if k == key {
			return v
		}
	}
	return node{root: n.root}
}

func (n node) resolved() node {
	for {
		path, ok := strings.CutPrefix(n.ref(), "#/")
		if !ok {
			return n
		}
		n = n.root.get(strings.Split(path, "/")...)
	}
}

// ref returns the value of $ref.
func (n node) ref() string {
	m, _ := n.value.(yaml.MapSlice)
	for _, item := range m {
		if s, ok := item.Value.(string); ok && item.Key == "$ref" {
			return s
		}
	}
	return ""
}

// refName returns the last part of ref, such as Event, empty when there is none.
func (n node) refName() string { return n.ref()[strings.LastIndex(n.ref(), "/")+1:] }

// entries returns the entries of a map in the file's order. It does not follow their
// references.
func (n node) entries() iter.Seq2[string, node] {
	return func(yield func(string, node) bool) {
		m, _ := n.resolved().value.(yaml.MapSlice)
		for _, item := range m {
			key, _ := item.Key.(string)
			if !yield(key, node{item.Value, n.root}) {
				return
			}
		}
	}
}

// list returns the items of a list. It does not follow their references.
func (n node) list() []node {
	l, _ := n.resolved().value.([]any)
	out := make([]node, len(l))
	for i, v := range l {
		out[i] = node{v, n.root}
	}
	return out
}

// texts returns the texts in a list, or the one text in its place.
func (n node) texts() (out []string) {
	if s, ok := n.value.(string); ok {
		return []string{s}
	}
	for _, item := range n.list() {
		if s, ok := item.value.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// text returns a scalar as text, empty when it is missing.
func (n node) text() string {
	if n.value == nil {
		return ""
	}
	return fmt.Sprint(n.value)
}

func (n node) present() bool { return n.value != nil }

// orNull returns the other alternative of an anyOf with null. For any other schema it
// returns the schema itself and false.
func (n node) orNull() (node, bool) {
	alternatives := n.child("anyOf").list()
	if len(alternatives) == 2 && alternatives[1].child("type").value == "null" {
		return alternatives[0], true
	}
	return n, false
}

// json returns the value as indented JSON in the file's order. It does not follow
// references.
func (n node) json() (string, error) {
	var compact, out bytes.Buffer
	if err := writeJSON(&compact, n.value); err != nil {
		return "", fmt.Errorf("writing JSON: %w", err)
	}
	if err := json.Indent(&out, compact.Bytes(), "", "  "); err != nil {
		return "", fmt.Errorf("writing JSON: %w", err)
	}
	return out.String(), nil
}

func writeJSON(b *bytes.Buffer, value any) error {
	switch value := value.(type) {
	case yaml.MapSlice:
		b.WriteByte('{')
		for i, item := range value {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := errors.Join(writeJSON(b, fmt.Sprint(item.Key)), b.WriteByte(':'), writeJSON(b, item.Value)); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, item := range value {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeJSON(b, item); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	default:
		e := json.NewEncoder(b)
		e.SetEscapeHTML(false)
		return e.Encode(value)
	}
	return nil
}
