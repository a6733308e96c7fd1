package papers

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"quittance/checkout"
	"quittance/checkout/document"
	"quittance/checkout/money"
	"quittance/internal/erp"
	"quittance/internal/personal"
	"quittance/internal/registry"
)

// duesPatience is how long a notice waits for what the agency's ERP says of its dues beyond
// what the session knows. A notice without it is complete enough to pay.
const duesPatience = 2 * time.Second

// Registry is the part of the configuration that papers show. It answers from memory.
type Registry interface {
	Agency(id string) (registry.Agency, bool)
	// Configured reports whether the agency can be paid by an offer in a mode and currency.
	Configured(agencyID string, live bool, offerID, currency string) bool
}

// Contacts opens contact data: personal.Store.
type Contacts interface {
	Customer(ctx context.Context, sessionID string, sealed []byte) (checkout.Customer, error)
}

// Dues asks the agencies' ERPs what somebody owes: erp.Dues.
type Dues interface {
	List(ctx context.Context, agencyID string, live bool, subjectRef string) (erp.Answer, error)
}

// Config of a Maker. All fields are required.
type Config struct {
	Registry Registry
	Contacts Contacts
	Dues     Dues
	// Base is the address of the pages, without a slash at its end.
	Base string
	Now  func() time.Time
	Log  *slog.Logger
}

// Maker gathers what a paper says about a session. It is safe for concurrent use.
type Maker struct{ cfg Config }

// NewMaker makes a Maker.
func NewMaker(cfg Config) (*Maker, error) {
	if cfg.Registry == nil || cfg.Contacts == nil || cfg.Dues == nil || cfg.Base == "" || cfg.Now == nil || cfg.Log == nil {
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
		if m.cfg.Registry.Configured(s.TenantID, s.Live, o.ID, s.Currency) {
			payable = append(payable, o)
		}
	}
	s.Offers = payable
	return document.NewNotice(lang, document.Slip{
		Session: s, Agency: m.agency(s.TenantID), Taxpayer: document.MaskName(m.customer(ctx, s).Name), Dues: m.dues(ctx, s), Base: m.cfg.Base,
	})
}

// agency has no name if the registry does not know the agency.
func (m *Maker) agency(id string) document.Agency {
	a, _ := m.cfg.Registry.Agency(id)
	return document.Agency{Name: a.Name, Address: a.Address, Phone: a.Contact.Phone, Email: a.Contact.Email, Hours: a.Contact.Hours, Logo: a.Logo}
}

// customer returns the session's contact data; the zero value if there is none or it does
// not open.
func (m *Maker) customer(ctx context.Context, s checkout.Session) checkout.Customer {
	if len(s.CustomerSealed) == 0 {
		return checkout.Customer{}
	}
	c, err := m.cfg.Contacts.Customer(ctx, s.ContactID(), s.CustomerSealed)
	if err != nil && !errors.Is(err, personal.ErrErased) {
		m.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "opening contact data for a notice", slog.Any("error", err))
	}
	return c
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
