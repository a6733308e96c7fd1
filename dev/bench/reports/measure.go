package reports

import (
	"context"
	"fmt"
	"slices"
	"time"

	"quittance/dev/bench/measure"
)

// turns is how often each report is measured, each time for another day, month or payment,
// so that nothing is read from a cache of results. Medians are printed.
const turns = 3

// The reports. Each is what the documentation shows.
const (
	dayReport = `SELECT service, movement, currency, count(), sum(amount), sum(fee_amount), sum(total_amount) FROM receipts
		WHERE livemode AND tenant_id = ? AND local_date = ? GROUP BY service, movement, currency ORDER BY ALL`
	monthReport = `SELECT local_date, service, currency, count(), sum(amount), sum(fee_amount), sum(total_amount) FROM receipts
		WHERE livemode AND tenant_id = ? AND toStartOfMonth(local_date) = ? GROUP BY local_date, service, currency ORDER BY ALL`
	allReport = `SELECT agency, channel, currency, count(), sum(amount), sum(fee_amount), sum(total_amount) FROM receipts
		WHERE livemode AND toStartOfMonth(local_date) = ? GROUP BY agency, channel, currency ORDER BY ALL`
)

// references are the columns by which a payment is looked up.
var references = []string{"session_id", "order_id", "payment_ref", "operator_ref"}

// measure measures each report.
func (d *data) measure(ctx context.Context) (r result, err error) {
	if err := d.warm(ctx); err != nil {
		return r, err
	}
	var days, months, all []time.Duration
	for turn := range turns {
		month := time.Date(2026, time.November-time.Month(turn), 1, 0, 0, 0, 0, time.UTC)
		for _, report := range []struct {
			to    *[]time.Duration
			query string
			args  []any
		}{
			{&days, dayReport, []any{agency(0), month.AddDate(0, 0, 10).Format(time.DateOnly)}},
			{&months, monthReport, []any{agency(0), month.Format(time.DateOnly)}},
			{&all, allReport, []any{month.Format(time.DateOnly)}},
		} {
			took, rows, err := d.time(ctx, report.query, report.args...)
			if err != nil {
				return r, err
			}
			if rows == 0 {
				return r, fmt.Errorf("no rows in %s", month.Format("January 2006"))
			}
			*report.to = append(*report.to, took)
		}
	}
	r.day, r.month, r.all = measure.Percentile(days, 0.5), measure.Percentile(months, 0.5), measure.Percentile(all, 0.5)
	for _, column := range references {
		took, err := d.lookup(ctx, column)
		if err != nil {
			return r, err
		}
		r.lookup = max(r.lookup, took)
	}
	return r, nil
}

// warm opens the tables: the first query of a process reads their metadata.
func (d *data) warm(ctx context.Context) error {
	_, _, err := d.time(ctx, dayReport, agency(agencies/2), "2026-11-02")
	return err
}

// lookup returns the median time of finding payments of different months by a reference.
func (d *data) lookup(ctx context.Context, column string) (time.Duration, error) {
	var took []time.Duration
	for turn := range turns {
		month := time.Date(2026, time.November-time.Month(turn), 1, 0, 0, 0, 0, time.UTC)
		var reference string
		err := d.conn.QueryRow(ctx, "SELECT "+column+" FROM receipt_rows WHERE tenant_id = ? AND local_date = ? LIMIT 1",
			agency(turn), month.AddDate(0, 0, 5+turn).Format(time.DateOnly)).Scan(&reference)
		if err != nil {
			return 0, fmt.Errorf("choosing a payment: %w", err)
		}
		t, rows, err := d.time(ctx, "SELECT * FROM receipts WHERE "+column+" = ?", reference)
		if err != nil {
			return 0, err
		}
		if rows == 0 {
			return 0, fmt.Errorf("no payment with the %s %s", column, reference)
		}
		took = append(took, t)
	}
	slices.Sort(took)
	return measure.Percentile(took, 0.5), nil
}

// time runs a query and reads its result. It writes a line with the CPU time, which other
// programs on the machine change less than the time.
func (d *data) time(ctx context.Context, query string, args ...any) (took time.Duration, n int, err error) {
	begun := time.Now()
	used, _ := measure.CPU(d.pid)
	defer func() {
		after, _ := measure.CPU(d.pid)
		if _, failed := fmt.Fprintf(d.out, "%d rows, %.0f ms, %.0f ms of CPU: %.90s\n", n, measure.Milliseconds(took), measure.Milliseconds(after-used), query); err == nil && failed != nil {
			err = fmt.Errorf("writing the report: %w", failed)
		}
	}()
	rows, err := d.conn.Query(ctx, query, args...)
	if err != nil {
		return 0, 0, fmt.Errorf("querying: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		n++
	}
	if err := rows.Err(); err != nil {
		return 0, 0, fmt.Errorf("querying: %w", err)
	}
	return time.Since(begun), n, nil
}
