package simulator

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// fault is a fault of a request to /control, to an inbox or to an ERP: the field, what is
// wrong, and what to send instead.
type fault struct {
	Field   string `json:"field"`
	Message string `json:"message"`
	Mend    string `json:"mend,omitempty"`
}

// problem is the body of every refusal except those of operators: RFC 9457 with the faults
// as an extension.
type problem struct {
	Type   string  `json:"type"`
	Title  string  `json:"title"`
	Status int     `json:"status"`
	Code   string  `json:"code,omitempty"`
	Detail string  `json:"detail"`
	Errors []fault `json:"errors,omitempty"`
}

func writeProblem(w http.ResponseWriter, status int, detail string, faults ...fault) {
	writeCodedProblem(w, status, "", detail, faults...)
}

func writeCodedProblem(w http.ResponseWriter, status int, code, detail string, faults ...fault) {
	w.Header().Set("Content-Type", "application/problem+json")
	writeBody(w, status, problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status,
		Code: code, Detail: detail, Errors: faults,
	})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	writeBody(w, status, v)
}

func writeBody(w http.ResponseWriter, status int, v any) {
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	// An error means that the caller has disconnected.
	_ = enc.Encode(v)
}

// form reads the members of a JSON object one by one. Every fault names its member, and one
// answer has all faults.
type form struct {
	members map[string]json.RawMessage
	known   []string
	faults  []fault
}

// parseForm reads an object; an empty body counts as {}.
func parseForm(body []byte) (*form, error) {
	f := &form{members: map[string]json.RawMessage{}}
	if len(strings.TrimSpace(string(body))) == 0 {
		return f, nil
	}
	if err := json.Unmarshal(body, &f.members); err != nil {
		return nil, fmt.Errorf("reading the body as a JSON object: %w", err)
	}
	if f.members == nil {
		return nil, fmt.Errorf("reading the body as a JSON object: it is null")
	}
	return f, nil
}

// take decodes a member into dst and reports whether the object has it. expect describes
// valid values; a fault names it as the mend.
func (f *form) take(name string, dst any, expect string) bool {
	f.known = append(f.known, name)
	raw, ok := f.members[name]
	if !ok {
		return false
	}
	if err := json.Unmarshal(raw, dst); err != nil {
		f.fail(name, "has the wrong type", "send "+expect)
		return false
	}
	return true
}

// duration takes a member such as "3s", between zero and most.
func (f *form) duration(name string, dst *time.Duration, most time.Duration) bool {
	expect := fmt.Sprintf("a duration such as \"3s\" or \"24h\", from 0 to %s", most)
	var text string
	if !f.take(name, &text, expect) {
		return false
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > most {
		f.fail(name, fmt.Sprintf("%q is not a duration in range", text), "send "+expect)
		return false
	}
	*dst = d
	return true
}

// integer takes a whole number between low and high.
func (f *form) integer(name string, dst *int, low, high int) bool {
	expect := fmt.Sprintf("a whole number from %d to %d", low, high)
	var n int
	if !f.take(name, &n, expect) {
		return false
	}
	if n < low || n > high {
		f.fail(name, fmt.Sprintf("%d is out of range", n), "send "+expect)
		return false
	}
	*dst = n
	return true
}

func (f *form) fail(field, message, mend string) {
	f.faults = append(f.faults, fault{Field: field, Message: message, Mend: mend})
}

// finish adds a fault for every member that was not taken and returns all faults,
// ordered by field.
func (f *form) finish() []fault {
	for name := range f.members {
		if !slices.Contains(f.known, name) {
			f.fail(name, "is not known here", "known: "+strings.Join(f.known, ", "))
		}
	}
	slices.SortStableFunc(f.faults, func(a, b fault) int { return strings.Compare(a.Field, b.Field) })
	return f.faults
}

// readForm reads the body of a control request, or answers with its fault.
func readForm(w http.ResponseWriter, r *http.Request) (*form, bool) {
	body, ok := readBody(w, r, maxControlBody)
	if !ok {
		return nil, false
	}
	f, err := parseForm(body)
	if err != nil {
		writeProblem(w, http.StatusBadRequest, err.Error(),
			fault{Field: "", Message: "the body is not a JSON object", Mend: `send an object such as {"reset": true}`})
		return nil, false
	}
	return f, true
}

// accepted answers 422 when the form has faults.
func (f *form) accepted(w http.ResponseWriter) bool {
	faults := f.finish()
	if len(faults) == 0 {
		return true
	}
	writeProblem(w, http.StatusUnprocessableEntity, "Nothing was changed: "+describe(faults), faults...)
	return false
}

func describe(faults []fault) string {
	var parts []string
	for _, f := range faults {
		parts = append(parts, f.Field+" "+f.Message)
	}
	return strings.Join(parts, "; ") + "."
}

// readPage reads after and limit from the query, or answers with its faults. extra names
// the other parameters of the list.
func readPage(w http.ResponseWriter, r *http.Request, extra ...string) (page, bool) {
	var p page
	var faults []fault
	query := r.URL.Query()
	for name, values := range query {
		switch {
		case name == "after":
			n, err := strconv.ParseInt(values[0], 10, 64)
			if err != nil || n < 0 {
				faults = append(faults, fault{"after", "is not a number of an entry", "send the id of the last entry you have seen, or 0"})
			}
			p.after, p.resumes = n, true
		case name == "limit":
			n, err := strconv.Atoi(values[0])
			if err != nil || n < 1 {
				faults = append(faults, fault{"limit", "is not a positive number", "send 1 or more, or leave it out for all"})
			}
			p.limit = n
		case !slices.Contains(extra, name):
			faults = append(faults, fault{name, "is not known here", "known: " + strings.Join(append([]string{"after", "limit"}, extra...), ", ")})
		}
	}
	if len(faults) > 0 {
		writeProblem(w, http.StatusBadRequest, "The query is not understood: "+describe(faults), faults...)
		return page{}, false
	}
	return p, true
}
