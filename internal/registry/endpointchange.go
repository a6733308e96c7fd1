package registry

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/address"
	"quittance/internal/operation"
	"quittance/internal/registry/db"
	"quittance/internal/secret"
)

// EndpointChange holds the fields of a webhook endpoint that a command sets. A nil field
// stays as it is; a new endpoint has the default, and a restored one the default modes.
// MaxPerSecond 0 is no limit.
type EndpointChange struct {
	Events, Modes             []string
	MaxInFlight, MaxPerSecond *int64
}

// EndpointRequest asks for a new webhook endpoint.
type EndpointRequest struct {
	// Application by its id or by a unique name; empty for an endpoint of the platform.
	Application string
	URL         string
	// Loopback allows addresses on this machine, as in developer mode.
	Loopback bool
	EndpointChange
}

// AddedEndpoint is a new endpoint with its signing secret. Show the secret once.
type AddedEndpoint struct {
	Endpoint EndpointEntry
	Secret   secret.Text
	// Restored means that the endpoint had been removed, and has its id again.
	Restored bool
}

func (c EndpointChange) refused() error {
	return cmp.Or(
		refuseOthers("events", c.Events, WebhookEvents()),
		refuseOthers("modes", c.Modes, []string{Mode(false), Mode(true)}),
		refuseOutside("max-in-flight", c.MaxInFlight, 1, MaxInFlight),
		refuseOutside("max-per-second", c.MaxPerSecond, 0, MaxPerSecond),
	)
}

// fields are the names in the registry file of the fields that the change sets.
func (c EndpointChange) fields() (names []string) {
	for name, set := range map[string]bool{
		"events": c.Events != nil, "modes": c.Modes != nil, "max_in_flight": c.MaxInFlight != nil, "max_per_second": c.MaxPerSecond != nil,
	} {
		if set {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// AddEndpoint makes a webhook endpoint with a new signing secret. An endpoint that was
// removed and has the same owner and address is restored with it. now is the time of the
// service's clock. A refusal is an *operation.Error.
func AddEndpoint(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, req EndpointRequest, now time.Time) (AddedEndpoint, error) {
	added := AddedEndpoint{Secret: MintWebhookSecret()}
	err := Change(ctx, pool, keys, now, func(t *Tx) error {
		var owner *string
		var app Application
		if req.Application != "" {
			var err error
			if app, err = t.Before.FindApplication(req.Application); err != nil {
				return err
			}
			owner = &app.ID
		}
		if err := req.refusedBy(t.Before, app.ID); err != nil {
			return err
		}
		removed, restored := t.Before.RemovedEndpointOf(app.ID, req.URL)
		id := removed.ID
		added.Restored = restored
		if restored && req.Modes == nil {
			req.Modes = []string{Mode(false), Mode(true)} // the default, not those of before
		}
		var err error
		if restored {
			err = t.q.RemoveWebhookEndpoint(ctx, db.RemoveWebhookEndpointParams{ID: id})
		} else {
			id = uuid.Must(uuid.NewV7()).String()
			err = t.q.InsertWebhookEndpoint(ctx, db.InsertWebhookEndpointParams{ID: id, ApplicationID: owner, Url: ToStored(req.URL), CreatedAt: now})
		}
		if err != nil {
			return fmt.Errorf("storing the endpoint: %w", err)
		}
		if err := t.sign(ctx, id, added.Secret, now); err != nil {
			return err
		}
		added.Endpoint, err = t.setEndpoint(ctx, actor, "endpoint.add", id, req.EndpointChange)
		return err
	})
	if err != nil {
		return AddedEndpoint{}, fmt.Errorf("adding an endpoint: %w", err)
	}
	return added, nil
}

// refusedBy returns why the registry cannot have the endpoint. The error does not repeat the
// address, because its path may be a secret.
func (r EndpointRequest) refusedBy(s *Snapshot, applicationID string) error {
	if err := (address.Rule{Loopback: r.Loopback}).CheckNew(r.URL); err != nil {
		return operation.Refuse("endpoint.url_refused", "url", operation.Args{"why": err.Error()})
	}
	if known, ok := s.EndpointOf(applicationID, r.URL); ok {
		return operation.Refuse("endpoint.exists", "url", operation.Args{"id": known.ID})
	}
	if r.Events == nil {
		return operation.Refuse("registry.not_among", "events", operation.Args{"known": WebhookEvents()})
	}
	return r.EndpointChange.refused()
}

// ChangeEndpoint sets fields of a webhook endpoint. Every instance knows them within a
// second, and a registry file leaves them from then on. now is the time of the service's
// clock. A refusal is an *operation.Error.
func ChangeEndpoint(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, id string, change EndpointChange, now time.Time) (changed EndpointEntry, err error) {
	err = Change(ctx, pool, keys, now, func(t *Tx) error {
		e, err := t.inUse(id)
		if err != nil {
			return err
		}
		if err := change.refused(); err != nil {
			return err
		}
		changed, err = t.setEndpoint(ctx, actor, "endpoint.set", e.ID, change)
		return err
	})
	if err != nil {
		return EndpointEntry{}, fmt.Errorf("changing an endpoint: %w", err)
	}
	return changed, nil
}

// RemoveEndpoint ends a webhook endpoint and its signing secrets: no event is planned for it
// within a second. Its row stays, because deliveries name it. AddEndpoint restores it, a
// registry file does not. now is the time of the service's clock. A refusal is an
// *operation.Error with the code endpoint.unknown or endpoint.removed.
func RemoveEndpoint(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, id string, now time.Time) (removed EndpointEntry, err error) {
	err = Change(ctx, pool, keys, now, func(t *Tx) error {
		e, err := t.inUse(id)
		if err != nil {
			return err
		}
		if err := t.q.RemoveWebhookEndpoint(ctx, db.RemoveWebhookEndpointParams{ID: e.ID, RemovedAt: &now}); err != nil {
			return fmt.Errorf("removing the endpoint: %w", err)
		}
		if err := t.q.ExpireWebhookSecrets(ctx, db.ExpireWebhookSecretsParams{EndpointID: e.ID, ExpiresAt: &now}); err != nil {
			return fmt.Errorf("ending the secrets: %w", err)
		}
		removed = e
		removed.RemovedAt = now
		return operation.Record(ctx, t, actor, now, operation.Entry{Action: "endpoint.remove", Subject: e.ID, AgencyID: t.Before.Applications[e.ApplicationID].AgencyID, Detail: map[string]any{"owner": e.Owner()}})
	})
	if err != nil {
		return EndpointEntry{}, fmt.Errorf("removing an endpoint: %w", err)
	}
	return removed, nil
}

// inUse finds a webhook endpoint that is not removed.
func (t *Tx) inUse(id string) (EndpointEntry, error) {
	e, ok := t.Before.directory(t.Now).Endpoint(id)
	switch {
	case !ok:
		return e, operation.Refuse("endpoint.unknown", "id", nil)
	case !e.RemovedAt.IsZero():
		return e, operation.Refuse("endpoint.removed", "id", operation.Args{"at": e.RemovedAt})
	}
	return e, nil
}

// setEndpoint sets the fields of a change, notes that a command has set them, records the
// operation and returns the endpoint as it is now.
func (t *Tx) setEndpoint(ctx context.Context, actor operation.Actor, action, id string, c EndpointChange) (EndpointEntry, error) {
	if err := t.q.UpdateWebhookEndpoint(ctx, db.UpdateWebhookEndpointParams{ID: id, Events: c.Events, Modes: c.Modes, MaxInFlight: c.MaxInFlight, MaxPerSecond: c.MaxPerSecond}); err != nil {
		return EndpointEntry{}, fmt.Errorf("storing the endpoint: %w", err)
	}
	if err := t.q.NoteEndpointSet(ctx, db.NoteEndpointSetParams{ID: id, Fields: append([]string{}, c.fields()...)}); err != nil {
		return EndpointEntry{}, fmt.Errorf("noting the fields that were set: %w", err)
	}
	after, err := load(ctx, t.Tx, loading{})
	if err != nil {
		return EndpointEntry{}, err
	}
	e, _ := after.directory(t.Now).Endpoint(id)
	return e, operation.Record(ctx, t, actor, t.Now, operation.Entry{Action: action, Subject: id, AgencyID: after.Applications[e.ApplicationID].AgencyID, Detail: map[string]any{
		"owner": e.Owner(), "fields": c.fields(), "events": e.Events, "test": e.Test, "live": e.Live, "max_in_flight": e.MaxInFlight, "max_per_second": e.MaxPerSecond,
	}})
}
