package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
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

// destination is where deliveries go: a webhook endpoint or an agency's ERP, with its
// status. One of the two pointers is set.
type destination struct {
	kind     deliveries.Kind
	id       string // as deliveries have it
	endpoint *registry.EndpointEntry
	erp      *registry.ERPEntry
	status   deliveries.DestinationStatus
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

// destinations are all that the registry has, webhook endpoints first, with their
// status.
func (m *meta) destinations(ctx context.Context, pool *postgres.Pool, now time.Time) ([]destination, error) {
	dir, err := registry.ReadDirectory(ctx, pool, m.SimulatorURL, now)
	if err != nil {
		return nil, err
	}
	statuses, err := deliveriesOn(pool).Statuses(ctx)
	if err != nil {
		return nil, err
	}
	known := map[string]deliveries.DestinationStatus{}
	for _, st := range statuses {
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
		out[i].status = known[string(out[i].kind)+" "+out[i].id]
	}
	return out, nil
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

// readDestination is findDestination on the registry as it is now, without the
// status.
func readDestination(ctx context.Context, pool *postgres.Pool, s roles.Settings, named string, now time.Time) (destination, error) {
	dir, err := registry.ReadDirectory(ctx, pool, s.SimulatorURL, now)
	if err != nil {
		return destination{}, err
	}
	return findDestination(dir, named)
}

// endpointCommand makes a command whose argument is an endpoint or ERP.
func (p Program) endpointCommand(verb, short, example, json string, run func(context.Context, *cobra.Command, *meta, *postgres.Pool, destination, time.Time) error) *cobra.Command {
	m := p.meta()
	cmd := command(verb+" ENDPOINT", short, m, func(cmd *cobra.Command, args []string) error {
		return m.operate(cmd, func(ctx context.Context, pool *postgres.Pool, now time.Time) error {
			d, err := readDestination(ctx, pool, m.Settings, args[0], now)
			if err != nil {
				return fmt.Errorf("ENDPOINT: %w", err)
			}
			return run(ctx, cmd, m, pool, d, now)
		})
	})
	cmd.Example = p.Name + " endpoints " + verb + " " + example
	takesArgument(cmd, "say which endpoint: `quittance endpoints "+verb+" ENDPOINT`, the id of a webhook endpoint, or impots/test for the ERP of an agency and a mode; `quittance endpoints list` shows them")
	m.takesJSON(cmd, json)
	return cmd
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
	st := d.status
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
	if d.erp != nil {
		return []string{modeOf(d.erp.Live)}
	}
	out := []string{}
	if d.endpoint.Test {
		out = append(out, "test")
	}
	if d.endpoint.Live {
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

// statusSaid is that for people.
func statusSaid(st deliveries.DestinationStatus, now time.Time) string {
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

// suspensionSaid says why an endpoint is suspended.
var suspensionSaid = map[string]string{
	deliveries.SuspendedGone:     "because it answered 410 Gone",
	deliveries.SuspendedFailing:  "after five days of nothing but failures",
	deliveries.SuspendedOperator: "by an operator",
}

func (p Program) listEndpoints() *cobra.Command {
	m := p.meta()
	cmd := command("list", "List all webhook endpoints and ERPs with their status", m, func(cmd *cobra.Command, _ []string) error {
		return m.operate(cmd, func(ctx context.Context, pool *postgres.Pool, now time.Time) error {
			all, err := m.destinations(ctx, pool, now)
			if err != nil {
				return err
			}
			list := mapped(all, func(d destination) endpointJSON { return toEndpointJSON(d, now) })
			return m.show(cmd, list, func(p *page) {
				if len(all) == 0 {
					p.say("there are no webhook endpoints and no ERPs yet; add them with `quittance seed FILE`")
					return
				}
				heading := []string{"ID", "KIND", "OWNER", "URL", "WAITING", "NEEDS OPERATOR", "EXHAUSTED", "OLDEST UNDELIVERED", "STATE"}
				p.table(heading, mapped(all, func(d destination) []any {
					st := d.status
					return []any{d.name(), d.kind, d.owner(), d.url(), st.Waiting + st.Queued, st.NeedsOperator, st.Exhausted, momentOr(st.Oldest, "-"), statusSaid(st, now)}
				}))
			})
		})
	})
	cmd.Example = p.Name + " endpoints list --json"
	m.takesJSON(cmd, "the list")
	return cmd
}

// withStatus is an endpoint with its present status.
func (m *meta) withStatus(ctx context.Context, pool *postgres.Pool, d destination, now time.Time) (destination, error) {
	all, err := m.destinations(ctx, pool, now)
	for _, other := range all {
		if other.kind == d.kind && other.id == d.id {
			return other, err
		}
	}
	return d, err
}

func (p Program) showEndpoint() *cobra.Command {
	return p.endpointCommand("show", "Show an endpoint or ERP, its status and its newest deliveries", "impots/test", "it",
		func(ctx context.Context, cmd *cobra.Command, m *meta, pool *postgres.Pool, d destination, now time.Time) error {
			d, err := m.withStatus(ctx, pool, d, now)
			if err != nil {
				return err
			}
			latest, err := deliveriesOn(pool).List(ctx, deliveries.Filter{Kind: d.kind, DestinationID: d.id, Limit: 5})
			if err != nil {
				return err
			}
			return m.show(cmd, toEndpointJSON(d, now), func(p *page) { p.endpoint(d, latest, now) })
		})
}

// endpoint adds an endpoint and its newest deliveries.
func (p *page) endpoint(d destination, latest []deliveries.Delivery, now time.Time) {
	st := d.status
	facts := [][2]string{{"ID", d.name()}, {"Kind", string(d.kind)}, {"Owner", d.owner()}, {"URL", d.url()}}
	if e := d.endpoint; e != nil {
		rate, signing := "no limit a second", strconv.Itoa(e.Signing)
		if e.MaxPerSecond > 0 {
			rate = fmt.Sprintf("%d a second", e.MaxPerSecond)
		}
		if !e.OldEndsAt.IsZero() {
			signing += ", the older one ends at " + moment(e.OldEndsAt)
		}
		facts = append(facts, [][2]string{
			{"Events", strings.Join(e.Events, ", ")},
			{"Modes", strings.Join(d.modes(), ", ")},
			{"Calls", fmt.Sprintf("at most %d at once, %s", e.MaxInFlight, rate)},
			{"Signing secrets", signing},
		}...)
		if e.Inactive {
			facts = append(facts, [2]string{"Application", "not active: it can create nothing"})
		}
	} else {
		facts = append(facts, [][2]string{{"Calls", fmt.Sprintf("at most %d at once", d.erp.MaxInFlight)}, {"Signs in with", string(d.erp.Auth.Type)}}...)
	}
	p.facts(append(facts, [][2]string{
		{"State", statusSaid(st, now)},
		{"Waiting", fmt.Sprintf("%d, and %d on their way", st.Waiting, st.Queued)},
		{"Needs operator", fmt.Sprint(st.NeedsOperator)},
		{"Exhausted", fmt.Sprint(st.Exhausted)},
		{"Oldest undelivered", momentOr(st.Oldest, "")},
	}...)...)
	if !st.SuspendedAt.IsZero() {
		p.say("Nothing is sent to it; new deliveries are held for 30 days. `quittance endpoints resume %s` sends them.", d.name())
	}
	again := func(state string, n int64) {
		if n > 0 {
			p.say("`quittance deliveries list --endpoint %[1]s --state %[2]s` shows them; `quittance deliveries retry --endpoint %[1]s --state %[2]s` sends them again.", d.name(), state)
		}
	}
	again("needs_operator", st.NeedsOperator)
	again("exhausted", st.Exhausted)
	if len(latest) > 0 {
		p.say("\nNewest deliveries:")
		p.deliveries(latest, map[string]string{d.id: d.name()})
	}
}

// shown is an endpoint with its present status as --json prints it, and nothing
// when people read.
func (m *meta) shown(ctx context.Context, pool *postgres.Pool, d destination, now time.Time) (endpointJSON, error) {
	if !m.asJSON {
		return endpointJSON{}, nil
	}
	d, err := m.withStatus(ctx, pool, d, now)
	return toEndpointJSON(d, now), err
}

func (p Program) suspendEndpoint() *cobra.Command {
	return p.endpointCommand("suspend", "Send nothing to a webhook endpoint until it is resumed", "0198c5d2-…", "the endpoint",
		func(ctx context.Context, cmd *cobra.Command, m *meta, pool *postgres.Pool, d destination, now time.Time) error {
			was, changed, err := deliveriesOn(pool).Suspend(ctx, operator(), d.kind, d.id, now)
			if err != nil {
				return err
			}
			j, err := m.shown(ctx, pool, d, now)
			if err != nil {
				return err
			}
			return m.show(cmd, j, func(p *page) {
				if !changed {
					p.say("%s was suspended before, at %s, %s, and stays so.", d.said(), moment(was.SuspendedAt), suspensionSaid[was.SuspendedReason])
					return
				}
				p.say("%s is suspended: within a second nothing more is sent to it.", d.said())
				p.say("New deliveries to it are held for 30 days; `quittance endpoints resume %s` sends them.", d.name())
			})
		})
}

func (p Program) resumeEndpoint() *cobra.Command {
	return p.endpointCommand("resume", "Send everything that waits for an endpoint or ERP, at once", "impots/test", "the endpoint",
		func(ctx context.Context, cmd *cobra.Command, m *meta, pool *postgres.Pool, d destination, now time.Time) error {
			was, due, err := deliveriesOn(pool).Resume(ctx, operator(), d.kind, d.id, now, progress(cmd.ErrOrStderr()))
			if err != nil {
				return brokenOff(err, due)
			}
			j, err := m.shown(ctx, pool, d, now)
			if err != nil {
				return err
			}
			j.MadeDue = &due
			return m.show(cmd, j, func(p *page) {
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
				p.say("%s %s; %s.", d.said(), said, what)
			})
		})
}

func (p Program) rotateEndpointSecret() *cobra.Command {
	var overlap time.Duration
	cmd := p.endpointCommand("rotate-secret", "Make a signing secret that replaces a webhook endpoint's, which ends after the overlap", "0198c5d2-… --overlap 24h", "the endpoint and its new secret",
		func(ctx context.Context, cmd *cobra.Command, m *meta, pool *postgres.Pool, d destination, now time.Time) error {
			if d.erp != nil {
				return errors.New("ENDPOINT: an ERP has no signing secret; its credentials are set by `quittance seed FILE`")
			}
			keys, err := m.OpenKeys()
			if err != nil {
				return err
			}
			rotated, err := registry.RotateSecret(ctx, pool, keys, operator(), d.id, overlap, now)
			if err != nil {
				return err
			}
			j, err := m.shown(ctx, pool, d, now)
			if err != nil {
				return err
			}
			j.Secret = rotated.Secret.Reveal()
			return m.show(cmd, j, func(p *page) {
				p.say("New signing secret of endpoint %s of %s. It is shown once:\n\n  %s\n", d.name(), d.owner(), rotated.Secret.Reveal())
				if at := rotated.Endpoint.OldEndsAt; at.IsZero() {
					p.say("The old secret has ended: only the new one signs webhooks. The receiver needs it now.")
				} else {
					p.say("The old secret signs beside it until %s: the receiver needs the new one by then.", moment(at))
				}
			})
		})
	cmd.Flags().DurationVar(&overlap, "overlap", 24*time.Hour, "how long the old secret goes on signing beside the new one; 0 ends it at once")
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
