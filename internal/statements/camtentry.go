package statements

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
	"time"

	"quittance/statement"
)

// The structs below hold the few elements of a message that are read. Versions 02 and 08
// differ in Sts, Chrgs and TxDtls; each struct has both forms.

type groupHeader struct {
	Page camtPage `xml:"MsgPgntn"`
}

type camtPage struct {
	Number string `xml:"PgNb"`
	Last   string `xml:"LastPgInd"`
}

func (p camtPage) number() (page int, last bool) {
	page, err := strconv.Atoi(p.Number)
	if err != nil || page < 1 {
		return 1, true
	}
	return page, p.Last == "true" || p.Last == "1"
}

type stmtHead struct {
	ID            string
	Page          camtPage
	Sequence      string
	LegalSequence string
	Period        struct {
		From string `xml:"FrDtTm"`
		To   string `xml:"ToDtTm"`
	}
	Copy     string
	Account  camtAccount
	Balances []camtBalance
	Summary  camtSummary
}

// field returns where an element below Stmt is decoded to; nil for one that is not read.
func (h *stmtHead) field(name string) any {
	switch name {
	case "Id":
		return &h.ID
	case "StmtPgntn":
		return &h.Page
	case "ElctrncSeqNb":
		return &h.Sequence
	case "LglSeqNb":
		return &h.LegalSequence
	case "FrToDt":
		return &h.Period
	case "CpyDplctInd":
		return &h.Copy
	case "Acct":
		return &h.Account
	case "Bal":
		if len(h.Balances) == 100 { // a file has a few; more are not read
			return nil
		}
		h.Balances = append(h.Balances, camtBalance{})
		return &h.Balances[len(h.Balances)-1]
	case "TxsSummry":
		return &h.Summary
	}
	return nil
}

type camtAccount struct {
	IBAN     string `xml:"Id>IBAN"`
	Other    string `xml:"Id>Othr>Id"`
	Currency string `xml:"Ccy"`
}

func (a camtAccount) number() string { return a.IBAN + a.Other } // a choice

type camtAmount struct {
	Text     string `xml:",chardata"`
	Currency string `xml:"Ccy,attr"`
}

type camtBalance struct {
	Code      string     `xml:"Tp>CdOrPrtry>Cd"`
	Amount    camtAmount `xml:"Amt"`
	Direction string     `xml:"CdtDbtInd"`
	Date      camtDate   `xml:"Dt"`
}

type camtTotal struct {
	Count string `xml:"NbOfNtries"`
	Sum   string `xml:"Sum"`
}

type camtSummary struct {
	All struct {
		camtTotal
		Net02 string `xml:"TtlNetNtryAmt"` // version 02
		Dir02 string `xml:"CdtDbtInd"`
		Net08 string `xml:"TtlNetNtry>Amt"` // version 08
		Dir08 string `xml:"TtlNetNtry>CdtDbtInd"`
	} `xml:"TtlNtries"`
	Credits camtTotal `xml:"TtlCdtNtries"`
	Debits  camtTotal `xml:"TtlDbtNtries"`
}

// totals counts entries.
type totals struct{ credits, debits, creditSum, debitSum int64 }

func (t *totals) add(amount int64) {
	if amount >= 0 {
		t.credits++
		t.creditSum += amount
		return
	}
	t.debits++
	t.debitSum -= amount
}

// check compares the summary with the booked entries. Some banks sum all entries, so the
// totals of all statuses are good as well.
func (c *camtSummary) check(r *reading, s *Statement, booked, all *totals) {
	type row struct {
		field, text string
		count       bool
		of          func(*totals) int64
	}
	net, direction := c.All.Net02+c.All.Net08, c.All.Dir02+c.All.Dir08
	if direction == "DBIT" && net != "" {
		net = "-" + net
	}
	rows := []row{
		{"TtlNtries/NbOfNtries", c.All.Count, true, func(t *totals) int64 { return t.credits + t.debits }},
		{"TtlNtries/Sum", c.All.Sum, false, func(t *totals) int64 { return t.creditSum + t.debitSum }},
		{"TtlNtries/TtlNetNtry", net, false, func(t *totals) int64 { return t.creditSum - t.debitSum }},
		{"TtlCdtNtries/NbOfNtries", c.Credits.Count, true, func(t *totals) int64 { return t.credits }},
		{"TtlCdtNtries/Sum", c.Credits.Sum, false, func(t *totals) int64 { return t.creditSum }},
		{"TtlDbtNtries/NbOfNtries", c.Debits.Count, true, func(t *totals) int64 { return t.debits }},
		{"TtlDbtNtries/Sum", c.Debits.Sum, false, func(t *totals) int64 { return t.debitSum }},
	}
	for _, row := range rows {
		if row.text == "" {
			continue
		}
		var value int64
		var why string
		if row.count {
			n, err := strconv.ParseInt(strings.TrimSpace(row.text), 10, 64)
			if value = n; err != nil {
				why = "The count is not a whole number."
			}
		} else {
			value, why = parseAmount(strings.TrimSpace(row.text), r.currency)
		}
		if why == "" && value != row.of(booked) && value != row.of(all) {
			why = fmt.Sprintf("The summary says %d, the entries give %d.", value, row.of(booked))
		}
		if why != "" {
			r.fault(FaultSummary, s.Source, "TxsSummry/"+row.field, why, "Ask the bank for the complete statement.")
		}
	}
}

type camtDate struct {
	Day  string `xml:"Dt"`
	Time string `xml:"DtTm"`
}

type camtCharge struct {
	Amount    camtAmount `xml:"Amt"`
	Direction string     `xml:"CdtDbtInd"`
	Included  string     `xml:"ChrgInclInd"`
}

// camtCharges has one charge itself in version 02, and records in version 08.
type camtCharges struct {
	camtCharge
	Records []camtCharge `xml:"Rcrd"`
}

type camtRefs struct {
	ServicerRef string `xml:"AcctSvcrRef"`
	PaymentInfo string `xml:"PmtInfId"`
	Instruction string `xml:"InstrId"`
	EndToEnd    string `xml:"EndToEndId"`
	Transaction string `xml:"TxId"`
}

type camtRemittance struct {
	Free       []string `xml:"Ustrd"`
	Structured []string `xml:"Strd>CdtrRefInf>Ref"`
}

type camtDetail struct {
	Refs       camtRefs       `xml:"Refs"`
	Amount     *camtAmount    `xml:"Amt"` // version 08
	Direction  string         `xml:"CdtDbtInd"`
	TxAmount   *camtAmount    `xml:"AmtDtls>TxAmt>Amt"` // version 02
	Charges    []camtCharges  `xml:"Chrgs"`
	Remittance camtRemittance `xml:"RmtInf"`
	Info       string         `xml:"AddtlTxInf"`
}

type camtEntry struct {
	Ref       string     `xml:"NtryRef"`
	Amount    camtAmount `xml:"Amt"`
	Direction string     `xml:"CdtDbtInd"`
	Reversal  string     `xml:"RvslInd"`
	Status    struct {
		Code02 string `xml:",chardata"`
		Code08 string `xml:"Cd"`
		Own    string `xml:"Prtry"`
	} `xml:"Sts"`
	Booked      camtDate      `xml:"BookgDt"`
	Value       camtDate      `xml:"ValDt"`
	ServicerRef string        `xml:"AcctSvcrRef"`
	Charges     []camtCharges `xml:"Chrgs"`
	Batches     []struct {
		Batch struct {
			PaymentInfo string `xml:"PmtInfId"`
			Count       string `xml:"NbOfTxs"`
		} `xml:"Btch"`
		Details []camtDetail `xml:"TxDtls"`
	} `xml:"NtryDtls"`
	Info string `xml:"AddtlNtryInf"`
}

func (e *camtEntry) details() (all []*camtDetail) {
	for i := range e.Batches {
		for j := range e.Batches[i].Details {
			all = append(all, &e.Batches[i].Details[j])
		}
	}
	return all
}

// entry reads one Ntry.
func (c *camtReader) entry(start xml.StartElement) error {
	at := c.tokens.at
	var e camtEntry
	if err := c.decode(&e, start); err != nil {
		return err
	}
	if !c.mine {
		return nil
	}
	amount := c.amount(e.Amount, e.Direction, at, "Ntry/Amt")
	c.statuses.add(amount)
	status := strings.TrimSpace(e.Status.Code02) + e.Status.Code08
	if status != "BOOK" {
		if status == "" || token(status+"0") == "" || len(status) > 8 {
			status = "other"
		}
		c.file.Skipped[status]++
		if status != "INFO" { // it never becomes money
			var l Line
			_ = c.day(&l, e.Booked) || c.day(&l, e.Value) // without one the day is unknown
			c.s.undecided(l.Day)
		}
		return nil
	}
	c.entries.add(amount)
	if amount == 0 {
		c.file.Skipped["zero"]++
		return nil
	}
	l := Line{
		Source: at, Kind: statement.KindEntry, Currency: c.currency.Code(), Amount: amount,
		Reversal: e.Reversal == "true" || e.Reversal == "1",
	}
	if !c.day(&l, e.Booked) && !c.day(&l, e.Value) {
		c.fault(FaultField, at, "Ntry/BookgDt", "The entry has no valid booking or value date.", "Ask the bank for a valid file.")
		return nil
	}
	return c.lines(&e, l)
}

// day sets the time and the local day of a line.
func (c *camtReader) day(l *Line, date camtDate) bool {
	if date.Time != "" {
		at, err := c.time(date.Time)
		if err != nil {
			return false
		}
		l.At, l.Day = at.UTC(), at.In(c.account.zone()).Format(time.DateOnly)
		return true
	}
	if len(date.Day) < len(time.DateOnly) {
		return false
	}
	// A date may have an offset behind it. It is the bank's day all the same.
	_, err := time.Parse(time.DateOnly, date.Day[:len(time.DateOnly)])
	l.Day = date.Day[:len(time.DateOnly)]
	return err == nil
}

// lines makes one line of an entry, or a line for each detail if the details are exactly the
// entry.
func (c *camtReader) lines(e *camtEntry, l Line) error {
	id := token(e.ServicerRef)
	l.entry = token(e.Ref)
	if id != "" {
		l.Scope = c.scope()
		id = l.Scope + id
	}
	details := e.details()
	amounts, fees, rest, ok := c.split(e, details, l.Amount)
	if len(details) < 2 || !ok {
		var f found
		c.collect(&f, e, details, ok || len(details) < 2)
		f.into(&l)
		if len(details) == 1 && ok {
			l.OperatorRef, l.Amount, l.Fee = operatorRef(&details[0].Refs), amounts[0], fees[0]-rest
		} else if len(details) > 0 && !ok {
			l.DetailsUnused = len(details)
		}
		return c.line(c.s, &l, id)
	}
	if id == "" {
		c.s.Positional = true
		id = c.s.ID + "/" + strconv.Itoa(c.s.Page) + "/" + strconv.Itoa(c.s.Lines+1)
	}
	for i, d := range details {
		one := l
		var f found
		f.batch = batchID(e.Batches[0].Batch.PaymentInfo)
		c.detail(&f, d)
		f.into(&one)
		one.OperatorRef, one.Amount, one.Fee = operatorRef(&d.Refs), amounts[i], fees[i]
		if err := c.line(c.s, &one, id+"#"+strconv.Itoa(i+1)); err != nil {
			return err
		}
	}
	if rest == 0 {
		return nil
	}
	l.Kind, l.Amount = statement.KindCharge, rest
	return c.line(c.s, &l, id+"#charges")
}

// scope is what stands before the bank's id of an entry in the ids of its lines. Banks number the entries of
// each statement, or of each page, anew. No id has the character "|".
func (c *camtReader) scope() string {
	if c.s.Page > 1 {
		return c.s.ID + "|" + strconv.Itoa(c.s.Page) + "|"
	}
	return c.s.ID + "|"
}

// split returns the amount and the fee of each detail, and the charges of the entry, if
// together they are exactly the entry. Charges count as included unless the file says
// otherwise; of charges without a word about it both readings are tried.
func (c *camtReader) split(e *camtEntry, details []*camtDetail, entry int64) (amounts, fees []int64, rest int64, ok bool) {
	if len(details) == 0 {
		return nil, nil, 0, false
	}
	amounts, fees = make([]int64, len(details)), make([]int64, len(details))
	var gross, charged int64
	for i, d := range details {
		amount := d.Amount
		if amount == nil {
			amount = d.TxAmount
		}
		if amount == nil && len(details) == 1 {
			amount = &e.Amount
		}
		direction := d.Direction
		if direction == "" {
			direction = e.Direction
		}
		if amount == nil || amount.Currency != c.currency.Code() {
			return nil, nil, 0, false
		}
		value, why := parseAmount(strings.TrimSpace(amount.Text), c.currency)
		if why != "" || value < 0 {
			return nil, nil, 0, false
		}
		if direction == "DBIT" {
			value = -value
		}
		if amounts[i] = value; value == 0 {
			return nil, nil, 0, false
		}
		fee, valid := c.charges(d.Charges)
		sum, fits := add(gross, value)
		if !valid || !fits {
			return nil, nil, 0, false
		}
		fees[i], gross, charged = fee, sum, charged+fee
	}
	own, valid := c.charges(e.Charges)
	switch {
	case !valid:
		return nil, nil, 0, false
	case gross-charged-own == entry:
		return amounts, fees, -own, true
	case gross-charged == entry: // the entry's charges are booked apart, or repeat those of the details
		return amounts, fees, 0, true
	case gross-own == entry: // the details' charges are the entry's in parts
		return amounts, make([]int64, len(details)), -own, true
	case gross == entry:
		return amounts, make([]int64, len(details)), 0, true
	}
	return nil, nil, 0, false
}

// charges sums up charges: what was deducted, negative if it was given back.
func (c *camtReader) charges(all []camtCharges) (fee int64, ok bool) {
	for _, group := range all {
		records := group.Records
		if group.Amount.Text != "" {
			records = append(records, group.camtCharge)
		}
		for _, charge := range records {
			if charge.Included == "false" || charge.Included == "0" {
				continue
			}
			value, why := parseAmount(strings.TrimSpace(charge.Amount.Text), c.currency)
			if why != "" || charge.Amount.Currency != c.currency.Code() {
				return 0, false
			}
			if charge.Direction == "CRDT" {
				value = -value
			}
			if fee, ok = add(fee, value); !ok && value != 0 {
				return 0, false
			}
		}
	}
	return fee, true
}

// collect takes the references of a whole entry.
func (c *camtReader) collect(f *found, e *camtEntry, details []*camtDetail, use bool) {
	f.text(e.Info, c.account.Batch)
	f.text(e.Ref, c.account.Batch)
	for _, b := range e.Batches {
		if id := batchID(b.Batch.PaymentInfo); id != "" {
			once(&f.batch, &f.batchs, id)
		}
	}
	if !use {
		return
	}
	for _, d := range details {
		c.detail(f, d)
	}
}

// detail takes the references of a detail.
func (c *camtReader) detail(f *found, d *camtDetail) {
	for _, text := range append(append([]string{d.Info, d.Refs.EndToEnd, d.Refs.Instruction, d.Refs.PaymentInfo}, d.Remittance.Free...), d.Remittance.Structured...) {
		f.text(text, c.account.Batch)
	}
	f.joined(d.Remittance.Free, c.account.Batch)
}

// operatorRef is the reference that a bank gave the transfer. The payer writes the end-to-end
// and the instruction id, perhaps with a name, so only references of ours are taken from
// them, and batch ids.
func operatorRef(refs *camtRefs) string {
	if ref := token(refs.Transaction); ref != "" {
		return ref
	}
	return token(refs.ServicerRef)
}
