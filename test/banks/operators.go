package banks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"pgregory.net/rapid"
)

// Operator is an operator whose report is delimited text, with its habits.
type Operator struct {
	// Separator divides columns. Decimal separates decimals, and Group thousands; both may be empty.
	Separator, Decimal, Group string
	// Format is how it writes times, a layout of package time.
	Format string
	// Cents says that amounts have two decimals, which are zero.
	Cents bool
	// Balance says that rows have a running balance.
	Balance bool
	// Apostrophe says that ids begin with one, as a spreadsheet marks a text.
	Apostrophe bool
	// Newest says that the newest row comes first.
	Newest bool
}

// Header is the first row of an operator's report: id, time, type, amount, balance.
var Header = []string{"Reference", "Date", "Operation", "Montant", "Solde"}

// Groups are separators of thousands of many countries.
var Groups = []string{"", " ", "\u00a0", "\u202f", "'", ",", "."}

// Formats are how operators write times.
var Formats = []string{"2006-01-02 15:04:05", "02/01/2006 15:04", "01/02/2006 15:04", "02.01.2006 15:04:05", "2-Jan-2006 15:04", "20060102150405", time.RFC3339, "02/01/06 15:04", "Jan 2, 2006 3:04 PM"}

// DrawOperator draws an operator.
func DrawOperator(t *rapid.T) *Operator {
	o := &Operator{
		Decimal: rapid.SampledFrom([]string{".", ","}).Draw(t, "decimal"), Group: rapid.SampledFrom(Groups).Draw(t, "group"), Separator: rapid.SampledFrom([]string{";", "\t"}).Draw(t, "separator"),
		Format: rapid.SampledFrom(Formats).Draw(t, "format"), Cents: rapid.Bool().Draw(t, "cents"), Balance: rapid.Bool().Draw(t, "balance"), Apostrophe: rapid.Bool().Draw(t, "apostrophe"),
		Newest: rapid.Bool().Draw(t, "newest"),
	}
	if o.Group == o.Decimal {
		o.Group = ""
	}
	return o
}

// Row is a row of a report.
type Row struct {
	ID     string
	At     time.Time
	Amount int64 // francs; negative for a refund
}

// Rows draws the rows of days, each with an id of its own.
func Rows(t *rapid.T, from time.Time, days int) (all []Row) {
	for day := range days {
		n := rapid.IntRange(1, 4).Draw(t, "rows")
		for i := range n {
			all = append(all, Row{
				ID: fmt.Sprintf("7%s%02d", from.AddDate(0, 0, day).Format("060102"), i), At: from.AddDate(0, 0, day).Add(time.Duration(8+i) * time.Hour),
				Amount: rapid.SampledFrom([]int64{500, 5000, 10_000, 1_250_000, -700}).Draw(t, "amount"),
			})
		}
	}
	return all
}

// Write writes a report with rows that begin with a balance.
func (o *Operator) Write(opening int64, rows []Row) string {
	lines := make([]string, len(rows))
	for i, r := range rows {
		opening += r.Amount
		id, kind, amount, balance := r.ID, "Paiement", r.Amount, ""
		if o.Apostrophe {
			id = "'" + id
		}
		if amount < 0 {
			kind, amount = "Remboursement", -amount
		}
		if o.Balance {
			balance = o.amount(opening)
		}
		lines[i] = strings.Join([]string{id, r.At.Format(o.Format), kind, o.amount(amount), balance}, o.Separator)
	}
	if o.Newest {
		slices.Reverse(lines)
	}
	return strings.Join(Header, o.Separator) + "\n" + strings.Join(lines, "\n") + "\n"
}

func (o *Operator) amount(francs int64) string {
	text, sign := strconv.FormatInt(francs, 10), ""
	if francs < 0 {
		text, sign = text[1:], "-"
	}
	for at := len(text) - 3; at > 0 && o.Group != ""; at -= 3 {
		text = text[:at] + o.Group + text[at:]
	}
	if o.Cents {
		text += o.Decimal + "00"
	}
	return sign + text
}
