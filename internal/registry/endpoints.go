package registry

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/form"
	"quittance/internal/operation"
	"quittance/internal/registry/db"
	"quittance/internal/secret"
)

// maxSigning is the number of secrets of an endpoint that may sign at a time: the new
// one and, during the overlap, the one that it replaces (contract docs/design/decisions.md § 5).
const maxSigning = 2

// EndpointEntry is a webhook endpoint as operators see it: with names and without its
// secrets. Locked is always false, because no secret was opened.
type EndpointEntry struct {
	WebhookEndpoint
	// Application is the name of its application and Agency the slug of that
	// application's agency; empty for the platform's.
	Application, Agency string
	// Inactive means that the application is not active.
	Inactive bool
	// Signing is the number of secrets that sign now. OldEndsAt is the time at which the
	// older of two ends; zero when none ends.
	Signing   int
	OldEndsAt time.Time
	// ByCommand are the fields that a command has set: a registry file leaves them.
	ByCommand []string
}

// Modes are the names of the modes that it receives.
func (e EndpointEntry) Modes() []string {
	modes := []string{}
	if e.Test {
		modes = append(modes, Mode(false))
	}
	if e.Live {
		modes = append(modes, Mode(true))
	}
	return modes
}

// Owner names the owner of the endpoint.
func (e EndpointEntry) Owner() string {
	if e.Platform() {
		return "platform"
	}
	return e.Application + " (" + e.Agency + ")"
}

// ERPEntry is an agency's ERP as operators see it: without its secret. Locked is always
// false.
type ERPEntry struct {
	ERPSettings
	Agency string // its slug
}

// Name is the ERP's name in commands: the agency's slug and the mode, "impots/test".
func (e ERPEntry) Name() string { return e.Agency + "/" + Mode(e.Live) }

// PartnerEntry is an application with access to the deprecated cash-in surface, as operators
// see it.
type PartnerEntry struct {
	Application
	Agency string // the slug of its agency
}

// Owner names the application.
func (p PartnerEntry) Owner() string { return p.Name + " (" + p.Agency + ")" }

// Directory lists the destinations of deliveries, as operators see them.
type Directory struct {
	Endpoints []EndpointEntry // by owner, the platform's first
	ERPs      []ERPEntry      // by agency
	Partners  []PartnerEntry  // by name
	Agencies  []Agency        // by slug
	// Applications by id.
	Applications []Application
}

// Agency finds an agency by its slug or id.
func (d Directory) Agency(named string) (Agency, bool) {
	id, _ := form.CanonicalUUID(named)
	return find(d.Agencies, func(a Agency) bool { return a.Slug == named || a.ID == id })
}

// Application finds an application by its id.
func (d Directory) Application(id string) (Application, bool) {
	return find(d.Applications, func(a Application) bool { return a.ID == id })
}

// Endpoint finds a webhook endpoint by its id.
func (d Directory) Endpoint(id string) (EndpointEntry, bool) {
	parsed, _ := form.CanonicalUUID(id)
	return find(d.Endpoints, func(e EndpointEntry) bool { return e.ID == parsed })
}

func find[E any](list []E, is func(E) bool) (E, bool) {
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i], true
	}
	var none E
	return none, false
}

// ReadDirectory reads the directory. It needs no master keys. simulators is the address
// of the simulators in developer mode; now is the time of the service's clock.
func ReadDirectory(ctx context.Context, pool *pgxpool.Pool, simulators string, now time.Time) (Directory, error) {
	var d Directory
	err := View(ctx, pool, simulators, func(_ pgx.Tx, s *Snapshot) error {
		d = s.directory(now)
		return nil
	})
	if err != nil {
		return Directory{}, fmt.Errorf("reading the destinations of deliveries: %w", err)
	}
	return d, nil
}

func (s *Snapshot) directory(now time.Time) Directory {
	d := Directory{
		Agencies:     sorted(s.Agencies, func(a Agency) string { return a.Slug }),
		Applications: sorted(s.Applications, func(a Application) string { return a.ID }),
	}
	for _, e := range s.endpoints {
		d.Endpoints = append(d.Endpoints, s.endpointEntry(e, now))
	}
	slices.SortStableFunc(d.Endpoints, func(a, b EndpointEntry) int {
		return cmp.Or(strings.Compare(a.Application, b.Application), strings.Compare(a.ApplicationID, b.ApplicationID))
	})
	for _, a := range s.Applications {
		if a.Cashin != nil {
			d.Partners = append(d.Partners, PartnerEntry{a, s.Agencies[a.AgencyID].Slug})
		}
	}
	slices.SortFunc(d.Partners, func(a, b PartnerEntry) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
	for _, e := range s.erp {
		d.ERPs = append(d.ERPs, ERPEntry{ERPSettings: e, Agency: s.Agencies[e.AgencyID].Slug})
	}
	slices.SortFunc(d.ERPs, func(a, b ERPEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return d
}

func (s *Snapshot) endpointEntry(e *endpoint, now time.Time) EndpointEntry {
	entry := EndpointEntry{WebhookEndpoint: e.WebhookEndpoint, ByCommand: s.commanded[e.ID]}
	if a, ok := s.Applications[e.ApplicationID]; ok {
		entry.Application, entry.Agency, entry.Inactive = a.Name, s.Agencies[a.AgencyID].Slug, !a.Active
	}
	for _, known := range e.secrets {
		if known.expiresAt.IsZero() || now.Before(known.expiresAt) {
			entry.Signing++
			if !known.expiresAt.IsZero() {
				entry.OldEndsAt = known.expiresAt
			}
		}
	}
	return entry
}

// RotatedSecret is an endpoint with its new signing secret. Show the secret once.
type RotatedSecret struct {
	Endpoint EndpointEntry // after the rotation
	Secret   secret.Text
}

// RotateSecret gives an endpoint a new signing secret. The previous secret also signs
// until the overlap is over. Without an overlap all previous secrets end at once. Every
// instance signs with the new secret within a second. now is the time of the service's
// clock. A refusal is an *operation.Error with the code endpoint.overlap_negative,
// endpoint.unknown, endpoint.removed or endpoint.too_many_secrets.
func RotateSecret(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, id string, overlap time.Duration, now time.Time) (RotatedSecret, error) {
	minted := RotatedSecret{Secret: MintWebhookSecret()}
	err := Change(ctx, pool, keys, now, func(t *Tx) error {
		e, err := t.inUse(id)
		switch {
		case overlap < 0:
			return operation.Refuse("endpoint.overlap_negative", "overlap", nil)
		case err != nil:
			return err
		case overlap > 0 && e.Signing >= maxSigning:
			return operation.Refuse("endpoint.too_many_secrets", "overlap", operation.Args{"signing": e.Signing, "most": maxSigning, "ends_at": e.OldEndsAt.Format(time.RFC3339)})
		}
		if err := t.sign(ctx, e.ID, minted.Secret, now.Add(overlap)); err != nil {
			return err
		}
		after, err := load(ctx, t.Tx, loading{})
		if err != nil {
			return err
		}
		minted.Endpoint, _ = after.directory(now).Endpoint(e.ID)
		return operation.Record(ctx, t, actor, now, operation.Entry{
			Action: "endpoint.rotate_secret", Subject: e.ID, AgencyID: t.Before.Applications[e.ApplicationID].AgencyID, Detail: map[string]any{"overlap": overlap.String()},
		})
	})
	if err != nil {
		return RotatedSecret{}, fmt.Errorf("rotating the secret of an endpoint: %w", err)
	}
	return minted, nil
}

// ReplaceSecret makes a secret the only one with which an endpoint signs from now on.
// It changes nothing when the endpoint has or had that secret; ended reports that the
// secret was replaced before.
func (t *Tx) ReplaceSecret(ctx context.Context, endpointID string, with secret.Text) (ended bool, err error) {
	if e := t.Before.endpoint(endpointID); e != nil {
		digest := DigestOf(with)
		if known, ok := find(e.secrets, func(s endpointSecret) bool { return s.digest == digest }); ok {
			return !known.expiresAt.IsZero(), nil
		}
	}
	return false, t.sign(ctx, endpointID, with, t.Now)
}

// sign adds a secret with which an endpoint signs. Its other secrets end at othersEnd.
func (t *Tx) sign(ctx context.Context, endpointID string, with secret.Text, othersEnd time.Time) error {
	if err := t.q.ExpireWebhookSecrets(ctx, db.ExpireWebhookSecretsParams{EndpointID: endpointID, ExpiresAt: &othersEnd}); err != nil {
		return fmt.Errorf("ending the old secret: %w", err)
	}
	digest := DigestOf(with)
	sealed, err := t.keys.Seal(LabelWebhook, []byte(with.Reveal()), []byte(endpointID))
	if err != nil {
		return err
	}
	if err := t.q.InsertWebhookSecret(ctx, db.InsertWebhookSecretParams{EndpointID: endpointID, Digest: digest[:], Sealed: sealed, CreatedAt: t.Now}); err != nil {
		return fmt.Errorf("storing the secret: %w", err)
	}
	return nil
}

// MintWebhookSecret makes a webhook secret: whsec_ and 32 random bytes in base64, the
// form that the Standard Webhooks libraries decode.
func MintWebhookSecret() secret.Text {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never returns an error: the program ends instead
	return secret.NewText("whsec_" + base64.StdEncoding.EncodeToString(raw[:]))
}
