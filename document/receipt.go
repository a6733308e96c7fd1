package document

import (
	"cmp"
	"time"

	"quittance/money"
	"quittance/money/language"
)

// Issuer is what an agency writes on its receipts. Empty fields mean the default.
type Issuer struct {
	Title      string // default: Reçu de paiement
	Mention    string // a sentence of the agency, such as the article of a law
	Accountant string // the public accountant who gives the receipt
}

// Payment is what a receipt is made of: the payment of one due. Amounts are in minor units of
// Currency. Empty texts are unknown and are not shown.
type Payment struct {
	Agency Agency
	Issuer Issuer
	Test   bool
	// PaidAt is zero for a due that is not paid. ReversedAt is zero unless the money was given
	// back.
	PaidAt, ReversedAt time.Time
	Amount, Fee        int64
	Currency           string
	// Means is how it was paid, such as MTN Mobile Money, in the language of the receipt.
	Means string

	TransactionID, NoticeRef, PaymentRef, OperatorRef string

	Service string
	Label   string // what was paid
	Order   string // number of the case at the agency
	// SubjectRef is the reference of who owed the due. The receipt has its end.
	SubjectRef string
	// Partial is true if a part of the due stayed owed.
	Partial bool
	// Unrecorded is true until the agency's ERP has accepted the payment that it is told of.
	Unrecorded bool
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
	// Stamp says that the money was given back: ANNULÉE. Empty for a payment that stands. Paid says
	// that it stands: PAYÉ. Empty for a payment that was given back, and for a test.
	Stamp, Paid string
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

// NewReceipt returns the receipt of a payment. Any language but English is French. The errors
// are ErrUnpaid and ErrIncomplete.
func NewReceipt(lang money.Language, p Payment) (Receipt, error) {
	if p.PaidAt.IsZero() {
		return Receipt{}, ErrUnpaid
	}
	amounts, err := newAmounts(lang, p.Currency, p.Agency)
	if err != nil {
		return Receipt{}, err
	}
	w := receiptTexts.In(lang)
	total := p.Amount + p.Fee
	r := Receipt{
		Lang: lang, Title: cmp.Or(p.Issuer.Title, w.Title), Mention: p.Issuer.Mention, Agency: p.Agency, Test: p.Test,
		Total: amounts.of(total), Accountant: Row{Label: w.Accountant, Value: p.Issuer.Accountant},
		CheckTitle: w.CheckTitle, Check: w.Check + " " + p.CheckAddress, Footer: w.Transaction + " " + p.TransactionID,
		Name: w.File + "-" + p.NoticeRef, Date: p.PaidAt,
	}
	if words, ok := amounts.currency.Words(lang, total); ok {
		r.InWords = w.InWords + " " + words
	}
	r.marks(w, p)
	r.facts(w, p)
	r.Money = []Row{
		{Label: w.Due, Value: amounts.of(p.Amount), Money: true},
		{Label: w.Fee, Value: amounts.of(p.Fee), Money: true},
		{Label: w.Total, Value: r.Total, Money: true, Sum: true},
	}
	r.proof(w, p)
	return r, nil
}

// marks sets what the reader must know before anything else.
func (r *Receipt) marks(w receiptWords, p Payment) {
	if !p.ReversedAt.IsZero() {
		r.Stamp = w.Reversed
		r.Notes = append(r.Notes, w.ReversedOn+" "+language.Date(r.Lang, p.ReversedAt)+w.ReversedEnd)
	}
	if r.Test {
		r.Mark = w.Test
		r.Notes = append(r.Notes, w.TestNote)
	}
	if r.Stamp == "" && !r.Test {
		r.Paid = w.Paid
	}
	if p.Unrecorded {
		r.Notes = append(r.Notes, w.Recording)
	}
	if p.Erased {
		r.Notes = append(r.Notes, w.Duplicate)
	}
}

func (r *Receipt) facts(w receiptWords, p Payment) {
	add := func(label, value string) {
		if value != "" {
			r.Facts = append(r.Facts, Row{Label: label, Value: value})
		}
	}
	if !p.Erased {
		add(w.Payer, p.Payer)
	}
	add(w.Service, p.Service)
	if p.Label != p.Service {
		add(w.Label, p.Label)
	}
	add(w.Order, p.Order)
	if end := SubjectEnd(p.SubjectRef); end != "" {
		add(w.Subject, "…"+end)
	}
	if p.Partial {
		add(w.Part, w.PartText)
	}
}

func (r *Receipt) proof(w receiptWords, p Payment) {
	add := func(label, value string, reference bool) {
		if value != "" {
			r.Proof = append(r.Proof, Row{Label: label, Value: value, Reference: reference})
		}
	}
	add(w.PaidAt, language.Date(r.Lang, p.PaidAt), false)
	add(w.Channel, p.Means, false)
	add(w.Operator, p.OperatorRef, true)
	add(w.Counter, p.Counter, false)
	add(w.Clerk, p.Clerk, false)
	add(w.PaymentRef, language.GroupReference(p.PaymentRef), true)
	add(w.NoticeRef, p.NoticeRef, true)
}
