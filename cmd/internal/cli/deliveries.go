package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/cmd/internal/roles"
	"quittance/internal/deliveries"
	"quittance/internal/registry"
)

func deliveriesCommand() Command {
	return Command{
		Use: "deliveries", Short: "Look at webhooks and ERP confirmations on their way, and send them again",
		Commands: []Command{listDeliveries(), showDelivery(), retryDeliveries()},
	}
}

// deliveryJSON is a delivery as --json prints it.
type deliveryJSON struct {
	ID             string     `json:"id"`
	Kind           string     `json:"kind"`
	Endpoint       string     `json:"endpoint"` // a webhook endpoint's id; an ERP as impots/test
	EventID        string     `json:"event_id"`
	Event          string     `json:"event"`
	ApplicationID  string     `json:"application_id"`
	TenantID       string     `json:"tenant_id"`
	SessionID      string     `json:"session_id"`
	Mode           string     `json:"mode"`
	OccurredAt     time.Time  `json:"occurred_at"`
	State          string     `json:"state"`
	Attempts       int        `json:"attempts"`
	FirstAttemptAt *time.Time `json:"first_attempt_at"`
	LastOutcomeAt  time.Time  `json:"last_outcome_at"`
	NextAttemptAt  *time.Time `json:"next_attempt_at"`
	HTTPStatus     *int       `json:"http_status"`
	Reason         string     `json:"reason,omitempty"`

	Calls []callJSON `json:"calls,omitempty"` // of show
}

// callJSON is a call that was made.
type callJSON struct {
	Attempt    int       `json:"attempt"`
	At         time.Time `json:"at"`
	Outcome    string    `json:"outcome"`
	DurationMs int64     `json:"duration_ms"`
	HTTPStatus *int      `json:"http_status"`
	Reason     string    `json:"reason,omitempty"`
	Answer     string    `json:"answer,omitempty"` // its first 1 KiB
}

func toDeliveryJSON(d deliveries.Delivery, names map[string]string) deliveryJSON {
	return deliveryJSON{
		ID: d.ID, Kind: string(d.Kind), Endpoint: nameOf(d, names), EventID: d.EventID, Event: d.Event, ApplicationID: d.ApplicationID, TenantID: d.TenantID,
		SessionID: d.SessionID, Mode: modeOf(d.Live), OccurredAt: d.OccurredAt, State: d.State, Attempts: d.Attempts, FirstAttemptAt: timeOrNull(d.FirstAttemptAt),
		LastOutcomeAt: d.LastOutcomeAt, NextAttemptAt: timeOrNull(d.NextAttemptAt), HTTPStatus: statusOrNull(d.HTTPStatus), Reason: d.Reason,
	}
}

func statusOrNull(code int) *int {
	if code == 0 {
		return nil
	}
	return &code
}

// nameOf is what operators call a delivery's destination by.
func nameOf(d deliveries.Delivery, names map[string]string) string {
	if name, ok := names[d.DestinationID]; ok {
		return name
	}
	return d.DestinationID
}

// namesOf are the names of destinations by the ids that deliveries have.
func namesOf(dir registry.Directory) map[string]string {
	names := map[string]string{}
	for _, e := range roles.DeliveryKinds(nil).Entries(dir) {
		names[e.ID] = e.Name
	}
	return names
}

// deliveryFilter is what the flags of `deliveries list` say.
type deliveryFilter struct {
	deliveries.Filter
	endpoint, agency, kind, since, until string
}

func listDeliveries() Command {
	var f deliveryFilter
	return Command{
		Use: "list", Short: "List deliveries, those of the newest events first", JSON: "the list",
		Examples: []string{"deliveries list --state needs_operator", "deliveries list --endpoint impots/test --since 2h"},
		Flags: func(fl *pflag.FlagSet, _ *Meta) {
			fl.StringVar(&f.endpoint, "endpoint", "", "those to this one: the id of a webhook endpoint, or impots/test for an ERP")
			takesChoice(fl, &f.kind, "kind", roles.DeliveryKinds(nil).Names(nil), "")
			takesChoice(fl, &f.State, "state", deliveries.States, "")
			fl.StringVar(&f.Event, "event", "", "the type of the event, such as checkout.completed")
			fl.StringVar(&f.EventID, "event-id", "", "the event, evt_…; of a confirmation the transaction_id")
			fl.StringVar(&f.agency, "agency", "", "of this agency, by slug or id")
			fl.StringVar(&f.since, "since", "", "events from then on: "+momentForms)
			fl.StringVar(&f.until, "until", "", "events before then, given in the same way")
			fl.IntVar(&f.Limit, "limit", 50, "how many at most")
			fl.StringVar(&f.After, "after", "", "continue after this delivery, the last of the list before")
		},
		Check: func(*Meta) error {
			if f.Limit < 1 || f.Limit > 10_000 {
				return usage("--limit: must be from 1 to 10000")
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
			filter.Limit++ // whether there are more
			found, err := m.deliveries().List(ctx, filter)
			if err != nil {
				return err
			}
			more := len(found) > f.Limit
			found = found[:min(f.Limit, len(found))]
			names := namesOf(dir)
			list := mapped(found, func(d deliveries.Delivery) deliveryJSON { return toDeliveryJSON(d, names) })
			return m.show(list, func(p *page) {
				none := "no delivery is like that"
				if filter == (deliveries.Filter{Limit: filter.Limit}) {
					none = "there are no deliveries yet: an event becomes one for each endpoint that takes it, see `quittance endpoints list`"
				}
				p.deliveries(none, found, names)
				if more {
					p.say("there are more: the same with --after %s", found[len(found)-1].ID)
				}
			})
		},
	}
}

// in is the filter with names looked up in the registry.
func (f deliveryFilter) in(dir registry.Directory, now time.Time) (filter deliveries.Filter, err error) {
	filter = f.Filter
	filter.Kind = deliveries.Kind(f.kind)
	if f.endpoint != "" {
		d, err := findDestination(dir, f.endpoint)
		if err != nil {
			return filter, fmt.Errorf("--endpoint: %w", err)
		}
		if filter.Kind != "" && filter.Kind != d.Kind {
			return filter, usage("--kind: --endpoint names one of kind %s", d.Kind)
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

// momentForms says how the moment of a flag is written.
const momentForms = "a time such as 2026-03-01T12:00:00Z, a day, or how long ago, such as 2h"

// momentOf is the time that a flag names: as RFC 3339 or as tables print it, a
// UTC day, or how long before now. Zero when it is empty.
func momentOf(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return now.AddDate(0, 0, -int(n)), nil
		}
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05 UTC", "2006-01-02T15:04:05", "2006-01-02 15:04:05", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, usage("--%s: must be a time such as 2026-03-01T12:00:00Z, a day such as 2026-03-01 (UTC), or how long ago, such as 2h or 3d", flag)
}

// span is what --since, which is required, and --until say; now when until is empty.
func span(since, until string, now time.Time) (from, to time.Time, err error) {
	if since == "" {
		return from, to, usage("--since: say from when on: %s", momentForms)
	}
	if from, err = momentOf("since", since, now); err != nil {
		return from, to, err
	}
	if to, err = momentOf("until", until, now); err != nil {
		return from, to, err
	}
	if until == "" {
		to = now.UTC()
	}
	if !from.Before(to) {
		return from, to, usage("--until: must be after --since")
	}
	return from, to, nil
}

// deliveries adds a table of deliveries, or none when there are none.
func (p *page) deliveries(none string, list []deliveries.Delivery, names map[string]string) {
	p.table(none, "ID,OCCURRED,ENDPOINT,EVENT,STATE,CALLS,LAST ANSWER,NEXT CALL", mapped(list, func(d deliveries.Delivery) []any {
		return []any{d.ID, moment(d.OccurredAt), nameOf(d, names), d.Event, d.State, d.Attempts, answerSaid(d.HTTPStatus, d.Reason), momentOr(d.NextAttemptAt, "-")}
	}))
}

// answerSaid is what came of a call: a status, or why there is none.
func answerSaid(status int, reason string) string {
	switch {
	case status != 0:
		return strconv.Itoa(status)
	case reason != "":
		return reason
	}
	return "-"
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
			names := namesOf(dir)
			j := toDeliveryJSON(d, names)
			j.Calls = mapped(calls, func(c deliveries.Attempt) callJSON {
				return callJSON{c.Number, c.At, string(c.Outcome), c.Duration.Milliseconds(), statusOrNull(c.HTTPStatus), c.Reason, c.Answer}
			})
			to := nameOf(d, names)
			if e, err := findDestination(dir, to); err == nil {
				to += ", " + e.Owner + ", " + e.URL
			}
			return m.show(j, func(p *page) { p.delivery(d, to, calls) })
		},
	}
}

// delivery adds a delivery and its calls.
func (p *page) delivery(d deliveries.Delivery, to string, calls []deliveries.Attempt) {
	p.facts([][2]string{
		{"ID", d.ID},
		{"To", to},
		{"Event", d.Event + ", " + d.EventID},
		{"Occurred", moment(d.OccurredAt)},
		{"Session", d.SessionID},
		{"State", d.State},
		{"Next call", momentOr(d.NextAttemptAt, "")},
		{"Last outcome", answerSaid(d.HTTPStatus, d.Reason) + ", " + moment(d.LastOutcomeAt)},
	}...)
	if slices.Contains(deliveries.Retryable, d.State) && d.Sendable {
		p.say("`quittance deliveries retry %s` sends it now.", d.ID)
	}
	if len(calls) == 0 {
		p.say("\nNo call was made yet: it was put off.")
		return
	}
	p.say("")
	p.table("", "CALL,AT,TOOK,OUTCOME,STATUS,ANSWER BEGINS", mapped(calls, func(c deliveries.Attempt) []any {
		return []any{c.Number, moment(c.At), c.Duration, c.Outcome, answerSaid(c.HTTPStatus, c.Reason), beginning(c.Answer)}
	}))
}

// beginning is the beginning of a server's answer, in one line and without
// characters that a terminal would obey.
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
	return Command{
		Use: "retry DELIVERY… | --endpoint ENDPOINT --state STATE", Short: "Send deliveries again, now", JSON: "what became of each",
		Examples: []string{"deliveries retry dlv_nxoarniqj5sdkosvqmjkiflm5y", "deliveries retry --endpoint impots/test --state needs_operator"},
		Args:     cobra.ArbitraryArgs,
		Flags: func(f *pflag.FlagSet, _ *Meta) {
			f.StringVar(&endpoint, "endpoint", "", "all of this one in the --state: the id of a webhook endpoint, or impots/test for an ERP")
			takesChoice(f, &state, "state", deliveries.Retryable, "with --endpoint: ")
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

// retriedJSON is what became of one of several as --json prints it.
type retriedJSON struct {
	ID        string     `json:"id"`
	Result    string     `json:"result"` // due, on_its_way or refused
	HoldUntil *time.Time `json:"hold_until,omitempty"`
	Refusal   string     `json:"refusal,omitempty"`

	said string
}

// retryEach retries deliveries one after the other. It continues after one that is
// refused and returns an error at the end; any other error stops it.
func (m *Meta) retryEach(ctx context.Context) error {
	var results []retriedJSON
	var broken error
	refusals := 0
	for _, id := range m.args {
		r, err := m.deliveries().Retry(ctx, operator(), id, m.now)
		if err != nil && !isRefused(err, "") {
			broken = err
			break
		}
		result := retriedJSON{ID: id, Result: "due", HoldUntil: timeOrNull(r.HoldUntil), said: "due now"}
		switch {
		case err != nil && len(m.args) == 1 && !m.asJSON:
			return fmt.Errorf("%s: %w", id, inWords(err))
		case err != nil:
			refusals++
			result.Result, result.Refusal = "refused", m.program.naming(inWords(err).Error())
			result.said = result.Refusal
		case r.OnItsWay:
			result.Result, result.said = "on_its_way", "on its way already"
		case !r.HoldUntil.IsZero():
			result.said = fmt.Sprintf("due when the hold of its endpoint ends, at %s; `quittance endpoints resume` ends it now", moment(r.HoldUntil))
		}
		results = append(results, result)
	}
	if err := m.show(results, func(p *page) {
		for _, r := range results {
			p.say("%s: %s", r.ID, r.said)
		}
	}); err != nil || broken != nil {
		return errors.Join(broken, err)
	}
	if refusals > 0 {
		return fmt.Errorf("%d of %d not retried", refusals, len(m.args))
	}
	return nil
}
