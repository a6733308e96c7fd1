package document

import (
	"cmp"
	"strings"
	"time"

	"quittance/checkout"
	"quittance/checkout/page"
	"quittance/money"
)

// Slip is what a notice is made of.
type Slip struct {
	Session checkout.Session
	Agency  Agency
	// Taxpayer is who owes, masked; empty if unknown.
	Taxpayer string
	// Dues are what the agency's ERP says of the session's dues, in the order of
	// [checkout.Session.Dues]. They may be missing.
	Dues []Due
	// Base is the address of the pages without a slash at its end, such as
	// https://paiement.example.cg.
	Base string
}

// Due is what an ERP says of a due beyond what the session pays of it. Zero values are
// unknown and are not shown.
type Due struct {
	Original     int64 // minor units
	AllowPartial bool
	Minimum      int64 // of a partial payment, minor units
	DueOn        time.Time
}

// Line is a due on a notice. Empty texts are unknown.
type Line struct {
	NoticeRef, Label, Service             string
	Original, Outstanding, Minimum, ToPay string
	DueOn                                 string
}

// Way is how to pay by one offer.
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
	Original, Outstanding, Minimum, DueOn, ToPay, Lines, How string
}

// NewNotice returns the notice of an open session. Any language but English is French. The
// errors are ErrEnded, ErrFramed and ErrIncomplete.
func NewNotice(lang money.Language, slip Slip) (Notice, error) {
	s := slip.Session
	if s.Status != checkout.StatusOpen {
		return Notice{}, ErrEnded
	}
	if s.Mode == checkout.ModeEmbedded {
		return Notice{}, ErrFramed
	}
	amounts, err := newAmounts(lang, s.Currency, slip.Agency)
	if err != nil {
		return Notice{}, err
	}
	w := noticeTexts.In(lang)
	address := slip.Base + "/p/" + s.PaymentRef
	n := Notice{
		Lang: lang, Title: w.Title, Agency: slip.Agency, Test: !s.Live, Total: Row{Label: w.Total, Value: amounts.of(s.Amount), Money: true, Sum: true},
		PaymentRefLabel: w.PaymentRef, PaymentRef: page.GroupReference(s.PaymentRef), QR: strings.ToUpper(address), QRText: w.QR + " " + address,
		WaysHead: Way{Name: w.Way, Fee: w.Fee, Total: w.ToPay}, Cut: w.Cut, StubText: w.StubText, Phrases: w.Labels,
		Warnings: []string{w.NoReceipt, w.OtherNumber, w.UpToDate},
		Name:     w.File + "-" + s.Dues()[0].NoticeRef, Date: s.CreatedAt,
	}
	if n.Test {
		n.Mark = receiptTexts.In(lang).Test
		n.Warnings = append([]string{w.TestNote}, n.Warnings...)
		n.StubText += " (" + n.Mark + ")"
	}
	n.facts(w, slip)
	for i, due := range s.Dues() {
		var known Due
		if i < len(slip.Dues) {
			known = slip.Dues[i]
		}
		n.Lines = append(n.Lines, line(amounts, s, due, known))
	}
	for _, o := range s.Offers {
		n.Ways = append(n.Ways, Way{
			Name: page.OfferName(lang, o.ID), Fee: amounts.of(o.Fee), Total: amounts.of(s.Amount + o.Fee), How: w.How[string(o.Channel)],
		})
	}
	n.Stub = []Row{
		{Label: w.Agency, Value: slip.Agency.Name},
		{Label: w.NoticeRef, Value: s.Dues()[0].NoticeRef, Reference: true},
		{Label: w.PaymentRef, Value: n.PaymentRef, Reference: true},
		{Label: w.Total, Value: n.Total.Value, Sum: true},
	}
	return n, nil
}

func (n *Notice) facts(w noticeWords, slip Slip) {
	s := slip.Session
	add := func(label, value string, reference bool) {
		if value != "" {
			n.Facts = append(n.Facts, Row{Label: label, Value: value, Reference: reference})
		}
	}
	dues := s.Dues()
	add(w.NoticeRef, dues[0].NoticeRef, true)
	add(w.Issued, page.Date(n.Lang, s.CreatedAt), false)
	add(w.Valid, page.Date(n.Lang, s.ExpiresAt), false)
	taxpayer := slip.Taxpayer
	if end := SubjectEnd(dues[0].SubjectRef); taxpayer == "" && end != "" {
		taxpayer = "…" + end
	}
	add(w.Taxpayer, taxpayer, false)
	if !s.Portal() && s.Cashin == nil {
		add(w.Order, s.OrderID, false)
	}
}

// line returns a due as a notice shows it.
func line(a amounts, s checkout.Session, due checkout.Item, known Due) Line {
	out := Line{NoticeRef: due.NoticeRef, Label: cmp.Or(due.Label, s.Description, due.ServiceLabel, s.OrderID), Service: due.ServiceLabel, ToPay: a.of(due.Amount)}
	if out.Label == out.Service {
		out.Service = ""
	}
	if known.Original > 0 {
		out.Original = a.of(known.Original)
	}
	if due.Outstanding > 0 {
		out.Outstanding = a.of(due.Outstanding)
	}
	if known.AllowPartial && known.Minimum > 0 {
		out.Minimum = a.of(known.Minimum)
	}
	if !known.DueOn.IsZero() {
		out.DueOn = page.Day(a.lang, known.DueOn)
	}
	return out
}
