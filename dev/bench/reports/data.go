package reports

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"quittance/dev/bench/measure"
	"quittance/internal/clickhouse"
	"quittance/internal/journal"
)

const (
	// agencies of the installation. The first one has a fifth of all rows.
	agencies = 100
	// history is the time over which the rows are spread.
	history = 36 * 30 * 24 * time.Hour
	// chunk is how many rows are inserted at once.
	chunk = 1_000_000
	// again is the share of rows that are inserted twice, as by a replay: one in so many.
	again = 50
)

// newest is the time of the newest row. Row n is n steps older.
var newest = time.Date(2026, 11, 30, 22, 59, 59, 0, time.UTC)

// data is a database with rows.
type data struct {
	conn clickhouse.Conn
	pid  int // of the engine
	rows int // when all are made
	out  io.Writer
	log  *slog.Logger
}

func agency(n int) string { return fmt.Sprintf("018f0000-0000-7000-8000-%012d", n) }

// names stores the names of all agencies.
func (d *data) names(ctx context.Context) error {
	var names []journal.Name
	for n := range agencies {
		names = append(names,
			journal.Name{Kind: journal.NameAgency, ID: agency(n), TenantID: agency(n), Name: fmt.Sprintf("Agence %d", n)},
			journal.Name{Kind: journal.NameApplication, ID: agency(n), TenantID: agency(n), Name: "Guichet"})
	}
	_, err := journal.NewStore(d.conn).PutNames(ctx, names)
	return err
}

// fill makes the rows of the numbers from begin to end, inserts some of them again, and
// waits for the merges.
func (d *data) fill(ctx context.Context, begin, end int) error {
	for at := begin; at < end; at += chunk {
		n := min(chunk, end-at)
		for _, from := range []string{
			fmt.Sprintf("SELECT number FROM numbers(%d, %d)", at, n),
			fmt.Sprintf("SELECT number FROM numbers(%d, %d) WHERE number %% %d = 0", at, n, again),
		} {
			if err := d.conn.Exec(ctx, fmt.Sprintf(insert, from, newest.UnixMilli(), history.Milliseconds(), d.rows, agencies)); err != nil {
				return fmt.Errorf("making rows: %w", err)
			}
		}
		d.log.Info("rows made", slog.Int("rows", at+n), slog.Int("of", d.rows))
	}
	for {
		var merges uint64
		if err := d.conn.QueryRow(ctx, "SELECT count() FROM system.merges").Scan(&merges); err != nil {
			return fmt.Errorf("waiting for merges: %w", err)
		}
		if merges == 0 {
			return nil
		}
		if !measure.Pause(ctx, time.Second) {
			return ctx.Err()
		}
	}
}

// insert makes rows from numbers. Its arguments are the query of the numbers, the newest
// time, the history in milliseconds, the number of all rows, and the number of agencies.
// One movement in 20 is not "completed". The share of agency n falls with n.
const insert = `INSERT INTO receipt_rows
WITH
	number AS n,
	cityHash64(n) AS h, cityHash64(n, 1) AS h1, cityHash64(n, 2) AS h2,
	toUInt32(floor(%[5]d * pow(h / 18446744073709551616, 3))) AS a,
	concat('018f0000-0000-7000-8000-', leftPad(toString(a), 12, '0')) AS agency,
	fromUnixTimestamp64Milli(toInt64(%[2]d - floor(n * (%[3]d / %[4]d))), 'UTC') AS at,
	h1 %% 20 AS kind, h2 %% 10 AS way,
	(1 + h1 %% 200) * 500 AS due, intDiv(due * 15, 1000) AS fee, if(kind = 1, -1, 1) AS sign
SELECT
	reinterpretAsUUID(sipHash128(n)) AS row_id, ['late', 'reversal', 'orphan', 'mismatch', 'completed'][least(kind, 4) + 1] AS movement,
	at AS occurred_at, toDate(at, 'Africa/Brazzaville') AS local_date, toDate(at - 30, 'Africa/Brazzaville') AS approved_on,
	agency AS tenant_id, agency AS application_id, h2 %% 50 != 0 AS livemode,
	if(way < 2, concat('Guichet ', toString(h2 %% 5)), hex(sipHash64(agency, way < 7))) AS account,
	if(h %% 3 = 0, 'embedded', 'hosted') AS mode, multiIf(way < 2, 'CASH', way < 9, 'MOBILE_MONEY', 'CARD') AS channel,
	multiIf(way < 2, 'cash_agency', way < 7, 'momo', way < 9, 'momo_b', 'card') AS offer_id,
	concat('chs_', leftPad(lower(hex(intDiv(n, 1))), 12, '0'), lower(hex(h2))) AS session_id, concat('DOSSIER-', toString(n)) AS order_id,
	leftPad(toString(h1 %% 10000000000000000), 16, '0') AS payment_ref, toString(reinterpretAsUUID(sipHash128(n, 1))) AS collection_id,
	toString(h2 %% 100000000000) AS operator_ref, if(kind IN (2, 3), 0, 1) AS item, concat('DUE-', toString(n)) AS erp_due_ref,
	toString(reinterpretAsUUID(sipHash128(n, 2))) AS transaction_id, concat('AV2026', leftPad(toString(h2 %% 10000000000), 10, '0')) AS notice_ref,
	concat('service-', toString(h1 %% 30)) AS service_code, concat('Service numéro ', toString(h1 %% 30)) AS service_label,
	'XAF' AS currency, sign * if(kind IN (2, 3), due + fee, due) AS amount, sign * if(kind IN (2, 3), 0, fee) AS fee_amount, amount + fee_amount AS total_amount,
	if(kind = 1, 'refunded', '') AS reason, '' AS reference, if(kind < 4, concat('case_', lower(hex(h))), '') AS case_id, if(way < 2, 'c01', '') AS recorded_by
FROM (%[1]s)
SETTINGS max_threads = 2, max_insert_threads = 1, max_block_size = 65536, min_insert_block_size_rows = 500000`
