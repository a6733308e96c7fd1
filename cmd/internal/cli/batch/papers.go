package batch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/render"
	"quittance/cmd/internal/roles"
	"quittance/disbursement"
	"quittance/document"
	"quittance/internal/batchpapers"
	"quittance/internal/batchseal"
	"quittance/internal/disbursements"
	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/internal/report"
	"quittance/money"
)

// paperFlags are those of commands that make papers.
type paperFlags struct{ out, lang string }

func (x *paperFlags) declare(f *pflag.FlagSet, m *cli.Meta, out string) {
	x.lang = string(money.French)
	f.StringVar(&x.out, "out", "", out)
	cli.TakesChoice(f, &x.lang, "lang", []string{string(money.French), string(money.English)}, "language of the paper: ")
	f.StringVar(&m.CheckoutURL, "checkout-url", "", "URL of the checkout pages for citizens, https: the code of a paper leads there, to be verified")
}

func (x *paperFlags) check(m *cli.Meta) error {
	if x.out == "" {
		return cli.Usage("--out: say where to write")
	}
	if m.CheckoutURL == "" {
		return cli.Usage("--checkout-url: give the address of the pages for citizens, where the code of a paper is verified")
	}
	return nil
}

// desk has what papers of a batch are made of.
type desk struct {
	*batchpapers.Maker

	store *disbursements.Store
	batch disbursements.Batch
	proof disbursements.Proof
	staff batchpapers.Staff
	lines disbursements.Opener
	// sign signs what is no paper.
	sign *batchseal.Signer
}

// errDiffers says that Postgres does not show what Kafka has proven.
var errDiffers = errors.New("the rows of Postgres do not show the batch as Kafka has it: hold the batch, and compare with `quittance readmodel verify`; `quittance rebuild batches` makes the rows again")

// proveBatch proves a batch from Kafka, and that Postgres shows it so.
func proveBatch(ctx context.Context, m *cli.Meta, store *disbursements.Store, b disbursements.Batch) (disbursements.Proof, error) {
	if b.SealedAt.IsZero() {
		return disbursements.Proof{}, operation.Refuse("batch.not_sealed", "batch", nil)
	}
	proof, err := proofOf(ctx, m, b)
	if err != nil {
		return proof, err
	}
	if len(proof.Faults) > 0 {
		return proof, errDoesNotHold
	}
	found, err := store.Agrees(ctx, proof)
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("%w (%v)", errDiffers, found)
	}
	return proof, err
}

// withPapers proves a batch and calls do with what makes its papers.
func withPapers(ctx context.Context, m *cli.Meta, store *disbursements.Store, b disbursements.Batch, do func(d *desk) error) error {
	d := &desk{store: store, batch: b}
	var err error
	if d.proof, err = proveBatch(ctx, m, store, b); err != nil {
		return err
	}
	if d.staff.People, err = identity.OpenBook(m.Pool, m.Keys).Read(ctx, m.Now); err != nil {
		return err
	}
	if _, d.staff.Roster, err = store.Agency(ctx, b.TenantID, b.Live); err != nil {
		return err
	}
	if d.sign, err = batchseal.NewSigner(m.Keys); err != nil {
		return err
	}
	return m.WithBase(ctx, slog.New(slog.DiscardHandler), func(_ context.Context, base *roles.Base) error {
		if err := base.OpenRegistry(); err != nil { // its rows are verified
			return err
		}
		d.lines = base.Personal
		d.Maker, err = batchpapers.New(batchpapers.Config{Batches: store, Lines: base.Personal, Agency: base.Registry.Agency, Signer: d.sign, Address: strings.TrimSuffix(m.CheckoutURL, "/")})
		if err != nil {
			return err
		}
		return do(d)
	})
}

func certificateOf() cli.Command {
	var of paperFlags
	return cli.Command{
		Use: "certificate BATCH", Short: "Write the approval certificate of a batch as PDF: what was approved, by whom, with which passkeys", JSON: "what was written", Keyed: true,
		Long: `Write the approval certificate of a batch that was approved, as PDF/A: reference, count, sum, accounts, digest, who approved it with which passkey, who released it, and its state now. It has no payee.

The batch is proven from Kafka first, as ` + "`quittance batches verify`" + ` does, and Postgres must show it so; otherwise there is no certificate. Names of people and of the agency are those of rows that are signed. The code on it is verified on the page /q.`,
		Missing: whichBatch, Examples: []string{"batches certificate BATCH --lang en --out certificate.pdf"},
		Flags: func(f *pflag.FlagSet, m *cli.Meta) { of.declare(f, m, "file to write; it must not exist") },
		Check: of.check,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			store, b, err := named(ctx, m)
			if err != nil {
				return err
			}
			return withPapers(ctx, m, store, b, func(d *desk) error {
				paper, err := d.Proven(money.Language(of.lang), d.proof, d.staff, m.Now)
				if errors.Is(err, document.ErrUnapproved) {
					return operation.Refuse("batch.not_approved", "batch", nil)
				}
				if err != nil {
					return err
				}
				if err := operation.Record(ctx, m.Pool, m.By, m.Now, operation.Entry{Action: "batch.certificate", Subject: b.ID, AgencyID: b.TenantID, Detail: map[string]any{"status": string(d.proof.Batch.Status)}}); err != nil {
					return err
				}
				if err := writeBytes(of.out, paper.PDF); err != nil {
					return err
				}
				return m.Show(render.Object{"file", of.out, "id", b.ID, "status", string(d.proof.Batch.Status), "digest", d.proof.Digest.String(), "token", paper.Token}, func(p *render.Page) {
					p.Say("%s certifies that %s, revision %d, was approved; it is %s. Digest %s", of.out, b.BatchRef, b.Revision, d.proof.Batch.Status, d.proof.Digest)
				})
			})
		},
	}
}

// writeBytes writes a new file that its owner alone reads. A file that was not written whole is removed.
func writeBytes(path string, content []byte) error {
	file, err := os.OpenFile(filepath.Clean(path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Close()); err != nil {
		err = errors.Join(err, os.Remove(file.Name()))
	}
	return err
}

// linesOf returns a batch of the agency of the person whose key is in the environment, if the person may see its lines.
func linesOf(ctx context.Context, m *cli.Meta) (*disbursements.Store, disbursements.Batch, error) {
	by, err := access.Person(ctx, m)
	if err != nil {
		return nil, disbursements.Batch{}, err
	}
	store, b, err := named(ctx, m)
	switch {
	case err != nil:
		return nil, b, err
	case b.TenantID != by.Staff.AgencyID || !by.Staff.May(identity.MaySeeLines):
		return nil, b, operation.Refuse("batch.lines_not_yours", "", nil)
	case b.SealedAt.IsZero():
		return nil, b, operation.Refuse("batch.not_sealed", "batch", nil)
	}
	return store, b, nil
}

func advicesOf() cli.Command {
	var of paperFlags
	var line string
	return cli.Command{
		Use: "advices BATCH", Short: "Write the payment advices of the paid lines of a batch as PDF, one a line, or that of one line", JSON: "what was written", Keyed: true,
		Long: `Write the payment advice of each line that is paid, or was paid and came back, as PDF/A: one file a line, since each goes to another payee, in folders of a thousand lines, with a list of all in index.csv and its signature in index.csv.jws. --line writes that of one line.

The batch is proven from Kafka first, as ` + "`quittance batches verify`" + ` does, and Postgres must show it so; a line that is not proven paid has no advice. A line whose content was erased, or about which the operator contradicts itself, is in the list without a file.

The files have names of payees. Only a person of the agency who prepares or approves batches may write them, and the audit table says who did. The folder is complete, or there is none.`,
		Missing: whichBatch, Examples: []string{"batches advices BATCH --out advices", "batches advices BATCH --line AGENT-001 --lang en --out advice.pdf"},
		Flags: func(f *pflag.FlagSet, m *cli.Meta) {
			of.declare(f, m, "folder to make, or with --line the file; it must not exist")
			f.StringVar(&line, "line", "", "only the line with this line_ref")
		},
		Check: of.check,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			store, b, err := linesOf(ctx, m)
			if err != nil {
				return err
			}
			return withPapers(ctx, m, store, b, func(d *desk) error {
				if line != "" {
					return d.one(ctx, m, of, line)
				}
				return d.all(ctx, m, of)
			})
		},
	}
}

// one writes the advice of a line.
func (d *desk) one(ctx context.Context, m *cli.Meta, of paperFlags, ref string) error {
	found, ok := d.proof.Find(ref)
	if !ok {
		return operation.Refuse("batch.line_unknown", "line", nil)
	}
	l, err := d.store.Line(ctx, d.lines, d.batch, found.Position)
	if err != nil {
		return err
	}
	paper, err := d.ProvenLine(money.Language(of.lang), d.proof, l, m.Now)
	switch {
	case errors.Is(err, document.ErrUnpaid):
		return operation.Refuse("batch.line_not_paid", "line", operation.Args{"status": statusText(found.Line)})
	case errors.Is(err, batchpapers.ErrErased):
		return operation.Refuse("batch.line_erased", "line", nil)
	case err != nil:
		return err
	}
	if err := d.record(ctx, m, map[string]any{"line": found.Position + 1}); err != nil {
		return err
	}
	if err := writeBytes(of.out, paper.PDF); err != nil {
		return err
	}
	return m.Show(render.Object{"file", of.out, "id", d.batch.ID, "position", found.Position, "line_ref", ref, "status", string(found.Status), "token", paper.Token}, func(p *render.Page) {
		p.Say("%s is the payment advice of line %d, %s, which is %s.", of.out, found.Position, ref, found.Status)
	})
}

// record adds the row of the audit table about read contents.
func (d *desk) record(ctx context.Context, m *cli.Meta, detail map[string]any) error {
	return operation.Record(ctx, m.Pool, m.By, m.Now, operation.Entry{Action: "batch.advice", Subject: d.batch.ID, AgencyID: d.batch.TenantID, Detail: detail})
}

const (
	// openedAtOnce is how many lines are in memory with their contents.
	openedAtOnce = 500
	// filesInFolder is how many lines have their files in one folder.
	filesInFolder = 1000
)

// all writes the advices of all paid lines into a new folder. What is not whole is removed.
func (d *desk) all(ctx context.Context, m *cli.Meta, of paperFlags) (err error) {
	totals := d.proof.Batch.Lines
	if totals.Paid.Count+totals.Returned.Count == 0 {
		return operation.Refuse("batch.nothing_paid", "batch", nil)
	}
	if _, err := os.Lstat(of.out); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("--out: %s exists; name a folder that does not", of.out)
	}
	if err := d.record(ctx, m, map[string]any{"lines": totals.Paid.Count + totals.Returned.Count}); err != nil {
		return err
	}
	part, err := os.MkdirTemp(filepath.Dir(filepath.Clean(of.out)), "."+filepath.Base(of.out)+"-*")
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(part))
		}
	}()
	w := &adviceWriter{desk: d, folder: part, lang: money.Language(of.lang), now: m.Now, total: totals.Paid.Count + totals.Returned.Count, progress: cli.Progress(m.Err)}
	for from := 0; from < d.proof.Lines; from += openedAtOnce {
		if err := w.write(ctx, from); err != nil {
			return err
		}
	}
	if err := w.index(m); err != nil {
		return err
	}
	if err := os.Rename(part, of.out); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return m.Show(render.Object{"folder", of.out, "id", d.batch.ID, "advices", w.made, "without", w.without}, func(p *render.Page) {
		p.Say("%s has %s of %s. They name payees: give each to its own.", of.out, render.Counted(w.made, "payment advice"), d.batch.ID)
		if w.without > 0 {
			p.Say("%s without one: index.csv says why.", render.Counted(w.without, "line"))
		}
	})
}

// adviceWriter writes advices of a batch into a folder.
type adviceWriter struct {
	*desk

	folder        string
	lang          money.Language
	now           time.Time
	total         int
	progress      func(done, total int)
	made, without int
	rows          [][]any
}

// write writes the advices of openedAtOnce lines from a position on.
func (w *adviceWriter) write(ctx context.Context, from int) error {
	list, err := w.store.Lines(ctx, w.batch.ID, disbursements.LineQuery{From: from, Size: openedAtOnce})
	if err != nil {
		return err
	}
	opened, err := disbursements.Open(ctx, w.lines, list)
	if err != nil {
		return err
	}
	for _, l := range opened {
		if err := w.line(l); err != nil {
			return fmt.Errorf("line %d: %w", l.Position, err)
		}
		w.progress(w.made+w.without, w.total)
	}
	return ctx.Err()
}

func (w *adviceWriter) line(l disbursements.OpenLine) error {
	proven, _ := w.proof.Outcome(l.Position)
	if proven.Status != disbursement.LinePaid && proven.Status != disbursement.LineReturned {
		return nil
	}
	paper, err := w.ProvenLine(w.lang, w.proof, l, w.now)
	row := []any{int64(l.Position), proven.Ref, string(proven.Status), "", "", ""}
	switch {
	case errors.Is(err, document.ErrUnpaid):
		row[5] = "the operator contradicts itself about the line: two people decide first"
	case errors.Is(err, batchpapers.ErrErased):
		row[5] = "the content of the line was erased, or cannot be opened"
	case err != nil:
		return err
	default:
		first := l.Position/filesInFolder*filesInFolder + 1
		folder := fmt.Sprintf("%06d-%06d", first, first+filesInFolder-1)
		if err := os.MkdirAll(filepath.Join(w.folder, folder), 0o700); err != nil {
			return err
		}
		row[3] = folder + "/" + paper.Name + ".pdf"
		sum := sha256.Sum256(paper.PDF)
		row[4] = hex.EncodeToString(sum[:])
		if err := writeBytes(filepath.Join(w.folder, folder, paper.Name+".pdf"), paper.PDF); err != nil {
			return err
		}
		w.made++
	}
	if row[5] != "" {
		w.without++
	}
	w.rows = append(w.rows, row)
	return nil
}

// index writes the list of the advices, and its signature.
func (w *adviceWriter) index(m *cli.Meta) error {
	t := report.Table{
		Name: "advices", Stamp: stampOf(m, "payment advices", w.proof, w.slug()), Rows: w.rows,
		Columns: []report.Column{{Name: "position", Number: true}, {Name: "line_ref"}, {Name: "status"}, {Name: "file"}, {Name: "sha256"}, {Name: "without"}},
	}
	var list bytes.Buffer
	if err := t.CSV(&list); err != nil {
		return err
	}
	return signedFile(filepath.Join(w.folder, "index.csv"), w.batch.Live, list.Bytes(), w.sign)
}

// slug is what the agency is called.
func (d *desk) slug() string { return d.Slug(d.batch.TenantID) }
