package registry

import (
	"net/netip"
	"regexp"
	"slices"
	"time"

	"quittance/internal/secret"
)

// Defaults of what a registry file does not say (contract, "Limits").
const (
	DefaultSessionLifetime    = 24 * time.Hour
	DefaultCreationsPerMinute = 30
	DefaultReadsPerMinute     = 600
	DefaultPageSize           = 20
	DefaultMaxInFlight        = 8
)

// Agency is a public agency: a tenant.
type Agency struct {
	// ID is the contract's tenant_id, a UUID in lower case like all ids here.
	ID   string
	Slug string
	Name string
	// DefaultService is the code that dues without a mapping resolve to; empty
	// for none. The service need not be active: then it resolves nothing.
	DefaultService string
	CreatedAt      time.Time
}

// Application is an integrator's application of one agency.
type Application struct {
	ID       string
	AgencyID string
	Name     string
	Active   bool
	// Integrator marks the one application that gets the sessions which platform
	// keys create for its agency.
	Integrator bool
	// Offers that a citizen may choose from (checkout.OfferMomo and the like).
	Offers []string
	// EmbedOrigins may embed its sessions: https origins in lower case.
	EmbedOrigins       []string
	SessionLifetime    time.Duration
	CreationsPerMinute int
	ReadsPerMinute     int // for each of its keys
	PageSize           int
	// Cashin is its access to the deprecated surface; nil for none.
	Cashin    *Cashin
	CreatedAt time.Time
}

// Cashin is an application's access to the deprecated cash-in surface.
type Cashin struct {
	APIKeyHash []byte // SHA-256
	SecretKey  secret.Text
	// RedirectOrigins may receive the citizen after the payment.
	RedirectOrigins []string
	WebhookURL      string // empty for none
	// Providers that are activated: mobile_money_a and the like.
	Providers []string
	// Locked says that the secret does not open with this process's master keys.
	Locked bool
}

// WebhookEndpoint is where an application, or the platform, receives events.
type WebhookEndpoint struct {
	ID            string
	ApplicationID string // empty: the platform's
	URL           string
	Events        []string
	Test, Live    bool // the modes it receives
	MaxInFlight   int
	MaxPerSecond  int // calls; 0: no limit
	// Secrets sign now, newest first: two during a rotation.
	Secrets []secret.Text
	// Locked says that a secret does not open with this process's master keys:
	// deliveries wait, they must not leave without that signature.
	Locked    bool
	CreatedAt time.Time
}

// Platform tells whether the endpoint is the platform's.
func (e WebhookEndpoint) Platform() bool { return e.ApplicationID == "" }

// Wants tells whether the endpoint receives an event of a mode.
func (e WebhookEndpoint) Wants(live bool, event string) bool {
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

// ERPAuth is what an ERP is shown.
type ERPAuth struct {
	Type   AuthType
	Name   string      // header of an API key, user name of basic
	Secret secret.Text // token, value or password
}

// ERPSettings are how an agency's ERP of one mode is reached.
type ERPSettings struct {
	AgencyID string
	Live     bool
	BaseURL  string // without a slash at its end
	Auth     ERPAuth
	// ConflictIsDone: 409 to a confirmation means that the ERP has it.
	ConflictIsDone bool
	// Networks are the addresses that the ERP may have. None: public ones only.
	Networks    []netip.Prefix
	MaxInFlight int
	// Locked says that the secret does not open with this process's master keys:
	// confirmations wait.
	Locked bool
}

// Platform is what belongs to the platform as a whole.
type Platform struct {
	// EmbedOrigins may embed the sessions of platform keys.
	EmbedOrigins []string
}

var slug = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)

// IsSlug says whether a text can name an agency, or be the code of a clerk:
// lower-case letters, digits and hyphens, a letter first, at most 63.
func IsSlug(s string) bool { return slug.MatchString(s) }

// Mode names test and live as registry files and the database do.
func Mode(live bool) string {
	if live {
		return "live"
	}
	return "test"
}
