package cashin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"quittance/internal/form"
)

// maxBody is the size of the largest body that is read, in bytes.
const maxBody = 256 << 10

// Rules of faults (contract, "Deprecated cash-in errors").
const (
	ruleType     = "type"
	ruleRange    = "range"
	ruleEnum     = "enum"
	ruleDistinct = "distinct"
	ruleURL      = "url"
	ruleRequired = "required"
)

// fault is one field at fault, with exactly the fields of the contract.
type fault struct {
	Message string `json:"message"`
	Rule    string `json:"rule"`
	// Field is a dotted path such as items.0.price.
	Field string `json:"field"`
}

// faults collects the faults of a form.
type faults struct{ list []fault }

func (f *faults) add(field, rule, message string) {
	f.list = append(f.list, fault{Message: "The " + field + " field " + message, Rule: rule, Field: field})
}

// err returns the faults as an error, nil without any.
func (f *faults) err() error {
	if len(f.list) == 0 {
		return nil
	}
	return &faulty{Message: "Validation failure", Errors: f.list}
}

// object is an object of the body. Unknown fields are ignored, and null counts as absent.
type object struct {
	prefix string
	values map[string]any
	faults *faults
}

// readObject reads the request's body: one JSON object.
func readObject(c call) (object, error) {
	if t, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return object{}, refuse(http.StatusUnsupportedMediaType, codeMediaType, "The Content-Type must be application/json.")
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return object{}, refuse(http.StatusRequestEntityTooLarge, codeTooLarge, fmt.Sprintf("The body must have at most %d bytes.", maxBody))
	case err != nil:
		return object{}, refuse(http.StatusBadRequest, codeBadRequest, "The body could not be read to its end.")
	}
	values, err := form.Decode(body)
	if err != nil {
		message := "The body is not JSON."
		var malformed *form.MalformedError
		if errors.As(err, &malformed) {
			message = malformed.Detail
		}
		return object{}, refuse(http.StatusBadRequest, codeBadRequest, message)
	}
	return object{values: values, faults: &faults{}}, nil
}

func (o object) fault(field, rule, message string) { o.faults.add(o.prefix+field, rule, message) }

// take returns a field that is present.
func (o object) take(field string, required bool) (any, bool) {
	v := o.values[field]
	if v == nil && required {
		o.fault(field, ruleRequired, "must be defined")
	}
	return v, v != nil
}

// text returns a string of shortest to longest characters.
func (o object) text(field string, required bool, shortest, longest int) string {
	v, ok := o.take(field, required)
	if !ok {
		return ""
	}
	s, ok := v.(string)
	if !ok || strings.ContainsFunc(s, func(r rune) bool { return r == 0 || r == utf8.RuneError }) {
		o.fault(field, ruleType, "must be a string")
		return ""
	}
	if n := utf8.RuneCountInString(s); n < shortest || n > longest {
		o.fault(field, ruleRange, fmt.Sprintf("must have %d to %d characters", shortest, longest))
		return ""
	}
	return s
}

// oneOf returns an optional string of a list.
func (o object) oneOf(field string, values ...string) string {
	s := o.text(field, false, 0, maxBody)
	for _, v := range values {
		if s == v {
			return s
		}
	}
	if o.values[field] != nil && !o.faulty(field) {
		o.fault(field, ruleEnum, "must be one of "+strings.Join(values, ", "))
	}
	return ""
}

func (o object) faulty(field string) bool {
	for _, f := range o.faults.list {
		if f.Field == o.prefix+field {
			return true
		}
	}
	return false
}

// object calls read with an optional object.
func (o object) object(field string, read func(object)) {
	v, ok := o.take(field, false)
	if !ok {
		return
	}
	values, ok := v.(map[string]any)
	if !ok {
		o.fault(field, ruleType, "must be an object")
		return
	}
	read(object{o.prefix + field + ".", values, o.faults})
}

// maxAmount is the largest amount (contract, "Limits").
const maxAmount = 2147483647

var integer = regexp.MustCompile(`^-?[0-9]+$`)

// amount returns the required amount, in francs.
func (o object) amount() int64 {
	v, ok := o.take("amount", true)
	if !ok {
		return 0
	}
	n, ok := v.(json.Number)
	if !ok || !integer.MatchString(n.String()) {
		o.fault("amount", ruleType, "must be a whole number")
		return 0
	}
	amount, err := n.Int64()
	if err != nil || amount < 1 || amount > maxAmount {
		o.fault("amount", ruleRange, fmt.Sprintf("must be between 1 and %d", maxAmount))
		return 0
	}
	return amount
}

// item is an item as it is kept and echoed. Its numbers are those of the request.
type item struct {
	Number   string      `json:"number"`
	Name     string      `json:"name"`
	Price    json.Number `json:"price"`
	Quantity json.Number `json:"quantity"`
}

// maxItems is the most items of a payment.
const maxItems = 50

// items returns the JSON of the required items.
func (o object) items() []byte {
	v, ok := o.take("items", true)
	if !ok {
		return nil
	}
	list, ok := v.([]any)
	switch {
	case !ok:
		o.fault("items", ruleType, "must be an array")
		return nil
	case len(list) == 0 || len(list) > maxItems:
		o.fault("items", ruleRange, fmt.Sprintf("must have 1 to %d items", maxItems))
		return nil
	}
	items, seen, repeated := make([]item, 0, len(list)), map[string]bool{}, false
	for i, v := range list {
		at := "items." + strconv.Itoa(i)
		values, ok := v.(map[string]any)
		if !ok {
			o.fault(at, ruleType, "must be an object")
			continue
		}
		in := object{at + ".", values, o.faults}
		it := item{Number: in.text("number", true, 1, 64), Name: in.text("name", true, 1, 200), Price: in.number("price"), Quantity: in.number("quantity")}
		repeated = repeated || it.Number != "" && seen[it.Number]
		seen[it.Number] = true
		items = append(items, it)
	}
	if repeated {
		o.fault("items", ruleDistinct, "must not have a number twice")
	}
	if len(o.faults.list) > 0 {
		return nil
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(items); err != nil { // the numbers are JSON, and the texts are UTF-8
		panic(err)
	}
	return bytes.TrimSpace(text.Bytes())
}

// longestNumber is how many characters a number has at most. Prices and quantities are kept and told as they were sent.
const longestNumber = 40

// number returns a required number that is not negative.
func (o object) number(field string) json.Number {
	v, ok := o.take(field, true)
	if !ok {
		return ""
	}
	n, ok := v.(json.Number)
	if !ok {
		o.fault(field, ruleType, "must be a number")
		return ""
	}
	if len(n) > longestNumber {
		o.fault(field, ruleRange, fmt.Sprintf("must have at most %d characters", longestNumber))
		return ""
	}
	// A number that is too large for a float is infinite, with its sign.
	if f, _ := n.Float64(); f < 0 {
		o.fault(field, ruleRange, "must not be negative")
		return ""
	}
	return n
}
