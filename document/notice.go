package document

import (
	"fmt"
	"strings"
	"time"

	"quittance/money"
	"quittance/money/language"
)

// Slip is what a notice is made of. Amounts are in minor units of Currency. Empty texts are
// unknown and are not shown.
type Slip struct {
	Agency Agency
	Test   bool
	// Ended is true when it can be paid no more, Framed when it is paid in an integrator's frame
	// and nowhere else. Neither has a notice.
	Ended, Framed        bool
	IssuedAt, ValidUntil time.Time
	Amount               int64 // to pay, without fees
	Currency             string
	PaymentRef           string
	Order                string // number of the case at the agency
	// Taxpayer is who owes, masked; empty if unknown.
	Taxpayer string
	// Dues has at least one.
	Dues []Due
	Ways []WayToPay
	// Transfer is the account of MeansTransfer. It is empty without such a way.
	Transfer Transfer
	// Base is the address of the pages without a slash at its end, such as
	// https://paiement.example.cg.
	Base string
}

// Due is a due of a notice. Zero values are unknown and are not shown.
type Due struct {
	NoticeRef, Label, Service string
	// SubjectRef is the reference of who owes it. The notice has its end.
	SubjectRef  string
	Amount      int64 // to pay
	Outstanding int64
	// What follows is what an ERP says beyond what is paid of it.
	Original     int64
	AllowPartial bool
	Minimum      int64 // of a partial payment
	DueOn        time.Time
}

// Means is a kind of payment. The values are the channels of the contract.
type Means string

// The kinds of payment.
const (
	MeansMobileMoney Means = "MOBILE_MONEY"
	MeansCard        Means = "CARD"
	MeansCash        Means = "CASH"
	MeansSwitch      Means = "SWITCH"
	MeansTransfer    Means = "BANK_TRANSFER"
)

// Transfer is a bank account to which money is transferred. Account is its IBAN in groups, or its number.
type Transfer struct{ Holder, Bank, Account string }

// WayToPay is one offer with its fee, in minor units. Name is in the language of the notice.
type WayToPay struct {
	Name  string
	Means Means
	Fee   int64
}

// Line is a due on a notice. Empty texts are unknown.
type Line struct {
	NoticeRef, Label, Service             string
	Original, Outstanding, Minimum, ToPay string
	// Added is by how much the outstanding amount is above the original one; empty when it is not.
	Added string
	DueOn string
}

// Way is how to pay by one offer, as a notice shows it.
type Way struct {
	Name, Fee, Total, How string
}

// Notice is what a payment notice says.
type Notice struct {
	Lang   money.Language
	Title  string
	Agency Agency
	Test   bool
	Mark   string
	Facts  []Row
	Lines  []Line
	Total  Row
	// PaymentRef is the reference in groups of four digits.
	PaymentRefLabel, PaymentRef string
	// QR is the address in the QR code, in capitals, which take less room in it.
	QR       string
	QRText   string
	WaysHead Way // labels of the columns of Ways
	Ways     []Way
	Warnings []string // of a test notice that it is one comes first
	Stub     []Row    // the part that a counter keeps
	StubText string
	Cut      string // at the line to cut along
	Phrases  Labels
	// Name is what the file is called, without its ending. Date is that of the session.
	Name string
	Date time.Time
}

// Labels are the words between the values of a notice.
type Labels struct {
	Original, Added, Outstanding, Minimum, DueOn, ToPay, Lines, How string
}

// NewNotice returns the notice of a slip. Any language but English is French. The errors are
// ErrEnded, ErrFramed and ErrIncomplete.
func NewNotice(lang money.Language, slip Slip) (Notice, error) {
	switch {
	case slip.Ended:
		return Notice{}, ErrEnded
	case slip.Framed:
		return Notice{}, ErrFramed
	case len(slip.Dues) == 0:
		return Notice{}, ErrIncomplete
	}
	amounts, err := newAmounts(lang, slip.Currency, slip.Agency)
	if err != nil {
		return Notice{}, err
	}
	w := noticeTexts.In(lang)
	address := slip.Base + "/p/" + slip.PaymentRef
	n := Notice{
		Lang: lang, Title: w.Title, Agency: slip.Agency, Test: slip.Test,
		Total:           Row{Label: w.Total, Value: amounts.of(slip.Amount), Money: true, Sum: true},
		PaymentRefLabel: w.PaymentRef, PaymentRef: language.GroupReference(slip.PaymentRef), QR: strings.ToUpper(address), QRText: w.QR + " " + address,
		WaysHead: Way{Name: w.Way, Fee: w.Fee, Total: w.ToPay}, Cut: w.Cut, StubText: w.StubText, Phrases: w.Labels,
		Warnings: []string{w.NoReceipt, w.OtherNumber, w.UpToDate},
		Name:     w.File + "-" + slip.Dues[0].NoticeRef, Date: slip.IssuedAt,
	}
	if n.Test {
		n.Mark = receiptTexts.In(lang).Test
		n.Warnings = append([]string{w.TestNote}, n.Warnings...)
		n.StubText += " (" + n.Mark + ")"
	}
	n.facts(w, slip)
	for _, due := range slip.Dues {
		n.Lines = append(n.Lines, amounts.line(due))
	}
	for _, way := range slip.Ways {
		how := w.How[way.Means]
		if way.Means == MeansTransfer {
			how = fmt.Sprintf(how, slip.Transfer.Holder, slip.Transfer.Bank, slip.Transfer.Account, n.PaymentRef)
		}
		n.Ways = append(n.Ways, Way{Name: way.Name, Fee: amounts.of(way.Fee), Total: amounts.of(slip.Amount + way.Fee), How: how})
	}
	n.Stub = []Row{
		{Label: w.Agency, Value: slip.Agency.Name},
		{Label: w.NoticeRef, Value: slip.Dues[0].NoticeRef, Reference: true},
		{Label: w.PaymentRef, Value: n.PaymentRef, Reference: true},
		{Label: w.Total, Value: n.Total.Value, Sum: true},
	}
	return n, nil
}

func (n *Notice) facts(w noticeWords, slip Slip) {
	add := func(label, value string, reference bool) {
		if value != "" {
			n.Facts = append(n.Facts, Row{Label: label, Value: value, Reference: reference})
		}
	}
	add(w.NoticeRef, slip.Dues[0].NoticeRef, true)
	add(w.Issued, language.Date(n.Lang, slip.IssuedAt), false)
	add(w.Valid, language.Date(n.Lang, slip.ValidUntil), false)
	taxpayer := slip.Taxpayer
	if end := SubjectEnd(slip.Dues[0].SubjectRef); taxpayer == "" && end != "" {
		taxpayer = "…" + end
	}
	add(w.Taxpayer, taxpayer, false)
	add(w.Order, slip.Order, false)
}

// line returns a due as a notice shows it.
func (a amounts) line(due Due) Line {
	out := Line{NoticeRef: due.NoticeRef, Label: due.Label, Service: due.Service, ToPay: a.of(due.Amount)}
	if out.Label == out.Service {
		out.Service = ""
	}
	if due.Original > 0 {
		out.Original = a.of(due.Original)
		if added := due.Outstanding - due.Original; added > 0 {
			out.Added = a.of(added)
		}
	}
	if due.Outstanding > 0 {
		out.Outstanding = a.of(due.Outstanding)
	}
	if due.AllowPartial && due.Minimum > 0 {
		out.Minimum = a.of(due.Minimum)
	}
	if !due.DueOn.IsZero() {
		out.DueOn = language.Day(a.lang, due.DueOn)
	}
	return out
}
