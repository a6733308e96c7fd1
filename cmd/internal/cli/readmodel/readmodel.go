// Package readmodel has the commands of the read model in Postgres.
package readmodel

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/render"
	"quittance/cmd/internal/roles"
	"quittance/internal/comparison"
	"quittance/internal/sessions"
)

// words has the texts for the codes of refused operations.
var words = cli.Words{
	"readmodel.not_yours": cli.Filled("the key in QUITTANCE_STAFF_KEY is of an agency; the rows are of all agencies, and operations compare them, or whoever has the database's password and no key"),
}

// Command returns the command `readmodel`.
func Command() cli.Command {
	return cli.Command{Use: "readmodel", Short: "Verify the read model in Postgres", Commands: []cli.Command{verification()}, Words: words}
}

// errDiffers is the error of a verification that found differences, which were shown.
var errDiffers = errors.New("the read model has not what Kafka has: see above. Find out who changed the database. `quittance rebuild readmodel` makes the rows of the read model again, `quittance rebuild batches` those of batches; the rows of cases and deliveries are put right as the runbook says (deploy/monitoring/README.md)")

func verification() cli.Command {
	var month, since string
	var days [2]time.Time
	return cli.Command{
		Use: "verify", Short: "Compare the read model in Postgres with the events in Kafka", JSON: "the result", Args: cobra.NoArgs,
		Long: `Compare the rows of sessions, of their events, of movements and returns of cash, and of payments that ERPs are told of, with the events in Kafka (checkout.events), column by column; with the master keys, and without --month and --since, also the rows of operator cases, those of deliveries where an outcome decides, and those of disbursement batches. Nothing is written. Each row is named that is missing, different or added, with the event that says otherwise. The command ends with code 1 if there are any. The sink match does the same each night for all sessions.

The sink readmodel may run, and may be behind: demanded are the events below its positions. Events are turned into rows as this program does it. After an upgrade that does it in another way rows of earlier releases differ until ` + "`quittance rebuild readmodel`" + ` has run.`,
		Examples: []string{"readmodel verify --month 2026-11", "readmodel verify --since 2d --json"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&month, "month", "", "sessions made in this month (UTC), such as 2026-11")
			f.StringVar(&since, "since", "", "sessions made at or after this time: "+cli.MomentForms+"; all when empty, which takes longer")
		},
		Check: func(m *cli.Meta) error {
			if month != "" && since != "" {
				return cli.Usage("--month and --since: give one of them")
			}
			if month != "" {
				first, err := time.Parse("2006-01", month)
				if err != nil {
					return cli.Usage("--month %q: must be a month, such as --month 2026-11", month)
				}
				days = [2]time.Time{first, first.AddDate(0, 1, 0)}
			}
			return nil
		},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			err := access.OfAllAgencies(ctx, m, "readmodel.not_yours")
			if err == nil {
				err = m.Need("kafka", "schema-registry")
			}
			if err == nil && since != "" {
				days[0], err = cli.MomentOf("since", since, m.Now)
			}
			if err != nil {
				return err
			}
			_, codec, err := access.OpenTopics(ctx, m)
			if err != nil {
				return err
			}
			report := cli.Progress(m.Err)
			got, err := sessions.NewStore(m.Pool).Verify(ctx, sessions.VerifyConfig{
				Kafka: m.KafkaConfig(), Codec: codec, From: days[0], Before: days[1], AllRecords: m.Options.Clock != nil,
				Progress: func(done, total int64) { report(int(done), int(total)) },
			})
			if err != nil {
				return err
			}
			if month != "" || since != "" || m.MasterKeys == "" && !m.PlainSecrets {
				return show(m, got, "cases", "deliveries", "batches")
			}
			keys, err := m.OpenKeys()
			if err != nil {
				return err
			}
			others, err := roles.Compared(comparison.Config{Kafka: m.KafkaConfig(), Pool: m.Pool}, codec, keys, func() time.Time { return m.Now })
			if err != nil {
				return err
			}
			for _, compare := range others {
				other, err := compare(ctx)
				if err != nil {
					return err
				}
				got.Add(other)
			}
			return show(m, got)
		},
	}
}

// show prints the result. left are the tables that were not compared. Differences are an error.
func show(m *cli.Meta, got sessions.Verified, left ...string) error {
	next := render.Object{}
	for _, p := range slices.Sorted(maps.Keys(got.Positions)) {
		next = append(next, strconv.Itoa(int(p)), got.Positions[p])
	}
	missing, different, added := got.Count(sessions.FaultMissing), got.Count(sessions.FaultDifferent), got.Count(sessions.FaultAdded)
	err := m.Show(render.Object{
		"holds", got.Holds(), "sessions", got.Sessions, "rows", got.Rows, "records", got.Records, "missing", missing, "different", different, "added", added,
		"unnamed", got.Unnamed, "older", got.Older, "unreadable", got.Unreadable, "positions", next, "not_compared", left, "differences", render.Mapped(got.Differences, differenceJSON),
	}, func(p *render.Page) {
		p.Say("Kafka has %s, for %s beside other rows. Postgres has %s: missing %d, different %d, added %d.",
			render.Counted(got.Records, "record"), render.Counted(got.Sessions, "session"), render.Counted(got.Rows, "row"), missing, different, added)
		if got.Unreadable > 0 {
			p.Say("Not read or kept: %s. The poison topics have each.", render.Counted(got.Unreadable, "record"))
		}
		if got.Older > 0 {
			p.Say("Proved by nothing: %s. Kafka has deleted the records, or they prove nothing.", render.Counted(got.Older, "row"))
		}
		if len(left) > 0 {
			p.Say("Not compared: %s. They are compared with the master keys (QUITTANCE_MASTER_KEYS_FILE), and without --month and --since.", strings.Join(left, ", "))
		}
		p.Table("", "TABLE,FAULT,MADE,SESSION,ROW,EVENT,COLUMNS", render.Mapped(got.Differences, func(d sessions.Difference) []any {
			columns := make([]string, len(d.Columns))
			for i, c := range d.Columns {
				columns[i] = fmt.Sprintf("%s %s, Kafka %s", c.Name, render.OrDash(c.Postgres), render.OrDash(c.Kafka))
			}
			return []any{d.Table, string(d.Fault), made(d), render.OrDash(d.SessionID), render.OrDash(d.Row), render.OrDash(d.Record()), render.OrDash(strings.Join(columns, "; "))}
		}))
		if got.Unnamed > 0 {
			p.Say("Not named: %d more, sessions or rows.", got.Unnamed)
		}
	})
	if err == nil && !got.Holds() {
		err = errDiffers
	}
	return err
}

func made(d sessions.Difference) string {
	if d.At.IsZero() {
		return "-"
	}
	return render.Moment(d.At)
}

func differenceJSON(d sessions.Difference) render.Object {
	var at any
	if !d.At.IsZero() {
		at = d.At.UTC().Format(time.RFC3339Nano)
	}
	columns := render.Mapped(d.Columns, func(c sessions.ColumnDifference) render.Object {
		return render.Object{"name", c.Name, "postgres", c.Postgres, "kafka", c.Kafka}
	})
	return render.Object{
		"table", d.Table, "fault", string(d.Fault), "made_at", at, "session_id", render.OrNone(d.SessionID), "row", render.OrNone(d.Row), "event", render.OrNone(d.Record()), "columns", columns,
	}
}
