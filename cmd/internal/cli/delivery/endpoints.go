package delivery

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/display"
	"quittance/cmd/internal/cli/render"
	"quittance/cmd/internal/roles"
	"quittance/internal/deliveries"
	"quittance/internal/registry"
)

// Endpoints returns the command `endpoints`.
func Endpoints() cli.Command {
	return cli.Command{
		Use: "endpoints", Short: "Register and operate webhook endpoints, and operate ERPs and cash-in partners: the destinations of deliveries",
		Commands: []cli.Command{addEndpoint(), listEndpoints(), showEndpoint(), setEndpoint(), removeEndpoint(), suspendEndpoint(), resumeEndpoint(), recoverEndpoint(), rotateEndpointSecret()},
		Words:    words,
	}
}

// destination is a webhook endpoint, an ERP or a cash-in partner with its status.
type destination struct {
	deliveries.Entry
	status deliveries.DestinationStatus
}

// withStatus returns destinations with their present status.
func withStatus(ctx context.Context, m *cli.Meta, entries ...deliveries.Entry) ([]destination, error) {
	statuses, err := access.Deliveries(m).Statuses(ctx)
	if err != nil {
		return nil, err
	}
	known := map[string]deliveries.DestinationStatus{}
	for _, st := range statuses {
		known[string(st.Kind)+" "+st.DestinationID] = st
	}
	return render.Mapped(entries, func(e deliveries.Entry) destination {
		return destination{e, known[string(e.Kind)+" "+e.ID]}
	}), nil
}

// whichEndpoint is the error when the argument ENDPOINT is missing.
const whichEndpoint = "say which endpoint: {usage}, the id of a webhook endpoint or of the application of a cash-in partner, or impots/test for the ERP of an agency and a mode; `quittance endpoints list` shows them"

// onEndpoint returns the Operate of a command whose argument is a destination.
func onEndpoint(run func(ctx context.Context, m *cli.Meta, d deliveries.Entry) error) func(context.Context, *cli.Meta) error {
	return func(ctx context.Context, m *cli.Meta) error {
		d, err := access.ReadDestination(ctx, m, "ENDPOINT", m.Args[0])
		if err != nil {
			return err
		}
		return run(ctx, m, d)
	}
}

// endpointJSON is a webhook endpoint, an ERP or a cash-in partner as --json prints it. The agency is a
// slug; the platform's endpoints have none. No max_per_second means no limit.
func endpointJSON(d destination, now time.Time) render.Object {
	st := d.status
	return render.Object{
		"id", d.Name, "kind", d.Kind, "application_id?", d.ApplicationID, "application_name?", d.Application, "agency?", d.Agency,
		"url", d.URL, "events?", d.Events, "modes", d.Modes, "max_in_flight", d.MaxInFlight, "max_per_second", render.OrNull(d.MaxPerSecond),
		"signing_secrets?", d.Signing, "old_secret_ends_at?", d.OldEndsAt,
		"state", d.stateName(now), "failing_since", st.FailingSince, "refused_since", st.RefusedSince, "hold_until", st.HoldUntil,
		"suspended_at", st.SuspendedAt, "suspended_reason?", st.SuspendedReason, "removed_at?", d.RemovedAt, "set_by_command?", d.ByCommand,
		"waiting", st.Waiting, "queued", st.Queued, "needs_operator", st.NeedsOperator, "exhausted", st.Exhausted,
		"oldest_undelivered_at", st.Oldest,
	}
}

// stateName returns the state of the destination.
func (d destination) stateName(now time.Time) string {
	if !d.RemovedAt.IsZero() {
		return "removed"
	}
	return stateName(d.status, now)
}

// statusText returns the state of the destination for people.
func (d destination) statusText(now time.Time) string {
	if !d.RemovedAt.IsZero() {
		return "removed " + render.Moment(d.RemovedAt)
	}
	return statusText(d.status, now)
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

// statusText returns the state for people.
func statusText(st deliveries.DestinationStatus, now time.Time) string {
	switch stateName(st, now) {
	case "suspended":
		return "suspended since " + render.Moment(st.SuspendedAt) + ", " + suspensionReasons[st.SuspendedReason]
	case "on_hold":
		if !st.RefusedSince.IsZero() {
			return "refuses our credentials since " + render.Moment(st.RefusedSince) + ", tried again at " + render.Moment(st.HoldUntil)
		}
		if st.FailingSince.IsZero() {
			return "on hold until " + render.Moment(st.HoldUntil)
		}
		return "failing since " + render.Moment(st.FailingSince) + ", on hold until " + render.Moment(st.HoldUntil)
	case "failing":
		return "failing since " + render.Moment(st.FailingSince)
	}
	return "ok"
}

// suspensionReasons says why an endpoint is suspended.
var suspensionReasons = map[string]string{
	deliveries.SuspendedGone:     "because it answered 410 Gone",
	deliveries.SuspendedFailing:  "after five days in which every call failed",
	deliveries.SuspendedOperator: "by an operator",
	deliveries.SuspendedRemoved:  "because it was removed from the registry",
}

func listEndpoints() cli.Command {
	var removed bool
	return cli.Command{
		Use: "list", Short: "List all webhook endpoints, ERPs and cash-in partners with their status", JSON: "the list", Examples: []string{"endpoints list --json"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.BoolVar(&removed, "removed", false, "also those that were removed")
		},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			dir, err := registry.ReadDirectory(ctx, m.Pool, m.SimulatorURL, m.Now)
			if err != nil {
				return err
			}
			entries := slices.DeleteFunc(roles.DeliveryKinds(nil).Entries(dir), func(e deliveries.Entry) bool { return !removed && !e.RemovedAt.IsZero() })
			all, err := withStatus(ctx, m, entries...)
			if err != nil {
				return err
			}
			list := render.Mapped(all, func(d destination) render.Object { return endpointJSON(d, m.Now) })
			return m.Show(list, func(p *render.Page) {
				none, heading := "there are no webhook endpoints, ERPs and cash-in partners yet; add them with `quittance endpoints add` and `quittance seed FILE`", "ID,KIND,OWNER,URL,WAITING,NEEDS OPERATOR,EXHAUSTED,OLDEST UNDELIVERED,STATE"
				p.Table(none, heading, render.Mapped(all, func(d destination) []any {
					st := d.status
					return []any{d.Name, d.Kind, d.Owner, d.URL, st.Waiting + st.Queued, st.NeedsOperator, st.Exhausted, render.MomentOr(st.Oldest, "-"), d.statusText(m.Now)}
				}))
			})
		},
	}
}

func showEndpoint() cli.Command {
	return cli.Command{
		Use: "show ENDPOINT", Short: "Show an endpoint or ERP, its status and its newest deliveries", JSON: "it", Missing: whichEndpoint, Examples: []string{"endpoints show impots/test"},
		Operate: onEndpoint(func(ctx context.Context, m *cli.Meta, e deliveries.Entry) error {
			found, err := withStatus(ctx, m, e)
			if err != nil {
				return err
			}
			latest, err := access.Deliveries(m).List(ctx, deliveries.Filter{Kind: e.Kind, DestinationID: e.ID, Limit: 5})
			if err != nil {
				return err
			}
			return m.Show(endpointJSON(found[0], m.Now), func(p *render.Page) { sayEndpoint(p, found[0], latest, m.Now) })
		}),
	}
}

// sayEndpoint adds a destination and its newest deliveries.
func sayEndpoint(p *render.Page, d destination, latest []deliveries.Delivery, now time.Time) {
	st := d.status
	rate, signing := "no limit a second", ""
	if d.MaxPerSecond > 0 {
		rate = fmt.Sprintf("%d a second", d.MaxPerSecond)
	}
	if d.Signing > 0 {
		signing = strconv.Itoa(d.Signing)
	}
	if !d.OldEndsAt.IsZero() {
		signing += ", the older one ends at " + render.Moment(d.OldEndsAt)
	}
	p.Facts([][2]string{
		{"ID", d.Name},
		{"Kind", string(d.Kind)},
		{"Owner", d.Owner},
		{"URL", d.URL},
		{"Events", strings.Join(d.Events, ", ")},
		{"Modes", strings.Join(d.Modes, ", ")},
		{"Set by command", strings.Join(d.ByCommand, ", ")},
		{"Calls", fmt.Sprintf("at most %d at once, %s", d.MaxInFlight, rate)},
		{"Signing secrets", signing},
	}, d.Facts, [][2]string{
		{"State", d.statusText(now)},
		{"Waiting", fmt.Sprintf("%d, and %d on their way", st.Waiting, st.Queued)},
		{"Needs operator", fmt.Sprint(st.NeedsOperator)},
		{"Exhausted", fmt.Sprint(st.Exhausted)},
		{"Oldest undelivered", render.MomentOr(st.Oldest, "")},
	})
	if !d.RemovedAt.IsZero() {
		p.Say("`quittance endpoints add` with the same owner and address restores it, and sends what waits.")
	} else if !st.SuspendedAt.IsZero() {
		p.Say("Nothing is sent to it; new deliveries are held for 30 days. `quittance endpoints resume %s` sends them.", d.Name)
	}
	again := func(state string, n int64) {
		if n > 0 {
			p.Say("`quittance deliveries list --endpoint %[1]s --state %[2]s` shows them; `quittance deliveries retry --endpoint %[1]s --state %[2]s` sends them again.", d.Name, state)
		}
	}
	again("needs_operator", st.NeedsOperator)
	again("exhausted", st.Exhausted)
	if len(latest) > 0 {
		p.Say("\nNewest deliveries:")
		display.SayDeliveries(p, "", latest, display.Destinations{d.ID: d.Entry}, nil, now)
	}
}

// showChanged shows an endpoint after an operation. With --json it shows the endpoint as
// it is now, followed by more.
func showChanged(ctx context.Context, m *cli.Meta, e deliveries.Entry, text func(p *render.Page), more ...any) error {
	if !m.AsJSON {
		return m.Show(nil, text)
	}
	e, err := access.ReadDestination(ctx, m, "ENDPOINT", e.Name)
	if err != nil {
		return err
	}
	found, err := withStatus(ctx, m, e)
	if err != nil {
		return err
	}
	return m.Show(append(endpointJSON(found[0], m.Now), more...), text)
}

func suspendEndpoint() cli.Command {
	return cli.Command{
		Use: "suspend ENDPOINT", Short: "Send nothing to a webhook endpoint until it is resumed", JSON: "the endpoint", Missing: whichEndpoint, Examples: []string{"endpoints suspend 0198c5d2-…"},
		Operate: onEndpoint(func(ctx context.Context, m *cli.Meta, d deliveries.Entry) error {
			was, changed, err := access.Deliveries(m).Suspend(ctx, m.By, d.Kind, d.ID, m.Now)
			if err != nil {
				return err
			}
			return showChanged(ctx, m, d, func(p *render.Page) {
				if !changed {
					p.Say("%s was suspended before, at %s, %s, and stays suspended.", d.Title, render.Moment(was.SuspendedAt), suspensionReasons[was.SuspendedReason])
					return
				}
				p.Say("%s is suspended: within a second nothing more is sent to it.", d.Title)
				p.Say("New deliveries to it are held for 30 days; `quittance endpoints resume %s` sends them.", d.Name)
			})
		}),
	}
}

func resumeEndpoint() cli.Command {
	return cli.Command{
		Use: "resume ENDPOINT", Short: "Send everything that waits for an endpoint or ERP at once", JSON: "the endpoint", Missing: whichEndpoint, Examples: []string{"endpoints resume impots/test"},
		Operate: onEndpoint(func(ctx context.Context, m *cli.Meta, d deliveries.Entry) error {
			if err := inUse(d); err != nil {
				return err
			}
			was, due, err := access.Deliveries(m).Resume(ctx, m.By, d.Kind, d.ID, m.Now, cli.Progress(m.Err))
			if err != nil {
				return brokenOff(err, due)
			}
			return showChanged(ctx, m, d, func(p *render.Page) {
				said := "was not suspended"
				kind, _ := roles.DeliveryKinds(nil).Of(d.Kind)
				switch {
				case !was.SuspendedAt.IsZero():
					said = "is resumed"
				case was.HoldUntil.After(m.Now):
					said = "is no longer on hold"
				case !kind.Suspends:
					said = "was not on hold"
				}
				what := "nothing waited for it"
				if due > 0 {
					what = render.CountedIs(due, "delivery") + " due now that waited for it"
				}
				p.Say("%s %s; %s.", d.Title, said, what)
			}, "made_due", due)
		}),
	}
}

func rotateEndpointSecret() cli.Command {
	var overlap time.Duration
	return cli.Command{
		Use: "rotate-secret ENDPOINT", Short: "Make a new signing secret for a webhook endpoint; the old secret ends after the overlap", JSON: "the endpoint and its new secret",
		Missing: whichEndpoint, Examples: []string{"endpoints rotate-secret 0198c5d2-… --overlap 24h"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.DurationVar(&overlap, "overlap", 24*time.Hour, "how long the old secret still signs beside the new one; 0 ends it at once")
		},
		Operate: onWebhookEndpoint(func(ctx context.Context, m *cli.Meta, d deliveries.Entry) error {
			keys, err := m.OpenKeys()
			if err != nil {
				return err
			}
			rotated, err := registry.RotateSecret(ctx, m.Pool, keys, m.By, d.ID, overlap, m.Now)
			if err != nil {
				return err
			}
			return showChanged(ctx, m, d, func(p *render.Page) {
				p.Say("New signing secret of endpoint %s of %s. It is shown once:\n\n  %s\n", d.Name, d.Owner, rotated.Secret.Reveal())
				if at := rotated.Endpoint.OldEndsAt; at.IsZero() {
					p.Say("The old secret has ended: only the new one signs webhooks. The receiver needs it now.")
				} else {
					p.Say("The old secret signs beside it until %s: the receiver needs the new one by then.", render.Moment(at))
				}
			}, "secret", rotated.Secret.Reveal())
		}),
	}
}

// brokenOff adds to an error of long work how many deliveries are due already.
func brokenOff(err error, done int) error {
	if done == 0 || cli.IsRefused(err, "") {
		return err
	}
	return fmt.Errorf("%w; %s due now, give the command again for the others", err, render.CountedIs(done, "delivery"))
}
