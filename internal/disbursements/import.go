package disbursements

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/internal/commands"
	"quittance/internal/disbursements/lines"
	"quittance/internal/personal"
	"quittance/money/localtime"
	"quittance/schemas"
)

// LabelIDs is of the MACs in the ids of batches (internal/secret).
const LabelIDs = "batch ids"

// longestLife is the longest time from the date of a batch to its end: the longest pay_within_days of a policy
// (disbursement/policy), and a day for the time zone.
const longestLife = (60 + 1) * 24 * time.Hour

// sealedAtOnce is how many data keys of lines are written at once.
const sealedAtOnce = 512

// Account is a payout account of an agency, as an import needs it.
type Account struct {
	lines.Account
	Fingerprint string
	// PerSecond is how many enquiries the operator takes, 1 to 200.
	PerSecond int
}

// Rules are those of a file that is paid in a currency from accounts.
func Rules(currency string, accounts []Account) lines.Rules {
	r := lines.Rules{Currency: currency}
	for _, a := range accounts {
		r.Accounts = append(r.Accounts, a.Account)
	}
	return r
}

// Asker sends commands to the processor of batches. *commands.Disbursement implements it.
type Asker interface {
	Ask(ctx context.Context, cmd disbursement.Command) (disbursement.Answer, error)
}

var _ Asker = (*commands.Disbursement)(nil)

// Importer makes batches of files, and of lines that ERPs have. All fields are required.
type Importer struct {
	Processor Asker
	Personal  *personal.Store
	// Batches and Payees are what an import compares a file with.
	Batches *Store
	Payees  *Payees
	// IDs makes the ids of batches; Partition returns the partition of an agency's commands.
	IDs       disbursement.IDs
	Partition func(topic, key string) int32
	// Accounts returns the payout accounts of an agency in a mode, and the revision of the registry that has them.
	Accounts func(tenantID string, live bool) ([]Account, int64)
	Now      func() time.Time
}

// Import is lines to be paid, of a file or of the agency's ERP, and the batch that they become.
type Import struct {
	TenantID string
	Live     bool
	BatchRef string
	Date     string // local date of the payment
	Currency string
	// Maker is the id of the person who prepares the batch.
	Maker string
	// Waiver says why the payees' names are not checked, where the policy demands it.
	Waiver string
	// Scope says among which lines a line_ref is unique; the agency when empty.
	Scope disbursement.Scope
	// Draft leaves the batch unsealed, for its maker to look at. It ends after seven days unless it is sealed. A batch stays a draft
	// also while operators are asked for the names of its payees.
	Draft bool
	// File and its Size are of a batch that a person gives.
	File io.ReaderAt
	Size int64
	// ERP has the lines in the place of a file, under BatchRef; nil for a file.
	ERP *ERP
}

// read reads the lines, and returns what names them. The id is empty if there are faults.
func (q Import) read(ctx context.Context, rules lines.Rules) (file *lines.File, id string, err error) {
	if q.ERP != nil {
		return q.ERP.Read(ctx, q.BatchRef, rules)
	}
	if file, err = lines.Read(q.File, q.Size, rules); err != nil || file.Refused() {
		return file, "", err
	}
	id, err = importOf(q.File, q.Size)
	return file, id, err
}

// Try reads the lines as Import does, and makes nothing. Errors are those of reading; faults are in the file.
func (i *Importer) Try(ctx context.Context, q Import) (*lines.File, error) {
	accounts, _ := i.Accounts(q.TenantID, q.Live)
	file, _, err := q.read(ctx, Rules(q.Currency, accounts))
	return file, err
}

func (q Import) source() disbursement.Source {
	if q.ERP != nil {
		return disbursement.SourceERP
	}
	return disbursement.SourceFile
}

// Imported is what became of a file.
type Imported struct {
	// Batch is the batch as sealed; of a draft it is that of its opening with the lines counted, so that its sequence is older.
	Batch disbursement.Batch
	// Draft says that the batch is not sealed.
	Draft bool
	// File is set also with ErrFile, for its faults.
	File *lines.File
	// Notes are what differs from earlier batches, and the warnings.
	Notes *Notes
}

// Errors of Import.
var (
	// ErrFile says that the file, or the ERP's answer, has faults: it is refused as a whole, and nothing was made.
	ErrFile = errors.New("the lines have faults")
	// ErrNoAccounts says that the agency has no payout account in the mode.
	ErrNoAccounts = errors.New("the agency has no payout account in this mode; the registry's block `payouts` names them")
)

// ErrMaybeSealed says that the processor has not answered whether the batch is sealed. If it is, people can approve it.
var ErrMaybeSealed = errors.New("the processor has not answered, and the batch may be sealed")

// RefusedError is the error of a command that the processor refuses.
type RefusedError struct {
	disbursement.Refusal
	// Row of the file and LineRef are those of the line that is refused; zero if it is none. A line of an ERP has no row.
	Row     int
	LineRef string
}

// Error returns the field, the mend and the code.
func (r *RefusedError) Error() string {
	if r.LineRef != "" {
		field := r.Field[strings.LastIndexByte(r.Field, '.')+1:]
		place := ""
		if r.Row > 0 {
			place = fmt.Sprintf("row %d, ", r.Row)
		}
		return fmt.Sprintf("%s%s of line %s: %s (%s)", place, field, r.LineRef, r.Mend, r.Code)
	}
	return fmt.Sprintf("%s: %s (%s)", r.Field, r.Mend, r.Code)
}

// Import reads all lines, opens and fills a batch, compares it with earlier ones and seals it, unless it is to stay a draft. After
// ErrFile, *ERPError and any other error of reading there was no batch and no key of a line. After any later one the batch is
// discarded; if that fails, too, it ends by itself after seven days, and meanwhile its batch_ref is taken. With ErrMaybeSealed it
// is left as it is. Errors of the processor are *RefusedError, or wrap commands.ErrUnavailable.
func (i *Importer) Import(ctx context.Context, q Import) (out Imported, err error) {
	accounts, registry := i.Accounts(q.TenantID, q.Live)
	if len(accounts) == 0 {
		return out, ErrNoAccounts
	}
	payouts := make([]disbursement.Payout, 0, len(accounts))
	for _, a := range accounts {
		payouts = append(payouts, disbursement.Payout{Code: a.Code, Fingerprint: a.Fingerprint, PerSecond: a.PerSecond})
	}
	var importID string
	if out.File, importID, err = q.read(ctx, Rules(q.Currency, accounts)); err != nil {
		return out, err
	}
	if out.File.Refused() {
		return out, ErrFile
	}
	sealed, err := lines.Seal(out.File.Lines, rand.Reader)
	if err != nil {
		return out, err
	}
	if q.Scope == "" {
		q.Scope = disbursement.ScopeAgency
	}
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	x := &importing{Importer: i, q: q, id: i.IDs.New(i.now(), i.Partition(schemas.Disbursement.Commands, q.TenantID), random), registry: registry}
	var refused *RefusedError
	opened, err := x.ask(ctx, disbursement.Open{
		BatchRef: q.BatchRef, Scope: q.Scope, Source: q.source(), Currency: q.Currency, Date: q.Date, Maker: q.Maker, ImportID: importID, Accounts: payouts,
	})
	if errors.As(err, &refused) {
		return out, err
	} else if err != nil {
		return out, errors.Join(err, x.discard(ctx)) // it may be opened
	}
	err = x.fill(ctx, importID, sealed, out.File.Lines)
	if err == nil {
		out.Notes, err = x.note(ctx, opened, out.File.Lines)
	}
	if err != nil {
		return out, errors.Join(err, x.discard(ctx))
	}
	names := out.Notes.Names
	if out.Draft = q.Draft || names != nil && names.Lines > 0; out.Draft {
		out.Batch = opened
		out.Batch.Count, out.Batch.Sum, out.Batch.Largest = len(sealed.Lines), sealed.Sum, sealed.Largest
		return out, nil
	}
	out.Batch, err = x.ask(ctx, disbursement.Seal{Count: len(sealed.Lines), Sum: sealed.Sum, Root: sealed.Root, Checked: names != nil, Waiver: q.Waiver})
	switch {
	case errors.As(err, &refused):
		return out, errors.Join(err, x.discard(ctx))
	case err != nil:
		return out, fmt.Errorf("%w: look at it with `quittance batches show %s`: %w", ErrMaybeSealed, x.id, err)
	}
	return out, nil
}

// importOf names a file by its bytes.
func importOf(file io.ReaderAt, size int64) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(file, 0, size)); err != nil {
		return "", fmt.Errorf("reading a file of lines: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// importing is an import under way.
type importing struct {
	*Importer
	q        Import
	id       string
	registry int64
}

func (i *Importer) now() time.Time { return i.Now().UTC().Truncate(time.Millisecond) }

// askedTimes is how often a command is sent while no reply comes. All commands of an import may be decided twice.
const askedTimes = 5

// ask sends a command about the batch.
func (x *importing) ask(ctx context.Context, do disbursement.Action) (disbursement.Batch, error) {
	var a disbursement.Answer
	var err error
	for range askedTimes {
		a, err = x.Processor.Ask(ctx, disbursement.Command{At: x.now(), TenantID: x.q.TenantID, Live: x.q.Live, Batch: x.id, Registry: x.registry, Do: do})
		if !errors.Is(err, commands.ErrUnavailable) || ctx.Err() != nil {
			break
		}
	}
	switch {
	case err != nil:
		return disbursement.Batch{}, err
	case a.Refusal != nil:
		return disbursement.Batch{}, &RefusedError{Refusal: *a.Refusal}
	case a.Batch == nil:
		return disbursement.Batch{}, nil
	}
	return *a.Batch, nil
}

// fill adds the lines.
func (x *importing) fill(ctx context.Context, importID string, sealed *lines.Sealed, of []lines.Line) error {
	contents, err := x.encrypt(ctx, sealed)
	if err != nil {
		return err
	}
	for chunk, err := range sealed.Chunks(func(position int, _ []byte) ([]byte, error) { return contents[position], nil }) {
		if err != nil {
			return err
		}
		if _, err := x.ask(ctx, disbursement.AddLines{ImportID: importID, Position: chunk.Position, Lines: chunk.Lines}); err != nil {
			return atLine(err, of[chunk.Position:], x.q.ERP == nil)
		}
	}
	return nil
}

// atLine names the line that a refusal is about, whose field begins with lines[0]. for the first of a command. Lines of a file
// have rows.
func atLine(err error, of []lines.Line, rows bool) error {
	var refused *RefusedError
	i := 0
	if !errors.As(err, &refused) {
		return err
	}
	if _, failed := fmt.Sscanf(refused.Field, "lines[%d].", &i); failed == nil && i >= 0 && i < len(of) {
		refused.LineRef = of[i].Content.LineRef
		if rows {
			refused.Row = of[i].Row
		}
	}
	return err
}

// encrypt seals the content of each line with a data key of its own.
func (x *importing) encrypt(ctx context.Context, sealed *lines.Sealed) ([][]byte, error) {
	begins, err := localtime.Begin(x.q.Date)
	if err != nil {
		return nil, fmt.Errorf("reading the date of a batch: %w", err)
	}
	out, endsBy := make([][]byte, len(sealed.Lines)), begins.Add(longestLife)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(sealedAtOnce)
	for position, l := range sealed.Lines {
		g.Go(func() error {
			content, err := lines.Content(l.Salt, l.Content)
			if err != nil {
				return err
			}
			out[position], err = x.Personal.SealLine(ctx, personal.LineID(x.id, position), json.RawMessage(content), payeeOf(l.Content), endsBy)
			return err
		})
	}
	return out, g.Wait()
}

// payeeOf is what a line is found by, to be erased.
func payeeOf(l digest.Line) personal.Payee {
	switch {
	case l.IBAN != "":
		return personal.Payee{Account: l.IBAN}
	case l.Number != "":
		return personal.Payee{Account: l.Number}
	}
	return personal.Payee{Phone: l.MSISDN}
}

// discardWithin bounds the discarding of a batch after a failed import.
const discardWithin = 10 * time.Second

// discard ends the batch of an import that failed, also one that was interrupted.
func (x *importing) discard(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardWithin)
	defer cancel()
	_, err := x.ask(ctx, disbursement.Discard{By: x.q.Maker})
	if refused := (*RefusedError)(nil); errors.As(err, &refused) && refused.Code == disbursement.CodeBatchUnknown {
		return nil // it was never opened
	}
	if err != nil {
		return fmt.Errorf("the draft %s of the import is left, and ends after seven days: %w", x.id, err)
	}
	return nil
}
