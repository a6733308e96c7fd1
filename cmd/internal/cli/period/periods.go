package period

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/render"
	"quittance/cmd/internal/roles"
	"quittance/internal/cases"
	"quittance/internal/journal"
	"quittance/internal/registry"
	"quittance/reconciliation/matcher"
	sinkjournal "quittance/sinks/journal"
)

// Periods returns the command `periods`.
func Periods() cli.Command {
	return cli.Command{
		Use: "periods", Short: "Close periods of the accounts whose statements are reconciled, and see what was closed",
		Commands: []cli.Command{closePeriod(), listPeriods(), verifyPeriods(), periodKeys()},
		Words:    words,
	}
}

const closeHelp = `Propose to close an account until the end of a local day or month. The period begins where the close before has ended.

The close shows what was open at its start, what came to be known, what was matched or resolved, and what is open at its end. Another person approves exactly that with ` + "`quittance cases approve`" + `; if anything of it changes before the matcher writes the close, it is refused, and you propose it again. What is closed never changes: later corrections are in the next period.`

func closePeriod() cli.Command {
	var account access.AccountFlags
	var day, month, reason string
	var try bool
	return cli.Command{
		Use: "close", Short: "Propose to close an account until the end of a local day or month; another person approves it", JSON: "what the close says, and its case", Args: cobra.NoArgs,
		Long:     closeHelp,
		Examples: []string{"periods close --agency impots --mode live --account mtn --day 2026-11-22 --reason \"daily close\"", "periods close --agency impots --mode live --account banque --month 2026-11 --try"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			account.Declare(f)
			f.StringVar(&day, "day", "", "last local day of the period, such as 2026-11-22")
			f.StringVar(&month, "month", "", "month that the period ends with, such as 2026-11")
			f.StringVar(&reason, "reason", "", "why; it is recorded")
			f.BoolVar(&try, "try", false, "show what the close says and propose nothing")
		},
		Check: func(m *cli.Meta) error {
			if err := account.Check(); err != nil {
				return err
			}
			var err error
			if day, err = lastDay(day, month); err != nil {
				return err
			}
			return cli.Quiet(m)
		},
		Keyed: true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			if err := m.Need("kafka", "schema-registry", "clickhouse"); err != nil {
				return err
			}
			a, err := account.Find(ctx, m)
			if err != nil {
				return err
			}
			var by cases.By
			if !try {
				if by, err = access.Person(ctx, m); err != nil {
					return err
				}
			}
			sheet, err := computeSheet(ctx, m, a, day)
			if err != nil {
				return err
			}
			if try {
				return m.Show(sheetJSON(sheet, ""), func(p *render.Page) { saySheet(p, sheet) })
			}
			return proposeClose(ctx, m, by, a, sheet, reason)
		},
	}
}

// proposeClose opens the case of a close, and shows both.
func proposeClose(ctx context.Context, m *cli.Meta, by cases.By, a registry.StatementAccount, sheet *matcher.Sheet, reason string) error {
	digest, err := sheet.Digest()
	if err != nil {
		return err
	}
	d, err := cases.NewStore(m.Pool).Verifying(m.Keys).OpenClose(ctx, by, cases.CloseRequest{
		AgencyID: a.AgencyID, Live: a.Live, Account: a.Code, From: sheet.From, To: sheet.To, Digest: digest, Sums: inShort(sheet), Reason: reason,
	}, m.Now)
	if err != nil {
		return err
	}
	return m.Show(sheetJSON(sheet, d.ID), func(p *render.Page) {
		saySheet(p, sheet)
		p.Say("\nCase %s is open. Another person approves it with `quittance cases approve %s`; `quittance periods list` then shows the close.", d.ID, d.ID)
	})
}

// lastDay returns the last local day of a period from the flags --day and --month, one of which
// is given.
func lastDay(day, month string) (string, error) {
	if (day == "") == (month == "") {
		return "", cli.Usage("say until when: --day 2026-11-22 or --month 2026-11")
	}
	if month != "" {
		first, err := time.Parse("2006-01", month)
		if err != nil {
			return "", cli.Usage("--month %q: must be a month, such as --month 2026-11", month)
		}
		return first.AddDate(0, 1, -1).Format(time.DateOnly), nil
	}
	if _, err := time.Parse(time.DateOnly, day); err != nil {
		return "", cli.Usage("--day %q: must be a day, such as --day 2026-11-22", day)
	}
	return day, nil
}

// computeSheet computes what a close says.
func computeSheet(ctx context.Context, m *cli.Meta, a registry.StatementAccount, to string) (sheet *matcher.Sheet, err error) {
	err = m.WithBase(ctx, slog.New(slog.DiscardHandler), func(ctx context.Context, b *roles.Base) error {
		if err := b.OpenRegistry(); err != nil {
			return err
		}
		conn, err := b.OpenClickHouse()
		if err != nil {
			return err
		}
		of, err := matcher.New(matcher.Config{
			Kafka: b.KafkaConfig(), Topology: b.Topology, Codec: b.Codec, ClickHouse: conn, Pool: m.Pool, Registry: b.Registry, JournalGroup: sinkjournal.Group,
			Verify: b.Keys, Now: func() time.Time { return m.Now }, Log: b.Log, Metrics: prometheus.NewRegistry(),
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
			r.Start.N, render.Decimal(r.Start.Amount, s.Currency), r.New.N, render.Decimal(r.New.Amount, s.Currency), r.Matched.N, render.Decimal(r.Matched.Amount, s.Currency),
			r.Resolved.N, render.Decimal(r.Resolved.Amount, s.Currency), r.End.N, render.Decimal(r.End.Amount, s.Currency))
	}
	text := fmt.Sprintf("%s; %s; open breaks: %d (%s); corrections of earlier closes: %d; statements: %d",
		side("expected", s.Sources), side("lines", s.Lines), s.OpenBreaks.N, render.Decimal(s.OpenBreaks.Amount, s.Currency), s.Corrections, len(s.Statements))
	if len(s.Reports) > 0 {
		text += "; the reports say: " + strings.Join(s.Reports, ", ")
	}
	return text
}

func sheetJSON(s *matcher.Sheet, caseID string) render.Object {
	return render.Object{
		"case_id", render.OrNone(caseID), "account", s.Account, "currency", s.Currency, "from", s.From, "to", s.To, "statements", s.Statements, "sources", s.Sources, "lines", s.Lines,
		"open_breaks", s.OpenBreaks, "corrections", s.Corrections, "reports", append([]string{}, s.Reports...), "previous", render.OrNone(s.Previous),
	}
}

// saySheet shows what a close says.
func saySheet(p *render.Page, s *matcher.Sheet) {
	p.Say("Account %s, %s to %s, %s", s.Account, s.From, s.To, render.Counted(len(s.Statements), "statement"))
	row := func(what string, of func(matcher.Roll) matcher.Count) []any {
		a, b := of(s.Sources), of(s.Lines)
		return []any{what, a.N, render.Decimal(a.Amount, s.Currency), b.N, render.Decimal(b.Amount, s.Currency)}
	}
	p.Table("", " ,EXPECTED,AMOUNT,LINES,AMOUNT", [][]any{
		row("open at the start", func(r matcher.Roll) matcher.Count { return r.Start }),
		row("+ new", func(r matcher.Roll) matcher.Count { return r.New }),
		row("- matched", func(r matcher.Roll) matcher.Count { return r.Matched }),
		row("- resolved by people", func(r matcher.Roll) matcher.Count { return r.Resolved }),
		row("= open at the end", func(r matcher.Roll) matcher.Count { return r.End }),
	})
	p.Say("Open breaks: %d, their differences %s. Corrections of earlier closes: %d.", s.OpenBreaks.N, render.Decimal(s.OpenBreaks.Amount, s.Currency), s.Corrections)
	if len(s.Reports) > 0 {
		p.Say("The reports say of these days (minor units): %s.", strings.Join(s.Reports, ", "))
	}
}

func listPeriods() cli.Command {
	var agency, mode, code string
	return cli.Command{
		Use: "list", Short: "List closed periods, and closes that were refused", JSON: "the list", Args: cobra.NoArgs,
		Examples: []string{"periods list", "periods list --agency impots --mode live --account mtn --json"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&agency, "agency", "", "periods of this agency, by slug or id")
			cli.TakesMode(f, &mode)
			f.StringVar(&code, "account", "", "periods of this account, by code")
		},
		Check: func(*cli.Meta) error {
			if mode == "" {
				return nil
			}
			return cli.NeedsMode(mode)
		},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			s, err := registry.Read(ctx, m.Pool)
			if err != nil {
				return err
			}
			filter := journal.CloseFilter{Account: code}
			if agency != "" {
				a, err := s.FindAgency(agency)
				if err != nil {
					return err
				}
				filter.TenantID = a.ID
			}
			if mode != "" {
				filter.Live = new(mode == registry.Mode(true))
			}
			conn, err := access.OpenJournal(ctx, m)
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
			return m.Show(render.Mapped(list, func(c journal.Close) render.Object { return closeJSON(c, slugs[c.TenantID]) }), func(p *render.Page) {
				sayCloses(p, list, slugs)
			})
		},
	}
}

// sayCloses writes closed and refused periods as a table.
func sayCloses(p *render.Page, list []journal.Close, slugs map[string]string) {
	p.Table("nothing was closed yet; `quittance periods close` proposes it", "AGENCY,MODE,ACCOUNT,FROM,TO,STATE,EXPECTED OPEN,LINES OPEN,BREAKS,CASE", render.Mapped(list, func(c journal.Close) []any {
		state := c.State
		if c.Reason != "" {
			state += ": " + c.Reason
		}
		return []any{
			slugs[c.TenantID], registry.Mode(c.Livemode), c.Account, c.FromDay.Format(time.DateOnly), c.ToDay.Format(time.DateOnly), state,
			render.Decimal(c.SourcesEndAmount, c.Currency), render.Decimal(c.LinesEndAmount, c.Currency), c.OpenBreaks, c.CaseID,
		}
	}))
}

// statementOf returns what is signed of a close; empty for one without a signature.
func statementOf(c journal.Close) string {
	if c.Signature == "" {
		return ""
	}
	return c.Statement()
}

func closeJSON(c journal.Close, agency string) render.Object {
	count := func(n, amount int64) render.Object { return render.Object{"count", n, "amount", amount} }
	return render.Object{
		"close_id", c.ID, "agency", agency, "mode", registry.Mode(c.Livemode), "account", c.Account, "currency", c.Currency, "from", c.FromDay.Format(time.DateOnly), "to", c.ToDay.Format(time.DateOnly),
		"state", c.State, "reason", render.OrNone(c.Reason), "case_id", c.CaseID, "digest", c.Digest, "previous", render.OrNone(c.Previous), "statements", c.Statements,
		"sources",
		render.Object{
			"start", count(c.SourcesStart, c.SourcesStartAmount), "new", count(c.SourcesNew, c.SourcesNewAmount), "matched", count(c.SourcesMatched, c.SourcesMatchedAmount),
			"resolved", count(c.SourcesResolved, c.SourcesResolvedAmount), "end", count(c.SourcesEnd, c.SourcesEndAmount),
		},
		"lines",
		render.Object{
			"start", count(c.LinesStart, c.LinesStartAmount), "new", count(c.LinesNew, c.LinesNewAmount), "matched", count(c.LinesMatched, c.LinesMatchedAmount),
			"resolved", count(c.LinesResolved, c.LinesResolvedAmount), "end", count(c.LinesEnd, c.LinesEndAmount),
		},
		"open_breaks", count(c.OpenBreaks, c.OpenBreaksAmount), "corrections", c.Corrections, "at", c.At, "root", render.OrNone(c.ChainRoot), "rows", c.ChainRows, "signature", render.OrNone(c.Signature), "signed_with", render.OrNone(c.SignedWith),
		"reports", append([]string{}, c.Reports...), "statement", render.OrNone(statementOf(c)),
	}
}
