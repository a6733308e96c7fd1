package delivery

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/deliveries"
)

const (
	defaultRecoverPerSecond = 50
	maxRecoverPerSecond     = 5000
	// recoverQuiet is how long a recovery may make no progress before the operator is
	// told the likely reason.
	recoverQuiet = 10 * time.Second
)

// recovery has the flags of `endpoints recover`.
type recovery struct {
	since, until         string
	perSecond            int
	dryRun, detach, stop bool
}

func recoverEndpoint() cli.Command {
	var r recovery
	return cli.Command{
		Use: "recover ENDPOINT", Short: "Send again, at a limited rate, what an endpoint or ERP has not accepted since a time", JSON: "the recovery",
		Missing: whichEndpoint, Examples: []string{"endpoints recover impots/test --since 2h"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&r.since, "since", "", "events at or after this time: "+cli.MomentForms+"; without it, follow the running recovery")
			f.StringVar(&r.until, "until", "", "events before this time; now when not given")
			f.IntVar(&r.perSecond, "per-second", defaultRecoverPerSecond, "how many deliveries become due in a second; the endpoint's own limits apply too")
			f.BoolVar(&r.dryRun, "dry-run", false, "only print how many deliveries there are")
			f.BoolVar(&r.detach, "detach", false, "do not wait: the recovery continues by itself")
			f.BoolVar(&r.stop, "stop", false, "end the running recovery; deliveries that it has made due stay due")
		},
		Check: func(*cli.Meta) error {
			switch {
			case r.perSecond < 1 || r.perSecond > maxRecoverPerSecond:
				return cli.Usage("--per-second: must be from 1 to %d", maxRecoverPerSecond)
			case r.stop && (r.since != "" || r.until != "" || r.dryRun || r.detach):
				return cli.Usage("--stop: ends the running recovery and cannot be combined with another flag")
			}
			return nil
		},
		Operate: onEndpoint(func(ctx context.Context, m *cli.Meta, d deliveries.Entry) error {
			return r.run(ctx, &following{Meta: m, store: access.Deliveries(m), d: d})
		}),
	}
}

func (r recovery) run(ctx context.Context, f *following) error {
	latest, err := f.store.LatestRecovery(ctx, f.d.Kind, f.d.ID)
	running := err == nil && latest.Running()
	if err != nil && !cli.IsRefused(err, deliveries.CodeNoRecovery) {
		return err
	}
	switch {
	case r.stop && !running:
		return fmt.Errorf("no recovery of %s is running", f.d.Name)
	case r.stop:
		if err := f.store.CancelRecovery(ctx, f.By, latest.ID, f.Now); err != nil {
			return err
		}
		if latest, err = f.store.ReadRecovery(ctx, latest.ID); err != nil {
			return err
		}
		return f.end(latest)
	case r.since == "" && running:
		f.say("The recovery of %s that was started at %s continues.\n", f.d.Name, render.Moment(latest.CreatedAt))
		return f.follow(ctx, latest, r.detach)
	case running:
		return fmt.Errorf("a recovery of %s is running, %d of %d done; follow it with `quittance endpoints recover %[1]s`, or end it with --stop", f.d.Name, latest.Done, latest.Total)
	}
	req := deliveries.RecoveryRequest{Kind: f.d.Kind, DestinationID: f.d.ID, PerSecond: r.perSecond}
	if req.Since, req.Until, err = cli.Span(r.since, r.until, f.Now); err != nil {
		return err
	}
	if r.dryRun {
		n, err := f.store.CountRecoverable(ctx, req)
		if err != nil {
			return err
		}
		return f.Show(recoveryJSON(f.d, deliveries.Recovery{RecoveryRequest: req, Total: n}), func(p *render.Page) {
			p.Say("Not accepted: %s to %s of events from %s to %s. A recovery would make them due, %d a second. Nothing was changed.",
				render.Counted(n, "delivery"), f.d.Name, render.Moment(req.Since), render.Moment(req.Until), r.perSecond)
		})
	}
	started, _, err := f.store.StartRecovery(ctx, f.By, req, f.Now)
	if err != nil {
		return err
	}
	return f.follow(ctx, started, r.detach)
}

// recoveryJSON is a recovery as --json prints it. A dry run has no id. total is counted
// at the start; done are the deliveries that were made due.
func recoveryJSON(d deliveries.Entry, r deliveries.Recovery) render.Object {
	return render.Object{
		"id?", r.ID, "endpoint", d.Name, "since", r.Since, "until", r.Until, "per_second", r.PerSecond, "total", r.Total, "done", r.Done,
		"created_at", r.CreatedAt, "finished_at", r.FinishedAt, "cancelled", r.Cancelled,
	}
}

// following prints the progress of a recovery on stderr.
type following struct {
	*cli.Meta
	store *deliveries.Store
	d     deliveries.Entry
}

func (f *following) say(format string, args ...any) {
	if !f.AsJSON {
		_, _ = fmt.Fprint(f.Err, f.Naming(fmt.Sprintf(format, args...)))
	}
}

// end shows a recovery.
func (f *following) end(r deliveries.Recovery) error {
	return f.Show(recoveryJSON(f.d, r), func(p *render.Page) {
		name := f.d.Name
		switch {
		case r.Cancelled:
			p.Say("The recovery of %s was ended. Made due: %d of %s.", name, r.Done, render.Counted(r.Total, "delivery"))
		case r.Running():
			p.Say("The recovery of %s continues by itself. Due: %d of %s; follow it with `quittance endpoints recover %s`.", name, r.Done, render.Counted(r.Total, "delivery"), name)
		default:
			p.Say("Made due: %s to %s. Their state: `quittance endpoints show %s`.", render.Counted(r.Done, "delivery"), name, name)
		}
	})
}

// follow waits for the end of a recovery, unless detached. An interrupt ends the wait,
// not the recovery.
func (f *following) follow(ctx context.Context, r deliveries.Recovery, detach bool) error {
	changed, shown := time.Now(), int64(-1)
	for !detach && r.Running() {
		if r.Done != shown {
			f.say("%d of %d made due\n", r.Done, r.Total)
			changed, shown = time.Now(), r.Done
		} else if time.Since(changed) > recoverQuiet {
			f.say("nothing has happened for %s: does `quittance sink schedule` run? The recovery waits for it.\n", recoverQuiet)
			changed = time.Now()
		}
		select {
		case <-ctx.Done():
			// Interrupted: show the present state.
			again, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			if now, err := f.store.ReadRecovery(again, r.ID); err == nil {
				r = now
			}
			return f.end(r)
		case <-time.After(time.Second):
		}
		now, err := f.store.ReadRecovery(ctx, r.ID)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err == nil {
			r = now
		}
	}
	return f.end(r)
}
