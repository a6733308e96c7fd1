package lines

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Item is a line as an agency's ERP states it. Its texts are as the ERP sent them, empty for none.
type Item struct {
	Ref, Name, Phone, IBAN, Number, BIC, Mode, Currency, Purpose string
	Amount                                                       int64 // minor units
	// Wrong are the members that break the contract. What the Item says of them counts for nothing.
	Wrong []Wrong
}

// Wrong is a member of an item that breaks the contract.
type Wrong struct {
	// Path is its place in the answer, such as items[17].beneficiary.msisdn.
	Path string
	// Rule is that of package form.
	Rule string
}

// Items reads the lines of a batch from an ERP's answer by the rules of a file: one faulty item refuses all, and all faults are
// found. Make it with NewItems.
type Items struct{ r *reading }

// NewItems begins to read. The error is ErrRules.
func NewItems(rules Rules) (*Items, error) {
	r, err := newReading(rules, FormatERP)
	return &Items{r}, err
}

// members are the paths of columns in an item.
var members = map[Column]string{
	ColumnRef: ".line_ref", ColumnName: ".beneficiary.name", ColumnAmount: ".amount_minor", ColumnCurrency: ".currency", ColumnMode: ".payment_mode",
	ColumnPhone: ".beneficiary.msisdn", ColumnIBAN: ".beneficiary.account.iban", ColumnNumber: ".beneficiary.account.number", ColumnBIC: ".beneficiary.account.bic",
	ColumnPurpose: ".purpose",
}

// itemPath is the path of an item by its number from 1. ERPs count from 0, as their arrays do.
func itemPath(number int) string { return fmt.Sprintf("items[%d]", number-1) }

// Add reads the next item, which is the next of the answer.
func (x *Items) Add(i Item) {
	r := x.r
	r.row++
	l := lineReading{reading: r, row: r.row, path: itemPath(r.row), skip: map[Column]bool{}}
	clear(r.have)
	for column, text := range map[Column]string{
		ColumnRef: i.Ref, ColumnName: i.Name, ColumnCurrency: i.Currency, ColumnMode: i.Mode, ColumnPhone: i.Phone, ColumnIBAN: i.IBAN, ColumnNumber: i.Number,
		ColumnBIC: i.BIC, ColumnPurpose: i.Purpose, ColumnAmount: strconv.FormatInt(i.Amount, 10),
	} {
		if text != "" {
			r.have[column] = cell{text: text}
		}
	}
	for _, w := range i.Wrong {
		l.breaks(w)
	}
	l.read(func() { l.add(i.Amount) })
	l.keep()
}

// File returns what was read: the lines, or all faults.
func (x *Items) File() *File { return x.r.done(Fault{Kind: FaultNoLines, Path: "items"}) }

// ofPayee are the columns of which a fault of the beneficiary says enough.
var ofPayee = []Column{ColumnPhone, ColumnIBAN, ColumnNumber, ColumnBIC}

// breaks notes a member that breaks the contract, and that nothing more is to be said of its columns.
func (l *lineReading) breaks(w Wrong) {
	member := strings.TrimPrefix(w.Path, l.path)
	if member == members[ColumnRef] && w.Rule == "duplicate" {
		return // reference says which item has it
	}
	columns, header := l.about(member)
	for _, c := range columns {
		l.skip[c] = true
		delete(l.have, c)
	}
	f := Fault{Kind: l.kindOf(member, w.Rule), Row: l.row, Path: w.Path, Header: header}
	if f.Kind == FaultCurrency {
		f.Want = l.Currency
	}
	l.fault(f)
}

// about returns the columns whose values a faulty member makes meaningless, and the one that it is; empty if it is none.
func (l *lineReading) about(member string) (columns []Column, header Column) {
	for c, path := range members {
		if path == member {
			header = c
		}
	}
	switch {
	case member == "":
		return Columns, ""
	case member == ".beneficiary":
		return append(slices.Clone(ofPayee), ColumnName), header
	case strings.HasPrefix(member, ".beneficiary.") && header != ColumnName:
		return ofPayee, header
	case header != "":
		return []Column{header}, header
	}
	return nil, "" // metadata, which is not kept
}

// kindOf returns the kind of a member that breaks a rule.
func (l *lineReading) kindOf(member, rule string) FaultKind {
	payee := member == members[ColumnPhone] || member == members[ColumnIBAN]
	switch rule {
	case "required":
		if payee {
			return FaultItemPayee
		}
		return FaultMissing
	case "enum":
		return FaultCurrency
	case "range":
		return FaultItemRange
	case "length":
		return FaultItemLength
	case "format":
		return FaultItemText
	}
	return FaultItemType
}
