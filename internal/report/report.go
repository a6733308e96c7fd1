// Package report has the reports of a month: their SQL, which docs/analysts.md shows, and
// their results as CSV and as a workbook. They read the views of package reconciliation and
// some of its tables.
//
// Amounts in results are minor units. The name of such a column ends in "_minor", and its
// row has the column "currency".
package report

import (
	"context"
	_ "embed" // the reports' SQL
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"quittance/money"
)

// The reports' SQL.
var (
	//go:embed sql/takings.sql
	takings string
	//go:embed sql/fees.sql
	fees string
	//go:embed sql/channels.sql
	channels string
	//go:embed sql/undelivered.sql
	undelivered string
	//go:embed sql/open-cases.sql
	openCases string
	//go:embed sql/reconciliation.sql
	reconciled string
	//go:embed sql/breaks.sql
	breaks string
	//go:embed sql/operator-fees.sql
	operatorFees string
)

// Report is a question about a month.
type Report struct {
	// Name is what operators type.
	Name string
	// Short says what it reports.
	Short string
	// SQL has the parameters month (a Date), agency (a slug; empty for all) and livemode.
	SQL string
	// Apart is the column whose values have totals of their own; empty for none. The money of an operator's account comes again on
	// the bank account to which it settles.
	Apart string
}

// All returns all reports.
func All() []Report {
	return []Report{
		{"takings", "what the accounts took, by service", takings, ""},
		{"fees", "the fees that citizens paid, by channel", fees, ""},
		{"channels", "where the money is, by merchant account or counter", channels, ""},
		{"undelivered", "webhooks and ERP confirmations that are not accepted until now", undelivered, ""},
		{"open-cases", "operator cases that were open at the end of the month", openCases, ""},
		{"reconciliation", "accounts by day: expected, found, matched and open, and money of no account", reconciled, "account"},
		{"breaks", "breaks and proposals that were open at the end of the month, with their age", breaks, ""},
		{"operator-fees", "what operators kept, by account", operatorFees, ""},
	}
}

// Params are the parameters of a report.
type Params struct {
	// Month is any time in the month, of which the year and the month count.
	Month time.Time
	// Agency is the slug of an agency; empty for all.
	Agency string
	// Live selects real money; false selects test payments.
	Live bool
}

// named returns the parameters as ClickHouse takes them.
func (p Params) named() clickhouse.Parameters {
	return clickhouse.Parameters{"month": p.Month.Format("2006-01") + "-01", "agency": p.Agency, "livemode": strconv.FormatBool(p.Live)}
}

// Table is the result of a report.
type Table struct {
	// Name is that of the report.
	Name string
	// Stamp says where it comes from.
	Stamp   Stamp
	Columns []Column
	// Rows have a value for each column: a string, or an int64.
	Rows [][]any
	// Apart is Report.Apart.
	Apart string
}

// Column describes a column of a Table.
type Column struct {
	Name string
	// Number says that the values are int64, otherwise they are strings.
	Number bool
}

// suffixMinor ends the names of columns with amounts.
const suffixMinor = "_minor"

// titles are the columns that their name does not say.
var titles = map[string]string{
	"operator_ref": "Operator's reference", "payment_ref": "Payment reference", "case_id": "Case", "delivery_id": "Delivery", "finding_id": "Finding", "order_id": "Order",
	"offer_id": "Offer", "http_status": "HTTP status", "of_no_account": "Money of no account", "days": "Age in days", "unmatched": "Not matched with a payment",
	"line_ref": "Line reference", "payout_ref": "Payout reference", "sent_at": "Sent", "ended_at": "Ended",
	"opened_at": "Opened", "first_at": "First attempt", "last_at": "Last attempt",
}

// Title returns the heading of the column without its unit, for people who see the amounts in
// the unit of the currency.
func (c Column) Title() string {
	name := strings.TrimSuffix(c.Name, suffixMinor)
	if title, ok := titles[name]; ok {
		return title
	}
	return strings.ToUpper(name[:1]) + strings.ReplaceAll(name[1:], "_", " ")
}

// Day reports whether the values are local days, such as 2026-11-30.
func (c Column) Day() bool { return c.Name == "day" || c.Name == "business_date" }

// Moment reports whether the values are times in Brazzaville, such as 2026-11-30 17:04:05.
func (c Column) Moment() bool { return strings.HasSuffix(c.Name, "_at") }

// Money reports whether the values are amounts in minor units.
func (c Column) Money() bool { return strings.HasSuffix(c.Name, suffixMinor) }

// Run asks ClickHouse.
func (r Report) Run(ctx context.Context, conn clickhouse.Conn, p Params) (Table, error) {
	rows, err := conn.Query(clickhouse.Context(ctx, clickhouse.WithParameters(p.named())), r.SQL)
	if err != nil {
		return Table{}, fmt.Errorf("asking ClickHouse for %s: %w", r.Name, err)
	}
	defer func() { _ = rows.Close() }()
	t := Table{Name: r.Name, Rows: [][]any{}, Apart: r.Apart}
	types := rows.ColumnTypes()
	row := make([]any, len(types))
	for i, column := range types {
		kind := column.ScanType().Kind()
		t.Columns = append(t.Columns, Column{Name: column.Name(), Number: kind != reflect.String})
		row[i] = reflect.New(column.ScanType()).Interface()
	}
	if len(types) == 0 { // without rows there is no block with their names
		t.Columns, err = r.columns(ctx, conn, p)
		return t, err
	}
	for rows.Next() {
		if err := rows.Scan(row...); err != nil {
			return Table{}, fmt.Errorf("reading %s: %w", r.Name, err)
		}
		values := make([]any, len(row))
		for i := range row {
			if values[i], err = plain(reflect.ValueOf(row[i]).Elem()); err != nil {
				return Table{}, fmt.Errorf("reading the column %s of %s: %w", t.Columns[i].Name, r.Name, err)
			}
		}
		t.Rows = append(t.Rows, values)
	}
	if err := rows.Err(); err != nil {
		return Table{}, fmt.Errorf("reading %s: %w", r.Name, err)
	}
	return t, nil
}

// columns returns the columns of the report's result.
func (r Report) columns(ctx context.Context, conn clickhouse.Conn, p Params) (out []Column, err error) {
	rows, err := conn.Query(clickhouse.Context(ctx, clickhouse.WithParameters(p.named())), "DESCRIBE TABLE (\n"+r.SQL+"\n)")
	if err != nil {
		return nil, fmt.Errorf("asking ClickHouse for the columns of %s: %w", r.Name, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name, kind, rest string
		if err := rows.Scan(&name, &kind, &rest, &rest, &rest, &rest, &rest); err != nil {
			return nil, fmt.Errorf("reading the columns of %s: %w", r.Name, err)
		}
		out = append(out, Column{Name: name, Number: strings.Contains(kind, "Int")})
	}
	return out, rows.Err()
}

// plain returns a value as a string or an int64.
func plain(v reflect.Value) (any, error) {
	switch {
	case v.Kind() == reflect.String:
		return v.String(), nil
	case v.CanInt():
		return v.Int(), nil
	case v.CanUint():
		return int64(v.Uint()), nil //nolint:gosec // a count
	}
	return nil, errors.New("neither text nor a whole number: " + v.Type().String())
}

// currency returns the currency of the amounts of a row. It returns false for a code that is
// not in our table, such as that of a strange report of an operator.
func (t Table) currency(row []any) (money.Currency, bool) { return money.Lookup(t.code(row)) }

// Text returns a value of a row for people: amounts in the unit of their currency. An amount
// of an unknown currency stays in minor units and says so.
func (t Table) Text(row []any, column int) string {
	value, number := row[column].(int64)
	if !number || !t.Columns[column].Money() {
		return fmt.Sprint(row[column])
	}
	if currency, ok := t.currency(row); ok {
		return currency.Decimal(value)
	}
	return fmt.Sprintf("%d (minor units)", value)
}

// Agency is an agency that ClickHouse knows.
type Agency struct {
	ID   string `ch:"tenant_id"`
	Slug string `ch:"slug"`
	Name string `ch:"name"`
}

// Agencies returns all agencies by slug. A new one is there after a quarter of a minute.
func Agencies(ctx context.Context, conn clickhouse.Conn) (out []Agency, err error) {
	if err := conn.Select(ctx, &out, "SELECT tenant_id, slug, name FROM agencies ORDER BY slug"); err != nil {
		return nil, fmt.Errorf("reading agencies: %w", err)
	}
	return out, nil
}
