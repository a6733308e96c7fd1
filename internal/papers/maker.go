package papers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"quittance/checkout"
	"quittance/checkout/paper"
	"quittance/document"
	"quittance/internal/erp"
	"quittance/internal/personal"
	"quittance/internal/receipts"
	"quittance/internal/registry"
	"quittance/money"
	"quittance/money/language"
)

// duesPatience is how long a notice waits for what the agency's ERP says of its dues beyond
// what the session knows. A notice without it is complete enough to pay.
const duesPatience = 2 * time.Second

// Registry is the part of the configuration that papers show. It answers from memory.
type Registry interface {
	Agency(id string) (registry.Agency, bool)
	// Configured reports whether the agency can be paid by an offer in a mode and currency.
	Configured(agencyID string, live bool, offerID, currency string) bool
	// StatementAccountOf returns the account on which money by an offer arrives.
	StatementAccountOf(agencyID string, live bool, offer, currency, account string) (registry.StatementAccount, bool)
}

// Contacts opens contact data: personal.Store.
type Contacts interface {
	Customer(ctx context.Context, sessionID string, sealed []byte) (checkout.Customer, error)
	// Erased reports whether personal data of the session was erased on request.
	Erased(ctx context.Context, sessionID string) (bool, error)
}

// Dues asks the agencies' ERPs what somebody owes: erp.Dues.
type Dues interface {
	List(ctx context.Context, agencyID string, live bool, subjectRef string) (erp.Answer, error)
}

// Tokens signs receipts: receipts.Store.
type Tokens interface {
	// Issue returns the token of a paid due and the address that its QR code holds.
	Issue(ctx context.Context, agency string, s checkout.Session, transactionID string) (token, address string, err error)
	// CheckAddress is where anybody verifies a receipt.
	CheckAddress() string
}

// Config of a Maker. All fields are required.
type Config struct {
	Registry Registry
	Contacts Contacts
	Dues     Dues
	Tokens   Tokens
	// Base is the address of the pages, without a slash at its end.
	Base string
	Now  func() time.Time
	Log  *slog.Logger
}

// Maker gathers what a paper says about a session. It is safe for concurrent use.
type Maker struct{ cfg Config }

// NewMaker makes a Maker.
func NewMaker(cfg Config) (*Maker, error) {
	if cfg.Registry == nil || cfg.Contacts == nil || cfg.Dues == nil || cfg.Tokens == nil || cfg.Base == "" || cfg.Now == nil || cfg.Log == nil {
		return nil, errors.New("papers: every field of Config is required")
	}
	return &Maker{cfg}, nil
}

// Notice returns the notice of a session. The errors are document.ErrEnded, also for a
// session whose lifetime is over although nobody has ended it yet, document.ErrFramed and
// document.ErrIncomplete.
func (m *Maker) Notice(ctx context.Context, lang money.Language, s checkout.Session) (document.Notice, error) {
	if !m.cfg.Now().Before(s.ExpiresAt) {
		return document.Notice{}, document.ErrEnded
	}
	var payable []checkout.Offer
	for _, o := range s.Offers {
		if s.Offered(o, m.cfg.Now()) && m.cfg.Registry.Configured(s.TenantID, s.Live, o.ID, s.Currency) {
			payable = append(payable, o)
		}
	}
	s.Offers = payable
	customer, _, err := m.customer(ctx, s)
	if err != nil { // the end of the subject's reference names the taxpayer, too
		m.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "opening contact data for a notice", slog.Any("error", err))
	}
	account, _ := m.cfg.Registry.StatementAccountOf(s.TenantID, s.Live, checkout.OfferBankTransfer, s.Currency, "")
	return document.NewNotice(lang, paper.Slip(lang, s, document.Slip{
		Transfer: document.Transfer{Holder: account.Holder, Bank: account.Bank, Account: cmp.Or(language.GroupIBAN(account.IBAN), account.Number)},
		Agency:   m.agency(s.TenantID), Taxpayer: document.MaskName(customer.Name), Dues: m.dues(ctx, s), Base: m.cfg.Base,
	}))
}

// Request asks for the receipt of a due.
type Request struct {
	Session checkout.Session
	// TransactionID is the due's; empty for the first one.
	TransactionID string
	Language      money.Language
	// ByReference is true for somebody who knows the payment reference and not the session's
	// address. The receipt then lacks the payer's name, the order and the descriptions.
	ByReference bool
}

// Receipt is the receipt of a due.
type Receipt struct {
	document.Receipt
	Token string
	// Address verifies the receipt; its QR code holds it.
	Address string
}

// PDF returns the receipt as PDF/A-2b.
func (r Receipt) PDF() ([]byte, error) { return ReceiptPDF(r.Receipt, r.Address) }

// Receipt returns the receipt of a due. The error wraps document.ErrUnpaid if the due is not
// paid or not the session's. After any other error it may be asked for again: a receipt is
// whole, or there is none.
func (m *Maker) Receipt(ctx context.Context, q Request) (Receipt, error) {
	s := q.Session
	due, known := s.Due(q.TransactionID)
	if !known || s.Status != checkout.StatusCompleted {
		return Receipt{}, document.ErrUnpaid
	}
	token, address, err := m.Token(ctx, s, due)
	if err != nil {
		return Receipt{}, err
	}
	customer, erased, err := m.customer(ctx, s)
	if err != nil {
		return Receipt{}, fmt.Errorf("opening contact data for a receipt: %w", err)
	}
	if q.ByReference {
		s, customer = byReference(s), checkout.Customer{}
	}
	a, _ := m.cfg.Registry.Agency(s.TenantID)
	r, err := document.NewReceipt(q.Language, paper.Payment(q.Language, s, due.TransactionID, document.Payment{
		Agency: m.agency(s.TenantID), Payer: customer.Name, Erased: erased, CheckAddress: m.cfg.Tokens.CheckAddress(),
		Issuer: document.Issuer{Title: a.Receipt.Title, Mention: a.Receipt.Mention, Accountant: a.Receipt.Accountant},
	}))
	return Receipt{Receipt: r, Token: token, Address: address}, err
}

// Token returns the token of a paid due and the address that verifies it. The error wraps
// document.ErrUnpaid if the session is not completed.
func (m *Maker) Token(ctx context.Context, s checkout.Session, due checkout.Item) (token, address string, err error) {
	a, _ := m.cfg.Registry.Agency(s.TenantID)
	token, address, err = m.cfg.Tokens.Issue(ctx, a.Slug, s, due.TransactionID)
	if errors.Is(err, receipts.ErrUnpaid) {
		err = document.ErrUnpaid
	}
	return token, address, err
}

// byReference leaves in a session what the pages under /p show of it.
func byReference(s checkout.Session) checkout.Session {
	s.OrderID, s.Description = "", ""
	s.Items = slices.Clone(s.Items)
	for i := range s.Items {
		s.Items[i].Label = ""
	}
	return s
}

// agency has no name if the registry does not know the agency.
func (m *Maker) agency(id string) document.Agency {
	a, _ := m.cfg.Registry.Agency(id)
	return document.Agency{Name: a.Name, Address: a.Address, Phone: a.Contact.Phone, Email: a.Contact.Email, Hours: a.Contact.Hours, Logo: a.Logo}
}

// customer returns the session's contact data; the zero value if there is none. erased is true
// if personal data was erased.
func (m *Maker) customer(ctx context.Context, s checkout.Session) (c checkout.Customer, erased bool, err error) {
	switch {
	case s.Customer != nil:
		return *s.Customer, false, nil
	case len(s.CustomerSealed) == 0 && (contactErased(s) || !s.Ended()):
		return checkout.Customer{}, contactErased(s), nil
	case len(s.CustomerSealed) == 0: // there was none, or an erasure left no trace in the session
		erased, err = m.cfg.Contacts.Erased(ctx, s.ID)
		return checkout.Customer{}, erased, err
	}
	c, err = m.cfg.Contacts.Customer(ctx, s.ContactID(), s.CustomerSealed)
	if errors.Is(err, personal.ErrErased) {
		return checkout.Customer{}, true, nil
	}
	return c, false, err
}

// contactErased reports whether contact data of a session without any was erased: the thirtieth
// day after its end erases it, and an earlier erasure removes the payer's number and the labels
// of dues, which every session has that had them.
func contactErased(s checkout.Session) bool {
	c := s.Collection
	return s.Archived || len(s.Items) > 0 && s.Items[0].Label == "" || c != nil && c.Channel.ByPhone() && c.PayerMasked == ""
}

// dues returns what the ERP says of the session's dues. Unknown ones are zero.
func (m *Maker) dues(ctx context.Context, s checkout.Session) []document.Due {
	ctx, cancel := context.WithTimeout(ctx, duesPatience)
	defer cancel()
	out := make([]document.Due, len(s.Items))
	answers := map[string]erp.Answer{}
	for i, item := range s.Items {
		if item.ERPDueRef == "" || item.SubjectRef == "" {
			continue
		}
		answer, asked := answers[item.SubjectRef]
		if !asked {
			var err error
			if answer, err = m.cfg.Dues.List(ctx, s.TenantID, s.Live, item.SubjectRef); err != nil && !errors.Is(err, erp.ErrNoERP) && ctx.Err() == nil {
				m.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "asking an ERP about the dues of a notice", slog.Any("error", err))
			}
			answers[item.SubjectRef] = answer
		}
		if due, ok := answer.Find(item.ERPDueRef); ok && due.Currency == s.Currency {
			out[i] = document.Due{Original: due.Original, AllowPartial: due.AllowPartial, Minimum: due.Minimum, DueOn: due.DueDate}
		}
	}
	return out
}
