package registry

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/connector"
	"quittance/internal/registry/internal/db"
	"quittance/internal/secret"
)

// SeedOptions say how a registry file is applied.
type SeedOptions struct {
	// Keys seal what is secret. Required.
	Keys *secret.Keys
	// Developer mode: plain secrets and loopback addresses are allowed, live
	// connectors are not, neither in the file nor in the database.
	Developer bool
	// Operators are those whose accounts the file may hold.
	Operators connector.Table
	// Now stamps what is created; the machine's clock when nil.
	Now func() time.Time
}

// Report is what a registry file did.
type Report struct {
	// What the file holds.
	Agencies, Applications, Services, Keys, Endpoints, Clerks int
	// Changed is false when the database held all of it already.
	Changed bool
	// Minted are the secrets made for new endpoints that came without one: to be
	// shown once.
	Minted []Minted
	// Notes are what the file says and the database keeps otherwise: revoked
	// keys, suspended endpoints, rotated secrets.
	Notes []string
}

// Minted is a secret that was made.
type Minted struct {
	Path   string // of the endpoint in the file
	Secret secret.Text
}

// Seed applies a registry file in one transaction. An error that is Faults names
// everything that is wrong with the file; whatever the error, nothing changed.
// See the package's documentation for what a file means.
func Seed(ctx context.Context, pool *pgxpool.Pool, text []byte, opts SeedOptions) (Report, error) {
	if opts.Keys == nil {
		return Report{}, errors.New("seeding the registry: Keys are required")
	}
	if opts.Now == nil {
		opts.Now = func() time.Time { return time.Now().UTC() }
	}
	var report Report
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		q := db.New(tx)
		before, err := q.LockRevision(ctx) // one seeding at a time
		if err != nil {
			return fmt.Errorf("seeding the registry: %w", err)
		}
		known, err := load(ctx, q, opts.Keys)
		if err != nil {
			return fmt.Errorf("seeding the registry: %w", err)
		}
		var faults Faults
		f := parse(text, opts.Operators, opts.Developer, &faults)
		check(f, known, opts.Developer, opts.Now(), &faults)
		if len(faults) > 0 {
			return faults
		}
		s := seeder{q: q, known: known, suspended: map[string]time.Time{}, opts: opts, now: opts.Now()}
		if err := s.apply(ctx, f); err != nil {
			return fmt.Errorf("seeding the registry: %w", err)
		}
		after, err := q.Revision(ctx)
		if err != nil {
			return fmt.Errorf("seeding the registry: %w", err)
		}
		s.report.Changed = after != before
		report = s.report
		return nil
	})
	return report, err
}

// check finds what is wrong with the file as a whole and against what is known.
func check(f file, known *snapshot, developer bool, now time.Time, faults *Faults) {
	c := checker{
		known: known, now: now, faults: faults,
		agencies: map[string]bool{}, named: map[string]bool{}, slugs: map[string]string{}, serviceIDs: map[string]bool{}, applications: map[string]bool{},
		integrators: map[string]string{}, keys: map[hash]bool{}, cashin: map[hash]bool{},
	}
	for id := range known.agencies {
		c.agencies[id] = true
	}
	maps.Copy(c.slugs, known.slugs)
	maps.Copy(c.integrators, known.integrators)
	c.demote(f)
	for _, a := range f.agencies {
		c.agency(a)
	}
	c.endpoints(f.platformEndpoints)
	for _, k := range f.platformKeys {
		c.key(k, "")
		for i, agency := range k.agencies {
			path := fmt.Sprintf("%s.agencies[%d]", k.path, i)
			if agency == "" {
				continue // told
			}
			if !c.agencies[agency] {
				faults.add(path, "is no agency of the file or the registry")
			} else if c.integrators[agency] == "" {
				faults.add(path, "is an agency without an integrator application, so that platform keys cannot target it: mark one with integrator: true")
			}
		}
	}
	if developer {
		for k := range known.accounts {
			if k.live {
				faults.add("", "the registry holds a live %s account of agency %s: developer mode refuses it", k.offer, k.agencyID)
			}
		}
	}
}

// checker merges the file into what is known, as far as checks need it.
type checker struct {
	known  *snapshot
	now    time.Time
	faults *Faults

	agencies     map[string]bool   // by id
	named        map[string]bool   // agencies of the file
	slugs        map[string]string // → id
	serviceIDs   map[string]bool   // of the file
	applications map[string]bool   // of the file
	integrators  map[string]string // agency → application
	keys         map[hash]bool     // of the file
	cashin       map[hash]bool     // of the file
}

// demote takes the mark from applications that the file says are no integrators
// before others get it.
func (c *checker) demote(f file) {
	for _, a := range f.agencies {
		for _, app := range a.applications {
			if app.integrator != nil && !*app.integrator && c.integrators[a.id] == app.id {
				delete(c.integrators, a.id)
			}
		}
	}
}

func (c *checker) agency(a fileAgency) {
	if a.id != "" {
		if owner, taken := c.slugs[a.slug]; taken && owner != a.id {
			c.faults.add(a.path+".slug", "is the slug of agency %s", owner)
		} else if a.slug != "" {
			// The slug it had is free for another agency only with the next file:
			// the order of a file must not matter.
			c.slugs[a.slug] = a.id
		}
		if c.named[a.id] {
			c.faults.add(a.path+".id", "stands twice")
		}
		c.named[a.id], c.agencies[a.id] = true, true
	}
	codes := c.services(a)
	mappings := map[string]bool{}
	for _, m := range a.mappings {
		if m.erpCode != "" && mappings[m.erpCode] {
			c.faults.add(m.path+".erp_code", "stands twice")
		}
		mappings[m.erpCode] = true
		c.serviceExists(a.id, codes, m.path+".service", m.service)
	}
	if a.defaultService != nil {
		c.serviceExists(a.id, codes, a.path+".default_service", *a.defaultService)
	}
	fees := map[feeKey]bool{}
	for i, f := range a.fees {
		k := feeKey{channel: f.channel, currency: f.currency}
		if fees[k] && f.channel != "" {
			c.faults.add(fmt.Sprintf("%s.fees[%d]", a.path, i), "stands twice: one row for each channel and currency")
		}
		fees[k] = true
	}
	for _, app := range a.applications {
		c.application(a, app)
	}
	c.clerks(a)
}

func (c *checker) services(a fileAgency) map[string]bool {
	codes := map[string]bool{}
	for _, s := range a.services {
		if s.code != "" && codes[s.code] {
			c.faults.add(s.path+".code", "stands twice")
		}
		codes[s.code] = true
		if s.id == "" {
			continue
		}
		if c.serviceIDs[s.id] {
			c.faults.add(s.path+".id", "stands twice")
		}
		c.serviceIDs[s.id] = true
		if a.id == "" {
			continue // told, and nothing to compare with
		}
		if known, ok := c.known.serviceIDs[s.id]; ok && known.AgencyID != a.id {
			c.faults.add(s.path+".id", "is a service of another agency")
		}
		if known, ok := c.known.services[codeKey{a.id, s.code}]; ok && known.ID != s.id {
			c.faults.add(s.path+".code", "is the code of service %s of this agency", known.ID)
		}
	}
	return codes
}

func (c *checker) serviceExists(agencyID string, codes map[string]bool, path, code string) {
	if agencyID == "" || code == "" || codes[code] || inSnapshot(c.known.services, codeKey{agencyID, code}) {
		return
	}
	c.faults.add(path, "is no service of this agency")
}

func (c *checker) application(a fileAgency, app fileApplication) {
	// Without knowing which application it is, what it has cannot be compared
	// with what there is.
	known, ok := c.known.applications[app.id]
	switch {
	case app.id == "" || a.id == "":
		return // told
	case c.applications[app.id]:
		c.faults.add(app.path+".id", "stands twice")
		return
	case ok && known.AgencyID != a.id:
		c.faults.add(app.path+".id", "is an application of another agency")
		return
	}
	c.applications[app.id] = true
	if app.integrator != nil && *app.integrator {
		if other := c.integrators[a.id]; other != "" && other != app.id {
			c.faults.add(app.path+".integrator", "is already application %s: an agency has one integrator application", other)
		} else {
			c.integrators[a.id] = app.id
		}
	}
	c.applicationKeys(app)
	c.endpoints(app.endpoints)
	if app.cashin != nil && !app.cashin.apiKey.Empty() {
		h := hash(sha256.Sum256([]byte(app.cashin.apiKey.Reveal())))
		if owner, ok := c.known.cashin[h]; c.cashin[h] || ok && owner != app.id {
			c.faults.add(app.cashin.path+".api_key", "is the key of another application")
		}
		c.cashin[h] = true
	}
}

func (c *checker) applicationKeys(app fileApplication) {
	inForce := map[bool]int{}
	for _, k := range c.known.keys {
		if k.ApplicationID == app.id && k.InForce(c.now) {
			inForce[k.Live]++
		}
	}
	for _, k := range app.keys {
		c.key(k, app.id)
		if !k.secret.Empty() && !inSnapshot(c.known.keys, k.hash()) {
			if inForce[k.live]++; inForce[k.live] > maxKeys {
				c.faults.add(k.path, "would be one too many: an application has at most %d %s keys in force", maxKeys, mode(k.live))
			}
		}
	}
}

func (c *checker) key(k fileKey, owner string) {
	if k.secret.Empty() {
		return // told
	}
	if c.keys[k.hash()] {
		c.faults.add(k.path+".secret", "stands twice")
	}
	c.keys[k.hash()] = true
	if known, ok := c.known.keys[k.hash()]; ok && known.ApplicationID != owner {
		c.faults.add(k.path+".secret", "is a key of another owner")
	}
}

func (c *checker) clerks(a fileAgency) {
	codes := map[string]bool{}
	for _, clerk := range a.clerks {
		if a.id == "" || clerk.code == "" {
			continue // told: whose the keys are cannot be compared
		}
		if codes[clerk.code] {
			c.faults.add(clerk.path+".code", "stands twice")
		}
		codes[clerk.code] = true
		inForce := map[bool]int{}
		for _, k := range c.known.clerkKeys {
			if k.AgencyID == a.id && k.ClerkCode == clerk.code && k.InForce() {
				inForce[k.Live]++
			}
		}
		for _, k := range clerk.keys {
			if k.secret.Empty() {
				continue // told
			}
			if c.keys[k.hash()] {
				c.faults.add(k.path+".secret", "stands twice")
			}
			c.keys[k.hash()] = true
			known, ok := c.known.clerkKeys[k.hash()]
			if ok && (known.AgencyID != a.id || known.ClerkCode != clerk.code) {
				c.faults.add(k.path+".secret", "is a key of another clerk")
			}
			if !ok {
				if inForce[k.live]++; inForce[k.live] > maxKeys {
					c.faults.add(k.path, "would be one too many: a clerk has at most %d %s keys in force", maxKeys, mode(k.live))
				}
			}
		}
	}
}

func (c *checker) endpoints(endpoints []fileEndpoint) {
	urls := map[string]bool{}
	for _, e := range endpoints {
		if e.url != "" && urls[e.url] {
			c.faults.add(e.path+".url", "stands twice")
		}
		urls[e.url] = true
	}
}

func inSnapshot[K comparable, V any](m map[K]V, k K) bool {
	_, ok := m[k]
	return ok
}

func (k fileKey) hash() hash { return sha256.Sum256([]byte(k.secret.Reveal())) }

// seeder writes a file that has no faults.
type seeder struct {
	q         *db.Queries
	known     *snapshot
	suspended map[string]time.Time // endpoints, since when
	opts      SeedOptions
	now       time.Time
	report    Report
}

func (s *seeder) apply(ctx context.Context, f file) error {
	held, err := s.q.SuspendedEndpoints(ctx)
	if err != nil {
		return fmt.Errorf("reading suspended endpoints: %w", err)
	}
	for _, r := range held {
		s.suspended[r.DestinationID] = value(r.SuspendedAt).UTC()
	}
	var demoted []string
	for _, a := range f.agencies {
		for _, app := range a.applications {
			if app.integrator != nil && !*app.integrator {
				demoted = append(demoted, app.id)
			}
		}
	}
	if err := s.q.DemoteIntegrators(ctx, demoted); err != nil {
		return fmt.Errorf("applications: %w", err)
	}
	for _, a := range f.agencies {
		if err := s.agency(ctx, a); err != nil {
			return fmt.Errorf("%s: %w", a.path, err)
		}
	}
	if f.platformOrigins != nil {
		if err := s.q.SetPlatformOrigins(ctx, f.platformOrigins); err != nil {
			return fmt.Errorf("platform: %w", err)
		}
	}
	for _, k := range f.platformKeys {
		if err := s.key(ctx, k, nil); err != nil {
			return fmt.Errorf("%s: %w", k.path, err)
		}
	}
	return s.endpoints(ctx, f.platformEndpoints, nil)
}

func (s *seeder) agency(ctx context.Context, a fileAgency) error {
	s.report.Agencies++
	if err := s.q.UpsertAgency(ctx, db.UpsertAgencyParams{ID: a.id, Slug: a.slug, Name: a.name, CreatedAt: s.now}); err != nil {
		return err
	}
	for _, v := range a.services {
		s.report.Services++
		if v.id == "" {
			v.id = s.known.services[codeKey{a.id, v.code}].ID
		}
		if v.id == "" {
			v.id = newID()
		}
		if err := s.q.UpsertService(ctx, db.UpsertServiceParams{ID: v.id, AgencyID: a.id, Code: v.code, Label: v.label, Active: v.active}); err != nil {
			return err
		}
	}
	for _, m := range a.mappings {
		if err := s.q.UpsertServiceMapping(ctx, db.UpsertServiceMappingParams{AgencyID: a.id, ErpCode: m.erpCode, ServiceCode: m.service}); err != nil {
			return err
		}
	}
	if a.defaultService != nil {
		if err := s.q.SetDefaultService(ctx, db.SetDefaultServiceParams{ID: a.id, DefaultService: a.defaultService}); err != nil {
			return err
		}
	}
	for _, f := range a.fees {
		row := db.UpsertFeeParams{
			AgencyID: a.id, Channel: f.channel, Currency: f.currency,
			RatioPpm: f.schedule.RatioPPM, Fixed: f.schedule.Fixed, Minimum: f.schedule.Minimum,
		}
		if f.schedule.HasMaximum {
			row.Maximum = &f.schedule.Maximum
		}
		if err := s.q.UpsertFee(ctx, row); err != nil {
			return err
		}
	}
	if err := s.backends(ctx, a); err != nil {
		return err
	}
	if err := s.accounts(ctx, a); err != nil {
		return err
	}
	for _, app := range a.applications {
		if err := s.application(ctx, a.id, app); err != nil {
			return err
		}
	}
	for _, c := range a.clerks {
		if err := s.clerk(ctx, a.id, c); err != nil {
			return fmt.Errorf("%s: %w", c.path, err)
		}
	}
	return nil
}

// backends writes the ERP settings that differ: sealing the same text
// again would look like a change.
func (s *seeder) backends(ctx context.Context, a fileAgency) error {
	for _, e := range a.erp {
		old, ok := s.known.erp[modeKey{a.id, e.Live}]
		if ok && !old.Locked && old.BaseURL == e.BaseURL && old.Auth.Type == e.Auth.Type && old.Auth.Name == e.Auth.Name &&
			old.Auth.Secret.Equal(e.Auth.Secret) && old.ConflictIsDone == e.ConflictIsDone && slices.Equal(old.Networks, e.Networks) {
			continue
		}
		sealed, err := s.opts.Keys.Seal(labelERP, []byte(e.Auth.Secret.Reveal()), erpAAD(a.id, e.Live))
		if err != nil {
			return err
		}
		if err := s.q.UpsertERPSettings(ctx, db.UpsertERPSettingsParams{
			AgencyID: a.id, Live: e.Live, BaseUrl: e.BaseURL, AuthType: string(e.Auth.Type), AuthName: e.Auth.Name,
			AuthSealed: sealed, ConflictIsDone: e.ConflictIsDone, Networks: e.Networks,
		}); err != nil {
			return err
		}
	}
	return nil
}

func (s *seeder) application(ctx context.Context, agencyID string, a fileApplication) error {
	s.report.Applications++
	if err := s.q.UpsertApplication(ctx, db.UpsertApplicationParams{
		ID: a.id, AgencyID: agencyID, Name: a.name, Active: a.active, Integrator: a.integrator, Offers: a.offers, EmbedOrigins: a.embedOrigins,
		SessionLifetimeMs: a.sessionLifetime, CreationsPerMinute: narrow(a.creationsPerMinute), ReadsPerMinute: narrow(a.readsPerMinute),
		PageSize: narrow(a.pageSize), CreatedAt: s.now,
	}); err != nil {
		return fmt.Errorf("%s: %w", a.path, err)
	}
	for _, k := range a.keys {
		if err := s.key(ctx, k, &a.id); err != nil {
			return fmt.Errorf("%s: %w", k.path, err)
		}
	}
	if err := s.endpoints(ctx, a.endpoints, &a.id); err != nil {
		return err
	}
	if a.cashin == nil {
		return nil
	}
	if err := s.cashin(ctx, a.id, *a.cashin); err != nil {
		return fmt.Errorf("%s: %w", a.cashin.path, err)
	}
	return nil
}

func (s *seeder) cashin(ctx context.Context, applicationID string, c fileCashin) error {
	digest := sha256.Sum256([]byte(c.apiKey.Reveal()))
	old := s.known.applications[applicationID].Cashin
	if old != nil && !old.Locked && bytes.Equal(old.APIKeyHash, digest[:]) && old.SecretKey.Equal(c.secretKey) &&
		slices.Equal(old.RedirectOrigins, c.origins) && old.WebhookURL == toStored(c.webhookURL, s.opts.Developer) && slices.Equal(old.Providers, c.providers) {
		return nil
	}
	sealed, err := s.opts.Keys.Seal(labelCashin, []byte(c.secretKey.Reveal()), []byte(applicationID))
	if err != nil {
		return err
	}
	return s.q.UpsertCashinAccess(ctx, db.UpsertCashinAccessParams{
		ApplicationID: applicationID, ApiKeyHash: digest[:], SecretSealed: sealed, RedirectOrigins: c.origins,
		WebhookUrl: toStored(c.webhookURL, s.opts.Developer), Providers: c.providers,
	})
}

// key adds a key that is not known. One that is keeps its state; a platform key
// may be granted other agencies.
func (s *seeder) key(ctx context.Context, k fileKey, applicationID *string) error {
	s.report.Keys++
	h := k.hash()
	known, ok := s.known.keys[h]
	if !ok {
		return s.q.InsertAPIKey(ctx, db.InsertAPIKeyParams{
			ID: newID(), Hash: h[:], ApplicationID: applicationID, Live: k.live, Agencies: nonNil(k.agencies),
			ReadsPerMinute: narrow(k.readsPerMinute), CreatedAt: s.now,
		})
	}
	switch {
	case !known.RevokedAt.IsZero():
		s.note(k.path, "this key was revoked at %s and stays so", known.RevokedAt.Format(time.RFC3339))
	case !known.EndsAt.IsZero():
		s.note(k.path, "this key was rotated, its end at %s stays", known.EndsAt.Format(time.RFC3339))
	}
	if applicationID != nil {
		return nil
	}
	return s.q.UpdatePlatformKey(ctx, db.UpdatePlatformKeyParams{ID: known.ID, Agencies: k.agencies, ReadsPerMinute: narrow(k.readsPerMinute)})
}

func (s *seeder) clerk(ctx context.Context, agencyID string, c fileClerk) error {
	s.report.Clerks++
	if err := s.q.UpsertClerk(ctx, db.UpsertClerkParams{
		AgencyID: agencyID, Code: c.code, Name: c.name, Counter: c.counter, Active: c.active, CreatedAt: s.now,
	}); err != nil {
		return err
	}
	for _, k := range c.keys {
		s.report.Keys++
		h := k.hash()
		known, ok := s.known.clerkKeys[h]
		switch {
		case !ok:
			if err := s.q.InsertClerkKey(ctx, db.InsertClerkKeyParams{
				ID: newID(), Hash: h[:], AgencyID: agencyID, ClerkCode: c.code, Live: k.live, CreatedAt: s.now,
			}); err != nil {
				return err
			}
		case !known.InForce():
			s.note(k.path, "this key was revoked at %s and stays so", known.RevokedAt.Format(time.RFC3339))
		}
	}
	return nil
}

func (s *seeder) endpoints(ctx context.Context, endpoints []fileEndpoint, applicationID *string) error {
	for _, e := range endpoints {
		s.report.Endpoints++
		if err := s.endpoint(ctx, e, applicationID); err != nil {
			return fmt.Errorf("%s: %w", e.path, err)
		}
	}
	return nil
}

func (s *seeder) endpoint(ctx context.Context, e fileEndpoint, applicationID *string) error {
	for _, id := range s.known.byOwner[value(applicationID)] {
		if known := s.known.endpoints[id]; known.URL == e.url {
			return s.knownEndpoint(ctx, e, known)
		}
	}
	id := newID()
	if err := s.q.InsertWebhookEndpoint(ctx, db.InsertWebhookEndpointParams{
		ID: id, ApplicationID: applicationID, Url: e.url, Events: e.events, Modes: e.modes, MaxInFlight: narrow(e.maxInFlight),
		MaxPerSecond: narrow(e.maxPerSecond), CreatedAt: s.now,
	}); err != nil {
		return err
	}
	if e.secret.Empty() {
		e.secret = MintWebhookSecret()
		s.report.Minted = append(s.report.Minted, Minted{Path: e.path, Secret: e.secret})
	}
	return s.signWith(ctx, id, e.secret)
}

func (s *seeder) knownEndpoint(ctx context.Context, e fileEndpoint, known endpoint) error {
	if err := s.q.UpdateWebhookEndpoint(ctx, db.UpdateWebhookEndpointParams{
		ID: known.ID, Events: e.events, Modes: e.modes, MaxInFlight: narrow(e.maxInFlight), MaxPerSecond: narrow(e.maxPerSecond),
	}); err != nil {
		return err
	}
	if at, suspended := s.suspended[known.ID]; suspended {
		s.note(e.path, "this endpoint was suspended at %s and stays so", at.Format(time.RFC3339))
	}
	if e.secret.Empty() {
		return nil
	}
	digest := sha256.Sum256([]byte(e.secret.Reveal()))
	for _, old := range known.secrets {
		if old.digest != digest {
			continue
		}
		if !old.expiresAt.IsZero() {
			s.note(e.path+".secret", "this secret was rotated out and stays so")
		}
		return nil
	}
	// One that the endpoint never had: the file was edited.
	if err := s.q.ExpireWebhookSecrets(ctx, db.ExpireWebhookSecretsParams{EndpointID: known.ID, ExpiresAt: &s.now}); err != nil {
		return err
	}
	return s.signWith(ctx, known.ID, e.secret)
}

func (s *seeder) signWith(ctx context.Context, endpointID string, with secret.Text) error {
	return insertSigning(ctx, s.q, s.opts.Keys, endpointID, with, s.now)
}

// insertSigning gives an endpoint a secret to sign with, beside those it has.
func insertSigning(ctx context.Context, q *db.Queries, keys *secret.Keys, endpointID string, with secret.Text, now time.Time) error {
	digest := sha256.Sum256([]byte(with.Reveal()))
	sealed, err := keys.Seal(labelWebhook, []byte(with.Reveal()), []byte(endpointID))
	if err != nil {
		return err
	}
	return q.InsertWebhookSecret(ctx, db.InsertWebhookSecretParams{EndpointID: endpointID, Digest: digest[:], Sealed: sealed, CreatedAt: now})
}

func (s *seeder) note(path, format string, args ...any) {
	s.report.Notes = append(s.report.Notes, path+": "+fmt.Sprintf(format, args...))
}

// MintWebhookSecret makes a webhook secret: whsec_ and 32 random bytes in base64,
// which is what the Standard Webhooks libraries decode.
func MintWebhookSecret() secret.Text {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails: the program ends instead
	return secret.NewText("whsec_" + base64.StdEncoding.EncodeToString(raw[:]))
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

// narrow is for numbers that the parser has bounded.
func narrow(n *int64) *int32 {
	if n == nil {
		return nil
	}
	v := int32(*n) //nolint:gosec // at most maxPerMinute
	return &v
}
