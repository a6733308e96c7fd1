package replay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kadm"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/render"
	"quittance/cmd/internal/roles"
	"quittance/internal/disbursements"
	"quittance/internal/journal"
	"quittance/internal/kafka"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/sessions"
	"quittance/internal/tally"
	"quittance/schemas"
	"quittance/schemas/origin"
	sinkjournal "quittance/sinks/journal"
	sinkreadmodel "quittance/sinks/readmodel"
)

// Rebuild makes derived data again from Kafka.
func Rebuild() cli.Command {
	return cli.Command{
		Use: "rebuild", Short: "Make derived data again from Kafka: journal, read model, local stores",
		Commands: []cli.Command{rebuildJournal(), rebuildReadmodel(), rebuildBatches(), rebuildStores()},
	}
}

const journalPlan = `This writes the entries of all records of checkout.events, cases.events, deliveries.attempts and collections.calls, the receipts and expected entries of their money, the lines of reconciliation.statements and the findings of reconciliation.events, to ClickHouse again.
Nothing is removed: Kafka keeps attempts and calls for 90 days, and the journal keeps older ones. A row that is there already is replaced by the same row.
The sink journal may run. An interrupted rebuild may be started again.`

const readmodelPlan = `This empties the tables of sessions and of cash movements in Postgres and fills them again from checkout.events.
Reads of sessions answer 503 until it is done. Payments continue. Metrics of events are counted again: silence the alerts of the group quittance-money.
The sink readmodel may run. After an interruption the sink finishes the rebuild, or you start it again.`

const batchesPlan = `This empties the tables of disbursement batches in Postgres; the sink readmodel fills them again from disbursement.events.
Until it is done pages and commands of batches show fewer batches and nobody can sign there. Payments to people continue.
The sink readmodel may run. The command may be run again.`

const storesPlan = `This removes the local stores of processor %s, instance %s, in %s.
The processor must be stopped. At its next start it restores every partition from checkout.state; until then it decides nothing for those partitions.
An interrupted removal may be started again.`

func rebuildJournal() cli.Command {
	var yes bool
	return cli.Command{
		Use: "journal", Short: "Write the journal in ClickHouse again", JSON: "what was done and the sums", Examples: []string{"rebuild journal"},
		Flags: func(f *pflag.FlagSet, m *cli.Meta) { cli.YesFlag(f, &yes); unprovenFlag(f, m) },
		Check: cli.Quiet,
		Run: func(ctx context.Context, m *cli.Meta) error {
			if err := m.Agree(yes, journalPlan); err != nil {
				return err
			}
			return m.WithBase(ctx, m.Log, func(ctx context.Context, b *roles.Base) error {
				before, got, err := rebuiltJournal(ctx, m, b)
				if err != nil {
					return err
				}
				return showRebuilt(m, "journal", []sums{{"sums", "STATUS", "EVENTS", got.Lines}, {"receipts", "MOVEMENT", "RECEIPTS", got.Receipts}, {"expected money", "STATE", "ROWS", got.Expected}, {"statement lines", "KIND", "LINES", got.StatementLines}, {"findings", "FINDING", "ROWS", got.Findings}}, []counted{
					{"missing", before.Missing, "rows were missing before"},
					{"different", before.Different, "rows were different from Kafka before"},
					{"added", before.Added, "rows come from no record and stay"},
					{"events", got.Events, "events written"},
					{"case_events", got.Cases, "events of cases without a session written"},
					{"attempts", got.Attempts, "attempts written"},
					{"calls", got.Calls, "calls to operators written"},
					{"statement_records", got.Statements, "records of statements and their lines written"},
					{"reconciliation_records", got.Reconciliation, "records of the matcher written"},
					{"batch_events", got.Batches, "events of batches read"},
					{setAside, got.Unreadable, "records cannot be decoded or stored, or are outcomes of deliveries without a proof; those that the sink read are in the poison topic"},
				})
			})
		},
	}
}

// believed returns who is believed about deliveries.
func believed(b *roles.Base) (origin.Outcomes, error) {
	keys, err := b.OpenKeys()
	if err != nil {
		return origin.Outcomes{}, err
	}
	return roles.AllOutcomes(keys, b.AcceptUnprovenBodies)
}

// believedCases returns who is believed in cases.events.
func believedCases(b *roles.Base) (*origin.History, error) {
	keys, err := b.OpenKeys()
	if err != nil {
		return nil, err
	}
	return roles.CaseEvents(b.KafkaConfig(), keys)
}

// unprovenFlag adds the flag that accepts outcomes of deliveries without a proof.
func unprovenFlag(f *pflag.FlagSet, m *cli.Meta) {
	f.BoolVar(&m.AcceptUnprovenBodies, "accept-unproven-bodies", false, "also write outcomes of deliveries that do not prove which worker made them, as those of releases before 2026-11-29: whoever may write their topic is believed")
}

// rebuiltJournal writes the journal again. The audit table says who did it, and what differed before.
func rebuiltJournal(ctx context.Context, m *cli.Meta, b *roles.Base) (before journal.Verified, got sinkjournal.Rebuilt, err error) {
	conn, err := b.OpenClickHouse()
	if err != nil {
		return before, got, err
	}
	if err := b.OpenPostgres(); err != nil {
		return before, got, err
	}
	outcomes, err := believed(b)
	if err != nil {
		return before, got, err
	}
	proof, err := believedCases(b)
	if err != nil {
		return before, got, err
	}
	store := journal.NewStore(conn)
	sink, err := sinkjournal.New(sinkjournal.Config{Kafka: b.KafkaConfig(), Codec: b.Codec, Store: store, Outcomes: outcomes, Cases: proof, Log: b.Log, Metrics: b.Metrics})
	if err != nil {
		return before, got, err
	}
	report := cli.Progress(m.Err)
	progress := func(done, total int64) { report(int(done), int(total)) }
	if before, err = store.Verify(ctx, journal.VerifyConfig{Kafka: b.KafkaConfig(), Decoder: journal.Decoder{Codec: b.Codec, Prefix: b.KafkaConfig().Prefix, Outcomes: outcomes, Cases: proof}, Progress: progress}); err != nil {
		return before, got, err
	}
	by, err := cli.Actor(ctx, b.Pool, b.Keys, b.Now())
	if err != nil {
		return before, got, err
	}
	audit := func(action string, detail map[string]any) error {
		return operation.Record(ctx, b.Pool, by, b.Now(), operation.Entry{Action: action, Detail: detail})
	}
	if err := audit("journal.rebuild", map[string]any{"rows": before.Rows, "missing": before.Missing, "different": before.Different, "added": before.Added}); err != nil {
		return before, got, err
	}
	if got, err = sink.Rebuild(ctx, b.Now(), progress); err != nil {
		return before, got, err
	}
	return before, got, audit("journal.rebuilt", map[string]any{"equal": got.Equal(), setAside: got.Unreadable})
}

func rebuildReadmodel() cli.Command {
	var yes bool
	return cli.Command{
		Use: "readmodel", Short: "Empty the read model in Postgres and fill it again", JSON: "what was done and the sums", Examples: []string{"rebuild readmodel --yes"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) { cli.YesFlag(f, &yes) },
		Check: cli.Quiet,
		Run: func(ctx context.Context, m *cli.Meta) error {
			if err := m.Agree(yes, readmodelPlan); err != nil {
				return err
			}
			return m.WithBase(ctx, m.Log, func(ctx context.Context, b *roles.Base) error {
				if err := b.OpenPostgres(); err != nil {
					return err
				}
				sink, err := sinkreadmodel.New(sinkreadmodel.Config{Kafka: b.KafkaConfig(), Codec: b.Codec, Store: sessions.NewStore(b.Pool), Log: b.Log})
				if err != nil {
					return err
				}
				by, err := cli.Actor(ctx, b.Pool, b.Keys, b.Now())
				if err != nil {
					return err
				}
				report := cli.Progress(m.Err)
				got, err := sink.Rebuild(ctx, by, b.Now(), func(done, total int64) { report(int(done), int(total)) })
				if err != nil {
					return err
				}
				return showRebuilt(m, "readmodel", []sums{{"sums", "STATUS", "EVENTS", got.Lines}}, []counted{
					{"events", got.Events, "events applied; the sink applies the others if it runs"},
					{"removed", got.Removed, "rows of erp_confirmations that no event makes were removed"},
					{setAside, got.Unreadable, "records cannot be decoded or stored; they are in the poison topic"},
				})
			})
		},
	}
}

func rebuildBatches() cli.Command {
	var yes bool
	return cli.Command{
		Use: "batches", Short: "Empty the tables of disbursement batches; the sink readmodel fills them again", JSON: "where the sink begins", Examples: []string{"rebuild batches --yes"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) { cli.YesFlag(f, &yes) },
		Check: cli.Quiet,
		Run: func(ctx context.Context, m *cli.Meta) error {
			if err := m.Agree(yes, batchesPlan); err != nil {
				return err
			}
			return m.WithBase(ctx, m.Log, func(ctx context.Context, b *roles.Base) error {
				if err := b.OpenPostgres(); err != nil {
					return err
				}
				by, err := cli.Actor(ctx, b.Pool, b.Keys, b.Now())
				if err != nil {
					return err
				}
				client, err := b.KafkaConfig().Client()
				if err != nil {
					return err
				}
				defer client.Close()
				topic := b.KafkaConfig().Prefix + schemas.Disbursement.Events
				spans, err := kafka.Bounds(ctx, kadm.NewClient(client), topic)
				if err != nil {
					return err
				}
				next, records := map[int32]int64{}, int64(0)
				for partition, span := range spans {
					next[partition] = span.From
					records += span.To - span.From
				}
				if err := disbursements.NewStore(b.Pool, b.Codec).Empty(ctx, by, b.Now(), topic, next); err != nil {
					return err
				}
				return m.Show(render.Object{"topic", topic, "partitions", len(next), "offsets", records}, func(p *render.Page) {
					p.Say("The tables of batches are empty. The sink readmodel reads %s of %s again; `quittance readmodel verify` says whether all is there.", render.Counted(records, "offset"), topic)
				})
			})
		},
	}
}

func rebuildStores() cli.Command {
	var yes bool
	processors := roles.Names(roles.OfKind(roles.KindProcessor))
	return cli.Command{
		Use: "stores [PROCESSOR]", Short: "Remove the local stores of a processor's instance; it restores them from Kafka", JSON: "what was removed",
		Args: cobra.MaximumNArgs(1), Valid: processors, Examples: []string{"rebuild stores --instance 1"},
		Flags: func(f *pflag.FlagSet, m *cli.Meta) {
			cli.YesFlag(f, &yes)
			m.StoreFlags(f)
		},
		Check: cli.Quiet,
		Run: func(_ context.Context, m *cli.Meta) error {
			processor := m.Argument(processors[0])
			if !slices.Contains(processors, processor) {
				return cli.Usage("no processor is called %q; there are %s", processor, strings.Join(processors, ", "))
			}
			if err := m.CheckInstance(); err != nil {
				return err
			}
			folder := m.StoreFolder(processor)
			if err := m.Agree(yes, fmt.Sprintf(storesPlan, processor, m.Instance, folder)); err != nil {
				return err
			}
			n, err := m.RemoveStores(processor)
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%w; name the folder of the instance with --store, or the folder above it with --data", err)
			}
			if err != nil {
				return fmt.Errorf("%w; stop `quittance processor %s --instance %s` first", err, processor, m.Instance)
			}
			return m.Show(render.Object{"processor", processor, "instance", m.Instance, "folder", folder, "partitions", n}, func(p *render.Page) {
				p.Say("Removed the local stores of %s in %s. Start the processor: /readyz answers 200 when they are restored.", render.Counted(n, "partition"), folder)
			})
		},
	}
}

// sums are the sums of a source and its copy.
type sums struct {
	name string // in JSON, with _ for a space
	by   string // STATUS; MOVEMENT of receipts; STATE of expected money
	of   string // EVENTS, RECEIPTS or ROWS
	line []tally.Line
}

// setAside is the count of records that a rebuild could not read or keep. The sums do not have
// them, neither of the source nor of the copy.
const setAside = "unreadable"

// showRebuilt prints what was done and the sums of source and copy. Different sums, and records
// that were set aside, are an error.
func showRebuilt(m *cli.Meta, what string, all []sums, done []counted) error {
	equal := !slices.ContainsFunc(all, func(s sums) bool { return !tally.Equal(s.line) })
	j := render.Object{"rebuilt", what, "equal", equal}
	for _, c := range done {
		j = append(j, c.name, c.n)
	}
	for _, s := range all {
		lines := make([]render.Object, len(s.line))
		for i, l := range s.line {
			lines[i] = render.Object{"mode", registry.Mode(l.Live), "currency", l.Currency, strings.ToLower(s.by), l.Status, "kafka", countJSON(l.Source), what, countJSON(l.Copy)}
		}
		j = append(j, strings.ReplaceAll(s.name, " ", "_"), lines)
	}
	err := m.Show(j, func(p *render.Page) {
		for _, c := range done {
			if c.n > 0 || c.name == "events" {
				p.Say("%d %s.", c.n, c.what)
			}
		}
		for _, s := range all {
			p.Say("The %s in Kafka and, if they differ, in the %s:", s.name, what)
			p.Table("There are none.", "MODE,CURRENCY,"+s.by+",SESSIONS,"+s.of+",AMOUNT,", s.rows())
		}
	})
	if aside := slices.IndexFunc(done, func(c counted) bool { return c.name == setAside && c.n > 0 }); err == nil && aside >= 0 {
		return fmt.Errorf("%s set aside, and what they tell is missing from the %s; the poison topic has each with its reason, and a later release may read it", render.CountedIs(done[aside].n, "record"), what)
	}
	if err == nil && !equal {
		err = errors.New("the sums of Kafka and of the " + what + " differ; run the command again, and if they still differ look into the poison topic and for rows that do not come from this installation")
	}
	return err
}

// rows returns the rows of a table.
func (s sums) rows() [][]any {
	rows := make([][]any, len(s.line))
	for i, l := range s.line {
		mark := "equal"
		if !l.Equal() {
			mark = "DIFFERENT"
		}
		sessions := "-" // the journal's sums are of events only
		if l.Source.Sessions+l.Copy.Sessions > 0 {
			sessions = sides(l.Source.Sessions, l.Copy.Sessions)
		}
		rows[i] = []any{registry.Mode(l.Live), render.OrDash(l.Currency), render.OrDash(l.Status), sessions, sides(l.Source.Events, l.Copy.Events), sides(l.Source.Amount, l.Copy.Amount), mark}
	}
	return rows
}

func countJSON(c tally.Count) render.Object {
	return render.Object{"sessions", c.Sessions, "events", c.Events, "amount", c.Amount}
}

// sides returns one number, or both if they differ.
func sides(source, duplicate int64) string {
	if source == duplicate {
		return fmt.Sprint(source)
	}
	return fmt.Sprintf("%d / %d", source, duplicate)
}
