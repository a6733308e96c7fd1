package matching

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/dev/bench/installation"
	"quittance/internal/clickhouse"
	"quittance/internal/kafka"
)

// raw reads the rows of the day from ClickHouse and sorts them by their references, writes
// values to a topic of its own in one transaction, and reads them. It returns the time of all.
func raw(ctx context.Context, in *installation.Installation, conn clickhouse.Conn, values [][]byte) (time.Duration, error) {
	begun := time.Now()
	type row struct {
		id, operatorRef, paymentRef string
		at                          time.Time
		amount                      int64
	}
	for _, query := range []string{
		fmt.Sprintf("SELECT concat(toString(local_date), '/', toString(entry_id)), operator_ref, payment_ref, approved_at, gross FROM expected_money WHERE source_offset = %d", fresh),
		fmt.Sprintf("SELECT concat(toString(local_day), '/', line_id), operator_ref, payment_ref, at, amount FROM statement_lines WHERE source_offset = %d", fresh),
	} {
		var all []row
		rows, err := conn.Query(ctx, query)
		if err != nil {
			return 0, fmt.Errorf("reading rows: %w", err)
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var r row
			var at *time.Time
			if err := rows.Scan(&r.id, &r.operatorRef, &r.paymentRef, &at, &r.amount); err != nil {
				return 0, fmt.Errorf("reading rows: %w", err)
			}
			if at != nil {
				r.at = *at
			}
			all = append(all, r)
		}
		if err := rows.Err(); err != nil {
			return 0, fmt.Errorf("reading rows: %w", err)
		}
		slices.SortFunc(all, func(a, b row) int { return strings.Compare(a.operatorRef, b.operatorRef) })
	}
	read := time.Since(begun)
	took, err := echo(ctx, in, values)
	return read + took, err
}

// echo writes values to a topic in one transaction and reads them.
func echo(ctx context.Context, in *installation.Installation, values [][]byte) (time.Duration, error) {
	topic := in.Prefix + "raw"
	cl, err := in.KafkaConfig().Client(kgo.TransactionalID(topic), kgo.TransactionTimeout(5*time.Minute), kgo.RequiredAcks(kgo.AllISRAcks()))
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	if _, err := adm.CreateTopic(ctx, 1, 1, nil, topic); err != nil {
		return 0, fmt.Errorf("making a topic: %w", err)
	}
	begun := time.Now()
	if err := cl.BeginTransaction(); err != nil {
		return 0, fmt.Errorf("writing records: %w", err)
	}
	promise := kgo.AbortingFirstErrPromise(cl)
	for _, v := range values {
		cl.Produce(ctx, &kgo.Record{Topic: topic, Value: v}, promise.Promise())
	}
	if err := promise.Err(); err != nil {
		return 0, fmt.Errorf("writing records: %w", err)
	}
	if err := cl.EndTransaction(ctx, kgo.TryCommit); err != nil {
		return 0, fmt.Errorf("writing records: %w", err)
	}
	n := 0
	err = in.KafkaConfig().Read(ctx, topic, map[int32]kafka.Span{0: {To: int64(len(values)) + 1}}, nil, func(*kgo.Record) (bool, error) { n++; return true, nil })
	if err == nil && n != len(values) {
		err = fmt.Errorf("read %d of %d records", n, len(values))
	}
	took := time.Since(begun)
	if _, deleted := adm.DeleteTopic(ctx, topic); err == nil && deleted != nil {
		err = fmt.Errorf("deleting a topic: %w", deleted)
	}
	return took, err
}
