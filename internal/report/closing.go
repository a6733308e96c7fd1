package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"quittance/internal/journal"
)

// OfClose returns the figures that a close states.
func OfClose(c *journal.Close) Closing {
	return Closing{TenantID: c.TenantID, Live: c.Livemode, Account: c.Account, From: c.FromDay, To: c.ToDay}
}

// Closing says which figures of the reports a close of an account states. From and To are its local days.
type Closing struct {
	// TenantID is the id of the agency.
	TenantID string
	Live     bool
	Account  string
	From, To time.Time
}

// ofCloses is the report by account and day. Its figures of closed days do not change: the others count what
// comes to be known later.
const ofCloses = "reconciliation"

// Totals returns what the report `reconciliation` says of an account's days now, by the query of the report: the
// sum of each of its numbers that lines of later days do not change, sorted, such as "reconciliation.found_minor 5075"
// in minor units. It is nil for an agency that ClickHouse does not know yet.
func (c Closing) Totals(ctx context.Context, conn clickhouse.Conn) ([]string, error) {
	agencies, err := Agencies(ctx, conn)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(agencies, func(a Agency) bool { return a.ID == c.TenantID })
	if at < 0 {
		return nil, nil
	}
	list := All()
	of := list[slices.IndexFunc(list, func(r Report) bool { return r.Name == ofCloses })]
	sums := map[string]int64{}
	first := time.Date(c.From.Year(), c.From.Month(), 1, 0, 0, 0, 0, time.UTC)
	for month := first; !month.After(c.To); month = month.AddDate(0, 1, 0) {
		t, err := of.Run(ctx, conn, Params{Month: month, Agency: agencies[at].Slug, Live: c.Live})
		if err != nil {
			return nil, err
		}
		c.add(t, sums)
	}
	var out []string
	for name, sum := range sums {
		out = append(out, fmt.Sprintf("%s.%s %d", ofCloses, name, sum))
	}
	slices.SortFunc(out, cmp.Compare)
	return out, nil
}

// add adds the rows of the account's days.
func (c Closing) add(t Table, sums map[string]int64) {
	column := func(name string) int {
		return slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name })
	}
	account, day := column("account"), column("day")
	from, to := c.From.Format(time.DateOnly), c.To.Format(time.DateOnly)
	for i, of := range t.Columns {
		if !of.Number || strings.HasPrefix(of.Name, "matched_") || strings.HasPrefix(of.Name, "open_") {
			continue // a line of the next day matches money of this one, between a proposal and its approval, too
		}
		sums[of.Name] += 0
		for _, row := range t.Rows {
			on, _ := row[day].(string)
			if n, ok := row[i].(int64); ok && row[account] == c.Account && from <= on && on <= to {
				sums[of.Name] += n
			}
		}
	}
}

// Differences says in which totals two lists of Totals differ, for people; empty for none.
func Differences(before, now []string) (out []string) {
	for _, total := range before {
		if !slices.Contains(now, total) {
			out = append(out, total)
		}
	}
	for _, total := range now {
		if !slices.Contains(before, total) {
			out = append(out, "now "+total)
		}
	}
	return out
}
