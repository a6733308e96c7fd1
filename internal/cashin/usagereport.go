package cashin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/money/localtime"
)

// UsageFilter selects what a UsageReport has.
type UsageFilter struct {
	// Agency is the slug or id of an agency; empty for all.
	Agency string
	// Since is a time in the first local day of the report.
	Since time.Time
}

// Calls is a number of calls, and how many of them were refused (4xx) or failed (5xx).
type Calls struct{ Calls, Refused, Failed int64 }

func (c *Calls) add(d Calls) {
	c.Calls, c.Refused, c.Failed = c.Calls+d.Calls, c.Refused+d.Refused, c.Failed+d.Failed
}

// UsageDay is what an application called on one local day on one route.
type UsageDay struct {
	Day, Route string
	Calls
}

// ApplicationUsage is what an application called in one mode.
type ApplicationUsage struct {
	// ApplicationID, its name, and the slug of its agency.
	ApplicationID, Application, Agency string
	Live                               bool
	// Calls since the beginning of the report.
	Calls
	// FirstAt and LastAt are the first and the last call of all; zero: it never called.
	FirstAt, LastAt time.Time
	// Days by day, then route.
	Days []UsageDay
	// InForce says that it has credentials in force of this mode, Inactive that the
	// application is not active.
	InForce, Inactive bool
}

// Reversal is a completed payment whose money was given back. Its check-status stays
// completed, and no unsigned call tells the partner.
type Reversal struct {
	SessionID                          string
	ApplicationID, Application, Agency string
	Live                               bool
	Number, ExternalNumber             string
	Amount                             int64 // due in minor units of XAF
	Reason                             string
	ReversedAt                         time.Time
}

// UsageReport says who still calls the surface.
type UsageReport struct {
	// Since is the first local day.
	Since string
	// Applications that ever called or have credentials in force; who called last comes
	// first.
	Applications []ApplicationUsage
	// Reversals since the beginning of Since, the newest first.
	Reversals []Reversal
}

// ReadUsage makes a report of the calls since the local day of a time. The error is an
// *operation.Error with the field agency for an unknown agency.
func ReadUsage(ctx context.Context, pool *pgxpool.Pool, f UsageFilter) (out UsageReport, err error) {
	out.Since = localtime.Day(f.Since)
	err = registry.View(ctx, pool, "", func(tx pgx.Tx, s *registry.Snapshot) error {
		agencyID, err := findAgency(s, f.Agency)
		if err != nil {
			return err
		}
		r := usageReader{s: s, agencyID: agencyID, found: map[usageOf]*ApplicationUsage{}}
		if err := r.pairs(ctx, tx); err != nil {
			return err
		}
		if err := r.calls(ctx, tx, out.Since); err != nil {
			return err
		}
		out.Applications = r.sorted()
		out.Reversals, err = r.reversals(ctx, tx, out.Since)
		return err
	})
	if err != nil {
		return UsageReport{}, fmt.Errorf("reading who calls: %w", err)
	}
	return out, nil
}

func findAgency(s *registry.Snapshot, name string) (id string, err error) {
	if name == "" {
		return "", nil
	}
	var slugs []string
	for _, a := range s.Agencies {
		if a.Slug == name || a.ID == name {
			return a.ID, nil
		}
		slugs = append(slugs, a.Slug)
	}
	slices.Sort(slugs)
	return "", operation.Refuse("agency.unknown", "agency", operation.Args{"agency": name, "agencies": slugs})
}

type usageOf struct {
	applicationID string
	live          bool
}

// usageReader reads the parts of a report in one transaction.
type usageReader struct {
	s        *registry.Snapshot
	agencyID string // empty: all
	found    map[usageOf]*ApplicationUsage
}

// of returns the entry of an application in a mode; nil if the report leaves it out.
func (r *usageReader) of(applicationID string, live bool) *ApplicationUsage {
	a := r.s.Applications[applicationID]
	if r.agencyID != "" && a.AgencyID != r.agencyID {
		return nil
	}
	k := usageOf{applicationID, live}
	if r.found[k] == nil {
		r.found[k] = &ApplicationUsage{ApplicationID: applicationID, Application: a.Name, Agency: r.s.Agencies[a.AgencyID].Slug, Live: live, Inactive: !a.Active}
	}
	return r.found[k]
}

// pairs adds the applications with credentials in force.
func (r *usageReader) pairs(ctx context.Context, tx pgx.Tx) error {
	pairs, err := read(ctx, tx)
	for _, p := range pairs {
		if !p.RevokedAt.IsZero() {
			continue
		}
		if a := r.of(p.ApplicationID, p.Live); a != nil {
			a.InForce = true
		}
	}
	return err
}

// calls adds who called, and how often since a day.
func (r *usageReader) calls(ctx context.Context, tx pgx.Tx, since string) error {
	rows, _ := tx.Query(ctx, `SELECT application_id, live, day::text, route, calls, refused, failed, first_at, last_at FROM cashin_usage ORDER BY day, route`) // the rows return its error
	var applicationID string
	var live bool
	var d UsageDay
	var first, last time.Time
	_, err := pgx.ForEachRow(rows, []any{&applicationID, &live, &d.Day, &d.Route, &d.Calls.Calls, &d.Refused, &d.Failed, &first, &last}, func() error {
		a := r.of(applicationID, live)
		if a == nil {
			return nil
		}
		if a.FirstAt.IsZero() || first.Before(a.FirstAt) {
			a.FirstAt = first.UTC()
		}
		if last.After(a.LastAt) {
			a.LastAt = last.UTC()
		}
		if d.Day >= since {
			a.add(d.Calls)
			a.Days = append(a.Days, d)
		}
		return nil
	})
	return err
}

func (r *usageReader) sorted() []ApplicationUsage {
	out := make([]ApplicationUsage, 0, len(r.found))
	for _, a := range r.found {
		out = append(out, *a)
	}
	slices.SortFunc(out, func(a, b ApplicationUsage) int {
		return cmp.Or(b.LastAt.Compare(a.LastAt), strings.Compare(a.Application, b.Application), strings.Compare(a.ApplicationID, b.ApplicationID), cmp.Compare(modeRank(a.Live), modeRank(b.Live)))
	})
	return out
}

// reversals returns the payments whose money was given back since a local day.
func (r *usageReader) reversals(ctx context.Context, tx pgx.Tx, since string) (out []Reversal, err error) {
	rows, _ := tx.Query(ctx, `SELECT session_id, application_id, livemode, number, external_number, amount, reason, reversed_at FROM cashin_reversals
		WHERE reversed_at >= $1::date::timestamp AT TIME ZONE 'Africa/Brazzaville' ORDER BY reversed_at DESC, session_id`, since) // the rows return its error
	var v Reversal
	_, err = pgx.ForEachRow(rows, []any{&v.SessionID, &v.ApplicationID, &v.Live, &v.Number, &v.ExternalNumber, &v.Amount, &v.Reason, &v.ReversedAt}, func() error {
		a := r.s.Applications[v.ApplicationID]
		if r.agencyID != "" && a.AgencyID != r.agencyID {
			return nil
		}
		v.Application, v.Agency, v.ReversedAt = a.Name, r.s.Agencies[a.AgencyID].Slug, v.ReversedAt.UTC()
		out = append(out, v)
		return nil
	})
	return out, err
}
