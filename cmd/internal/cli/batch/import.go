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
	"quittance/internal/cases"
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

// files are the flags of lines.
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

// payer is the agency that pays, as the registry has it.
type payer struct {
	tenantID string
	accounts []disbursements.Account
	revision int64 // of the registry
	// erp is nil for an agency without one in the mode.
	erp *disbursements.ERP
}

// payer returns the agency. The error is disbursements.ErrNoAccounts if it cannot pay.
func (x *files) payer(ctx context.Context, m *cli.Meta) (p payer, err error) {
	if p.tenantID, err = access.AgencyID(ctx, m, x.agency); err != nil {
		return p, err
	}
	in, err := scope(ctx, m)
	if err != nil {
		return p, err
	}
	if in.TenantID != "" && in.TenantID != p.tenantID {
		return p, operation.Refuse("batch.agency_unknown", "agency", nil)
	}
	err = m.WithBase(ctx, slog.New(slog.DiscardHandler), func(_ context.Context, b *roles.Base) error {
		if err := b.OpenRegistry(); err != nil {
			return err
		}
		if settings, ok := b.Registry.ERP(p.tenantID, x.live()); ok {
			p.erp = &disbursements.ERP{Client: b.ERPs(), Settings: settings}
		}
		p.accounts, p.revision, err = b.ImportAccounts(p.tenantID, x.live())
		return err
	})
	if err == nil && len(p.accounts) == 0 {
		err = disbursements.ErrNoAccounts
	}
	return p, err
}

// making are the flags of a batch that is made of lines.
type making struct {
	files
	ref, date, waiver, lang string
	perBatch, try, draft    bool
}

// list is Importer.Accounts.
func (p payer) list(string, bool) ([]disbursements.Account, int64) { return p.accounts, p.revision }

func (x *making) declare(f *pflag.FlagSet) {
	x.files.declare(f)
	f.StringVar(&x.date, "date", "", "local date of the payment, such as 2026-12-20")
	f.StringVar(&x.waiver, "names-not-checked", "", "why the payees' names are not checked, where the policy demands it; without it the batch stays a draft until they are")
	f.BoolVar(&x.perBatch, "line-refs-per-batch", false, "a line_ref is unique among the batches of this batch_ref only")
	f.BoolVar(&x.try, "try", false, "say what is wrong and what would be paid, and make nothing")
	f.BoolVar(&x.draft, "draft", false, "do not seal it: its maker looks at it on its page and seals it there within seven days")
	cli.TakesChoice(f, &x.lang, "lang", []string{string(money.French), string(money.English)}, "language of faults: ")
}

func (x *making) check() error {
	if _, err := localtime.Begin(x.date); err != nil {
		return cli.Usage("--date: must be a date such as 2026-12-20")
	}
	if strings.TrimSpace(x.ref) == "" {
		return cli.Usage("--batch-ref: give your reference of the batch")
	}
	if x.draft && x.waiver != "" {
		return cli.Usage("--names-not-checked is said when the batch is sealed, on its page: leave it out with --draft")
	}
	return x.files.check()
}

// of returns what is imported for an agency, as a person prepares it.
func (x *making) of(p payer, by cases.By) disbursements.Import {
	q := disbursements.Import{
		TenantID: p.tenantID, Live: x.live(), BatchRef: x.ref, Date: x.date, Currency: x.currency, Maker: by.Staff.ID, Waiver: x.waiver, Draft: x.draft,
	}
	if x.perBatch {
		q.Scope = disbursement.ScopeBatch
	}
	return q
}

// boundMemory has the garbage collector work harder for a large batch.
func boundMemory() {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 { // GOMEMLIMIT wins
		debug.SetMemoryLimit(importMemory)
	}
}

func importBatch() cli.Command {
	var with making
	return cli.Command{
		Use: "import FILE", Short: "Import a file of lines (CSV or XLSX) as a batch, whole or not at all, and seal it for approval", JSON: "the batch, or the faults", Keyed: true,
		Long: `Import a file of lines as a batch, whole or not at all, and seal it for approval.

One faulty line refuses the whole file; all faults are shown at once, with row and column. Nothing is repaired silently: what a spreadsheet did to numbers is a fault. Texts are written in the letters that operators take; --try shows what changes.

The person of QUITTANCE_STAFF_KEY is the maker, who never approves the batch. Others approve it on its page. An import that fails in the middle discards its batch.`,
		Missing:  "say which file: {usage}; `quittance batches template` makes an empty one",
		Examples: []string{"batches import --agency impots --mode test --batch-ref salaries-2026-12 --date 2026-12-20 salaries.xlsx", "batches import --agency impots --mode live --batch-ref salaries-2026-12 --date 2026-12-20 salaries.csv --try"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			with.declare(f)
			f.StringVar(&with.ref, "batch-ref", "", "your reference of the batch; a new import of it is the next revision")
		},
		Check: func(*cli.Meta) error { return with.check() },
		Operate: func(ctx context.Context, m *cli.Meta) error {
			if err := m.Need("kafka", "schema-registry"); err != nil {
				return err
			}
			by, err := access.Person(ctx, m)
			if err != nil {
				return err
			}
			boundMemory()
			file, size, err := access.OpenFile(m.Args[0])
			if err != nil {
				return err
			}
			defer func() { _ = file.Close() }()
			p, err := with.payer(ctx, m)
			if err != nil {
				return err
			}
			q := with.of(p, by)
			q.File, q.Size = file, size
			return with.make(ctx, m, p, q, filepath.Base(m.Args[0]))
		},
	}
}

// make imports lines, or says what they are. what names where they come from.
func (x *making) make(ctx context.Context, m *cli.Meta, p payer, q disbursements.Import, what string) error {
	lang := languageOf(x.lang)
	if x.try {
		return tryLines(ctx, m, q, p, what, lang)
	}
	return access.WithBatches(ctx, m, func(processor *commands.Disbursement, topology *kafka.Topology, batches *disbursements.Store) error {
		return makeBatch(ctx, m, processor, topology, batches, q, p, what, lang)
	})
}

func languageOf(lang string) money.Language {
	if lang == string(money.French) {
		return money.French
	}
	return money.English
}

// tryLines says what lines are, and makes nothing.
func tryLines(ctx context.Context, m *cli.Meta, q disbursements.Import, p payer, what string, lang money.Language) error {
	file, err := (&disbursements.Importer{Accounts: p.list}).Try(ctx, q)
	if err != nil {
		return err
	}
	if file.Refused() {
		return refusedLines(m, file, what, lang)
	}
	sum, changes := int64(0), 0
	for _, l := range file.Lines {
		sum += l.Content.Amount
		changes += len(l.Changes)
	}
	return m.Show(render.Object{"lines", len(file.Lines), "sum", sum, "currency", q.Currency, "changes", changesJSON(file)}, func(p *render.Page) {
		p.Say("%s, %s; nothing was made", render.Counted(len(file.Lines), "line"), render.Decimal(sum, q.Currency))
		if changes > 0 {
			p.Say("%s written in other letters:", render.Counted(changes, "text"))
			sayChanges(p, file)
		}
	})
}

// place is what a line is called: the row of a file, or the item of an ERP's answer.
func place(file *lines.File) string {
	if file.Format == lines.FormatERP {
		return "item"
	}
	return "row"
}

// from is the difference between Line.Row and the number of a place: items are counted from 0, as in items[17].
func from(file *lines.File) int {
	if file.Format == lines.FormatERP {
		return 1
	}
	return 0
}

// changesJSON are the texts that differ from their cells. Whoever has the file sees nothing new.
func changesJSON(file *lines.File) []render.Object {
	out := []render.Object{}
	for _, l := range file.Lines {
		for _, c := range l.Changes {
			out = append(out, render.Object{place(file), l.Row - from(file), "column", string(c.Column), "from", c.From, "to", c.To})
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
			p.Say("  %s %d, %s: %q becomes %q", place(file), l.Row-from(file), c.Column, c.From, c.To)
		}
	}
}

// refusedLines shows the faults of lines, and returns the error with which the command ends.
func refusedLines(m *cli.Meta, file *lines.File, what string, lang money.Language) error {
	err := m.Show(render.Object{
		"state", "refused", "count", file.Count, "faults", render.Mapped(file.Faults, func(f lines.Fault) render.Object {
			row, item := any(f.Row), any(nil)
			if f.Path != "" {
				row = nil
				if f.Row > 0 {
					item = f.Row - 1
				}
			}
			return render.Object{
				"kind", string(f.Kind), "row", row, "item", item, "field", render.OrNone(f.Path), "column", render.OrNone(f.Column), "header", render.OrNone(string(f.Header)), "cell", render.OrNone(f.Cell),
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
	return errors.Join(err, fmt.Errorf("%s is refused: %s; nothing was made", what, render.Counted(file.Count, "fault")))
}

func makeBatch(ctx context.Context, m *cli.Meta, processor *commands.Disbursement, topology *kafka.Topology, batches *disbursements.Store, q disbursements.Import, p payer, what string, lang money.Language) error {
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
		Processor: processor, Personal: store, Batches: batches, Payees: payees, IDs: ids, Partition: topology.Partition, Now: func() time.Time { return m.Now }, Accounts: p.list,
	}
	made, err := importer.Import(ctx, q)
	b, file := made.Batch, made.File
	if errors.Is(err, disbursements.ErrFile) {
		return refusedLines(m, file, what, lang)
	}
	if err != nil {
		return err
	}
	detail := map[string]any{"batch_ref": b.BatchRef, "revision": b.Revision, "count": b.Count, "sum": b.Sum, "source": string(b.Source)}
	if made.Draft {
		detail["draft"] = true
	} else {
		detail["digest"] = b.Digest.String()
	}
	if err := operation.Record(ctx, m.Pool, m.By, m.Now, operation.Entry{Action: "batch.import", Subject: b.ID, AgencyID: b.TenantID, Detail: detail}); err != nil {
		return err
	}
	digest := render.OrNone(b.Digest.String())
	if made.Draft {
		digest = nil
	}
	return m.Show(append(batchJSON(b, q.TenantID), "digest", digest, "changes", changesJSON(file), "notes", notesJSON(made.Notes)), func(p *render.Page) {
		next := "sealed; it waits for approval until " + render.Moment(b.ApproveUntil)
		if made.Draft {
			next = "a draft; its maker seals it on its page, or it ends at " + render.Moment(b.OpenedAt.Add(disbursement.DraftLife))
		}
		p.Say("%s: %s, revision %d, with %s, %s, is %s", b.ID, b.BatchRef, b.Revision, render.Counted(b.Count, "line"), render.Decimal(b.Sum, b.Currency), next)
		sayChanges(p, file)
		sayNotes(p, made.Notes, b.Currency)
		if names := made.Notes.Names; names != nil && names.Lines > 0 {
			p.Say("The policy asks for names: operators are asked about %s, at most ten a second an account. `batches show %s` says what they tell. Its maker seals it on its page then, or before with a reason.", render.Counted(names.Lines, "payee"), b.ID)
		}
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
			p, err := of.payer(ctx, m)
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
			if err := write(file, languageOf(lang), disbursements.Rules(of.currency, p.accounts), nil); err != nil {
				return err
			}
			return m.Show(render.Object{"file", m.Args[0]}, func(p *render.Page) { p.Say("%s is written", m.Args[0]) })
		},
	}
}
