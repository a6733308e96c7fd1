package delivery

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/display"
	"quittance/cmd/internal/cli/render"
	"quittance/cmd/internal/roles"
	"quittance/internal/deliveries"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/support"
)

// Deliveries returns the command `deliveries`.
func Deliveries() cli.Command {
	return cli.Command{
		Use: "deliveries", Short: "Show webhooks, ERP confirmations and messages to people, and send them again",
		Commands: []cli.Command{listDeliveries(), showDelivery(), retryDeliveries(), redeliver(), liftSuppressions(), reportURL()},
		Words:    words,
	}
}

// callJSON is a call that was made. The answer is its first 1 KiB.
func callJSON(c deliveries.Attempt) render.Object {
	return render.Object{
		"attempt", c.Number, "at", c.At, "outcome", c.Outcome, "duration_ms", c.Duration.Milliseconds(),
		"http_status", render.OrNull(c.HTTPStatus), "reason?", c.Reason, "answer?", c.Answer,
	}
}

// deliveryFilter has the flags of `deliveries list`.
type deliveryFilter struct {
	deliveries.Filter
	endpoint, agency, kind, since, until string
	order, session, paymentRef           string
}

func listDeliveries() cli.Command {
	var f deliveryFilter
	return cli.Command{
		Use: "list", Short: "List deliveries, newest events first", JSON: "the list",
		Examples: []string{"deliveries list --state needs_operator", "deliveries list --endpoint impots/test --since 2h", "deliveries list --order DOSSIER-17"},
		Flags: func(fl *pflag.FlagSet, _ *cli.Meta) {
			fl.StringVar(&f.endpoint, "endpoint", "", "deliveries to this endpoint: the id of a webhook endpoint or of the application of a cash-in partner, or impots/test for an ERP")
			cli.TakesChoice(fl, &f.kind, "kind", roles.DeliveryKinds(nil).Names(nil), "")
			cli.TakesChoice(fl, &f.State, "state", deliveries.States, "")
			fl.StringVar(&f.Event, "event", "", "the type of the event, such as checkout.completed")
			fl.StringVar(&f.EventID, "event-id", "", "the id of the event, evt_…; for a confirmation its transaction_id")
			fl.StringVar(&f.order, "order", "", "deliveries about the sessions of this order, of any application")
			fl.StringVar(&f.session, "session", "", "deliveries about this session, chs_…")
			fl.StringVar(&f.paymentRef, "payment-ref", "", "deliveries about the session with this payment reference, 16 digits")
			fl.StringVar(&f.agency, "agency", "", "deliveries of this agency, by slug or id")
			fl.StringVar(&f.since, "since", "", "events at or after this time: "+cli.MomentForms)
			fl.StringVar(&f.until, "until", "", "events before this time, in the same form")
			fl.IntVar(&f.Limit, "limit", 50, "largest number of deliveries")
			fl.StringVar(&f.After, "after", "", "continue after this delivery, the last one of the previous list")
		},
		Check: func(*cli.Meta) error { return f.check() },
		Operate: func(ctx context.Context, m *cli.Meta) error {
			dir, err := registry.ReadDirectory(ctx, m.Pool, m.SimulatorURL, m.Now)
			if err != nil {
				return err
			}
			filter, err := f.in(dir, m.Now)
			if err != nil {
				return err
			}
			if filter.SessionIDs, err = access.Sessions(ctx, m.Pool, dir, f.session, f.order, f.paymentRef); err != nil {
				return err
			}
			filter.Limit++ // one more shows whether there are further deliveries
			found, err := access.Deliveries(m).List(ctx, filter)
			if err != nil {
				return err
			}
			return f.show(ctx, m, dir, filter, found)
		},
	}
}

// show writes the deliveries that were found, of which one is more than the limit.
func (f *deliveryFilter) show(ctx context.Context, m *cli.Meta, dir registry.Directory, filter deliveries.Filter, found []deliveries.Delivery) error {
	more := len(found) > f.Limit
	found = found[:min(f.Limit, len(found))]
	to := display.DestinationsOf(dir)
	reported, err := display.Reported(ctx, m, found...)
	if err != nil {
		return err
	}
	list := render.Mapped(found, func(d deliveries.Delivery) render.Object {
		return append(display.DeliveryJSON(d, to), reported.Json(d)...)
	})
	return m.Show(list, func(p *render.Page) {
		none := "no delivery is like that"
		if reflect.DeepEqual(filter, deliveries.Filter{Limit: filter.Limit}) {
			none = "there are no deliveries yet: an event becomes one for each endpoint that takes it, see `quittance endpoints list`"
		}
		display.SayDeliveries(p, none, found, to, reported, m.Now)
		if more {
			p.Say("there are more: the same with --after %s", found[len(found)-1].ID)
		}
	})
}

// check refuses flags that contradict each other.
func (f *deliveryFilter) check() error {
	given := 0
	for _, v := range []string{f.order, f.session, f.paymentRef} {
		if v != "" {
			given++
		}
	}
	switch {
	case f.Limit < 1 || f.Limit > 10_000:
		return cli.Usage("--limit: must be from 1 to 10000")
	case given > 1:
		return cli.Usage("give one of --order, --session and --payment-ref")
	case f.paymentRef != "" && support.PaymentRef(f.paymentRef) == "":
		return cli.Usage("--payment-ref: must be 16 digits; spaces do not matter")
	}
	return nil
}

// in returns the filter with the ids that the registry has for its names.
func (f deliveryFilter) in(dir registry.Directory, now time.Time) (filter deliveries.Filter, err error) {
	filter = f.Filter
	filter.Kind = deliveries.Kind(f.kind)
	if f.endpoint != "" {
		d, err := access.FindDestination(dir, f.endpoint)
		if err != nil {
			return filter, fmt.Errorf("--endpoint: %w", err)
		}
		if filter.Kind != "" && filter.Kind != d.Kind {
			return filter, cli.Usage("--kind: the endpoint of --endpoint is of kind %s", d.Kind)
		}
		filter.Kind, filter.DestinationID = d.Kind, d.ID
	}
	if f.agency != "" {
		a, ok := dir.Agency(f.agency)
		if !ok {
			return filter, errors.New("--agency: no agency has this slug or id")
		}
		filter.TenantID = a.ID
	}
	if filter.Since, err = cli.MomentOf("since", f.since, now); err != nil {
		return filter, err
	}
	if filter.Until, err = cli.MomentOf("until", f.until, now); err != nil {
		return filter, err
	}
	if !filter.Until.IsZero() && !filter.Since.Before(filter.Until) {
		return filter, cli.Usage("--until: must be after --since")
	}
	return filter, nil
}

func showDelivery() cli.Command {
	return cli.Command{
		Use: "show DELIVERY", Short: "Show a delivery with all calls that were made", JSON: "it", Examples: []string{"deliveries show dlv_nxoarniqj5sdkosvqmjkiflm5y"},
		Missing: "say which delivery: {usage}; `quittance deliveries list` shows the ids",
		Operate: func(ctx context.Context, m *cli.Meta) error {
			d, calls, err := access.Deliveries(m).Show(ctx, m.Args[0])
			if err != nil {
				return err
			}
			dir, err := registry.ReadDirectory(ctx, m.Pool, m.SimulatorURL, m.Now)
			if err != nil {
				return err
			}
			to := display.DestinationsOf(dir)
			reported, err := display.Reported(ctx, m, d)
			if err != nil {
				return err
			}
			j := append(append(display.DeliveryJSON(d, to), reported.Json(d)...), "calls?", render.Mapped(calls, callJSON))
			return m.Show(j, func(p *render.Page) { sayDelivery(p, d, to.Of(d), calls, reported, m.Now) })
		},
	}
}

// sayDelivery adds a delivery and its calls.
func sayDelivery(p *render.Page, d deliveries.Delivery, to deliveries.Entry, calls []deliveries.Attempt, reported display.Reports, now time.Time) {
	p.Facts([][2]string{
		{"ID", d.ID},
		{"To", to.Name},
		{"Owner", to.Owner},
		{"URL", to.URL},
		{"Event", d.Event + ", " + d.EventID},
		{"Occurred", render.Moment(d.OccurredAt)},
		{"Session", d.SessionID},
		{"State", d.State},
		{"Next call", display.NextCall(d, now)},
		{"Last outcome", display.AnswerText(d.HTTPStatus, d.Reason) + ", " + render.Moment(d.LastOutcomeAt)},
		{"Report", reported.TextWithTime(d)},
	})
	if slices.Contains(deliveries.Retryable, d.State) && d.Sendable {
		p.Say("`quittance deliveries retry %s` sends it now.", d.ID)
	}
	if len(calls) == 0 {
		p.Say("\nNo call was made yet: the delivery was postponed.")
		return
	}
	p.Say("")
	p.Table("", "CALL,AT,TOOK,OUTCOME,STATUS,ANSWER BEGINS", render.Mapped(calls, func(c deliveries.Attempt) []any {
		return []any{c.Number, render.Moment(c.At), c.Duration, c.Outcome, display.AnswerText(c.HTTPStatus, c.Reason), beginning(c.Answer)}
	}))
}

// beginning returns the first characters of a server's answer, quoted: in one line and
// without control characters.
func beginning(answer string) string {
	const most = 120
	if answer == "" {
		return "-"
	}
	text := []rune(answer)
	if len(text) > most {
		return strconv.Quote(string(text[:most])) + "…"
	}
	return strconv.Quote(answer)
}

func retryDeliveries() cli.Command {
	var endpoint, state string
	var yes bool
	return cli.Command{
		Use: "retry DELIVERY… | --endpoint ENDPOINT --state STATE", Short: "Send deliveries again, now; with --endpoint it asks if there is more than one", JSON: "what became of each",
		Examples: []string{"deliveries retry dlv_nxoarniqj5sdkosvqmjkiflm5y", "deliveries retry --endpoint impots/test --state needs_operator"},
		Args:     cobra.ArbitraryArgs,
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&endpoint, "endpoint", "", "all deliveries of this endpoint that are in the --state: the id of a webhook endpoint or of the application of a cash-in partner, or impots/test for an ERP")
			cli.TakesChoice(f, &state, "state", deliveries.Retryable, "with --endpoint: ")
			cli.YesFlag(f, &yes)
		},
		Check: func(m *cli.Meta) error {
			switch {
			case len(m.Args) == 0 && endpoint == "":
				return cli.Usage("say which deliveries: their ids, which `quittance deliveries list` shows, or --endpoint and --state for all of an endpoint")
			case len(m.Args) > 0 && (endpoint != "" || state != ""):
				return cli.Usage("give either the ids of deliveries or --endpoint with --state")
			case endpoint != "" && state == "":
				return cli.Usage("--state: say which of its deliveries: %s", strings.Join(deliveries.Retryable, ", "))
			}
			return nil
		},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			if endpoint == "" {
				return retryEach(ctx, m)
			}
			d, err := access.ReadDestination(ctx, m, "--endpoint", endpoint)
			if err != nil {
				return err
			}
			two, err := access.Deliveries(m).List(ctx, deliveries.Filter{Kind: d.Kind, DestinationID: d.ID, State: state, Limit: 2})
			if err != nil {
				return err
			}
			if len(two) > 1 {
				if err := m.Agree(yes, fmt.Sprintf("This sends all deliveries of %s that are %s again: `quittance deliveries list --endpoint %s --state %s` shows them.", d.Title, state, d.Name, state)); err != nil {
					return err
				}
			}
			n, err := access.Deliveries(m).RetryAll(ctx, m.By, d.Kind, d.ID, state, m.Now, cli.Progress(m.Err))
			if err != nil {
				return brokenOff(err, n)
			}
			return m.Show(map[string]int{"made_due": n}, func(p *render.Page) {
				if n == 0 {
					p.Say("%s has no deliveries that are %s; nothing to do.", d.Title, state)
					return
				}
				p.Say("%s: %s due now, %s before.", d.Title, render.CountedIs(n, "delivery"), state)
			})
		},
	}
}

// codeOf returns the code of a refused operation; empty for another error.
func codeOf(err error) string {
	var refused *operation.Error
	if errors.As(err, &refused) {
		return refused.Code
	}
	return ""
}

// retryEach retries deliveries one after the other. It continues after one that is
// refused and returns an error at the end; any other error stops it.
func retryEach(ctx context.Context, m *cli.Meta) error {
	var results []render.Object
	var lines []string
	var broken error
	refusals := 0
	dir, err := registry.ReadDirectory(ctx, m.Pool, m.SimulatorURL, m.Now)
	if err != nil {
		return err
	}
	sent := access.Deliveries(m).Configured(dir)
	for _, id := range m.Args {
		r, err := sent.Retry(ctx, m.By, id, m.Now)
		if err != nil && !cli.IsRefused(err, "") {
			broken = err
			break
		}
		result, text, refusal, code := "due", "due now", "", ""
		switch {
		case err != nil && len(m.Args) == 1 && !m.AsJSON:
			return fmt.Errorf("%s: %w", id, m.InWords(err))
		case err != nil:
			refusals++
			refusal = m.Naming(m.InWords(err).Error())
			result, text, code = "refused", refusal, codeOf(err)
		case r.OnItsWay:
			result, text = "on_its_way", "on its way already"
		case !r.HoldUntil.IsZero():
			text = fmt.Sprintf("due when the hold of its endpoint ends, at %s; `quittance endpoints resume` ends it now", render.Moment(r.HoldUntil))
		}
		results = append(results, render.Object{"id", id, "result", result, "hold_until?", r.HoldUntil, "refusal?", refusal, "code?", code})
		lines = append(lines, id+": "+text)
	}
	if err := m.Show(results, func(p *render.Page) {
		for _, line := range lines {
			p.Say("%s", line)
		}
	}); err != nil || broken != nil {
		return errors.Join(broken, err)
	}
	if refusals > 0 {
		return fmt.Errorf("%d of %d not retried", refusals, len(m.Args))
	}
	return nil
}
