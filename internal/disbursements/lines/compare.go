package lines

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"quittance/disbursement/digest"
	"quittance/money/localtime"
)

// Differences is what one revision of a batch, or one batch, has and another has not.
type Differences struct {
	// Added and Removed are in the order of their line_ref, as is Changed.
	Added, Removed []digest.Line
	Changed        []Changed
	// AddedSum, RemovedSum and the sums of changed lines before and after, in minor units.
	AddedSum, RemovedSum, BeforeSum, AfterSum int64
}

// Changed is a line that both have, with other content.
type Changed struct {
	Before, After digest.Line
	// Columns are those that differ, ColumnAccount among them.
	Columns []Column
}

// Compare returns the differences between lines, by line_ref.
func Compare(previous, next []digest.Line) Differences {
	previous, next = sorted(previous), sorted(next)
	var d Differences
	for len(previous) > 0 || len(next) > 0 {
		switch {
		case len(next) == 0 || len(previous) > 0 && previous[0].LineRef < next[0].LineRef:
			d.Removed, d.RemovedSum = append(d.Removed, previous[0]), d.RemovedSum+previous[0].Amount
			previous = previous[1:]
		case len(previous) == 0 || next[0].LineRef < previous[0].LineRef:
			d.Added, d.AddedSum = append(d.Added, next[0]), d.AddedSum+next[0].Amount
			next = next[1:]
		default:
			if before, after := previous[0], next[0]; before != after {
				d.Changed = append(d.Changed, Changed{before, after, differing(before, after)})
				d.BeforeSum, d.AfterSum = d.BeforeSum+before.Amount, d.AfterSum+after.Amount
			}
			previous, next = previous[1:], next[1:]
		}
	}
	return d
}

func sorted(lines []digest.Line) []digest.Line {
	byRef := func(a, b digest.Line) int { return strings.Compare(a.LineRef, b.LineRef) }
	if slices.IsSortedFunc(lines, byRef) {
		return lines
	}
	return slices.SortedFunc(slices.Values(lines), byRef)
}

func differing(a, b digest.Line) (columns []Column) {
	for _, c := range append(slices.Clone(Columns), ColumnAccount) {
		if c == ColumnAmount && a.Amount != b.Amount || c != ColumnAmount && *member(&a, c) != *member(&b, c) {
			columns = append(columns, c)
		}
	}
	return columns
}

// WarningKind classifies warnings. They refuse nothing.
type WarningKind string

// The warnings.
const (
	WarnTwice   WarningKind = "same_twice"    // same payee and amount as another line of the batch
	WarnRecent  WarningKind = "same_recently" // same payee and amount as within 90 days before
	WarnPayee   WarningKind = "new_payee"
	WarnAccount WarningKind = "other_account" // a known name with an account that it never had
	WarnName    WarningKind = "other_name"    // a known account with a name that it never had
)

// Warning is something that a person should look at.
type Warning struct {
	Kind WarningKind
	Row  int
	Ref  string // line_ref
	// Other is the line_ref of the other line of WarnTwice, and the local date of the earlier payment of WarnRecent.
	Other string
}

// MaxWarnings bounds the warnings that Warnings holds of a kind.
const MaxWarnings = 1000

// Warnings are those of a batch, in the order of line_ref.
type Warnings struct {
	List []Warning
	// Count has the number of all by kind.
	Count map[WarningKind]int
}

// MAC is a keyed hash of a payee or of a name. Who has the key chooses the function; the text is that of PayeeText or
// NameText.
type MAC [32]byte

// Payment is an earlier payment to a payee.
type Payment struct {
	Amount   int64 // minor units
	Currency string
	Date     string // local date, such as 2026-11-30
}

// Known are the payees that the agency has paid.
type Known struct {
	// Payees has the payments of the last 90 days; a payee without any is known all the same.
	Payees map[MAC][]Payment
	// Names has the payees of a name, and Paid those of them who were surely paid under it.
	Names, Paid map[MAC][]MAC
}

// recently is how far back a payment of the same amount is worth a warning.
const recently = 90 * 24 * time.Hour

// PayeeText returns what a payee is known by: the phone number or the account. It never changes.
func PayeeText(l digest.Line) string {
	switch {
	case l.MSISDN != "":
		return "msisdn|" + l.MSISDN
	case l.IBAN != "":
		return "iban|" + l.IBAN
	}
	return "number|" + l.Number
}

// NameText returns what a name is known by: its words in capitals and in the order of the alphabet, as NGOMA Jean is Jean
// NGOMA. It never changes.
func NameText(l digest.Line) string {
	words := strings.FieldsFunc(strings.ToUpper(l.Name), func(r rune) bool { return !strings.ContainsRune(capitals+digits, r) })
	slices.Sort(words)
	return "name|" + strings.Join(words, " ")
}

// Warn returns the warnings of a batch that pays on a local date. mac makes keyed hashes as Known has them. The error says
// that a date is none.
func Warn(lines []Line, date string, known Known, mac func(text string) MAC) (*Warnings, error) {
	day, err := localtime.Begin(date)
	if err != nil {
		return nil, fmt.Errorf("reading the date of a batch: %w", err)
	}
	type same struct {
		payee  MAC
		amount int64
	}
	w, first := &Warnings{Count: map[WarningKind]int{}}, map[same]string{}
	for _, l := range lines {
		ref, payee := l.Content.LineRef, mac(PayeeText(l.Content))
		add := func(kind WarningKind, other string) {
			if w.Count[kind]++; w.Count[kind] <= MaxWarnings {
				w.List = append(w.List, Warning{kind, l.Row, ref, other})
			}
		}
		if other, twice := first[same{payee, l.Content.Amount}]; twice {
			add(WarnTwice, other)
		} else {
			first[same{payee, l.Content.Amount}] = ref
		}
		payments, paid := known.Payees[payee]
		last, err := latest(payments, l.Content, day)
		if err != nil {
			return nil, err
		}
		if last != "" {
			add(WarnRecent, last)
		}
		switch accounts := known.Names[mac(NameText(l.Content))]; {
		case len(accounts) > 0 && !slices.Contains(accounts, payee):
			add(WarnAccount, "")
		case !paid:
			add(WarnPayee, "")
		case len(accounts) == 0:
			add(WarnName, "")
		}
	}
	return w, nil
}

// latest returns the date of the latest payment of the line's amount within 90 days before a day; empty if there is none.
func latest(payments []Payment, l digest.Line, day time.Time) (date string, err error) {
	for _, p := range payments {
		if p.Amount != l.Amount || p.Currency != l.Currency {
			continue
		}
		at, err := localtime.Begin(p.Date)
		if err != nil {
			return "", fmt.Errorf("reading the date of a payment: %w", err)
		}
		if day.Sub(at) <= recently && p.Date > date {
			date = p.Date
		}
	}
	return date, nil
}
