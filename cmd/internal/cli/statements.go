package cli

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/internal/intake"
	"quittance/internal/registry"
	"quittance/internal/statements"
)

func statementsCommand() Command {
	return Command{
		Use: "statements", Short: "Import the statements of operators, acquirers, banks and counters, and see what was imported",
		Commands: []Command{importStatement(), listStatements(), showStatement(), decideOnStatement(dismissal), decideOnStatement(release), originals()},
		Words:    accountWords,
	}
}

func importStatement() Command {
	var account accountFlags
	return Command{
		Use: "import FILE", Short: "Import a statement of an account, whole or not at all", JSON: "what became of the file",
		Long: `Import a statement of an account, whole or not at all. The account's profile says how the file is read.

accepted     its lines are written
unchanged    the same statement was accepted before; nothing was done
quarantined  it contradicts an accepted statement of the same id or days; the file is kept, and a person compares both
             (an operator's file that only adds lines is accepted)
refused      the file has faults, all of which are shown with line and column; nothing was stored

The last two end with code 1. An import that was interrupted may be repeated: it completes, or says that the file is unchanged.`,
		Missing:  "say which file: {usage}",
		Examples: []string{"statements import --agency impots --mode live --account mtn 2026-11-20.csv", "statements import --agency impots --mode live --account banque camt053.xml --json"},
		Flags:    func(f *pflag.FlagSet, _ *Meta) { account.declare(f) },
		Check:    func(*Meta) error { return account.check() },
		Operate: func(ctx context.Context, m *Meta) error {
			if err := m.Need("kafka", "schema-registry"); err != nil {
				return err
			}
			a, err := account.find(ctx, m)
			if err != nil {
				return err
			}
			r, err := m.importFile(ctx, a)
			if err != nil {
				return err
			}
			if err := m.show(importJSON(r), func(p *page) { p.imported(m.args[0], a, r) }); err != nil {
				return err
			}
			switch r.State {
			case statements.VerdictRefused:
				return fmt.Errorf("%s is refused: %d faults; nothing was stored", m.args[0], len(r.Faults)+r.More)
			case statements.VerdictQuarantined:
				return fmt.Errorf("%s is quarantined as %s: it contradicts an accepted statement", m.args[0], r.ImportID)
			case statements.VerdictAccepted, statements.VerdictUnchanged:
			}
			return nil
		},
	}
}

// importFile imports the file that the command names.
func (m *Meta) importFile(ctx context.Context, a registry.StatementAccount) (r intake.Result, err error) {
	file, err := os.Open(m.args[0])
	if err != nil {
		return r, err
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return r, fmt.Errorf("%s is not a regular file: save what it holds to a file first", m.args[0])
	}
	keys, err := m.OpenKeys()
	if err != nil {
		return r, err
	}
	topology, codec, err := m.openTopics(ctx)
	if err != nil {
		return r, err
	}
	store, err := intake.New(intake.Config{Pool: m.pool, Keys: keys, Kafka: m.KafkaConfig(), Topology: topology, Codec: codec})
	if err != nil {
		return r, err
	}
	return store.Import(ctx, intake.Request{Account: a, File: file, Actor: operator(), Now: m.now})
}

// importJSON is the result of an import as --json prints it. The statement_id is that of the
// first statement.
func importJSON(r intake.Result) object {
	var first any
	if len(r.Statements) > 0 {
		first = orNone(r.Statements[0].ID)
	}
	return object{
		"statement_id", first, "lines", r.Lines, "state", string(r.State), "import_id", orNone(r.ImportID),
		"faults", mapped(r.Faults, func(f statements.Fault) object {
			return object{"kind", string(f.Kind), "line", f.Line, "column", f.Column, "field", orNone(f.Field), "detail", f.Detail, "mend", f.Mend}
		}),
		"more_faults", r.More, "skipped", r.Skipped,
		"statements", mapped(r.Statements, func(s intake.Statement) object {
			return append(object{"state", string(s.State)}, factsJSON(s.Facts)...)
		}),
	}
}

func factsJSON(f intake.Facts) object {
	balance := func(amount int64) any {
		if !f.Balanced {
			return nil
		}
		return amount
	}
	return object{
		"statement_id", f.ID, "page", f.Page, "last_page", f.Last, "sequence", f.Sequence, "from", orNone(f.From), "to", orNone(f.To),
		"lines", f.Lines, "net", f.Net, "opening", balance(f.Opening), "closing", balance(f.Closing), "currency", f.Currency, "digest", f.Digest,
	}
}

// imported shows the result of an import.
func (p *page) imported(file string, a registry.StatementAccount, r intake.Result) {
	p.say("%s, account %s (%s): %s, %d lines", file, a.Code, registry.Mode(a.Live), r.State, r.Lines)
	for _, reason := range slices.Sorted(maps.Keys(r.Skipped)) {
		p.say("  not counted: %d %s", r.Skipped[reason], reason)
	}
	for _, f := range r.Faults {
		p.say("  %s", f)
	}
	if r.More > 0 {
		p.say("  and %d further faults", r.More)
	}
	if r.State == statements.VerdictAccepted || r.State == statements.VerdictUnchanged {
		p.table("", "STATEMENT,PAGE,FROM,TO,LINES,NET,OPENING,CLOSING,STATE", mapped(r.Statements, func(s intake.Statement) []any {
			return append(factsRow(s.Facts), string(s.State))
		}))
	}
	if r.ImportID != "" {
		p.say("Import %s", r.ImportID)
	}
}

func factsRow(f intake.Facts) []any {
	opening, closing := "", ""
	if f.Balanced {
		opening, closing = decimal(f.Opening, f.Currency), decimal(f.Closing, f.Currency)
	}
	return []any{f.ID, f.Page, f.From, f.To, f.Lines, decimal(f.Net, f.Currency), opening, closing}
}

func listStatements() Command {
	var account accountFlags
	return Command{
		Use: "list", Short: "List imported statements, and files in quarantine", JSON: "the list", Args: cobra.NoArgs,
		Examples: []string{"statements list --agency impots", "statements list --agency impots --mode live --account banque --json"},
		Flags:    func(f *pflag.FlagSet, _ *Meta) { account.declare(f) },
		Operate: func(ctx context.Context, m *Meta) error {
			s, err := registry.Read(ctx, m.pool)
			if err != nil {
				return err
			}
			filter := intake.Filter{Code: account.code}
			if account.agency != "" {
				agency, err := s.FindAgency(account.agency)
				if err != nil {
					return err
				}
				filter.AgencyID = agency.ID
			}
			if account.mode != "" {
				filter.Live = new(account.mode == registry.Mode(true))
			}
			list, err := intake.List(ctx, m.pool, filter)
			if err != nil {
				return err
			}
			return m.show(mapped(list, func(l intake.Listed) object { return listedJSON(s, l) }), func(p *page) {
				p.table("no statements were imported yet", "AGENCY,MODE,ACCOUNT,STATEMENT,PAGE,FROM,TO,LINES,NET,OPENING,CLOSING,STATE,IMPORT", mapped(list, func(l intake.Listed) []any {
					row := append([]any{s.Agencies[l.AgencyID].Slug, registry.Mode(l.Live), l.Code}, factsRow(l.Facts)...)
					return append(row, string(l.State), l.ImportID)
				}))
			})
		},
	}
}

// quarantineExit is a way out of quarantine.
type quarantineExit struct {
	verb, short string
	decision    intake.Decision
	reason      string // an example
	said        string
}

var (
	dismissal = quarantineExit{
		"dismiss", "End the quarantine of a file: the accepted statement was right, and nothing of the file counts",
		intake.Dismissed, "MTN confirmed the first file on 2026-11-23", "Import %s is dismissed. The file is kept; the accepted statement stands.",
	}
	release = quarantineExit{
		"release", "Release a file from quarantine: it is right, and it is accepted when it is imported again; or make an earlier version the last statement again",
		intake.Released, "MTN corrected line 7 on 2026-11-23", "Import %s is released. If its file was in quarantine, import it again: it is accepted, and lines that differ from the accepted statement become breaks.",
	}
)

func decideOnStatement(exit quarantineExit) Command {
	var reason string
	return Command{
		Use: exit.verb + " IMPORT", Short: exit.short, JSON: "the import's id and state",
		Missing:  "say which import: {usage}, the id of a file in quarantine; `quittance statements list` shows them",
		Examples: []string{fmt.Sprintf("statements %s 019ab3c0-0000-7000-8000-000000000000 --reason %q", exit.verb, exit.reason)},
		Flags:    func(f *pflag.FlagSet, _ *Meta) { f.StringVar(&reason, "reason", "", "why; it is recorded") },
		Operate: func(ctx context.Context, m *Meta) error {
			by, err := m.person(ctx)
			if err != nil {
				return err
			}
			if err := intake.Decide(ctx, m.pool, by.Staff, by.Origin, m.args[0], exit.decision, reason, m.now); err != nil {
				return err
			}
			return m.show(object{"import_id", m.args[0], "state", string(exit.decision)}, func(p *page) { p.say(exit.said, m.args[0]) })
		},
	}
}

func listedJSON(s *registry.Snapshot, l intake.Listed) object {
	return append(object{
		"agency", s.Agencies[l.AgencyID].Slug, "mode", registry.Mode(l.Live), "account", l.Code, "state", string(l.State), "import_id", l.ImportID,
		"imported_at", l.ImportedAt, "by", l.Actor, "profile", l.Profile, "file_digest", l.FileDigest, "file_size", l.Size,
	}, factsJSON(l.Facts)...)
}

func showStatement() Command {
	return Command{
		Use: "show IMPORT", Short: "Show an import with its statements", JSON: "the statements of the import", Missing: "say which import: {usage}, its id; `quittance statements list` shows them",
		Examples: []string{"statements show 019ab3c0-0000-7000-8000-000000000000"},
		Operate: func(ctx context.Context, m *Meta) error {
			s, err := registry.Read(ctx, m.pool)
			if err != nil {
				return err
			}
			list, err := intake.Show(ctx, m.pool, m.args[0])
			if err != nil {
				return err
			}
			return m.show(mapped(list, func(l intake.Listed) object { return listedJSON(s, l) }), func(p *page) {
				l := list[0]
				p.facts([][2]string{
					{"Account", fmt.Sprintf("%s of %s (%s)", l.Code, s.Agencies[l.AgencyID].Slug, registry.Mode(l.Live))},
					{"State", string(l.State)},
					{"Imported", l.ImportedAt.Format(time.RFC3339)},
					{"By", l.Actor},
					{"Profile", l.Profile},
					{"File", fmt.Sprintf("%d bytes, SHA-256 %s", l.Size, l.FileDigest)},
				})
				p.table("", "STATEMENT,PAGE,FROM,TO,LINES,NET,OPENING,CLOSING", mapped(list, func(l intake.Listed) []any { return factsRow(l.Facts) }))
			})
		},
	}
}
