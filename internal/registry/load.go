package registry

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"quittance/checkout/money"
	"quittance/internal/registry/internal/db"
	"quittance/internal/secret"
)

// Labels of what is sealed (internal/secret).
const (
	labelWebhook = "webhook secrets"
	labelERP     = "erp credentials"
	labelCashin  = "cash-in secrets"
)

// What a ciphertext is bound to: the key of its row.
func erpAAD(agencyID string, live bool) []byte { return []byte(agencyID + "/" + mode(live)) }

// hash is how API keys are stored.
type hash [sha256.Size]byte

type feeKey struct{ agencyID, channel, currency string }

type modeKey struct {
	agencyID string
	live     bool
}

type codeKey struct{ agencyID, code string }

// snapshot is the whole registry at one revision. It never changes once it is
// built. Addresses are as they are stored.
type snapshot struct {
	revision     int64
	platform     Platform
	agencies     map[string]Agency
	slugs        map[string]string
	services     map[codeKey]Service
	serviceIDs   map[string]Service
	mappings     map[codeKey]string
	fees         map[feeKey]money.Schedule
	erp          map[modeKey]ERPSettings
	accounts     map[accountKey]storedAccount
	applications map[string]Application
	byAgency     map[string][]string // agency → applications, sorted
	integrators  map[string]string   // agency → application
	cashin       map[hash]string     // API key → application
	keys         map[hash]Key
	keyOrder     []hash
	clerks       map[codeKey]Clerk
	clerkKeys    map[hash]ClerkKey
	clerkKeyIDs  map[string]hash
	cashDesks    map[desk]bool
	endpoints    map[string]endpoint
	endpointIDs  []string
	byOwner      map[string][]string // application, or "" for the platform → endpoints
	locked       []string            // what did not open, for the log
}

// endpoint is a WebhookEndpoint with every secret it ever had.
type endpoint struct {
	WebhookEndpoint
	secrets []endpointSecret // newest first
}

type endpointSecret struct {
	digest    hash
	value     secret.Text // empty when it does not open
	expiresAt time.Time   // zero: never
}

// load reads the registry. The queries must be in one snapshot of the database.
func load(ctx context.Context, q *db.Queries, keys *secret.Keys) (*snapshot, error) {
	s := &snapshot{
		agencies: map[string]Agency{}, slugs: map[string]string{}, services: map[codeKey]Service{}, serviceIDs: map[string]Service{},
		mappings: map[codeKey]string{}, fees: map[feeKey]money.Schedule{}, erp: map[modeKey]ERPSettings{},
		accounts: map[accountKey]storedAccount{}, applications: map[string]Application{}, integrators: map[string]string{},
		cashin: map[hash]string{}, keys: map[hash]Key{}, byAgency: map[string][]string{},
		clerks: map[codeKey]Clerk{}, clerkKeys: map[hash]ClerkKey{}, clerkKeyIDs: map[string]hash{}, cashDesks: map[desk]bool{},
		endpoints: map[string]endpoint{}, byOwner: map[string][]string{},
	}
	for _, step := range []func(context.Context, *db.Queries, *secret.Keys) error{
		s.loadPlatform, s.loadAgencies, s.loadBackends, s.loadAccounts, s.loadApplications, s.loadKeys, s.loadClerks, s.loadEndpoints,
	} {
		if err := step(ctx, q, keys); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *snapshot) loadPlatform(ctx context.Context, q *db.Queries, _ *secret.Keys) (err error) {
	if s.revision, err = q.Revision(ctx); err != nil {
		return fmt.Errorf("reading the registry's revision: %w", err)
	}
	if s.platform.EmbedOrigins, err = q.PlatformOrigins(ctx); err != nil {
		return fmt.Errorf("reading the platform: %w", err)
	}
	return nil
}

func (s *snapshot) loadAgencies(ctx context.Context, q *db.Queries, _ *secret.Keys) error {
	agencies, err := q.Agencies(ctx)
	if err != nil {
		return fmt.Errorf("reading agencies: %w", err)
	}
	for _, r := range agencies {
		s.agencies[r.ID] = toAgency(r)
		s.slugs[r.Slug] = r.ID
	}
	services, err := q.Services(ctx)
	if err != nil {
		return fmt.Errorf("reading services: %w", err)
	}
	for _, r := range services {
		service := Service{ID: r.ID, AgencyID: r.AgencyID, Code: r.Code, Label: r.Label, Active: r.Active}
		s.services[codeKey{r.AgencyID, r.Code}], s.serviceIDs[r.ID] = service, service
	}
	mappings, err := q.ServiceMappings(ctx)
	if err != nil {
		return fmt.Errorf("reading service mappings: %w", err)
	}
	for _, r := range mappings {
		s.mappings[codeKey{r.AgencyID, r.ErpCode}] = r.ServiceCode
	}
	fees, err := q.Fees(ctx)
	if err != nil {
		return fmt.Errorf("reading fees: %w", err)
	}
	for _, r := range fees {
		s.fees[feeKey{r.AgencyID, r.Channel, r.Currency}] = money.Schedule{
			RatioPPM: r.RatioPpm, Fixed: r.Fixed, Minimum: r.Minimum, Maximum: value(r.Maximum), HasMaximum: r.Maximum != nil,
		}
	}
	return nil
}

func (s *snapshot) loadBackends(ctx context.Context, q *db.Queries, keys *secret.Keys) error {
	settings, err := q.ERPSettings(ctx)
	if err != nil {
		return fmt.Errorf("reading ERP settings: %w", err)
	}
	for _, r := range settings {
		auth, ok := s.open(keys, labelERP, r.AuthSealed, erpAAD(r.AgencyID, r.Live))
		e := toERP(r)
		e.Auth.Secret, e.Locked = secret.NewText(string(auth)), !ok
		s.erp[modeKey{r.AgencyID, r.Live}] = e
	}
	return nil
}

func (s *snapshot) loadApplications(ctx context.Context, q *db.Queries, keys *secret.Keys) error {
	access, err := q.CashinAccess(ctx)
	if err != nil {
		return fmt.Errorf("reading cash-in access: %w", err)
	}
	cashin := map[string]*Cashin{}
	for _, r := range access {
		key, ok := s.open(keys, labelCashin, r.SecretSealed, []byte(r.ApplicationID))
		cashin[r.ApplicationID] = &Cashin{
			APIKeyHash: r.ApiKeyHash, SecretKey: secret.NewText(string(key)), RedirectOrigins: r.RedirectOrigins,
			WebhookURL: r.WebhookUrl, Providers: r.Providers, Locked: !ok,
		}
		s.cashin[hash(r.ApiKeyHash)] = r.ApplicationID
	}
	applications, err := q.Applications(ctx)
	if err != nil {
		return fmt.Errorf("reading applications: %w", err)
	}
	for _, r := range applications {
		s.applications[r.ID] = Application{
			ID: r.ID, AgencyID: r.AgencyID, Name: r.Name, Active: r.Active, Integrator: r.Integrator, Offers: r.Offers,
			EmbedOrigins: r.EmbedOrigins, SessionLifetime: time.Duration(r.SessionLifetimeMs) * time.Millisecond,
			CreationsPerMinute: int(r.CreationsPerMinute), ReadsPerMinute: int(r.ReadsPerMinute), PageSize: int(r.PageSize),
			Cashin: cashin[r.ID], CreatedAt: r.CreatedAt.UTC(),
		}
		s.byAgency[r.AgencyID] = append(s.byAgency[r.AgencyID], r.ID) // in their order
		if r.Integrator {
			s.integrators[r.AgencyID] = r.ID
		}
	}
	return nil
}

func toAgency(r db.Agency) Agency {
	return Agency{ID: r.ID, Slug: r.Slug, Name: r.Name, DefaultService: value(r.DefaultService), CreatedAt: r.CreatedAt.UTC()}
}

// toERP is without the secret.
func toERP(r db.ErpSetting) ERPSettings {
	return ERPSettings{
		AgencyID: r.AgencyID, Live: r.Live, BaseURL: r.BaseUrl, Auth: ERPAuth{Type: AuthType(r.AuthType), Name: r.AuthName},
		ConflictIsDone: r.ConflictIsDone, Networks: r.Networks, MaxInFlight: int(r.MaxInFlight),
	}
}

// toEndpoint is without the secrets, the address as it is stored.
func toEndpoint(r db.WebhookEndpoint) WebhookEndpoint {
	e := WebhookEndpoint{
		ID: r.ID, ApplicationID: value(r.ApplicationID), URL: r.Url, Events: r.Events, MaxInFlight: int(r.MaxInFlight),
		MaxPerSecond: int(value(r.MaxPerSecond)), CreatedAt: r.CreatedAt.UTC(),
	}
	for _, m := range r.Modes {
		e.Test, e.Live = e.Test || m == mode(false), e.Live || m == mode(true)
	}
	return e
}

func (s *snapshot) loadKeys(ctx context.Context, q *db.Queries, _ *secret.Keys) error {
	keys, err := q.APIKeys(ctx)
	if err != nil {
		return fmt.Errorf("reading API keys: %w", err)
	}
	for _, r := range keys {
		s.keys[hash(r.Hash)] = toKey(r)
		s.keyOrder = append(s.keyOrder, hash(r.Hash))
	}
	return nil
}

func toKey(r db.ApiKey) Key {
	reads := DefaultReadsPerMinute
	if r.ReadsPerMinute != nil {
		reads = int(*r.ReadsPerMinute)
	}
	return Key{
		ID: r.ID, Live: r.Live, ApplicationID: value(r.ApplicationID), AgencyIDs: r.Agencies, ReadsPerMinute: reads,
		CreatedAt: r.CreatedAt.UTC(), RevokedAt: value(r.RevokedAt).UTC(), EndsAt: value(r.EndsAt).UTC(), LastUsedAt: value(r.LastUsedAt).UTC(),
	}
}

func (s *snapshot) loadEndpoints(ctx context.Context, q *db.Queries, keys *secret.Keys) error {
	rows, err := q.WebhookSecrets(ctx)
	if err != nil {
		return fmt.Errorf("reading webhook secrets: %w", err)
	}
	secrets := map[string][]endpointSecret{}
	for _, r := range rows {
		known := endpointSecret{digest: hash(r.Digest), expiresAt: value(r.ExpiresAt).UTC()}
		if plain, err := keys.Open(labelWebhook, r.Sealed, []byte(r.EndpointID)); err == nil {
			known.value = secret.NewText(string(plain))
		} else if r.ExpiresAt == nil { // an old one need not open
			s.locked = append(s.locked, "webhook endpoint "+r.EndpointID)
		}
		secrets[r.EndpointID] = append(secrets[r.EndpointID], known)
	}
	endpoints, err := q.WebhookEndpoints(ctx)
	if err != nil {
		return fmt.Errorf("reading webhook endpoints: %w", err)
	}
	for _, r := range endpoints {
		e := endpoint{WebhookEndpoint: toEndpoint(r), secrets: secrets[r.ID]}
		s.endpoints[r.ID] = e
		s.endpointIDs = append(s.endpointIDs, r.ID)
		s.byOwner[e.ApplicationID] = append(s.byOwner[e.ApplicationID], r.ID)
	}
	return nil
}

// open unseals and notes what does not open. One row whose master key is missing
// must not keep everybody else from the registry, nor a revocation from taking
// effect; who needs the row finds it locked.
func (s *snapshot) open(keys *secret.Keys, label string, sealed, aad []byte) ([]byte, bool) {
	plain, err := keys.Open(label, sealed, aad)
	if err != nil {
		s.locked = append(s.locked, label+" of "+string(aad))
		return nil, false
	}
	return plain, true
}

// at is the endpoint with the secrets that sign at a moment.
func (e endpoint) at(now time.Time, simulators string) WebhookEndpoint {
	out := e.WebhookEndpoint
	out.URL = fromStored(out.URL, simulators)
	for _, s := range e.secrets {
		switch {
		case !s.expiresAt.IsZero() && !now.Before(s.expiresAt):
		case s.value.Empty():
			out.Locked = true
		default:
			out.Secrets = append(out.Secrets, s.value)
		}
	}
	out.Locked = out.Locked || len(out.Secrets) == 0
	return out
}

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
