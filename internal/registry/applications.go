package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/form"
	"quittance/internal/operation"
	"quittance/internal/registry/db"
	"quittance/internal/secret"
)

// ApplicationEntry is an application as operators see it.
type ApplicationEntry struct {
	Application
	Agency string // its slug
	// ByCommand are the fields that a command has set: a registry file leaves them.
	ByCommand []string
}

// Owner names the application with its agency.
func (e ApplicationEntry) Owner() string { return e.Name + " (" + e.Agency + ")" }

func (s *Snapshot) applicationEntry(id string) ApplicationEntry {
	a := s.Applications[id]
	return ApplicationEntry{Application: a, Agency: s.Agencies[a.AgencyID].Slug, ByCommand: s.commanded[id]}
}

// ListApplications lists all applications by agency and name.
func ListApplications(ctx context.Context, pool *pgxpool.Pool) (list []ApplicationEntry, err error) {
	s, err := Read(ctx, pool)
	if err != nil {
		return nil, fmt.Errorf("listing applications: %w", err)
	}
	for id := range s.Applications {
		list = append(list, s.applicationEntry(id))
	}
	slices.SortFunc(list, func(a, b ApplicationEntry) int {
		return cmp.Or(strings.Compare(a.Agency, b.Agency), strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
	return list, nil
}

// ApplicationChange holds the fields of an application that a command sets. A nil field
// stays as it is; a new application has the default.
type ApplicationChange struct {
	Active                                       *bool
	Offers                                       []string
	SessionLifetime                              *time.Duration
	CreationsPerMinute, ReadsPerMinute, PageSize *int64
}

// ApplicationRequest asks for a new application.
type ApplicationRequest struct {
	Agency string // by slug or id
	Name   string // no other application of the agency has it
	// Integrator makes it the agency's application for the sessions of platform keys.
	Integrator bool
	ApplicationChange
}

// refused returns why the change is not possible.
func (c ApplicationChange) refused() error {
	if l := c.SessionLifetime; l != nil && (*l < MinLifetime || *l > MaxLifetime || *l%time.Millisecond != 0) {
		return operation.Refuse("registry.out_of_range", "session-lifetime", operation.Args{"least": MinLifetime, "most": MaxLifetime})
	}
	return cmp.Or(
		refuseOthers("offers", c.Offers, OfferIDs()),
		refuseOutside("creations-per-minute", c.CreationsPerMinute, 1, MaxPerMinute),
		refuseOutside("reads-per-minute", c.ReadsPerMinute, 1, MaxPerMinute),
		refuseOutside("page-size", c.PageSize, 1, MaxPageSize),
	)
}

// row completes the parameters of the application's row.
func (c ApplicationChange) row(r db.UpsertApplicationParams) db.UpsertApplicationParams {
	r.Active, r.Offers, r.CreationsPerMinute, r.ReadsPerMinute, r.PageSize = c.Active, c.Offers, c.CreationsPerMinute, c.ReadsPerMinute, c.PageSize
	if c.SessionLifetime != nil {
		ms := c.SessionLifetime.Milliseconds()
		r.SessionLifetimeMs = &ms
	}
	return r
}

// fields are the names in the registry file of the fields that the change sets.
func (c ApplicationChange) fields() (names []string) {
	for name, set := range map[string]bool{
		"active": c.Active != nil, "offers": c.Offers != nil, "session_lifetime": c.SessionLifetime != nil,
		"creations_per_minute": c.CreationsPerMinute != nil, "reads_per_minute": c.ReadsPerMinute != nil, "page_size": c.PageSize != nil,
	} {
		if set {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// AddApplication makes an application. now is the time of the service's clock. A refusal is
// an *operation.Error.
func AddApplication(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, req ApplicationRequest, now time.Time) (added ApplicationEntry, err error) {
	err = Change(ctx, pool, keys, now, func(t *Tx) error {
		agency, err := t.Before.FindAgency(req.Agency)
		if err != nil {
			return err
		}
		if !form.IsLine(req.Name, MaxName) {
			return operation.Refuse("application.name_malformed", "name", operation.Args{"most": MaxName})
		}
		for _, a := range t.Before.Applications {
			if a.AgencyID == agency.ID && a.Name == req.Name {
				return operation.Refuse("application.name_taken", "name", operation.Args{"id": a.ID})
			}
		}
		if other := t.Before.IntegratorOf(agency.ID); req.Integrator && other != "" {
			return operation.Refuse("application.second_integrator", "integrator", operation.Args{"application": other + " " + t.Before.Applications[other].Name})
		}
		if err := req.refused(); err != nil {
			return err
		}
		row := req.row(db.UpsertApplicationParams{ID: uuid.Must(uuid.NewV7()).String(), AgencyID: agency.ID, Name: req.Name, Integrator: &req.Integrator, CreatedAt: now})
		if err := t.q.UpsertApplication(ctx, row); err != nil {
			return fmt.Errorf("storing the application: %w", err)
		}
		added, err = t.setApplication(ctx, actor, "application.add", row.ID, req.ApplicationChange)
		return err
	})
	if err != nil {
		return ApplicationEntry{}, fmt.Errorf("adding an application: %w", err)
	}
	return added, nil
}

// ChangeApplication sets fields of an application, found by its id or by a unique name.
// Every instance knows them within a second, and a registry file leaves them from then on.
// now is the time of the service's clock. A refusal is an *operation.Error.
func ChangeApplication(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, named string, change ApplicationChange, now time.Time) (changed ApplicationEntry, err error) {
	err = Change(ctx, pool, keys, now, func(t *Tx) error {
		app, err := t.Before.FindApplication(named)
		if refused := (*operation.Error)(nil); errors.As(err, &refused) {
			refused.Field = "id"
		}
		if err != nil {
			return err
		}
		if err := cmp.Or(change.refused(), change.refusedFor(app.Portal)); err != nil {
			return err
		}
		if err := t.q.UpsertApplication(ctx, change.row(db.UpsertApplicationParams{ID: app.ID, AgencyID: app.AgencyID, Name: app.Name, CreatedAt: now})); err != nil {
			return fmt.Errorf("storing the application: %w", err)
		}
		changed, err = t.setApplication(ctx, actor, "application.set", app.ID, change)
		return err
	})
	if err != nil {
		return ApplicationEntry{}, fmt.Errorf("changing an application: %w", err)
	}
	return changed, nil
}

// setApplication notes the fields that a command has set, records the operation and returns
// the application as it is now.
func (t *Tx) setApplication(ctx context.Context, actor operation.Actor, action, id string, change ApplicationChange) (ApplicationEntry, error) {
	if err := t.q.NoteApplicationSet(ctx, db.NoteApplicationSetParams{ID: id, Fields: append([]string{}, change.fields()...)}); err != nil {
		return ApplicationEntry{}, fmt.Errorf("noting the fields that were set: %w", err)
	}
	after, err := load(ctx, t.Tx, loading{})
	if err != nil {
		return ApplicationEntry{}, err
	}
	e := after.applicationEntry(id)
	return e, operation.Record(ctx, t, actor, t.Now, operation.Entry{Action: action, Subject: id, AgencyID: e.AgencyID, Detail: map[string]any{
		"application": e.Owner(), "fields": change.fields(), "active": e.Active, "offers": e.Offers, "session_lifetime": e.SessionLifetime.String(),
		"creations_per_minute": e.CreationsPerMinute, "reads_per_minute": e.ReadsPerMinute, "page_size": e.PageSize,
	}})
}
