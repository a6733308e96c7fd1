package citizen

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"quittance/checkout"
	"quittance/internal/commands"
	"quittance/internal/contact"
	"quittance/internal/drafts"
	"quittance/internal/erp"
	"quittance/internal/form"
	"quittance/internal/registry"
	"quittance/money"
)

// MaxItems is how many dues a cart has at most.
const MaxItems = 20

// cartsPerMinute is how many carts an account may make, over all instances.
const cartsPerMinute = 20

// CheckoutItem is a due of a cart.
type CheckoutItem struct {
	// TenantID and SubjectRef may be empty where the account has one link that fits.
	TenantID, SubjectRef string
	ERPDueRef            string
	// Amount is what is to be paid of it, in minor units; nil for all.
	Amount *int64
	// Outstanding is what the citizen was shown; nil for what the session saw last. Currency is
	// that of the amount; without it any is what was shown.
	Outstanding *int64
	Currency    string `json:",omitempty"`
}

// CheckoutRequest makes a session that pays dues of one agency.
type CheckoutRequest struct {
	// IdempotencyKey has 1 to 255 printable ASCII characters. The same one is the same
	// session.
	IdempotencyKey string `json:"-"`
	Items          []CheckoutItem
	// Replace takes the dues from open sessions of the portal that nobody is paying.
	Replace               bool
	SuccessURL, CancelURL string
}

// Cart is the result of Checkout.
type Cart struct {
	Session checkout.Session
	// Replayed says that an earlier request with the key made the session.
	Replayed bool
}

// cart is a checkout under way.
type cart struct {
	CheckoutRequest
	who    Visitor
	portal registry.Application
	agency registry.Agency
	// links are those of the items; answers those of the links, each once.
	links   []Link
	answers []answered
	// dues are those of the items, as the ERP states them now; changed are the positions of
	// items that are not what the citizen was shown.
	dues    []erp.Due
	changed []int
	form    *form.Form
	// refusal is why the cart cannot become a session now.
	refusal error
}

// item returns the path of a field of an item.
func item(i int, field string) string { return "items." + strconv.Itoa(i) + "." + field }

// Checkout makes a session that pays dues, as the agency's ERP states them now. Refusals:
//
//   - generic.validation_failed, with the fields at fault
//   - citizen.due_changed, with the dues as they are now
//   - citizen.due_in_payment, with the fields of the dues that are claimed
//   - citizen.source_unavailable, when the ERP does not tell what is owed
//   - checkout.no_channel, idempotency.key_invalid, idempotency.key_reused, generic.rate_limited
func (s *Service) Checkout(ctx context.Context, who Visitor, q CheckoutRequest) (Cart, error) {
	if !drafts.ValidKey(q.IdempotencyKey) {
		return Cart{}, refused("idempotency.key_invalid")
	}
	c := &cart{CheckoutRequest: q, who: who, form: form.Of(nil)}
	if err := s.choose(ctx, c); err != nil {
		return Cart{}, err
	}
	allowance, ok, err := s.cfg.Quotas.Admit(ctx, who.ID, cartsPerMinute)
	if err != nil {
		return Cart{}, err
	}
	if !ok {
		return Cart{}, limited(allowance.Reset)
	}
	err = s.compare(ctx, c)
	session := s.blank(c)
	if err == nil {
		session, err = s.draft(c)
	}
	faults, err := c.faults(err)
	if err != nil {
		return Cart{}, err
	}
	if len(faults) > 0 {
		session = s.blank(c)
	}
	return s.create(ctx, c, session, faults)
}

// faults are why the cart becomes no session, after compare and draft ended with err. The
// processor gives them back unless it has an earlier answer for the key: that one is repeated,
// whatever the ERP says now. Another error of compare and draft is returned.
func (c *cart) faults(err error) ([]checkout.Fault, error) {
	r, faulty := (*Refusal)(nil), (*form.FaultsError)(nil)
	switch {
	case errors.As(err, &faulty):
		c.refusal = err
		return []checkout.Fault{{Code: checkout.CodeValidationFailed}}, nil
	case errors.As(err, &r):
		c.refusal = err
		return []checkout.Fault{{Code: checkout.Code(r.Code)}}, nil
	case err != nil:
		return nil, err
	}
	var out []checkout.Fault
	for _, i := range c.changed {
		out = append(out, checkout.Fault{Code: checkout.CodeDueChanged, Field: item(i, "erp_due_ref"), Rule: "changed", Message: "the due is not what was shown"})
	}
	return out, nil
}

// choose finds the links of the items, which must be of one agency with a portal. It asks no
// ERP.
func (s *Service) choose(ctx context.Context, c *cart) error {
	f := c.form
	switch {
	case len(c.Items) == 0:
		f.Fault("items", "required", "must have at least one due")
	case len(c.Items) > MaxItems:
		f.Fault("items", "size", fmt.Sprintf("must have at most %d dues: pay the others in a second cart", MaxItems))
	}
	if err := f.Err(); err != nil {
		return err
	}
	links, err := s.linksOf(ctx, c.who.ID)
	if err != nil {
		return err
	}
	for i, it := range c.Items {
		fits := slices.DeleteFunc(slices.Clone(links), func(l Link) bool {
			return it.TenantID != "" && l.Agency.ID != it.TenantID || it.SubjectRef != "" && l.SubjectRef != it.SubjectRef
		})
		switch {
		case len(fits) == 0:
			f.Fault(item(i, "subject_ref"), "linked", "must be a reference of the agency that the account is linked to")
			fits = []Link{{}}
		case len(fits) > 1 && it.TenantID == "":
			f.Fault(item(i, "tenant_id"), "required", "is required, as the account has several links")
		case len(fits) > 1:
			f.Fault(item(i, "subject_ref"), "required", "is required, as the account has several references at the agency")
		case i > 0 && c.links[0].Agency.ID != "" && fits[0].Agency.ID != c.links[0].Agency.ID:
			f.Fault(item(i, "tenant_id"), "one_agency", "must be the agency of the first due: pay another agency in a second cart")
		case slices.ContainsFunc(c.Items[:i], func(other CheckoutItem) bool { return other.ERPDueRef == it.ERPDueRef }):
			f.Fault(item(i, "erp_due_ref"), "repeated", "must be in the cart once")
		}
		c.links = append(c.links, fits[0])
	}
	s.checkURLs(c)
	if err := f.Err(); err != nil {
		return err
	}
	c.agency = c.links[0].Agency
	var ok bool
	if c.portal, ok = s.cfg.Registry.PortalOf(c.agency.ID); !ok || !c.portal.Active {
		return refused(CodeSourceUnavailable)
	}
	s.checkReturn(c)
	return f.Err()
}

const maxURL = 2048

// checkURLs checks the form of the addresses to which the citizen returns.
func (s *Service) checkURLs(c *cart) {
	for field, address := range map[string]string{"success_url": c.SuccessURL, "cancel_url": c.CancelURL} {
		u, err := url.Parse(address)
		switch {
		case address == "":
		case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
			c.form.Fault(field, "url", "must be an absolute URL")
		case len(address) > maxURL:
			c.form.Fault(field, "length", form.LengthRule(1, maxURL))
		case u.User != nil:
			c.form.Fault(field, "url", "must not have a user name or a password")
		}
	}
}

// checkReturn refuses addresses of other origins than ours and those that the agency lists.
func (s *Service) checkReturn(c *cart) {
	for field, address := range map[string]string{"success_url": c.SuccessURL, "cancel_url": c.CancelURL} {
		listed := slices.ContainsFunc(c.portal.SuccessOrigins, func(origin string) bool { return sameOrigin(address, origin) })
		if address != "" && !listed && !sameOrigin(address, s.cfg.PublicURL) {
			c.form.Fault(field, "origin", "must be an address of the portal, or of an origin in portal.success_origins of the agency")
		}
	}
}

// compare asks the ERP again, and compares each due with what the citizen was shown.
func (s *Service) compare(ctx context.Context, c *cart) error {
	var distinct []Link
	for _, l := range c.links {
		if !slices.ContainsFunc(distinct, func(d Link) bool { return d.ID == l.ID }) {
			distinct = append(distinct, l)
		}
	}
	var err error
	if c.answers, err = s.pull(ctx, distinct, s.cfg.Dues.Fresh); err != nil {
		return err
	}
	for i, it := range c.Items {
		a := c.answers[slices.IndexFunc(c.answers, func(a answered) bool { return a.link.ID == c.links[i].ID })]
		if a.Status != erp.SourceOK {
			return &Refusal{Code: CodeSourceUnavailable, RetryAfter: sourceRetry}
		}
		due, found := a.Find(it.ERPDueRef)
		shown := found
		switch {
		case !found:
		case it.Outstanding != nil:
			shown = *it.Outstanding == due.Outstanding && (it.Currency == "" || it.Currency == due.Currency)
		default:
			seen, err := s.cfg.Citizens.HasSeen(ctx, c.who.session, s.subject(a.link), seenOf(due))
			if err != nil {
				return err
			}
			shown = seen[0]
		}
		if !shown {
			c.changed = append(c.changed, i)
		}
		c.dues = append(c.dues, due)
	}
	return nil
}

// sourceRetry is the RetryAfter while an ERP does not answer.
const sourceRetry = 10 * time.Second

// blank is a session without dues. The processor needs a whole one only for what it creates.
func (s *Service) blank(c *cart) checkout.Session {
	return checkout.Session{
		ApplicationID: c.portal.ID, TenantID: c.agency.ID, Live: s.cfg.Live, ERP: true, Mode: checkout.ModeHosted, CitizenID: c.who.ID,
		Amount: 1, Currency: "XAF",
	}
}

// draft makes the session of a cart. The error is why the dues cannot be paid so.
func (s *Service) draft(c *cart) (checkout.Session, error) {
	session := s.blank(c)
	if len(c.changed) > 0 {
		return session, nil
	}
	session.Amount, session.SuccessURL, session.CancelURL, session.PulledAt = 0, c.SuccessURL, c.CancelURL, c.answers[0].pulledAt
	for _, a := range c.answers {
		if a.pulledAt.Before(session.PulledAt) {
			session.PulledAt = a.pulledAt
		}
	}
	for i, due := range c.dues {
		it := c.toItem(i, due)
		c.checkAmount(i, it.Amount, due)
		session.Amount += it.Amount
		session.Items = append(session.Items, it)
	}
	if session.Amount > form.MaxAmount {
		c.form.Fault("items", "range", "must add up to at most "+strconv.FormatInt(form.MaxAmount, 10)+": pay them in several carts")
	}
	session.Currency = c.dues[0].Currency
	if err := c.form.Err(); err != nil {
		return session, err
	}
	session.Description = c.description()
	if same := session.Items[0]; !slices.ContainsFunc(session.Items, func(it checkout.Item) bool { return it.ServiceCode != same.ServiceCode }) {
		session.ServiceCode, session.ServiceLabel = same.ServiceCode, same.ServiceLabel
	}
	return session, s.price(c, &session)
}

// maxDescription is the longest description of a session, in characters.
const maxDescription = 200

// description has the labels of the dues.
func (c *cart) description() string {
	labels := make([]string, len(c.dues))
	for i, d := range c.dues {
		labels[i] = d.Label
	}
	text := []rune(strings.Join(labels, " · "))
	if len(text) > maxDescription {
		return string(text[:maxDescription-1]) + "…"
	}
	return string(text)
}

// toItem is a due of the session.
func (c *cart) toItem(i int, due erp.Due) checkout.Item {
	it := checkout.Item{
		ERPDueRef: due.Ref, SubjectRef: c.links[i].SubjectRef, Label: due.Label, ServiceCode: due.Service.Code, ServiceLabel: due.Service.Label,
		Amount: due.Outstanding, Outstanding: due.Outstanding,
	}
	if given := c.Items[i].Amount; given != nil {
		it.Amount = *given
	}
	return it
}

// checkAmount checks what is to be paid of a due.
func (c *cart) checkAmount(i int, amount int64, due erp.Due) {
	field := item(i, "amount_minor")
	switch {
	case due.Currency != c.dues[0].Currency:
		c.form.Fault(item(i, "erp_due_ref"), "one_currency", "must be owed in "+c.dues[0].Currency+", as the first due of the cart: pay it in a second cart")
	case due.Paid():
		c.form.Fault(item(i, "erp_due_ref"), "paid", "has nothing left to pay")
	case due.Takes(amount):
	case !due.AllowPartial:
		c.form.Fault(field, "range", fmt.Sprintf("must be %d, the outstanding amount: the due cannot be paid in parts", due.Outstanding))
	default:
		c.form.Fault(field, "range", fmt.Sprintf("must be from %d to %d, the outstanding amount", due.Minimum, due.Outstanding))
	}
}

// price sets the offers of a session.
func (s *Service) price(c *cart, session *checkout.Session) error {
	session.Offers = c.portal.PricedOffers(session.Amount,
		func(id string) bool { return s.offers(c.agency.ID, id, session.Currency) },
		func(channel checkout.Channel) (money.Schedule, bool) {
			return s.cfg.Registry.Fee(c.agency.ID, channel, session.Currency)
		})
	payable := slices.ContainsFunc(session.Offers, func(o checkout.Offer) bool {
		return s.cfg.Registry.HasChannel(c.agency.ID, s.cfg.Live, o.ID, session.Currency)
	})
	if !payable {
		return refused(string(checkout.CodeNoChannel))
	}
	return nil
}

// create asks the processor for the session. Faults are those of draft.
func (s *Service) create(ctx context.Context, c *cart, session checkout.Session, faults []checkout.Fault) (Cart, error) {
	now := s.now()
	session.CreatedAt, session.ExpiresAt = now, now.Add(c.portal.SessionLifetime)
	body, err := json.Marshal(c.CheckoutRequest)
	if err != nil {
		return Cart{}, err
	}
	hash := sha256.Sum256(body)
	if len(faults) == 0 {
		if session.Customer, err = s.customer(ctx, c.who.ID); err != nil {
			return Cart{}, err
		}
	}
	if err := s.cfg.Drafts.Complete(ctx, &session); err != nil {
		return Cart{}, err
	}
	session.OrderID = session.NoticeRef
	answer, err := s.cfg.Drafts.Create(ctx, &session, checkout.Create{
		Session: session, IdempotencyKey: c.who.ID + " " + c.IdempotencyKey, BodyHash: hash[:],
		CreationsPerMinute: c.portal.CreationsPerMinute, Replace: c.Replace, Faults: faults,
	}, commands.DefaultTimeout)
	if err != nil {
		return Cart{}, err
	}
	if answer.Code != checkout.CodeOK {
		return Cart{}, s.refusalOf(ctx, c, answer)
	}
	if answer.Replayed {
		return Cart{*answer.Session, true}, nil
	}
	session.Status = checkout.StatusOpen // the reply to a first creation leaves the session out
	return Cart{session, false}, nil
}

// customer has the account's addresses, for the receipt and the payer's number; nil without one.
func (s *Service) customer(ctx context.Context, citizenID string) (*checkout.Customer, error) {
	addresses, err := s.cfg.Citizens.Addresses(ctx, citizenID)
	if err != nil {
		return nil, err
	}
	var customer checkout.Customer
	for _, a := range addresses {
		switch {
		case a.Kind == contact.Phone && customer.Phone == "":
			customer.Phone = a.Text()
		case a.Kind == contact.Email && customer.Email == "":
			customer.Email = a.Text()
		}
	}
	if customer == (checkout.Customer{}) {
		return nil, nil
	}
	return &customer, nil
}

// refusalOf is the refusal that an answer of the processor is.
func (s *Service) refusalOf(ctx context.Context, c *cart, a checkout.Answer) error {
	if c.refusal != nil && !a.Replayed && a.Code != checkout.CodeKeyReused {
		return c.refusal
	}
	r := refused(string(a.Code))
	switch a.Code {
	case checkout.CodeDueInPayment:
		r.Code = CodeDueInPayment
		for _, f := range a.Faults {
			r.Faults = append(r.Faults, form.Fault{Field: f.Field, Rule: f.Rule, Message: f.Field + ": " + f.Message + "."})
		}
	case checkout.CodeDueChanged:
		list, err := s.listOf(ctx, c.who, c.answers)
		if err != nil {
			return err
		}
		for _, f := range a.Faults {
			r.Faults = append(r.Faults, form.Fault{Field: f.Field, Rule: f.Rule, Message: f.Field + ": " + f.Message + "."})
		}
		r.Dues = []Due{} // the dues of the cart that the ERP still lists
		for _, d := range list.Dues {
			if slices.ContainsFunc(c.Items, func(it CheckoutItem) bool { return it.ERPDueRef == d.Ref }) {
				r.Dues = append(r.Dues, d)
			}
		}
	case checkout.CodeRateLimited:
		r.RetryAfter = a.RetryAfter
	case checkout.CodeKeyReused:
	default:
		return errors.New("a cart was answered with " + string(a.Code))
	}
	return r
}
