package bank

import (
	"encoding/xml"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"quittance/disbursement"
	"quittance/internal/disbursements/lines"
	"quittance/statement"
)

// Errors of Build.
var (
	// ErrPayment says that a line cannot be paid by a file; its text names the line's payout_ref, the field and the mend.
	ErrPayment = errors.New("a line that the bank cannot pay")
	// ErrTooLarge says that a file has no line, or more than the bank takes.
	ErrTooLarge = errors.New("size of a file for the bank")
)

// Payment is a line of a file.
type Payment struct {
	// Ref is the payout_ref of the attempt.
	Ref string
	// Amount in minor units of Currency.
	Amount int64
	// Name of the payee, and what is paid for; Purpose may be empty.
	Name, Purpose string
	// Account is the payee's IBAN of CEMAC, or a RIB. BIC is that of its bank; empty if the agency has not given it.
	Account, BIC string
}

// File is what a file is made of. The same File makes the same bytes.
type File struct {
	// Batch is the id of the batch, and Number that of the file in it, from 1.
	Batch  string
	Number int
	// AssignedAt is when the lines of the file were fixed.
	AssignedAt time.Time
	// Date is the day on which the batch is to be paid, and PayUntil the last day on which it may be.
	Date, PayUntil statement.Day
	Payments       []Payment
}

// Built is a file for the bank.
type Built struct {
	// ID is the MsgId by which the bank knows the file, and Name its name without the endings of encryption.
	ID, Name string
	Data     []byte
	Day      statement.Day // on which the bank is to pay
	Sent     []Sent        // its lines, in the order of File.Payments
}

// Sent is a line as a file has it, for Report.Answers.
type Sent struct {
	Ref    string
	Amount int64
	Group  string // its PmtInfId
}

// The systems of BEAC, which carry a transfer by its amount.
const (
	systac = "SYSTAC"
	sygma  = "SYGMA"
)

// Build makes a file. The profile is valid and has its defaults. Errors are ErrPayment, ErrTooLarge and ErrTooLate.
func (p Profile) Build(f File) (Built, error) {
	if len(f.Payments) == 0 || len(f.Payments) > p.MaxLines {
		return Built{}, fmt.Errorf("%w: %d lines, of 1 to %d", ErrTooLarge, len(f.Payments), p.MaxLines)
	}
	out := Built{ID: disbursement.FileRef(f.Batch, f.Number)}
	out.Name = p.Prefix + out.ID + ".xml"
	var err error
	if out.Day, err = p.Execution(f.AssignedAt, f.Date, f.PayUntil); err != nil {
		return Built{}, err
	}
	doc, err := p.document(&out, f)
	if err != nil {
		return Built{}, err
	}
	data, err := xml.MarshalIndent(doc, "", " ")
	if err != nil {
		return Built{}, fmt.Errorf("writing a file for the bank: %w", err)
	}
	out.Data = append(append([]byte(xml.Header), data...), '\n')
	if len(out.Data) > p.MaxBytes {
		return Built{}, fmt.Errorf("%w: %d bytes, of at most %d", ErrTooLarge, len(out.Data), p.MaxBytes)
	}
	return out, nil
}

// document sorts the lines into the groups of both systems, in their order.
func (p Profile) document(out *Built, f File) (document, error) {
	groups := map[string]*group{systac: p.group(out, systac, "NURG"), sygma: p.group(out, sygma, "URGP")}
	sums, total, refs := map[string]int64{}, int64(0), map[string]bool{}
	for _, pay := range f.Payments {
		c, err := p.credit(pay)
		switch {
		case err != nil:
			return document{}, fmt.Errorf("%w: %s: %w", ErrPayment, pay.Ref, err)
		case refs[pay.Ref]:
			return document{}, fmt.Errorf("%w: %s: payout_ref: it is in the file twice: remove one", ErrPayment, pay.Ref)
		case pay.Amount > math.MaxInt64-total:
			return document{}, fmt.Errorf("%w: the sum is too large", ErrTooLarge)
		}
		system := systac
		if pay.Amount >= p.SYGMAFrom {
			system = sygma
		}
		g := groups[system]
		g.Transfer = append(g.Transfer, c)
		g.Count++
		sums[system] += pay.Amount
		total += pay.Amount
		refs[pay.Ref] = true
		out.Sent = append(out.Sent, Sent{Ref: pay.Ref, Amount: pay.Amount, Group: g.ID})
	}
	debtor, err := written("debtor", p.Debtor, lines.MaxName)
	if err != nil {
		return document{}, fmt.Errorf("%w: %w", ErrProfile, err)
	}
	doc := document{Space: space + string(p.Version), Request: request{Header: header{
		ID: out.ID, CreatedAt: f.AssignedAt.UTC().Format(time.RFC3339), Count: len(f.Payments), Sum: strconv.FormatInt(total, 10),
		Initiator: initiator{Name: debtor},
	}}}
	if p.Client != "" {
		doc.Request.Header.Initiator.Client = &other{p.Client}
	}
	for _, system := range []string{systac, sygma} {
		if g := groups[system]; g.Count > 0 {
			g.Debtor, g.Sum = debtor, strconv.FormatInt(sums[system], 10)
			doc.Request.Groups = append(doc.Request.Groups, *g)
		}
	}
	return doc, nil
}

// space begins the namespaces of ISO 20022.
const space = "urn:iso:std:iso:20022:tech:xsd:"

func (p Profile) group(out *Built, system, service string) *group {
	g := group{
		ID: out.ID + "-" + system, Method: "TRF", OneDebit: p.OneDebit, Service: service, System: system, Day: day{Date: out.Day.String()},
		Account: accountOf(p.Account), Agent: p.agent(p.BIC), Charges: p.Charges,
	}
	g.Account.Currency = Currency
	if p.Version == Version03 {
		g.Day = day{Plain: out.Day.String()}
	}
	return &g
}

// credit returns the transfer of a line. Its errors name the field and the mend.
func (p Profile) credit(pay Payment) (credit, error) {
	switch {
	case !disbursement.ValidPayoutRef(pay.Ref):
		return credit{}, errors.New("payout_ref: give that of the attempt")
	case pay.Amount < 1:
		return credit{}, errors.New("amount: give one above 0")
	case accountFault(pay.Account) != "":
		return credit{}, errors.New("account: give an IBAN or a RIB " + accountFault(pay.Account))
	case pay.BIC != "" && !bic.MatchString(pay.BIC):
		return credit{}, errors.New("bic: give 8 or 11 characters, or none")
	}
	name, err := written("name", pay.Name, lines.MaxName)
	if err == nil && name == "" {
		err = errors.New("name: give the payee's name")
	}
	if err != nil {
		return credit{}, err
	}
	purpose, err := written("purpose", pay.Purpose, lines.MaxPurpose)
	if err != nil {
		return credit{}, err
	}
	c := credit{
		Instruction: pay.Ref, EndToEnd: pay.Ref, Amount: amount{Currency, strconv.FormatInt(pay.Amount, 10)}, Agent: p.agent(pay.BIC),
		Creditor: name, Account: accountOf(pay.Account),
	}
	if pay.BIC == "" {
		c.Agent.Member = &member{bankOf(pay.Account)}
	}
	if purpose != "" {
		c.Purpose = &remittance{purpose}
	}
	return c, nil
}

func (p Profile) agent(bic string) agent {
	if p.Version == Version03 {
		return agent{BIC: bic}
	}
	return agent{BICFI: bic}
}

func accountOf(text string) account {
	if isRIB(text) {
		return account{ID: accountID{Other: &other{text}}}
	}
	return account{ID: accountID{IBAN: text}}
}

// bankOf returns the number of a bank in the clearing, the first five digits of the RIB.
func bankOf(account string) string {
	if isRIB(account) {
		return account[:5]
	}
	return account[4:9]
}
