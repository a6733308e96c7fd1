package registry

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"quittance/checkout"
	"quittance/internal/secret"
)

// Defaults of omitted fields (contract, "Limits").
const (
	DefaultReadsPerMinute = 600
	DefaultPageSize       = 20
	DefaultMaxInFlight    = 8
)

// Agency is a public agency: a tenant.
type Agency struct {
	// ID is the contract's tenant_id, a UUID in lower case like all ids here.
	ID   string
	Slug string
	Name string
	// DefaultService is the code of the service for dues without a mapping; empty for
	// none. An inactive service is not used.
	DefaultService string
	// LatePayments says what happens to money that arrives after a session's end.
	LatePayments LatePayments
	// SingleApprovalBelow is the amount in XAF below which one member of staff resolves an
	// operator case without another one; 0 for none.
	SingleApprovalBelow int64
	// Logo is what citizens see beside the name: a PNG of at most 2 KiB, made from the
	// picture of the registry file. It is nil for none.
	Logo []byte
	// Address is where the agency is, in one line; empty for none.
	Address   string
	Contact   Contact
	Receipt   ReceiptTexts
	CreatedAt time.Time
	// Locked means that the agency's row does not verify (internal/signed). Nothing of it is used: its
	// applications are not active, and its late payments are held.
	Locked bool
}

// ReceiptTexts are what an agency writes on its receipts, each in one line. Empty fields are
// omitted; an empty Title is that of the service.
type ReceiptTexts struct {
	Title      string // such as Quittance
	Mention    string // such as the article of a law
	Accountant string // the public accountant who gives the receipt
}

// Contact is how citizens reach an agency. Empty fields are unknown.
type Contact struct {
	Phone string // as in the registry file: +242 22 000 00 00
	Email string
	Hours string // in words
}

// LatePayments is an agency's policy for late payments (docs/design/decisions.md § 14).
type LatePayments string

// The policies. LatePaymentsHold is the default.
const (
	LatePaymentsHold   LatePayments = "hold"   // staff decide
	LatePaymentsHonour LatePayments = "honour" // the processor honours at once what is in no doubt
)

// Application is an integrator's application of one agency, or that of its citizen portal.
type Application struct {
	ID       string
	AgencyID string
	Name     string
	Active   bool
	// Integrator marks the one application of an agency that owns the sessions created
	// with platform keys.
	Integrator bool
	// Portal marks the one application of an agency that owns the sessions of its citizen
	// portal. It has neither keys nor quotas.
	Portal bool
	// SuccessOrigins are the origins, beside our own, to which citizens of the portal may
	// return. Other applications have none.
	SuccessOrigins []string
	// Offers that a citizen may choose from, such as checkout.OfferMomo.
	Offers []string
	// EmbedOrigins are the origins that may embed its sessions: https, in lower case.
	EmbedOrigins       []string
	SessionLifetime    time.Duration
	CreationsPerMinute int // 0 for a portal: no limit
	ReadsPerMinute     int // for each of its keys; 0 for a portal
	PageSize           int
	// Cashin is its access to the deprecated cash-in surface; nil for none.
	Cashin    *Cashin
	CreatedAt time.Time
}

// Cashin says what an application may do on the deprecated cash-in surface. Package cashin
// has its credentials.
type Cashin struct {
	// RedirectOrigins are the origins to which the citizen may return after the payment.
	RedirectOrigins []string
	WebhookURL      string // empty for none
	// Providers that are activated, such as mobile_money_a.
	Providers []string
}

// WebhookEndpoint is an address at which an application or the platform receives
// events.
type WebhookEndpoint struct {
	ID            string
	ApplicationID string // empty: the platform's
	URL           string
	Events        []string
	Test, Live    bool // the modes it receives
	MaxInFlight   int
	MaxPerSecond  int // calls; 0: no limit
	// Secrets that sign now, newest first. There are two during a rotation.
	Secrets []secret.Text
	// Locked means that a secret does not open with this process's master keys, or that the row of the
	// endpoint or of a secret does not verify (internal/signed). Deliveries wait, because they must
	// carry its signature.
	Locked    bool
	CreatedAt time.Time
	// RemovedAt is the time at which a command removed it; zero for an endpoint in use. A
	// removed endpoint gets no events.
	RemovedAt time.Time
}

// Platform reports whether the endpoint is the platform's.
func (e WebhookEndpoint) Platform() bool { return e.ApplicationID == "" }

// wants reports whether the endpoint receives an event of a mode.
func (e WebhookEndpoint) wants(live bool, event string) bool {
	return (live && e.Live || !live && e.Test) && slices.Contains(e.Events, event)
}

// Service is an entry of an agency's catalogue.
type Service struct {
	ID       string
	AgencyID string
	Code     string
	Label    string
	Active   bool
}

// AuthType is a way to authenticate with an agency's ERP.
type AuthType string

// The ways to authenticate with an ERP (contract, "HTTP surfaces").
const (
	AuthBearer AuthType = "bearer"
	AuthAPIKey AuthType = "api_key"
	AuthBasic  AuthType = "basic"
)

// ERPAuth holds the credentials for an ERP.
type ERPAuth struct {
	Type   AuthType
	Name   string      // header of an API key, user name of basic
	Secret secret.Text // token, value or password
}

// ERPSettings say how to reach an agency's ERP in one mode.
type ERPSettings struct {
	AgencyID string
	Live     bool
	BaseURL  string // without a slash at its end
	Auth     ERPAuth
	// ConflictIsDone: the answer 409 to a confirmation means that the ERP has it already.
	ConflictIsDone bool
	// Networks contain the addresses that the ERP may have. None: public addresses only.
	Networks    []netip.Prefix
	MaxInFlight int
	// Channels are the ERP's words for channels that the contract's first edition does not name. An ERP without a word for
	// one would refuse a confirmation by it.
	Channels map[checkout.Channel]string
	// Locked means that the secret does not open with this process's master keys, or that the row does
	// not verify (internal/signed); it then holds nothing else. Confirmations wait.
	Locked bool
}

// Channel returns the ERP's word for a channel; false if it has none.
func (e ERPSettings) Channel(c checkout.Channel) (word string, ok bool) {
	if c.OfContract() {
		return string(c), true
	}
	word, ok = e.Channels[c]
	return word, ok
}

// Knows reports whether the ERP takes confirmations of payments by a channel.
func (e ERPSettings) Knows(c checkout.Channel) bool {
	_, ok := e.Channel(c)
	return ok
}

// channelPairs is the form of ERPSettings.Channels in Postgres, sorted.
func (e ERPSettings) channelPairs() []string {
	out := []string{}
	for c, word := range e.Channels {
		out = append(out, string(c)+"="+word)
	}
	slices.Sort(out)
	return out
}

// fromPairs is the inverse of channelPairs.
func fromPairs(pairs []string) map[checkout.Channel]string {
	var out map[checkout.Channel]string
	if len(pairs) > 0 {
		out = map[checkout.Channel]string{}
	}
	for _, pair := range pairs {
		if c, word, ok := strings.Cut(pair, "="); ok {
			out[checkout.Channel(c)] = word
		}
	}
	return out
}

// Platform holds the settings of the platform.
type Platform struct {
	// EmbedOrigins are the origins that may embed sessions created with platform keys.
	EmbedOrigins []string
}

var slug = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)

// IsSlug reports whether a text can be the slug of an agency or the code of a clerk:
// at most 63 lower-case letters, digits and hyphens, beginning with a letter.
func IsSlug(s string) bool { return slug.MatchString(s) }

// Mode returns the name of a mode in registry files and in the database: test or live.
func Mode(live bool) string {
	if live {
		return "live"
	}
	return "test"
}
