package ministry

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"mime"
	"net/http"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"quittance/checkout"
	"quittance/ingress/problem"
)

// maxBody is the largest body that is read, in bytes (decisions § 2).
const maxBody = 64 << 10

// maxAmount keeps amounts exact in every integrator's language: JavaScript's
// largest safe integer.
const maxAmount = 1<<53 - 1

// createRequest is the body of POST /checkout/sessions as far as it is well formed.
type createRequest struct {
	orderID     string
	amount      int64
	currency    string
	mode        checkout.Mode
	tenantID    string
	serviceCode string
	description string
	note        string
	customer    *checkout.Customer
	customerID  string
	metadata    map[string]string
	successURL  string
	cancelURL   string
	// hash is SHA-256 of the body as canonical JSON.
	hash []byte
}

// readBody reads a JSON body whole, so that what the generated code decodes is
// one value and ends where the body ends. The error is a *problem.Problem.
func readBody(w http.ResponseWriter, r *http.Request) error {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return &problem.Problem{
			Status: http.StatusUnsupportedMediaType, Code: "generic.unsupported_media_type", Title: "Unsupported media type",
			Detail: "The body must be JSON: send Content-Type: application/json.",
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return &problem.Problem{
			Status: http.StatusRequestEntityTooLarge, Code: "generic.body_too_large", Title: "Body too large",
			Detail: fmt.Sprintf("The body is larger than %d bytes.", maxBody),
		}
	case err != nil:
		return badJSON("The body could not be read to its end: send it again.")
	case !json.Valid(body):
		_, _, err := decodeObject(body) // says where
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

func badJSON(detail string) *problem.Problem {
	return &problem.Problem{Status: http.StatusBadRequest, Code: "generic.malformed_json", Title: "Malformed JSON", Detail: detail}
}

// parseCreate reads the request and collects every fault of form. The error is a
// *problem.Problem for a body that is no JSON object.
func parseCreate(body []byte, live bool) (createRequest, []problem.Fault, error) {
	fields, hash, err := decodeObject(body)
	if err != nil {
		return createRequest{}, nil, err
	}
	f := &form{fields: fields}
	q := createRequest{
		hash:        hash,
		orderID:     f.text("order_id", true, 1, 200),
		amount:      f.amount("amount"),
		currency:    f.text("currency", false, 3, 3),
		tenantID:    f.uuid("tenant_id"),
		serviceCode: f.text("service_code", false, 1, 50),
		description: f.text("description", false, 1, 200),
		note:        f.text("note", false, 1, 500),
		customer:    f.customer("customer"),
		customerID:  f.text("customer_id", false, 1, 200),
		metadata:    f.metadata("metadata"),
		successURL:  f.url("success_url", live),
		cancelURL:   f.url("cancel_url", live),
		mode:        checkout.Mode(f.text("mode", false, 1, 50)),
	}
	if q.currency == "" && !f.faulty("currency") {
		q.currency = "XAF"
	}
	switch q.mode {
	case checkout.ModeHosted, checkout.ModeEmbedded:
	case "":
		q.mode = checkout.ModeHosted
	default:
		f.fault("mode", "enum", `must be "hosted" or "embedded"`)
	}
	f.unknown()
	return q, f.faults, nil
}

// parseVerify reads the body of verify-completion, as parseCreate does.
func parseVerify(body []byte) (token, tenantID string, faults []problem.Fault, err error) {
	fields, _, err := decodeObject(body)
	if err != nil {
		return "", "", nil, err
	}
	f := &form{fields: fields}
	// Of any length: a token that is too long is one that does not exist.
	token, tenantID = f.text("completion_token", true, 1, maxBody), f.uuid("tenant_id")
	f.unknown()
	return token, tenantID, f.faults, nil
}

// decodeObject reads a JSON object, its numbers as json.Number, and returns with
// its fields the hash of its canonical form: keys sorted, no white space, numbers
// as written.
func decodeObject(body []byte) (fields map[string]any, hash []byte, err error) {
	if !utf8.Valid(body) {
		return nil, nil, badJSON("The body is not UTF-8.")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, nil, badJSON(fmt.Sprintf("The body is not JSON: %s at byte %d.", syntax.Error(), syntax.Offset))
		}
		return nil, nil, badJSON("The body is not JSON: it ends too early or is empty.")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, nil, badJSON("The body holds more than one JSON value.")
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return nil, nil, badJSON("The body must be a JSON object.")
	}
	if members(fields) != written(body) {
		name, _ := repeatedField(body)
		return nil, nil, badJSON("The body has the field " + strconv.Quote(shorten(name)) + " twice: which one counts nobody can tell.")
	}
	sum := sha256.Sum256(canonical(make([]byte, 0, len(body)), fields))
	return fields, sum[:], nil
}

// members counts the fields of all objects in a decoded value. Of two of a name
// the decoder has kept one.
func members(v any) (n int) {
	switch v := v.(type) {
	case map[string]any:
		n = len(v)
		for _, e := range v {
			n += members(e)
		}
	case []any:
		for _, e := range v {
			n += members(e)
		}
	}
	return n
}

// written counts the fields of all objects in a JSON text: the colons outside
// its strings.
func written(body []byte) (n int) {
	inside := false
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			inside = !inside
		case '\\':
			i++ // only strings have them
		case ':':
			if !inside {
				n++
			}
		}
	}
	return n
}

// repeatedField is the name of the first field that an object of a JSON text has
// twice, if one has.
func repeatedField(body []byte) (name string, found bool) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	type level struct {
		names map[string]bool // nil: an array
		value bool            // the next token is a value
	}
	var levels []level
	for {
		token, err := dec.Token()
		if err != nil {
			return "", false
		}
		if name, ok := token.(string); ok && len(levels) > 0 {
			if top := &levels[len(levels)-1]; top.names != nil && !top.value {
				if top.names[name] {
					return name, true
				}
				top.names[name], top.value = true, true
				continue
			}
		}
		if token == json.Delim('}') || token == json.Delim(']') {
			levels = levels[:len(levels)-1]
			continue
		}
		if len(levels) > 0 {
			levels[len(levels)-1].value = false
		}
		switch token {
		case json.Delim('{'):
			levels = append(levels, level{names: map[string]bool{}})
		case json.Delim('['):
			levels = append(levels, level{})
		}
	}
}

// canonical appends v without what makes no difference. It is compared, never
// read, so lengths take the place of quotes and escapes.
func canonical(b []byte, v any) []byte {
	text := func(kind byte, s string) {
		b = append(binary.AppendUvarint(append(b, kind), uint64(len(s))), s...)
	}
	switch v := v.(type) {
	case map[string]any:
		b = binary.AppendUvarint(append(b, '{'), uint64(len(v)))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			text('k', k)
			b = canonical(b, v[k])
		}
	case []any:
		b = binary.AppendUvarint(append(b, '['), uint64(len(v)))
		for _, e := range v {
			b = canonical(b, e)
		}
	case string:
		text('"', v)
	case json.Number:
		text('0', v.String())
	case bool:
		b = strconv.AppendBool(b, v)
	case nil:
		b = append(b, 'n')
	}
	return b
}

// form takes fields out of an object and collects what is wrong with them. A
// field that is null counts as absent.
type form struct {
	prefix string
	fields map[string]any
	faults []problem.Fault
	known  []string
}

func (f *form) fault(field, rule, message string) {
	f.faults = append(f.faults, problem.Fault{Field: f.prefix + field, Rule: rule, Message: f.prefix + field + " " + message + "."})
}

func (f *form) faulty(field string) bool {
	return slices.ContainsFunc(f.faults, func(p problem.Fault) bool { return p.Field == f.prefix+field })
}

func (f *form) take(field string, required bool) (any, bool) {
	f.known = append(f.known, field)
	value := f.fields[field]
	if value == nil {
		if required {
			f.fault(field, "required", "is required")
		}
		return nil, false
	}
	return value, true
}

func (f *form) text(field string, required bool, shortest, longest int) string {
	value, ok := f.take(field, required)
	if !ok {
		return ""
	}
	s, ok := value.(string)
	if !ok {
		f.fault(field, "type", "must be a string")
		return ""
	}
	if n := utf8.RuneCountInString(s); n < shortest || n > longest {
		f.fault(field, "length", lengthRule(shortest, longest))
		return ""
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r == 0 || r == utf8.RuneError }) {
		f.fault(field, "format", "must not hold the zero character or half a surrogate pair")
		return ""
	}
	return s
}

func lengthRule(shortest, longest int) string {
	if shortest == longest {
		return fmt.Sprintf("must have %d characters", shortest)
	}
	return fmt.Sprintf("must have %d to %d characters", shortest, longest)
}

var integer = regexp.MustCompile(`^-?[0-9]+$`)

func (f *form) amount(field string) int64 {
	value, ok := f.take(field, true)
	if !ok {
		return 0
	}
	n, ok := value.(json.Number)
	if !ok {
		f.fault(field, "type", "must be an integer in minor units of the currency")
		return 0
	}
	if !integer.MatchString(n.String()) {
		f.fault(field, "type", "must be an integer in minor units of the currency, without fraction or exponent")
		return 0
	}
	v, err := n.Int64()
	if err != nil {
		v = math.MaxInt64
	}
	if strings.HasPrefix(n.String(), "-") || v <= 0 || v > maxAmount {
		f.fault(field, "range", fmt.Sprintf("must be greater than 0 and at most %d", int64(maxAmount)))
		return 0
	}
	return v
}

func (f *form) uuid(field string) string {
	s := f.text(field, false, 1, 200)
	if s == "" {
		return ""
	}
	id, err := uuid.Parse(s)
	if err != nil || len(s) != 36 {
		f.fault(field, "format", "must be a UUID")
		return ""
	}
	return id.String()
}

func (f *form) url(field string, live bool) string {
	s := f.text(field, false, 1, 2048)
	if s == "" {
		return ""
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "":
		f.fault(field, "url", "must be an absolute URL")
	case u.Scheme != "https" && (live || u.Scheme != "http"):
		f.fault(field, "url", "must use https (http is allowed with test keys only)")
	case u.User != nil:
		f.fault(field, "url", "must not hold a user name or password")
	default:
		return s
	}
	return ""
}

// object opens a nested object as a form of its own.
func (f *form) object(field string) (*form, bool) {
	value, ok := f.take(field, false)
	if !ok {
		return nil, false
	}
	fields, ok := value.(map[string]any)
	if !ok {
		f.fault(field, "type", "must be an object")
		return nil, false
	}
	return &form{prefix: f.prefix + field + ".", fields: fields}, true
}

func (f *form) customer(field string) *checkout.Customer {
	in, ok := f.object(field)
	if !ok {
		return nil
	}
	c := &checkout.Customer{Name: in.text("name", false, 1, 200), Email: in.text("email", false, 1, 254), Phone: in.text("phone", false, 1, 32)}
	if c.Email != "" {
		if a, err := mail.ParseAddress(c.Email); err != nil || a.Address != c.Email {
			in.fault("email", "format", "must be an e-mail address")
		}
	}
	in.unknown()
	f.faults = append(f.faults, in.faults...)
	if *c == (checkout.Customer{}) {
		return nil
	}
	return c
}

func (f *form) metadata(field string) map[string]string {
	in, ok := f.object(field)
	if !ok {
		return nil
	}
	out := map[string]string{}
	if len(in.fields) > 20 {
		f.fault(field, "size", "must have at most 20 keys")
	}
	for key, value := range in.fields {
		v, ok := value.(string)
		switch n := utf8.RuneCountInString(key); {
		case n == 0 || n > 64:
			in.fault(shorten(key), "length", "must have a key of 1 to 64 characters")
		case !ok:
			in.fault(key, "type", "must be a string")
		case strings.ContainsRune(key+v, 0):
			in.fault(shorten(key), "format", "must not hold the zero character")
		case utf8.RuneCountInString(v) > 500:
			in.fault(key, "length", "must have at most 500 characters")
		default:
			out[key] = v
		}
	}
	slices.SortFunc(in.faults, func(a, b problem.Fault) int { return strings.Compare(a.Field, b.Field) })
	f.faults = append(f.faults, in.faults...)
	if len(out) == 0 {
		return nil
	}
	return out
}

// unknown refuses fields that nobody asked for: a misspelt one must not be lost
// silently.
func (f *form) unknown() {
	var names []string
	for name := range f.fields {
		if !slices.Contains(f.known, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		f.fault(shorten(name), "unknown", "is not a field of this request; the fields are "+strings.Join(f.known, ", "))
	}
}

// shorten is a name that the caller chose, as it is told back.
func shorten(s string) string {
	switch {
	case s == "":
		return `""`
	case utf8.RuneCountInString(s) <= 64:
		return s
	}
	return string([]rune(s)[:64]) + "…"
}
