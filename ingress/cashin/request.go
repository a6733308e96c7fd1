package cashin

import (
	"context"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"quittance/checkout"
	"quittance/internal/address"
	"quittance/internal/registry"
)

// Lengths of texts (contract, "Limits").
const (
	longestExternal = 200
	longestText     = 2000
	longestURL      = 2048
	longestContact  = 200
	longestAddress  = 500
	longestProvider = 32
)

// request is the body of init-checkout or partners/payments.
type request struct {
	// session has the well-formed fields of the body and nothing else.
	session checkout.Session
	// provider and phone are of partners/payments.
	provider, phone string
}

// common reads the fields that both bodies have.
func (o object) common(kind checkout.CashinKind) checkout.Session {
	return checkout.Session{
		OrderID: o.text("externalNumber", true, 1, longestExternal), Amount: o.amount(), Description: o.text("description", false, 0, longestText),
		Currency: currency, Mode: checkout.ModeHosted, Cashin: &checkout.Cashin{Kind: kind, Items: o.items()},
	}
}

// readInit reads the body of init-checkout. The error is a *faulty.
func (a *API) readInit(ctx context.Context, o object, app registry.Application, live bool) (request, error) {
	s := o.common(checkout.CashinInit)
	s.Cashin.Type = o.oneOf("type", "ecommerce", "service")
	o.object("customer", func(in object) {
		s.Customer = &checkout.Customer{
			Name: in.text("full_name", true, 1, longestContact), Address: in.text("address", true, 1, longestAddress), Phone: in.text("phone", true, 1, longestContact),
		}
	})
	o.object("merchant", func(in object) {
		s.SuccessURL = in.returnURL("redirectUrl", app.Cashin.RedirectOrigins)
		s.CancelURL = in.returnURL("backUrl", app.Cashin.RedirectOrigins)
		s.Cashin.WebhookURL = a.webhookURL(ctx, in, live)
		in.text("coverUrl", false, 0, longestURL) // a picture that nothing of ours shows or calls
		s.Note = in.text("note", false, 0, longestText)
	})
	return request{session: s}, o.faults.err()
}

// readPay reads the body of partners/payments. The error is a *faulty.
func readPay(o object, _ registry.Application, _ bool) (request, error) {
	q := request{session: o.common(checkout.CashinPartner), provider: o.text("provider", true, 1, longestProvider)}
	needsPhone := providers[q.provider].phone
	var c checkout.Customer
	read := func(in object) {
		c = checkout.Customer{
			Name: in.text("full_name", false, 0, longestContact), Address: in.text("address", false, 0, longestAddress), Phone: in.text("phone", needsPhone, 1, longestContact),
		}
	}
	if o.values["customer"] == nil && needsPhone {
		read(object{o.prefix + "customer.", nil, o.faults})
	}
	o.object("customer", read)
	if c != (checkout.Customer{}) {
		q.session.Customer, q.phone = &c, c.Phone
	}
	return q, o.faults.err()
}

// returnURL reads an address to which the citizen returns. Its origin must be authorised.
func (o object) returnURL(field string, origins []string) string {
	s := o.text(field, false, 1, longestURL)
	if s == "" {
		return ""
	}
	origin, ok := originOf(s)
	switch {
	case !ok:
		o.fault(field, ruleURL, "must be an absolute URL without a user name, spaces or backslashes")
	case !slices.Contains(origins, origin):
		o.fault(field, ruleURL, "must be of an origin that is authorised for the application")
	default:
		return s
	}
	return ""
}

// originOf returns the origin of an address, as browsers understand it. ok is false for a
// text that some of them read in another way.
func originOf(s string) (origin string, ok bool) {
	if strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' }) {
		return "", false
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.Opaque != "" || u.Hostname() == "" ||
		strings.ContainsAny(u.Host, "%@") || strings.HasPrefix(s[len(u.Scheme):], ":///") {
		return "", false
	}
	host := strings.ToLower(u.Hostname())
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port := u.Port(); port != "" && !(u.Scheme == "https" && port == "443") && !(u.Scheme == "http" && port == "80") {
		host += ":" + port
	}
	return u.Scheme + "://" + host, true
}

// resolvePatience is how long a webhook's name may take to resolve.
const resolvePatience = time.Second

// webhookURL reads merchant.webhookUrl. A name that cannot be resolved is accepted: the
// address is checked again before each call. The name of a form that is refused anyway is not resolved, because such a
// call does not count against a quota.
func (a *API) webhookURL(ctx context.Context, o object, live bool) string {
	s := o.text("webhookUrl", false, 1, longestURL)
	if s == "" {
		return ""
	}
	rule := a.webhooks(live)
	u, err := rule.Check(s)
	if err == nil && len(o.faults.list) == 0 && !(rule.Loopback && u.Scheme == "http" && net.ParseIP(u.Hostname()) != nil) {
		err = a.checkResolved(ctx, rule, u.Hostname())
	}
	if err != nil {
		o.fault("webhookUrl", ruleURL, err.Error())
		return ""
	}
	return s
}

// webhooks returns the rule of webhooks' addresses in a mode.
func (a *API) webhooks(live bool) address.Rule {
	rule := a.cfg.Webhooks
	rule.Plain = !live
	return rule
}

func (a *API) checkResolved(ctx context.Context, rule address.Rule, host string) error {
	ctx, cancel := context.WithTimeout(ctx, resolvePatience)
	defer cancel()
	addrs, err := a.cfg.Resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil //nolint:nilerr // checked again before each call
	}
	return rule.CheckResolved(addrs)
}
