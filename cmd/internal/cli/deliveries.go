package cli

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

	"quittance/cmd/internal/roles"
	"quittance/internal/deliveries"
	"quittance/internal/postgres"
	"quittance/internal/registry"
	"quittance/internal/sessions"
	"quittance/internal/support"
)

func deliveriesCommand() Command {
	return Command{
		Use: "deliveries", Short: "Show webhooks, ERP confirmations and messages to people, and send them again",
		Commands: []Command{listDeliveries(), showDelivery(), retryDeliveries(), reportURL()},
		Words:    deliveryWords,
	}
}

// callJSON is a call that was made. The answer is its first 1 KiB.
func callJSON(c deliveries.Attempt) object {
	return object{
		"attempt", c.Number, "at", c.At, "outcome", c.Outcome, "duration_ms", c.Duration.Milliseconds(),
		"http_status", orNull(c.HTTPStatus), "reason?", c.Reason, "answer?", c.Answer,
	}
}

// deliveryFilter has the flags of `deliveries list`.
type deliveryFilter struct {
	deliveries.Filter
	endpoint, agency, kind, since, until string
	order, session, paymentRef           string
}

func listDeliveries() Command {
	var f deliveryFilter
	return Command{
		Use: "list", Short: "List deliveries, newest events first", JSON: "the list",
		Examples: []string{"deliveries list --state needs_operator", "deliveries list --endpoint impots/test --since 2h", "deliveries list --order DOSSIER-17"},
		Flags: func(fl *pflag.FlagSet, _ *Meta) {
			fl.StringVar(&f.endpoint, "endpoint", "", "deliveries to this endpoint: the id of a webhook endpoint or of the application of a cash-in partner, or impots/test for an ERP")
			takesChoice(fl, &f.kind, "kind", roles.DeliveryKinds(nil).Names(nil), "")
			takesChoice(fl, &f.State, "state", deliveries.States, "")
			fl.StringVar(&f.Event, "event", "", "the type of the event, such as checkout.completed")
			fl.StringVar(&f.EventID, "event-id", "", "the id of the event, evt_…; for a confirmation its transaction_id")
			fl.StringVar(&f.order, "order", "", "deliveries about the sessions of this order, of any application")
			fl.StringVar(&f.session, "session", "", "deliveries about this session, chs_…")
			fl.StringVar(&f.paymentRef, "payment-ref", "", "deliveries about the session with this payment reference, 16 digits")
			fl.StringVar(&f.agency, "agency", "", "deliveries of this agency, by slug or id")
			fl.StringVar(&f.since, "since", "", "events at or after this time: "+momentForms)
			fl.StringVar(&f.until, "until", "", "events before this time, in the same form")
			fl.IntVar(&f.Limit, "limit", 50, "largest number of deliveries")
			fl.StringVar(&f.After, "after", "", "continue after this delivery, the last one of the previous list")
		},
		Check: func(*Meta) error {
			given := 0
			for _, v := range []string{f.order, f.session, f.paymentRef} {
				if v != "" {
					given++
				}
			}
			switch {
			case f.Limit < 1 || f.Limit > 10_000:
				return usage("--limit: must be from 1 to 10000")
			case given > 1:
				return usage("give one of --order, --session and --payment-ref")
			case f.paymentRef != "" && support.PaymentRef(f.paymentRef) == "":
				return usage("--payment-ref: must be 16 digits; spaces do not matter")
			}
			return nil
		},
		Operate: func(ctx context.Context, m *Meta) error {
			dir, err := registry.ReadDirectory(ctx, m.pool, m.SimulatorURL, m.now)
			if err != nil {
				return err
			}
			filter, err := f.in(dir, m.now)
			if err != nil {
				return err
			}
			if filter.SessionIDs, err = f.sessions(ctx, m.pool, dir); err != nil {
				return err
			}
			filter.Limit++ // one more shows whether there are further deliveries
			found, err := m.deliveries().List(ctx, filter)
			if err != nil {
				return err
			}
			more := len(found) > f.Limit
			found = found[:min(f.Limit, len(found))]
			to := destinationsOf(dir)
			reported, err := m.reported(ctx, found...)
			if err != nil {
				return err
			}
			list := mapped(found, func(d deliveries.Delivery) object { return append(deliveryJSON(d, to), reported.json(d)...) })
			return m.show(list, func(p *page) {
				none := "no delivery is like that"
				if reflect.DeepEqual(filter, deliveries.Filter{Limit: filter.Limit}) {
					none = "there are no deliveries yet: an event becomes one for each endpoint that takes it, see `quittance endpoints list`"
				}
				p.deliveries(none, found, to, reported)
				if more {
					p.say("there are more: the same with --after %s", found[len(found)-1].ID)
				}
			})
		},
	}
}

// sessions returns the sessions that --order, --session and --payment-ref name; nil if none of
// them is given.
func (f deliveryFilter) sessions(ctx context.Context, pool *postgres.Pool, dir registry.Directory) (ids []string, err error) {
	switch {
	case f.session != "":
		return []string{f.session}, nil
	case f.order == "" && f.paymentRef == "":
		return nil, nil
	}
	search := sessions.Search{OrderID: f.order, PaymentRef: support.PaymentRef(f.paymentRef), ApplicationIDs: applicationIDs(dir)}
	if ids, err = sessions.NewStore(pool).Find(ctx, search); err == nil && len(ids) == 0 {
		err = errors.New(map[bool]string{
			true:  "--order: no session has this order; orders are compared exactly, with capital and small letters",
			false: "--payment-ref: no session has this payment reference",
		}[f.order != ""])
	}
	return ids, err
}

// in returns the filter with the ids that the registry has for its names.
func (f deliveryFilter) in(dir registry.Directory, now time.Time) (filter deliveries.Filter, err error) {
	filter = f.Filter
	filter.Kind = deliveries.Kind(f.kind)
	if f.endpoint != "" {
		d, err := findDestination(dir, f.endpoint)
		if err != nil {
			return filter, fmt.Errorf("--endpoint: %w", err)
		}
		if filter.Kind != "" && filter.Kind != d.Kind {
			return filter, usage("--kind: the endpoint of --endpoint is of kind %s", d.Kind)
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
	if filter.Since, err = momentOf("since", f.since, now); err != nil {
		return filter, err
	}
	if filter.Until, err = momentOf("until", f.until, now); err != nil {
		return filter, err
	}
	if !filter.Until.IsZero() && !filter.Since.Before(filter.Until) {
		return filter, usage("--until: must be after --since")
	}
	return filter, nil
}

// deliveries adds a table of deliveries, or the line none when there are none.
// Where providers report on some of them, it has their reports.
func (p *page) deliveries(none string, list []deliveries.Delivery, to destinations, reported reports) {
	columns := "ID,OCCURRED,EVENT,STATE,CALLS,LAST ANSWER,NEXT CALL,ENDPOINT,OWNER,URL"
	if len(reported) > 0 {
		columns += ",REPORT"
	}
	p.table(none, columns, mapped(list, func(d deliveries.Delivery) []any {
		e := to.of(d)
		row := []any{
			d.ID, moment(d.OccurredAt), d.Event, d.State, d.Attempts, answerText(d.HTTPStatus, d.Reason), momentOr(d.NextAttemptAt, "-"),
			e.Name, orDash(e.Owner), orDash(e.URL),
		}
		if len(reported) > 0 {
			row = append(row, orDash(reported.text(d)))
		}
		return row
	}))
}

func showDelivery() Command {
	return Command{
		Use: "show DELIVERY", Short: "Show a delivery with all calls that were made", JSON: "it", Examples: []string{"deliveries show dlv_nxoarniqj5sdkosvqmjkiflm5y"},
		Missing: "say which delivery: {usage}; `quittance deliveries list` shows the ids",
		Operate: func(ctx context.Context, m *Meta) error {
			d, calls, err := m.deliveries().Show(ctx, m.args[0])
			if err != nil {
				return err
			}
			dir, err := registry.ReadDirectory(ctx, m.pool, m.SimulatorURL, m.now)
			if err != nil {
				return err
			}
			to := destinationsOf(dir)
			reported, err := m.reported(ctx, d)
			if err != nil {
				return err
			}
			j := append(append(deliveryJSON(d, to), reported.json(d)...), "calls?", mapped(calls, callJSON))
			return m.show(j, func(p *page) { p.delivery(d, to.of(d), calls, reported) })
		},
	}
}

// delivery adds a delivery and its calls.
func (p *page) delivery(d deliveries.Delivery, to deliveries.Entry, calls []deliveries.Attempt, reported reports) {
	p.facts([][2]string{
		{"ID", d.ID},
		{"To", to.Name},
		{"Owner", to.Owner},
		{"URL", to.URL},
		{"Event", d.Event + ", " + d.EventID},
		{"Occurred", moment(d.OccurredAt)},
		{"Session", d.SessionID},
		{"State", d.State},
		{"Next call", momentOr(d.NextAttemptAt, "")},
		{"Last outcome", answerText(d.HTTPStatus, d.Reason) + ", " + moment(d.LastOutcomeAt)},
		{"Report", reported.textWithTime(d)},
	})
	if slices.Contains(deliveries.Retryable, d.State) && d.Sendable {
		p.say("`quittance deliveries retry %s` sends it now.", d.ID)
	}
	if len(calls) == 0 {
		p.say("\nNo call was made yet: the delivery was postponed.")
		return
	}
	p.say("")
	p.table("", "CALL,AT,TOOK,OUTCOME,STATUS,ANSWER BEGINS", mapped(calls, func(c deliveries.Attempt) []any {
		return []any{c.Number, moment(c.At), c.Duration, c.Outcome, answerText(c.HTTPStatus, c.Reason), beginning(c.Answer)}
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

func retryDeliveries() Command {
	var endpoint, state string
	var yes bool
	return Command{
		Use: "retry DELIVERY… | --endpoint ENDPOINT --state STATE", Short: "Send deliveries again, now; with --endpoint it asks if there is more than one", JSON: "what became of each",
		Examples: []string{"deliveries retry dlv_nxoarniqj5sdkosvqmjkiflm5y", "deliveries retry --endpoint impots/test --state needs_operator"},
		Args:     cobra.ArbitraryArgs,
		Flags: func(f *pflag.FlagSet, _ *Meta) {
			f.StringVar(&endpoint, "endpoint", "", "all deliveries of this endpoint that are in the --state: the id of a webhook endpoint or of the application of a cash-in partner, or impots/test for an ERP")
			takesChoice(f, &state, "state", deliveries.Retryable, "with --endpoint: ")
			yesFlag(f, &yes)
		},
		Check: func(m *Meta) error {
			switch {
			case len(m.args) == 0 && endpoint == "":
				return usage("say which deliveries: their ids, which `quittance deliveries list` shows, or --endpoint and --state for all of an endpoint")
			case len(m.args) > 0 && (endpoint != "" || state != ""):
				return usage("give either the ids of deliveries or --endpoint with --state")
			case endpoint != "" && state == "":
				return usage("--state: say which of its deliveries: %s", strings.Join(deliveries.Retryable, ", "))
			}
			return nil
		},
		Operate: func(ctx context.Context, m *Meta) error {
			if endpoint == "" {
				return m.retryEach(ctx)
			}
			d, err := m.readDestination(ctx, "--endpoint", endpoint)
			if err != nil {
				return err
			}
			two, err := m.deliveries().List(ctx, deliveries.Filter{Kind: d.Kind, DestinationID: d.ID, State: state, Limit: 2})
			if err != nil {
				return err
			}
			if len(two) > 1 {
				if err := m.agree(yes, fmt.Sprintf("This sends all deliveries of %s that are %s again: `quittance deliveries list --endpoint %s --state %s` shows them.", d.Title, state, d.Name, state)); err != nil {
					return err
				}
			}
			n, err := m.deliveries().RetryAll(ctx, operator(), d.Kind, d.ID, state, m.now, progress(m.Err))
			if err != nil {
				return brokenOff(err, n)
			}
			return m.show(map[string]int{"made_due": n}, func(p *page) {
				switch n {
				case 0:
					p.say("%s has no deliveries that are %s; nothing to do.", d.Title, state)
				case 1:
					p.say("%s: 1 delivery that was %s is due now.", d.Title, state)
				default:
					p.say("%s: %d deliveries that were %s are due now.", d.Title, n, state)
				}
			})
		},
	}
}

// retryEach retries deliveries one after the other. It continues after one that is
// refused and returns an error at the end; any other error stops it.
func (m *Meta) retryEach(ctx context.Context) error {
	var results []object
	var lines []string
	var broken error
	refusals := 0
	for _, id := range m.args {
		r, err := m.deliveries().Retry(ctx, operator(), id, m.now)
		if err != nil && !isRefused(err, "") {
			broken = err
			break
		}
		result, text, refusal := "due", "due now", ""
		switch {
		case err != nil && len(m.args) == 1 && !m.asJSON:
			return fmt.Errorf("%s: %w", id, m.inWords(err))
		case err != nil:
			refusals++
			refusal = m.naming(m.inWords(err).Error())
			result, text = "refused", refusal
		case r.OnItsWay:
			result, text = "on_its_way", "on its way already"
		case !r.HoldUntil.IsZero():
			text = fmt.Sprintf("due when the hold of its endpoint ends, at %s; `quittance endpoints resume` ends it now", moment(r.HoldUntil))
		}
		results = append(results, object{"id", id, "result", result, "hold_until?", r.HoldUntil, "refusal?", refusal})
		lines = append(lines, id+": "+text)
	}
	if err := m.show(results, func(p *page) {
		for _, line := range lines {
			p.say("%s", line)
		}
	}); err != nil || broken != nil {
		return errors.Join(broken, err)
	}
	if refusals > 0 {
		return fmt.Errorf("%d of %d not retried", refusals, len(m.args))
	}
	return nil
}
