package registryfile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/cashin"
	"quittance/internal/connector"
	"quittance/internal/form"
	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/registry/db"
	"quittance/internal/secret"
)

// Options say how a registry file is applied.
type Options struct {
	// Keys seal the secrets. Required.
	Keys *secret.Keys
	// Developer mode allows secrets in plain text and loopback addresses. It allows no
	// live connectors, neither in the file nor in the database.
	Developer bool
	// Operators whose merchant accounts the file may hold.
	Operators connector.Table
	// Overrule sets the fields and origins of the file also where a command has set them
	// (internal/registry/DESIGN.md).
	Overrule bool
	// Now returns the time of creation in UTC; the machine's clock when nil.
	Now func() time.Time
}

// Report says what a registry file holds and what it changed.
type Report struct {
	// Counts of what the file holds.
	Agencies, Applications, Services, Keys, Endpoints, Clerks, Accounts int
	// Changed is false when the database already held all of it.
	Changed bool
	// Minted are the secrets made for new endpoints without one. Show them once.
	Minted []Minted
	// Notes name the objects whose state in the database differs from the file and stays:
	// revoked keys, suspended endpoints, rotated secrets.
	Notes []string
}

// Minted is a new secret of an endpoint.
type Minted struct {
	Path   string // of the endpoint in the file
	Secret secret.Text
}

// Apply applies a registry file in one transaction. A *form.FaultsError names all faults
// of the file. After an error nothing has changed.
func Apply(ctx context.Context, pool *pgxpool.Pool, actor operation.Actor, text []byte, opts Options) (Report, error) {
	if opts.Keys == nil {
		return Report{}, errors.New("applying a registry file: Keys are required")
	}
	now := time.Now().UTC()
	if opts.Now != nil {
		now = opts.Now()
	}
	var report Report
	err := registry.Change(ctx, pool, opts.Keys, now, func(tx *registry.Tx) error {
		identities, err := identity.Within(ctx, tx)
		if err != nil {
			return err
		}
		pairs, err := cashin.Within(ctx, tx)
		if err != nil {
			return err
		}
		contents, faults := check(text, opts, tx, identities, pairs)
		if len(faults) > 0 {
			return &form.FaultsError{Faults: faults}
		}
		w := writer{Tx: tx, q: db.New(tx), identities: identities, pairs: pairs, overrule: opts.Overrule, suspended: map[string]time.Time{}}
		if err := w.write(ctx, contents); err != nil {
			return err
		}
		report = w.report
		if report.Changed, err = tx.Changed(ctx); err != nil || !report.Changed {
			return err
		}
		return operation.Record(ctx, tx, actor, now, operation.Entry{Action: "registry.apply", Subject: "registry", Detail: map[string]any{
			"agencies": report.Agencies, "applications": report.Applications, "services": report.Services,
			"keys": report.Keys, "endpoints": report.Endpoints, "clerks": report.Clerks, "accounts": report.Accounts,
		}})
	})
	if err != nil {
		return Report{}, fmt.Errorf("applying a registry file: %w", err)
	}
	return report, nil
}

// writer writes the contents of a file without faults.
type writer struct {
	*registry.Tx
	q          *db.Queries
	identities *identity.Tx
	pairs      *cashin.Tx
	overrule   bool
	suspended  map[string]time.Time // endpoints, by the time of their suspension
	report     Report
}

func (w *writer) write(ctx context.Context, c contents) error {
	held, err := w.q.SuspendedEndpoints(ctx)
	if err != nil {
		return fmt.Errorf("reading suspended endpoints: %w", err)
	}
	for _, r := range held {
		w.suspended[r.DestinationID] = r.SuspendedAt.UTC()
	}
	var demoted []string
	for _, a := range c.agencies {
		for _, app := range a.applications {
			if app.Integrator != nil && !*app.Integrator {
				demoted = append(demoted, app.ID)
			}
		}
	}
	if err := w.q.DemoteIntegrators(ctx, demoted); err != nil {
		return fmt.Errorf("applications: %w", err)
	}
	for _, a := range c.agencies {
		if err := w.agency(ctx, a); err != nil {
			return fmt.Errorf("%s: %w", a.path, err)
		}
	}
	if err := w.platformOrigins(ctx, c.platformOrigins); err != nil {
		return fmt.Errorf("platform: %w", err)
	}
	if err := w.keys(ctx, c.platformKeys, identity.Key{}); err != nil {
		return err
	}
	return w.endpoints(ctx, c.platformEndpoints, "")
}

func (w *writer) agency(ctx context.Context, a agency) error {
	w.report.Agencies++
	w.report.Services += len(a.services)
	if err := w.q.UpsertAgency(ctx, a.UpsertAgencyParams); err != nil {
		return err
	}
	if err := w.services(ctx, a); err != nil {
		return err
	}
	if err := w.mappings(ctx, a); err != nil {
		return err
	}
	if a.latePayments != nil || a.singleApprovalBelow != nil {
		if err := w.q.SetLateMoney(ctx, db.SetLateMoneyParams{ID: a.ID, LatePayments: a.latePayments, SingleApprovalBelow: a.singleApprovalBelow}); err != nil {
			return err
		}
	}
	if err := w.reachable(ctx, a); err != nil {
		return err
	}
	for _, f := range a.fees {
		if err := w.Anew(ctx, "fees", f.AgencyID, f.Channel, f.Currency); err != nil {
			return err
		}
		if err := w.q.UpsertFee(ctx, f); err != nil {
			return err
		}
	}
	for _, e := range a.erp {
		if err := w.PutERP(ctx, e); err != nil {
			return err
		}
	}
	for _, c := range a.accounts {
		if err := w.PutAccount(ctx, c.StoredAccount, c.AccountType); err != nil {
			return err
		}
	}
	for _, p := range a.payouts {
		if err := w.PutAccount(ctx, p.StoredAccount, p.AccountType); err != nil {
			return fmt.Errorf("%s: %w", p.path, err)
		}
		if err := w.PutPayoutModes(ctx, p.AccountKey, p.modes); err != nil {
			return fmt.Errorf("%s: %w", p.path, err)
		}
	}
	for _, s := range a.statementAccounts {
		w.report.Accounts++
		if err := w.PutStatementAccount(ctx, s.StatementAccount); err != nil {
			return fmt.Errorf("%s: %w", s.path, err)
		}
	}
	for _, app := range a.applications {
		if err := w.application(ctx, app); err != nil {
			return fmt.Errorf("%s: %w", app.path, err)
		}
	}
	if err := w.portal(ctx, a); err != nil {
		return fmt.Errorf("portal: %w", err)
	}
	return w.clerks(ctx, a)
}

// services writes the services of an agency. One without an id keeps that of its code.
func (w *writer) services(ctx context.Context, a agency) error {
	for _, v := range a.services {
		if known, ok := w.Before.Service(a.ID, v.Code); v.ID == "" && ok {
			v.ID = known.ID
		} else if v.ID == "" {
			v.ID = newID()
		}
		if err := w.q.UpsertService(ctx, v.UpsertServiceParams); err != nil {
			return err
		}
	}
	return nil
}

// clerks writes the clerks of an agency and their keys.
func (w *writer) clerks(ctx context.Context, a agency) error {
	for _, c := range a.clerks {
		w.report.Clerks++
		if err := w.identities.PutClerk(ctx, c.Clerk, c.settings); err != nil {
			return fmt.Errorf("%s: %w", c.path, err)
		}
		if err := w.keys(ctx, c.keys, c.holder()); err != nil {
			return err
		}
	}
	return nil
}

// reachable writes what citizens see of an agency beside its name.
func (w *writer) reachable(ctx context.Context, a agency) error {
	if a.logo != nil {
		if err := w.q.SetAgencyLogo(ctx, db.SetAgencyLogoParams{ID: a.ID, Logo: a.logo}); err != nil {
			return err
		}
	}
	if a.address != "" {
		if err := w.q.SetAgencyAddress(ctx, db.SetAgencyAddressParams{ID: a.ID, Address: a.address}); err != nil {
			return err
		}
	}
	if a.receipt != nil {
		a.receipt.ID = a.ID
		if err := w.q.SetAgencyReceipt(ctx, *a.receipt); err != nil {
			return err
		}
	}
	if a.contact == nil {
		return nil
	}
	a.contact.ID = a.ID
	return w.q.SetAgencyContact(ctx, *a.contact)
}

// holder returns a key with nothing but its holder.
func (c clerk) holder() identity.Key {
	return identity.Key{ClerkAgencyID: c.AgencyID, ClerkCode: c.Code}
}

func (a application) holder() identity.Key { return identity.Key{ApplicationID: a.ID} }

func (w *writer) application(ctx context.Context, a application) error {
	w.report.Applications++
	if err := w.q.UpsertApplication(ctx, w.beside(a)); err != nil {
		return err
	}
	if w.overrule {
		if err := w.q.ForgetApplicationCommands(ctx, a.ID); err != nil {
			return err
		}
	}
	if err := w.keys(ctx, a.keys, a.holder()); err != nil {
		return err
	}
	if err := w.endpoints(ctx, a.endpoints, a.ID); err != nil {
		return err
	}
	if a.cashin == nil {
		return nil
	}
	if err := w.PutCashin(ctx, a.ID, *a.cashin); err != nil {
		return err
	}
	return w.cashinPair(ctx, a)
}

// portal writes the citizen portal of an agency. A portal that the file does not name keeps
// its settings; its name follows the agency's slug.
func (w *writer) portal(ctx context.Context, a agency) error {
	now, known := w.Before.PortalOf(a.ID)
	switch {
	case a.portal == nil && (!known || now.Name == registry.PortalName(a.Slug)):
		return nil
	case a.portal == nil:
		return w.q.UpsertPortal(ctx, db.UpsertPortalParams{ID: now.ID, AgencyID: a.ID, Name: registry.PortalName(a.Slug), CreatedAt: w.Now})
	}
	if err := w.q.UpsertPortal(ctx, w.besidePortal(*a.portal)); err != nil {
		return err
	}
	if w.overrule {
		if err := w.q.ForgetApplicationCommands(ctx, a.portal.ID); err != nil {
			return err
		}
	}
	return w.endpoints(ctx, a.portal.endpoints, a.portal.ID)
}

// cashinPair makes the pair of a file the application's, unless the database knows it.
func (w *writer) cashinPair(ctx context.Context, a application) error {
	if a.pair.apiKey.Empty() {
		return nil
	}
	known, _, ok := w.pairs.ByAPIKey(a.pair.apiKey, a.pair.secretKey)
	switch {
	case !ok:
		return w.pairs.Replace(ctx, a.ID, a.pair.live, a.pair.apiKey, a.pair.secretKey)
	case !known.RevokedAt.IsZero():
		w.note(a.path+".cashin.api_key", "this pair was revoked or rotated at %s and stays revoked", stamp(known.RevokedAt))
	}
	return nil
}

// keys adds the keys of a holder that the database lacks. A known key keeps its state.
// Only the grant of a platform key can change, and with it that of the keys that were
// rotated from it: a file knows the secret of the first one only.
func (w *writer) keys(ctx context.Context, keys []key, holder identity.Key) error {
	named := map[string]bool{} // ids of keys that the file names itself
	for _, k := range keys {
		if known, ok := w.identities.KeyBySecret(k.secret); ok {
			named[known.ID] = true
		}
	}
	for _, k := range keys {
		w.report.Keys++
		var err error
		known, ok := w.identities.KeyBySecret(k.secret)
		switch {
		case !ok:
			holder.Live, holder.AgencyIDs = k.live, k.agencies
			_, err = w.identities.AddKey(ctx, holder, k.secret, k.readsPerMinute)
		case !known.RevokedAt.IsZero():
			w.note(k.path, "this key was revoked at %s and stays revoked", stamp(known.RevokedAt))
		case !known.EndsAt.IsZero():
			w.note(k.path, "this key was rotated and still ends at %s", stamp(known.EndsAt))
		}
		if ok && known.Platform() {
			var withheld []string
			withheld, err = w.identities.SeedGrant(ctx, known, k.agencies, k.readsPerMinute, func(o identity.Key) bool { return named[o.ID] })
			for _, id := range withheld {
				w.note(k.path, "agency %s was withdrawn from this key by an operator and stays withdrawn", id)
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", k.path, err)
		}
	}
	return nil
}

func (w *writer) endpoints(ctx context.Context, endpoints []endpoint, applicationID string) error {
	for _, e := range endpoints {
		w.report.Endpoints++
		if err := w.endpoint(ctx, e, applicationID); err != nil {
			return fmt.Errorf("%s: %w", e.path, err)
		}
	}
	return nil
}

func (w *writer) endpoint(ctx context.Context, e endpoint, applicationID string) error {
	if removed, ok := w.Before.RemovedEndpointOf(applicationID, e.Url); ok {
		w.note(e.path, "this endpoint was removed at %s and stays removed; `quittance endpoints add` restores it", stamp(removed.RemovedAt))
		return nil
	}
	known, ok := w.Before.EndpointOf(applicationID, e.Url)
	if ok {
		if err := w.q.UpdateWebhookEndpoint(ctx, w.besideEndpoint(e, known)); err != nil {
			return err
		}
		if w.overrule {
			if err := w.q.ForgetEndpointCommands(ctx, known.ID); err != nil {
				return err
			}
		}
		if at, suspended := w.suspended[known.ID]; suspended {
			w.note(e.path, "this endpoint was suspended at %s and stays suspended", stamp(at))
		}
		if e.secret.Empty() {
			return nil
		}
	} else {
		known.ID = newID()
		e.ID, e.Url = known.ID, registry.ToStored(e.Url)
		if err := w.q.InsertWebhookEndpoint(ctx, e.InsertWebhookEndpointParams); err != nil {
			return err
		}
		if e.secret.Empty() {
			e.secret = registry.MintWebhookSecret()
			w.report.Minted = append(w.report.Minted, Minted{Path: e.path, Secret: e.secret})
		}
	}
	ended, err := w.ReplaceSecret(ctx, known.ID, e.secret)
	if ended {
		w.note(e.path+".secret", "this secret was replaced by a rotation and stays replaced")
	}
	return err
}

func (w *writer) note(path, format string, args ...any) {
	w.report.Notes = append(w.report.Notes, path+": "+fmt.Sprintf(format, args...))
}

func stamp(t time.Time) string { return t.Format(time.RFC3339) }

func newID() string { return uuid.Must(uuid.NewV7()).String() }
