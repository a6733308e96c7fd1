package simulator

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"quittance/money"
)

// statementView is an account in the JSON of GET /control/statements.
type statementView struct {
	Agency  string         `json:"agency"`
	Account string         `json:"account"`
	Profile string         `json:"profile"`
	Number  string         `json:"number"`
	Faults  []plantedFault `json:"faults"`
}

// controlStatements is GET /control/statements.
func (s *Simulator) controlStatements(w http.ResponseWriter, _ *http.Request) {
	views := []statementView{}
	for _, a := range s.statementAccounts() {
		views = append(views, statementView{a.Agency, a.Code, a.Profile, a.IBAN + a.Number, append([]plantedFault{}, s.faults.of(a)...)})
	}
	writeJSON(w, http.StatusOK, views)
}

// statementAccount finds the account of a request, or answers with a refusal.
func (s *Simulator) statementAccount(w http.ResponseWriter, r *http.Request) (StatementAccount, bool) {
	code, agency := chi.URLParam(r, "account"), r.URL.Query().Get("agency")
	var found []StatementAccount
	var names []string
	for _, a := range s.statementAccounts() {
		names = append(names, strings.TrimPrefix(a.Agency+"/"+a.Code, "/"))
		if a.Code == code && (agency == "" || a.Agency == agency) {
			found = append(found, a)
		}
	}
	switch len(found) {
	case 1:
		return found[0], true
	case 0:
		writeProblem(w, http.StatusNotFound, fmt.Sprintf("There is no account %q here.", code), fault{"account", "is not known", "one of " + strings.Join(names, ", ")})
	default:
		writeProblem(w, http.StatusConflict, fmt.Sprintf("Several agencies have an account %q.", code), fault{"agency", "is missing", "add ?agency=SLUG: " + strings.Join(names, ", ")})
	}
	return StatementAccount{}, false
}

// controlStatement is GET /control/statements/{account}?day=: the statement of a day, today
// unless given, in the layout of the account's profile. Today's has what happened so far.
func (s *Simulator) controlStatement(w http.ResponseWriter, r *http.Request) {
	a, ok := s.statementAccount(w, r)
	if !ok {
		return
	}
	now := s.cfg.Now()
	day, ok := a.askedDay(w, r.URL.Query().Get("day"), now)
	if !ok {
		return
	}
	body, err := s.statement(a, day, now)
	if err != nil {
		writeProblem(w, http.StatusInternalServerError, err.Error())
		return
	}
	kind, extension := "text/csv; charset=utf-8", ".csv"
	if a.Profile == profileBank {
		kind, extension = "application/xml", ".xml"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", a.Code+"-"+day.Format(time.DateOnly)+extension))
	//nolint:gosec // a file of a type that no browser runs
	_, _ = w.Write(body) // an error means that the caller has disconnected
}

// askedDay reads a day of an account, or answers with its fault.
func (a *StatementAccount) askedDay(w http.ResponseWriter, text string, now time.Time) (time.Time, bool) {
	if text == "" {
		return a.day(now), true
	}
	day, err := time.ParseInLocation(time.DateOnly, text, a.Zone)
	switch {
	case err != nil:
		writeProblem(w, http.StatusUnprocessableEntity, "There is no such statement.", fault{"day", fmt.Sprintf("%q is not a day", text), "send one such as 2026-11-23"})
	case day.After(now):
		writeProblem(w, http.StatusUnprocessableEntity, "There is no such statement yet.", fault{"day", text + " is in the future", "today is " + a.day(now).Format(time.DateOnly)})
	default:
		return day, true
	}
	return time.Time{}, false
}

// controlFault is POST /control/statements/{account}: plants a fault, or removes all.
func (s *Simulator) controlFault(w http.ResponseWriter, r *http.Request) {
	a, ok := s.statementAccount(w, r)
	if !ok {
		return
	}
	f, ok := readForm(w, r)
	if !ok {
		return
	}
	now := s.cfg.Now()
	var reset bool
	planted := plantedFault{Day: a.day(now).Format(time.DateOnly)}
	f.take("reset", &reset, "true or false")
	kinds := possible(a.Profile)
	named := f.take("fault", &planted.Fault, "one of "+strings.Join(kinds, ", "))
	if named && !slices.Contains(kinds, planted.Fault) || !named && !reset {
		f.fail("fault", fmt.Sprintf("%q is not a fault of this account", planted.Fault), "one of "+strings.Join(kinds, ", "))
	}
	f.take("line", &planted.Line, "the id of a line of the statement")
	if f.take("day", &planted.Day, "a day such as 2026-11-23") {
		if _, err := time.Parse(time.DateOnly, planted.Day); err != nil {
			f.fail("day", fmt.Sprintf("%q is not a day", planted.Day), "send one such as 2026-11-23")
		}
	}
	if reset && named {
		f.fail("reset", "comes with a fault", "send one of both")
	}
	if len(f.faults) == 0 && slices.Contains(lineFaults, planted.Fault) {
		all, err := s.ledger(a, now)
		if err != nil {
			f.fail("account", err.Error(), "correct the account")
		} else if field, why, mend := s.faults.aim(a, all, &planted); why != "" {
			f.fail(field, why, mend)
		}
	}
	if !f.accepted(w) {
		return
	}
	if reset {
		s.faults.clear(a)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	s.faults.add(a, planted)
	writeJSON(w, http.StatusOK, planted)
}

// statement writes the statement of a day.
func (s *Simulator) statement(a StatementAccount, day, now time.Time) ([]byte, error) {
	currency, known := money.Lookup(a.Currency)
	if !known {
		return nil, fmt.Errorf("account %s: unknown currency %q", a.Code, a.Currency)
	}
	all, err := s.ledger(a, now)
	if err != nil {
		return nil, err
	}
	name := day.Format(time.DateOnly)
	from, to := day, day.AddDate(0, 0, 1)
	zone := a.Zone
	if s.faults.has(a, faultUTC, name) {
		zone = time.UTC
		from = time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, zone)
		to = from.AddDate(0, 0, 1)
	}
	if s.faults.has(a, faultOverlap, name) {
		from = from.Add(-12 * time.Hour)
	}
	p := printer{account: a, currency: currency, zone: zone, from: from, day: day}
	for _, m := range all {
		switch {
		case m.at.Before(from):
			p.opening += m.net()
		case m.at.Before(to):
			if s.faults.has(a, faultRounding, name) {
				m.reference = rounded(m.reference)
			}
			p.lines = append(p.lines, m)
		}
	}
	body := p.print()
	if s.faults.has(a, faultTruncate, name) {
		body = body[:len(body)-min(len(body), 25)]
	}
	return body, nil
}

// printer writes one statement.
type printer struct {
	account   StatementAccount
	currency  money.Currency
	zone      *time.Location // of the times in the file
	day, from time.Time
	opening   int64
	lines     []movement
}

func (p *printer) print() []byte {
	switch p.account.Profile {
	case profileMTN:
		return p.mtn()
	case profileAirtel:
		return p.airtel()
	case profileCard:
		return p.card()
	case profileCash:
		return p.cash()
	}
	return p.camt()
}

func (p *printer) amount(minor int64) string { return p.currency.Decimal(minor) }

// rows writes delimited text. An operator's statement is a file, not a page: no formula runs.
func rows(separator rune, all [][]string) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.Comma = separator
	_ = w.WriteAll(all) // a buffer takes everything
	return b.Bytes()
}

// mtn is a merchant's transactions with a running balance.
func (p *printer) mtn() []byte {
	words := map[string]string{movementPayment: "Payment", movementRefund: "Refund", movementReversal: "Reversal", movementPayout: "Cash out", movementTransfer: "Transfer", movementReturn: "Transfer return"}
	out := [][]string{{"Id", "External id", "Status", "Type", "Date", "Amount", "Fee", "Currency", "From", "To", "Balance"}}
	balance := p.opening
	for _, m := range p.lines {
		balance += m.net()
		out = append(out, []string{
			m.id, m.reference, "Successful", words[m.kind], m.at.In(p.zone).Format("2006-01-02 15:04:05"), p.amount(m.amount), p.amount(m.fee), p.currency.Code(), m.payer, p.account.Number, p.amount(balance),
		})
	}
	return rows(',', out)
}

// airtel is a merchant's collections with the settlement of each.
func (p *printer) airtel() []byte {
	words := map[string]string{movementPayment: "Collection", movementRefund: "Refund", movementReversal: "Reversal", movementPayout: "Settlement", movementTransfer: "Disbursement", movementReturn: "Disbursement Return"}
	out := [][]string{{"Transaction ID", "Reference", "Service", "Status", "Date", "Amount", "Charges", "Currency", "Sender", "Merchant", "Settlement"}}
	for _, m := range p.lines {
		out = append(out, []string{
			m.id, m.reference, words[m.kind], "Transaction Success", m.at.In(p.zone).Format("02/01/2006 15:04:05"), p.amount(m.amount), p.amount(m.fee), p.currency.Code(), m.payer, p.account.Number, m.batch,
		})
	}
	return rows(';', out)
}

// card is an acquirer's settlement in batches with a row of totals. It has no payouts.
func (p *printer) card() []byte {
	words := map[string]string{movementPayment: "Sale", movementRefund: "Refund", movementReversal: "Chargeback"}
	out := [][]string{{"Batch", "Transaction", "Reference", "Type", "Time", "Gross", "Fee", "Net", "Currency"}}
	var gross, fee int64
	for _, m := range p.lines {
		if m.kind == movementPayout {
			continue
		}
		gross, fee = gross+m.amount, fee+m.fee
		out = append(out, []string{
			m.batch, m.id, m.reference, words[m.kind], m.at.In(p.zone).Format(time.RFC3339), p.amount(m.amount), p.amount(m.fee), p.amount(m.net()), p.currency.Code(),
		})
	}
	out = append(out, []string{"TOTAL", strconv.Itoa(len(out) - 1), "", "", "", p.amount(gross), p.amount(fee), p.amount(gross - fee), p.currency.Code()})
	return rows(';', out)
}

// cash lists the receipts of the day's deposit slips. The deposits are the bank's.
func (p *printer) cash() []byte {
	words := map[string]string{movementPayment: "Receipt", movementRefund: "Refund", movementReversal: "Refund"}
	out := [][]string{{"Slip", "Receipt", "Reference", "Type", "Time", "Amount", "Currency"}}
	comma := func(minor int64) string { return strings.Replace(p.amount(minor), ".", ",", 1) }
	var sum int64
	for _, m := range p.lines {
		if m.kind == movementPayout {
			continue
		}
		sum += m.amount
		out = append(out, []string{m.batch, m.id, m.reference, words[m.kind], m.at.In(p.zone).Format(time.RFC3339), comma(m.amount), p.currency.Code()})
	}
	out = append(out, []string{"TOTAL", strconv.Itoa(len(out) - 1), "", "", "", comma(sum), p.currency.Code()})
	return rows(';', out)
}

// camt is the bank's statement, camt.053.001.08. Its number is that of the day in the year.
func (p *printer) camt() []byte {
	var b bytes.Buffer
	id := "BANQUE-" + p.day.Format("20060102")
	closing := p.opening
	for _, m := range p.lines {
		closing += m.net()
	}
	written := p.day.AddDate(0, 0, 1).Add(5 * time.Hour).Format("2006-01-02T15:04:05")
	number := "<Othr><Id>" + escaped(p.account.Number) + "</Id></Othr>"
	if p.account.IBAN != "" {
		number = "<IBAN>" + escaped(p.account.IBAN) + "</IBAN>"
	}
	fmt.Fprintf(&b, `<?xml version="1.0" encoding="UTF-8"?>
<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08">
  <BkToCstmrStmt>
    <GrpHdr><MsgId>%[1]s</MsgId><CreDtTm>%[2]s</CreDtTm></GrpHdr>
    <Stmt>
      <Id>%[1]s</Id><ElctrncSeqNb>%[3]d</ElctrncSeqNb><CreDtTm>%[2]s</CreDtTm>
      <FrToDt><FrDtTm>%[4]s</FrDtTm><ToDtTm>%[5]s</ToDtTm></FrToDt>
      <Acct><Id>%[6]s</Id><Ccy>%[7]s</Ccy></Acct>
`, id, written, p.day.YearDay(), p.from.Format(time.RFC3339), p.day.AddDate(0, 0, 1).Add(-time.Second).Format(time.RFC3339), number, p.currency.Code())
	p.balance(&b, "OPBD", p.opening, p.from)
	p.balance(&b, "CLBD", closing, p.day)
	for _, m := range p.lines {
		p.entry(&b, &m)
	}
	b.WriteString("    </Stmt>\n  </BkToCstmrStmt>\n</Document>\n")
	return b.Bytes()
}

// signed returns an amount and its indicator.
func (p *printer) signed(minor int64) (amount, indicator string) {
	if minor < 0 {
		return p.amount(-minor), "DBIT"
	}
	return p.amount(minor), "CRDT"
}

func (p *printer) balance(b *bytes.Buffer, code string, minor int64, day time.Time) {
	amount, indicator := p.signed(minor)
	fmt.Fprintf(b, "      <Bal><Tp><CdOrPrtry><Cd>%s</Cd></CdOrPrtry></Tp><Amt Ccy=%q>%s</Amt><CdtDbtInd>%s</CdtDbtInd><Dt><Dt>%s</Dt></Dt></Bal>\n",
		code, p.currency.Code(), amount, indicator, day.Format(time.DateOnly))
}

func (p *printer) entry(b *bytes.Buffer, m *movement) {
	amount, indicator := p.signed(m.net())
	reversal, text, refs := "", "REGLEMENT "+m.batch, "<EndToEndId>"+escaped(m.batch)+"</EndToEndId>"
	if m.batch == "" { // somebody's transfer
		text, refs = "VIREMENT "+m.reference, "<AcctSvcrRef>"+escaped(m.id)+"</AcctSvcrRef><EndToEndId>NOTPROVIDED</EndToEndId>"
	}
	if m.kind == movementReversal {
		reversal, text = "<RvslInd>true</RvslInd>", "ANNULATION "+text
	}
	at := m.at.In(p.zone).Format(time.RFC3339)
	if p.zone == time.UTC && p.account.Zone != time.UTC {
		at = m.at.UTC().Format("2006-01-02T15:04:05") // without an offset a reader takes it for local
	}
	fmt.Fprintf(b, `      <Ntry>
        <NtryRef>%[1]s</NtryRef><Amt Ccy=%[2]q>%[3]s</Amt><CdtDbtInd>%[4]s</CdtDbtInd>%[5]s<Sts><Cd>BOOK</Cd></Sts>
        <BookgDt><DtTm>%[6]s</DtTm></BookgDt><AcctSvcrRef>%[1]s</AcctSvcrRef>
        <BkTxCd><Domn><Cd>PMNT</Cd><Fmly><Cd>RCDT</Cd><SubFmlyCd>OTHR</SubFmlyCd></Fmly></Domn></BkTxCd>
        <NtryDtls><TxDtls><Refs>%[7]s</Refs><Amt Ccy=%[2]q>%[3]s</Amt><CdtDbtInd>%[4]s</CdtDbtInd><RmtInf><Ustrd>%[8]s</Ustrd></RmtInf></TxDtls></NtryDtls>
      </Ntry>
`, escaped(m.id), p.currency.Code(), amount, indicator, reversal, at, refs, escaped(text))
}

func escaped(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // a buffer takes everything
	return b.String()
}
