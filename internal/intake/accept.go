package intake

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/kafka"
	"quittance/internal/registry"
	"quittance/internal/statements"
	"quittance/schemas"
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

// writer is a Kafka client that holds the account's transactional id: no other import of the
// account can commit any more.
type writer struct {
	client    *kgo.Client
	topic     string
	partition int32
	key       []byte
	end       int64 // high watermark of the partition after fencing
}

// fence takes the account's transactional id. The broker aborts what another process has not
// committed, and refuses that process from then on.
func (i *attempt) fence(ctx context.Context) (*writer, error) {
	k := i.Account.StatementAccountKey
	key := k.AgencyID + "/" + registry.Mode(k.Live) + "/" + k.Code
	w := &writer{topic: i.cfg.Topology.Name(schemas.TopicStatements), partition: i.cfg.Topology.Partition(schemas.TopicStatements, key), key: []byte(key)}
	var err error
	w.client, err = i.cfg.Kafka.Client(
		kgo.TransactionalID(i.cfg.Kafka.Prefix+TransactionalIDs+k.AgencyID+"-"+registry.Mode(k.Live)+"-"+k.Code), kgo.TransactionTimeout(transactionTimeout),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RecordDeliveryTimeout(i.patience), kgo.ConcurrentTransactionsBackoff(20*time.Millisecond))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, i.patience)
	defer cancel()
	if _, _, err = w.client.ProducerID(ctx); err == nil {
		var ends map[int32]int64
		ends, err = kafka.Offsets(kadm.NewClient(w.client).ListEndOffsets(ctx, w.topic))
		w.end = ends[w.partition]
	}
	if err != nil {
		w.client.Close()
		return nil, fmt.Errorf("asking Kafka to begin: %w", err)
	}
	return w, nil
}

// unsettled is a pending import of the account.
type unsettled struct {
	id        uuid.UUID
	partition int32
	from      int64
	plan      plan
}

// pending returns the import whose outcome is unknown; nil if there is none.
func (i *attempt) pending(ctx context.Context, tx pgx.Tx) (*unsettled, error) {
	var u unsettled
	var text []byte
	err := tx.QueryRow(ctx, `SELECT id, partition, from_offset, plan FROM statement_imports WHERE (agency_id, live, code) = ($1, $2, $3) AND state = 'pending'`,
		i.account()...).Scan(&u.id, &u.partition, &u.from, &text)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // none is no error
	}
	if err != nil {
		return nil, fmt.Errorf("looking for a pending import: %w", err)
	}
	return &u, json.Unmarshal(text, &u.plan)
}

// settle completes an earlier import of the account, or removes it. Its process is fenced: its
// records are committed or never will be.
func (i *attempt) settle(ctx context.Context, tx pgx.Tx, w *writer, u *unsettled) error {
	committed := false
	reading, cancel := context.WithTimeout(ctx, i.patience)
	defer cancel()
	// Read waits for records below the end whose transaction, of another account, is open.
	err := i.cfg.Kafka.Read(reading, w.topic, map[int32]kafka.Span{u.partition: {From: u.from, To: w.end}}, nil, func(r *kgo.Record) (bool, error) {
		for _, h := range r.Headers {
			committed = committed || h.Key == headerImport && string(h.Value) == u.id.String()
		}
		return !committed, nil
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case reading.Err() != nil:
		return ErrUnsettled
	case err != nil:
		return err
	case committed:
		return i.finish(ctx, tx, u.id, u.plan)
	}
	if _, err := tx.Exec(ctx, `DELETE FROM statement_imports WHERE id = $1 AND state = 'pending'`, u.id); err != nil {
		return fmt.Errorf("removing an import that was interrupted: %w", err)
	}
	return nil
}

// accept writes the file to Kafka and then to the ledger.
func (i *attempt) accept(ctx context.Context, tx pgx.Tx, w *writer) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	p := i.planned()
	// The pending row commits before the Kafka transaction begins, on a connection of its own,
	// because tx holds the ledger until the end.
	if err := pgx.BeginFunc(ctx, i.cfg.Pool, func(tx pgx.Tx) error { return i.put(ctx, tx, id, "pending", p, w.partition, w.end) }); err != nil {
		return err
	}
	if err := i.after(stepPending); err != nil {
		return err
	}
	if err := i.produce(ctx, w, id); err != nil {
		if !errors.Is(err, errKilled) {
			err = errors.Join(err, i.abort(ctx, w, id))
		}
		return err
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), i.patience)
	defer cancel()
	if err := w.client.EndTransaction(ending, kgo.TryCommit); err != nil {
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

// abort ends the Kafka transaction without effect and removes the pending row. If it fails,
// the next import of the account does both.
func (i *attempt) abort(ctx context.Context, w *writer, id uuid.UUID) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), i.patience)
	defer cancel()
	if err := w.client.AbortBufferedRecords(ctx); err != nil {
		return err
	}
	if err := w.client.EndTransaction(ctx, kgo.TryAbort); err != nil {
		return fmt.Errorf("aborting: %w", err)
	}
	_, err := i.cfg.Pool.Exec(ctx, `DELETE FROM statement_imports WHERE id = $1 AND state = 'pending'`, id)
	return err
}

// finish makes a pending import accepted. It changes nothing if another process has done so. A file that was in quarantine
// leaves it: its row and its original are those of the accepted import now, also for those who asked to read it.
func (i *attempt) finish(ctx context.Context, tx pgx.Tx, id uuid.UUID, p plan) error {
	const inQuarantine = `FROM statement_imports q, statement_imports p WHERE p.id = $1 AND p.state = 'pending'
		AND (q.agency_id, q.live, q.code, q.digest) = (p.agency_id, p.live, p.code, p.digest) AND q.state IN ('quarantined', 'released')`
	for _, statement := range []string{
		`UPDATE statement_original_requests SET import_id = $1 WHERE import_id IN (SELECT q.id ` + inQuarantine + `)`,
		`DELETE FROM statement_imports WHERE id IN (SELECT q.id ` + inQuarantine + `)`,
	} {
		if _, err := tx.Exec(ctx, statement, id); err != nil {
			return fmt.Errorf("ending the quarantine: %w", err)
		}
	}
	changed, err := tx.Exec(ctx, `UPDATE statement_imports SET state = 'accepted' WHERE id = $1 AND state = 'pending'`, id)
	if err != nil {
		return fmt.Errorf("accepting the import: %w", err)
	}
	if changed.RowsAffected() == 0 {
		return ErrUnknown
	}
	for n, s := range p.Statements {
		if _, err := tx.Exec(ctx, `INSERT INTO statements (agency_id, live, code, import_id, position, statement_id, page, sequence, last, from_day, to_day, balanced, opening, closing, currency, lines, net, digest)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`,
			append(i.account(), id, n+1, s.ID, s.Page, s.Sequence, s.Last, s.From, s.To, s.Balanced, s.Opening, s.Closing, s.Currency, s.Lines, s.Net, s.Digest)...); err != nil {
			return fmt.Errorf("accepting a statement: %w", err)
		}
	}
	text, err := json.Marshal(ledgerMark{p.Mark, p.To})
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `UPDATE statement_ledgers SET mark = $4 WHERE (agency_id, live, code) = ($1, $2, $3)`, append(i.account(), text)...); err != nil {
		return fmt.Errorf("writing the ledger: %w", err)
	}
	return i.audit(ctx, tx, id, "accepted", p.Actor, p)
}

// produce writes the lines of the accepted statements and then these, in a transaction that
// it does not end.
func (i *attempt) produce(ctx context.Context, w *writer, id uuid.UUID) error {
	if err := w.client.BeginTransaction(); err != nil {
		return fmt.Errorf("beginning a Kafka transaction: %w", err)
	}
	first := kgo.AbortingFirstErrPromise(w.client)
	send := func(r record.Record) error {
		value, err := i.cfg.Codec.Encode(r)
		if err != nil {
			return err
		}
		w.client.Produce(ctx, &kgo.Record{
			Topic: w.topic, Partition: w.partition, Key: w.key, Value: value, Headers: []kgo.RecordHeader{schemas.Header(headerImport, id.String())},
		}, first.Promise())
		return ctx.Err()
	}
	if _, err := i.File.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("reading the file: %w", err)
	}
	lines := &counter{statements: i.out.Statements}
	file, err := statements.Read(i.File, i.reader, func(l *statements.Line) error {
		s := lines.next()
		if s == nil {
			return ErrFileChanged
		}
		if s.State != statements.VerdictAccepted {
			return nil
		}
		return send(i.line(l, s, id))
	})
	if err == nil && hex.EncodeToString(file.Digest[:]) != i.digest {
		err = ErrFileChanged
	}
	for n := range i.out.Statements {
		if s := &i.out.Statements[n]; err == nil && s.State == statements.VerdictAccepted {
			err = send(i.statement(s, id))
		}
	}
	if err != nil {
		return err
	}
	if err := w.client.Flush(ctx); err != nil {
		return err
	}
	if err := first.Err(); err != nil {
		return fmt.Errorf("writing to Kafka: %w", err)
	}
	return i.after(stepProduced)
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
		Page: int32(s.Page), Last: s.Last, FromDay: s.From, ToDay: s.To, Balanced: s.Balanced, Opening: s.Opening, Closing: s.Closing, Currency: s.Currency, //nolint:gosec // a page number
		Lines: int64(s.Lines), Net: s.Net, Digest: s.Digest, FileDigest: i.digest, Profile: i.file.Profile, ImportedAt: i.Now,
	}
}
