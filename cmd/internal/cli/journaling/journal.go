// Package journaling has the commands of the journal in ClickHouse.
package journaling

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/render"
	"quittance/cmd/internal/roles"
	"quittance/internal/journal"
	"quittance/reconciliation/verify"
)

// Command returns the command `journal`.
func Command() cli.Command {
	return cli.Command{Use: "journal", Short: "Verify the journal in ClickHouse", Commands: []cli.Command{verification()}}
}

// errDiffers is the error of a verification that found differences, which were shown.
var errDiffers = errors.New("ClickHouse has not what Kafka has: see above. `quittance rebuild journal` writes rows that are missing or different again; rows that were added stay until somebody removes them")

func verification() cli.Command {
	var month string
	var days [2]time.Time
	return cli.Command{
		Use: "verify", Short: "Compare the rows in ClickHouse with the records in Kafka", JSON: "the result", Args: cobra.NoArgs,
		Long: `Compare the rows in ClickHouse with the records in Kafka, column by column. Nothing is written. The rows of reports, matches, breaks and closes are named that are missing, different or added, with the record that says otherwise. The command ends with code 1 if there are any. The sink match does the same each night for the present and the previous month.

Records are turned into rows as this program does it. After an upgrade that does it in another way rows of earlier releases differ until ` + "`quittance rebuild journal`" + ` has run.`,
		Examples: []string{"journal verify --month 2026-11", "journal verify --json"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&month, "month", "", "rows of this month, such as 2026-11; all rows when empty, which takes longer")
		},
		Check: func(m *cli.Meta) error {
			if month != "" {
				first, err := time.Parse("2006-01", month)
				if err != nil {
					return cli.Usage("--month %q: must be a month, such as --month 2026-11", month)
				}
				days = [2]time.Time{first, first.AddDate(0, 1, 0)}
			}
			return cli.Quiet(m)
		},
		Run: func(ctx context.Context, m *cli.Meta) error {
			if err := m.Need("kafka", "schema-registry", "clickhouse"); err != nil {
				return err
			}
			_, codec, err := access.OpenTopics(ctx, m)
			if err != nil {
				return err
			}
			conn, err := access.OpenJournal(ctx, m)
			if err != nil {
				return err
			}
			defer func() { _ = conn.Close() }()
			keys, err := m.OpenKeys()
			if err != nil {
				return err
			}
			outcomes, err := roles.AllOutcomes(keys, false)
			if err != nil {
				return err
			}
			proof, err := roles.CaseEvents(m.KafkaConfig(), keys)
			if err != nil {
				return err
			}
			request := verify.Request(m.KafkaConfig(), journal.Decoder{Codec: codec, Prefix: m.KafkaConfig().Prefix, Outcomes: outcomes, Cases: proof}, days[0], days[1], m.Options.Clock != nil)
			report := cli.Progress(m.Err)
			request.Progress = func(done, total int64) { report(int(done), int(total)) }
			got, err := journal.NewStore(conn).Verify(ctx, request)
			if err != nil {
				return err
			}
			return show(m, month, got)
		},
	}
}

// show prints the result. Differences are an error.
func show(m *cli.Meta, month string, got journal.Verified) error {
	err := m.Show(render.Object{
		"month", render.OrNone(month), "holds", got.Holds(), "rows", got.Rows, "records", got.Records, "missing", got.Missing, "different", got.Different, "added", got.Added,
		"unreadable", got.Unreadable, "unproven", got.Unproven, "positions", got.Positions, "differences", render.Mapped(got.Differences, differenceJSON),
	}, func(p *render.Page) {
		p.Say("Kafka has %s, for %s in ClickHouse: missing %d, different %d, added %d.",
			render.Counted(got.Records, "record"), render.Counted(got.Rows, "row"), got.Missing, got.Different, got.Added)
		if got.Unreadable > 0 {
			p.Say("Not read or kept: %s. The poison topic of the journal has each.", render.Counted(got.Unreadable, "record"))
		}
		if got.Unproven > 0 {
			p.Say("Not compared: %s without a proof of the worker that made it, as of releases before 2026-11-29.", render.Counted(got.Unproven, "outcome"))
		}
		p.Table("", "TABLE,FAULT,DAY,ROW,RECORD,COLUMNS", render.Mapped(got.Differences, func(d journal.Difference) []any {
			columns := ""
			for i, c := range d.Columns {
				if i > 0 {
					columns += "; "
				}
				columns += fmt.Sprintf("%s %s, Kafka %s", c.Name, render.OrDash(c.ClickHouse), render.OrDash(c.Kafka))
			}
			return []any{d.Table, d.Fault, d.Day.Format(time.DateOnly), d.Row, render.OrDash(evidence(d)), render.OrDash(columns)}
		}))
		if n := got.Missing + got.Different + got.Added; n > int64(len(got.Differences)) {
			p.Say("Not named: %d more.", n-int64(len(got.Differences)))
		}
	})
	if err == nil && !got.Holds() {
		err = errDiffers
	}
	return err
}

// evidence returns where the record of a row is; empty for a row that was added.
func evidence(d journal.Difference) string {
	if d.Topic == "" {
		return ""
	}
	return fmt.Sprintf("%s/%d/%d", d.Topic, d.Partition, d.Offset)
}

func differenceJSON(d journal.Difference) render.Object {
	columns := render.Mapped(d.Columns, func(c journal.ColumnDifference) render.Object {
		return render.Object{"name", c.Name, "clickhouse", c.ClickHouse, "kafka", c.Kafka}
	})
	return render.Object{
		"table", d.Table, "fault", d.Fault, "day", d.Day.Format(time.DateOnly), "row", d.Row, "tenant_id", render.OrNone(d.TenantID), "record", render.OrNone(evidence(d)), "columns", columns,
	}
}
