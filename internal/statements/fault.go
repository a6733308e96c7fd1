package statements

import "fmt"

// MaxFaults bounds the faults that a File holds.
const MaxFaults = 1000

// FaultKind classifies faults.
type FaultKind string

// Kinds of faults. All but FaultDuplicateLine and FaultNumber refuse the file.
const (
	FaultSyntax        FaultKind = "syntax"         // not XML, not delimited text, too deep, too large
	FaultDoctype       FaultKind = "doctype"        // a document type declaration
	FaultNamespace     FaultKind = "namespace"      // another message or version
	FaultEncoding      FaultKind = "encoding"       // an encoding that is not supported
	FaultAccount       FaultKind = "account"        // another account
	FaultCurrency      FaultKind = "currency"       // another currency
	FaultColumns       FaultKind = "columns"        // columns are missing or moved
	FaultField         FaultKind = "field"          // a field is missing or malformed
	FaultAmount        FaultKind = "amount"         // an amount is malformed or too large
	FaultReference     FaultKind = "reference"      // a payment_ref whose check fails
	FaultBalance       FaultKind = "balance"        // opening and lines are not closing
	FaultSummary       FaultKind = "summary"        // counts or sums of the file do not hold
	FaultDuplicateLine FaultKind = "duplicate_line" // an id twice in the file
	FaultEmpty         FaultKind = "empty"          // no statement
	FaultSequence      FaultKind = "sequence"       // pages are missing, and the balances do not continue
	FaultNumber        FaultKind = "number"         // a number or a page does not follow, but the balances continue
	FaultOverlap       FaultKind = "overlap"        // days that an accepted statement covers
	FaultDays          FaultKind = "days"           // days that are far from the account's last ones
	FaultChanged       FaultKind = "changed"        // an accepted statement with other content
	FaultDismissed     FaultKind = "dismissed"      // a person dismissed the file
	FaultWithdrawn     FaultKind = "withdrawn"      // two people have withdrawn the statement
)

// FaultKinds lists all kinds.
var FaultKinds = []FaultKind{
	FaultSyntax, FaultDoctype, FaultNamespace, FaultEncoding, FaultAccount, FaultCurrency, FaultColumns, FaultField, FaultAmount,
	FaultReference, FaultBalance, FaultSummary, FaultDuplicateLine, FaultEmpty, FaultSequence, FaultNumber, FaultOverlap, FaultDays, FaultChanged, FaultDismissed, FaultWithdrawn,
}

// Refuses reports whether the fault refuses the file. A repeated line does not: it is
// imported under a number of its own and becomes a break. Nor does a number: the balances decide.
func (k FaultKind) Refuses() bool { return k != FaultDuplicateLine && k != FaultNumber }

// Fault is one thing that is wrong with a file. It quotes nothing that could name a person.
type Fault struct {
	Kind FaultKind `json:"kind"`
	Position
	// Field is the element or the column.
	Field string `json:"field,omitempty"`
	// Detail says what is wrong, Mend what to do. Both are sentences.
	Detail string `json:"detail"`
	Mend   string `json:"mend"`
}

// String returns the fault on one line.
func (f Fault) String() string {
	where := fmt.Sprintf("line %d, column %d", f.Line, f.Column)
	if f.Field != "" {
		where += ", " + f.Field
	}
	return fmt.Sprintf("%s: %s %s", where, f.Detail, f.Mend)
}

// add notes a fault. Repeated lines take at most half of the list, so that other faults have
// room.
func (f *File) add(fault Fault) {
	if fault.Kind.Refuses() {
		f.refusals++
		if len(f.Faults) == MaxFaults {
			f.More++
			return
		}
	} else if len(f.Faults) >= MaxFaults/2 {
		return // the line has its number all the same
	}
	f.Faults = append(f.Faults, fault)
}
