package erp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"quittance/internal/call"
	"quittance/internal/form"
	"quittance/internal/registry"
)

// Limits of an answer with dues, and of the references in a query.
const (
	ReadTimeout  = 5 * time.Second // of the whole call, with the body
	MaxAnswer    = 1 << 20         // bytes
	MaxItems     = 500
	MaxReference = 200 // characters of subject_ref, batch_ref and erp_due_ref
)

// FaultInvalid is the class of a 2xx whose body is not {"items": […]} within the limits.
// The detail is one of the Invalid… constants.
const FaultInvalid = "answer_invalid"

// Faults of a question that was not put to the ERP (package erpquery).
const (
	// FaultUnanswered: `sink erp`, which calls the ERPs, did not answer. Whether the ERP would have is unknown.
	FaultUnanswered = "sink_erp_unanswered"
	// FaultBusy: `sink erp` has too many questions to this ERP, which is slow or away, or is asked too often.
	FaultBusy = "sink_erp_busy"
)

// Details of FaultInvalid.
const (
	InvalidHTML       = "html"
	InvalidCompressed = "compressed" // the request accepts no compression
	InvalidUTF8       = "not_utf8"
	InvalidJSON       = "not_json"
	InvalidItems      = "no_items" // no object, or its member items is missing, repeated or no list
	InvalidTooMany    = "too_many_items"
	InvalidItemSize   = "item_too_long" // of a batch: an item, or a value beside the items, of more than MaxLine bytes
)

// invalid is a body that is not usable as a whole. Its text is a detail of FaultInvalid.
type invalid string

func (i invalid) Error() string { return string(i) }

// Refused is an item of an answer that breaks the contract. The other items of the answer
// stay usable.
type Refused struct {
	// Position of the item in items, from 0.
	Position int
	// Ref is erp_due_ref or line_ref; empty when it is not usable.
	Ref string
	// Label is the label of a due; empty when it is not usable.
	Label string
	// Faults are the reasons. Their messages repeat no value of the item.
	Faults []form.Fault
}

// IsReference reports whether a text can be a subject_ref, batch_ref or erp_due_ref: 1 to
// MaxReference characters, not all spaces, without control characters.
func IsReference(s string) bool {
	return utf8.ValidString(s) && strings.TrimSpace(s) != "" && utf8.RuneCountInString(s) <= MaxReference &&
		!strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError })
}

// Dues asks for the dues of a subject and checks each. After a fault there are none. The
// dues have no Service yet: Resolve adds it.
func (c *Client) Dues(ctx context.Context, s registry.ERPSettings, subjectRef string) ([]Due, []Refused, call.Result) {
	return ReadDues(c.FetchDues(ctx, s, subjectRef, ReadTimeout))
}

// FetchDues is Dues without a check of the answer: it returns the body of a 2xx. It takes at most the
// time given, and never longer than ReadTimeout.
func (c *Client) FetchDues(ctx context.Context, s registry.ERPSettings, subjectRef string, within time.Duration) ([]byte, call.Result) {
	return c.fetch(ctx, s, "/dues?subject_ref="+url.QueryEscape(subjectRef), min(within, ReadTimeout))
}

// ReadDues checks what FetchDues returned.
func ReadDues(body []byte, r call.Result) ([]Due, []Refused, call.Result) {
	return readAnswer(body, r, ParseDues)
}

func (c *Client) fetch(ctx context.Context, s registry.ERPSettings, path string, within time.Duration) ([]byte, call.Result) {
	h, ok := header(s)
	if !ok {
		return nil, call.Result{Fault: call.FaultUnusable}
	}
	r, body := c.to(s).Fetch(ctx, address(s, path), h, MaxAnswer, within)
	return body, r
}

// readAnswer parses the body of a 2xx.
func readAnswer[T any](body []byte, r call.Result, parse func([]byte) ([]T, []Refused, error)) ([]T, []Refused, call.Result) {
	if !r.OK() {
		return nil, nil, r
	}
	usable, refused, err := parse(body)
	if err != nil {
		return nil, nil, call.Result{Fault: FaultInvalid, Detail: err.Error(), Duration: r.Duration}
	}
	return usable, refused, r
}

// items returns the elements of {"items": […]}. Other members are ignored, because ERPs
// may send more. The error is an invalid.
func items(body []byte) ([]json.RawMessage, error) {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\xEF\xBB\xBF")))
	switch {
	case bytes.HasPrefix(body, []byte("\x1f\x8b")):
		return nil, invalid(InvalidCompressed)
	case bytes.HasPrefix(body, []byte("<")):
		return nil, invalid(InvalidHTML)
	case !utf8.Valid(body):
		return nil, invalid(InvalidUTF8)
	case !json.Valid(body):
		return nil, invalid(InvalidJSON)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, invalid(InvalidItems)
	}
	var list []json.RawMessage
	for found := false; ; {
		name, err := d.Token()
		if errors.Is(err, io.EOF) || name == json.Delim('}') {
			if !found || list == nil {
				return nil, invalid(InvalidItems)
			}
			break
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, invalid(InvalidJSON)
		}
		if name != "items" {
			continue
		}
		if found || json.Unmarshal(value, &list) != nil {
			return nil, invalid(InvalidItems)
		}
		found = true
	}
	if len(list) > MaxItems {
		return nil, invalid(InvalidTooMany)
	}
	return list, nil
}

// readItems parses each item with parse, which adds the faults to the form and returns the
// item's reference. Items whose reference occurs twice are all refused.
func readItems[T any](body []byte, refField string, parse func(*form.Form) (item T, ref string)) (usable []T, refused []Refused, err error) {
	list, err := items(body)
	if err != nil {
		return nil, nil, err
	}
	type read struct {
		item T
		Refused
	}
	all, times := make([]read, len(list)), map[string]int{}
	for i, raw := range list {
		all[i].Position = i
		fields, err := form.Decode(raw)
		if err != nil {
			all[i].Faults = []form.Fault{{Rule: "type", Message: "The item must be an object that has no field twice."}}
			continue
		}
		f := form.OfWhole("the item", fields)
		all[i].item, all[i].Ref = parse(f)
		all[i].Label = label(fields)
		ignoreOthers(f)
		all[i].Faults = f.Faults()
		if all[i].Ref != "" {
			times[all[i].Ref]++
		}
	}
	for _, r := range all {
		if times[r.Ref] > 1 {
			r.Faults = append(r.Faults, form.Fault{Field: refField, Rule: "duplicate", Message: refField + " must be unique; it occurs more than once in the answer."})
		}
		if len(r.Faults) > 0 {
			refused = append(refused, r.Refused)
		} else {
			usable = append(usable, r.item)
		}
	}
	return usable, refused, nil
}

// reference takes a required reference of at most longest characters. It returns "" when it
// is at fault.
func reference(f *form.Form, field string, longest int) string {
	s := f.Text(field, true, 1, longest)
	if s != "" && !IsReference(s) {
		f.Fault(field, "format", "must not be all spaces and must not hold control characters")
		return ""
	}
	return s
}

// amount takes a required number of minor units from least to form.MaxAmount.
func amount(f *form.Form, field string, least int64) (n int64, ok bool) {
	value := f.Integer(field, least, form.MaxAmount)
	if value != nil {
		return *value, true
	}
	if !f.Faulty(field) {
		f.Fault(field, "required", "is required: an integer in minor units")
	}
	return 0, false
}
