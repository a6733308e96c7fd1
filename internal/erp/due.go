package erp

import (
	"strings"
	"time"
	"unicode"

	"quittance/internal/form"
	"quittance/internal/registry"
	"quittance/money"
)

const (
	maxCode  = 50  // characters of revenue_line_code (contract, "Limits")
	maxLabel = 200 // characters, as the description of a session
)

// Due is a due of a subject as the agency's ERP states it (contract, "ERP due object").
// Amounts are in minor units of Currency.
type Due struct {
	Ref   string // erp_due_ref
	Label string // the ERP's text on one line, cut off after 200 characters
	// Amount, Outstanding and Original are not negative. Outstanding is above Original when the
	// agency has added penalties or interest.
	Amount, Outstanding, Original int64
	Currency                      string
	AllowPartial                  bool
	// Minimum is the smallest partial amount; 0 without AllowPartial.
	Minimum     int64
	RevenueLine string // revenue_line_code; empty for none
	// DueDate is a date at 0:00 UTC; zero for none or one that is not understood.
	DueDate time.Time
	// Service of the agency's catalogue (Resolve); zero when unresolved. The ERP's own
	// service fields are never used.
	Service registry.Service
}

// Paid reports whether nothing is left to pay. Such a due cannot be chosen.
func (d Due) Paid() bool { return d.Outstanding == 0 }

// Added returns by how much the outstanding amount is above the original one: penalties and
// interest. It is 0 when it is not above. When a part was paid before, more was added than that.
func (d Due) Added() int64 { return max(0, d.Outstanding-d.Original) }

// Takes reports whether an amount can be paid: the outstanding amount, or with AllowPartial
// any from Minimum to the outstanding amount.
func (d Due) Takes(amount int64) bool {
	least := d.Outstanding
	if d.AllowPartial {
		least = d.Minimum
	}
	return !d.Paid() && least <= amount && amount <= d.Outstanding
}

// Overdue reports whether the due date is before the day of a moment, whose location
// matters.
func (d Due) Overdue(at time.Time) bool {
	y, m, day := at.Date()
	return !d.DueDate.IsZero() && !d.Paid() && d.DueDate.Before(time.Date(y, m, day, 0, 0, 0, 0, time.UTC))
}

// ParseDues reads the body of an answer of GET /dues. An item that breaks the contract is
// refused; the others are usable. The error is about the body as a whole; its text is a
// detail of FaultInvalid. The body needs no limit of its size here.
func ParseDues(body []byte) (dues []Due, refused []Refused, err error) {
	return readItems(body, "erp_due_ref", parseDue)
}

func parseDue(f *form.Form) (Due, string) {
	d := Due{Ref: reference(f, "erp_due_ref", MaxReference)}
	if text, ok := f.Take("label", true); ok {
		s, isText := text.(string)
		if d.Label = line(s); !isText || d.Label == "" {
			f.Fault("label", "type", "must be a text that is not empty")
		}
	}
	d.Amount, _ = amount(f, "amount_minor", 0)
	outstanding, known := amount(f, "outstanding_minor", 0)
	d.Outstanding = outstanding
	d.Original, _ = amount(f, "original_minor", 0)
	if d.Currency = f.Text("currency", true, 1, maxCode); d.Currency != "" {
		if _, ok := money.Lookup(d.Currency); !ok {
			f.Fault("currency", "enum", "is not in the contract's list of currencies")
		}
	}
	partial := f.Bool("allow_partial")
	if partial == nil && !f.Faulty("allow_partial") {
		f.Fault("allow_partial", "required", "is required: true or false")
	}
	// Nothing of a paid due can be chosen, so that its minimum does not matter.
	if d.AllowPartial = partial != nil && *partial; d.AllowPartial && (outstanding > 0 || !known) {
		minimum, ok := amount(f, "minimum_amount_minor", 1)
		d.Minimum = minimum
		if ok && known && d.Minimum > outstanding {
			f.Fault("minimum_amount_minor", "range", "must be from 1 to outstanding_minor when allow_partial is true")
		}
	}
	d.RevenueLine = f.Text("revenue_line_code", false, 0, maxCode)
	if value, ok := f.Take("due_date", false); ok {
		s, _ := value.(string)
		d.DueDate, _ = ParseDueDate(s)
	}
	return d, d.Ref
}

// ParseDueDate reads a due_date: a date such as 2026-03-31, or an RFC 3339 time, whose date
// counts as it is written.
func ParseDueDate(s string) (time.Time, bool) {
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		s = t.Format(time.DateOnly)
	}
	t, err := time.Parse(time.DateOnly, s)
	return t, err == nil
}

// label returns the label of an item; empty when it has none.
func label(fields map[string]any) string {
	s, _ := fields["label"].(string)
	return line(s)
}

// line returns a text on one line, with single spaces and without unprintable characters,
// cut off after maxLabel characters.
func line(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || unicode.IsSpace(r) }), " ")
	if runes := []rune(s); len(runes) > maxLabel {
		return strings.TrimSpace(string(runes[:maxLabel-1])) + "…"
	}
	return s
}

// Catalogue is the part of the registry that Resolve needs.
type Catalogue interface {
	// ResolveService returns the active service of an ERP code, or the agency's active
	// default service; false when there is neither.
	ResolveService(agencyID, erpCode string) (registry.Service, bool)
}

// Resolve returns dues of an agency with their services (contract, "Service catalogue
// mapping").
func Resolve(agencyID string, dues []Due, catalogue Catalogue) []Due {
	out := make([]Due, len(dues))
	for i, d := range dues {
		d.Service, _ = catalogue.ResolveService(agencyID, d.RevenueLine)
		out[i] = d
	}
	return out
}
