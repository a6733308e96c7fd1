package matching

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/dev/bench/installation"
	"quittance/dev/bench/measure"
	"quittance/internal/clickhouse"
	"quittance/internal/journal"
	"quittance/internal/kafka"
	"quittance/schemas"
)

// The account of the benchmark is that of an agency's counters: it needs no connector.
const (
	agencyID    = "018f0000-0000-7000-8001-000000000000"
	accountCode = "guichets"
	counter     = "Guichet 1"

	registryFile = `agencies:
  - id: ` + agencyID + `
    slug: bench
    name: Benchmark
    services:
      - {id: 018f0000-0000-7000-8002-000000000000, code: patente, label: "Contribution de la patente"}
    accounts:
      test:
        - {code: ` + accountCode + `, kind: cash, profile: cash-slip}
`
)

const (
	// fresh is the offset of the rows of the day that is matched. Rows of the day d of the history
	// have the offset d: the matcher compares offsets and nothing else of a record.
	fresh = 1000
	// chunk is how many rows are inserted at once.
	chunk = 1_000_000
	// bare is the share of lines without references: one in so many.
	bare = 100
	// again is the share of the lines that name a payment a second time: one in so many. Those of the day
	// name payments of the last days of the history (Config.Reach), and people have explained those of the
	// history.
	again = 1000
	// unclear is the share of the payments of the history that were undecided at first: one in so many.
	unclear = 100
	// stuck is how many payments of the history are undecided to this day.
	stuck = 50
)

// inputs are the topics whose ends a run waits for.
var inputs = []string{schemas.TopicEvents, schemas.TopicCases, schemas.TopicStatements, schemas.TopicReconciliation}

// data makes the rows of a scenario.
type data struct {
	conn  clickhouse.Conn
	today time.Time // midnight UTC of the account's local day
	reach int       // Config.Reach
}

// rows are the columns from which all rows are made: the number n, its day, its offset and its
// references. The references have no order in time, which is the worst case for indexes: the
// factors have no divisor in common with the powers of ten, so each reference occurs once. names is the
// number of the payment that a line names: its own, or one of the history.
const rows = `
	SELECT number AS n, toDate('%[1]s') - %[2]d + least(intDiv(number, %[3]d), %[2]d) AS day, least(intDiv(number, %[3]d), %[2]d) AS d,
		d = %[2]d AS is_today, if(is_today, %[4]d, d) AS offset,
		leftPad(toString(n * 38196601127 %% 100000000000), 11, '0') AS operator_ref, leftPad(toString(n * 94906265621 %% 10000000000000000), 16, '0') AS payment_ref,
		is_today AND n %% %[5]d = 0 AS bare,
		if(is_today AND n %% %[8]d = 1, %[9]d - 1 - n * 7919 %% %[10]d, n) AS names, leftPad(toString(names * 38196601127 %% 100000000000), 11, '0') AS line_ref,
		(1 + n %% 20) * 500 AS amount, toDateTime64(toDateTime(day, 'Africa/Brazzaville') + n %% 86400, 3, 'UTC') AS at,
		reinterpretAsUUID(sipHash128(n)) AS entry, concat('` + accountCode + `/', operator_ref) AS line, cityHash64(n) AS content
	FROM numbers(%[6]d, %[7]d)`

// The tables of a scenario.
const (
	insertExpected = `INSERT INTO expected_money (entry_id, kind, state, approved_at, local_date, occurred_at, tenant_id, application_id, livemode, channel, offer_id, account,
			session_id, order_id, collection_id, operator_ref, payment_ref, currency, gross, fee, source_topic, source_partition, source_offset, version)
		SELECT entry, 'received', 'completed', at, day, at, '` + agencyID + `', 'app', false, 'CASH', 'cash_agency', '` + counter + `',
			concat('chs_', toString(n)), concat('DOSSIER-', toString(n)), toString(reinterpretAsUUID(sipHash128(n, 1))), operator_ref, payment_ref, 'XAF', amount, 0, '` + schemas.TopicEvents + `', %[2]d, offset, 1
		FROM (%[1]s)` + settings
	insertLines = `INSERT INTO statement_lines (line_id, content, local_day, at, tenant_id, livemode, account, statement_id, import_id, imported_at, number, occurrence, source_line, source_column,
			kind, currency, amount, fee_amount, net_amount, reversal, operator_ref, payment_ref, source_partition, source_offset, version)
		SELECT line, content, day, at, '` + agencyID + `', false, '` + accountCode + `', toString(day), toString(day), at, n, 1, 1, 1,
			'payment', 'XAF', amount, 0, amount, false, if(bare, '', line_ref), if(bare OR names != n, '', payment_ref), %[2]d, offset, 1
		FROM (%[1]s)` + settings
	// insertUnclear makes the entries of payments that were undecided, and withdraws all but those that are.
	insertUnclear = `INSERT INTO expected_money (entry_id, withdrawn, kind, state, approved_at, local_date, occurred_at, tenant_id, application_id, livemode, channel, offer_id, account,
			session_id, order_id, collection_id, operator_ref, payment_ref, currency, gross, fee, reason, source_topic, source_partition, source_offset, version)
		SELECT reinterpretAsUUID(sipHash128(n, 2)), withdrawn, 'undecided', 'undecided', at, day, at, '` + agencyID + `', 'app', false, 'CASH', 'cash_agency', '` + counter + `',
			concat('chs_u', toString(n)), concat('DOSSIER-U', toString(n)), toString(reinterpretAsUUID(sipHash128(n, 3))), '', concat('U', payment_ref), 'XAF', if(withdrawn, -amount, amount), 0, if(withdrawn, 'decided', ''), '` + schemas.TopicEvents + `', %[2]d, offset, 1
		FROM (%[1]s) ARRAY JOIN [false, true] AS withdrawn WHERE NOT is_today AND n %% %[3]d = 0 AND NOT (withdrawn AND n %% %[4]d = 0)` + settings
	// insertAgain makes lines of the history that name a payment a second time, insertBreaks their breaks, and
	// insertCases the cases in which people have explained these.
	insertAgain = `INSERT INTO statement_lines (line_id, content, local_day, at, tenant_id, livemode, account, statement_id, import_id, imported_at, number, occurrence, source_line, source_column,
			kind, currency, amount, fee_amount, net_amount, reversal, operator_ref, payment_ref, source_partition, source_offset, version)
		SELECT concat(line, '~2'), content, day, at, '` + agencyID + `', false, '` + accountCode + `', toString(day), toString(day), at, n, 2, 1, 1,
			'payment', 'XAF', amount, 0, amount, false, operator_ref, payment_ref, %[2]d, offset, 1
		FROM (%[1]s) WHERE NOT is_today AND n %% %[5]d = 1` + settings
	insertBreaks = `INSERT INTO breaks (finding_id, state, type, hop, stage, kind, reason, action, key, day, tenant_id, livemode, account, currency, amount, lines, part, parts, rule, run_id, case_id, resolution, at, source_partition, source_offset)
		SELECT concat('brk_', lower(hex(sipHash128(n)))), if(ended, 'resolved', 'open'), 'break', 'receipt', 'operator_ref', 'duplicate_line', 'the line repeats another one', 'explain', operator_ref, day, '` + agencyID + `', false,
			'` + accountCode + `', 'XAF', amount, [concat(toString(day), '/', line, '~2#', replaceRegexpOne(lower(hex(content)), '^0', ''))], 1, 1, 1, toString(day), concat('case_', toString(n)), if(ended, 'explain', ''), at, %[2]d, offset + ended
		FROM (%[1]s) ARRAY JOIN [false, true] AS ended WHERE NOT is_today AND n %% %[5]d = 1` + settings
	insertCases = `INSERT INTO case_rows (case_id, entry_id, occurred_at, event, tenant_id, application_id, livemode, session_id, order_id, operator_ref, currency, total_amount, detail)
		SELECT concat('case_', toString(n)), concat(event, toString(n)), at, event, '` + agencyID + `', '', false, '', '', '', 'XAF', amount, map('case_kind', 'break', 'resolution', 'explain', 'by', 'bench')
		FROM (%[1]s) ARRAY JOIN ['case.opened', 'case.resolved'] AS event WHERE NOT is_today AND n %% %[5]d = 1` + settings
	// insertMatches makes the matches of the history with the ids that package match gives them.
	insertMatches = `INSERT INTO matches (finding_id, state, type, hop, stage, key, day, tenant_id, livemode, account, currency, amount, sources, lines, part, parts, rule, run_id, at, source_partition, source_offset)
		WITH [concat(toString(day), '/', toString(entry)), concat(toString(day), '/', line, '#', replaceRegexpOne(lower(hex(content)), '^0', ''))] AS ids,
			arrayStringConcat(arrayMap(t -> concat(char(length(t)), t), arraySort(ids))) AS texts
		SELECT concat('mat_', lower(hex(substring(SHA256(concat(char(2), texts)), 1, 16)))), 'open', 'match', 'receipt', 'operator_ref', operator_ref, day, '` + agencyID + `', false,
			'` + accountCode + `', 'XAF', amount, [ids[1]], [ids[2]], 1, 1, 1, toString(day), at, %[2]d, offset
		FROM (%[1]s) WHERE NOT is_today` + settings
	settings = ` SETTINGS max_threads = 2, max_insert_threads = 1, max_block_size = 65536, min_insert_block_size_rows = 500000`
)

// fill makes a history of days with daily rows each, all matched or explained, and lines of today, which
// are not, and waits for the merges.
func (d *data) fill(ctx context.Context, topology *kafka.Topology, s day) error {
	if s.days > fresh {
		return fmt.Errorf("a history has at most %d days", fresh)
	}
	key := agencyID + "/test/" + accountCode
	history := s.days * s.daily
	for at := 0; at < history+s.lines; at += chunk {
		n := min(chunk, history+s.lines-at)
		from := fmt.Sprintf(rows, d.today.Format(time.DateOnly), s.days, s.daily, fresh, bare, at, n, again, max(1, history), max(1, min(s.days, d.reach)*s.daily))
		for _, table := range []struct {
			insert    string
			partition int32
		}{
			{insertExpected, topology.Partition(schemas.TopicEvents, agencyID)},
			{insertLines, topology.Partition(schemas.TopicStatements, key)},
			{insertUnclear, topology.Partition(schemas.TopicEvents, agencyID)},
			{insertAgain, topology.Partition(schemas.TopicStatements, key)},
			{insertBreaks, topology.Partition(schemas.TopicReconciliation, key)},
			{insertCases, 0},
			{insertMatches, topology.Partition(schemas.TopicReconciliation, key)},
		} {
			if err := d.conn.Exec(ctx, fmt.Sprintf(table.insert, from, table.partition, unclear, unclear*max(1, history/unclear/stuck), again)); err != nil {
				return fmt.Errorf("making rows: %w", err)
			}
		}
	}
	for {
		var merges uint64
		if err := d.conn.QueryRow(ctx, "SELECT count() FROM system.merges").Scan(&merges); err != nil {
			return fmt.Errorf("waiting for merges: %w", err)
		}
		if merges == 0 {
			break
		}
		if !measure.Pause(ctx, time.Second) {
			return ctx.Err()
		}
	}
	return d.ran(ctx, topology, topology.Partition(schemas.TopicReconciliation, key))
}

// ran stores the run of yesterday, after which the rows of today are new. A payment of the day
// before was the last one to wait for its line.
func (d *data) ran(ctx context.Context, topology *kafka.Topology, partition int32) error {
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("making an id: %w", err)
	}
	run := journal.MatchRun{
		ID: id.String(), TenantID: agencyID, Account: accountCode, Today: d.today.AddDate(0, 0, -1), Horizon: d.today.AddDate(0, 0, -2), Rule: 1, At: d.today,
		Watermarks: map[string]int64{}, SourcePartition: partition, SourceOffset: fresh - 1,
	}
	for _, topic := range inputs {
		for p := range topology.Count(topic) {
			run.Watermarks[fmt.Sprintf("%s/%d", topic, p)] = fresh
		}
	}
	return journal.NewStore(d.conn).Insert(ctx, &run)
}

// advance makes the topics as long as the rows say, longer than they were, and says that the database has all of
// them: the matcher waits for nobody and sees a new statement.
func advance(ctx context.Context, in *installation.Installation, conn clickhouse.Conn) error {
	cl, err := in.KafkaConfig().Client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	var positions []journal.Position
	for _, topic := range inputs {
		name := in.Topology.Name(topic)
		bounds, err := kafka.Bounds(ctx, adm, name)
		if err != nil {
			return err
		}
		var records []*kgo.Record
		for p, span := range bounds {
			end := max(span.To, fresh) + 1
			for range end - span.To {
				records = append(records, &kgo.Record{Topic: name, Partition: p, Value: []byte("bench")})
			}
			positions = append(positions, journal.Position{Topic: name, Partition: p, Position: end, Goal: end})
		}
		if err := cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
			return fmt.Errorf("making records: %w", err)
		}
	}
	return journal.NewStore(conn).SetPositions(ctx, positions...)
}
