package docs

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	guides "quittance/docs"
)

// reference is the content of an OpenAPI file, arranged for the page.
type reference struct {
	// Home is the address of the page that has the objects.
	Home       string
	Summary    string
	About      []block
	Operations []operation
	// Common are the answers that several operations share.
	Common   []answer
	Objects  []object
	Webhooks []hook
	// Delivery are the headers of every webhook.
	Delivery []field
}

// operation is a method and a path.
type operation struct {
	ID, Method, Path, Summary string
	Secret                    bool // authenticated by a session's client_secret
	About                     []block
	Parameters                []field
	Body                      []field
	Answers                   []answer
	// Common are the operation's answers that reference.Common explains.
	Common            []answer
	Request, Response string // JSON, empty when there is none
}

// answer is a status of an operation.
type answer struct {
	Status int
	Name   string // of a common one
	Title  string // of the status
	About  []block
	Object string // of the body, empty for a problem
	Header []string
}

// field is a parameter, a header or a property.
type field struct {
	Name     string
	Required bool
	Rules    []string
	Object   string // of its value or its items
	Home     string // of the page that has the object
	About    []block
}

// object is a schema with a name. One that only lists values has Values.
type object struct {
	Name   string
	About  []block
	Fields []field
	Values []string
}

// hook is a webhook. Its payload has the fields of the objects in Parts, and Fields.
type hook struct {
	Event, Summary string
	About          []block
	Parts          []string
	Fields         []field
}

// reader makes a reference.
type reader struct {
	root  node
	codes map[string]string // addresses of the pages of error codes
	home  string            // reference.Home
	// french has the texts of a reference in French. Nil makes one in English.
	french *guides.Phrases
	// objects are the names of the schemas to show, in the order of their first mention.
	objects []string
}

// problemCodes returns the codes of the schema ProblemCode.
func problemCodes(root node) []string {
	return root.get("components", "schemas", "ProblemCode", "enum").texts()
}

func (r *reader) read() (reference, error) {
	info := r.root.get("info")
	out := reference{Home: r.home, Summary: r.summary(info), About: r.prose(info)}
	common := map[string]bool{}
	for path, item := range r.root.get("paths").entries() {
		for method, o := range item.entries() {
			op, err := r.operation(strings.ToUpper(method), path, o)
			if err != nil {
				return out, err
			}
			out.Operations = append(out.Operations, op)
			for _, a := range op.Common {
				if !common[a.Name] {
					common[a.Name] = true
					out.Common = append(out.Common, a)
				}
			}
		}
	}
	slices.SortStableFunc(out.Common, func(a, b answer) int { return cmp.Compare(a.Status, b.Status) })
	for event, item := range r.root.get("webhooks").entries() {
		out.Webhooks = append(out.Webhooks, r.hook(event, item.get("post")))
		if out.Delivery == nil {
			out.Delivery = r.parameters(item.get("post"))
		}
	}
	r.mention("Problem")
	// Fields of an object may mention further objects.
	for i := 0; i < len(r.objects); i++ {
		name := r.objects[i]
		schema := r.root.get("components", "schemas", name)
		out.Objects = append(out.Objects, object{
			Name: name, About: r.prose(schema), Fields: r.fields("", schema), Values: schema.get("enum").texts(),
		})
	}
	if len(out.Operations) == 0 {
		return out, errors.New("reading the OpenAPI file: it has no operations")
	}
	return out, nil
}

// say returns the text in the language of the reference.
func (r *reader) say(inEnglish, inFrench string) string {
	if r.french != nil {
		return inFrench
	}
	return inEnglish
}

// translated returns a text of the OpenAPI file in the language of the reference.
func (r *reader) translated(text string) string {
	if r.french == nil || text == "" {
		return text
	}
	return r.french.French(text)
}

func (r *reader) summary(n node) string { return r.translated(n.get("summary").text()) }

func (r *reader) prose(n node) []block {
	return prose(r.translated(n.get("description").text()), r.codes)
}

func (r *reader) operation(method, path string, o node) (operation, error) {
	out := operation{
		ID: o.get("operationId").text(), Method: method, Path: path, Summary: r.summary(o), About: r.prose(o),
		Parameters: r.parameters(o),
	}
	for _, security := range o.get("security").list() {
		out.Secret = out.Secret || security.get("clientSecret").present()
	}
	media := o.get("requestBody", "content", "application/json")
	out.Body = r.fields("", media.get("schema"))
	for _, f := range out.Body {
		if len(f.Rules) > 0 { // "optional" already says so
			f.Rules[0] = strings.TrimSuffix(f.Rules[0], r.say(" or null", " ou null"))
		}
	}
	var err error
	for name, example := range media.get("examples").entries() {
		// The one that shows every field.
		if out.Request == "" || name == "complete" {
			if out.Request, err = example.get("value").json(); err != nil {
				return out, err
			}
		}
	}
	for status, n := range o.get("responses").entries() {
		a, err := r.answer(status, n)
		if err != nil {
			return out, fmt.Errorf("reading %s of the OpenAPI file: %w", out.ID, err)
		}
		if a.Name != "" {
			out.Common = append(out.Common, a)
			continue
		}
		out.Answers = append(out.Answers, a)
		for name, example := range n.get("content", "application/json", "examples").entries() {
			if out.Response == "" || name == "complete" {
				if out.Response, err = example.get("value").json(); err != nil {
					return out, err
				}
			}
		}
	}
	if out.ID == "" || len(out.Answers)+len(out.Common) == 0 {
		return out, fmt.Errorf("reading the OpenAPI file: %s %s has no operationId or no answers", method, path)
	}
	return out, nil
}

func (r *reader) answer(status string, n node) (answer, error) {
	out := answer{Name: n.refName(), About: r.prose(n), Object: n.get("content", "application/json").child("schema").refName()}
	if _, err := fmt.Sscanf(status, "%d", &out.Status); err != nil {
		return out, fmt.Errorf("status %q: %w", status, err)
	}
	out.Title = http.StatusText(out.Status)
	r.mention(out.Object)
	for name := range n.get("headers").entries() {
		out.Header = append(out.Header, name)
	}
	return out, nil
}

// mention adds an object to the page. ProblemCode is shown as a table instead.
func (r *reader) mention(name string) {
	if name != "" && name != "ProblemCode" && !slices.Contains(r.objects, name) {
		r.objects = append(r.objects, name)
	}
}

func (r *reader) parameters(o node) (out []field) {
	for _, p := range o.get("parameters").list() {
		f := r.field(p.get("name").text(), p.child("schema"))
		f.Required = p.get("required").value == true
		f.About = r.prose(p)
		f.Rules = append([]string{r.place(p.get("in").text())}, f.Rules...)
		out = append(out, f)
	}
	return out
}

// place says where a parameter is.
func (r *reader) place(in string) string {
	if r.french == nil {
		return "in " + in
	}
	return map[string]string{"header": "dans l’en-tête", "path": "dans le chemin", "query": "dans la chaîne de requête"}[in]
}

// fields returns the properties of a schema. Those of an object in it get dotted names.
func (r *reader) fields(prefix string, schema node) (out []field) {
	required := schema.get("required").texts()
	for name, property := range schema.get("properties").entries() {
		f := r.field(prefix+name, property)
		f.Required = slices.Contains(required, name)
		out = append(out, f)
		if f.Object == "" {
			out = append(out, r.fields(prefix+name+".", property)...)
		}
	}
	return out
}

func (r *reader) field(name string, schema node) field {
	value, _ := schema.orNull()
	f := field{Name: name, Object: value.refName(), Home: r.home, About: r.prose(schema)}
	if f.Object == "" {
		f.Object = value.child("items").refName()
	}
	if f.Object != "" {
		r.mention(f.Object)
		if schema.refName() == f.Object {
			f.About = nil // the object has its own
		}
	}
	f.Rules = r.rules(schema)
	return f
}

func (r *reader) hook(event string, post node) hook {
	out := hook{Event: event, Summary: r.summary(post), About: r.prose(post)}
	for _, part := range post.get("requestBody", "content", "application/json", "schema", "allOf").list() {
		if name := part.refName(); name != "" {
			r.mention(name)
			out.Parts = append(out.Parts, name)
			continue
		}
		out.Fields = append(out.Fields, r.fields("", part)...)
	}
	return out
}

// rules describes what a value must be. It leaves out the values of a schema that the
// page shows as an object.
func (r *reader) rules(s node) (out []string) {
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	s, null := s.orNull()
	types := s.get("type").texts()
	null = null || slices.Contains(types, "null")
	types = slices.DeleteFunc(types, func(t string) bool { return t == "null" })
	for i := range types {
		types[i] = r.kind(types[i])
	}
	kind := strings.Join(types, r.say(" or ", " ou "))
	if format := s.get("format").text(); format != "" && format != "int64" {
		kind = r.format(format)
	}
	if kind != "" && null {
		kind += r.say(" or null", " ou null")
	}
	if kind != "" {
		add("%s", kind)
	}
	characters := r.say("%s characters", "%s caractères")
	r.between(add, s.get("minLength"), s.get("maxLength"), characters)
	r.between(add, s.get("minimum"), s.get("maximum"), "%s")
	r.between(add, s.get("minProperties"), s.get("maxProperties"), r.say("%s keys", "%s clés"))
	if keys := s.get("propertyNames"); keys.present() {
		r.between(add, keys.get("minLength"), keys.get("maxLength"), r.say("keys of ", "clés de ")+characters)
	}
	if values := s.get("additionalProperties"); values.get("type").present() {
		kind := r.kind(values.get("type").text())
		if most := values.get("maxLength"); most.present() {
			add(r.say("values: %s of up to %s characters", "valeurs : %s, %s caractères au plus"), kind, most.text())
		} else {
			add(r.say("values: %s", "valeurs : %s"), kind)
		}
	}
	if v := s.get("enum").texts(); len(v) == 1 {
		add(r.say("always %s", "toujours %s"), v[0])
	} else if len(v) > 0 && s.refName() == "" {
		add(r.say("one of %s", "une valeur parmi %s"), strings.Join(v, ", "))
	}
	if v := s.get("pattern"); v.present() {
		add(r.say("matches %s", "de la forme %s"), v.text())
	}
	if v := s.get("default"); v.present() {
		add(r.say("default %s", "par défaut %s"), v.text())
	}
	return out
}

// kind names a type of JSON Schema.
func (r *reader) kind(name string) string {
	if r.french == nil {
		return name
	}
	return cmp.Or(map[string]string{
		"string": "chaîne", "integer": "entier", "number": "nombre", "boolean": "booléen", "object": "objet", "array": "tableau",
	}[name], name)
}

// format names a format of JSON Schema.
func (r *reader) format(name string) string {
	return cmp.Or(map[string]string{
		"uuid": "UUID", "uri": "URL", "email": r.say("e-mail address", "adresse électronique"),
		"date-time": r.say("time, ISO 8601", "date et heure, ISO 8601"),
	}[name], name)
}

func (r *reader) between(add func(string, ...any), least, most node, format string) {
	switch {
	case least.present() && most.present():
		add(format, least.text()+"–"+most.text())
	case most.present():
		add(format, r.say("at most ", "au plus ")+most.text())
	case least.present():
		add(format, r.say("at least ", "au moins ")+least.text())
	}
}
