package report

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"quittance/internal/clickhouse"
	"quittance/internal/journal"
)

// RowsAtMost is the largest number of rows of a report that a page shows.
const RowsAtMost = 5000

// Errors of a Desk.
var (
	// ErrAway: ClickHouse does not answer, or refuses us.
	ErrAway = errors.New("ClickHouse cannot be read")
	// ErrUnknownAgency: ClickHouse does not know the agency yet, or knows another one of its name. The sink journal copies the names.
	ErrUnknownAgency = errors.New("ClickHouse does not know the agency")
)

// Desk makes reports for people's pages. All fields are required. Safe for concurrent use.
type Desk struct {
	// Open returns a connection that the desk does not close.
	Open func(ctx context.Context) (clickhouse.Conn, error)
	// Committed returns the offsets that the sink journal has committed in Kafka. An error means that positions are not compared.
	Committed func(ctx context.Context) (kadm.OffsetResponses, error)
	// Program and Version name what makes the reports.
	Program, Version string
	// Now is the machine's time, UTC.
	Now func() time.Time
}

// Request says which report a person wants.
type Request struct {
	Report Report
	// AgencyID is the id of an agency; empty for all agencies and money of none, which the service's people alone may ask for.
	AgencyID string
	Month    time.Time
	Live     bool
}

// Run makes a report with its stamp. more says that it has more than RowsAtMost rows; the table has the first ones. Errors wrap
// ErrAway, ErrUnknownAgency or journal.ErrRestored.
func (d *Desk) Run(ctx context.Context, r Request) (t Table, more bool, err error) {
	conn, err := d.Open(ctx)
	if err != nil {
		return t, false, errors.Join(ErrAway, err)
	}
	positions, err := journal.NewStore(conn).Positions(ctx)
	if err != nil {
		return t, false, errors.Join(ErrAway, err)
	}
	committed, unknown := d.Committed(ctx)
	if unknown != nil {
		committed = nil
	}
	if err := journal.Whole(positions, committed); err != nil {
		return t, false, err
	}
	p := Params{Month: r.Month, Live: r.Live}
	if p.Agency, err = slugOf(ctx, conn, r.AgencyID); err != nil {
		return t, false, err
	}
	bounded := r.Report
	bounded.SQL = fmt.Sprintf("%s\nLIMIT %d", strings.TrimRight(bounded.SQL, "\n "), RowsAtMost+1)
	if t, err = bounded.Run(ctx, conn, p); err != nil {
		return t, false, errors.Join(ErrAway, err)
	}
	if more = len(t.Rows) > RowsAtMost; more {
		t.Rows = t.Rows[:RowsAtMost]
	}
	mode := "test"
	if r.Live {
		mode = "live"
	}
	t.Stamp = Stamp{Report: r.Report.Name, Agency: p.Agency, Month: r.Month.Format("2006-01"), Mode: mode, At: d.Now(), Program: d.Program, Version: d.Version, Positions: positions, Compared: unknown == nil}
	return t, more, nil
}

// slugOf returns the slug by which the reports know an agency; empty for none. It is that of one agency only: a report of an agency
// never has rows of another one that has taken its name.
func slugOf(ctx context.Context, conn clickhouse.Conn, agencyID string) (string, error) {
	if agencyID == "" {
		return "", nil
	}
	agencies, err := Agencies(ctx, conn)
	if err != nil {
		return "", errors.Join(ErrAway, err)
	}
	i := slices.IndexFunc(agencies, func(a Agency) bool { return a.ID == agencyID })
	if i < 0 || agencies[i].Slug == "" {
		return "", ErrUnknownAgency
	}
	slug := agencies[i].Slug
	if slices.ContainsFunc(agencies, func(a Agency) bool { return a.Slug == slug && a.ID != agencyID }) {
		return "", ErrUnknownAgency
	}
	return slug, nil
}
