package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"quittance/internal/journal"
)

// Stamp says where a report comes from: whose figures of when, and what the database had of Kafka's records when it
// was asked. `quittance journal verify` proves the rows behind it.
type Stamp struct {
	// Report is the name of the report.
	Report string
	// Agency is the slug of the agency; empty for all agencies and money of none.
	Agency string
	// Month is the month, such as 2026-11. Since is the first day of a report that is of no month.
	Month, Since string
	// Mode is test or live; empty if the rows say it.
	Mode string
	// At is when the report was made, by the machine's clock.
	At time.Time
	// Program and Version name what made it.
	Program, Version string
	// Positions are those of the journal when the report was made; nil for a report that does not read it.
	Positions []journal.Position
	// Compared is true if the positions were compared with the offsets in Kafka.
	Compared bool
	// Of says what the report is about, if it is of no month.
	Of []Fact
}

// Fact is a part of a Stamp.
type Fact struct{ Name, Text string }

// Facts returns the stamp in the words of the field.
func (s Stamp) Facts() []Fact {
	out := []Fact{{"report", s.Report}, {"agency", cmp.Or(s.Agency, "all")}}
	add := func(name, text string) {
		if text != "" {
			out = append(out, Fact{name, text})
		}
	}
	out = append(out, s.Of...)
	add("month", s.Month)
	add("since", s.Since)
	add("mode", map[string]string{"test": "test payments: no money was moved", "live": "live payments"}[s.Mode])
	add("generated at", s.At.UTC().Format(time.RFC3339))
	if s.Positions != nil {
		compared := " (not compared with Kafka)"
		if s.Compared {
			compared = " (compared with Kafka)"
		}
		add("records below", strings.Join(s.Offsets(), " ")+compared)
	}
	add("program", s.Program+" "+s.Version)
	return out
}

// Offsets returns the offset below which the database has the records of each partition, as topic/partition@offset.
func (s Stamp) Offsets() []string {
	out := make([]string, len(s.Positions))
	for i, p := range s.Positions {
		out[i] = fmt.Sprintf("%s@%d", p.At(), p.Position)
	}
	return out
}

// line returns the stamp as one line.
func (s Stamp) line() string {
	var parts []string
	for _, f := range s.Facts() {
		parts = append(parts, f.Name+": "+f.Text)
	}
	return strings.Join(parts, "; ")
}

// Total is the sum of the amounts in one currency, and of one value of Table.Apart.
type Total struct {
	Currency, Of string
	// Amounts are in minor units, by the name of the column.
	Amounts map[string]int64
}

// Totals returns the sums of the columns with amounts, by currency and by the value of Apart, in the order in which they occur.
// Counts are not added up: a payment may be in several rows.
func (t Table) Totals() []Total {
	var out []Total
	at := map[string]int{}
	for _, row := range t.Rows {
		code := t.code(row)
		if code == "" {
			continue
		}
		of := t.apart(row)
		i, known := at[code+" "+of]
		if !known {
			i, at[code+" "+of] = len(out), len(out)
			out = append(out, Total{code, of, map[string]int64{}})
		}
		for n, c := range t.Columns {
			if value, ok := row[n].(int64); ok && c.Money() {
				out[i].Amounts[c.Name] += value
			}
		}
	}
	return out
}

// apart returns the value of Apart of a row.
func (t Table) apart(row []any) string {
	for i, c := range t.Columns {
		if of, ok := row[i].(string); ok && c.Name == t.Apart {
			return of
		}
	}
	return ""
}

// code returns the currency of a row as it stands there.
func (t Table) code(row []any) string {
	for i, c := range t.Columns {
		if code, ok := row[i].(string); ok && c.Name == "currency" {
			return code
		}
	}
	return ""
}

// TotalRow returns a total as a row of the table.
func (t Table) TotalRow(sum Total) []any {
	row := make([]any, len(t.Columns))
	for i, c := range t.Columns {
		switch {
		case c.Money():
			row[i] = sum.Amounts[c.Name]
		case c.Name == "currency":
			row[i] = sum.Currency
		case c.Name == t.Apart:
			row[i] = sum.Of
		case i == 0:
			row[i] = "Total"
		default:
			row[i] = ""
		}
	}
	return row
}
