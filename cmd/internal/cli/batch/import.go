package batch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/render"
	"quittance/cmd/internal/roles"
	"quittance/disbursement"
	"quittance/internal/commands"
	"quittance/internal/disbursements"
	"quittance/internal/disbursements/lines"
	"quittance/internal/kafka"
	"quittance/internal/operation"
	"quittance/internal/personal"
	"quittance/internal/registry"
	"quittance/money"
	"quittance/money/localtime"
)

// shownFaults is how many faults of a file the command prints as text; --json has up to lines.MaxFaults.
const shownFaults = 50

// importMemory is the memory above which the garbage collector works harder: a file of 100,000 lines has some 200 MB in use.
const importMemory = 400 << 20

// files are the flags of a file of lines.
type files struct{ agency, mode, currency string }

func (x *files) declare(f *pflag.FlagSet) {
	f.StringVar(&x.agency, "agency", "", "the agency that pays, by slug or id")
	cli.TakesMode(f, &x.mode)
	f.StringVar(&x.currency, "currency", money.Default, "currency of all lines")
}

func (x *files) check() error {
	if x.agency == "" {
		return cli.Usage("--agency: say which agency pays")
	}
	if _, ok := money.Lookup(x.currency); !ok {
		return cli.Usage("--currency: %q is no currency of the contract", x.currency)
	}
	return cli.NeedsMode(x.mode)
}

func (x *files) live() bool { return x.mode == registry.Mode(true) }

// rules returns the agency, its payout accounts and the revision of the registry that has them.
func (x *files) rules(ctx context.Context, m *cli.Meta) (tenantID string, accounts []disbursements.Account, revision int64, err error) {
	if tenantID, err = access.AgencyID(ctx, m, x.agency); err != nil {
		return "", nil, 0, err
	}
	in, err := scope(ctx, m)
	if err != nil {
		return "", nil, 0, err
	}
	if in.TenantID != "" && in.TenantID != tenantID {
		return "", nil, 0, operation.Refuse("batch.agency_unknown", "agency", nil)
	}
	err = m.WithBase(ctx, slog.New(slog.DiscardHandler), func(_ context.Context, b *roles.Base) error {
		if err := b.OpenRegistry(); err != nil {
			return err
		}
		accounts, revision, err = b.ImportAccounts(tenantID, x.live())
		return err
	})
	if err == nil && len(accounts) == 0 {
		err = disbursements.ErrNoAccounts
	}
	return tenantID, accounts, revision, err
}

func importBatch() cli.Command {
	var of files
	var ref, date, waiver, lang string
	var perBatch, try bool
	return cli.Command{
		Use: "import FILE", Short: "Import a file of lines (CSV or XLSX) as a batch, whole or not at all, and seal it for approval", JSON: "the batch, or the faults", Keyed: true,
		Long: `Import a file of lines as a batch, whole or not at all, and seal it for approval.

One faulty line refuses the whole file; all faults are shown at once, with row and column. Nothing is repaired silently: what a spreadsheet did to numbers is a fault. Texts are written in the letters that operators take; --try shows what changes.

The person of QUITTANCE_STAFF_KEY is the maker, who never approves the batch. Others approve it on its page. An import that fails in the middle discards its batch.`,
		Missing:  "say which file: {usage}; `quittance batches template` makes an empty one",
		Examples: []string{"batches import --agency impots --mode test --batch-ref salaries-2026-12 --date 2026-12-20 salaries.xlsx", "batches import --agency impots --mode live --batch-ref salaries-2026-12 --date 2026-12-20 salaries.csv --try"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			of.declare(f)
			f.StringVar(&ref, "batch-ref", "", "your reference of the batch; a new import of it is the next revision")
			f.StringVar(&date, "date", "", "local date of the payment, such as 2026-12-20")
			f.StringVar(&waiver, "names-not-checked", "", "why the payees' names were not checked, where the policy demands it")
			f.BoolVar(&perBatch, "line-refs-per-batch", false, "a line_ref is unique among the batches of this batch_ref only")
			f.BoolVar(&try, "try", false, "say what is wrong and what would be paid, and make nothing")
			cli.TakesChoice(f, &lang, "lang", []string{string(money.French), string(money.English)}, "language of faults: ")
		},
		Check: func(*cli.Meta) error {
			if _, err := localtime.Begin(date); err != nil {
				return cli.Usage("--date: must be a date such as 2026-12-20")
			}
			if strings.TrimSpace(ref) == "" {
				return cli.Usage("--batch-ref: give your reference of the batch")
			}
			return of.check()
		},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			if err := m.Need("kafka", "schema-registry"); err != nil {
				return err
			}
			by, err := access.Person(ctx, m)
			if err != nil {
				return err
			}
			if debug.SetMemoryLimit(-1) == math.MaxInt64 { // GOMEMLIMIT wins
				debug.SetMemoryLimit(importMemory)
			}
			file, size, err := access.OpenFile(m.Args[0])
			if err != nil {
				return err
			}
			defer func() { _ = file.Close() }()
			tenantID, accounts, revision, err := of.rules(ctx, m)
			if err != nil {
				return err
			}
			q := disbursements.Import{
				TenantID: tenantID, Live: of.live(), BatchRef: ref, Date: date, Currency: of.currency, Maker: by.Staff.ID, Waiver: waiver, File: file, Size: size,
			}
			if perBatch {
				q.Scope = disbursement.ScopeBatch
			}
			if try {
				return tryFile(m, q, accounts, languageOf(lang))
			}
			return access.WithBatches(ctx, m, func(processor *commands.Disbursement, topology *kafka.Topology, batches *disbursements.Store) error {
				return makeBatch(ctx, m, processor, topology, batches, q, accounts, revision, languageOf(lang))
			})
		},
	}
}

func languageOf(lang string) money.Language {
	if lang == string(money.French) {
		return money.French
	}
	return money.English
}

// tryFile says what a file holds.
func tryFile(m *cli.Meta, q disbursements.Import, accounts []disbursements.Account, lang money.Language) error {
	file, err := lines.Read(q.File, q.Size, disbursements.Rules(q.Currency, accounts))
	if err != nil {
		return err
	}
	if file.Refused() {
		return refusedFile(m, file, lang)
	}
	sum, changes := int64(0), 0
	for _, l := range file.Lines {
		sum += l.Content.Amount
		changes += len(l.Changes)
	}
	return m.Show(render.Object{"lines", len(file.Lines), "sum", sum, "currency", q.Currency, "changes", changesJSON(file)}, func(p *render.Page) {
		p.Say("%d lines, %s; nothing was made", len(file.Lines), render.Decimal(sum, q.Currency))
		if changes > 0 {
			p.Say("%d texts are written in other letters:", changes)
			sayChanges(p, file)
		}
	})
}

// changesJSON are the texts that differ from their cells. Whoever has the file sees nothing new.
func changesJSON(file *lines.File) []render.Object {
	out := []render.Object{}
	for _, l := range file.Lines {
		for _, c := range l.Changes {
			out = append(out, render.Object{"row", l.Row, "column", string(c.Column), "from", c.From, "to", c.To})
		}
	}
	return out
}

func sayChanges(p *render.Page, file *lines.File) {
	shown := 0
	for _, l := range file.Lines {
		for _, c := range l.Changes {
			if shown++; shown > shownFaults {
				p.Say("…; --json has all")
				return
			}
			p.Say("  row %d, %s: %q becomes %q", l.Row, c.Column, c.From, c.To)
		}
	}
}

// refusedFile shows the faults of a file, and returns the error with which the command ends.
func refusedFile(m *cli.Meta, file *lines.File, lang money.Language) error {
	err := m.Show(render.Object{
		"state", "refused", "count", file.Count, "faults", render.Mapped(file.Faults, func(f lines.Fault) render.Object {
			return render.Object{
				"kind", string(f.Kind), "row", f.Row, "column", render.OrNone(f.Column), "header", render.OrNone(string(f.Header)), "cell", render.OrNone(f.Cell),
				"detail", f.Detail(lang), "mend", f.Mend(lang),
			}
		}),
	}, func(p *render.Page) {
		for i, f := range file.Faults {
			if i == shownFaults {
				break
			}
			p.Say("%s", f.Text(lang))
		}
		if file.Count > shownFaults {
			p.Say("… and %d more; --json has up to %d", file.Count-shownFaults, lines.MaxFaults)
		}
	})
	return errors.Join(err, fmt.Errorf("%s is refused: %d faults; nothing was made", filepath.Base(m.Args[0]), file.Count))
}

func makeBatch(ctx context.Context, m *cli.Meta, processor *commands.Disbursement, topology *kafka.Topology, batches *disbursements.Store, q disbursements.Import, accounts []disbursements.Account, revision int64, lang money.Language) error {
	ids, err := disbursements.NewIDs(m.Keys)
	if err != nil {
		return err
	}
	store, err := personal.New(personal.Config{Pool: m.Pool, Keys: m.Keys, Now: func() time.Time { return m.Now }})
	if err != nil {
		return err
	}
	payees, err := disbursements.NewPayees(m.Pool, m.Keys)
	if err != nil {
		return err
	}
	importer := &disbursements.Importer{
		Processor: processor, Personal: store, Batches: batches, Payees: payees, IDs: ids, Partition: topology.Partition, Now: func() time.Time { return m.Now },
		Accounts: func(string, bool) ([]disbursements.Account, int64) { return accounts, revision },
	}
	made, err := importer.Import(ctx, q)
	b, file := made.Batch, made.File
	if errors.Is(err, disbursements.ErrFile) {
		return refusedFile(m, file, lang)
	}
	if err != nil {
		return err
	}
	err = operation.Record(ctx, m.Pool, m.By, m.Now, operation.Entry{
		Action: "batch.import", Subject: b.ID, AgencyID: b.TenantID, Detail: map[string]any{"batch_ref": b.BatchRef, "revision": b.Revision, "count": b.Count, "sum": b.Sum, "digest": b.Digest.String()},
	})
	if err != nil {
		return err
	}
	return m.Show(append(batchJSON(b, q.TenantID), "digest", b.Digest.String(), "changes", changesJSON(file), "notes", notesJSON(made.Notes)), func(p *render.Page) {
		p.Say("%s: %s, revision %d, with %d lines, %s, is sealed; it waits for approval until %s", b.ID, b.BatchRef, b.Revision, b.Count, render.Decimal(b.Sum, b.Currency), render.Moment(b.ApproveUntil))
		sayChanges(p, file)
		sayNotes(p, made.Notes, b.Currency)
	})
}

func templateFile() cli.Command {
	var of files
	var lang string
	return cli.Command{
		Use: "template FILE", Short: "Write an empty file of lines for an agency, as .xlsx or .csv: fill it in, and import it", JSON: "the file", Keyed: true,
		Missing: "say which file to write: {usage}", Examples: []string{"batches template --agency impots --mode test --lang fr salaires.xlsx"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			of.declare(f)
			cli.TakesChoice(f, &lang, "lang", []string{string(money.French), string(money.English)}, "language of the headers: ")
		},
		Check: func(m *cli.Meta) error {
			if ext := strings.ToLower(filepath.Ext(m.Args[0])); ext != ".xlsx" && ext != ".csv" {
				return cli.Usage("FILE: its name must end with .xlsx or .csv")
			}
			return of.check()
		},
		Operate: func(ctx context.Context, m *cli.Meta) (err error) {
			_, accounts, _, err := of.rules(ctx, m)
			if err != nil {
				return err
			}
			file, err := os.OpenFile(m.Args[0], os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, file.Close()) }()
			write := lines.WriteXLSX
			if strings.EqualFold(filepath.Ext(m.Args[0]), ".csv") {
				write = lines.WriteCSV
			}
			if err := write(file, languageOf(lang), disbursements.Rules(of.currency, accounts), nil); err != nil {
				return err
			}
			return m.Show(render.Object{"file", m.Args[0]}, func(p *render.Page) { p.Say("%s is written", m.Args[0]) })
		},
	}
}
