package intake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/kafka"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/schemas"
	"quittance/schemas/record"
)

// ledger is what an import and a withdrawal have in common: the ledger of an account, which one of them holds at a
// time, and the account's transactional id.
type ledger struct {
	*Store
	key registry.StatementAccountKey
	now time.Time
}

func (s *Store) ledgerOf(key registry.StatementAccountKey, now time.Time) ledger {
	return ledger{Store: s, key: key, now: now}
}

func (l *ledger) account() []any {
	k := l.key
	return []any{k.AgencyID, k.Live, k.Code}
}

// lock locks the account and returns its last accepted statement.
func (l *ledger) lock(ctx context.Context, tx pgx.Tx) (last ledgerMark, err error) {
	// While the transaction holds the ledger it waits for Kafka, and for files that are read.
	if _, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL idle_in_transaction_session_timeout = %d", transactionTimeout.Milliseconds())); err != nil {
		return last, fmt.Errorf("opening the ledger: %w", err)
	}
	if _, err := tx.Exec(ctx, `INSERT INTO statement_ledgers (agency_id, live, code) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, l.account()...); err != nil {
		return last, fmt.Errorf("opening the ledger: %w", err)
	}
	var text []byte
	if err := tx.QueryRow(ctx, `SELECT mark FROM statement_ledgers WHERE (agency_id, live, code) = ($1, $2, $3) FOR UPDATE`, l.account()...).Scan(&text); err != nil {
		return last, fmt.Errorf("locking the ledger: %w", err)
	}
	if text != nil {
		err = json.Unmarshal(text, &last)
	}
	return last, err
}

// writer is a Kafka client that holds the account's transactional id: no other import of the
// account can commit any more.
type writer struct {
	client    *kgo.Client
	topic     string
	partition int32
	key       []byte
	end       int64 // high watermark of the partition after fencing
	last      *kgo.Record
}

// fence takes the account's transactional id. The broker aborts what another process has not
// committed, and refuses that process from then on.
func (l *ledger) fence(ctx context.Context) (*writer, error) {
	k := l.key
	key := k.AgencyID + "/" + registry.Mode(k.Live) + "/" + k.Code
	w := &writer{topic: l.cfg.Topology.Name(schemas.TopicStatements), partition: l.cfg.Topology.Partition(schemas.TopicStatements, key), key: []byte(key)}
	var err error
	w.client, err = l.cfg.Kafka.Client(
		kgo.TransactionalID(l.cfg.Kafka.Prefix+TransactionalIDs+k.AgencyID+"-"+registry.Mode(k.Live)+"-"+k.Code), kgo.TransactionTimeout(transactionTimeout),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RecordDeliveryTimeout(l.patience), kgo.ConcurrentTransactionsBackoff(20*time.Millisecond))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, l.patience)
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

// unsettled is a pending import of the account, or an approved withdrawal.
type unsettled struct {
	id        uuid.UUID
	partition int32
	from      int64
	plan      plan
	withdraws bool
}

// pending returns the import or the withdrawal whose outcome is unknown; nil if there is none.
func (l *ledger) pending(ctx context.Context, tx pgx.Tx) (*unsettled, error) {
	var u unsettled
	var text []byte
	err := tx.QueryRow(ctx, `SELECT id, partition, from_offset, plan, false FROM statement_imports WHERE (agency_id, live, code) = ($1, $2, $3) AND state = 'pending'
		UNION ALL SELECT w.id, w.partition, w.from_offset, '{}', true FROM statement_withdrawals w JOIN statement_imports i ON i.id = w.import_id
			WHERE (i.agency_id, i.live, i.code) = ($1, $2, $3) AND w.state = 'approved' LIMIT 1`,
		l.account()...).Scan(&u.id, &u.partition, &u.from, &text, &u.withdraws)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // none is no error
	}
	if err != nil {
		return nil, fmt.Errorf("looking for a pending import: %w", err)
	}
	return &u, json.Unmarshal(text, &u.plan)
}

// settle completes an earlier import or withdrawal of the account, or undoes it. Its process is fenced: its
// records are committed or never will be.
func (l *ledger) settle(ctx context.Context, tx pgx.Tx, w *writer, u *unsettled) error {
	committed := false
	reading, cancel := context.WithTimeout(ctx, l.patience)
	defer cancel()
	// Read waits for records below the end whose transaction, of another account, is open.
	err := l.cfg.Kafka.Read(reading, w.topic, map[int32]kafka.Span{u.partition: {From: u.from, To: w.end}}, nil, func(r *kgo.Record) (bool, error) {
		committed = hasImport(r, u.id.String())
		return !committed, nil
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case reading.Err() != nil:
		return ErrUnsettled
	case err != nil:
		return err
	case committed && u.withdraws:
		return l.finishWithdrawal(ctx, tx, w, u)
	case committed:
		return l.finish(ctx, tx, u.id, u.plan)
	case u.withdraws:
		return undoWithdrawal(ctx, tx, u.id)
	}
	return removeImport(ctx, tx, u.id)
}

// removeImport removes a pending import that has no records.
func removeImport(ctx context.Context, tx pgx.Tx, id uuid.UUID) error {
	if _, err := tx.Exec(ctx, `DELETE FROM statement_imports WHERE id = $1 AND state = 'pending'`, id); err != nil {
		return fmt.Errorf("removing an import that was interrupted: %w", err)
	}
	return nil
}

// finish makes a pending import accepted. It changes nothing if another process has done so. A file that was in quarantine
// leaves it: its row and its original are those of the accepted import now, also for those who asked to read it.
func (l *ledger) finish(ctx context.Context, tx pgx.Tx, id uuid.UUID, p plan) error {
	const inQuarantine = `FROM statement_imports q, statement_imports p WHERE p.id = $1 AND p.state = 'pending'
		AND (q.agency_id, q.live, q.code, q.digest) = (p.agency_id, p.live, p.code, p.digest) AND q.state IN ('quarantined', 'released')`
	for _, statement := range []string{
		`UPDATE statement_original_requests SET import_id = $1, reading = NULL WHERE import_id IN (SELECT q.id ` + inQuarantine + `)`,
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
			append(l.account(), id, n+1, s.ID, s.Page, s.Sequence, s.Last, s.From, s.To, s.Balanced, s.Opening, s.Closing, s.Currency, s.Lines, s.Net, s.Digest)...); err != nil {
			return fmt.Errorf("accepting a statement: %w", err)
		}
	}
	text, err := json.Marshal(ledgerMark{p.Mark, p.To})
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `UPDATE statement_ledgers SET mark = $4 WHERE (agency_id, live, code) = ($1, $2, $3)`, append(l.account(), text)...); err != nil {
		return fmt.Errorf("writing the ledger: %w", err)
	}
	return l.audit(ctx, tx, id, "accepted", p.Actor, p)
}

func (l *ledger) audit(ctx context.Context, tx pgx.Tx, id uuid.UUID, state string, actor operation.Actor, p plan) error {
	ids := map[string]bool{}
	for _, s := range p.Statements {
		ids[s.ID] = true
	}
	return operation.Record(ctx, tx, actor, l.now, operation.Entry{Action: "statements.import", Subject: id.String(), AgencyID: l.key.AgencyID, Detail: map[string]any{
		"agency_id": l.key.AgencyID, "mode": registry.Mode(l.key.Live), "account": l.key.Code, "state": state, "statements": slices.Sorted(maps.Keys(ids)),
	}})
}

// write writes records in a Kafka transaction that it does not end, with the id of the import or the withdrawal in
// a header of each.
func (l *ledger) write(ctx context.Context, w *writer, id uuid.UUID, records func(send func(record.Record) error) error) error {
	if err := w.client.BeginTransaction(); err != nil {
		return fmt.Errorf("beginning a Kafka transaction: %w", err)
	}
	first := kgo.AbortingFirstErrPromise(w.client)
	if err := records(func(r record.Record) error {
		value, err := l.cfg.Codec.Encode(r)
		if err != nil {
			return err
		}
		w.last = &kgo.Record{Topic: w.topic, Partition: w.partition, Key: w.key, Value: value, Headers: []kgo.RecordHeader{schemas.Header(headerImport, id.String())}}
		w.client.Produce(ctx, w.last, first.Promise())
		return ctx.Err()
	}); err != nil {
		return err
	}
	if err := w.client.Flush(ctx); err != nil {
		return err
	}
	if err := first.Err(); err != nil {
		return fmt.Errorf("writing to Kafka: %w", err)
	}
	return l.after(stepProduced)
}

// errNotWritten says that Kafka has confirmed a transaction and does not have its records.
var errNotWritten = errors.New("the broker has confirmed the end of the transaction, but its records are not there")

// commit ends the Kafka transaction, and looks whether its last record is there: a file whose lines are lost must not be accepted. While
// the transaction of another account in the partition is open nobody can see that, and the broker's word counts.
func (l *ledger) commit(ctx context.Context, w *writer) error {
	if err := w.client.EndTransaction(ctx, kgo.TryCommit); err != nil || w.last == nil {
		return err
	}
	reading, cancel := context.WithTimeout(ctx, l.patience/6)
	defer cancel()
	found := false
	err := l.cfg.Kafka.Read(reading, w.topic, map[int32]kafka.Span{w.partition: {From: w.last.Offset, To: w.last.Offset + 1}}, nil, func(*kgo.Record) (bool, error) {
		found = true
		return false, nil
	})
	if err == nil && !found {
		return errNotWritten
	}
	return nil
}

// abort ends the Kafka transaction without effect, and then undoes what was stored before it. If it fails, the next
// import or withdrawal of the account does both.
func (l *ledger) abort(ctx context.Context, w *writer, undo func(context.Context, pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.patience)
	defer cancel()
	if err := w.client.AbortBufferedRecords(ctx); err != nil {
		return err
	}
	if err := w.client.EndTransaction(ctx, kgo.TryAbort); err != nil {
		return fmt.Errorf("aborting: %w", err)
	}
	return pgx.BeginFunc(ctx, l.cfg.Pool, func(tx pgx.Tx) error { return undo(ctx, tx) })
}
