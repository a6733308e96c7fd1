package document

import (
	"cmp"
	"time"

	"quittance/checkout"
	"quittance/checkout/page"
	"quittance/money"
)

// Issuer is what an agency writes on its receipts. Empty fields mean the default.
type Issuer struct {
	Title      string // default: Reçu de paiement
	Mention    string // a sentence of the agency, such as the article of a law
	Accountant string // the public accountant who gives the receipt
}

// Payment is what a receipt is made of.
type Payment struct {
	Session       checkout.Session
	TransactionID string // of the due
	Agency        Agency
	Issuer        Issuer
	// Payer is the name that the payer gave; empty if none was given or it was erased.
	Payer string
	// Erased is true after the payer's contact data was erased. The receipt is then a
	// duplicate: it lacks what an earlier one showed.
	Erased bool
	// Counter and Clerk are names, for cash.
	Counter, Clerk string
	// CheckAddress is where anybody verifies the receipt, without the token: HOST/q.
	CheckAddress string
}

// Receipt is what the receipt of one due says.
type Receipt struct {
	Lang    money.Language
	Title   string
	Mention string
	Agency  Agency
	// Test is true for a receipt without value. Mark then stands across it.
	Test bool
	Mark string
	// Stamp says that the money was given back: ANNULÉE. Empty for a payment that stands.
	Stamp string
	// Notes are what the reader must know before anything else, the most important first.
	Notes []string
	// Total is what was paid, fee included, and InWords the same in words.
	Total, InWords string
	Facts          []Row // who paid what, to whom
	Money          []Row // due, fee, total
	Proof          []Row // when, how, under which references
	Accountant     Row   // empty Value: none
	CheckTitle     string
	Check          string // how to verify the receipt
	Footer         string // the transaction
	// Name is what the file is called, without its ending. Date is that of the payment.
	Name string
	Date time.Time
}

// NewReceipt returns the receipt of a due. Any language but English is French. The errors
// are ErrUnpaid and ErrIncomplete.
func NewReceipt(lang money.Language, p Payment) (Receipt, error) {
	s := p.Session
	due, ok := s.Due(p.TransactionID)
	if !ok || s.Status != checkout.StatusCompleted || s.Collection == nil {
		return Receipt{}, ErrUnpaid
	}
	amounts, err := newAmounts(lang, s.Currency, p.Agency)
	if err != nil {
		return Receipt{}, err
	}
	w := receiptTexts.In(lang)
	total := due.Amount + due.Fee
	r := Receipt{
		Lang: lang, Title: cmp.Or(p.Issuer.Title, w.Title), Mention: p.Issuer.Mention, Agency: p.Agency, Test: !s.Live,
		Total: amounts.of(total), Accountant: Row{Label: w.Accountant, Value: p.Issuer.Accountant},
		CheckTitle: w.CheckTitle, Check: w.Check + " " + p.CheckAddress, Footer: w.Transaction + " " + due.TransactionID, Name: w.File + "-" + due.NoticeRef, Date: PaidAt(s),
	}
	if words, ok := amounts.currency.Words(lang, total); ok {
		r.InWords = w.InWords + " " + words
	}
	r.marks(w, p, due)
	r.facts(w, p, due)
	r.Money = []Row{
		{Label: w.Due, Value: amounts.of(due.Amount), Money: true},
		{Label: w.Fee, Value: amounts.of(due.Fee), Money: true},
		{Label: w.Total, Value: r.Total, Money: true, Sum: true},
	}
	r.proof(w, p, due)
	return r, nil
}

// marks sets what the reader must know before anything else.
func (r *Receipt) marks(w receiptWords, p Payment, due checkout.Item) {
	s := p.Session
	if !s.ReversedAt.IsZero() {
		r.Stamp = w.Reversed
		r.Notes = append(r.Notes, w.ReversedOn+" "+page.Date(r.Lang, s.ReversedAt)+w.ReversedEnd)
	}
	if r.Test {
		r.Mark = w.Test
		r.Notes = append(r.Notes, w.TestNote)
	}
	switch due.Confirmation.Status {
	case checkout.ConfirmationAwaited, checkout.ConfirmationRefused:
		r.Notes = append(r.Notes, w.Recording)
	case checkout.ConfirmationAccepted, checkout.ConfirmationRecorded:
	default: // no ERP is awaited
	}
	if p.Erased {
		r.Notes = append(r.Notes, w.Duplicate)
	}
}

func (r *Receipt) facts(w receiptWords, p Payment, due checkout.Item) {
	add := func(label, value string) {
		if value != "" {
			r.Facts = append(r.Facts, Row{Label: label, Value: value})
		}
	}
	s := p.Session
	if !p.Erased {
		add(w.Payer, p.Payer)
	}
	add(w.Service, due.ServiceLabel)
	if label := cmp.Or(due.Label, s.Description); label != due.ServiceLabel {
		add(w.Label, label)
	}
	if !s.Portal() && s.Cashin == nil {
		add(w.Order, s.OrderID)
	}
	if end := SubjectEnd(due.SubjectRef); end != "" {
		add(w.Subject, "…"+end)
	}
	if due.Partial() {
		add(w.Part, w.PartText)
	}
}

func (r *Receipt) proof(w receiptWords, p Payment, due checkout.Item) {
	add := func(label, value string, reference bool) {
		if value != "" {
			r.Proof = append(r.Proof, Row{Label: label, Value: value, Reference: reference})
		}
	}
	s := p.Session
	add(w.PaidAt, page.Date(r.Lang, PaidAt(s)), false)
	add(w.Channel, page.OfferName(r.Lang, s.Collection.OfferID), false)
	add(w.Operator, s.Collection.OperatorRef, true)
	if s.Collection.Channel == checkout.ChannelCash {
		add(w.Counter, p.Counter, false)
		add(w.Clerk, p.Clerk, false)
	}
	add(w.PaymentRef, page.GroupReference(s.PaymentRef), true)
	add(w.NoticeRef, due.NoticeRef, true)
}
