package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/pflag"

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
	redelivery   string
	notes        io.Writer
}

// counted is a number of records or deliveries, and what it means.
type counted struct {
	name string
	n    int64
	what string
}

func replay() Command {
	r := &replayer{}
	var since, until string
	topics := slices.Sorted(maps.Keys(replayable()))
	return Command{
		Use: "replay TOPIC", Short: "Read a range of a topic again into a sink: what is missing there is made, nothing is doubled", JSON: "what was done",
		Examples: []string{"replay webhooks --to webhook --since 2026-03-01 --dry-run", "replay checkout.events --to readmodel --since 3d"},
		Missing:  "say which topic: " + strings.Join(topics, ", "), Valid: topics,
		Flags: func(f *pflag.FlagSet, _ *Meta) {
			f.StringVar(&since, "since", "", "records written from then on: "+momentForms)
			f.StringVar(&until, "until", "", "records written before then; now when not given")
			takesChoice(f, &r.sink, "to", append(roles.DeliveryKinds(nil).Names(nil), "readmodel", "journal"), "the sink: ")
			f.BoolVar(&r.dryRun, "dry-run", false, "change nothing, only say what would be done")
			f.StringVar(&r.endpoint, "endpoint", "", "only for this webhook endpoint or ERP")
			f.StringVar(&r.redelivery, "redelivery", "", "send the webhooks that one endpoint has accepted once more, under this name: the same name sends nothing twice")
			f.StringVar(&r.redelivery, "again", "", "")
			_ = f.MarkHidden("again") // the name of --redelivery in the first release
		},
		Check: func(m *Meta) (err error) {
			r.topic, r.notes = m.args[0], m.Err
			if err := r.check(); err != nil {
				return err
			}
			// The broker's records carry the machine's time, also where the service's
			// clock was moved.
			r.since, r.until, err = span(since, until, time.Now().Truncate(time.Millisecond))
			if !m.cmd.Flags().Changed("log") {
				m.LogLevel = "error"
			}
			return err
		},
		Run: func(ctx context.Context, m *Meta) error {
			done, err := r.run(ctx, m)
			if err != nil {
				return err
			}
			return r.show(m, done)
		},
	}
}

// check refuses a replay that would double effects, and flags that make no sense.
func (r *replayer) check() error {
	kinds := roles.DeliveryKinds(nil)
	kind, unknown := kinds.Of(deliveries.Kind(r.sink))
	sinks, ok := replayable()[r.topic]
	if why, never := notReplayable[r.topic]; never {
		return fmt.Errorf("%s is not replayed: %s", r.topic, why)
	}
	switch {
	case !ok:
		return usage("no topic is called %q; those that can be replayed are %s", r.topic, strings.Join(slices.Sorted(maps.Keys(replayable())), ", "))
	case r.sink == "":
		return usage("--to: say into which sink; %s goes to %s", r.topic, strings.Join(sinks, " or "))
	case !slices.Contains(sinks, r.sink):
		return usage("--to %q: %s goes to %s", r.sink, r.topic, strings.Join(sinks, " or "))
	case r.endpoint != "" && unknown != nil:
		return usage("--endpoint: is for --to %s", strings.Join(kinds.Names(nil), " and --to "))
	case r.redelivery != "" && !kind.Redelivers:
		return usage("--redelivery: is for --to %s alone; a payment that an ERP has accepted is not confirmed to it twice",
			strings.Join(kinds.Names(func(k deliveries.Registration) bool { return k.Redelivers }), ", "))
	case r.redelivery != "" && r.endpoint == "":
		return usage("--redelivery: say for which endpoint with --endpoint; all endpoints together cannot be sent again what they have accepted")
	}
	return nil
}

// run opens what the sink needs and replays.
func (r *replayer) run(ctx context.Context, m *Meta) ([]counted, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b, err := roles.Open(ctx, m.Settings, m.Log)
	if err != nil {
		return nil, err
	}
	done, err := r.into(ctx, b)
	err = inWords(err)
	cancel()
	_ = b.Wait() // the parts that were followed meanwhile
	return done, err
}

func (r *replayer) into(ctx context.Context, b *roles.Base) ([]counted, error) {
	switch r.sink {
	case "readmodel":
		if err := b.OpenPostgres(); err != nil {
			return nil, err
		}
		sink, err := sinkreadmodel.New(sinkreadmodel.Config{Kafka: b.KafkaConfig(), Codec: b.Codec, Store: sessions.NewStore(b.Pool), Log: b.Log})
		if err != nil {
			return nil, err
		}
		got, err := sink.Replay(ctx, r.topic, r.since, r.until, r.dryRun, r.progress())
		return []counted{
			{"events", got.Events, "applied again; a session that stands at a later event stays as it is"},
			{"unreadable", got.Unreadable, "cannot be decoded"},
		}, err
	case "journal":
		conn, err := b.OpenClickHouse()
		if err != nil {
			return nil, err
		}
		sink, err := sinkjournal.New(sinkjournal.Config{Kafka: b.KafkaConfig(), Codec: b.Codec, Store: journal.NewStore(conn), Log: b.Log, Metrics: b.Metrics})
		if err != nil {
			return nil, err
		}
		got, err := sink.Replay(ctx, r.topic, r.since, r.until, r.dryRun, r.progress())
		return []counted{
			{"entries", got.Entries, "written again; the same record makes the same entry, of which queries see one"},
			{"unreadable", got.Unreadable, "cannot be decoded"},
		}, err
	}
	return r.deliveries(ctx, b, deliveries.Kind(r.sink))
}

// deliveries makes those that are missing.
func (r *replayer) deliveries(ctx context.Context, b *roles.Base, kind deliveries.Kind) ([]counted, error) {
	if err := b.OpenRegistry(); err != nil {
		return nil, err
	}
	cfg := deliveries.Replay{
		Kafka: b.KafkaConfig(), Codec: b.Codec, Kind: kind, Since: r.since, Until: r.until, Now: b.Now, Redelivery: r.redelivery, DryRun: r.dryRun, Progress: r.progress(),
	}
	if r.endpoint != "" {
		d, err := (&Meta{Settings: b.Settings, pool: b.Pool, now: b.Now()}).readDestination(ctx, "--endpoint", r.endpoint)
		switch {
		case err != nil:
			return nil, err
		case d.Kind != kind:
			return nil, fmt.Errorf("--endpoint: %s is no %s destination", d.Name, kind)
		}
		cfg.Only = d.ID
	}
	got, err := deliveries.NewStore(b.Pool, roles.DeliveryKinds(b.Registry)).Replay(ctx, operator(), cfg)
	return []counted{
		{"events", got.Events, "read"},
		{"unaddressed", got.Unaddressed, "go nowhere, as configured now"},
		{"made", got.Made, "deliveries are missing and become due"},
		{"accepted", got.Accepted, "were accepted and are left alone"},
		{"scheduled", got.Scheduled, "wait for their next attempt and are left alone"},
		{"parked", got.Parked, "wait for a person or are exhausted; `quittance endpoints recover` or `quittance deliveries retry` sends them"},
		{"under_way", got.UnderWay, "are under way"},
		{"unreadable", got.Unreadable, "cannot be decoded"},
	}, err
}

// progress tells how far it is, once a second.
func (r *replayer) progress() func(done, total int64) {
	tell := progress(r.notes)
	return func(done, total int64) { tell(int(done), int(total)) }
}

// show prints what was done.
func (r *replayer) show(m *Meta, done []counted) error {
	j := map[string]any{"topic": r.topic, "sink": r.sink, "since": r.since, "until": r.until, "dry_run": r.dryRun}
	for _, c := range done {
		j[c.name] = c.n
	}
	return m.show(j, func(p *page) {
		did := "Replayed"
		if r.dryRun {
			did = "Dry run, nothing was changed:"
		}
		p.say("%s %s into %s, records from %s to %s.\n", did, r.topic, r.sink, moment(r.since), moment(r.until))
		w := tabwriter.NewWriter(p, 0, 0, 2, ' ', tabwriter.AlignRight)
		for i, c := range done {
			if i == 0 || c.n > 0 {
				_, _ = fmt.Fprintf(w, "%d\t  %s\n", c.n, c.what)
			}
		}
		_ = w.Flush() // writes to a buffer
	})
}
