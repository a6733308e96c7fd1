package audit

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/audit"
	"quittance/internal/operation"
)

// errDiffers is the error of a verification that found differences, which were shown.
var errDiffers = errors.New("the audit table of Postgres has not what Kafka has: see above. Find out who changed the database; `docs/operating/recovery.md`, \"The audit table\", says how one goes on")

// most is how many findings the command names.
const most = 1000

func verification() cli.Command {
	var since string
	return cli.Command{
		Use: "verify", Short: "Compare the audit table of Postgres with the records in Kafka", JSON: "the result", Args: cobra.NoArgs,
		Long: `Compare the audit table of Postgres with the records in Kafka (topic audit). Nothing is written. Each row is named that is missing, changed, added, recorded more than an hour after its own time, or that no program has signed. The command ends with code 1 if there are any that nobody has accepted. The sink cases does the same each night.

The command waits up to 30 s for the sink cases to record the rows of now; rows that it has not recorded then count as added.`,
		Examples: []string{"audit verify", "audit verify --since 2026-11-01 --json"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&since, "since", "", "rows and records of operations at or after this time: "+cli.MomentForms+"; all when empty")
		},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			cfg, err := comparing(ctx, m)
			if err != nil {
				return err
			}
			if cfg.Since, err = cli.MomentOf("since", since, m.Now); err != nil {
				return err
			}
			got, err := audit.Verify(ctx, cfg)
			if err != nil {
				return err
			}
			return show(m, got)
		},
	}
}

// comparing opens what a comparison needs, for operations or whoever has the database's password.
func comparing(ctx context.Context, m *cli.Meta) (audit.VerifyConfig, error) {
	err := access.OfAllAgencies(ctx, m, codeNotYours)
	if err == nil {
		err = m.Need("kafka", "schema-registry")
	}
	if err != nil {
		return audit.VerifyConfig{}, err
	}
	_, codec, err := access.OpenTopics(ctx, m)
	return audit.VerifyConfig{Kafka: m.KafkaConfig(), Codec: codec, Pool: m.Pool, AllRecords: m.Options.Clock != nil, ClockMoves: m.Options.Clock != nil}, err
}

// show prints the result. Differences that nobody has accepted are an error.
func show(m *cli.Meta, got audit.Verified) error {
	count := render.Object{}
	said := make([]string, 0, len(audit.Faults()))
	for _, f := range audit.Faults() {
		count = append(count, string(f), got.Count(f))
		said = append(said, strconv.FormatInt(got.Count(f), 10)+" "+string(f))
	}
	named := got.Findings[:min(most, len(got.Findings))]
	err := m.Show(render.Object{
		"holds", got.Holds(), "rows", got.Rows, "records", got.Records, "unreadable", got.Unreadable, "differences", count, "findings", render.Mapped(named, findingJSON),
	}, func(p *render.Page) {
		p.Say("%s in Postgres, %s in Kafka; of the rows %s.", render.Counted(got.Rows, "row"), render.Counted(got.Records, "record"), strings.Join(said, ", "))
		if got.Unreadable > 0 {
			p.Say("Written by another program, so that nothing is proved: %s of the topic audit.", render.Counted(got.Unreadable, "record"))
		}
		p.Table("", "RECORD,FAULT,AT,WHO,ACTION,SUBJECT,DIFFERS", render.Mapped(named, func(f audit.Finding) []any {
			return []any{number(f), faultSaid(f), render.Moment(f.At), f.ActorKind + " " + f.Actor, f.Action, render.OrDash(f.Subject), render.OrDash(differs(f))}
		}))
		if n := len(got.Findings) - len(named); n > 0 {
			p.Say("Not named: %d more.", n)
		}
	})
	if err == nil && !got.Holds() {
		err = errDiffers
	}
	return err
}

func number(f audit.Finding) string {
	if f.Sequence == 0 {
		return "-"
	}
	return strconv.FormatInt(f.Sequence, 10)
}

func faultSaid(f audit.Finding) string {
	if f.Accepted {
		return string(f.Fault) + ", accepted"
	}
	return string(f.Fault)
}

// differs says what is not as it was recorded.
func differs(f audit.Finding) string {
	if f.Fault == audit.FaultLate {
		return "recorded " + render.Moment(f.RecordedAt)
	}
	texts := make([]string, len(f.Columns))
	for i, c := range f.Columns {
		texts[i] = c.Name
		if c.Postgres != "" || c.Kafka != "" {
			texts[i] += " " + render.OrDash(c.Postgres) + ", Kafka " + render.OrDash(c.Kafka)
		}
	}
	return strings.Join(texts, "; ")
}

func findingJSON(f audit.Finding) render.Object {
	var recorded any
	if !f.RecordedAt.IsZero() {
		recorded = f.RecordedAt.UTC().Format(time.RFC3339Nano)
	}
	return render.Object{
		"record", f.Sequence, "fault", f.Fault, "accepted", f.Accepted, "row", f.RowID, "at", f.At, "recorded_at", recorded, "actor_kind", f.ActorKind, "actor", f.Actor, "action", f.Action, "subject", render.OrNone(f.Subject),
		"columns", render.Mapped(f.Columns, func(c audit.Column) render.Object {
			return render.Object{"name", c.Name, "postgres", c.Postgres, "kafka", c.Kafka}
		}),
	}
}

func acceptance() cli.Command {
	var reason string
	var from, to int64
	return cli.Command{
		Use: "accept RECORD[-RECORD]", Short: "Record that you have looked into rows that `audit verify` names", JSON: "what was accepted",
		Long:     `Record that you have looked into rows that ` + "`audit verify`" + ` names, such as those that a restored database has lost. It is itself an operation with your name, in the audit table and in Kafka. The verification then names the rows as accepted; a row that is changed again is a new finding. It needs the key of a member of operations.`,
		Missing:  "say which records: {usage}; `quittance audit verify` shows their numbers",
		Examples: []string{`audit accept 1203-1288 --reason "restored from the backup of 2026-11-28; the commands were given again"`},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&reason, "reason", "", "what was found out and done; recorded in the audit table, no personal data")
		},
		Check: func(m *cli.Meta) (err error) {
			from, to, err = records(m.Args[0])
			if err == nil && strings.TrimSpace(reason) == "" {
				err = cli.Usage("--reason is missing: say what was found out and done")
			}
			return err
		},
		Keyed: true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			by, err := access.Person(ctx, m)
			if err == nil && by.Staff.AgencyID != "" {
				err = operation.Refuse(codeNotYours, "", nil)
			}
			if err != nil {
				return err
			}
			cfg, err := comparing(ctx, m)
			if err != nil {
				return err
			}
			accepted, err := audit.Accept(ctx, cfg, by.Staff.Actor(by.Origin), from, to, reason, m.Now)
			if err != nil {
				return err
			}
			return m.Show(render.Mapped(accepted, findingJSON), func(p *render.Page) {
				p.Say("%s accepted. `quittance audit verify` says so once the sink cases has recorded it.", render.CountedIs(len(accepted), "row"))
			})
		},
	}
}

// records reads a number, or a first and a last one.
func records(text string) (from, to int64, err error) {
	first, last, several := strings.Cut(text, "-")
	from, err = strconv.ParseInt(first, 10, 64)
	to = from
	if several && err == nil {
		to, err = strconv.ParseInt(last, 10, 64)
	}
	if err != nil || from < 1 || to < from {
		return 0, 0, cli.Usage("RECORD %q: must be a number of a record, or a first and a last one, such as 1203-1288", text)
	}
	return from, to, nil
}
