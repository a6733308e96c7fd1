package registryfile

import (
	"errors"
	"fmt"
	"net/mail"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"quittance/checkout"
	"quittance/internal/address"
	"quittance/internal/connector"
	"quittance/internal/form"
	"quittance/internal/identity"
	"quittance/internal/registry"
	"quittance/internal/registry/db"
	"quittance/internal/secret"
	"quittance/money"
)

// contents holds what a file says, in the form of the queries' parameters. A nil pointer
// or list is an omitted field. The paths serve faults that show only in comparison with
// the rest of the file or with the database.
type contents struct {
	platformOrigins   []string
	platformKeys      []key
	platformEndpoints []endpoint
	agencies          []agency
}

type agency struct {
	path string
	db.UpsertAgencyParams
	services            []service
	mappings            []mapping
	defaultService      *string
	singleApprovalBelow *int64
	latePayments        *string
	logo                []byte // as pages show it; nil: omitted
	address             string // empty: omitted
	contact             *db.SetAgencyContactParams
	receipt             *db.SetAgencyReceiptParams
	fees                []db.UpsertFeeParams
	erp                 []registry.ERPSettings
	accounts            []account
	payouts             []payout
	statementAccounts   []statementAccount
	applications        []application
	portal              *portal // nil: omitted
	clerks              []clerk
}

type service struct {
	path                   string
	db.UpsertServiceParams // ID may be empty
}

type mapping struct {
	path string
	db.UpsertServiceMappingParams
}

type application struct {
	path string
	db.UpsertApplicationParams
	keys      []key
	endpoints []endpoint
	cashin    *registry.Cashin
	pair      cashinPair
}

type portal struct {
	path string
	db.UpsertPortalParams
	endpoints []endpoint
}

type clerk struct {
	path string
	identity.Clerk
	settings identity.ClerkSettings
	keys     []key
}

type key struct {
	path           string
	secret         secret.Text
	live           bool
	agencies       []string // of a platform key
	readsPerMinute *int64   // of a platform key
}

type endpoint struct {
	path string
	db.InsertWebhookEndpointParams
	secret secret.Text // empty: one is minted for a new endpoint
}

// Limits of the numbers in a file. A number beyond them is a mistake.
const (
	maxInFlight   = registry.MaxInFlight
	maxPerSecond  = registry.MaxPerSecond
	minLifetime   = registry.MinLifetime
	maxLifetime   = registry.MaxLifetime
	maxPageSize   = registry.MaxPageSize
	maxAmount     = 1 << 53 // minor units
	maxStep       = 10_000  // minor units; the largest note of the franc
	maxName       = registry.MaxName
	maxEmail      = 254 // RFC 5321, section 4.5.3.1.3
	maxCode       = 50  // service_code and revenue_line_code (contract, "Limits")
	maxCredential = 4096

	// What fits the place of the text on a receipt.
	maxReceiptTitle      = 80
	maxReceiptMention    = 240
	maxReceiptAccountant = 120
)

var (
	codePattern     = regexp.MustCompile(`^[a-z][a-z0-9_]{0,49}$`)
	webhookPattern  = regexp.MustCompile(`^whsec_[0-9A-Za-z+/]{20,200}={0,2}$`)
	phonePattern    = regexp.MustCompile(`^\+[0-9](?:[ .-]?[0-9]){7,14}$`)
	headerPattern   = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$")
	cashinProviders = []string{"mobile_money_a", "mobile_money_b", "card_network_a", "card_network_b"}
)

// parser reads the fields of a file.
type parser struct {
	developer bool
	operators connector.Table
	now       time.Time
}

// object is one mapping of the file: a form with the rules of registry files.
type object struct {
	*form.Form
	parser
}

// parse reads a file. The contents are complete only when the form has no faults.
func (p parser) parse(f *form.Form) contents {
	o, c := object{f, p}, contents{}
	o.object("platform", func(o object) {
		o.objects("keys", func(o object) { c.platformKeys = append(c.platformKeys, o.platformKey()) })
		c.platformOrigins = o.Texts("embed_origins", registry.CheckOrigin)
		o.objects("webhook_endpoints", func(o object) { c.platformEndpoints = append(c.platformEndpoints, o.endpoint(nil)) })
	})
	o.objects("agencies", func(o object) { c.agencies = append(c.agencies, o.agency()) })
	return c
}

func (o object) agency() agency {
	a := agency{path: o.Path(), UpsertAgencyParams: db.UpsertAgencyParams{ID: o.id("id", true), Slug: o.slug("slug"), Name: o.name("name"), CreatedAt: o.now}}
	o.objects("services", func(o object) {
		a.services = append(a.services, service{o.Path(), db.UpsertServiceParams{
			ID: o.id("id", false), AgencyID: a.ID, Code: o.code("code", true), Label: o.name("label"), Active: o.Bool("active"),
		}})
	})
	o.objects("service_mappings", func(o object) {
		m := mapping{o.Path(), db.UpsertServiceMappingParams{AgencyID: a.ID, ErpCode: o.text("erp_code", true), ServiceCode: o.code("service", true)}}
		if m.ErpCode != "" && !form.IsLine(m.ErpCode, maxCode) {
			o.fault("erp_code", "format", "must be 1 to %d printable characters", maxCode)
		}
		a.mappings = append(a.mappings, m)
	})
	if c := o.code("default_service", false); c != "" {
		a.defaultService = &c
	}
	if late := o.text("late_payments", false); late != "" {
		a.latePayments = &late
		if late != string(registry.LatePaymentsHold) && late != string(registry.LatePaymentsHonour) {
			o.fault("late_payments", "enum", "must be hold (staff decide about late money) or honour (late money completes its session when nothing is in doubt)")
		}
	}
	a.singleApprovalBelow = o.Integer("single_approval_below", 0, maxAmount)
	if logo := o.text("logo", false); logo != "" {
		var err error
		a.logo, err = parseLogo(logo)
		o.check("logo", err)
	}
	a.address = o.line("address")
	o.object("contact", func(o object) { a.contact = o.contact() })
	o.object("receipt", func(o object) { a.receipt = o.receipt() })
	o.objects("fees", func(o object) { a.fees = append(a.fees, o.fee(a.ID)) })
	o.modes("erp", func(o object, live bool) { a.erp = append(a.erp, o.erp(a.ID, live)) })
	o.modes("connectors", func(o object, live bool) { a.accounts = append(a.accounts, o.accounts(a.ID, live)...) })
	o.modes("payouts", func(o object, live bool) { a.payouts = append(a.payouts, o.payouts(a.ID, live)...) })
	o.object("accounts", func(o object) {
		for _, live := range []bool{false, true} {
			o.objects(registry.Mode(live), func(o object) {
				a.statementAccounts = append(a.statementAccounts, o.statementAccount(a.ID, live))
			})
		}
	})
	o.objects("applications", func(o object) { a.applications = append(a.applications, o.application(a.ID)) })
	o.object("portal", func(o object) { a.portal = o.portal(a.UpsertAgencyParams) })
	o.objects("clerks", func(o object) { a.clerks = append(a.clerks, o.clerk(a.ID)) })
	return a
}

// receipt reads what an agency writes on its receipts. The whole block replaces the previous
// one.
func (o object) receipt() *db.SetAgencyReceiptParams {
	return &db.SetAgencyReceiptParams{
		ReceiptTitle: o.lineOf("title", maxReceiptTitle), ReceiptMention: o.lineOf("mention", maxReceiptMention), ReceiptAccountant: o.lineOf("accountant", maxReceiptAccountant),
	}
}

// contact reads how citizens reach an agency. The whole contact replaces the previous one.
func (o object) contact() *db.SetAgencyContactParams {
	c := db.SetAgencyContactParams{ContactPhone: o.line("phone"), ContactEmail: o.line("email"), ContactHours: o.line("hours")}
	if c.ContactPhone != "" && !phonePattern.MatchString(c.ContactPhone) {
		o.fault("phone", "format", "must be an international number such as +242 22 000 00 00")
	}
	if c.ContactEmail != "" {
		if a, err := mail.ParseAddress(c.ContactEmail); err != nil || a.Address != c.ContactEmail || len(c.ContactEmail) > maxEmail {
			o.fault("email", "format", "must be an address such as contact@impots.example, without a name")
		}
	}
	return &c
}

func (o object) fee(agencyID string) db.UpsertFeeParams {
	f := db.UpsertFeeParams{AgencyID: agencyID, Channel: o.text("channel", true), Currency: money.Default}
	if f.Channel != "" && !slices.Contains(checkout.Channels(), checkout.Channel(f.Channel)) {
		o.fault("channel", "enum", "must be MOBILE_MONEY, CASH, CARD or BANK_TRANSFER")
	}
	if c := o.text("currency", false); c != "" {
		f.Currency = c
		if _, ok := money.Lookup(c); !ok {
			o.fault("currency", "enum", "is not in the contract's list of currencies")
		}
	}
	if ratio := o.text("ratio", false); ratio != "" {
		var err error
		if f.RatioPpm, err = money.ParseRatio(ratio); err != nil {
			o.fault("ratio", "format", `must be a decimal in quotes from "0" to "1" with at most 6 decimals, such as "0.015" for 1.5 %%`)
		}
	}
	if fixed := o.Integer("fixed", 0, maxAmount); fixed != nil {
		f.Fixed = *fixed
	}
	if minimum := o.Integer("minimum", 0, maxAmount); minimum != nil {
		f.Minimum = *minimum
	}
	if f.Maximum = o.Integer("maximum", 0, maxAmount); f.Maximum != nil && *f.Maximum < f.Minimum {
		o.fault("maximum", "range", "must not be below the minimum")
	}
	f.Step = 1
	if step := o.Integer("step", 1, maxStep); step != nil {
		f.Step = *step
	}
	return f
}

// parseNetwork reads a network in CIDR notation.
func parseNetwork(s string) (netip.Prefix, error) {
	network, err := netip.ParsePrefix(s)
	if err != nil || network != network.Masked() || network.Addr().Is4In6() {
		return network, errors.New("must be a network such as 10.20.0.0/16, without bits beyond its length")
	}
	return network, nil
}

func (o object) erp(agencyID string, live bool) registry.ERPSettings {
	e := registry.ERPSettings{AgencyID: agencyID, Live: live, Networks: []netip.Prefix{}}
	o.Texts("networks", func(s string) error {
		network, err := parseNetwork(s)
		if err != nil {
			return err
		}
		if !o.developer && (network.Addr().IsLoopback() || network.Addr().IsLinkLocalUnicast() || network.Addr().IsMulticast() || network.Bits() == 0) {
			return errors.New("must not be all addresses, a loopback, a link-local or a multicast network")
		}
		e.Networks = append(e.Networks, network)
		return nil
	})
	e.BaseURL = o.backend(e.Networks)
	if conflict := o.Bool("conflict_is_done"); conflict != nil {
		e.ConflictIsDone = *conflict
	}
	o.Texts("channels", func(s string) error {
		if checkout.Channel(s) != checkout.ChannelBankTransfer {
			return errors.New("must be BANK_TRANSFER: leave out MOBILE_MONEY, CASH and CARD, which each ERP takes")
		}
		e.Channels = append(e.Channels, checkout.ChannelBankTransfer)
		return nil
	})
	if !o.object("auth", func(o object) { e.Auth = o.auth() }) {
		o.fault("auth", "required", "is required")
	}
	return e
}

func (o object) auth() (a registry.ERPAuth) {
	switch a.Type = registry.AuthType(o.text("type", true)); a.Type {
	case registry.AuthBearer:
		a.Secret = o.secret("token")
	case registry.AuthAPIKey:
		a.Name, a.Secret = o.text("header", true), o.secret("value")
		if a.Name != "" && !headerPattern.MatchString(a.Name) {
			o.fault("header", "format", "must be the name of a header")
		}
	case registry.AuthBasic:
		a.Name, a.Secret = o.text("username", true), o.secret("password")
		if strings.Contains(a.Name, ":") || a.Name != "" && !form.IsLine(a.Name, maxName) {
			o.fault("username", "format", "must be 1 to %d printable characters without a colon", maxName)
		}
	default:
		if a.Type != "" {
			o.fault("type", "enum", "must be bearer, api_key or basic")
		}
		for _, field := range []string{"token", "header", "value", "username", "password"} {
			o.Take(field, false)
		}
	}
	return a
}

func (o object) application(agencyID string) application {
	a := application{path: o.Path(), UpsertApplicationParams: db.UpsertApplicationParams{
		ID: o.id("id", true), AgencyID: agencyID, Name: o.name("name"), Active: o.Bool("active"), Integrator: o.Bool("integrator"),
		Offers: o.Texts("offers", oneOf(registry.OfferIDs())), EmbedOrigins: o.Texts("embed_origins", registry.CheckOrigin), CreationsPerMinute: o.Integer("creations_per_minute", 1, identity.MaxReadsPerMinute),
		ReadsPerMinute: o.Integer("reads_per_minute", 1, identity.MaxReadsPerMinute), PageSize: o.Integer("page_size", 1, maxPageSize), CreatedAt: o.now,
	}}
	o.objects("keys", func(o object) { a.keys = append(a.keys, o.key(identity.APIKeys)) })
	o.objects("webhook_endpoints", func(o object) { a.endpoints = append(a.endpoints, o.endpoint(&a.ID)) })
	a.SessionLifetimeMs = o.lifetime(minLifetime)
	o.object("cashin", func(o object) {
		a.pair = o.cashinPair()
		a.cashin = &registry.Cashin{
			RedirectOrigins: append([]string{}, o.Texts("redirect_origins", o.redirectOrigin())...),
			WebhookURL:      o.text("webhook_url", false), Providers: append([]string{}, o.Texts("providers", oneOf(cashinProviders))...),
		}
		if a.cashin.WebhookURL != "" {
			o.check("webhook_url", o.webhook().CheckNew(a.cashin.WebhookURL))
		}
	})
	return a
}

// lifetime reads how long sessions are open, in milliseconds.
func (o object) lifetime(least time.Duration) *int64 {
	text := o.text("session_lifetime", false)
	if text == "" {
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > maxLifetime || d%time.Millisecond != 0 {
		o.fault("session_lifetime", "range", "must be a duration such as 24h or 30m, from %s to %s", least, maxLifetime)
	}
	ms := d.Milliseconds()
	return &ms
}

// portal reads the citizen portal of an agency. It is an application of its own, with an id
// and a name that the file cannot choose.
func (o object) portal(a db.UpsertAgencyParams) *portal {
	p := &portal{path: o.Path(), UpsertPortalParams: db.UpsertPortalParams{
		ID: registry.PortalID(a.ID), AgencyID: a.ID, Name: registry.PortalName(a.Slug), Active: o.Bool("active"),
		Offers: o.Texts("offers", oneOf(registry.OfferIDs())), SuccessOrigins: o.Texts("success_origins", o.redirectOrigin()),
		SessionLifetimeMs: o.lifetime(registry.MinPortalLifetime), CreatedAt: o.now,
	}}
	if p.Offers != nil && len(p.Offers) == 0 && !o.Faulty("offers") {
		o.fault("offers", "length", "must name at least one offer: %s", strings.Join(registry.OfferIDs(), ", "))
	}
	o.objects("webhook_endpoints", func(o object) { p.endpoints = append(p.endpoints, o.endpoint(&p.ID)) })
	return p
}

// cashinPair is a pair of credentials for the deprecated cash-in surface; empty when the
// file has none.
type cashinPair struct {
	live              bool
	apiKey, secretKey secret.Text
}

// cashinPair reads the pair of an application. Outside developer mode `quittance cashin
// create` mints it, and the file has none.
func (o object) cashinPair() (p cashinPair) {
	mode := o.text("mode", false)
	p.live = mode == registry.Mode(true)
	if mode != "" && !p.live && mode != registry.Mode(false) {
		o.fault("mode", "enum", "must be test or live")
	}
	p.apiKey = o.plain("api_key", o.credential("api_key", false))
	p.secretKey = o.plain("secret_key", o.credential("secret_key", false))
	switch {
	case p.apiKey.Empty() && !p.secretKey.Empty():
		o.fault("api_key", "required", "is required beside secret_key")
	case !p.apiKey.Empty() && p.secretKey.Empty():
		o.fault("secret_key", "required", "is required beside api_key")
	case !p.apiKey.Empty() && mode == "":
		o.fault("mode", "required", "is required beside api_key: test or live")
	}
	return p
}

// key reads a key of a family. Its secret is empty when it is at fault.
func (o object) key(family identity.Family) key {
	k := key{path: o.Path(), secret: o.secret("secret")}
	var ok bool
	if k.live, ok = family.Mode(k.secret.Reveal()); !ok && !k.secret.Empty() {
		o.fault("secret", "format", "must be %s or %s and 20 to 200 letters or digits", family.Test, family.Live)
		k.secret = secret.Text{}
	}
	return k
}

func (o object) platformKey() key {
	k := o.key(identity.APIKeys)
	o.List("agencies", func(element string, value any) {
		s, _ := value.(string)
		parsed, ok := form.CanonicalUUID(s)
		switch {
		case !ok:
			o.fault(element, "format", "must be an agency's id, a UUID")
		case slices.Contains(k.agencies, parsed):
			o.fault(element, "duplicate", "occurs twice")
		}
		k.agencies = append(k.agencies, parsed) // also a malformed one: the index is part of later paths
	})
	k.readsPerMinute = o.Integer("reads_per_minute", 1, identity.MaxReadsPerMinute)
	return k
}

func (o object) clerk(agencyID string) clerk {
	c := clerk{path: o.Path(), Clerk: identity.Clerk{AgencyID: agencyID, Code: o.slug("code"), Name: o.name("name"), Counter: o.name("counter")}}
	c.settings = identity.ClerkSettings{
		Active: o.Bool("active"), PaymentLimit: o.Integer("payment_limit", 0, identity.MaxClerkLimit), DayLimit: o.Integer("day_limit", 0, identity.MaxClerkLimit),
	}
	o.objects("keys", func(o object) { c.keys = append(c.keys, o.key(identity.ClerkKeys)) })
	return c
}

func (o object) endpoint(applicationID *string) endpoint {
	e := endpoint{path: o.Path(), InsertWebhookEndpointParams: db.InsertWebhookEndpointParams{
		ApplicationID: applicationID, Url: o.text("url", true), MaxInFlight: o.Integer("max_in_flight", 1, maxInFlight),
		MaxPerSecond: o.Integer("max_per_second", 0, maxPerSecond), CreatedAt: o.now,
	}}
	if e.Url != "" {
		o.check("url", o.webhook().CheckNew(e.Url))
	}
	if s := o.credential("secret", false); s != "" {
		e.secret = o.plain("secret", s)
		if !webhookPattern.MatchString(s) {
			o.fault("secret", "format", "must be whsec_ and 20 to 200 letters or digits")
		}
	}
	e.Events = o.Texts("events", oneOf(registry.WebhookEvents()))
	e.Modes = o.Texts("modes", oneOf([]string{registry.Mode(false), registry.Mode(true)}))
	return e
}

// object reads a field that is a mapping. It returns false when there is none.
func (o object) object(field string, with func(object)) (present bool) {
	o.Object(field, func(f *form.Form) {
		present = true
		with(object{f, o.parser})
	})
	return present || o.Faulty(field)
}

// objects reads a field that is a list of mappings.
func (o object) objects(field string, each func(object)) {
	o.Objects(field, func(f *form.Form) { each(object{f, o.parser}) })
}

// modes reads a field that is a mapping with a mapping for each mode.
func (o object) modes(field string, each func(o object, live bool)) {
	o.object(field, func(o object) {
		for _, live := range []bool{false, true} {
			o.object(registry.Mode(live), func(o object) { each(o, live) })
		}
	})
}

func (o object) fault(field, rule, message string, args ...any) {
	o.Fault(field, rule, fmt.Sprintf(message, args...))
}

func (o object) check(field string, err error) {
	if err != nil {
		o.Fault(field, "format", err.Error())
	}
}

// text reads a field that is a text and not empty. It returns "" when there is none.
func (o object) text(field string, required bool) string {
	value, ok := o.Take(field, required)
	if !ok {
		return ""
	}
	s, ok := value.(string)
	switch {
	case !ok:
		o.fault(field, "type", "must be text: put it in quotes")
	case s == "":
		o.fault(field, "length", "must not be empty")
	}
	return s
}

// backend reads the base_url of an ERP or an operator, without a slash at its end.
func (o object) backend(networks []netip.Prefix) string {
	raw := o.text("base_url", true)
	if raw != "" {
		o.check("base_url", address.Rule{Loopback: o.developer, Backend: true, Networks: networks}.CheckNew(raw))
	}
	return strings.TrimRight(raw, "/")
}

// redirectOrigin returns the rule of the origins to which a partner's citizens return. In
// developer mode it takes http on this machine, too.
func (o object) redirectOrigin() func(string) error {
	if !o.developer {
		return registry.CheckOrigin
	}
	return func(raw string) error {
		if host, ok := strings.CutPrefix(raw, "http://127.0.0.1:"); ok {
			raw = "https://127.0.0.1:" + host
		}
		return registry.CheckOrigin(raw)
	}
}

func (o object) webhook() address.Rule { return address.Rule{Loopback: o.developer} }

// secret reads a required secret.
func (o object) secret(field string) secret.Text { return o.plain(field, o.credential(field, true)) }

// plain makes a secret of a value in plain text.
func (o object) plain(field, value string) secret.Text {
	switch {
	case value == "" || o.developer:
	case secret.IsDemo(secret.NewText(value)):
		o.fault(field, "demo_secret", "is a secret of the demo registry, which everybody can read; it is allowed in developer mode only")
	default:
		o.fault(field, "plain_secret", "is a secret in plain text, which is allowed in developer mode only")
	}
	return secret.NewText(value)
}

// credential reads a text that a header can carry.
func (o object) credential(field string, required bool) string {
	value := o.text(field, required)
	if strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) {
		o.fault(field, "format", "must be ASCII without spaces")
	}
	if len(value) > maxCredential {
		o.fault(field, "length", "must have at most %d characters", maxCredential)
	}
	return value
}

func (o object) id(field string, required bool) string {
	raw := o.text(field, required)
	parsed, ok := form.CanonicalUUID(raw)
	if raw != "" && !ok {
		o.fault(field, "format", "must be a UUID such as 018f0000-0000-7000-8000-000000000001")
	}
	return parsed
}

func (o object) name(field string) string {
	s := o.text(field, true)
	if s != "" && !form.IsLine(s, maxName) {
		o.fault(field, "format", "must be 1 to %d printable characters", maxName)
	}
	return s
}

// line reads a text of one line that may be omitted.
func (o object) line(field string) string { return o.lineOf(field, maxName) }

// lineOf is line for a text of at most so many characters.
func (o object) lineOf(field string, most int) string {
	s := o.text(field, false)
	if s != "" && !form.IsLine(s, most) {
		o.fault(field, "format", "must be one line of at most %d printable characters", most)
	}
	return s
}

// slug reads a slug. It returns "" when the field is at fault.
func (o object) slug(field string) string {
	s := o.text(field, true)
	if s != "" && !registry.IsSlug(s) {
		o.fault(field, "format", "must be lower-case letters, digits and hyphens, a letter first, at most 63")
		return ""
	}
	return s
}

func (o object) code(field string, required bool) string {
	s := o.text(field, required)
	if s != "" && !codePattern.MatchString(s) {
		o.fault(field, "format", "must be lower-case letters, digits and underscores, a letter first, at most %d", maxCode)
	}
	return s
}

func oneOf(values []string) func(string) error {
	return func(s string) error {
		if !slices.Contains(values, s) {
			return fmt.Errorf("must be one of %s", strings.Join(values, ", "))
		}
		return nil
	}
}
