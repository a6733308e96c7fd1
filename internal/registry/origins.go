package registry

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/operation"
	"quittance/internal/registry/db"
	"quittance/internal/secret"
)

// OriginsEntry holds the embed origins of an application, or of the platform.
type OriginsEntry struct {
	// ApplicationID, Application and Agency name the owner. They are empty for the platform.
	ApplicationID, Application, Agency string
	Origins                            []string
	// ByCommand are the origins that a command has added or removed: a registry file neither
	// removes nor adds them.
	ByCommand []string
}

// Owner names the owner of the origins.
func (e OriginsEntry) Owner() string {
	if e.ApplicationID == "" {
		return "platform"
	}
	return e.Application + " (" + e.Agency + ")"
}

// originsOf returns the origins of an application, or of the platform when the id is empty.
func (s *Snapshot) originsOf(applicationID string) OriginsEntry {
	a, ok := s.Applications[applicationID]
	if !ok {
		return OriginsEntry{Origins: s.Platform.EmbedOrigins, ByCommand: s.byCommand[""]}
	}
	return OriginsEntry{ApplicationID: a.ID, Application: a.Name, Agency: s.Agencies[a.AgencyID].Slug, Origins: a.EmbedOrigins, ByCommand: s.byCommand[a.ID]}
}

// ListOrigins lists the embed origins of the platform, then those of each
// integrator's application.
func ListOrigins(ctx context.Context, pool *pgxpool.Pool) (list []OriginsEntry, err error) {
	s, err := Read(ctx, pool)
	if err != nil {
		return nil, fmt.Errorf("listing embed origins: %w", err)
	}
	for id, a := range s.Applications {
		if a.Portal {
			continue // its sessions are not embedded
		}
		list = append(list, s.originsOf(id))
	}
	slices.SortFunc(list, func(a, b OriginsEntry) int {
		return cmp.Or(strings.Compare(a.Agency, b.Agency), strings.Compare(a.Application, b.Application), strings.Compare(a.ApplicationID, b.ApplicationID))
	})
	return append([]OriginsEntry{s.originsOf("")}, list...), nil
}

// AddOrigins lets pages of these origins embed the sessions of an application, found by its
// id or by a unique name, or with an empty name those of platform keys. Every instance knows
// it within a second. changed is false if all of them could before. now is the time of the
// service's clock. A refusal is an *operation.Error.
func AddOrigins(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, application string, origins []string, now time.Time) (after OriginsEntry, changed bool, err error) {
	return changeOrigins(ctx, pool, keys, actor, "origin.add", application, origins, now, func(had []string) ([]string, error) {
		for _, o := range origins {
			if CheckOrigin(o) != nil {
				return nil, operation.Refuse("origin.malformed", "id", nil)
			}
			if !slices.Contains(had, o) {
				had = append(had, o)
			}
		}
		return had, nil
	})
}

// RemoveOrigins withdraws origins: their pages can embed nothing within a second. A registry
// file does not add them again. Otherwise it is like AddOrigins.
func RemoveOrigins(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, application string, origins []string, now time.Time) (after OriginsEntry, changed bool, err error) {
	return changeOrigins(ctx, pool, keys, actor, "origin.remove", application, origins, now, func(had []string) ([]string, error) {
		for _, o := range origins {
			if !slices.Contains(had, o) {
				return nil, operation.Refuse("origin.unknown", "id", operation.Args{"origins": had})
			}
		}
		return slices.DeleteFunc(had, func(o string) bool { return slices.Contains(origins, o) }), nil
	})
}

func changeOrigins(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, action, application string, origins []string, now time.Time, plan func(had []string) ([]string, error)) (after OriginsEntry, changed bool, err error) {
	err = Change(ctx, pool, keys, now, func(t *Tx) error {
		var app Application
		if application != "" {
			var err error
			if app, err = t.Before.FindClient(application); err != nil {
				return err
			}
		}
		before := t.Before.originsOf(app.ID)
		list, err := plan(append([]string{}, before.Origins...))
		if err != nil {
			return err
		}
		decided := append([]string{}, before.ByCommand...)
		for _, o := range origins {
			if !slices.Contains(decided, o) {
				decided = append(decided, o)
			}
		}
		if app.ID == "" {
			err = t.q.DecidePlatformOrigins(ctx, db.DecidePlatformOriginsParams{EmbedOrigins: list, OriginsByCommand: decided})
		} else {
			err = t.q.DecideApplicationOrigins(ctx, db.DecideApplicationOriginsParams{ID: app.ID, EmbedOrigins: list, OriginsByCommand: decided})
		}
		if err != nil {
			return fmt.Errorf("storing the origins: %w", err)
		}
		after, changed = before, !slices.Equal(list, before.Origins)
		after.Origins, after.ByCommand = list, decided
		return operation.Record(ctx, t, actor, now, operation.Entry{Action: action, Subject: cmp.Or(app.ID, "platform"), AgencyID: app.AgencyID, Detail: map[string]any{"origins": origins}})
	})
	if err != nil {
		return OriginsEntry{}, false, fmt.Errorf("changing embed origins: %w", err)
	}
	return after, changed, nil
}
