package replay

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

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/render"
	"quittance/cmd/internal/roles"
	"quittance/internal/deliveries"
	"quittance/internal/journal"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/internal/sessions"
	"quittance/schemas"
	sinkjournal "quittance/sinks/journal"
	sinkreadmodel "quittance/sinks/readmodel"
)

// replayable returns the topics that can be replayed, with the sinks of each.
func replayable() map[string][]string {
	out := map[string][]string{
		schemas.TopicEvents:          {"readmodel", "journal"},
		schemas.TopicAttempts:        {"journal"},
		schemas.TopicCalls:           {"journal"},
		schemas.TopicCases:           {"journal"},
		schemas.TopicStatements:      {"journal"},
		schemas.TopicReconciliation:  {"journal"},
		schemas.Disbursement.Events:  {"journal"},
		schemas.TopicPoisonReadmodel: {"readmodel"},
		schemas.TopicPoisonJournal:   {"journal"},
	}
	for _, kind := range roles.DeliveryKinds(nil) {
		for _, topic := range kind.Planned() {
			out[topic] = append(out[topic], string(kind.Kind))
		}
		if kind.Confirms {
			out[schemas.TopicEvents] = append(out[schemas.TopicEvents], string(kind.Kind))
		}
	}
	return out
}

// notReplayable has the reason why each other topic cannot be replayed, and what to do
// instead.
var notReplayable = map[string]string{
	schemas.TopicCommands:           "its commands are decided already; the processors read the topic themselves and skip decided commands",
	schemas.TopicState:              "it is the processors' own state, which they restore when they start",
	schemas.TopicERPQueries:         "no page waits for the answers any more",
	schemas.TopicERPAnswers:         "no page waits for these answers any more",
	schemas.TopicReplies:            "no request waits for these answers any more",
	schemas.TopicReferences:         "its last values are the highest leased references, which the leases read themselves",
	schemas.TopicAudit:              "it only proves what Postgres has; `quittance audit verify` compares the two",
	schemas.TopicCollections:        "it would ask payers for money again; the processors ask operators about undecided collections automatically",
	schemas.TopicWebhooksDeliveries: "it would send accepted webhooks again; replay webhooks --to webhook makes missing deliveries, and `quittance endpoints recover` sends those that were not accepted",
	schemas.TopicPartnersDeliveries: "it would send accepted webhooks again; replay cashin.webhooks --to cashin makes missing deliveries, and `quittance endpoints recover` sends those that were not accepted",
	schemas.TopicERPDeliveries:      "it would send accepted confirmations again; replay erp.confirmations --to erp makes missing deliveries, and `quittance endpoints recover` sends those that were not accepted",
	schemas.TopicMessagesDeliveries: "it would send accepted messages again; replay notifications --to notify makes missing deliveries",
	schemas.TopicPoisonCommands:     "these commands would break the same invariant again; the processors ask operators about undecided collections automatically",
	schemas.TopicPoisonCollections:  "it could ask payers for money again; the processors ask operators about undecided collections automatically",
	schemas.Disbursement.Commands:   "its commands are decided already; the processor reads the topic itself and skips decided commands",
	schemas.Disbursement.State:      "it is the processor's own state, which it restores when it starts",
	schemas.Disbursement.Replies:    "no request waits for these answers any more",
	schemas.Disbursement.Poison:     "these commands would break the same invariant again; the processor asks operators about undecided attempts automatically",
	schemas.TopicPayouts:            "the processor asks operators about undecided attempts automatically, and requests again what they do not know",
	schemas.TopicPayoutCalls:        "no sink reads it",
	schemas.TopicPoisonBatches:      "mend what kept the event out, stop the sink readmodel, empty the table disbursement_positions, and start it: it reads all events of batches again, and rows of later events stay",
	schemas.TopicPoisonPayouts:      "the processor asks operators about undecided attempts automatically, and requests again what they do not know",
	schemas.TopicPoisonCases:        "a rebuild of the cases reads checkout.events and cases.events again: stop the sink, empty the tables cases and case_positions, and start it",
	schemas.TopicPoisonDeliveries:   "other topics have the same events; replay webhooks --to webhook, cashin.webhooks --to cashin or erp.confirmations --to erp makes missing deliveries",
}

// replayer runs `quittance replay`.
type replayer struct {
	topic, sink string
	sinceText   string
	untilText   string
	dryRun      bool
	endpoint    string
	redelivery  string
	// order, session and eventID select some events of deliveries.
	order, session, eventID string
	notes                   io.Writer

	// since and until are times of the service, from and to those of the records.
	since, until, from, to time.Time
}

// counted is a number of records or deliveries and its description.
type counted struct {
	name string
	n    int64
	what string
}

// Replay returns the command `replay`.
func Replay() cli.Command {
	r := &replayer{}
	topics := slices.Sorted(maps.Keys(replayable()))
	return cli.Command{
		Use: "replay TOPIC", Short: "Read a range of a topic again into a sink, which makes what is missing and nothing twice", JSON: "what was done",
		Examples: []string{"replay webhooks --to webhook --since 2026-03-01 --dry-run", "replay checkout.events --to readmodel --since 3d", "replay erp.confirmations --to erp --since 3d --order DOSSIER-17"},
		Missing:  "say which topic: " + strings.Join(topics, ", "), Valid: topics,
		Flags: func(f *pflag.FlagSet, m *cli.Meta) {
			unprovenFlag(f, m)
			f.StringVar(&r.sinceText, "since", "", "records written at or after this time of the service's clock: "+cli.MomentForms)
			f.StringVar(&r.untilText, "until", "", "records written before this time; now when not given")
			cli.TakesChoice(f, &r.sink, "to", append(roles.DeliveryKinds(nil).Names(nil), "readmodel", "journal"), "the sink: ")
			f.BoolVar(&r.dryRun, "dry-run", false, "change nothing, only print what would be done")
			f.StringVar(&r.endpoint, "endpoint", "", "only for this webhook endpoint or ERP")
			f.StringVar(&r.order, "order", "", "only events of the sessions of this order, of any application")
			f.StringVar(&r.session, "session", "", "only events of this session, chs_…")
			f.StringVar(&r.eventID, "event-id", "", "only this event, evt_…; of a confirmation its transaction_id")
			f.StringVar(&r.redelivery, "redelivery", "", "send the webhooks that one endpoint has accepted once more, under this name; a second run with the same name sends nothing again")
			f.StringVar(&r.redelivery, "again", "", "")
			_ = f.MarkHidden("again") // the first release's name of --redelivery
		},
		Check: func(m *cli.Meta) error {
			r.topic, r.notes = m.Args[0], m.Err
			if err := r.check(); err != nil {
				return err
			}
			return cli.Quiet(m)
		},
		Run: func(ctx context.Context, m *cli.Meta) error {
			done, err := r.run(ctx, m)
			if err != nil {
				return r.brokenOff(m, err, done)
			}
			return r.show(m, done)
		},
	}
}

// brokenOff adds to an error what was done before it. The same replay once more does the rest, and nothing twice.
func (r *replayer) brokenOff(m *cli.Meta, err error, done []counted) error {
	changes := map[string]string{"made": "deliveries became due", "entries": "entries were written again"}
	if r.sink == "readmodel" {
		changes["events"] = "events were applied again"
	}
	for _, c := range done {
		if did := changes[c.name]; did != "" && c.n > 0 && !r.dryRun {
			return fmt.Errorf("%w; before that, %d %s: give the command again for the others", m.InWords(err), c.n, did)
		}
	}
	return err
}

// check refuses a replay that would repeat effects, and invalid flags.
func (r *replayer) check() error {
	kinds := roles.DeliveryKinds(nil)
	kind, unknown := kinds.Of(deliveries.Kind(r.sink))
	sinks, ok := replayable()[r.topic]
	if why, never := notReplayable[r.topic]; never {
		return fmt.Errorf("%s is not replayed: %s", r.topic, why)
	}
	switch {
	case !ok:
		return cli.Usage("no topic is called %q; those that can be replayed are %s", r.topic, strings.Join(slices.Sorted(maps.Keys(replayable())), ", "))
	case r.sink == "":
		return cli.Usage("--to: give the sink; %s goes to %s", r.topic, strings.Join(sinks, " or "))
	case !slices.Contains(sinks, r.sink):
		return cli.Usage("--to %q: %s goes to %s", r.sink, r.topic, strings.Join(sinks, " or "))
	case r.endpoint != "" && unknown != nil:
		return cli.Usage("--endpoint: is for --to %s", strings.Join(kinds.Names(nil), " and --to "))
	case r.order+r.session+r.eventID != "" && unknown != nil:
		return cli.Usage("--order, --session and --event-id: are for --to %s; the other sinks write the same again, so that a range of time is enough", strings.Join(kinds.Names(nil), " and --to "))
	case r.order != "" && r.session != "":
		return cli.Usage("give either --order or --session")
	case r.redelivery != "" && !kind.Redelivers:
		return cli.Usage("--redelivery: is for --to %s only; a payment that an ERP has accepted is not confirmed to it twice",
			strings.Join(kinds.Names(func(k deliveries.Registration) bool { return k.Redelivers }), ", "))
	case r.redelivery != "" && r.endpoint == "":
		return cli.Usage("--redelivery: give the endpoint with --endpoint; accepted webhooks are sent again to one endpoint only")
	case r.sinceText == "":
		return cli.Usage("--since: give the start: %s", cli.MomentForms)
	}
	if _, err := cli.MomentOf("since", r.sinceText, time.Time{}); err != nil {
		return err
	}
	_, err := cli.MomentOf("until", r.untilText, time.Time{})
	return err
}

// span sets the range of the replay: the times that the operator means, which are those of
// the service's clock, and those of the records, which the machine's clock has written.
func (r *replayer) span(ctx context.Context, b *roles.Base) (err error) {
	if r.since, r.until, err = cli.Span(r.sinceText, r.untilText, b.Now().Truncate(time.Millisecond)); err != nil {
		return err
	}
	if r.from, err = b.Machine(ctx, r.since); err != nil {
		return err
	}
	r.to, err = b.Machine(ctx, r.until)
	return err
}

// run opens what the sink needs and replays.
func (r *replayer) run(ctx context.Context, m *cli.Meta) (done []counted, err error) {
	err = m.WithBase(ctx, m.Log, func(ctx context.Context, b *roles.Base) error {
		done, err = r.into(ctx, b)
		return err
	})
	return done, err
}

func (r *replayer) into(ctx context.Context, b *roles.Base) ([]counted, error) {
	if err := r.span(ctx, b); err != nil {
		return nil, err
	}
	switch r.sink {
	case "readmodel":
		if err := b.OpenPostgres(); err != nil {
			return nil, err
		}
		sink, err := sinkreadmodel.New(sinkreadmodel.Config{Kafka: b.KafkaConfig(), Codec: b.Codec, Store: sessions.NewStore(b.Pool), Log: b.Log})
		if err != nil {
			return nil, err
		}
		if err := r.noted(ctx, b); err != nil {
			return nil, err
		}
		got, err := sink.Replay(ctx, r.topic, r.from, r.to, r.dryRun, r.progress())
		return []counted{
			{"events", got.Events, "applied again; a session that already has a later event does not change"},
			{"unreadable", got.Unreadable, "cannot be decoded"},
		}, err
	case "journal":
		conn, err := b.OpenClickHouse()
		if err != nil {
			return nil, err
		}
		outcomes, err := believed(b)
		if err != nil {
			return nil, err
		}
		proof, err := believedCases(b)
		if err != nil {
			return nil, err
		}
		sink, err := sinkjournal.New(sinkjournal.Config{Kafka: b.KafkaConfig(), Codec: b.Codec, Store: journal.NewStore(conn), Outcomes: outcomes, Cases: proof, Log: b.Log, Metrics: b.Metrics})
		if err != nil {
			return nil, err
		}
		if err := b.OpenPostgres(); err != nil {
			return nil, err
		}
		if err := r.noted(ctx, b); err != nil {
			return nil, err
		}
		got, err := sink.Replay(ctx, r.topic, r.from, r.to, r.dryRun, r.progress())
		return []counted{
			{"entries", got.Entries, "written again; the same record makes the same entry, which queries see once"},
			{"unreadable", got.Unreadable, "cannot be decoded, or are outcomes of deliveries without a proof"},
		}, err
	}
	return r.deliveries(ctx, b, deliveries.Kind(r.sink))
}

// noted writes before a replay into the read model or the journal who asked for it: a replay that is interrupted has changed rows,
// too. Deliveries that become due have rows of their own.
func (r *replayer) noted(ctx context.Context, b *roles.Base) error {
	if r.dryRun {
		return nil
	}
	by, err := cli.Actor(ctx, b.Pool, b.Keys, b.Now())
	if err != nil {
		return err
	}
	return operation.Record(ctx, b.Pool, by, b.Now(), operation.Entry{
		Action: r.sink + ".replay", Subject: r.topic, Detail: map[string]any{"since": r.since.UTC().Format(time.RFC3339Nano), "until": r.until.UTC().Format(time.RFC3339Nano)},
	})
}

// deliveries makes missing deliveries.
func (r *replayer) deliveries(ctx context.Context, b *roles.Base, kind deliveries.Kind) ([]counted, error) {
	if err := b.OpenRegistry(); err != nil {
		return nil, err
	}
	bodies, err := b.Keys.MACs(secret.LabelWebhookBodies)
	if err != nil {
		return nil, err
	}
	cfg := deliveries.Replay{
		Kafka: b.KafkaConfig(), Codec: b.Codec, Kind: kind, Since: r.from, Until: r.to, Now: b.Now,
		FromEvents: r.topic == schemas.TopicEvents, Source: r.source(), Redelivery: r.redelivery, Bodies: bodies, DryRun: r.dryRun, Progress: r.progress(),
	}
	m := &cli.Meta{Settings: b.Settings, Pool: b.Pool, Now: b.Now()}
	dir, err := registry.ReadDirectory(ctx, b.Pool, b.SimulatorURL, m.Now)
	if err != nil {
		return nil, err
	}
	cfg.EventID = r.eventID
	if cfg.SessionIDs, err = access.Sessions(ctx, b.Pool, dir, r.session, r.order, ""); err != nil {
		return nil, err
	}
	if r.endpoint != "" {
		d, err := access.ReadDestination(ctx, m, "--endpoint", r.endpoint)
		switch {
		case err != nil:
			return nil, err
		case d.Kind != kind:
			return nil, fmt.Errorf("--endpoint: %s is no %s destination", d.Name, kind)
		}
		cfg.Only = d.ID
	}
	by, err := cli.Actor(ctx, b.Pool, b.Keys, m.Now)
	if err != nil {
		return nil, err
	}
	got, err := deliveries.NewStore(b.Pool, roles.DeliveryKinds(b.Registry)).Replay(ctx, by, cfg)
	return []counted{
		{"events", got.Events, "read"},
		{"unaddressed", got.Unaddressed, "have no destination in the present configuration"},
		{"reversed", got.Reversed, "were given back since and are not confirmed"},
		{"made", got.Made, "deliveries are missing and become due"},
		{"accepted", got.Accepted, "were accepted and stay as they are"},
		{"scheduled", got.Scheduled, "wait for their next attempt and stay as they are"},
		{"parked", got.Parked, "need an operator or are exhausted; `quittance endpoints recover` or `quittance deliveries retry` sends them"},
		{"superseded", got.Superseded, "are older than an accepted webhook of the same payment and are not sent"},
		{"forgotten", got.Forgotten, fmt.Sprintf("are of events of more than %d days ago: nobody knows any more whether they were accepted; only --redelivery sends them", deliveries.KeepDays)},
		{"under_way", got.UnderWay, "are being sent"},
		{"unreadable", got.Unreadable, "cannot be decoded"},
	}, err
}

// source returns the topic if it is one of events of which a kind of deliveries makes its notifications.
func (r *replayer) source() string {
	for _, kind := range roles.DeliveryKinds(nil) {
		if string(kind.Kind) == r.sink && r.topic != kind.Notifications && slices.Contains(kind.Planned(), r.topic) {
			return r.topic
		}
	}
	return ""
}

// progress prints the progress once a second.
func (r *replayer) progress() func(done, total int64) {
	report := cli.Progress(r.notes)
	return func(done, total int64) { report(int(done), int(total)) }
}

// show prints what was done.
func (r *replayer) show(m *cli.Meta, done []counted) error {
	j := render.Object{"topic", r.topic, "sink", r.sink, "since", r.since, "until", r.until, "dry_run", r.dryRun}
	for _, c := range done {
		j = append(j, c.name, c.n)
	}
	return m.Show(j, func(p *render.Page) {
		did := "Replayed"
		if r.dryRun {
			did = "Dry run, nothing was changed:"
		}
		p.Say("%s %s into %s, records from %s to %s.\n", did, r.topic, r.sink, render.Moment(r.since), render.Moment(r.until))
		w := tabwriter.NewWriter(p, 0, 0, 2, ' ', tabwriter.AlignRight)
		for i, c := range done {
			if i == 0 || c.n > 0 {
				_, _ = fmt.Fprintf(w, "%d\t  %s\n", c.n, c.what)
			}
		}
		_ = w.Flush() // writes to a buffer
	})
}
