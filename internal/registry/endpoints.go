package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/form"
	"quittance/internal/registry/internal/db"
	"quittance/internal/secret"
)

// maxSigning is how many secrets of an endpoint sign at a time: the new one and,
// during the overlap, the one that it replaces (contract decisions § 5).
const maxSigning = 2

// EndpointEntry is a webhook endpoint as operators see it: with names, without
// its secrets. Whether they open is not known here: Locked is always false.
type EndpointEntry struct {
	WebhookEndpoint
	// Application is the name of its application and Agency the slug of that
	// one's agency; empty for the platform's.
	Application, Agency string
	// Inactive says that the application is not active.
	Inactive bool
	// Signing is how many secrets sign now, and OldEndsAt when the older of two
	// ends; zero: none ends.
	Signing   int
	OldEndsAt time.Time
}

// Owner names whom the endpoint belongs to.
func (e EndpointEntry) Owner() string {
	if e.Platform() {
		return "platform"
	}
	return e.Application + " (" + e.Agency + ")"
}

// ERPEntry is an agency's ERP as operators see it: without its secret, and
// without knowing whether that opens.
type ERPEntry struct {
	ERPSettings
	Agency string // its slug
}

// Name is what operators call it: the agency's slug and the mode.
func (e ERPEntry) Name() string { return e.Agency + "/" + mode(e.Live) }

// Directory is where deliveries go, as operators see it.
type Directory struct {
	Endpoints []EndpointEntry // by owner, the platform's first
	ERPs      []ERPEntry      // by agency
	Agencies  []Agency        // by slug
}

// Agency finds one by its slug or id.
func (d Directory) Agency(named string) (Agency, bool) {
	id, _ := form.CanonicalUUID(named)
	i := slices.IndexFunc(d.Agencies, func(a Agency) bool { return a.Slug == named || a.ID == id })
	if i < 0 {
		return Agency{}, false
	}
	return d.Agencies[i], true
}

// Endpoint finds a webhook endpoint by its id.
func (d Directory) Endpoint(id string) (EndpointEntry, bool) {
	parsed, _ := form.CanonicalUUID(id)
	i := slices.IndexFunc(d.Endpoints, func(e EndpointEntry) bool { return e.ID == parsed })
	if i < 0 {
		return EndpointEntry{}, false
	}
	return d.Endpoints[i], true
}

// ERP finds one by the agency, by slug or id, and the mode: "impots/test".
func (d Directory) ERP(named string) (ERPEntry, bool) {
	agency, of, _ := strings.Cut(named, "/")
	a, ok := d.Agency(agency)
	i := slices.IndexFunc(d.ERPs, func(e ERPEntry) bool { return ok && e.AgencyID == a.ID && mode(e.Live) == of })
	if i < 0 {
		return ERPEntry{}, false
	}
	return d.ERPs[i], true
}

// ReadDirectory reads all of it, without master keys. simulators is where they
// listen, in developer mode; now is the service's clock.
func ReadDirectory(ctx context.Context, pool *pgxpool.Pool, simulators string, now time.Time) (Directory, error) {
	var d Directory
	err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) (err error) {
		d, err = readDirectory(ctx, db.New(tx), simulators, now)
		return err
	})
	if err != nil {
		return Directory{}, fmt.Errorf("reading where deliveries go: %w", err)
	}
	return d, nil
}

func readDirectory(ctx context.Context, q *db.Queries, simulators string, now time.Time) (Directory, error) {
	var d Directory
	agencies, err := q.Agencies(ctx)
	if err != nil {
		return d, fmt.Errorf("reading agencies: %w", err)
	}
	slugs := map[string]string{}
	for _, r := range agencies {
		d.Agencies = append(d.Agencies, toAgency(r))
		slugs[r.ID] = r.Slug
	}
	slices.SortFunc(d.Agencies, func(a, b Agency) int { return strings.Compare(a.Slug, b.Slug) })
	applications, err := q.Applications(ctx)
	if err != nil {
		return d, fmt.Errorf("reading applications: %w", err)
	}
	byID := map[string]db.Application{}
	for _, r := range applications {
		byID[r.ID] = r
	}
	secrets, err := q.WebhookSecrets(ctx)
	if err != nil {
		return d, fmt.Errorf("reading webhook secrets: %w", err)
	}
	signing, ends := map[string]int{}, map[string]time.Time{}
	for _, r := range secrets {
		if r.ExpiresAt != nil && !now.Before(*r.ExpiresAt) {
			continue
		}
		if signing[r.EndpointID]++; r.ExpiresAt != nil {
			ends[r.EndpointID] = r.ExpiresAt.UTC()
		}
	}
	endpoints, err := q.WebhookEndpoints(ctx)
	if err != nil {
		return d, fmt.Errorf("reading webhook endpoints: %w", err)
	}
	for _, r := range endpoints {
		e := EndpointEntry{WebhookEndpoint: toEndpoint(r), Signing: signing[r.ID], OldEndsAt: ends[r.ID]}
		e.URL = fromStored(e.URL, simulators)
		if a, ok := byID[e.ApplicationID]; ok {
			e.Application, e.Agency, e.Inactive = a.Name, slugs[a.AgencyID], !a.Active
		}
		d.Endpoints = append(d.Endpoints, e)
	}
	slices.SortStableFunc(d.Endpoints, func(a, b EndpointEntry) int {
		return strings.Compare(a.Application+"\x00"+a.ApplicationID, b.Application+"\x00"+b.ApplicationID)
	})
	settings, err := q.ERPSettings(ctx)
	if err != nil {
		return d, fmt.Errorf("reading ERP settings: %w", err)
	}
	for _, r := range settings {
		e := ERPEntry{ERPSettings: toERP(r), Agency: slugs[r.AgencyID]}
		e.BaseURL = fromStored(e.BaseURL, simulators)
		d.ERPs = append(d.ERPs, e)
	}
	slices.SortFunc(d.ERPs, func(a, b ERPEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return d, nil
}

// EndpointError says why an endpoint cannot be changed, in words for the operator
// who asked. It never holds a secret.
type EndpointError struct {
	// Field that is wrong: id or overlap.
	Field   string
	Message string
}

// Error is the message.
func (e *EndpointError) Error() string { return e.Message }

// RotatedSecret is a new signing secret of an endpoint: to be shown once.
type RotatedSecret struct {
	Endpoint EndpointEntry // as it is now
	Secret   secret.Text
}

// RotateSecret gives an endpoint a new signing secret. The one that it had signs
// beside it until the overlap is over; at none, it ends at once, and any other
// with it. Every instance signs with the new one within a second. now is the
// service's clock. Errors that are the operator's to mend are an EndpointError;
// whatever the error, nothing changed.
func RotateSecret(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, id string, overlap time.Duration, now time.Time) (RotatedSecret, error) {
	minted := RotatedSecret{Secret: MintWebhookSecret()}
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		q := db.New(tx)
		if _, err := q.LockRevision(ctx); err != nil {
			return fmt.Errorf("locking the registry: %w", err)
		}
		d, err := readDirectory(ctx, q, "", now)
		if err != nil {
			return err
		}
		e, ok := d.Endpoint(id)
		switch {
		case overlap < 0:
			return &EndpointError{"overlap", "must not be negative: 0 ends the old secret at once"}
		case !ok:
			return &EndpointError{"id", "no webhook endpoint has this id; `quittance endpoints list` shows them"}
		case overlap > 0 && e.Signing >= maxSigning:
			return &EndpointError{"overlap", fmt.Sprintf("%d secrets sign already, and %d is the most: the older one ends at %s; rotate again after that, or end both at once with --overlap 0",
				e.Signing, maxSigning, e.OldEndsAt.Format(time.RFC3339))}
		}
		ends := now.Add(overlap)
		if err := q.ExpireWebhookSecrets(ctx, db.ExpireWebhookSecretsParams{EndpointID: e.ID, ExpiresAt: &ends}); err != nil {
			return fmt.Errorf("ending the old secret: %w", err)
		}
		if err := insertSigning(ctx, q, keys, e.ID, minted.Secret, now); err != nil {
			return fmt.Errorf("storing the secret: %w", err)
		}
		if d, err = readDirectory(ctx, q, "", now); err != nil {
			return err
		}
		minted.Endpoint, _ = d.Endpoint(e.ID)
		return nil
	})
	if err != nil {
		return RotatedSecret{}, fmt.Errorf("rotating the secret of an endpoint: %w", err)
	}
	return minted, nil
}
