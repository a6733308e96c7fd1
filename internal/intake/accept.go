package intake

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quittance/internal/statements"
	"quittance/schemas/record"
)

// TransactionalIDs is the beginning of the transactional ids of imports, for the rights at the
// broker.
const TransactionalIDs = "statements-"

// headerImport is the header of each record with the id of its import.
const headerImport = "quittance-import"

const (
	// transactionTimeout is how long a file may take, and how long the transaction of a process
	// that died can hold back the readers of its partition.
	transactionTimeout = 15 * time.Minute
	// patience is how long the broker may take to answer in production.
	patience = 30 * time.Second
)

// ErrUnsettled says that the outcome of an earlier import is not known yet.
var ErrUnsettled = errors.New("the outcome of an earlier import is not known yet: another import that was interrupted holds the topic for up to 15 minutes; import the file again later")

// ErrUnknown says that the broker did not confirm the end of the import.
var ErrUnknown = errors.New("the broker did not confirm the import, which may be done: import the file again, which completes it or says that it is unchanged")

// ErrFileChanged says that the file was written to during its import.
var ErrFileChanged = errors.New("the file changed while it was read: import it again when its transfer is complete")

// accept writes the file to Kafka and then to the ledger.
func (i *attempt) accept(ctx context.Context, tx pgx.Tx, w *writer) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	p := i.planned()
	if i.lives, err = i.livesOf(ctx, tx); err != nil {
		return err
	}
	// The pending row commits before the Kafka transaction begins, on a connection of its own,
	// because tx holds the ledger until the end.
	if err := pgx.BeginFunc(ctx, i.cfg.Pool, func(tx pgx.Tx) error { return i.put(ctx, tx, id, "pending", p, w.partition, w.end) }); err != nil {
		return err
	}
	if err := i.after(stepPending); err != nil {
		return err
	}
	if err := i.write(ctx, w, id, func(send func(record.Record) error) error { return i.records(send, id) }); err != nil {
		if !errors.Is(err, errKilled) {
			err = errors.Join(err, i.abort(ctx, w, func(ctx context.Context, tx pgx.Tx) error { return removeImport(ctx, tx, id) }))
		}
		return err
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), i.patience)
	defer cancel()
	if err := i.commit(ending, w); err != nil {
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	if err := i.after(stepCommitted); err != nil {
		return err
	}
	if err := i.finish(ending, tx, id, p); err != nil {
		return err
	}
	i.out.ImportID = id.String()
	return tx.Commit(ending)
}

// records gives the lines of the accepted statements and then these to send.
func (i *attempt) records(send func(record.Record) error, id uuid.UUID) error {
	if _, err := i.File.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("reading the file: %w", err)
	}
	lines := &counter{statements: i.out.Statements}
	file, err := statements.Read(i.File, i.reader, func(l *statements.Line) (err error) {
		s := lines.next()
		if s == nil {
			return ErrFileChanged
		}
		if s.State != statements.VerdictAccepted {
			return nil
		}
		r := i.line(l, s, id)
		if r.Life, err = i.lifeOf(r); err != nil {
			return err
		}
		return send(r)
	})
	if err == nil && hex.EncodeToString(file.Digest[:]) != i.digest {
		err = ErrFileChanged
	}
	for n := range i.out.Statements {
		if s := &i.out.Statements[n]; err == nil && s.State == statements.VerdictAccepted {
			err = send(i.statement(s, id))
		}
	}
	return err
}

// counter tells to which statement each line of the file belongs.
type counter struct {
	statements []Statement
	at, taken  int
}

func (c *counter) next() *Statement {
	for c.at < len(c.statements) && c.taken == c.statements[c.at].Lines {
		c.at, c.taken = c.at+1, 0
	}
	if c.at == len(c.statements) {
		return nil
	}
	c.taken++
	return &c.statements[c.at]
}

func (i *attempt) line(l *statements.Line, s *Statement, id uuid.UUID) *record.StatementLine {
	lineID := l.ID
	if !s.Scoped {
		lineID = l.Unscoped()
	}
	if s.Nth > 1 { // no id of a bank has the character "|"
		lineID = l.Account + "/|" + strconv.Itoa(s.Nth) + "|" + strings.TrimPrefix(lineID, l.Account+"/")
	}
	return &record.StatementLine{
		ImportID: id.String(), TenantID: i.Account.AgencyID, Livemode: i.Account.Live, Account: i.Account.Code, StatementID: s.ID, LineID: lineID, Number: int64(l.Number),
		Occurrence: int32(l.Occurrence), SourceLine: int32(l.Source.Line), SourceColumn: int32(l.Source.Column), //nolint:gosec // at most MaxLines rows of at most a mebibyte
		Kind: string(l.Kind), At: l.At, Day: l.Day, Currency: l.Currency, Amount: l.Amount, Fee: l.Fee, Reversal: l.Reversal,
		OperatorRef: l.OperatorRef, PaymentRef: l.PaymentRef, NoticeRef: l.NoticeRef, Batch: l.Batch, DetailsUnused: int32(l.DetailsUnused), ImportedAt: i.Now, //nolint:gosec // bounded by the size of an entry
	}
}

func (i *attempt) statement(s *Statement, id uuid.UUID) *record.Statement {
	return &record.Statement{
		ImportID: id.String(), TenantID: i.Account.AgencyID, Livemode: i.Account.Live, Account: i.Account.Code, StatementID: s.ID, Sequence: s.Sequence,
		Page: int32(s.Page), Last: s.Last, FromDay: s.From, ToDay: s.To, UndecidedFrom: s.Undecided, Balanced: s.Balanced, Opening: s.Opening, Closing: s.Closing, Currency: s.Currency, //nolint:gosec // a page number
		Lines: int64(s.Lines), Net: s.Net, Digest: s.Digest, FileDigest: i.digest, Profile: i.file.Profile, ImportedAt: i.Now,
	}
}
