package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"quittance/internal/deliveries"
	"quittance/internal/postgres"
)

const (
	defaultRecoverPerSecond = 50
	maxRecoverPerSecond     = 5000
	// recoverQuiet is how long nothing may happen before we say what that means.
	recoverQuiet = 10 * time.Second
)

func (p Program) recoverEndpoint() *cobra.Command {
	m := p.meta()
	var since, until string
	var perSecond int
	var dryRun, detach, stop, asJSON bool
	cmd := command("recover ENDPOINT", "Send again, at a rate, what an endpoint or ERP has not accepted since a time", m, func(cmd *cobra.Command, args []string) error {
		switch {
		case perSecond < 1 || perSecond > maxRecoverPerSecond:
			return fmt.Errorf("--per-second: must be from 1 to %d", maxRecoverPerSecond)
		case stop && (since != "" || until != "" || dryRun || detach):
			return errors.New("--stop: ends the recovery that runs, and goes with no other flag")
		}
		return m.onEndpoint(cmd.Context(), args[0], func(ctx context.Context, pool *postgres.Pool, d destination, now time.Time) error {
			f := &following{out: cmd.ErrOrStderr(), pool: pool, quiet: asJSON}
			latest, err := deliveriesOn(pool).LatestRecovery(ctx, d.kind, d.id)
			running := err == nil && latest.Running()
			if err != nil && !isRefused(err, deliveries.CodeNoRecovery) {
				return err
			}
			switch {
			case stop && !running:
				return fmt.Errorf("no recovery of %s is running", d.name())
			case stop:
				if err := deliveriesOn(pool).CancelRecovery(ctx, operator(), latest.ID, now); err != nil {
					return err
				}
				if latest, err = deliveriesOn(pool).ReadRecovery(ctx, latest.ID); err != nil {
					return err
				}
				return printRecovery(cmd.OutOrStdout(), d, latest, asJSON)
			case since == "" && running:
				f.say("The recovery of %s that was asked for at %s goes on.\n", d.name(), moment(latest.CreatedAt))
				return f.follow(ctx, cmd.OutOrStdout(), d, latest, detach, asJSON)
			case since == "":
				return errors.New("--since: say from when on: a time such as 2026-03-01T12:00:00Z, a day, or how long ago, such as 2h")
			case running:
				return fmt.Errorf("a recovery of %s is running, %d of %d done; follow it with `%s %s`, or end it with --stop", d.name(), latest.Done, latest.Total, cmd.CommandPath(), args[0])
			}
			req := deliveries.RecoveryRequest{Kind: d.kind, DestinationID: d.id, Until: now, PerSecond: perSecond}
			if req.Since, err = momentOf("since", since, now); err != nil {
				return err
			}
			if until != "" {
				if req.Until, err = momentOf("until", until, now); err != nil {
					return err
				}
			}
			if !req.Since.Before(req.Until) {
				return errors.New("--until: must be after --since")
			}
			if dryRun {
				n, err := deliveriesOn(pool).CountRecoverable(ctx, req)
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(cmd.OutOrStdout(), toRecoveryJSON(d, deliveries.Recovery{RecoveryRequest: req, Total: n}))
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d deliveries to %s of events from %s to %s are not accepted; a recovery would make them due, %d a second. Nothing was changed.\n",
					n, d.name(), moment(req.Since), moment(req.Until), perSecond)
				return err
			}
			r, _, err := deliveriesOn(pool).StartRecovery(ctx, operator(), req, now)
			if err != nil {
				return err
			}
			return f.follow(ctx, cmd.OutOrStdout(), d, r, detach, asJSON)
		})
	})
	cmd.Args = oneEndpoint
	fl := cmd.Flags()
	fl.StringVar(&since, "since", "", "events from then on: a time such as 2026-03-01T12:00:00Z, a day, or how long ago, such as 2h; without it, follow the recovery that runs")
	fl.StringVar(&until, "until", "", "events before then; now when not given")
	fl.IntVar(&perSecond, "per-second", defaultRecoverPerSecond, "how many deliveries become due in a second; the endpoint's own limits hold besides")
	fl.BoolVar(&dryRun, "dry-run", false, "only say how many there are")
	fl.BoolVar(&detach, "detach", false, "do not wait: the recovery goes on by itself")
	fl.BoolVar(&stop, "stop", false, "end the recovery that runs; what it has made due stays so")
	fl.BoolVar(&asJSON, "json", false, "print the recovery as JSON")
	return cmd
}

// recoveryJSON is a recovery as --json prints it.
type recoveryJSON struct {
	ID         string     `json:"id,omitempty"` // absent in a dry run
	Endpoint   string     `json:"endpoint"`
	Since      time.Time  `json:"since"`
	Until      time.Time  `json:"until"`
	PerSecond  int        `json:"per_second"`
	Total      int64      `json:"total"` // when it was asked for
	Done       int64      `json:"done"`  // made due
	CreatedAt  *time.Time `json:"created_at"`
	FinishedAt *time.Time `json:"finished_at"`
	Cancelled  bool       `json:"cancelled"`
}

func toRecoveryJSON(d destination, r deliveries.Recovery) recoveryJSON {
	return recoveryJSON{
		ID: r.ID, Endpoint: d.name(), Since: r.Since, Until: r.Until, PerSecond: r.PerSecond, Total: r.Total, Done: r.Done,
		CreatedAt: timeOrNull(r.CreatedAt), FinishedAt: timeOrNull(r.FinishedAt), Cancelled: r.Cancelled,
	}
}

func printRecovery(out io.Writer, d destination, r deliveries.Recovery, asJSON bool) error {
	if asJSON {
		return printJSON(out, toRecoveryJSON(d, r))
	}
	var err error
	switch {
	case r.Cancelled:
		_, err = fmt.Fprintf(out, "The recovery of %s was ended: %d of %d deliveries were made due.\n", d.name(), r.Done, r.Total)
	case r.Running():
		_, err = fmt.Fprintf(out, "The recovery of %s goes on by itself, %d of %d deliveries are due; follow it with `quittance endpoints recover %s`.\n", d.name(), r.Done, r.Total, d.name())
	default:
		_, err = fmt.Fprintf(out, "%d deliveries to %s were made due. What becomes of them: `quittance endpoints show %s`.\n", r.Done, d.name(), d.name())
	}
	return err
}

// following tells how a recovery gets on, on stderr.
type following struct {
	out   io.Writer
	pool  *postgres.Pool
	quiet bool
}

func (f *following) say(format string, args ...any) {
	if !f.quiet {
		_, _ = fmt.Fprintf(f.out, format, args...)
	}
}

// follow waits for the end of a recovery, unless detached. Whoever interrupts it
// ends the following, not the recovery.
func (f *following) follow(ctx context.Context, out io.Writer, d destination, r deliveries.Recovery, detach, asJSON bool) error {
	moved, told := time.Now(), int64(-1)
	for !detach && r.Running() {
		if r.Done != told {
			f.say("%d of %d made due\n", r.Done, r.Total)
			moved, told = time.Now(), r.Done
		} else if time.Since(moved) > recoverQuiet {
			f.say("nothing has happened for %s: does `quittance sink schedule` run? The recovery waits for it.\n", recoverQuiet)
			moved = time.Now()
		}
		select {
		case <-ctx.Done():
			// Interrupted: the connection is good for one more question.
			again, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			if now, err := deliveriesOn(f.pool).ReadRecovery(again, r.ID); err == nil {
				r = now
			}
			return printRecovery(out, d, r, asJSON)
		case <-time.After(time.Second):
		}
		now, err := deliveriesOn(f.pool).ReadRecovery(ctx, r.ID)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err == nil {
			r = now
		}
	}
	return printRecovery(out, d, r, asJSON)
}
