package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"quittance/cmd/internal/roles"
	"quittance/internal/deliveries"
	"quittance/internal/journal"
	"quittance/internal/sessions"
	"quittance/schemas"
	sinkjournal "quittance/sinks/journal"
	sinkreadmodel "quittance/sinks/readmodel"
)

// replayable says which topics can be read again into which sinks.
func replayable() map[string][]string {
	out := map[string][]string{
		schemas.TopicEvents:          {"readmodel", "journal"},
		schemas.TopicAttempts:        {"journal"},
		schemas.TopicPoisonReadmodel: {"readmodel"},
		schemas.TopicPoisonJournal:   {"journal"},
	}
	for _, kind := range roles.DeliveryKinds(nil) {
		out[kind.Notifications] = append(out[kind.Notifications], string(kind.Kind))
	}
	return out
}

// notReplayable says why the others cannot, and what to do instead.
var notReplayable = map[string]string{
	schemas.TopicCommands:           "it would decide again what was decided; the processors read it themselves, and skip what they have done",
	schemas.TopicState:              "it is the processors' own state; they restore from it when they start",
	schemas.TopicReplies:            "nobody waits for these answers any more",
	schemas.TopicCollections:        "it would ask payers for money again; the processors ask operators about what is undecided by themselves",
	schemas.TopicWebhooksDeliveries: "it would send again what was accepted; replay webhooks --to webhook makes what is missing, `quittance endpoints recover` sends what was not accepted",
	schemas.TopicERPDeliveries:      "it would confirm again what was accepted; replay erp.confirmations --to erp makes what is missing, `quittance endpoints recover` sends what was not accepted",
	schemas.TopicPoisonCommands:     "what broke an invariant would break it again; what it was about is asked of the operators by the processors themselves",
	schemas.TopicPoisonCollections:  "it could ask payers for money again; the processors ask operators about what is undecided by themselves",
	schemas.TopicPoisonDeliveries:   "what it holds stands on other topics too; replay webhooks --to webhook or erp.confirmations --to erp makes what is missing",
}

// replayer is a `quittance replay`.
type replayer struct {
	topic, sink  string
	since, until time.Time
	dryRun       bool
	endpoint     string
	again        string
	out, notes   io.Writer
}

// replayed is what came of it: what is counted, in order, with what it means.
type replayed struct {
	counts []counted
	// Until is where the range ended, for a repetition with the same one.
	until time.Time
}

type counted struct {
	name string
	n    int64
	what string
}

func (p Program) replay() *cobra.Command {
	m := p.meta()
	r := &replayer{}
	var since, until string
	var asJSON bool
	cmd := command("replay TOPIC", "Read a range of a topic again into a sink: what is missing there is made, nothing is doubled", m, func(cmd *cobra.Command, args []string) error {
		r.topic, r.out, r.notes = args[0], cmd.OutOrStdout(), cmd.ErrOrStderr()
		if err := r.check(); err != nil {
			return err
		}
		// The broker's records carry the machine's time, also where the service's
		// clock was moved.
		now := time.Now().Truncate(time.Millisecond)
		var err error
		if r.since, err = momentOf("since", since, now); err != nil {
			return err
		}
		if r.until, err = momentOf("until", until, now); err != nil {
			return err
		}
		switch {
		case since == "":
			return errors.New("--since: say from when on: a time such as 2026-03-01T12:00:00Z, a day, or how long ago, such as 2h")
		case until == "":
			r.until = now.UTC()
		}
		if !r.since.Before(r.until) {
			return errors.New("--until: must be after --since")
		}
		if !cmd.Flags().Changed("log") {
			m.LogLevel = "error"
		}
		done, err := r.run(cmd.Context(), m)
		if err != nil {
			return err
		}
		return r.print(done, asJSON)
	})
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("say which topic: %s", strings.Join(slices.Sorted(maps.Keys(replayable())), ", "))
		}
		return nil
	}
	fl := cmd.Flags()
	fl.StringVar(&since, "since", "", "records written from then on: a time such as 2026-03-01T12:00:00Z, a day, or how long ago, such as 2h")
	fl.StringVar(&until, "until", "", "records written before then; now when not given")
	fl.StringVar(&r.sink, "to", "", "the sink: webhook, erp, readmodel or journal")
	fl.BoolVar(&r.dryRun, "dry-run", false, "change nothing, only say what would be done")
	fl.StringVar(&r.endpoint, "endpoint", "", "only for this webhook endpoint or ERP")
	fl.StringVar(&r.again, "again", "", "send one endpoint's accepted webhooks once more, under this word: the same word sends nothing twice")
	fl.BoolVar(&asJSON, "json", false, "print what was done as JSON")
	return cmd
}

// check refuses what would double effects, or means nothing.
func (r *replayer) check() error {
	kinds := roles.DeliveryKinds(nil)
	kind, unknown := kinds.Of(deliveries.Kind(r.sink))
	sinks, ok := replayable()[r.topic]
	if why, never := notReplayable[r.topic]; never {
		return fmt.Errorf("%s is not replayed: %s", r.topic, why)
	}
	switch {
	case !ok:
		return fmt.Errorf("no topic is called %q; those that can be replayed are %s", r.topic, strings.Join(slices.Sorted(maps.Keys(replayable())), ", "))
	case r.sink == "":
		return fmt.Errorf("--to: say into which sink; %s goes to %s", r.topic, strings.Join(sinks, " or "))
	case !slices.Contains(sinks, r.sink):
		return fmt.Errorf("--to %q: %s goes to %s", r.sink, r.topic, strings.Join(sinks, " or "))
	case r.endpoint != "" && unknown != nil:
		return errors.New("--endpoint: is for --to " + strings.Join(kinds.Names(nil), " and --to "))
	case r.again != "" && !kind.Redelivers:
		return errors.New("--again: is for --to " + strings.Join(kinds.Names(func(k deliveries.Registration) bool { return k.Redelivers }), ", ") + " alone; a payment that an ERP has accepted is not confirmed to it twice")
	case r.again != "" && r.endpoint == "":
		return errors.New("--again: say for which one with --endpoint; sending to all what they have accepted helps nobody")
	}
	return nil
}

// run opens what the sink needs and replays.
func (r *replayer) run(ctx context.Context, m *meta) (replayed, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := m.locate(); err != nil {
		return replayed{}, err
	}
	log, err := m.Logger(r.notes)
	if err != nil {
		return replayed{}, err
	}
	b, err := roles.Open(ctx, m.Settings, log)
	if err != nil {
		return replayed{}, err
	}
	done, err := r.into(ctx, b)
	err = inWords(err)
	cancel()
	_ = b.Wait() // the parts that were followed meanwhile
	done.until = r.until
	return done, err
}

func (r *replayer) into(ctx context.Context, b *roles.Base) (replayed, error) {
	if kind, err := roles.DeliveryKinds(nil).Of(deliveries.Kind(r.sink)); err == nil {
		return r.deliveries(ctx, b, kind.Kind)
	}
	switch r.sink {
	case "readmodel":
		if err := b.OpenPostgres(); err != nil {
			return replayed{}, err
		}
		sink, err := sinkreadmodel.New(sinkreadmodel.Config{Kafka: b.KafkaConfig(), Codec: b.Codec, Store: sessions.NewStore(b.Pool), Log: b.Log})
		if err != nil {
			return replayed{}, err
		}
		got, err := sink.Replay(ctx, r.topic, r.since, r.until, r.dryRun, r.progress())
		return replayed{counts: []counted{
			{"events", got.Events, "applied again; a session that stands at a later event stays as it is"},
			{"unreadable", got.Unreadable, "cannot be decoded"},
		}}, err
	default:
		return r.journal(ctx, b)
	}
}

func (r *replayer) journal(ctx context.Context, b *roles.Base) (replayed, error) {
	conn, err := b.OpenClickHouse()
	if err != nil {
		return replayed{}, err
	}
	sink, err := sinkjournal.New(sinkjournal.Config{Kafka: b.KafkaConfig(), Codec: b.Codec, Store: journal.NewStore(conn), Log: b.Log, Metrics: b.Metrics})
	if err != nil {
		return replayed{}, err
	}
	got, err := sink.Replay(ctx, r.topic, r.since, r.until, r.dryRun, r.progress())
	return replayed{counts: []counted{
		{"entries", got.Entries, "written again; the same record makes the same entry, of which queries see one"},
		{"unreadable", got.Unreadable, "cannot be decoded"},
	}}, err
}

// deliveries makes those that are missing.
func (r *replayer) deliveries(ctx context.Context, b *roles.Base, kind deliveries.Kind) (replayed, error) {
	if err := b.OpenRegistry(); err != nil {
		return replayed{}, err
	}
	cfg := deliveries.Replay{
		Kafka: b.KafkaConfig(), Codec: b.Codec, Kind: kind, Since: r.since, Until: r.until, Now: b.Now, Redelivery: r.again, DryRun: r.dryRun, Progress: r.progress(),
	}
	if r.endpoint != "" {
		d, err := readDestination(ctx, b.Pool, b.Settings, r.endpoint, b.Now())
		switch {
		case err != nil:
			return replayed{}, fmt.Errorf("--endpoint: %w", err)
		case d.kind != kind:
			return replayed{}, fmt.Errorf("--endpoint: %s is no %s destination", d.name(), kind)
		}
		cfg.Only = d.id
	}
	got, err := deliveries.NewStore(b.Pool, roles.DeliveryKinds(b.Registry)).Replay(ctx, operator(), cfg)
	return replayed{counts: []counted{
		{"events", got.Events, "read"},
		{"unaddressed", got.Unaddressed, "go nowhere, as configured now"},
		{"made", got.Made, "deliveries are missing and become due"},
		{"accepted", got.Accepted, "were accepted and are left alone"},
		{"scheduled", got.Scheduled, "wait for their next attempt and are left alone"},
		{"parked", got.Parked, "wait for a person or are exhausted; `quittance endpoints recover` or `quittance deliveries retry` sends them"},
		{"under_way", got.UnderWay, "are under way"},
		{"unreadable", got.Unreadable, "cannot be decoded"},
	}}, err
}

// progress tells how far it is, once a second.
func (r *replayer) progress() func(done, total int64) {
	tell := progress(r.notes)
	return func(done, total int64) { tell(int(done), int(total)) }
}

func (r *replayer) print(done replayed, asJSON bool) error {
	if asJSON {
		out := map[string]any{"topic": r.topic, "sink": r.sink, "since": r.since, "until": done.until, "dry_run": r.dryRun}
		for _, c := range done.counts {
			out[c.name] = c.n
		}
		return printJSON(r.out, out)
	}
	did := "Replayed"
	if r.dryRun {
		did = "Dry run, nothing was changed:"
	}
	_, _ = fmt.Fprintf(r.out, "%s %s into %s, records from %s to %s.\n\n", did, r.topic, r.sink, moment(r.since), moment(done.until))
	table := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for i, c := range done.counts {
		if i == 0 || c.n > 0 {
			_, _ = fmt.Fprintf(table, "%d\t  %s\n", c.n, c.what)
		}
	}
	return table.Flush()
}
