package partner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/build"
	"quittance/internal/cashin"
	"quittance/internal/registry"
	"quittance/internal/report"
	"quittance/money"
	"quittance/money/localtime"
)

// The lines of a table of usage.
const (
	byApplication = "application"
	byRoute       = "route"
	byDay         = "day"
)

// cashinUsage has the flags of `cashin usage`.
type cashinUsage struct{ agency, since, by, format string }

func usageOfCashin() cli.Command {
	u := cashinUsage{by: byApplication, format: render.FormatTable}
	return cli.Command{
		Use: "usage", Short: "Show who still calls the deprecated cash-in surface, how often and since when, and which payments were given back", JSON: "it",
		Long: `Show who still calls the deprecated cash-in surface, how often and since when.

A call counts for an application when it has an access token in force, or asks for a token
with an apiKey that the application has or had. Other calls belong to nobody and are not
counted. Calls under both prefixes count together. Refused calls were answered 4xx, failed
ones 5xx. Days are those of Brazzaville; the first and the last call are those of all times.

Each ingress adds up in memory and writes every few seconds: the last calls appear a little
later, and those that an ingress had not written when it was killed are missing.

It also lists completed payments whose money was given back. Their check-status stays
completed and no unsigned webhook tells the partner: the agency must.`,
		Examples: []string{"cashin usage", "cashin usage --agency impots --since 90d --by route", "cashin usage --since 2026-10-01 --format csv > calls.csv"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&u.agency, "agency", "", "applications of this agency, by slug or id")
			f.StringVar(&u.since, "since", "", "count from the day of this time: "+cli.MomentForms+"; the first day of this month when not given")
			cli.TakesChoice(f, &u.by, "by", []string{byApplication, byRoute, byDay}, "a line for each application, or for each of its routes or days: ")
			cli.TakesChoice(f, &u.format, "format", []string{render.FormatTable, render.FormatCSV, render.FormatJSON}, "csv has a line for each application, day and route: ")
		},
		Check: func(m *cli.Meta) error {
			if m.AsJSON && u.format == render.FormatCSV {
				return cli.Usage("give one of --json and --format csv")
			}
			_, err := cli.MomentOf("since", u.since, time.Time{})
			return err
		},
		Operate: u.show,
	}
}

func (u *cashinUsage) show(ctx context.Context, m *cli.Meta) error {
	since, err := cli.MomentOf("since", u.since, m.Now)
	switch {
	case err != nil:
		return err
	case since.After(m.Now):
		return cli.Usage("--since: must not be in the future")
	case since.IsZero():
		local := localtime.In(m.Now)
		since = local.AddDate(0, 0, 1-local.Day())
	}
	r, err := cashin.ReadUsage(ctx, m.Pool, cashin.UsageFilter{Agency: u.agency, Since: since})
	if err != nil {
		return err
	}
	if u.format == render.FormatCSV {
		t := usageTable(r)
		t.Stamp = report.Stamp{Report: "cash-in usage", Agency: u.agency, Since: r.Since, At: time.Now(), Program: m.Program, Version: build.Read().Version()}
		return t.CSV(m.Out)
	}
	m.AsJSON = m.AsJSON || u.format == render.FormatJSON
	return m.Show(usageJSON(r), func(p *render.Page) { u.page(p, r) })
}

// usageJSON is a report as --json prints it.
func usageJSON(r cashin.UsageReport) render.Object {
	return render.Object{
		"since", r.Since,
		"applications", render.Mapped(r.Applications, func(a cashin.ApplicationUsage) render.Object {
			return render.Object{
				"application_id", a.ApplicationID, "application_name", a.Application, "agency", a.Agency, "mode", registry.Mode(a.Live), "credentials_in_force", a.InForce, "active", !a.Inactive,
				"calls", a.Calls.Calls, "refused", a.Refused, "failed", a.Failed, "first_call_at", a.FirstAt, "last_call_at", a.LastAt,
				"days", render.Mapped(a.Days, func(d cashin.UsageDay) render.Object {
					return render.Object{"day", d.Day, "route", d.Route, "calls", d.Calls.Calls, "refused", d.Refused, "failed", d.Failed}
				}),
			}
		}),
		"reversals", render.Mapped(r.Reversals, func(v cashin.Reversal) render.Object {
			return render.Object{
				"session_id", v.SessionID, "application_id", v.ApplicationID, "application_name", v.Application, "agency", v.Agency, "mode", registry.Mode(v.Live),
				"number", v.Number, "external_number", v.ExternalNumber, "amount", v.Amount, "currency", money.Default, "reason", v.Reason, "reversed_at", v.ReversedAt,
			}
		}),
	}
}

// usageTable is the most detailed count, for CSV.
func usageTable(r cashin.UsageReport) report.Table {
	var t report.Table
	for _, name := range []string{"agency", "application_id", "application", "mode", "day", "route", "calls", "refused", "failed"} {
		t.Columns = append(t.Columns, report.Column{Name: name})
	}
	for _, a := range r.Applications {
		for _, d := range a.Days {
			t.Rows = append(t.Rows, []any{a.Agency, a.ApplicationID, a.Application, registry.Mode(a.Live), d.Day, d.Route, d.Calls.Calls, d.Refused, d.Failed})
		}
	}
	return t
}

func (u *cashinUsage) page(p *render.Page, r cashin.UsageReport) {
	if len(r.Applications) == 0 {
		p.Say("no application calls the cash-in surface or has credentials for it")
	} else {
		p.Say("Calls since %s:\n", r.Since)
		switch u.by {
		case byRoute:
			sayCallsBy(p, "ROUTE", r, func(d cashin.UsageDay) string { return d.Route })
		case byDay:
			sayCallsBy(p, "DAY", r, func(d cashin.UsageDay) string { return d.Day })
		default:
			p.Table("", "APPLICATION,MODE,CALLS,REFUSED,FAILED,FIRST CALL,LAST CALL,CREDENTIALS", render.Mapped(r.Applications, func(a cashin.ApplicationUsage) []any {
				state := "none in force"
				if a.InForce {
					state = "in force"
				}
				if a.Inactive {
					state += ", application not active"
				}
				return []any{whose(a), registry.Mode(a.Live), a.Calls.Calls, share(a.Refused, a.Calls.Calls), share(a.Failed, a.Calls.Calls), render.MomentOr(a.FirstAt, "never"), render.MomentOr(a.LastAt, "never"), state}
			}))
		}
	}
	if len(r.Reversals) == 0 {
		return
	}
	p.Say("\nGiven back since %s. check-status still says completed and no unsigned webhook told the partner; tell them:\n", r.Since)
	p.Table("", "NUMBER,EXTERNAL NUMBER,APPLICATION,MODE,AMOUNT,GIVEN BACK,REASON,SESSION", render.Mapped(r.Reversals, func(v cashin.Reversal) []any {
		return []any{v.Number, v.ExternalNumber, v.Application + " (" + v.Agency + ")", registry.Mode(v.Live), render.Decimal(v.Amount, money.Default), render.Moment(v.ReversedAt), v.Reason, v.SessionID}
	}))
}

func whose(a cashin.ApplicationUsage) string { return a.Application + " (" + a.Agency + ")" }

// share returns a number and its share of all.
func share(n, of int64) string {
	if n == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (%.1f %%)", n, 100*float64(n)/float64(of))
}

// sayCallsBy adds a table with a line for each application, mode and group of its days.
func sayCallsBy(p *render.Page, title string, r cashin.UsageReport, group func(cashin.UsageDay) string) {
	var rows [][]any
	for _, a := range r.Applications {
		sums := map[string]cashin.Calls{}
		for _, d := range a.Days {
			c := sums[group(d)]
			c.Calls, c.Refused, c.Failed = c.Calls+d.Calls.Calls, c.Refused+d.Refused, c.Failed+d.Failed
			sums[group(d)] = c
		}
		for _, g := range slices.Sorted(maps.Keys(sums)) {
			c := sums[g]
			rows = append(rows, []any{whose(a), registry.Mode(a.Live), g, c.Calls, share(c.Refused, c.Calls), share(c.Failed, c.Calls)})
		}
	}
	p.Table("nobody called", "APPLICATION,MODE,"+title+",CALLS,REFUSED,FAILED", rows)
}
