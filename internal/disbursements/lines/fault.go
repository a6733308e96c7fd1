package lines

import (
	"cmp"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"quittance/money"
)

// MaxFaults bounds the faults that a File holds. File.Count counts all.
const MaxFaults = 1000

// Fault is one thing that is wrong with a file.
type Fault struct {
	Kind FaultKind
	// Row counts from 1, as a spreadsheet shows it; 0 for a fault of the whole file. Of Items it is the number of the item, from 1.
	Row int
	// Path is the place in an ERP's answer, such as items[17].amount_minor; empty for a fault of a file.
	Path string
	// Column is the letter of the column, as a spreadsheet shows it, also of CSV; empty for a fault of the whole row.
	Column string
	// Header is the column; empty if it is none of ours.
	Header Column
	// Cell is what the cell holds, or the name of a sheet, at most 80 characters. It is personal data: only the person
	// who prepares the batch may see it.
	Cell string
	// Want is what the words of the fault need: another row, a code, a limit. It never has a text of the file.
	Want string
}

// String returns place and kind of the fault, for logs and errors. It has no text of the file.
func (f Fault) String() string {
	switch {
	case f.Path != "":
		return f.Path + ": " + string(f.Kind)
	case f.Row == 0:
		return string(f.Kind)
	}
	place := "row " + strconv.Itoa(f.Row)
	if f.Column != "" {
		place += ", column " + f.Column
	}
	if f.Header != "" {
		place += " (" + string(f.Header) + ")"
	}
	return place + ": " + string(f.Kind)
}

// GoString returns what String does, so that no form of package fmt prints the cell.
func (f Fault) GoString() string { return f.String() }

// Format writes what String returns, whatever the verb is: %+v would print the cell.
func (f Fault) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(f.String())) }

// LogValue returns what String does.
func (f Fault) LogValue() slog.Value { return slog.StringValue(f.String()) }

// Detail returns a sentence that says what is wrong, without the cell.
func (f Fault) Detail(lang money.Language) string { return f.words(f.text(lang).Detail) }

// Mend returns a sentence that says what to do.
func (f Fault) Mend(lang money.Language) string { return f.words(f.text(lang).Mend) }

// text returns the words of the fault. What spreadsheets do is no explanation of an ERP's item, which has words of its own.
func (f Fault) text(lang money.Language) faultText {
	if w, ok := itemWords.In(lang)[f.Kind]; ok && f.Path != "" {
		return w
	}
	return faultWords.In(lang)[f.Kind]
}

// Text returns place, cell, Detail and Mend, for the person who prepares the batch. It quotes the cell.
func (f Fault) Text(lang money.Language) string {
	w, parts := placeWords.In(lang), []string(nil)
	switch {
	case f.Path != "":
		parts = append(parts, f.Path)
	case f.Row > 0:
		parts = append(parts, fmt.Sprintf(w.Row, strconv.Itoa(f.Row)))
	}
	if f.Column != "" {
		parts = append(parts, fmt.Sprintf(w.Column, f.Column))
	}
	if f.Header != "" && f.Path == "" {
		parts = append(parts, fmt.Sprintf(w.Header, headers[f.Header][lang]))
	}
	if f.Cell != "" {
		parts = append(parts, fmt.Sprintf(w.Cell, f.Cell))
	}
	text := f.Detail(lang) + " " + f.Mend(lang)
	if len(parts) == 0 {
		return text
	}
	return strings.Join(parts, ", ") + w.Colon + text
}

func (f Fault) words(text string) string {
	if strings.Contains(text, "%s") {
		return fmt.Sprintf(text, f.Want)
	}
	return text
}

// order puts faults in the order of the file.
func (f Fault) order(other Fault) int {
	return cmp.Or(cmp.Compare(f.Row, other.Row), cmp.Compare(len(f.Column), len(other.Column)), cmp.Compare(f.Column, other.Column))
}

// quoted returns a cell as Fault.Cell has it: short, and with a sign in place of characters that nobody sees.
func quoted(text string) string {
	const most = 80
	var b strings.Builder
	n := 0
	for _, r := range text {
		if n++; n > most {
			b.WriteRune('…')
			break
		}
		if invisible(r) {
			r = '\ufffd'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// letters returns the name of a column by its number from 0: A, Z, AA.
func letters(column int) string {
	text := ""
	for column++; column > 0; column = (column - 1) / 26 {
		text = string(rune('A'+(column-1)%26)) + text
	}
	return text
}
