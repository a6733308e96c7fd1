package registry

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/checkout"
	"quittance/internal/form"
	"quittance/internal/operation"
	"quittance/internal/registry/db"
	"quittance/internal/secret"
	"quittance/internal/signed"
	"quittance/money"
)

// Labels of sealed values (internal/secret).
const (
	LabelWebhook = "webhook secrets"
	LabelERP     = "erp credentials"
)

// Digest is the SHA-256 of a secret that others present to the service.
type Digest [sha256.Size]byte

// DigestOf hashes a presented secret.
func DigestOf(s secret.Text) Digest { return sha256.Sum256([]byte(s.Reveal())) }

type feeKey struct{ agencyID, channel, currency string }

type modeKey struct {
	agencyID string
	live     bool
}

type codeKey struct{ agencyID, code string }

// Snapshot is the whole registry at one revision. It does not change after it was
// built. Its maps are read only.
type Snapshot struct {
	Revision          int64
	Platform          Platform
	Agencies          map[string]Agency              // by id
	Applications      map[string]Application         // by id
	Services          map[string]Service             // by id
	Accounts          map[AccountKey]StoredAccount   // without those of the simulators
	replaced          map[AccountKey][]StoredAccount // newest first
	payoutModes       map[payoutMode]string          // name of the account; empty for a row that does not verify
	byCode            map[codeKey]Service
	mappings          map[codeKey]string
	fees              map[feeKey]money.Schedule
	erp               map[modeKey]ERPSettings
	statementAccounts map[StatementAccountKey]StatementAccount
	integrators       map[string]string      // application by agency
	endpoints         []*endpoint            // by id
	byOwner           map[string][]*endpoint // by application; empty for the platform; without removed ones
	commanded         map[string][]string    // fields that a command has set, by application, endpoint or agency
	byCommand         map[string][]string    // origins that a command has added or removed, by application; empty for the platform
	mapped            map[string][]string    // ERP codes whose mapping a command has set or removed, by agency
	locked            []string               // names of secrets that did not open, for the log
	findings          signed.Findings        // what is not as it was signed; of a Registry
	closedMappings    map[codeKey]bool       // by ERP code: rows that do not verify
	closedFees        map[feeKey]bool        // rows that do not verify
}

// endpoint is a WebhookEndpoint with all its secrets, also the expired ones.
type endpoint struct {
	WebhookEndpoint
	secrets []endpointSecret // newest first
}

type endpointSecret struct {
	digest    Digest
	value     secret.Text // empty when it does not open
	expiresAt time.Time   // zero: never
}

// loading says how to read the registry.
type loading struct {
	keys       *secret.Keys // nil: nothing is opened, and nothing is Locked
	simulators string       // the address of the simulators; defaultSimulators when empty
	// verifier makes the snapshot one that is acted upon: a row that does not verify is not used. Without
	// it the snapshot has the rows as they are, for an operator to see or to change.
	verifier *signed.Verifier
}

// loader builds a snapshot. It stops reading at the first error.
type loader struct {
	loading
	ctx  context.Context //nolint:containedctx // a loader lives for one reading
	tx   signed.Querier
	s    *Snapshot
	rows []signed.Row // with a verifier: all that were read
	read []string     // tables
	err  error
}

// read calls take with each row of a table, and whether it may be used, unless an earlier reading failed.
func read[R any](l *loader, table string, take func(r R, believed bool)) {
	if l.err != nil {
		return
	}
	l.read = append(l.read, table)
	l.err = signed.Read(l.ctx, l.tx, l.verifier, table, func(r R, row signed.Row) {
		if l.verifier != nil {
			l.rows = append(l.rows, row)
		}
		take(r, l.verifier == nil || row.Verified)
	})
}

// load reads the registry in a transaction that sees one snapshot of the database.
func load(ctx context.Context, tx pgx.Tx, how loading) (*Snapshot, error) {
	s := &Snapshot{
		Agencies: map[string]Agency{}, Applications: map[string]Application{}, Services: map[string]Service{}, Accounts: map[AccountKey]StoredAccount{}, replaced: map[AccountKey][]StoredAccount{}, payoutModes: map[payoutMode]string{},
		byCode: map[codeKey]Service{}, mappings: map[codeKey]string{}, fees: map[feeKey]money.Schedule{}, erp: map[modeKey]ERPSettings{}, statementAccounts: map[StatementAccountKey]StatementAccount{},
		integrators: map[string]string{}, byOwner: map[string][]*endpoint{}, commanded: map[string][]string{}, byCommand: map[string][]string{}, mapped: map[string][]string{},
		closedMappings: map[codeKey]bool{}, closedFees: map[feeKey]bool{},
	}
	var err error
	if s.Revision, err = db.New(tx).Revision(ctx); err != nil {
		return s, fmt.Errorf("reading the registry's revision: %w", err)
	}
	l := &loader{loading: how, ctx: ctx, tx: tx, s: s}
	l.agencies()
	l.catalogue()
	l.backends()
	l.accounts()
	l.payoutModes()
	l.statementAccounts()
	l.applications()
	l.endpoints()
	l.others()
	if l.err == nil && l.verifier != nil {
		s.findings, l.err = signed.Inspect(ctx, tx, l.keys, l.rows)
		l.verifier.Forget()
	}
	return s, l.err
}

// others verifies the rows of tables that belong to other packages, for the findings.
func (l *loader) others() {
	if l.err != nil || l.verifier == nil {
		return
	}
	for _, table := range signed.Names() {
		if !slices.Contains(l.read, table) {
			l.err = cmp.Or(l.err, signed.List(l.ctx, l.tx, l.verifier, table, func(r signed.Row) { l.rows = append(l.rows, r) }))
		}
	}
}

func (l *loader) agencies() {
	s := l.s
	read(l, "platform", func(r db.Platform, believed bool) {
		if believed {
			s.Platform.EmbedOrigins, s.byCommand[""] = r.EmbedOrigins, r.OriginsByCommand
		}
	})
	read(l, "agencies", func(r db.Agency, believed bool) {
		if !believed {
			s.Agencies[r.ID] = Agency{ID: r.ID, Slug: r.ID, Name: r.ID, LatePayments: LatePaymentsHold, Locked: true}
			return
		}
		s.Agencies[r.ID] = Agency{
			ID: r.ID, Slug: r.Slug, Name: r.Name, DefaultService: value(r.DefaultService), LatePayments: LatePayments(r.LatePayments),
			SingleApprovalBelow: r.SingleApprovalBelow, Logo: r.Logo, Address: r.Address,
			Contact: Contact{Phone: r.ContactPhone, Email: r.ContactEmail, Hours: r.ContactHours},
			Receipt: ReceiptTexts{Title: r.ReceiptTitle, Mention: r.ReceiptMention, Accountant: r.ReceiptAccountant}, CreatedAt: r.CreatedAt.UTC(),
		}
		s.commanded[r.ID], s.mapped[r.ID] = r.SetByCommand, r.MappingsByCommand
	})
}

func (l *loader) catalogue() {
	s := l.s
	read(l, "services", func(r db.Service, believed bool) {
		service := Service(r)
		service.Active = r.Active && believed
		s.Services[r.ID], s.byCode[codeKey{r.AgencyID, r.Code}] = service, service
	})
	read(l, "service_mappings", func(r db.ServiceMapping, believed bool) {
		if !believed {
			s.closedMappings[codeKey{r.AgencyID, r.ErpCode}] = true
			return
		}
		s.mappings[codeKey{r.AgencyID, r.ErpCode}] = r.ServiceCode
	})
	read(l, "fees", func(r db.Fee, believed bool) {
		if !believed {
			s.closedFees[feeKey{r.AgencyID, r.Channel, r.Currency}] = true
			return
		}
		s.fees[feeKey{r.AgencyID, r.Channel, r.Currency}] = money.Schedule{
			RatioPPM: r.RatioPpm, Fixed: r.Fixed, Minimum: r.Minimum, Maximum: value(r.Maximum), HasMaximum: r.Maximum != nil, Step: r.Step,
		}
	})
}

func (l *loader) backends() {
	read(l, "erp_settings", func(r db.ErpSetting, believed bool) {
		if !believed {
			l.s.erp[modeKey{r.AgencyID, r.Live}] = ERPSettings{AgencyID: r.AgencyID, Live: r.Live, Locked: true}
			return
		}
		auth, ok := l.open(LabelERP, r.AuthSealed, erpAAD(r.AgencyID, r.Live))
		l.s.erp[modeKey{r.AgencyID, r.Live}] = ERPSettings{
			AgencyID: r.AgencyID, Live: r.Live, BaseURL: fromStored(r.BaseUrl, l.simulators),
			Auth:           ERPAuth{Type: AuthType(r.AuthType), Name: r.AuthName, Secret: secret.NewText(string(auth))},
			ConflictIsDone: r.ConflictIsDone, Networks: r.Networks, MaxInFlight: int(r.MaxInFlight), Locked: !ok,
			Channels: channelsOf(r.Channels),
		}
	})
}

func channelsOf(names []string) (channels []checkout.Channel) {
	for _, name := range names {
		channels = append(channels, checkout.Channel(name))
	}
	return channels
}

func (l *loader) applications() {
	s, cashin := l.s, map[string]*Cashin{}
	read(l, "cashin_access", func(r db.CashinAccess, believed bool) {
		if !believed {
			return
		}
		cashin[r.ApplicationID] = &Cashin{
			RedirectOrigins: r.RedirectOrigins, WebhookURL: fromStored(r.WebhookUrl, l.simulators), Providers: r.Providers,
		}
	})
	read(l, "applications", func(r db.Application, believed bool) {
		if !believed || s.Agencies[r.AgencyID].Locked {
			s.Applications[r.ID] = Application{ID: r.ID, AgencyID: r.AgencyID, Name: r.Name, SessionLifetime: MinLifetime, PageSize: DefaultPageSize, CreatedAt: r.CreatedAt.UTC()}
			return
		}
		s.Applications[r.ID] = Application{
			ID: r.ID, AgencyID: r.AgencyID, Name: r.Name, Active: r.Active, Integrator: r.Integrator, Portal: r.Portal, Offers: r.Offers, SuccessOrigins: r.SuccessOrigins,
			EmbedOrigins: r.EmbedOrigins, SessionLifetime: time.Duration(r.SessionLifetimeMs) * time.Millisecond,
			CreationsPerMinute: int(r.CreationsPerMinute), ReadsPerMinute: int(r.ReadsPerMinute), PageSize: int(r.PageSize),
			Cashin: cashin[r.ID], CreatedAt: r.CreatedAt.UTC(),
		}
		s.commanded[r.ID], s.byCommand[r.ID] = r.SetByCommand, r.OriginsByCommand
		if r.Integrator {
			s.integrators[r.AgencyID] = r.ID
		}
	})
}

func (l *loader) endpoints() {
	secrets := map[string][]endpointSecret{}
	read(l, "webhook_secrets", func(r db.WebhookSecret, believed bool) {
		known := endpointSecret{digest: sha256.Sum256(nil)}
		if len(r.Digest) == sha256.Size {
			known.digest = Digest(r.Digest)
		}
		if believed {
			known.expiresAt = value(r.ExpiresAt).UTC()
		}
		if l.keys != nil && believed && !l.without(LabelWebhook) {
			if plain, err := l.keys.Open(LabelWebhook, r.Sealed, []byte(r.EndpointID)); err == nil {
				known.value = secret.NewText(string(plain))
			} else if r.ExpiresAt == nil { // an expired secret need not open
				l.s.locked = append(l.s.locked, "webhook endpoint "+r.EndpointID)
			}
		}
		secrets[r.EndpointID] = append(secrets[r.EndpointID], known)
	})
	read(l, "webhook_endpoints", func(r db.WebhookEndpoint, believed bool) {
		if !believed {
			secrets[r.ID] = nil // it is Locked: deliveries to it are planned, and wait
		}
		e := &endpoint{secrets: secrets[r.ID], WebhookEndpoint: WebhookEndpoint{
			ID: r.ID, ApplicationID: value(r.ApplicationID), URL: fromStored(r.Url, l.simulators), Events: r.Events,
			MaxInFlight: int(r.MaxInFlight), MaxPerSecond: int(value(r.MaxPerSecond)), CreatedAt: r.CreatedAt.UTC(),
			RemovedAt: value(r.RemovedAt).UTC(),
		}}
		for _, m := range r.Modes {
			e.Test, e.Live = e.Test || m == Mode(false), e.Live || m == Mode(true)
		}
		l.s.endpoints, l.s.commanded[r.ID] = append(l.s.endpoints, e), r.SetByCommand
		if e.RemovedAt.IsZero() {
			l.s.byOwner[e.ApplicationID] = append(l.s.byOwner[e.ApplicationID], e)
		}
	})
}

// open unseals a value, and notes when it does not open. The rest of the registry is
// still read then, so that a revocation takes effect although a master key is missing.
func (l *loader) open(label string, sealed, aad []byte) ([]byte, bool) {
	if l.keys == nil {
		return nil, true
	}
	if l.without(label) {
		return nil, false // nothing is wrong: other roles use this secret
	}
	plain, err := l.keys.Open(label, sealed, aad)
	if err != nil {
		l.s.locked = append(l.s.locked, label+" of "+string(aad))
		return nil, false
	}
	return plain, true
}

// without reports whether this process is a role that has not the key of a label.
func (l *loader) without(label string) bool {
	return l.keys != nil && l.keys.Role() != "" && !l.keys.Holds(secret.Use{Purpose: secret.PurposeSeal, Label: label})
}

// Service finds a service of an agency's catalogue by its code, active or not.
func (s *Snapshot) Service(agencyID, code string) (Service, bool) {
	service, ok := s.byCode[codeKey{agencyID, code}]
	return service, ok
}

// HasERP reports whether an agency has an ERP in a mode.
func (s *Snapshot) HasERP(agencyID string, live bool) bool {
	_, ok := s.erp[modeKey{agencyID, live}]
	return ok
}

// IntegratorOf returns the id of an agency's integrator application; empty when it has
// none.
func (s *Snapshot) IntegratorOf(agencyID string) string { return s.integrators[agencyID] }

// SetByCommand reports whether a command has set a field of an application, a webhook
// endpoint or an agency. Fields have the names of the registry file.
func (s *Snapshot) SetByCommand(id, field string) bool {
	return slices.Contains(s.commanded[id], field)
}

// OriginByCommand reports whether a command has added or removed an embed origin of an
// application, or of the platform when applicationID is empty.
func (s *Snapshot) OriginByCommand(applicationID, origin string) bool {
	return slices.Contains(s.byCommand[applicationID], origin)
}

// RemovedEndpointOf finds a removed webhook endpoint of an application, or of the platform
// when applicationID is empty, by its address. The result has no secrets.
func (s *Snapshot) RemovedEndpointOf(applicationID, url string) (WebhookEndpoint, bool) {
	e, ok := find(s.endpoints, func(e *endpoint) bool {
		return e.ApplicationID == applicationID && e.URL == url && !e.RemovedAt.IsZero()
	})
	if !ok {
		return WebhookEndpoint{}, false
	}
	return e.WebhookEndpoint, true
}

// FindApplication finds an application by its id, or by its name if no other has it. The
// error is an *operation.Error with the field application.
func (s *Snapshot) FindApplication(named string) (Application, error) {
	if id, ok := form.CanonicalUUID(named); ok && s.Applications[id].ID != "" {
		return s.Applications[id], nil
	}
	var found []Application
	var all, alike []string
	for id, a := range s.Applications {
		line := id + " " + a.Name + " (" + s.Agencies[a.AgencyID].Slug + ")"
		if a.Name == named {
			found, alike = append(found, a), append(alike, line)
		}
		all = append(all, line)
	}
	slices.Sort(all)
	slices.Sort(alike)
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return Application{}, operation.Refuse("application.ambiguous", "application", operation.Args{"applications": alike})
	}
	return Application{}, operation.Refuse("application.unknown", "application", operation.Args{"applications": all})
}

// FindAgency finds an agency by its id or slug. The error is an *operation.Error with the
// field agency.
func (s *Snapshot) FindAgency(named string) (Agency, error) {
	id, _ := form.CanonicalUUID(named)
	all := []string{}
	for _, a := range s.Agencies {
		if a.ID == id || a.Slug == named {
			return a, nil
		}
		all = append(all, a.Slug)
	}
	slices.Sort(all)
	args := operation.Args{"agencies": all}
	if IsSlug(named) { // another text may be a secret
		args["agency"] = named
	}
	return Agency{}, operation.Refuse("agency.unknown", "agency", args)
}

// EndpointOf finds the webhook endpoint of an application, or of the platform when
// applicationID is empty, by its address. Removed ones are not found. The result has no
// secrets.
func (s *Snapshot) EndpointOf(applicationID, url string) (WebhookEndpoint, bool) {
	if e, ok := find(s.byOwner[applicationID], func(e *endpoint) bool { return e.URL == url }); ok {
		return e.WebhookEndpoint, true
	}
	return WebhookEndpoint{}, false
}

// endpoint finds a webhook endpoint by its id; nil when there is none.
func (s *Snapshot) endpoint(id string) *endpoint {
	i, ok := slices.BinarySearchFunc(s.endpoints, id, func(e *endpoint, id string) int { return strings.Compare(e.ID, id) })
	if !ok {
		return nil
	}
	return s.endpoints[i]
}

// at returns the endpoint with the secrets that sign at a moment.
func (e *endpoint) at(now time.Time) WebhookEndpoint {
	out := e.WebhookEndpoint
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

// sorted returns the values of a map, sorted by a text of each.
func sorted[K comparable, V any](m map[K]V, by func(V) string) []V {
	return slices.SortedFunc(maps.Values(m), func(a, b V) int { return strings.Compare(by(a), by(b)) })
}

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
