// Package batchpapers makes the certificate of an approved batch and the payment advices of its paid lines, as PDF/A-2b with a signed
// code. document decides what they say, internal/papers draws them.
//
// The facts come in two ways. A command proves a batch from Kafka (disbursements.Prove) and prints what is proven: [Maker.Proven],
// [Maker.ProvenLine]. The pages of staff do not read the events: they print what the rows of Postgres say when they agree with each
// other, with what approvers signed and with the signed rows of people's passkeys: [Maker.Certificate], [Maker.Advice]. A paper is
// made of a batch or a line that holds, or there is none.
package batchpapers

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/disbursement/paper"
	"quittance/document"
	"quittance/internal/batchseal"
	"quittance/internal/disbursements"
	"quittance/internal/identity"
	"quittance/internal/papers"
	"quittance/internal/receipts"
	"quittance/internal/registry"
	"quittance/money"
)

// Config of a Maker. All fields but Address are required.
type Config struct {
	Batches *disbursements.Store
	// Lines opens the contents of lines.
	Lines disbursements.Opener
	// Agency returns what papers show of an agency; false for one that is not known.
	Agency func(id string) (registry.Agency, bool)
	Signer *batchseal.Signer
	// Address is that of the pages for citizens, where codes lead, without a slash at its end. Papers have no code when it is empty.
	Address string
}

// Maker makes papers. It is safe for concurrent use.
type Maker struct {
	cfg  Config
	host string
}

// New makes a Maker.
func New(cfg Config) (*Maker, error) {
	if cfg.Batches == nil || cfg.Lines == nil || cfg.Agency == nil || cfg.Signer == nil {
		return nil, errors.New("batchpapers: Batches, Lines, Agency and Signer are required")
	}
	m := &Maker{cfg: cfg}
	if cfg.Address == "" {
		return m, nil
	}
	u, err := url.Parse(cfg.Address)
	if err != nil || u.Host == "" {
		return nil, errors.New("batchpapers: Address is not an absolute address")
	}
	m.cfg.Address, m.host = u.Scheme+"://"+u.Host, u.Host
	return m, nil
}

// Paper is a paper as PDF/A-2b.
type Paper struct {
	// Name is that of the file, without its ending: letters, digits and hyphens.
	Name string
	PDF  []byte
	// Token is what its code says; empty for a paper without a code.
	Token string
}

// DiffersError says in what the rows of a batch do not agree. No paper is made of them.
type DiffersError struct{ Found []disbursements.Difference }

// Error names what differs.
func (e *DiffersError) Error() string {
	parts := make([]string, len(e.Found))
	for i, d := range e.Found {
		parts[i] = string(d)
	}
	return "the rows of the batch are not as they were approved: " + strings.Join(parts, ", ")
}

// ErrErased says that the content of a line was erased, or cannot be opened: an advice would have no payee.
var ErrErased = errors.New("the content of the line was erased, or cannot be opened")

// ErrUnproven says that the events of a batch do not prove it.
var ErrUnproven = errors.New("the events of the batch do not prove it")

// Staff are the names and passkeys of people: identity.People.
type Staff struct {
	identity.People
	Roster disbursement.Roster
}

// person returns who has an id, by the verified name and the staff number of the roster.
func (s Staff) person(id string) document.Person {
	p := document.Person{ID: id, Name: s.Name(id)}
	if x, ok := s.Roster.Find(id); ok {
		p.Number = x.Number
	}
	return p
}

// Knows reports whether a passkey is, or was, that of a person whose row is as it was signed. It is a disbursements.Passkeys.
func (s Staff) Knows(person string, key [32]byte) bool {
	return slices.ContainsFunc(s.Staff, func(e identity.StaffEntry) bool {
		return e.ID == person && !e.Forged && slices.ContainsFunc(e.Passkeys, func(k identity.StaffPasskey) bool {
			return !k.Forged && string(k.SPKIHash) == string(key[:])
		})
	})
}

// agency returns what papers show of an agency, with its slug.
func (m *Maker) agency(id string) (document.Agency, string) {
	a, _ := m.cfg.Agency(id) // an unknown one has no name, and then there is no paper
	return document.Agency{Name: a.Name, Address: a.Address, Phone: a.Contact.Phone, Email: a.Contact.Email, Hours: a.Contact.Hours, Logo: a.Logo}, a.Slug
}

// Slug returns what an agency is called in tokens; empty for one that is not known.
func (m *Maker) Slug(agencyID string) string {
	_, slug := m.agency(agencyID)
	return slug
}

// checkAddress is where anybody verifies a paper, as it is printed.
func (m *Maker) checkAddress() string {
	if m.host == "" {
		return ""
	}
	return m.host + "/q"
}

// seal returns the token of a paper and the address that its code holds; empty for a paper without a code.
func (m *Maker) seal(live bool, c batchseal.Claims) (token, address string, err error) {
	if m.host == "" {
		return "", "", nil
	}
	c.Version, c.Issuer = batchseal.Version, m.host
	if token, err = m.cfg.Signer.Token(live, c); err != nil {
		return "", "", err
	}
	return token, receipts.Address(m.cfg.Address, token), nil
}

// approval is what is printed of a batch.
type approval struct {
	batch      disbursement.Batch
	content    digest.Batch
	given      []disbursements.ProvenApproval
	releasedBy string
}

// Certificate returns the certificate of a batch as its rows have it. The error is a *DiffersError, document.ErrUnapproved, or
// disbursements.ErrUnknown.
func (m *Maker) Certificate(ctx context.Context, lang money.Language, in disbursements.Scope, batch string, staff Staff, now time.Time) (out Paper, err error) {
	err = m.cfg.Batches.Snapshot(ctx, func(at *disbursements.Store) error {
		b, err := at.Batch(ctx, in, batch)
		switch {
		case err != nil:
			return err
		case b.SealedAt.IsZero():
			return document.ErrUnapproved
		}
		stands, err := at.Stands(ctx, m.cfg.Lines, staff.Knows, b)
		switch {
		case err != nil:
			return err
		case b.Status != disbursement.StatusApproved && b.Status != disbursement.StatusReleasing && b.Status != disbursement.StatusDone:
			return document.ErrUnapproved
		case len(stands.Found) > 0:
			return &DiffersError{stands.Found}
		}
		out, err = m.certificate(lang, approval{b.Batch, b.Sealing.Content, stands.Approvals, stands.ReleasedBy}, staff, now)
		return err
	})
	return out, err
}

// Proven returns the certificate of a batch that Kafka has proven, without faults. The error is document.ErrUnapproved for one that
// was not approved.
func (m *Maker) Proven(lang money.Language, p disbursements.Proof, staff Staff, now time.Time) (Paper, error) {
	if len(p.Faults) > 0 {
		return Paper{}, ErrUnproven
	}
	return m.certificate(lang, approval{p.Batch, p.Content, p.Approvals, p.ReleasedBy}, staff, now)
}

func (m *Maker) certificate(lang money.Language, of approval, staff Staff, now time.Time) (Paper, error) {
	b := of.batch
	now = now.UTC().Truncate(time.Second)
	agency, slug := m.agency(b.TenantID)
	var given []paper.Given
	for _, a := range of.given {
		given = append(given, paper.Given{Level: a.Level, Person: a.Person, For: a.For, At: a.At, Passkey: a.Key})
	}
	c, err := document.NewCertificate(lang, paper.Approval(b, of.content, given, of.releasedBy, staff.person, document.Approval{Agency: agency, At: now, CheckAddress: m.checkAddress()}))
	if err != nil {
		return Paper{}, err
	}
	claims := batchseal.Claims{
		Kind: batchseal.KindCertificate, IssuedAt: now.Unix(), Agency: slug, BatchRef: b.BatchRef, Revision: b.Revision, Amount: b.Sum, Currency: b.Currency,
		State: string(b.Status), Batch: b.ID, Count: b.Count, Digest: batchseal.DigestClaim(b.Digest),
	}
	if b.Held() {
		claims.Held = 1
	}
	token, address, err := m.seal(b.Live, claims)
	if err != nil {
		return Paper{}, err
	}
	pdf, err := papers.CertificatePDF(c, address)
	return Paper{c.Name, pdf, token}, err
}

// Advice returns the advice of the line at a position as its rows have it. The error is a *DiffersError, document.ErrUnpaid, ErrErased,
// or disbursements.ErrUnknown.
func (m *Maker) Advice(ctx context.Context, lang money.Language, in disbursements.Scope, batch string, position int, staff Staff, now time.Time) (out Paper, err error) {
	err = m.cfg.Batches.Snapshot(ctx, func(at *disbursements.Store) error {
		b, err := at.Batch(ctx, in, batch)
		switch {
		case err != nil:
			return err
		case b.SealedAt.IsZero():
			return document.ErrUnpaid
		}
		l, err := at.PaidLine(ctx, m.cfg.Lines, staff.Knows, b, position)
		paid := l.Status == disbursement.LinePaid || l.Status == disbursement.LineReturned
		switch {
		case err != nil:
			return err
		case !paid || l.Contested:
			return document.ErrUnpaid
		case !l.Opened:
			return ErrErased
		case len(l.Found) > 0:
			return &DiffersError{l.Found}
		}
		out, err = m.advice(lang, b.Batch, l.Line, l.Content, l.History, now)
		return err
	})
	return out, err
}

// ProvenLine returns the advice of a line that Kafka has proven paid, with the content that was opened. The error is
// document.ErrUnpaid, ErrErased, or a *DiffersError for another content than was approved.
func (m *Maker) ProvenLine(lang money.Language, p disbursements.Proof, l disbursements.OpenLine, now time.Time) (Paper, error) {
	if len(p.Faults) > 0 {
		return Paper{}, ErrUnproven
	}
	proven, known := p.Outcome(l.Position)
	switch {
	case !known || !proven.Evidenced(proven.Line):
		return Paper{}, document.ErrUnpaid
	case !l.Opened:
		return Paper{}, ErrErased
	}
	if leaf, err := digest.Leaf(l.Salt, l.Content); err != nil || leaf != proven.Leaf || l.Content.Amount != proven.Amount {
		return Paper{}, &DiffersError{[]disbursements.Difference{disbursements.DifferentLines}}
	}
	return m.advice(lang, p.Batch, proven.Line, l.Content, proven.History, now)
}

func (m *Maker) advice(lang money.Language, b disbursement.Batch, l disbursement.Line, c digest.Line, h disbursement.History, now time.Time) (Paper, error) {
	now = now.UTC().Truncate(time.Second)
	agency, slug := m.agency(b.TenantID)
	p := paper.Payout(b, l, c, h, document.Payout{Agency: agency, At: now, CheckAddress: m.checkAddress()})
	a, err := document.NewAdvice(lang, p)
	if err != nil {
		return Paper{}, err
	}
	claims := batchseal.Claims{
		Kind: batchseal.KindAdvice, IssuedAt: now.Unix(), Agency: slug, BatchRef: b.BatchRef, Revision: b.Revision, Amount: c.Amount, Currency: c.Currency,
		State: string(l.Status), LineRef: c.LineRef, PayoutRef: p.PayoutRef, OperatorRef: p.OperatorRef, PaidAt: p.PaidAt.Unix(),
	}
	if !p.ReturnedAt.IsZero() {
		claims.ReturnedAt = p.ReturnedAt.Unix()
	}
	token, address, err := m.seal(b.Live, claims)
	if err != nil {
		return Paper{}, err
	}
	pdf, err := papers.AdvicePDF(a, address)
	return Paper{fmt.Sprintf("%05d-%s", p.Number, a.Name), pdf, token}, err
}
