package registry

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"quittance/checkout"
	"quittance/checkout/money"
	"quittance/internal/connector"
	"quittance/internal/form"
	"quittance/internal/secret"
)

// The file as it was written: a nil pointer or list is an omitted field. Paths
// are kept for the faults that only the database shows.
type file struct {
	platformOrigins   []string
	platformKeys      []fileKey
	platformEndpoints []fileEndpoint
	agencies          []fileAgency
}

type fileAgency struct {
	path           string
	id, slug, name string
	services       []fileService
	mappings       []fileMapping
	defaultService *string
	fees           []fileFee
	erp            []ERPSettings
	accounts       []storedAccount
	applications   []fileApplication
	clerks         []fileClerk
}

type fileService struct {
	path            string
	id, code, label string // id may be empty
	active          *bool
}

type fileMapping struct{ path, erpCode, service string }

type fileFee struct {
	channel, currency string
	schedule          money.Schedule
}

type fileApplication struct {
	path               string
	id, name           string
	active, integrator *bool
	offers             []string
	embedOrigins       []string
	keys               []fileKey
	endpoints          []fileEndpoint
	sessionLifetime    *int64 // milliseconds
	creationsPerMinute *int64
	readsPerMinute     *int64
	pageSize           *int64
	cashin             *fileCashin
}

type fileCashin struct {
	path              string
	apiKey, secretKey secret.Text
	origins           []string
	webhookURL        string
	providers         []string
}

type fileClerk struct {
	path                string
	code, name, counter string
	active              *bool
	keys                []fileKey
}

type fileKey struct {
	path           string
	secret         secret.Text
	live           bool
	agencies       []string // platform keys
	readsPerMinute *int64   // platform keys
}

type fileEndpoint struct {
	path         string
	url          string
	secret       secret.Text // empty: one is minted for a new endpoint
	events       []string
	modes        []string
	maxInFlight  *int64
	maxPerSecond *int64
}

// Limits of the file's numbers: what is beyond is a slip.
const (
	maxPerMinute   = 10_000_000
	maxInFlight    = 1_024
	maxPerSecond   = 100_000
	minLifetime    = time.Second
	maxLifetime    = 30 * 24 * time.Hour // as long as idempotency keys are remembered
	maxPageSize    = 100
	maxAmount      = 1 << 53 // minor units
	maxName        = 200
	maxCode        = 50 // service_code and revenue_line_code (contract, "Limits")
	maxCredential  = 4096
	plainForbidden = "plain secrets are allowed in developer mode only"
)

var (
	slugPattern     = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)
	codePattern     = regexp.MustCompile(`^[a-z][a-z0-9_]{0,49}$`)
	keyPattern      = regexp.MustCompile(`^sk_(test|live)_[0-9A-Za-z]{20,200}$`)
	webhookPattern  = regexp.MustCompile(`^whsec_[0-9A-Za-z+/]{20,200}={0,2}$`)
	headerPattern   = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$")
	cashinProviders = []string{"mobile_money_a", "mobile_money_b", "card_network_a", "card_network_b"}
)

// parse reads a file. What it returns is only whole when there are no faults.
func parse(text []byte, operators connector.Table, developer bool, faults *Faults) file {
	tree, err := parseTree(text)
	if err != nil {
		faults.add("", "%s", err)
		return file{}
	}
	if tree == nil {
		return file{} // an empty file changes nothing
	}
	root := asObject(tree, "", faults)
	if root == nil {
		return file{}
	}
	p := parser{developer: developer, operators: operators}
	var f file
	root.object("platform", func(o *object) {
		o.objects("keys", func(o *object) { f.platformKeys = append(f.platformKeys, p.key(o, true)) })
		f.platformOrigins = o.texts("embed_origins", checkOrigin)
		o.objects("webhook_endpoints", func(o *object) { f.platformEndpoints = append(f.platformEndpoints, p.endpoint(o)) })
	})
	root.objects("agencies", func(o *object) { f.agencies = append(f.agencies, p.agency(o)) })
	root.done()
	return f
}

type parser struct {
	developer bool
	operators connector.Table
}

func (p parser) agency(o *object) fileAgency {
	a := fileAgency{path: o.path, id: id(o, "id", true), slug: o.require("slug"), name: name(o, "name")}
	if a.slug != "" && !slugPattern.MatchString(a.slug) {
		o.fault("slug", "must be lower-case letters, digits and hyphens, a letter first, at most 63")
	}
	o.objects("services", func(o *object) {
		a.services = append(a.services, fileService{path: o.path, id: id(o, "id", false), code: code(o, "code"), label: name(o, "label"), active: o.boolean("active")})
	})
	o.objects("service_mappings", func(o *object) {
		m := fileMapping{path: o.path, erpCode: o.require("erp_code"), service: code(o, "service")}
		if m.erpCode != "" && !form.IsLine(m.erpCode, maxCode) {
			o.fault("erp_code", "must be 1 to %d printable characters", maxCode)
		}
		a.mappings = append(a.mappings, m)
	})
	if o.has("default_service") {
		if c := code(o, "default_service"); c != "" {
			a.defaultService = &c
		}
	}
	o.objects("fees", func(o *object) { a.fees = append(a.fees, p.fee(o)) })
	o.object("erp", func(o *object) {
		for _, live := range []bool{false, true} {
			o.object(mode(live), func(o *object) {
				e := p.erp(o)
				e.AgencyID, e.Live = a.id, live
				a.erp = append(a.erp, e)
			})
		}
	})
	o.object("connectors", func(o *object) {
		for _, live := range []bool{false, true} {
			o.object(mode(live), func(o *object) { a.accounts = append(a.accounts, p.accounts(o, a.id, live)...) })
		}
	})
	o.objects("applications", func(o *object) { a.applications = append(a.applications, p.application(o)) })
	o.objects("clerks", func(o *object) { a.clerks = append(a.clerks, p.clerk(o)) })
	return a
}

func (p parser) fee(o *object) fileFee {
	f := fileFee{channel: o.require("channel"), currency: money.Default}
	if f.channel != "" && !slices.Contains([]checkout.Channel{checkout.ChannelMobileMoney, checkout.ChannelCash, checkout.ChannelCard}, checkout.Channel(f.channel)) {
		o.fault("channel", "must be MOBILE_MONEY, CASH or CARD")
	}
	if c := o.text("currency"); c != nil {
		f.currency = *c
		if _, ok := money.Lookup(*c); !ok {
			o.fault("currency", "is not a currency of the contract's list")
		}
	}
	if ratio := o.text("ratio"); ratio != nil {
		ppm, err := money.ParseRatio(*ratio)
		if err != nil {
			o.fault("ratio", `must be a decimal in quotes from "0" to "1" with at most 6 decimals, such as "0.015" for 1.5 %%`)
		}
		f.schedule.RatioPPM = ppm
	}
	amount := func(name string) (n int64, given bool) {
		if v := o.integer(name, 0, maxAmount); v != nil {
			return *v, true
		}
		return 0, false
	}
	f.schedule.Fixed, _ = amount("fixed")
	f.schedule.Minimum, _ = amount("minimum")
	f.schedule.Maximum, f.schedule.HasMaximum = amount("maximum")
	if f.schedule.HasMaximum && f.schedule.Maximum < f.schedule.Minimum {
		o.fault("maximum", "must not be below the minimum")
	}
	return f
}

func (p parser) erp(o *object) ERPSettings {
	e := ERPSettings{Networks: []netip.Prefix{}}
	o.texts("networks", func(s string) error {
		network, err := netip.ParsePrefix(s)
		if err != nil || network != network.Masked() {
			return errors.New("must be a network such as 10.20.0.0/16, without bits beyond its length")
		}
		if !p.developer && (network.Addr().IsLoopback() || network.Addr().IsLinkLocalUnicast() || network.Addr().IsMulticast() || network.Bits() == 0) {
			return errors.New("must not be everything, nor loopback, link-local or multicast")
		}
		e.Networks = append(e.Networks, network)
		return nil
	})
	e.BaseURL = p.backend(o, e.Networks)
	if conflict := o.boolean("conflict_is_done"); conflict != nil {
		e.ConflictIsDone = *conflict
	}
	if !o.has("auth") {
		o.fault("auth", "is required")
	}
	o.object("auth", func(o *object) {
		switch e.Auth.Type = AuthType(o.require("type")); e.Auth.Type {
		case AuthBearer:
			e.Auth.Secret = p.secret(o, "token")
		case AuthAPIKey:
			e.Auth.Name, e.Auth.Secret = o.require("header"), p.secret(o, "value")
			if e.Auth.Name != "" && !headerPattern.MatchString(e.Auth.Name) {
				o.fault("header", "must be the name of a header")
			}
		case AuthBasic:
			e.Auth.Name, e.Auth.Secret = o.require("username"), p.secret(o, "password")
			if strings.Contains(e.Auth.Name, ":") || e.Auth.Name != "" && !form.IsLine(e.Auth.Name, maxName) {
				o.fault("username", "must be 1 to %d printable characters without a colon", maxName)
			}
		case "":
			o.known = append(o.known, "token", "header", "value", "username", "password")
		default:
			o.fault("type", "must be bearer, api_key or basic")
			o.known = append(o.known, "token", "header", "value", "username", "password")
		}
	})
	return e
}

func (p parser) application(o *object) fileApplication {
	a := fileApplication{
		path: o.path, id: id(o, "id", true), name: name(o, "name"),
		active: o.boolean("active"), integrator: o.boolean("integrator"),
		offers: o.texts("offers", func(s string) error {
			if _, ok := checkout.OfferChannel(s); !ok {
				ids := make([]string, len(checkout.Offers))
				for i, o := range checkout.Offers {
					ids[i] = o.ID
				}
				return fmt.Errorf("must be one of %s", strings.Join(ids, ", "))
			}
			return nil
		}),
		embedOrigins:       o.texts("embed_origins", checkOrigin),
		creationsPerMinute: o.integer("creations_per_minute", 1, maxPerMinute),
		readsPerMinute:     o.integer("reads_per_minute", 1, maxPerMinute),
		pageSize:           o.integer("page_size", 1, maxPageSize),
	}
	o.objects("keys", func(o *object) { a.keys = append(a.keys, p.key(o, false)) })
	o.objects("webhook_endpoints", func(o *object) { a.endpoints = append(a.endpoints, p.endpoint(o)) })
	if lifetime := o.text("session_lifetime"); lifetime != nil {
		d, err := time.ParseDuration(*lifetime)
		if err != nil || d < minLifetime || d > maxLifetime || d%time.Millisecond != 0 {
			o.fault("session_lifetime", "must be a duration such as 24h or 30m, from %s to %s", minLifetime, maxLifetime)
		}
		ms := d.Milliseconds()
		a.sessionLifetime = &ms
	}
	o.object("cashin", func(o *object) {
		c := &fileCashin{path: o.path, apiKey: p.secret(o, "api_key"), secretKey: p.secret(o, "secret_key")}
		c.origins = nonNil(o.texts("redirect_origins", checkOrigin))
		if hook := o.text("webhook_url"); hook != nil {
			if err := checkWebhookURL(*hook, p.developer); err != nil {
				o.fault("webhook_url", "%s", err)
			}
			c.webhookURL = *hook
		}
		c.providers = nonNil(o.texts("providers", oneOf(cashinProviders)))
		a.cashin = c
	})
	return a
}

func (p parser) key(o *object, platform bool) fileKey {
	k := fileKey{path: o.path, secret: p.secret(o, "secret")}
	if !k.secret.Empty() {
		if !keyPattern.MatchString(k.secret.Reveal()) {
			o.fault("secret", "must be sk_test_ or sk_live_ and 20 to 200 letters or digits")
		}
		k.live = strings.HasPrefix(k.secret.Reveal(), prefixLive)
	}
	if platform {
		o.list("agencies", func(path string, value any) {
			s, _ := value.(string)
			parsed, ok := form.CanonicalUUID(s)
			switch {
			case !ok:
				o.faults.add(path, "must be an agency's id, a UUID")
			case slices.Contains(k.agencies, parsed):
				o.faults.add(path, "stands twice")
			}
			k.agencies = append(k.agencies, parsed) // also a wrong one: paths count
		})
		k.readsPerMinute = o.integer("reads_per_minute", 1, maxPerMinute)
	}
	return k
}

func (p parser) clerk(o *object) fileClerk {
	c := fileClerk{path: o.path, code: o.require("code"), name: name(o, "name"), counter: name(o, "counter"), active: o.boolean("active")}
	if c.code != "" && !slugPattern.MatchString(c.code) {
		o.fault("code", "must be lower-case letters, digits and hyphens, a letter first, at most 63")
		c.code = ""
	}
	o.objects("keys", func(o *object) {
		k := fileKey{path: o.path, secret: p.secret(o, "secret")}
		if !k.secret.Empty() && !presentedClerk.MatchString(k.secret.Reveal()) {
			o.fault("secret", "must be ck_test_ or ck_live_ and 20 to 200 letters or digits")
		}
		k.live = strings.HasPrefix(k.secret.Reveal(), prefixClerkLive)
		c.keys = append(c.keys, k)
	})
	return c
}

func (p parser) endpoint(o *object) fileEndpoint {
	e := fileEndpoint{path: o.path, url: o.require("url"), maxInFlight: o.integer("max_in_flight", 1, maxInFlight), maxPerSecond: o.integer("max_per_second", 0, maxPerSecond)}
	if e.url != "" {
		if err := checkWebhookURL(e.url, p.developer); err != nil {
			o.fault("url", "%s", err)
		}
		e.url = toStored(e.url, p.developer)
	}
	if o.has("secret") {
		e.secret = p.secret(o, "secret")
		if !e.secret.Empty() && !webhookPattern.MatchString(e.secret.Reveal()) {
			o.fault("secret", "must be whsec_ and 20 to 200 letters or digits")
		}
	}
	events := []string{}
	for _, t := range checkout.EventTypes() {
		if t.Webhook() {
			events = append(events, string(t))
		}
	}
	e.events = o.texts("events", oneOf(events))
	e.modes = o.texts("modes", oneOf([]string{mode(false), mode(true)}))
	return e
}

// backend is the base_url of an ERP or an operator, without a slash at its end.
func (p parser) backend(o *object, networks []netip.Prefix) string {
	raw := o.require("base_url")
	if raw == "" {
		return ""
	}
	if err := checkBackendURL(raw, networks, p.developer); err != nil {
		o.fault("base_url", "%s", err)
	}
	return toStored(strings.TrimRight(raw, "/"), p.developer)
}

// secret is a required secret in plain text.
func (p parser) secret(o *object, field string) secret.Text {
	value := credential(o, field)
	if value != "" && !p.developer {
		o.fault(field, "%s", plainForbidden)
	}
	return secret.NewText(value)
}

// credential is required text as it can stand in a header.
func credential(o *object, field string) string {
	value := o.require(field)
	for _, c := range []byte(value) {
		if c <= ' ' || c > '~' {
			o.fault(field, "must be ASCII without spaces")
			break
		}
	}
	if len(value) > maxCredential {
		o.fault(field, "must have at most %d characters", maxCredential)
	}
	return value
}

func id(o *object, field string, required bool) string {
	if !required && !o.has(field) {
		return ""
	}
	raw := o.require(field)
	if raw == "" {
		return ""
	}
	parsed, ok := form.CanonicalUUID(raw)
	if !ok {
		o.fault(field, "must be a UUID such as 018f0000-0000-7000-8000-000000000001")
	}
	return parsed
}

func name(o *object, field string) string {
	s := o.require(field)
	if s != "" && !form.IsLine(s, maxName) {
		o.fault(field, "must be 1 to %d printable characters", maxName)
	}
	return s
}

func code(o *object, field string) string {
	s := o.require(field)
	if s != "" && !codePattern.MatchString(s) {
		o.fault(field, "must be lower-case letters, digits and underscores, a letter first, at most %d", maxCode)
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

// mode names test and live as the file and the database do.
func mode(live bool) string {
	if live {
		return "live"
	}
	return "test"
}

func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
