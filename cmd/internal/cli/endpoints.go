package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/roles"
	"quittance/internal/deliveries"
	"quittance/internal/registry"
	"quittance/sinks/webhook"
)

func endpoints() Command {
	return Command{
		Use: "endpoints", Short: "Look after webhook endpoints and ERPs: where deliveries go",
		Commands: []Command{listEndpoints(), showEndpoint(), suspendEndpoint(), resumeEndpoint(), recoverEndpoint(), rotateEndpointSecret()},
	}
}

// destination is where deliveries go, with its status.
type destination struct {
	deliveries.Entry
	status deliveries.DestinationStatus
}

// destinations are all that the registry has, kind by kind, with their status.
func (m *Meta) destinations(ctx context.Context) ([]destination, error) {
	dir, err := registry.ReadDirectory(ctx, m.pool, m.SimulatorURL, m.now)
	if err != nil {
		return nil, err
	}
	statuses, err := m.deliveries().Statuses(ctx)
	if err != nil {
		return nil, err
	}
	known := map[string]deliveries.DestinationStatus{}
	for _, st := range statuses {
		known[string(st.Kind)+" "+st.DestinationID] = st
	}
	return mapped(roles.DeliveryKinds(nil).Entries(dir), func(e deliveries.Entry) destination {
		return destination{e, known[string(e.Kind)+" "+e.ID]}
	}), nil
}

// findDestination finds a destination by what an operator calls it. What the
// operator wrote is not repeated: it may be a secret in the wrong place.
func findDestination(dir registry.Directory, named string) (deliveries.Entry, error) {
	if e, ok := roles.DeliveryKinds(nil).Entry(dir, named); ok {
		return e, nil
	}
	return deliveries.Entry{}, errors.New("no webhook endpoint has this id, and no ERP this name, which looks like impots/test; `quittance endpoints list` shows them")
}

// readDestination is findDestination on the registry as it is now. flag is what the
// command line calls it.
func (m *Meta) readDestination(ctx context.Context, flag, named string) (deliveries.Entry, error) {
	dir, err := registry.ReadDirectory(ctx, m.pool, m.SimulatorURL, m.now)
	if err != nil {
		return deliveries.Entry{}, err
	}
	e, err := findDestination(dir, named)
	if err != nil {
		return e, fmt.Errorf("%s: %w", flag, err)
	}
	return e, nil
}

// whichEndpoint is said when the argument of a command is missing.
const whichEndpoint = "say which endpoint: {usage}, the id of a webhook endpoint, or impots/test for the ERP of an agency and a mode; `quittance endpoints list` shows them"

// onEndpoint is the run of a command whose argument is a destination.
func onEndpoint(run func(ctx context.Context, m *Meta, d deliveries.Entry) error) func(context.Context, *Meta) error {
	return func(ctx context.Context, m *Meta) error {
		d, err := m.readDestination(ctx, "ENDPOINT", m.args[0])
		if err != nil {
			return err
		}
		return run(ctx, m, d)
	}
}

// endpointJSON is a webhook endpoint or an ERP as --json prints it.
type endpointJSON struct {
	ID              string     `json:"id"`
	Kind            string     `json:"kind"` // of delivery: webhook, erp
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
		ID: d.Name, Kind: string(d.Kind), ApplicationID: d.ApplicationID, ApplicationName: d.Application, Agency: d.Agency, URL: d.URL, Events: d.Events, Modes: d.Modes,
		MaxInFlight: d.MaxInFlight, SigningSecrets: d.Signing, OldSecretEndsAt: timeOrNull(d.OldEndsAt),
		State: stateName(st, now), FailingSince: timeOrNull(st.FailingSince), HoldUntil: timeOrNull(st.HoldUntil),
		SuspendedAt: timeOrNull(st.SuspendedAt), SuspendedReason: st.SuspendedReason,
		Waiting: st.Waiting, Queued: st.Queued, NeedsOperator: st.NeedsOperator, Exhausted: st.Exhausted, OldestAt: timeOrNull(st.Oldest),
	}
	if d.MaxPerSecond > 0 {
		j.MaxPerSecond = &d.MaxPerSecond
	}
	return j
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

func listEndpoints() Command {
	return Command{
		Use: "list", Short: "List all webhook endpoints and ERPs with their status", JSON: "the list", Examples: []string{"endpoints list --json"},
		Operate: func(ctx context.Context, m *Meta) error {
			all, err := m.destinations(ctx)
			if err != nil {
				return err
			}
			list := mapped(all, func(d destination) endpointJSON { return toEndpointJSON(d, m.now) })
			return m.show(list, func(p *page) {
				none, heading := "there are no webhook endpoints and no ERPs yet; add them with `quittance seed FILE`", "ID,KIND,OWNER,URL,WAITING,NEEDS OPERATOR,EXHAUSTED,OLDEST UNDELIVERED,STATE"
				p.table(none, heading, mapped(all, func(d destination) []any {
					st := d.status
					return []any{d.Name, d.Kind, d.Owner, d.URL, st.Waiting + st.Queued, st.NeedsOperator, st.Exhausted, momentOr(st.Oldest, "-"), statusSaid(st, m.now)}
				}))
			})
		},
	}
}

// withStatus is a destination with its present status.
func (m *Meta) withStatus(ctx context.Context, d deliveries.Entry) (destination, error) {
	all, err := m.destinations(ctx)
	for _, other := range all {
		if other.Kind == d.Kind && other.ID == d.ID {
			return other, err
		}
	}
	return destination{Entry: d}, err
}

func showEndpoint() Command {
	return Command{
		Use: "show ENDPOINT", Short: "Show an endpoint or ERP, its status and its newest deliveries", JSON: "it", Missing: whichEndpoint, Examples: []string{"endpoints show impots/test"},
		Operate: onEndpoint(func(ctx context.Context, m *Meta, e deliveries.Entry) error {
			d, err := m.withStatus(ctx, e)
			if err != nil {
				return err
			}
			latest, err := m.deliveries().List(ctx, deliveries.Filter{Kind: d.Kind, DestinationID: d.ID, Limit: 5})
			if err != nil {
				return err
			}
			return m.show(toEndpointJSON(d, m.now), func(p *page) { p.endpoint(d, latest, m.now) })
		}),
	}
}

// endpoint adds an endpoint and its newest deliveries.
func (p *page) endpoint(d destination, latest []deliveries.Delivery, now time.Time) {
	st := d.status
	rate, signing := "no limit a second", ""
	if d.MaxPerSecond > 0 {
		rate = fmt.Sprintf("%d a second", d.MaxPerSecond)
	}
	if d.Signing > 0 {
		signing = strconv.Itoa(d.Signing)
	}
	if !d.OldEndsAt.IsZero() {
		signing += ", the older one ends at " + moment(d.OldEndsAt)
	}
	p.facts(append(append([][2]string{
		{"ID", d.Name},
		{"Kind", string(d.Kind)},
		{"Owner", d.Owner},
		{"URL", d.URL},
		{"Events", strings.Join(d.Events, ", ")},
		{"Modes", strings.Join(d.Modes, ", ")},
		{"Calls", fmt.Sprintf("at most %d at once, %s", d.MaxInFlight, rate)},
		{"Signing secrets", signing},
	}, d.Facts...), [][2]string{
		{"State", statusSaid(st, now)},
		{"Waiting", fmt.Sprintf("%d, and %d on their way", st.Waiting, st.Queued)},
		{"Needs operator", fmt.Sprint(st.NeedsOperator)},
		{"Exhausted", fmt.Sprint(st.Exhausted)},
		{"Oldest undelivered", momentOr(st.Oldest, "")},
	}...)...)
	if !st.SuspendedAt.IsZero() {
		p.say("Nothing is sent to it; new deliveries are held for 30 days. `quittance endpoints resume %s` sends them.", d.Name)
	}
	again := func(state string, n int64) {
		if n > 0 {
			p.say("`quittance deliveries list --endpoint %[1]s --state %[2]s` shows them; `quittance deliveries retry --endpoint %[1]s --state %[2]s` sends them again.", d.Name, state)
		}
	}
	again("needs_operator", st.NeedsOperator)
	again("exhausted", st.Exhausted)
	if len(latest) > 0 {
		p.say("\nNewest deliveries:")
		p.deliveries("", latest, map[string]string{d.ID: d.Name})
	}
}

// showEnd shows what an operation has done to an endpoint. With --json it is the
// endpoint with its present status, after done has added what else is to be told.
func (m *Meta) showEnd(ctx context.Context, e deliveries.Entry, done func(*endpointJSON), text func(p *page)) error {
	var j endpointJSON
	if m.asJSON { // people are not shown the status
		d, err := m.withStatus(ctx, e)
		if err != nil {
			return err
		}
		j = toEndpointJSON(d, m.now)
		done(&j)
	}
	return m.show(j, text)
}

func suspendEndpoint() Command {
	return Command{
		Use: "suspend ENDPOINT", Short: "Send nothing to a webhook endpoint until it is resumed", JSON: "the endpoint", Missing: whichEndpoint, Examples: []string{"endpoints suspend 0198c5d2-…"},
		Operate: onEndpoint(func(ctx context.Context, m *Meta, d deliveries.Entry) error {
			was, changed, err := m.deliveries().Suspend(ctx, operator(), d.Kind, d.ID, m.now)
			if err != nil {
				return err
			}
			return m.showEnd(ctx, d, func(*endpointJSON) {}, func(p *page) {
				if !changed {
					p.say("%s was suspended before, at %s, %s, and stays so.", d.Title, moment(was.SuspendedAt), suspensionSaid[was.SuspendedReason])
					return
				}
				p.say("%s is suspended: within a second nothing more is sent to it.", d.Title)
				p.say("New deliveries to it are held for 30 days; `quittance endpoints resume %s` sends them.", d.Name)
			})
		}),
	}
}

func resumeEndpoint() Command {
	return Command{
		Use: "resume ENDPOINT", Short: "Send everything that waits for an endpoint or ERP, at once", JSON: "the endpoint", Missing: whichEndpoint, Examples: []string{"endpoints resume impots/test"},
		Operate: onEndpoint(func(ctx context.Context, m *Meta, d deliveries.Entry) error {
			was, due, err := m.deliveries().Resume(ctx, operator(), d.Kind, d.ID, m.now, progress(m.Err))
			if err != nil {
				return brokenOff(err, due)
			}
			return m.showEnd(ctx, d, func(j *endpointJSON) { j.MadeDue = &due }, func(p *page) {
				said := "was not suspended"
				kind, _ := roles.DeliveryKinds(nil).Of(d.Kind)
				switch {
				case !was.SuspendedAt.IsZero():
					said = "is resumed"
				case was.HoldUntil.After(m.now):
					said = "is no longer on hold"
				case !kind.Suspends:
					said = "was not on hold"
				}
				what := "nothing waited for it"
				if due > 0 {
					what = deliveriesSaid(due) + " that waited for it " + isAre(due) + " due now"
				}
				p.say("%s %s; %s.", d.Title, said, what)
			})
		}),
	}
}

func rotateEndpointSecret() Command {
	var overlap time.Duration
	return Command{
		Use: "rotate-secret ENDPOINT", Short: "Make a signing secret that replaces a webhook endpoint's, which ends after the overlap", JSON: "the endpoint and its new secret",
		Missing: whichEndpoint, Examples: []string{"endpoints rotate-secret 0198c5d2-… --overlap 24h"},
		Flags: func(f *pflag.FlagSet, _ *Meta) {
			f.DurationVar(&overlap, "overlap", 24*time.Hour, "how long the old secret goes on signing beside the new one; 0 ends it at once")
		},
		Operate: onEndpoint(func(ctx context.Context, m *Meta, d deliveries.Entry) error {
			if d.Kind != webhook.Kind {
				return errors.New("ENDPOINT: an ERP has no signing secret; its credentials are set by `quittance seed FILE`")
			}
			keys, err := m.OpenKeys()
			if err != nil {
				return err
			}
			rotated, err := registry.RotateSecret(ctx, m.pool, keys, operator(), d.ID, overlap, m.now)
			if err != nil {
				return err
			}
			return m.showEnd(ctx, d, func(j *endpointJSON) { j.Secret = rotated.Secret.Reveal() }, func(p *page) {
				p.say("New signing secret of endpoint %s of %s. It is shown once:\n\n  %s\n", d.Name, d.Owner, rotated.Secret.Reveal())
				if at := rotated.Endpoint.OldEndsAt; at.IsZero() {
					p.say("The old secret has ended: only the new one signs webhooks. The receiver needs it now.")
				} else {
					p.say("The old secret signs beside it until %s: the receiver needs the new one by then.", moment(at))
				}
			})
		}),
	}
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
