package bank

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ErrReport says that a file of the bank is no report that can be taken: it is not readable, or it does not fit the file
// that it speaks of. Nothing of it counts. The text has no text of the file but codes, numbers and references.
var ErrReport = errors.New("report of the bank")

// Meaning is what a status of pain.002 means for a line.
type Meaning string

// The meanings.
const (
	// MeaningSent: the bank has the line, and nothing is decided. Codes that are not known mean this, too.
	MeaningSent Meaning = "sent"
	// MeaningPaid: the bank says that it has paid.
	MeaningPaid Meaning = "paid"
	// MeaningRefused: the bank says that it will not pay. It proves nothing before a statement covers the day.
	MeaningRefused Meaning = "refused"
	// MeaningKnown: the bank refuses a request that it has already. The earlier one may be paid: never a refusal.
	MeaningKnown Meaning = "known"
	// MeaningBlocked: the bank holds the line back until people speak with it.
	MeaningBlocked Meaning = "blocked"
)

// known are the reasons by which a bank says that it has the request already: a duplicate amount, or the duplicate id of
// message, payment information, transaction or end to end.
var known = []string{"AM05", "DU01", "DU02", "DU03", "DU04", "DU05"}

// partly is the status of a file or group whose lines have statuses of their own.
const partly = "PART"

// meaning returns what a status with its reasons means.
func meaning(status string, reasons []string) Meaning {
	switch status {
	case "ACSC", "ACCC":
		return MeaningPaid
	case "BLCK":
		return MeaningBlocked
	case "RJCT":
		if slices.ContainsFunc(reasons, func(r string) bool { return slices.Contains(known, r) }) {
			return MeaningKnown
		}
		return MeaningRefused
	}
	return MeaningSent
}

// Verdict is a status of the bank, of a file, a group of it or a line.
type Verdict struct {
	// Status is the bank's code; empty if it says nothing here. Reasons are its codes, without prose.
	Status  string
	Reasons []string
}

// Report is a pain.002.
type Report struct {
	// Version is that of the message, and ID the bank's own number of it.
	Version, ID string
	// File is the MsgId of the file that it speaks of.
	File    string
	verdict Verdict
	counts  counts
	groups  []groupReport
}

// Verdict returns what the bank says of the whole file.
func (r Report) Verdict() Verdict { return r.verdict }

// Answer is what a report says of a line.
type Answer struct {
	Ref     string
	Meaning Meaning
	Verdict Verdict
}

// counts are the numbers of a level.
type counts struct {
	lines, sum int64 // -1 if the report has none
	by         map[string]int64
}

type groupReport struct {
	id      string
	verdict Verdict
	counts  counts
	lines   []lineReport
}

type lineReport struct {
	ref     string
	amount  int64 // -1 if the report has none
	verdict Verdict
}

// The structs have the elements of pain.002.001.03 to .15 that we read. An element that may occur once is a list all the
// same, so that a second one is seen and not taken in place of the first.

type reportDocument struct {
	XMLName xml.Name        `xml:"Document"`
	Reports []reportMessage `xml:"CstmrPmtStsRpt"`
}

type reportMessage struct {
	ID     []string      `xml:"GrpHdr>MsgId"`
	File   []reportFile  `xml:"OrgnlGrpInfAndSts"`
	Groups []reportGroup `xml:"OrgnlPmtInfAndSts"`
}

type reportFile struct {
	ID      []string       `xml:"OrgnlMsgId"`
	Kind    []string       `xml:"OrgnlMsgNmId"`
	Count   []string       `xml:"OrgnlNbOfTxs"`
	Sum     []string       `xml:"OrgnlCtrlSum"`
	Status  []string       `xml:"GrpSts"`
	Reasons []reportReason `xml:"StsRsnInf"`
	By      []reportCount  `xml:"NbOfTxsPerSts"`
}

type reportGroup struct {
	ID      []string       `xml:"OrgnlPmtInfId"`
	Count   []string       `xml:"OrgnlNbOfTxs"`
	Sum     []string       `xml:"OrgnlCtrlSum"`
	Status  []string       `xml:"PmtInfSts"`
	Reasons []reportReason `xml:"StsRsnInf"`
	By      []reportCount  `xml:"NbOfTxsPerSts"`
	Lines   []reportLine   `xml:"TxInfAndSts"`
}

type reportLine struct {
	Instruction []string       `xml:"OrgnlInstrId"`
	EndToEnd    []string       `xml:"OrgnlEndToEndId"`
	Status      []string       `xml:"TxSts"`
	Reasons     []reportReason `xml:"StsRsnInf"`
	Amount      []reportAmount `xml:"OrgnlTxRef>Amt>InstdAmt"`
}

type reportReason struct {
	Code  []string `xml:"Rsn>Cd"`
	Other []string `xml:"Rsn>Prtry"`
}

type reportCount struct {
	Count  []string `xml:"DtldNbOfTxs"`
	Status []string `xml:"DtldSts"`
}

type reportAmount struct {
	Currency string `xml:"Ccy,attr"`
	Value    string `xml:",chardata"`
}

// Bounds of a report.
const (
	maxReport = 64 << 20
	maxDepth  = 40
)

var (
	reportSpace = regexp.MustCompile(`^` + regexp.QuoteMeta(space) + `pain\.002\.001\.(0[3-9]|1[0-5])$`)
	code        = regexp.MustCompile(`^[A-Z0-9]{1,4}$`)
)

// Read reads a pain.002 of version 03 to 15. The error is ErrReport.
func Read(data []byte) (Report, error) {
	version, err := shape(data)
	if err != nil {
		return Report{}, err
	}
	var doc reportDocument
	if err := decoder(data).Decode(&doc); err != nil || len(doc.Reports) != 1 {
		return Report{}, unfit("it is not one readable report")
	}
	m := doc.Reports[0]
	x := &reader{}
	r := Report{Version: version, ID: x.one("GrpHdr/MsgId", m.ID)}
	if len(m.File) != 1 {
		return Report{}, unfit("OrgnlGrpInfAndSts: there must be one")
	}
	f := m.File[0]
	r.File = x.one("OrgnlMsgId", f.ID)
	if kind := x.one("OrgnlMsgNmId", f.Kind); x.err == nil && !strings.HasPrefix(kind, "pain.001") {
		return Report{}, unfit("OrgnlMsgNmId: it is no answer to a pain.001")
	}
	r.verdict = x.verdict("GrpSts", f.Status, f.Reasons)
	r.counts = x.counts(f.Count, f.Sum, f.By)
	for _, g := range m.Groups {
		read := groupReport{id: x.one("OrgnlPmtInfId", g.ID), verdict: x.verdict("PmtInfSts", g.Status, g.Reasons), counts: x.counts(g.Count, g.Sum, g.By)}
		for _, l := range g.Lines {
			read.lines = append(read.lines, x.line(l))
		}
		r.groups = append(r.groups, read)
	}
	if x.err != nil {
		return Report{}, x.err
	}
	return r, nil
}

// shape reads all tokens once and returns the version. It refuses what readers of XML could take differently: a document
// type, another namespace, a second root, deep nesting.
func shape(data []byte) (version string, err error) {
	if len(data) > maxReport {
		return "", unfit("it is larger than 64 MiB")
	}
	d, depth, roots, free := decoder(data), 0, 0, 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", unfit("it is not well-formed XML in UTF-8")
		}
		switch e := token.(type) {
		case xml.Directive:
			return "", unfit("it has a document type")
		case xml.StartElement:
			if depth++; depth == 1 {
				roots++
				version = e.Name.Space
			}
			switch {
			case depth > maxDepth || roots > 1:
				return "", unfit("its elements are nested too deep, or it has two documents")
			case free == 0 && (e.Name.Space != version || !reportSpace.MatchString(version)):
				return "", unfit("it is not a pain.002.001.03 to .15")
			case free == 0 && e.Name.Local == "SplmtryData":
				free = depth // any namespace below
			}
		case xml.EndElement:
			if depth == free {
				free = 0
			}
			depth--
		}
	}
	if roots != 1 {
		return "", unfit("it is empty")
	}
	return strings.TrimPrefix(version, space), nil
}

func decoder(data []byte) *xml.Decoder { return xml.NewDecoder(bytes.NewReader(data)) }

func unfit(why string) error { return fmt.Errorf("%w: %s", ErrReport, why) }

// reader keeps the first error.
type reader struct{ err error }

func (x *reader) fail(why string) {
	if x.err == nil {
		x.err = unfit(why)
	}
}

// one returns the text of an element that must occur once.
func (x *reader) one(field string, texts []string) string {
	if len(texts) != 1 || strings.TrimSpace(texts[0]) == "" {
		x.fail(field + ": there must be one")
		return ""
	}
	return strings.TrimSpace(texts[0])
}

// perhaps returns the text of an element that may be absent.
func (x *reader) perhaps(field string, texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	return x.one(field, texts)
}

func (x *reader) verdict(field string, status []string, reasons []reportReason) (v Verdict) {
	if v.Status = x.perhaps(field, status); v.Status != "" && !code.MatchString(v.Status) {
		x.fail(field + ": it is no code")
	}
	for _, r := range reasons {
		for _, text := range slices.Concat(r.Code, r.Other) {
			// The bank's own reasons may be prose, which is not kept. A code among them counts.
			if text = strings.TrimSpace(text); code.MatchString(text) {
				v.Reasons = append(v.Reasons, text)
			}
		}
	}
	return v
}

func (x *reader) counts(lines, sums []string, by []reportCount) counts {
	c := counts{lines: x.number("OrgnlNbOfTxs", lines), sum: x.number("OrgnlCtrlSum", sums), by: map[string]int64{}}
	for _, b := range by {
		c.by[x.one("DtldSts", b.Status)] += max(0, x.number("DtldNbOfTxs", b.Count))
	}
	return c
}

// number reads a whole number, which banks also write with zeros behind a point; -1 if there is none.
func (x *reader) number(field string, texts []string) int64 {
	text := x.perhaps(field, texts)
	if text == "" {
		return -1
	}
	whole, fraction, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n < 0 || strings.Trim(fraction, "0") != "" {
		x.fail(field + ": it is no whole number")
	}
	return n
}

func (x *reader) line(l reportLine) lineReport {
	ends, instruction := x.perhaps("OrgnlEndToEndId", l.EndToEnd), x.perhaps("OrgnlInstrId", l.Instruction)
	out := lineReport{ref: ends, amount: -1, verdict: x.verdict("TxSts", l.Status, l.Reasons)}
	switch {
	case ends == "":
		out.ref = instruction
	case instruction != "" && instruction != ends:
		x.fail("OrgnlInstrId: it is of another line than OrgnlEndToEndId")
	}
	if out.ref == "" {
		x.fail("OrgnlEndToEndId: there must be one")
	}
	if len(l.Amount) > 0 {
		if out.amount = x.number("InstdAmt", []string{l.Amount[0].Value}); len(l.Amount) > 1 || l.Amount[0].Currency != Currency {
			x.fail("InstdAmt: there must be one, in " + Currency)
		}
	}
	return out
}
