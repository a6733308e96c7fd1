package cli

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/cmd/internal/roles"
	"quittance/internal/cases"
	"quittance/internal/journal"
	"quittance/internal/registry"
	"quittance/reconciliation/matcher"
	sinkjournal "quittance/sinks/journal"
)

func periodsCommand() Command {
	return Command{
		Use: "periods", Short: "Close periods of the accounts whose statements are reconciled, and see what was closed",
		Commands: []Command{closePeriod(), listPeriods(), verifyPeriods()},
		Words:    periodWords,
	}
}

func closePeriod() Command {
	var account accountFlags
	var day, month, reason string
	var try bool
	return Command{
		Use: "close", Short: "Propose to close an account until the end of a local day or month; another person approves it", JSON: "what the close says, and its case", Args: cobra.NoArgs,
		Long: `Propose to close an account until the end of a local day or month. The period begins where the close before has ended.

The close shows what was open at its start, what came to be known, what was matched or resolved, and what is open at its end. Another person approves exactly that with ` + "`quittance cases approve`" + `; if anything of it changes before the matcher writes the close, it is refused, and you propose it again. What is closed never changes: later corrections are in the next period.`,
		Examples: []string{"periods close --agency impots --mode live --account mtn --day 2026-11-22 --reason \"daily close\"", "periods close --agency impots --mode live --account banque --month 2026-11 --try"},
		Flags: func(f *pflag.FlagSet, _ *Meta) {
			account.declare(f)
			f.StringVar(&day, "day", "", "last local day of the period, such as 2026-11-22")
			f.StringVar(&month, "month", "", "month that the period ends with, such as 2026-11")
			f.StringVar(&reason, "reason", "", "why; it is recorded")
			f.BoolVar(&try, "try", false, "show what the close says and propose nothing")
		},
		Check: func(m *Meta) error {
			if err := account.check(); err != nil {
				return err
			}
			if (day == "") == (month == "") {
				return usage("say until when: --day 2026-11-22 or --month 2026-11")
			}
			if month != "" {
				first, err := time.Parse("2006-01", month)
				if err != nil {
					return usage("--month %q: must be a month, such as --month 2026-11", month)
				}
				day = first.AddDate(0, 1, -1).Format(time.DateOnly)
			}
			if _, err := time.Parse(time.DateOnly, day); err != nil {
				return usage("--day %q: must be a day, such as --day 2026-11-22", day)
			}
			return quiet(m)
		},
		Operate: func(ctx context.Context, m *Meta) error {
			if err := m.Need("kafka", "schema-registry", "clickhouse"); err != nil {
				return err
			}
			a, err := account.find(ctx, m)
			if err != nil {
				return err
			}
			var by cases.By
			if !try {
				if by, err = m.person(ctx); err != nil {
					return err
				}
			}
			sheet, err := m.sheet(ctx, a, day)
			if err != nil {
				return err
			}
			if try {
				return m.show(sheetJSON(sheet, ""), func(p *page) { p.sheet(sheet) })
			}
			digest, err := sheet.Digest()
			if err != nil {
				return err
			}
			d, err := cases.NewStore(m.pool).OpenClose(ctx, by, cases.CloseRequest{
				AgencyID: a.AgencyID, Live: a.Live, Account: a.Code, From: sheet.From, To: sheet.To, Digest: digest, Sums: inShort(sheet), Reason: reason,
			}, m.now)
			if err != nil {
				return err
			}
			return m.show(sheetJSON(sheet, d.ID), func(p *page) {
				p.sheet(sheet)
				p.say("\nCase %s is open. Another person approves it with `quittance cases approve %s`; `quittance periods list` then shows the close.", d.ID, d.ID)
			})
		},
	}
}

// sheet computes what a close says.
func (m *Meta) sheet(ctx context.Context, a registry.StatementAccount, to string) (sheet *matcher.Sheet, err error) {
	err = m.withBase(ctx, slog.New(slog.DiscardHandler), func(ctx context.Context, b *roles.Base) error {
		if err := b.OpenRegistry(); err != nil {
			return err
		}
		conn, err := b.OpenClickHouse()
		if err != nil {
			return err
		}
		of, err := matcher.New(matcher.Config{
			Kafka: b.KafkaConfig(), Topology: b.Topology, Codec: b.Codec, ClickHouse: conn, Pool: m.pool, Registry: b.Registry, JournalGroup: sinkjournal.Group,
			Now: func() time.Time { return m.now }, Log: b.Log, Metrics: prometheus.NewRegistry(),
		})
		if err != nil {
			return err
		}
		sheet, err = of.Sheet(ctx, a.StatementAccountKey, to)
		return err
	})
	return sheet, err
}

// inShort says what a close says, for the second person.
func inShort(s *matcher.Sheet) string {
	side := func(what string, r matcher.Roll) string {
		return fmt.Sprintf("%s: %d open at the start (%s), %d new (%s), %d matched (%s), %d resolved (%s), %d open at the end (%s)", what,
			r.Start.N, decimal(r.Start.Amount, s.Currency), r.New.N, decimal(r.New.Amount, s.Currency), r.Matched.N, decimal(r.Matched.Amount, s.Currency),
			r.Resolved.N, decimal(r.Resolved.Amount, s.Currency), r.End.N, decimal(r.End.Amount, s.Currency))
	}
	return fmt.Sprintf("%s; %s; open breaks: %d (%s); corrections of earlier closes: %d; statements: %d",
		side("expected", s.Sources), side("lines", s.Lines), s.OpenBreaks.N, decimal(s.OpenBreaks.Amount, s.Currency), s.Corrections, len(s.Statements))
}

func sheetJSON(s *matcher.Sheet, caseID string) object {
	return object{
		"case_id", orNone(caseID), "account", s.Account, "currency", s.Currency, "from", s.From, "to", s.To, "statements", s.Statements, "sources", s.Sources, "lines", s.Lines,
		"open_breaks", s.OpenBreaks, "corrections", s.Corrections, "previous", orNone(s.Previous),
	}
}

// sheet shows what a close says.
func (p *page) sheet(s *matcher.Sheet) {
	p.say("Account %s, %s to %s, %d statements", s.Account, s.From, s.To, len(s.Statements))
	row := func(what string, of func(matcher.Roll) matcher.Count) []any {
		a, b := of(s.Sources), of(s.Lines)
		return []any{what, a.N, decimal(a.Amount, s.Currency), b.N, decimal(b.Amount, s.Currency)}
	}
	p.table("", " ,EXPECTED,AMOUNT,LINES,AMOUNT", [][]any{
		row("open at the start", func(r matcher.Roll) matcher.Count { return r.Start }),
		row("+ new", func(r matcher.Roll) matcher.Count { return r.New }),
		row("- matched", func(r matcher.Roll) matcher.Count { return r.Matched }),
		row("- resolved by people", func(r matcher.Roll) matcher.Count { return r.Resolved }),
		row("= open at the end", func(r matcher.Roll) matcher.Count { return r.End }),
	})
	p.say("Open breaks: %d, their differences %s. Corrections of earlier closes: %d.", s.OpenBreaks.N, decimal(s.OpenBreaks.Amount, s.Currency), s.Corrections)
}

func listPeriods() Command {
	var agency, mode, code string
	return Command{
		Use: "list", Short: "List closed periods, and closes that were refused", JSON: "the list", Args: cobra.NoArgs,
		Examples: []string{"periods list", "periods list --agency impots --mode live --account mtn --json"},
		Flags: func(f *pflag.FlagSet, _ *Meta) {
			f.StringVar(&agency, "agency", "", "periods of this agency, by slug or id")
			takesMode(f, &mode)
			f.StringVar(&code, "account", "", "periods of this account, by code")
		},
		Check: func(*Meta) error {
			if mode == "" {
				return nil
			}
			return needsMode(mode)
		},
		Operate: func(ctx context.Context, m *Meta) error {
			filter := journal.CloseFilter{Account: code}
			s, err := registry.Read(ctx, m.pool)
			if err != nil {
				return err
			}
			if agency != "" {
				a, err := s.FindAgency(agency)
				if err != nil {
					return err
				}
				filter.TenantID = a.ID
			}
			if mode != "" {
				live := mode == registry.Mode(true)
				filter.Live = &live
			}
			conn, err := m.openJournal(ctx)
			if err != nil {
				return err
			}
			defer func() { _ = conn.Close() }()
			list, err := journal.NewStore(conn).Closes(ctx, filter)
			if err != nil {
				return err
			}
			slugs := map[string]string{}
			for _, a := range s.Agencies {
				slugs[a.ID] = a.Slug
			}
			return m.show(mapped(list, func(c journal.Close) object { return closeJSON(c, slugs[c.TenantID]) }), func(p *page) {
				p.table("nothing was closed yet; `quittance periods close` proposes it", "AGENCY,MODE,ACCOUNT,FROM,TO,STATE,EXPECTED OPEN,LINES OPEN,BREAKS,CASE", mapped(list, func(c journal.Close) []any {
					state := c.State
					if c.Reason != "" {
						state += ": " + c.Reason
					}
					return []any{
						slugs[c.TenantID], registry.Mode(c.Livemode), c.Account, c.FromDay.Format(time.DateOnly), c.ToDay.Format(time.DateOnly), state,
						decimal(c.SourcesEndAmount, c.Currency), decimal(c.LinesEndAmount, c.Currency), c.OpenBreaks, c.CaseID,
					}
				}))
			})
		},
	}
}

func closeJSON(c journal.Close, agency string) object {
	count := func(n, amount int64) object { return object{"count", n, "amount", amount} }
	return object{
		"close_id", c.ID, "agency", agency, "mode", registry.Mode(c.Livemode), "account", c.Account, "currency", c.Currency, "from", c.FromDay.Format(time.DateOnly), "to", c.ToDay.Format(time.DateOnly),
		"state", c.State, "reason", orNone(c.Reason), "case_id", c.CaseID, "digest", c.Digest, "previous", orNone(c.Previous), "statements", c.Statements,
		"sources",
		object{
			"start", count(c.SourcesStart, c.SourcesStartAmount), "new", count(c.SourcesNew, c.SourcesNewAmount), "matched", count(c.SourcesMatched, c.SourcesMatchedAmount),
			"resolved", count(c.SourcesResolved, c.SourcesResolvedAmount), "end", count(c.SourcesEnd, c.SourcesEndAmount),
		},
		"lines",
		object{
			"start", count(c.LinesStart, c.LinesStartAmount), "new", count(c.LinesNew, c.LinesNewAmount), "matched", count(c.LinesMatched, c.LinesMatchedAmount),
			"resolved", count(c.LinesResolved, c.LinesResolvedAmount), "end", count(c.LinesEnd, c.LinesEndAmount),
		},
		"open_breaks", count(c.OpenBreaks, c.OpenBreaksAmount), "corrections", c.Corrections, "at", c.At,
	}
}
