package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"quittance/cmd/internal/roles"
	"quittance/internal/deliveries"
	"quittance/internal/postgres"
	"quittance/internal/registry"
)

func (p Program) deliveries() *cobra.Command {
	return p.group("deliveries", "Look at webhooks and ERP confirmations on their way, and send them again", "list, show or retry", p.listDeliveries(), p.showDelivery(), p.retryDeliveries())
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
	mode := "test"
	if d.Live {
		mode = "live"
	}
	return deliveryJSON{
		ID: d.ID, Kind: string(d.Kind), Endpoint: nameOf(d, names), EventID: d.EventID, Event: d.Event, ApplicationID: d.ApplicationID, TenantID: d.TenantID,
		SessionID: d.SessionID, Mode: mode, OccurredAt: d.OccurredAt, State: d.State, Attempts: d.Attempts, FirstAttemptAt: timeOrNull(d.FirstAttemptAt),
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

// namesOf are the names of ERPs by the ids that deliveries have.
func namesOf(dir registry.Directory) map[string]string {
	names := map[string]string{}
	for _, e := range dir.ERPs {
		names[ofERP(e).id] = e.Name()
	}
	return names
}

func (p Program) listDeliveries() *cobra.Command {
	m := p.meta()
	kinds := roles.DeliveryKinds(nil).Names(nil)
	var f deliveries.Filter
	var endpoint, agency, kind, since, until string
	var asJSON bool
	cmd := command("list", "List deliveries, those of the newest events first", m, func(cmd *cobra.Command, _ []string) error {
		switch {
		case f.Limit < 1 || f.Limit > 10_000:
			return errors.New("--limit: must be from 1 to 10000")
		case f.State != "" && !slices.Contains(deliveries.States, f.State):
			return fmt.Errorf("--state: must be one of %s", strings.Join(deliveries.States, ", "))
		case kind != "" && !slices.Contains(kinds, kind):
			return errors.New("--kind: must be " + strings.Join(kinds, " or "))
		}
		return m.operate(cmd.Context(), func(ctx context.Context, pool *postgres.Pool, now time.Time) error {
			dir, err := registry.ReadDirectory(ctx, pool, m.SimulatorURL, now)
			if err != nil {
				return err
			}
			f := f
			f.Kind = deliveries.Kind(kind)
			if endpoint != "" {
				d, err := findDestination(dir, endpoint)
				if err != nil {
					return fmt.Errorf("--endpoint: %w", err)
				}
				if f.Kind != "" && f.Kind != d.kind {
					return fmt.Errorf("--kind: --endpoint names one of kind %s", d.kind)
				}
				f.Kind, f.DestinationID = d.kind, d.id
			}
			if agency != "" {
				a, ok := dir.Agency(agency)
				if !ok {
					return errors.New("--agency: no agency has this slug or id")
				}
				f.TenantID = a.ID
			}
			if f.Since, err = momentOf("since", since, now); err != nil {
				return err
			}
			if f.Until, err = momentOf("until", until, now); err != nil {
				return err
			}
			if !f.Until.IsZero() && !f.Since.Before(f.Until) {
				return errors.New("--until: must be after --since")
			}
			filtered := f != deliveries.Filter{Limit: f.Limit}
			limit := f.Limit
			f.Limit++ // whether there are more
			found, err := deliveriesOn(pool).List(ctx, f)
			if err != nil {
				return err
			}
			more := len(found) > limit
			found = found[:min(limit, len(found))]
			names := namesOf(dir)
			out := cmd.OutOrStdout()
			if asJSON {
				list := make([]deliveryJSON, len(found))
				for i, d := range found {
					list[i] = toDeliveryJSON(d, names)
				}
				return printJSON(out, list)
			}
			if len(found) == 0 {
				said := "there are no deliveries yet: an event becomes one for each endpoint that takes it, see `quittance endpoints list`"
				if filtered {
					said = "no delivery is like that"
				}
				_, err := fmt.Fprintln(out, said)
				return err
			}
			if err := showDeliveries(out, found, names); err != nil {
				return err
			}
			if more {
				_, err = fmt.Fprintf(out, "there are more: the same with --after %s\n", found[len(found)-1].ID)
			}
			return err
		})
	})
	fl := cmd.Flags()
	fl.StringVar(&endpoint, "endpoint", "", "those to this one: the id of a webhook endpoint, or impots/test for an ERP")
	fl.StringVar(&kind, "kind", "", strings.Join(kinds, " or "))
	fl.StringVar(&f.State, "state", "", "one of "+strings.Join(deliveries.States, ", "))
	fl.StringVar(&f.Event, "event", "", "the type of the event, such as checkout.completed")
	fl.StringVar(&f.EventID, "event-id", "", "the event, evt_…; of a confirmation the transaction_id")
	fl.StringVar(&agency, "agency", "", "of this agency, by slug or id")
	fl.StringVar(&since, "since", "", "events from then on: a time such as 2026-03-01T12:00:00Z, a day, or how long ago, such as 2h")
	fl.StringVar(&until, "until", "", "events before then, given in the same way")
	fl.IntVar(&f.Limit, "limit", 50, "how many at most")
	fl.StringVar(&f.After, "after", "", "go on behind this delivery, the last of the list before")
	fl.BoolVar(&asJSON, "json", false, "print the list as JSON")
	return cmd
}

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
	return time.Time{}, fmt.Errorf("--%s: must be a time such as 2026-03-01T12:00:00Z, a day such as 2026-03-01 (UTC), or how long ago, such as 2h or 3d", flag)
}

func showDeliveries(out io.Writer, list []deliveries.Delivery, names map[string]string) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "ID\tOCCURRED\tENDPOINT\tEVENT\tSTATE\tCALLS\tLAST ANSWER\tNEXT CALL")
	for _, d := range list {
		next := "-"
		if !d.NextAttemptAt.IsZero() {
			next = moment(d.NextAttemptAt)
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", d.ID, moment(d.OccurredAt), nameOf(d, names), d.Event, d.State, d.Attempts,
			answerSaid(d.HTTPStatus, d.Reason), next)
	}
	return table.Flush()
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

func (p Program) showDelivery() *cobra.Command {
	m := p.meta()
	var asJSON bool
	cmd := command("show DELIVERY", "Show a delivery with all calls that were made", m, func(cmd *cobra.Command, args []string) error {
		return m.operate(cmd.Context(), func(ctx context.Context, pool *postgres.Pool, now time.Time) error {
			d, calls, err := deliveriesOn(pool).Show(ctx, args[0])
			if err != nil {
				return err
			}
			dir, err := registry.ReadDirectory(ctx, pool, m.SimulatorURL, now)
			if err != nil {
				return err
			}
			names := namesOf(dir)
			if asJSON {
				j := toDeliveryJSON(d, names)
				for _, c := range calls {
					j.Calls = append(j.Calls, callJSON{
						Attempt: c.Number, At: c.At, Outcome: string(c.Outcome), DurationMs: c.Duration.Milliseconds(),
						HTTPStatus: statusOrNull(c.HTTPStatus), Reason: c.Reason, Answer: c.Answer,
					})
				}
				return printJSON(cmd.OutOrStdout(), j)
			}
			to := nameOf(d, names)
			if e, err := findDestination(dir, to); err == nil {
				to += ", " + e.owner() + ", " + e.url()
			}
			return showCalls(cmd.OutOrStdout(), d, to, calls)
		})
	})
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("say which delivery: `%s DELIVERY`; `quittance deliveries list` shows the ids", cmd.CommandPath())
		}
		return nil
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return cmd
}

func showCalls(out io.Writer, d deliveries.Delivery, to string, calls []deliveries.Attempt) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) { _, _ = fmt.Fprintf(table, name+"\t"+format+"\n", args...) }
	line("ID", "%s", d.ID)
	line("To", "%s", to)
	line("Event", "%s, %s", d.Event, d.EventID)
	line("Occurred", "%s", moment(d.OccurredAt))
	line("Session", "%s", d.SessionID)
	line("State", "%s", d.State)
	if !d.NextAttemptAt.IsZero() {
		line("Next call", "%s", moment(d.NextAttemptAt))
	}
	line("Last outcome", "%s, %s", answerSaid(d.HTTPStatus, d.Reason), moment(d.LastOutcomeAt))
	if err := table.Flush(); err != nil {
		return err
	}
	if slices.Contains(deliveries.Retryable, d.State) && d.Sendable {
		_, _ = fmt.Fprintf(out, "`quittance deliveries retry %s` sends it now.\n", d.ID)
	}
	if len(calls) == 0 {
		_, err := fmt.Fprint(out, "\nNo call was made yet: it was put off.\n")
		return err
	}
	_, _ = fmt.Fprintln(out)
	table = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "CALL\tAT\tTOOK\tOUTCOME\tSTATUS\tANSWER BEGINS")
	for _, c := range calls {
		_, _ = fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\n", c.Number, moment(c.At), c.Duration, c.Outcome, answerSaid(c.HTTPStatus, c.Reason), beginning(c.Answer))
	}
	return table.Flush()
}

// beginning is the beginning of what a stranger answered, in one line and
// without anything that a terminal would obey.
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

func (p Program) retryDeliveries() *cobra.Command {
	m := p.meta()
	var endpoint, state string
	var asJSON bool
	cmd := command("retry DELIVERY… | --endpoint ENDPOINT --state STATE", "Send deliveries again, now", m, func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 && endpoint == "":
			return usage("say which deliveries: their ids, which `quittance deliveries list` shows, or --endpoint and --state for all of an endpoint")
		case len(args) > 0 && (endpoint != "" || state != ""):
			return usage("give either the ids of deliveries or --endpoint with --state")
		case endpoint != "" && !slices.Contains(deliveries.Retryable, state):
			return usage("--state: say which of its deliveries: %s", strings.Join(deliveries.Retryable, ", "))
		}
		return m.operate(cmd.Context(), func(ctx context.Context, pool *postgres.Pool, now time.Time) error {
			if endpoint == "" {
				return retryEach(ctx, cmd, pool, args, asJSON, now)
			}
			d, err := readDestination(ctx, pool, m.Settings, endpoint, now)
			if err != nil {
				return fmt.Errorf("--endpoint: %w", err)
			}
			n, err := deliveriesOn(pool).RetryAll(ctx, operator(), d.kind, d.id, state, now, progress(cmd.ErrOrStderr()))
			if err != nil {
				return brokenOff(err, n)
			}
			out := cmd.OutOrStdout()
			switch {
			case asJSON:
				return printJSON(out, map[string]int{"made_due": n})
			case n == 0:
				_, err = fmt.Fprintf(out, "%s has no deliveries that are %s; nothing to do.\n", d.said(), state)
			default:
				_, err = fmt.Fprintf(out, "%s: %s that %s %s %s due now.\n", d.said(), deliveriesSaid(n), wasWere(n), state, isAre(n))
			}
			return err
		})
	})
	cmd.Args = cobra.ArbitraryArgs
	cmd.Flags().StringVar(&endpoint, "endpoint", "", "all of this one in the --state: the id of a webhook endpoint, or impots/test for an ERP")
	cmd.Flags().StringVar(&state, "state", "", "with --endpoint: "+strings.Join(deliveries.Retryable, ", "))
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what became of each as JSON")
	return cmd
}

func wasWere(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// retriedJSON is what became of one of several as --json prints it.
type retriedJSON struct {
	ID        string     `json:"id"`
	Result    string     `json:"result"` // due, on_its_way or refused
	HoldUntil *time.Time `json:"hold_until,omitempty"`
	Refusal   string     `json:"refusal,omitempty"`
}

// retryEach goes on after one that is refused, and is an error in the end then.
func retryEach(ctx context.Context, cmd *cobra.Command, pool *postgres.Pool, ids []string, asJSON bool, now time.Time) error {
	out := cmd.OutOrStdout()
	var results []retriedJSON
	refusals := 0
	for _, id := range ids {
		r, err := deliveriesOn(pool).Retry(ctx, operator(), id, now)
		if err != nil && !isRefused(err, "") {
			return err
		}
		refused := inWords(err)
		result, said := retriedJSON{ID: id, Result: "due", HoldUntil: timeOrNull(r.HoldUntil)}, "due now"
		switch {
		case refused != nil && len(ids) == 1 && !asJSON:
			return fmt.Errorf("%s: %w", id, refused)
		case refused != nil:
			refusals++
			result.Result, result.Refusal, said = "refused", refused.Error(), refused.Error()
		case r.OnItsWay:
			result.Result, said = "on_its_way", "on its way already"
		case !r.HoldUntil.IsZero():
			said = fmt.Sprintf("due when the hold of its endpoint ends, at %s; `quittance endpoints resume` ends it now", moment(r.HoldUntil))
		}
		if results = append(results, result); !asJSON {
			_, _ = fmt.Fprintf(out, "%s: %s\n", id, said)
		}
	}
	if asJSON {
		if err := printJSON(out, results); err != nil {
			return err
		}
	}
	if refusals > 0 {
		return fmt.Errorf("%d of %d not retried", refusals, len(ids))
	}
	return nil
}
