package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/render"
	"quittance/cmd/internal/roles"
	"quittance/internal/deliveries"
	"quittance/internal/registry"
	"quittance/internal/secret"
)

// redelivery is what `deliveries redeliver` is asked for, and what it has done.
type redelivery struct {
	event, order, session, endpoint string

	name     string // of the redelivery
	filter   deliveries.Filter
	known    map[string]bool // ids of the deliveries before
	retried  []string
	refused  []string
	queued   int64 // on their way already
	replayed deliveries.Replayed
	held     int // wait for the resumption of their endpoints
}

// before is how much earlier than its oldest delivery the first notification of what is sent again may be.
const before = 24 * time.Hour

func redeliver() cli.Command {
	var r redelivery
	return cli.Command{
		Use: "redeliver --event EVENT | --order ORDER | --session SESSION", Short: "Send the webhooks of an event, an order or a session again, also accepted ones", JSON: "what was done", Args: cobra.NoArgs,
		Long:     fmt.Sprintf(`Send the webhooks of one event, or all of an order or a session, again: with the same event id and the same bytes, to the endpoints that take the event now, or to one with --endpoint. A webhook that was accepted is sent once more, as a delivery of its own; one that waits or was given up is due now; one that is being sent stays as it is. No other event is sent. Receivers know the event by its id. A payment that an ERP has accepted is not confirmed again. Events are known for %d days.`, deliveries.KeepDays),
		Examples: []string{"deliveries redeliver --event evt_0000000000000000000000000000", "deliveries redeliver --order DOSSIER-17"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&r.event, "event", "", "the id of the event, evt_…")
			f.StringVar(&r.order, "order", "", "all events of the sessions of this order, of any application")
			f.StringVar(&r.session, "session", "", "all events of this session, chs_…")
			f.StringVar(&r.endpoint, "endpoint", "", "only to this endpoint: the id of a webhook endpoint or of the application of a cash-in partner")
		},
		Check: func(m *cli.Meta) error {
			given := slices.DeleteFunc([]string{r.event, r.order, r.session}, func(s string) bool { return s == "" })
			if len(given) != 1 {
				return cli.Usage("say what to send again: either --event, --order or --session")
			}
			return cli.Quiet(m)
		},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			if err := m.Need("kafka", "schema-registry"); err != nil {
				return err
			}
			if err := r.find(ctx, m); err != nil {
				return err
			}
			err := r.retry(ctx, m)
			if err == nil {
				err = r.replay(ctx, m)
			}
			if err == nil {
				err = r.hold(ctx, m)
			}
			if err != nil {
				return r.brokenOff(m, err)
			}
			return r.show(m)
		},
	}
}

// find sets the filter of the deliveries.
func (r *redelivery) find(ctx context.Context, m *cli.Meta) (err error) {
	dir, err := registry.ReadDirectory(ctx, m.Pool, m.SimulatorURL, m.Now)
	if err != nil {
		return err
	}
	r.filter = deliveries.Filter{EventID: r.event, Limit: 1000, Since: m.Now.AddDate(0, 0, -deliveries.KeepDays)}
	if r.filter.SessionIDs, err = access.Sessions(ctx, m.Pool, dir, r.session, r.order, ""); err != nil || r.endpoint == "" {
		return err
	}
	d, err := access.FindDestination(dir, r.endpoint)
	if err != nil {
		return fmt.Errorf("--endpoint: %w", err)
	}
	if !slices.Contains(redelivered(), d.Kind) {
		return cli.Usage("--endpoint: %s is no endpoint of webhooks", d.Name)
	}
	r.filter.Kind, r.filter.DestinationID = d.Kind, d.ID
	return nil
}

// redelivered are the kinds of webhooks.
func redelivered() (out []deliveries.Kind) {
	for _, k := range roles.DeliveryKinds(nil) {
		if k.Redelivers && k.Plan == nil {
			out = append(out, k.Kind)
		}
	}
	return out
}

// retry makes those deliveries due that wait or were given up.
func (r *redelivery) retry(ctx context.Context, m *cli.Meta) error {
	list, err := access.Deliveries(m).List(ctx, r.filter)
	if err != nil {
		return err
	}
	dir, err := registry.ReadDirectory(ctx, m.Pool, m.SimulatorURL, m.Now)
	if err != nil {
		return err
	}
	sent, since := access.Deliveries(m).Configured(dir), m.Now
	r.known = map[string]bool{}
	for _, d := range list {
		r.known[d.ID] = true
		if d.State == deliveries.StateQueued && slices.Contains(redelivered(), d.Kind) {
			r.queued++
		}
		if d.OccurredAt.Before(since) {
			since = d.OccurredAt
		}
		if !slices.Contains(redelivered(), d.Kind) || !slices.Contains(deliveries.Retryable, d.State) {
			continue
		}
		switch _, err := sent.Retry(ctx, m.By, d.ID, m.Now); {
		case err == nil:
			r.retried = append(r.retried, d.ID)
		case cli.IsRefused(err, ""):
			r.refused = append(r.refused, d.ID+": "+m.Naming(m.InWords(err).Error()))
		default:
			return err
		}
	}
	if len(list) > 0 {
		r.filter.Since = since.Add(-before)
	}
	return nil
}

// replay sends those again that were accepted, and those that were never made.
func (r *redelivery) replay(ctx context.Context, m *cli.Meta) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	r.name = id.String()
	return m.WithBase(ctx, slog.New(slog.DiscardHandler), func(ctx context.Context, b *roles.Base) error {
		if err := b.OpenRegistry(); err != nil {
			return err
		}
		bodies, err := b.Keys.MACs(secret.LabelWebhookBodies)
		if err != nil {
			return err
		}
		from, err := b.Machine(ctx, r.filter.Since)
		if err != nil {
			return err
		}
		until, err := b.Machine(ctx, b.Now().Add(time.Minute))
		if err != nil {
			return err
		}
		for _, of := range r.sources() {
			got, err := deliveries.NewStore(b.Pool, roles.DeliveryKinds(b.Registry)).Replay(ctx, m.By, deliveries.Replay{
				Kafka: b.KafkaConfig(), Codec: b.Codec, Kind: of.kind, Source: of.topic, Since: from, Until: until, Now: b.Now,
				Only: r.filter.DestinationID, SessionIDs: r.filter.SessionIDs, EventID: r.event, Redelivery: r.name, Bodies: bodies,
			})
			if err != nil {
				return err
			}
			r.replayed.Events, r.replayed.Made = r.replayed.Events+got.Events, r.replayed.Made+got.Made
			r.replayed.UnderWay, r.replayed.Superseded = r.replayed.UnderWay+got.UnderWay, r.replayed.Superseded+got.Superseded
			r.replayed.Unaddressed += got.Unaddressed
		}
		return nil
	})
}

// hold counts those deliveries that were made just now and are not sent before their endpoints are resumed.
func (r *redelivery) hold(ctx context.Context, m *cli.Meta) error {
	filter := r.filter
	filter.State = deliveries.StateWaiting
	list, err := access.Deliveries(m).List(ctx, filter)
	for _, d := range list {
		if d.Suspended && !r.known[d.ID] && slices.Contains(redelivered(), d.Kind) {
			r.held++
		}
	}
	return err
}

// brokenOff adds to an error how many deliveries are due already.
func (r *redelivery) brokenOff(m *cli.Meta, err error) error {
	done := len(r.retried) + int(r.replayed.Made)
	if done == 0 {
		return err
	}
	return fmt.Errorf("%w; before that, %s became due", m.InWords(err), render.Counted(done, "delivery"))
}

// source is where the notifications of a kind are: in a topic of events, or, when it is empty, in its own.
type source struct {
	kind  deliveries.Kind
	topic string
}

// sources returns where the webhooks are that are asked for. An order and a session have theirs in the kinds' own topics.
func (r *redelivery) sources() (out []source) {
	for _, k := range roles.DeliveryKinds(nil) {
		if !slices.Contains(redelivered(), k.Kind) || r.filter.Kind != "" && k.Kind != r.filter.Kind {
			continue
		}
		out = append(out, source{kind: k.Kind})
		for _, s := range k.Sources {
			if r.event != "" {
				out = append(out, source{k.Kind, s.Topic})
			}
		}
	}
	return out
}

// show prints what was done. Nothing found, and a refusal, are errors.
func (r *redelivery) show(m *cli.Meta) error {
	if r.replayed.Events == 0 && len(r.retried)+len(r.refused) == 0 {
		return fmt.Errorf("nothing was sent: no webhook of the last %d days is of this event, order or session", deliveries.KeepDays)
	}
	underWay := max(r.queued, r.replayed.UnderWay-int64(len(r.retried))) // the schedule may have sent those meanwhile
	j := render.Object{
		"redelivery", r.name, "events", r.replayed.Events, "made", r.replayed.Made, "made_due", len(r.retried), "held", r.held, "under_way", underWay, "superseded", r.replayed.Superseded,
		"unaddressed", r.replayed.Unaddressed, "refused", append([]string{}, r.refused...),
	}
	if err := m.Show(j, func(p *render.Page) {
		p.Say("%s; %s due once more or for the first time. Due now, having waited or been given up: %d.",
			render.Counted(r.replayed.Events, "event"), render.CountedIs(r.replayed.Made, "webhook"), len(r.retried))
		for _, c := range []struct {
			n    int64
			what string
		}{
			{int64(r.held), "waiting, because the endpoint is suspended: `quittance endpoints resume ENDPOINT` sends what waits"},
			{underWay, "being sent already: nothing was changed"},
			{r.replayed.Superseded, "older than an accepted webhook of the same payment: not sent"},
			{r.replayed.Unaddressed, "of an event that has no endpoint in the present configuration"},
		} {
			if c.n > 0 {
				p.Say("%d %s.", c.n, c.what)
			}
		}
		for _, refusal := range r.refused {
			p.Say("%s", refusal)
		}
	}); err != nil {
		return err
	}
	switch {
	case len(r.refused) > 0:
		return fmt.Errorf("%s not sent: %s", render.CountedIs(len(r.refused), "webhook"), strings.Join(r.refused, "; "))
	case len(r.retried) > 0 || r.replayed.Made > 0 || underWay > 0:
		return nil
	case r.replayed.Superseded > 0:
		return errors.New("nothing was sent: the partner has accepted a later webhook of the same payment")
	case r.replayed.Unaddressed > 0:
		return errors.New("nothing was sent: no endpoint takes the event now, see `quittance endpoints list`")
	}
	return nil
}
