package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"quittance/cmd/internal/roles"
	"quittance/internal/deliveries"
	erpclient "quittance/internal/erp"
	"quittance/internal/postgres"
	"quittance/internal/registry"
	"quittance/sinks/erp"
	"quittance/sinks/webhook"
)

func (p Program) endpoints() *cobra.Command {
	return p.group("endpoints", "Look after webhook endpoints and ERPs: where deliveries go", "list, show, suspend, resume, recover or rotate-secret", p.listEndpoints(), p.showEndpoint(), p.suspendEndpoint(), p.resumeEndpoint(), p.recoverEndpoint(), p.rotateEndpointSecret())
}

// destination is where deliveries go: a webhook endpoint or an agency's ERP, with
// what the schedule knows of it. One of the two pointers is set.
type destination struct {
	kind     deliveries.Kind
	id       string // as deliveries have it
	endpoint *registry.EndpointEntry
	erp      *registry.ERPEntry
	standing deliveries.DestinationStatus
}

// name is what an operator calls it by: an endpoint's id, impots/test for an ERP.
func (d destination) name() string {
	if d.erp != nil {
		return d.erp.Name()
	}
	return d.id
}

// owner names whose it is.
func (d destination) owner() string {
	if d.erp != nil {
		return d.erp.Agency
	}
	return d.endpoint.Owner()
}

func (d destination) url() string {
	if d.erp != nil {
		return d.erp.BaseURL
	}
	return d.endpoint.URL
}

// said is it in a sentence.
func (d destination) said() string {
	if d.erp != nil {
		return "The ERP " + d.name()
	}
	return "Endpoint " + d.name() + " of " + d.owner()
}

func ofEndpoint(e registry.EndpointEntry) destination {
	return destination{kind: webhook.Kind, id: e.ID, endpoint: &e}
}

func ofERP(e registry.ERPEntry) destination {
	return destination{kind: erp.Kind, id: erpclient.ID(e.AgencyID, e.Live), erp: &e}
}

// destinations are all that the registry has, webhook endpoints first, and how
// each stands.
func (m *meta) destinations(ctx context.Context, pool *postgres.Pool, now time.Time) (registry.Directory, []destination, error) {
	dir, err := registry.ReadDirectory(ctx, pool, m.SimulatorURL, now)
	if err != nil {
		return dir, nil, err
	}
	standings, err := deliveriesOn(pool).Statuses(ctx)
	if err != nil {
		return dir, nil, err
	}
	known := map[string]deliveries.DestinationStatus{}
	for _, st := range standings {
		known[string(st.Kind)+" "+st.DestinationID] = st
	}
	var out []destination
	for _, e := range dir.Endpoints {
		out = append(out, ofEndpoint(e))
	}
	for _, e := range dir.ERPs {
		out = append(out, ofERP(e))
	}
	for i := range out {
		out[i].standing = known[string(out[i].kind)+" "+out[i].id]
	}
	return dir, out, nil
}

// findDestination is the webhook endpoint of an id, or the ERP of an agency, by
// slug or id, and a mode: impots/test. What an operator wrote is not repeated: it
// may be a secret in the wrong place.
func findDestination(dir registry.Directory, named string) (destination, error) {
	if e, ok := dir.ERP(named); ok {
		return ofERP(e), nil
	}
	if e, ok := dir.Endpoint(named); ok {
		return ofEndpoint(e), nil
	}
	return destination{}, errors.New("no webhook endpoint has this id, and no ERP this name, which looks like impots/test; `quittance endpoints list` shows them")
}

// readDestination is findDestination on the registry as it is now, without how it
// stands.
func readDestination(ctx context.Context, pool *postgres.Pool, s roles.Settings, named string, now time.Time) (destination, error) {
	dir, err := registry.ReadDirectory(ctx, pool, s.SimulatorURL, now)
	if err != nil {
		return destination{}, err
	}
	return findDestination(dir, named)
}

// operate runs a look at deliveries, or a change, with the service's time.
func (m *meta) operate(ctx context.Context, do func(context.Context, *postgres.Pool, time.Time) error) error {
	return inWords(m.onPostgres(ctx, do))
}

// onEndpoint is operate for the endpoint or ERP that is the command's argument.
func (m *meta) onEndpoint(ctx context.Context, named string, do func(context.Context, *postgres.Pool, destination, time.Time) error) error {
	return m.operate(ctx, func(ctx context.Context, pool *postgres.Pool, now time.Time) error {
		d, err := readDestination(ctx, pool, m.Settings, named, now)
		if err != nil {
			return fmt.Errorf("ENDPOINT: %w", err)
		}
		return do(ctx, pool, d, now)
	})
}

func oneEndpoint(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("say which endpoint: `%s ENDPOINT`, the id of a webhook endpoint, or impots/test for the ERP of an agency and a mode; `quittance endpoints list` shows them", cmd.CommandPath())
	}
	return nil
}

// endpointJSON is a webhook endpoint or an ERP as --json prints it.
type endpointJSON struct {
	ID              string     `json:"id"`
	Kind            string     `json:"kind"` // webhook or erp
	ApplicationID   string     `json:"application_id,omitempty"`
	ApplicationName string     `json:"application_name,omitempty"`
	Agency          string     `json:"agency,omitempty"` // its slug; absent: the platform's
	URL             string     `json:"url"`
	Events          []string   `json:"events,omitempty"`
	Modes           []string   `json:"modes"`
	MaxInFlight     int        `json:"max_in_flight"`
	MaxPerSecond    *int       `json:"max_per_second"` // null: no limit
	SigningSecrets  int        `json:"signing_secrets,omitempty"`
	OldSecretEndsAt *time.Time `json:"old_secret_ends_at,omitempty"`

	State           string     `json:"state"` // ok, failing, on_hold or suspended
	FailingSince    *time.Time `json:"failing_since"`
	HoldUntil       *time.Time `json:"hold_until"`
	SuspendedAt     *time.Time `json:"suspended_at"`
	SuspendedReason string     `json:"suspended_reason,omitempty"` // gone, failing or operator
	Waiting         int64      `json:"waiting"`
	Queued          int64      `json:"queued"`
	NeedsOperator   int64      `json:"needs_operator"`
	Exhausted       int64      `json:"exhausted"`
	OldestAt        *time.Time `json:"oldest_undelivered_at"`

	MadeDue *int   `json:"made_due,omitempty"` // by resume
	Secret  string `json:"secret,omitempty"`   // a new one
}

func toEndpointJSON(d destination, now time.Time) endpointJSON {
	st := d.standing
	j := endpointJSON{
		ID: d.name(), Kind: string(d.kind), URL: d.url(), FailingSince: timeOrNull(st.FailingSince), HoldUntil: timeOrNull(st.HoldUntil),
		SuspendedAt: timeOrNull(st.SuspendedAt), SuspendedReason: st.SuspendedReason, State: stateName(st, now),
		Waiting: st.Waiting, Queued: st.Queued, NeedsOperator: st.NeedsOperator, Exhausted: st.Exhausted, OldestAt: timeOrNull(st.Oldest), Modes: d.modes(),
	}
	if d.erp != nil {
		j.Agency, j.MaxInFlight = d.erp.Agency, d.erp.MaxInFlight
		return j
	}
	e := d.endpoint
	j.ApplicationID, j.ApplicationName, j.Agency = e.ApplicationID, e.Application, e.Agency
	j.Events, j.MaxInFlight = e.Events, e.MaxInFlight
	j.SigningSecrets, j.OldSecretEndsAt = e.Signing, timeOrNull(e.OldEndsAt)
	if e.MaxPerSecond > 0 {
		j.MaxPerSecond = &e.MaxPerSecond
	}
	return j
}

func (d destination) modes() []string {
	test, live := false, false
	if d.erp != nil {
		test, live = !d.erp.Live, d.erp.Live
	} else {
		test, live = d.endpoint.Test, d.endpoint.Live
	}
	out := []string{}
	if test {
		out = append(out, "test")
	}
	if live {
		out = append(out, "live")
	}
	return out
}

func stateName(st deliveries.DestinationStatus, now time.Time) string {
	switch {
	case !st.SuspendedAt.IsZero():
		return "suspended"
	case st.HoldUntil.After(now):
		return "on_hold"
	case !st.FailingSince.IsZero():
		return "failing"
	}
	return "ok"
}

// standingSaid is that for people.
func standingSaid(st deliveries.DestinationStatus, now time.Time) string {
	switch stateName(st, now) {
	case "suspended":
		return "suspended since " + moment(st.SuspendedAt) + ", " + suspensionSaid[st.SuspendedReason]
	case "on_hold":
		if st.FailingSince.IsZero() {
			return "on hold until " + moment(st.HoldUntil)
		}
		return "failing since " + moment(st.FailingSince) + ", on hold until " + moment(st.HoldUntil)
	case "failing":
		return "failing since " + moment(st.FailingSince)
	}
	return "ok"
}

// suspensionSaid explains the reasons.
var suspensionSaid = map[string]string{
	deliveries.SuspendedGone:     "because it answered 410 Gone",
	deliveries.SuspendedFailing:  "after five days of nothing but failures",
	deliveries.SuspendedOperator: "by an operator",
}

func (p Program) listEndpoints() *cobra.Command {
	m := p.meta()
	var asJSON bool
	cmd := command("list", "List all webhook endpoints and ERPs, and how they stand", m, func(cmd *cobra.Command, _ []string) error {
		return m.operate(cmd.Context(), func(ctx context.Context, pool *postgres.Pool, now time.Time) error {
			_, all, err := m.destinations(ctx, pool, now)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if asJSON {
				list := make([]endpointJSON, len(all))
				for i, d := range all {
					list[i] = toEndpointJSON(d, now)
				}
				return printJSON(out, list)
			}
			if len(all) == 0 {
				_, err := fmt.Fprintln(out, "there are no webhook endpoints and no ERPs yet; add them with `quittance seed FILE`")
				return err
			}
			table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
			_, _ = fmt.Fprintln(table, "ID\tKIND\tOWNER\tURL\tWAITING\tNEEDS OPERATOR\tEXHAUSTED\tOLDEST UNDELIVERED\tSTATE")
			for _, d := range all {
				st := d.standing
				oldest := "-"
				if !st.Oldest.IsZero() {
					oldest = moment(st.Oldest)
				}
				_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\n", d.name(), d.kind, d.owner(), d.url(),
					st.Waiting+st.Queued, st.NeedsOperator, st.Exhausted, oldest, standingSaid(st, now))
			}
			return table.Flush()
		})
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the list as JSON")
	return cmd
}

// standing is an endpoint as it stands now.
func (m *meta) standing(ctx context.Context, pool *postgres.Pool, d destination, now time.Time) (destination, error) {
	_, all, err := m.destinations(ctx, pool, now)
	for _, other := range all {
		if other.kind == d.kind && other.id == d.id {
			return other, err
		}
	}
	return d, err
}

func (p Program) showEndpoint() *cobra.Command {
	m := p.meta()
	var asJSON bool
	cmd := command("show ENDPOINT", "Show an endpoint or ERP, how it stands, and its newest deliveries", m, func(cmd *cobra.Command, args []string) error {
		return m.onEndpoint(cmd.Context(), args[0], func(ctx context.Context, pool *postgres.Pool, d destination, now time.Time) error {
			d, err := m.standing(ctx, pool, d, now)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), toEndpointJSON(d, now))
			}
			latest, err := deliveriesOn(pool).List(ctx, deliveries.Filter{Kind: d.kind, DestinationID: d.id, Limit: 5})
			if err != nil {
				return err
			}
			return d.show(cmd.OutOrStdout(), latest, now)
		})
	})
	cmd.Args = oneEndpoint
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return cmd
}

func (d destination) show(out io.Writer, latest []deliveries.Delivery, now time.Time) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) { _, _ = fmt.Fprintf(table, name+"\t"+format+"\n", args...) }
	line("ID", "%s", d.name())
	line("Kind", "%s", d.kind)
	line("Owner", "%s", d.owner())
	line("URL", "%s", d.url())
	if e := d.endpoint; e != nil {
		line("Events", "%s", strings.Join(e.Events, ", "))
		line("Modes", "%s", strings.Join(d.modes(), ", "))
		rate := "no limit a second"
		if e.MaxPerSecond > 0 {
			rate = fmt.Sprintf("%d a second", e.MaxPerSecond)
		}
		line("Calls", "at most %d at once, %s", e.MaxInFlight, rate)
		signing := fmt.Sprintf("%d", e.Signing)
		if !e.OldEndsAt.IsZero() {
			signing += ", the older one ends at " + moment(e.OldEndsAt)
		}
		line("Signing secrets", "%s", signing)
		if e.Inactive {
			line("Application", "not active: it can create nothing")
		}
	} else {
		line("Calls", "at most %d at once", d.erp.MaxInFlight)
		line("Signs in with", "%s", d.erp.Auth.Type)
	}
	st := d.standing
	line("State", "%s", standingSaid(st, now))
	line("Waiting", "%d, and %d on their way", st.Waiting, st.Queued)
	line("Needs operator", "%d", st.NeedsOperator)
	line("Exhausted", "%d", st.Exhausted)
	if !st.Oldest.IsZero() {
		line("Oldest undelivered", "%s", moment(st.Oldest))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, hint := range d.hints() {
		_, _ = fmt.Fprintln(out, hint)
	}
	if len(latest) == 0 {
		return nil
	}
	_, _ = fmt.Fprint(out, "\nNewest deliveries:\n")
	return showDeliveries(out, latest, map[string]string{d.id: d.name()})
}

// hints are what an operator may want to do now.
func (d destination) hints() (out []string) {
	if !d.standing.SuspendedAt.IsZero() {
		out = append(out, fmt.Sprintf("Nothing is sent to it; what comes is held for 30 days. `quittance endpoints resume %s` sends it.", d.name()))
	}
	again := func(state string, n int64) {
		if n > 0 {
			out = append(out, fmt.Sprintf("`quittance deliveries list --endpoint %[1]s --state %[2]s` shows them; `quittance deliveries retry --endpoint %[1]s --state %[2]s` sends them again.", d.name(), state))
		}
	}
	again("needs_operator", d.standing.NeedsOperator)
	again("exhausted", d.standing.Exhausted)
	return out
}

func (p Program) suspendEndpoint() *cobra.Command {
	m := p.meta()
	var asJSON bool
	cmd := command("suspend ENDPOINT", "Send nothing to a webhook endpoint until it is resumed", m, func(cmd *cobra.Command, args []string) error {
		return m.onEndpoint(cmd.Context(), args[0], func(ctx context.Context, pool *postgres.Pool, d destination, now time.Time) error {
			was, changed, err := deliveriesOn(pool).Suspend(ctx, operator(), d.kind, d.id, now)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			switch {
			case asJSON:
				if d, err = m.standing(ctx, pool, d, now); err != nil {
					return err
				}
				return printJSON(out, toEndpointJSON(d, now))
			case changed:
				_, err = fmt.Fprintf(out, "%s is suspended: within a second nothing more is sent to it.\nWhat comes for it is held for 30 days; `quittance endpoints resume %s` sends it.\n", d.said(), d.name())
			default:
				_, err = fmt.Fprintf(out, "%s was suspended before, at %s, %s, and stays so.\n", d.said(), moment(was.SuspendedAt), suspensionSaid[was.SuspendedReason])
			}
			return err
		})
	})
	cmd.Args = oneEndpoint
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the endpoint as JSON")
	return cmd
}

func (p Program) resumeEndpoint() *cobra.Command {
	m := p.meta()
	var asJSON bool
	cmd := command("resume ENDPOINT", "Send again, at once, all that waits for an endpoint or ERP", m, func(cmd *cobra.Command, args []string) error {
		return m.onEndpoint(cmd.Context(), args[0], func(ctx context.Context, pool *postgres.Pool, d destination, now time.Time) error {
			was, due, err := deliveriesOn(pool).Resume(ctx, operator(), d.kind, d.id, now, progress(cmd.ErrOrStderr()))
			if err != nil {
				return brokenOff(err, due)
			}
			out := cmd.OutOrStdout()
			if asJSON {
				if d, err = m.standing(ctx, pool, d, now); err != nil {
					return err
				}
				j := toEndpointJSON(d, now)
				j.MadeDue = &due
				return printJSON(out, j)
			}
			said := "was not suspended"
			switch {
			case !was.SuspendedAt.IsZero():
				said = "is resumed"
			case was.HoldUntil.After(now):
				said = "is no longer on hold"
			case d.erp != nil:
				said = "was not on hold"
			}
			what := "nothing waited for it"
			if due > 0 {
				what = deliveriesSaid(due) + " that waited for it " + isAre(due) + " due now"
			}
			_, err = fmt.Fprintf(out, "%s %s; %s.\n", d.said(), said, what)
			return err
		})
	})
	cmd.Args = oneEndpoint
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the endpoint as JSON")
	return cmd
}

func (p Program) rotateEndpointSecret() *cobra.Command {
	m := p.meta()
	var overlap time.Duration
	var asJSON bool
	cmd := command("rotate-secret ENDPOINT", "Make a signing secret that replaces a webhook endpoint's, which ends after the overlap", m, func(cmd *cobra.Command, args []string) error {
		return m.onEndpoint(cmd.Context(), args[0], func(ctx context.Context, pool *postgres.Pool, d destination, now time.Time) error {
			if d.erp != nil {
				return errors.New("ENDPOINT: an ERP has no signing secret; its credentials are set by `quittance seed FILE`")
			}
			keys, err := m.OpenKeys()
			if err != nil {
				return err
			}
			rotated, err := registry.RotateSecret(ctx, pool, keys, operator(), d.id, overlap, now)
			if err != nil {
				return refusal(err, "ENDPOINT")
			}
			out := cmd.OutOrStdout()
			if asJSON {
				standing, err := m.standing(ctx, pool, d, now)
				if err != nil {
					return err
				}
				j := toEndpointJSON(standing, now)
				j.Secret = rotated.Secret.Reveal()
				return printJSON(out, j)
			}
			_, _ = fmt.Fprintf(out, "New signing secret of endpoint %s of %s. It is shown once:\n\n  %s\n\n", d.name(), d.owner(), rotated.Secret.Reveal())
			if at := rotated.Endpoint.OldEndsAt; at.IsZero() {
				_, err = fmt.Fprint(out, "What it had before has ended: webhooks are signed with the new one alone, which the receiver needs now.\n")
			} else {
				_, err = fmt.Fprintf(out, "The one that it replaces signs beside it until %s: the receiver needs the new one by then.\n", moment(at))
			}
			return err
		})
	})
	cmd.Args = oneEndpoint
	cmd.Flags().DurationVar(&overlap, "overlap", 24*time.Hour, "how long the old secret goes on signing beside the new one; 0 ends it at once")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the endpoint and its new secret as JSON")
	return cmd
}

// progress tells how far long work is, once a second.
func progress(out io.Writer) deliveries.Progress {
	last := time.Now()
	return func(done, total int) {
		if time.Since(last) >= time.Second {
			last = time.Now()
			_, _ = fmt.Fprintf(out, "%d of %d\n", done, total)
		}
	}
}

// brokenOff adds to an error of long work what is done.
func brokenOff(err error, done int) error {
	if done == 0 || isRefused(err, "") {
		return err
	}
	return fmt.Errorf("%w; %s are due now, give the command again for the others", err, deliveriesSaid(done))
}

func deliveriesSaid(n int) string {
	if n == 1 {
		return "1 delivery"
	}
	return fmt.Sprintf("%d deliveries", n)
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
