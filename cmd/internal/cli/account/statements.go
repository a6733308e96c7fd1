package account

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/intake"
	"quittance/internal/registry"
	"quittance/internal/statements"
)

// Statements returns the command `statements`.
func Statements() cli.Command {
	return cli.Command{
		Use: "statements", Short: "Import the statements of operators, acquirers, banks and counters, and see what was imported",
		Commands: []cli.Command{importStatement(), listStatements(), showStatement(), dismissStatement(), reopenStatement(), releases(), withdrawals(), carryOut(), originals()},
		Words:    words,
	}
}

func importStatement() cli.Command {
	var account access.AccountFlags
	var backFill, try bool
	return cli.Command{
		Use: "import FILE", Short: "Import a statement of an account, whole or not at all", JSON: "what became of the file",
		Long: `Import a statement of an account, whole or not at all. The account's profile says how the file is read.

accepted     its lines are written
unchanged    the same statement was accepted before; nothing was done
quarantined  it contradicts an accepted statement of the same id or days, has days far from the account's last one, or was withdrawn before; the file is kept, and a
             person compares both (an operator's file that only adds lines is accepted)
refused      the file has faults, all of which are shown with line and column; nothing was stored

The last two end with code 1. With --try the command says what would become of the file, and stores nothing. An import that was interrupted may be repeated: it completes, or says that the file is unchanged.`,
		Missing:  "say which file: {usage}",
		Examples: []string{"statements import --agency impots --mode live --account mtn 2026-11-20.csv", "statements import --agency impots --mode live --account banque camt053.xml --json", "statements import --agency impots --mode live --account mtn 2026-11-20.csv --try"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			account.Declare(f)
			f.BoolVar(&backFill, "back-fill", false, "the days of the file may be more than 45 days from the account's last one")
			f.BoolVar(&try, "try", false, "say what would become of the file, and store nothing")
		},
		Check: func(*cli.Meta) error { return account.Check() },
		Operate: func(ctx context.Context, m *cli.Meta) error {
			if err := m.Need("kafka", "schema-registry"); err != nil {
				return err
			}
			a, err := account.Find(ctx, m)
			if err != nil {
				return err
			}
			r, err := importFile(ctx, m, intake.Request{Account: a, BackFill: backFill, Try: try, Actor: m.By, Now: m.Now})
			if err != nil {
				return err
			}
			if err := m.Show(importJSON(r, try), func(p *render.Page) { sayImported(p, m.Args[0], a, r, try) }); err != nil {
				return err
			}
			return imported(m.Args[0], r, try)
		},
	}
}

// imported returns the error with which the import of a file ends that was not accepted.
func imported(file string, r intake.Result, try bool) error {
	switch {
	case r.State == statements.VerdictRefused:
		return fmt.Errorf("%s is refused: %s; nothing was stored", file, render.Counted(len(r.Faults)+r.More, "fault"))
	case r.State == statements.VerdictQuarantined && try:
		return fmt.Errorf("%s would be quarantined: a person would decide on it", file)
	case r.State == statements.VerdictQuarantined:
		return fmt.Errorf("%s is quarantined as %s: a person decides on it", file, r.ImportID)
	}
	return nil
}

// importFile imports the file that the command names.
func importFile(ctx context.Context, m *cli.Meta, req intake.Request) (r intake.Result, err error) {
	file, _, err := access.OpenFile(m.Args[0])
	if err != nil {
		return r, err
	}
	defer func() { _ = file.Close() }()
	store, err := openIntake(ctx, m, nil)
	if err != nil {
		return r, err
	}
	req.File = file
	return store.Import(ctx, req)
}

// openIntake opens what imports statements. closed may be nil for imports.
func openIntake(ctx context.Context, m *cli.Meta, closed func(context.Context, registry.StatementAccountKey) (string, error)) (*intake.Store, error) {
	keys, err := m.OpenKeys()
	if err != nil {
		return nil, err
	}
	topology, codec, err := access.OpenTopics(ctx, m)
	if err != nil {
		return nil, err
	}
	return intake.New(intake.Config{Pool: m.Pool, Keys: keys, Kafka: m.KafkaConfig(), Topology: topology, Codec: codec, Closed: closed})
}

// importJSON is the result of an import as --json prints it. The statement_id is that of the
// first statement.
func importJSON(r intake.Result, try bool) render.Object {
	var first any
	if len(r.Statements) > 0 {
		first = render.OrNone(r.Statements[0].ID)
	}
	return render.Object{
		"statement_id", first, "lines", r.Lines, "state", string(r.State), "tried", try, "import_id", render.OrNone(r.ImportID),
		"faults", render.Mapped(r.Faults, func(f statements.Fault) render.Object {
			return render.Object{"kind", string(f.Kind), "line", f.Line, "column", f.Column, "field", render.OrNone(f.Field), "detail", f.Detail, "mend", f.Mend}
		}),
		"more_faults", r.More, "skipped", r.Skipped,
		"statements", render.Mapped(r.Statements, func(s intake.Statement) render.Object {
			return append(render.Object{"state", string(s.State)}, factsJSON(s.Facts)...)
		}),
	}
}

func factsJSON(f intake.Facts) render.Object {
	balance := func(amount int64) any {
		if !f.Balanced {
			return nil
		}
		return amount
	}
	return render.Object{
		"statement_id", f.ID, "page", f.Page, "last_page", f.Last, "sequence", f.Sequence, "from", render.OrNone(f.From), "to", render.OrNone(f.To),
		"lines", f.Lines, "net", f.Net, "opening", balance(f.Opening), "closing", balance(f.Closing), "currency", f.Currency, "digest", f.Digest,
	}
}

// sayImported shows the result of an import.
func sayImported(p *render.Page, file string, a registry.StatementAccount, r intake.Result, try bool) {
	state := string(r.State)
	if try {
		state = "would be " + state + " (nothing is stored)"
	}
	p.Say("%s, account %s (%s): %s, %s", file, a.Code, registry.Mode(a.Live), state, render.Counted(r.Lines, "line"))
	for _, reason := range slices.Sorted(maps.Keys(r.Skipped)) {
		p.Say("  not counted: %d %s", r.Skipped[reason], reason)
	}
	for _, f := range r.Faults {
		p.Say("  %s", f)
	}
	if r.More > 0 {
		p.Say("  and %s", render.Counted(r.More, "further fault"))
	}
	if r.State == statements.VerdictAccepted || r.State == statements.VerdictUnchanged {
		p.Table("", "STATEMENT,PAGE,FROM,TO,LINES,NET,OPENING,CLOSING,STATE", render.Mapped(r.Statements, func(s intake.Statement) []any {
			return append(factsRow(s.Facts), string(s.State))
		}))
	}
	if r.ImportID != "" {
		p.Say("Import %s", r.ImportID)
	}
}

func factsRow(f intake.Facts) []any {
	opening, closing := "", ""
	if f.Balanced {
		opening, closing = render.Decimal(f.Opening, f.Currency), render.Decimal(f.Closing, f.Currency)
	}
	return []any{f.ID, f.Page, f.From, f.To, f.Lines, render.Decimal(f.Net, f.Currency), opening, closing}
}

func listStatements() cli.Command {
	var account access.AccountFlags
	return cli.Command{
		Use: "list", Short: "List imported statements, and files in quarantine", JSON: "the list", Args: cobra.NoArgs,
		Examples: []string{"statements list --agency impots", "statements list --agency impots --mode live --account banque --json"},
		Flags:    func(f *pflag.FlagSet, _ *cli.Meta) { account.Declare(f) },
		Operate: func(ctx context.Context, m *cli.Meta) error {
			s, err := registry.Read(ctx, m.Pool)
			if err != nil {
				return err
			}
			filter := intake.Filter{Code: account.Code}
			if account.Agency != "" {
				agency, err := s.FindAgency(account.Agency)
				if err != nil {
					return err
				}
				filter.AgencyID = agency.ID
			}
			if account.Mode != "" {
				filter.Live = new(account.Mode == registry.Mode(true))
			}
			list, err := intake.List(ctx, m.Pool, filter)
			if err != nil {
				return err
			}
			return m.Show(render.Mapped(list, func(l intake.Listed) render.Object { return listedJSON(s, l) }), func(p *render.Page) {
				p.Table("no statements were imported yet", "AGENCY,MODE,ACCOUNT,STATEMENT,PAGE,FROM,TO,LINES,NET,OPENING,CLOSING,STATE,IMPORT", render.Mapped(list, func(l intake.Listed) []any {
					row := append([]any{s.Agencies[l.AgencyID].Slug, registry.Mode(l.Live), l.Code}, factsRow(l.Facts)...)
					return append(row, string(l.State), l.ImportID)
				}))
			})
		},
	}
}

func listedJSON(s *registry.Snapshot, l intake.Listed) render.Object {
	return append(render.Object{
		"agency", s.Agencies[l.AgencyID].Slug, "mode", registry.Mode(l.Live), "account", l.Code, "state", string(l.State), "import_id", l.ImportID,
		"imported_at", l.ImportedAt, "by", l.Actor, "profile", l.Profile, "file_digest", l.FileDigest, "file_size", l.Size,
	}, factsJSON(l.Facts)...)
}

func showStatement() cli.Command {
	return cli.Command{
		Use: "show IMPORT", Short: "Show an import with its statements", JSON: "the statements of the import", Missing: "say which import: {usage}, its id; `quittance statements list` shows them",
		Examples: []string{"statements show 019ab3c0-0000-7000-8000-000000000000"},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			s, err := registry.Read(ctx, m.Pool)
			if err != nil {
				return err
			}
			list, err := intake.Show(ctx, m.Pool, m.Args[0])
			if err != nil {
				return err
			}
			return m.Show(render.Mapped(list, func(l intake.Listed) render.Object { return listedJSON(s, l) }), func(p *render.Page) {
				l := list[0]
				p.Facts([][2]string{
					{"Account", fmt.Sprintf("%s of %s (%s)", l.Code, s.Agencies[l.AgencyID].Slug, registry.Mode(l.Live))},
					{"State", string(l.State)},
					{"Imported", l.ImportedAt.Format(time.RFC3339)},
					{"By", l.Actor},
					{"Profile", l.Profile},
					{"File", fmt.Sprintf("%d bytes, SHA-256 %s", l.Size, l.FileDigest)},
				})
				p.Table("", "STATEMENT,PAGE,FROM,TO,LINES,NET,OPENING,CLOSING", render.Mapped(list, func(l intake.Listed) []any { return factsRow(l.Facts) }))
			})
		},
	}
}
