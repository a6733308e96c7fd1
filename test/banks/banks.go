// Package banks writes statements as banks and operators do, and knows what they say. It reads nothing and knows no
// reader: what it writes is what others write, in their many habits, and the truth is kept beside it.
//
// A Bank has one habit for each thing in which banks differ: how it numbers statements and entries, what its ids are
// made of and when they repeat, how it writes the end of a period, amounts and dates, whether it splits texts, sends
// several statements in a document, or the statements of other accounts with them. An Operator is the same for
// delimited text.
package banks

import (
	"fmt"
	"strings"
	"time"

	"pgregory.net/rapid"
)

// IBAN is the account's, and OtherIBAN another one's of the same customer.
const (
	IBAN      = "CG3930011000101013451300019"
	OtherIBAN = "CG1230011000101013451320002"
)

// Zone is where the banks are.
var Zone = time.FixedZone("WAT", 60*60)

// Line is a movement that a statement has.
type Line struct {
	Day    time.Time // midnight in Zone
	Amount int64     // francs; negative for money that leaves the account
	// Batch is the settlement batch that the text names; empty for none.
	Batch string
}

// Statement is a statement of the account.
type Statement struct {
	From, To         time.Time // days, inclusive
	Opening, Closing int64
	Lines            []Line

	id, sequence string
	entries      []string // ids of the lines; nil for none
}

// File is a document with statements that continue each other.
type File struct {
	Text       string
	Statements []Statement
}

// Lines are those of all statements of files.
func Lines(files ...File) (all []Line) {
	for _, f := range files {
		for _, s := range f.Statements {
			all = append(all, s.Lines...)
		}
	}
	return all
}

// Sum is what lines add to the balance.
func Sum(lines []Line) (sum int64) {
	for _, l := range lines {
		sum += l.Amount
	}
	return sum
}

// Bank is a bank with its habits. Each is the number of one of them.
type Bank struct {
	ID, Number, Entries, End, Amount, Booked, Perday, Length int
	// Version is that of camt.053, 2 or 8. Others says that statements of another account come in the same document.
	Version int
	Others  bool
	// PerFile is how many statements a document has.
	PerFile int
	// Split is where the bank cuts texts; 0 for nowhere.
	Split int
	// Newest says that the entries of a statement begin with the newest.
	Newest bool
	// Apart says that each statement is a document of its own, one after the other in the file.
	Apart bool

	number, entry, batch int
	lastDay              string
	lastYear             int
}

// Draw draws a bank.
func Draw(t *rapid.T) *Bank {
	one := func(name string, n int) int { return rapid.IntRange(0, n-1).Draw(t, name) }
	return &Bank{
		ID: one("id", 8), Number: one("number", 9), Entries: one("entries", 6), End: one("end", 8), Amount: one("amount", 3), Booked: one("booked", 3), Perday: 1 + one("a day", 2),
		Length: []int{1, 1, 3, 7}[one("days", 4)], Version: 2 + 6*one("version", 2), Others: one("others", 3) == 0, PerFile: 1 + one("in a file", 3), Split: one("split", 14),
		Newest: one("newest", 2) == 1, Apart: one("apart", 3) == 0,
	}
}

// Statements draws documents of a bank from a day on. Each statement of the account moves the balance up, unless it is empty: a
// statement that moves none is one that nobody can tell from a copy under another id.
func (b *Bank) Statements(t *rapid.T, from time.Time, opening int64, files int) (all []File) {
	day := from
	for range files {
		var f File
		for range b.PerFile {
			for range b.Perday {
				s := b.statement(t, day, opening)
				opening = s.Closing
				f.Statements = append(f.Statements, s)
			}
			day = day.AddDate(0, 0, b.Length+rapid.IntRange(0, 2).Draw(t, "pause"))
		}
		f.Text = b.Write(f.Statements...)
		all = append(all, f)
	}
	return all
}

func (b *Bank) statement(t *rapid.T, day time.Time, opening int64) Statement {
	s := Statement{From: day, To: day.AddDate(0, 0, b.Length-1), Opening: opening, Closing: opening}
	if b.Perday > 1 {
		s.To = day
	}
	b.name(&s)
	n := rapid.IntRange(0, 5).Draw(t, "lines")
	for i := range n {
		l := Line{Day: day.AddDate(0, 0, rapid.IntRange(0, int(s.To.Sub(s.From).Hours()/24)).Draw(t, "on")), Amount: rapid.SampledFrom([]int64{5000, 5000, 10_000, 700, 1, 1_250_000, -300}).Draw(t, "amount")}
		if i == 0 {
			l.Amount = rapid.SampledFrom([]int64{5000, 12_500, 1_000_000}).Draw(t, "first amount")
		}
		if rapid.Bool().Draw(t, "a batch") && l.Amount > 1 {
			b.batch++
			l.Batch = fmt.Sprintf("MTN-%08d", b.batch)
		}
		s.Lines = append(s.Lines, l)
		s.Closing += l.Amount
	}
	b.numbers(&s)
	return s
}

// name gives the statement its id and its number.
func (b *Bank) name(s *Statement) {
	b.number++
	if s.To.Year() != b.lastYear {
		b.lastYear = s.To.Year()
		if b.Number == 1 {
			b.number = 1
		}
	}
	s.id = []string{
		fmt.Sprintf("REL-%s-%04d", s.To.Format("2006"), b.number), s.To.Format("02012006") + "-1", s.To.Format("0201"), "RELEVE", s.To.Format("2006/01"), fmt.Sprintf("REL %d/%s", b.number, s.To.Format("2006")),
		"Extrait de compte", s.To.Format("060102"),
	}[b.ID]
	s.sequence = []string{
		"", fmt.Sprint(b.number), fmt.Sprintf("%s%07d", s.To.Format("06"), b.number), fmt.Sprint(s.To.YearDay()), "0", "7", s.To.Format("2006/01"), fmt.Sprint(1000 - b.number), fmt.Sprint(b.number),
	}[b.Number]
}

// numbers gives the entries their ids.
func (b *Bank) numbers(s *Statement) {
	if b.Entries == 0 {
		return
	}
	if day := s.To.Format("060102"); day != b.lastDay && b.Entries == 2 || b.Entries == 1 {
		b.lastDay, b.entry = day, 0
	}
	for _, l := range s.Lines {
		b.entry++
		s.entries = append(s.entries, []string{
			"", fmt.Sprintf("%06d", b.entry), fmt.Sprintf("%06d", b.entry), fmt.Sprintf("OP%09d", b.entry), fmt.Sprintf("AM-%s-%d", l.Day.Format("02012006"), b.entry), fmt.Sprintf("%s %d", l.Day.Format("0201"), b.entry),
		}[b.Entries])
	}
}

// Copy is a statement again under another id and number, as a bank writes it that lost count.
func (b *Bank) Copy(s Statement) File {
	s.id += "X"
	if s.sequence != "" {
		s.sequence = "0"
	}
	return File{Text: b.Write(s), Statements: []Statement{s}}
}

// Write writes a file with statements.
func (b *Bank) Write(statements ...Statement) string {
	var out strings.Builder
	for i, s := range statements {
		if i == 0 || b.Apart {
			fmt.Fprintf(&out, `<?xml version="1.0" encoding="UTF-8"?>`+"\n"+`<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.%02d"><BkToCstmrStmt><GrpHdr><MsgId>M%d</MsgId></GrpHdr>`, b.Version, b.number)
		}
		if b.Others {
			other := Statement{From: s.From, To: s.To, Opening: 7, Closing: 12, Lines: []Line{{Day: s.From, Amount: 5}}, id: s.id, sequence: s.sequence}
			b.write(&out, OtherIBAN, other)
		}
		b.write(&out, IBAN, s)
		if i == len(statements)-1 || b.Apart {
			out.WriteString("</BkToCstmrStmt></Document>\n")
		}
	}
	return out.String()
}

func (b *Bank) write(out *strings.Builder, iban string, s Statement) {
	out.WriteString("<Stmt><Id>" + s.id + "</Id>")
	if s.sequence != "" {
		out.WriteString("<ElctrncSeqNb>" + s.sequence + "</ElctrncSeqNb>")
	}
	out.WriteString(b.period(s) + "<Acct><Id><IBAN>" + iban + "</IBAN></Id><Ccy>XAF</Ccy></Acct>")
	out.WriteString(b.balance("OPBD", s.Opening, s.From) + b.balance("CLBD", s.Closing, s.To))
	for i := range s.Lines {
		if b.Newest {
			i = len(s.Lines) - 1 - i
		}
		id := ""
		if s.entries != nil {
			id = s.entries[i]
		}
		out.WriteString(b.line(s.Lines[i], id))
	}
	out.WriteString("</Stmt>")
}

// period writes the period: without one, by days, and with every kind of end.
func (b *Bank) period(s Statement) string {
	from, next := s.From, s.To.AddDate(0, 0, 1)
	stamp := func(at time.Time) string { return at.Format("2006-01-02T15:04:05") }
	end := []string{
		"", stamp(next), stamp(next.Add(-time.Second)), s.To.Format("2006-01-02") + "T23:59:59Z", s.To.Format("2006-01-02") + "T24:00:00", next.Format(time.RFC3339), next.UTC().Format(time.RFC3339),
		next.Format("2006-01-02") + "T00:00:00Z",
	}[b.End]
	begin := stamp(from)
	switch b.End {
	case 0:
		return ""
	case 3, 7: // whole days of UTC
		begin = from.Format("2006-01-02") + "T00:00:00Z"
	case 5, 6:
		begin = from.Format(time.RFC3339)
	}
	return "<FrToDt><FrDtTm>" + begin + "</FrDtTm><ToDtTm>" + end + "</ToDtTm></FrToDt>"
}

func (b *Bank) balance(code string, amount int64, day time.Time) string {
	return "<Bal><Tp><CdOrPrtry><Cd>" + code + "</Cd></CdOrPrtry></Tp>" + b.amount(amount) + "<Dt><Dt>" + day.Format("2006-01-02") + "</Dt></Dt></Bal>"
}

func (b *Bank) amount(amount int64) string {
	direction := "CRDT"
	if amount < 0 {
		direction, amount = "DBIT", -amount
	}
	return fmt.Sprintf(`<Amt Ccy="XAF">%d%s</Amt><CdtDbtInd>%s</CdtDbtInd>`, amount, []string{"", ".00", ".00000"}[b.Amount], direction)
}

func (b *Bank) line(l Line, id string) string {
	status, booked := "<Sts>BOOK</Sts>", "<Dt>"+l.Day.Format("2006-01-02")+"</Dt>"
	if b.Version == 8 {
		status = "<Sts><Cd>BOOK</Cd></Sts>"
	}
	switch b.Booked {
	case 1:
		booked = "<DtTm>" + l.Day.Add(10*time.Hour).Format("2006-01-02T15:04:05") + "</DtTm>"
	case 2: // ten minutes past the bank's midnight, which is the day before in UTC
		booked = "<DtTm>" + l.Day.Add(10*time.Minute).UTC().Format(time.RFC3339) + "</DtTm>"
	}
	out := "<Ntry>" + b.amount(l.Amount) + status + "<BookgDt>" + booked + "</BookgDt>"
	if id != "" {
		out += "<AcctSvcrRef>" + id + "</AcctSvcrRef>"
	}
	if l.Batch != "" {
		text := "VIREMENT MOBILE MONEY " + l.Batch + " DU JOUR"
		parts := []string{text}
		if b.Split > 0 {
			cut := strings.Index(text, l.Batch) + b.Split - 1
			parts = []string{text[:cut], text[cut:]}
		}
		out += "<NtryDtls><TxDtls><RmtInf><Ustrd>" + strings.Join(parts, "</Ustrd><Ustrd>") + "</Ustrd></RmtInf></TxDtls></NtryDtls>"
	}
	return out + "</Ntry>"
}
