package chain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Version numbers the canonical form (Row.Canonical). A close and every proof have it.
const Version = 1

// Row is a due of a payment, or of money given back, with the ids of all its hops. A hop that
// a period did not have when it was closed is empty.
type Row struct {
	// Entry is the id of the expected money: one collection, or one sum that was given back.
	Entry string `json:"entry_id"`
	// Item numbers the due in its session, from 1. 0 is an entry beside a payment, such as an orphan.
	Item int `json:"item"`
	// Due is the ERP's reference of the due, if it has one.
	Due string `json:"due,omitempty"`
	// Session is empty for the report of no known session.
	Session     string `json:"session_id,omitempty"`
	OperatorRef string `json:"operator_ref,omitempty"`
	// Transaction is that of the due.
	Transaction string `json:"transaction_id,omitempty"`
	// Confirmation is the id of the event that says that the agency's ERP has the transaction: that
	// it accepted the confirmation, or that two people looked.
	Confirmation string `json:"confirmation_id,omitempty"`
	// Amount is that of the due and Gross that of the whole entry with its fee, which the
	// operator's line shows. Minor units of Currency; negative for money given back.
	Amount   int64  `json:"amount"`
	Gross    int64  `json:"gross"`
	Currency string `json:"currency"`
	// OperatorLine and BankLine are lines of statements, as findings name their rows: the day, the id
	// with its account, and the hash of the content (journal.LineRow). Several, which only people can
	// match, are separated by spaces.
	OperatorLine string `json:"operator_line,omitempty"`
	BankLine     string `json:"bank_line,omitempty"`
}

// Entry is expected money with the dues that it pays, from which its rows are made.
type Entry struct {
	ID, Session, OperatorRef, Currency string
	// Gross is with the fee, in minor units.
	Gross int64
	// DueRefs, Transactions and Amounts are those of the dues, in the order of the session. They are
	// empty for money beside a payment.
	DueRefs, Transactions []string
	Amounts               []int64
}

// Rows returns the rows of the entry: one for each due, or a single one for money without dues.
// confirmation returns the event that confirms a transaction, or the empty text.
func (e *Entry) Rows(confirmation func(transaction string) string, operatorLines, bankLines []string) []Row {
	base := Row{
		Entry: e.ID, Session: e.Session, OperatorRef: e.OperatorRef, Amount: e.Gross, Gross: e.Gross, Currency: e.Currency,
		OperatorLine: joined(operatorLines), BankLine: joined(bankLines),
	}
	if len(e.Amounts) == 0 {
		return []Row{base}
	}
	out := make([]Row, len(e.Amounts))
	for i := range out {
		out[i] = base
		out[i].Item, out[i].Due, out[i].Transaction, out[i].Amount = i+1, e.DueRefs[i], e.Transactions[i], e.Amounts[i]
		if e.Transactions[i] != "" {
			out[i].Confirmation = confirmation(e.Transactions[i])
		}
	}
	return out
}

func joined(lines []string) string {
	lines = slices.Clone(lines)
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), " ")
}

// RowError says which field of a row has a wrong value.
type RowError struct{ Entry, Field, Mend string }

func (e *RowError) Error() string {
	return fmt.Sprintf("chain row of %q: %s: %s", e.Entry, e.Field, e.Mend)
}

// Canonical returns the row's canonical form, version 1.
func (r *Row) Canonical() []byte {
	b := make([]byte, 0, 384)
	b = appendNetstring(b, "quittance-chain/"+strconv.Itoa(Version))
	for _, field := range r.fields() {
		b = appendNetstring(b, field.value)
	}
	return b
}

type field struct{ name, value string }

// fields returns the fields in the order of the canonical form.
func (r *Row) fields() [12]field {
	return [12]field{
		{"entry_id", r.Entry},
		{"item", strconv.Itoa(r.Item)},
		{"due", r.Due},
		{"session_id", r.Session},
		{"operator_ref", r.OperatorRef},
		{"transaction_id", r.Transaction},
		{"confirmation_id", r.Confirmation},
		{"amount", strconv.FormatInt(r.Amount, 10)},
		{"gross", strconv.FormatInt(r.Gross, 10)},
		{"currency", r.Currency},
		{"operator_line", r.OperatorLine},
		{"bank_line", r.BankLine},
	}
}

// check returns a *RowError if the row cannot be proved: it names no money, or has bytes that
// other implementations read in different ways.
func (r *Row) check() error {
	switch {
	case r.Entry == "":
		return &RowError{Field: "entry_id", Mend: "give the id of the expected money"}
	case r.Item < 0:
		return &RowError{Entry: r.Entry, Field: "item", Mend: "number dues from 1, or give 0 for an entry without dues"}
	case r.Currency == "":
		return &RowError{Entry: r.Entry, Field: "currency", Mend: "give an ISO 4217 code"}
	}
	for _, f := range r.fields() {
		if !utf8.ValidString(f.value) {
			return &RowError{Entry: r.Entry, Field: f.name, Mend: "give UTF-8"}
		}
	}
	return nil
}

func appendNetstring(b []byte, text string) []byte {
	b = strconv.AppendInt(b, int64(len(text)), 10)
	b = append(append(b, ':'), text...)
	return append(b, ',')
}
