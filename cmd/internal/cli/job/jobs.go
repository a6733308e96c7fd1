package job

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/render"
	"quittance/cmd/internal/roles"
	"quittance/internal/deliveries"
	"quittance/internal/identity"
	"quittance/internal/jobs"
	"quittance/internal/registry"
)

// whichJob is the error of a command without a job.
const whichJob = "say which job: {usage}; `quittance jobs list` shows the ids"

// Command returns the command `jobs`.
func Command() cli.Command {
	return cli.Command{
		Use: "jobs", Short: "Send deliveries again in bulk: start jobs, follow, stop and repeat them",
		Commands: []cli.Command{list(), show(), start(), stop(), retry()},
		Words:    words,
	}
}

// open returns the jobs, and who acts.
func open(ctx context.Context, m *cli.Meta) (*jobs.Store, jobs.By, identity.Staff, error) {
	store, err := jobs.NewStore(jobs.Config{Pool: m.Pool, Keys: m.Keys, Deliveries: access.Deliveries(m)})
	if err != nil {
		return nil, jobs.By{}, identity.Staff{}, err
	}
	viewer, err := access.Viewer(ctx, m)
	if err != nil {
		return nil, jobs.By{}, identity.Staff{}, err
	}
	var person identity.Staff
	if viewer != nil {
		person = *viewer
	}
	return store, jobs.OnCommandLine(m.By, person), person, nil
}

func list() cli.Command {
	var agency, after string
	limit := 50
	return cli.Command{
		Use: "list", Short: "List jobs, the newest first", JSON: "the list", Keyed: true, Examples: []string{"jobs list", "jobs list --agency impots"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&agency, "agency", "", "jobs about this agency, by slug or id")
			f.StringVar(&after, "after", "", "continue after the page that gave this cursor")
			f.IntVar(&limit, "limit", 50, "largest number of jobs")
		},
		Check: func(*cli.Meta) error {
			if limit < 1 || limit > 1000 {
				return cli.Usage("--limit: must be from 1 to 1000")
			}
			return nil
		},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			store, _, person, err := open(ctx, m)
			if err != nil {
				return err
			}
			of, err := access.AgencyID(ctx, m, agency)
			if err != nil {
				return err
			}
			if !person.Operations() {
				if of != "" && of != person.AgencyID {
					return errors.New("--agency: you act for another agency, and see its jobs alone: leave --agency out")
				}
				of = person.AgencyID
			}
			found, next, err := store.List(ctx, of, cmp.Or(person.ID, m.By.Name), after, limit)
			if err != nil {
				return err
			}
			slugs, _, err := access.Slugs(ctx, m)
			if err != nil {
				return err
			}
			return m.Show(render.Object{"jobs", render.Mapped(found, func(j jobs.Job) render.Object { return jobJSON(j, slugs) }), "next?", next}, func(p *render.Page) {
				p.Table("there are no jobs: `quittance jobs start` makes one", "ID,MADE,BY,AGENCY,DELIVERIES,DONE,REFUSED,STATE", render.Mapped(found, func(j jobs.Job) []any {
					return []any{j.ID, render.Moment(j.MadeAt), j.Maker.Name, render.OrDash(slugs[j.AgencyID]), j.Total, j.Done, j.Refused, j.State}
				}))
				if next != "" {
					p.Say("there are more: the same with --after %s", next)
				}
			})
		},
	}
}

// jobJSON is a job as --json prints it.
func jobJSON(j jobs.Job, slugs map[string]string) render.Object {
	c := j.Conditions
	return render.Object{
		"id", j.ID, "kind", j.Kind, "state", j.State, "agency?", slugs[j.AgencyID],
		"conditions",
		render.Object{"kind?", string(c.Kind), "destination?", c.DestinationID, "state?", c.State, "since?", c.Since, "until?", c.Until, "of?", c.Of},
		"ends_at", j.EndsAt,
		"total", j.Total, "done", j.Done, "refused", j.Refused, "maker", j.Maker.Name, "made_at", j.MadeAt, "started_at?", j.StartedAt,
		"approved_by?", j.Decider, "approved_at?", j.DecidedAt, "stopped_by?", j.StoppedBy, "code?", j.Code, "finished_at?", j.FinishedAt,
	}
}

func show() cli.Command {
	return cli.Command{
		Use: "show JOB", Short: "Show a job, and why deliveries of it were refused", JSON: "it", Missing: whichJob, Keyed: true, Examples: []string{"jobs show 019a0c1e-7a4b-7c3d-9e2f-5b6a7c8d9e0f"},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			store, _, person, err := open(ctx, m)
			if err != nil {
				return err
			}
			j, err := store.Read(ctx, m.Args[0], person.AgencyID)
			if err != nil {
				return err
			}
			return say(ctx, m, store, j)
		},
	}
}

// say shows a job with the rows that were refused.
func say(ctx context.Context, m *cli.Meta, store *jobs.Store, j jobs.Job) error {
	slugs, _, err := access.Slugs(ctx, m)
	if err != nil {
		return err
	}
	refused, err := store.RefusedRows(ctx, j.ID, 0, jobs.MostRows)
	if err != nil {
		return err
	}
	rows := render.Mapped(refused, func(r jobs.Row) render.Object {
		return render.Object{"row", r.N, "delivery", r.Subject, "code", r.Code}
	})
	return m.Show(append(jobJSON(j, slugs), "refused_rows?", rows), func(p *render.Page) {
		why := ""
		if err := j.Refusal(); err != nil {
			why = because(m, err)
		}
		p.Facts([][2]string{
			{"ID", j.ID},
			{"State", string(j.State)},
			{"Why", why},
			{"Deliveries", fmt.Sprintf("%d, %d done, %d refused", j.Total, j.Done, j.Refused)},
			{"Agency", slugs[j.AgencyID]},
			{"Asked for by", j.Maker.Name + ", " + render.Moment(j.MadeAt)},
			{"Approved by", j.Decider},
			{"Stopped by", j.StoppedBy},
		})
		switch {
		case j.State == jobs.Proposed:
			p.Say("A lead of operations approves it within 24 hours on the page /ops/jobs/%s.", j.ID)
		case j.Again():
			p.Say("`quittance jobs retry %s` sends what is left again.", j.ID)
		case j.State == jobs.Running:
			p.Say("The sink schedule carries it out. `quittance jobs stop %s` ends it.", j.ID)
		}
		if len(refused) > 0 {
			p.Say("")
			p.Table("", "ROW,DELIVERY,REFUSED BECAUSE", render.Mapped(refused, func(r jobs.Row) []any { return []any{r.N, r.Subject, because(m, r.Refusal())} }))
		}
	})
}

// starting has the flags of commands that start a job.
type starting struct {
	count string
	yes   bool
}

func (s *starting) flags(f *pflag.FlagSet) {
	f.StringVar(&s.count, "count", "", fmt.Sprintf("the number of deliveries that you expect; asked for if there are more than %d", jobs.TypedAbove))
	cli.YesFlag(f, &s.yes)
}

func start() cli.Command {
	var s starting
	var kind, agency, endpoint, state, since, until string
	return cli.Command{
		Use: "start", Short: "Send all deliveries that are like that again, as a job of the sink schedule", JSON: "the job", Keyed: true,
		Long:     fmt.Sprintf(`Send all deliveries that are like that and are not accepted again, as a job of the sink schedule: it lists them first, %d at most, and asks. Each is sent once. A job of more than %d deliveries waits until a lead of operations approves it on the staff pages.`, jobs.MostRows, jobs.AloneAtMost),
		Examples: []string{"jobs start --state needs_operator", "jobs start --endpoint impots/test --since 2h"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			cli.TakesChoice(f, &kind, "kind", roles.DeliveryKinds(nil).Names(nil), "")
			cli.TakesChoice(f, &state, "state", deliveries.Retryable, "")
			f.StringVar(&agency, "agency", "", "deliveries of this agency, by slug or id")
			f.StringVar(&endpoint, "endpoint", "", "deliveries to this endpoint: the id of a webhook endpoint or of the application of a cash-in partner, or impots/test for an ERP")
			f.StringVar(&since, "since", "", "events at or after this time: "+cli.MomentForms)
			f.StringVar(&until, "until", "", "events before this time, in the same form")
			s.flags(f)
		},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			c := jobs.Conditions{Kind: deliveries.Kind(kind), State: state}
			dir, err := registry.ReadDirectory(ctx, m.Pool, m.SimulatorURL, m.Now)
			if err != nil {
				return err
			}
			if endpoint != "" {
				d, err := access.FindDestination(dir, endpoint)
				if err != nil {
					return fmt.Errorf("--endpoint: %w", err)
				}
				if c.Kind != "" && c.Kind != d.Kind {
					return cli.Usage("--kind: the endpoint of --endpoint is of kind %s", d.Kind)
				}
				c.Kind, c.DestinationID = d.Kind, d.ID
			}
			if agency != "" {
				a, ok := dir.Agency(agency)
				if !ok {
					return errors.New("--agency: no agency has this slug or id")
				}
				c.AgencyID = a.ID
			}
			if c.Since, err = cli.MomentOf("since", since, m.Now); err != nil {
				return err
			}
			if c.Until, err = cli.MomentOf("until", until, m.Now); err != nil {
				return err
			}
			if !c.Until.IsZero() && !c.Since.Before(c.Until) {
				return cli.Usage("--until: must be after --since")
			}
			return s.run(ctx, m, c)
		},
	}
}

func retry() cli.Command {
	var s starting
	return cli.Command{
		Use: "retry JOB", Short: "Send again what a job has refused or left, as a new job", JSON: "the new job", Missing: whichJob, Keyed: true, Examples: []string{"jobs retry 019a0c1e-7a4b-7c3d-9e2f-5b6a7c8d9e0f"},
		Flags:   func(f *pflag.FlagSet, _ *cli.Meta) { s.flags(f) },
		Operate: func(ctx context.Context, m *cli.Meta) error { return s.run(ctx, m, jobs.Conditions{Of: m.Args[0]}) },
	}
}

// run prepares a job, asks, and starts it.
func (s starting) run(ctx context.Context, m *cli.Meta, c jobs.Conditions) error {
	store, by, _, err := open(ctx, m)
	if err != nil {
		return err
	}
	j, err := store.Prepare(ctx, by, uuid.Must(uuid.NewV7()).String(), jobs.KindRetry, c, m.Now)
	if err != nil {
		return err
	}
	plan := fmt.Sprintf("This sends %s again.", render.Counted(j.Total, "delivery"))
	if j.NeedsTwo() {
		plan += fmt.Sprintf(" There are more than %d, so a lead of operations approves it first.", jobs.AloneAtMost)
	}
	switch {
	case j.Total > jobs.TypedAbove && s.count == "":
		_, _ = fmt.Fprintf(m.Err, "%s\nContinue? Type the number of deliveries: ", plan)
		s.count, _ = bufio.NewReader(m.In()).ReadString('\n') // no answer is no number
		_, _ = fmt.Fprintln(m.Err)
		s.count = strings.TrimSpace(s.count)
	case j.Total > 1 && s.count == "":
		if err := m.Agree(s.yes, plan); err != nil {
			return err
		}
	}
	if s.count != "" && s.count != fmt.Sprint(j.Total) {
		return cli.Usage("nothing was done, because the job has %s and --count or the answer is another number", render.Counted(j.Total, "delivery"))
	}
	if j, err = store.Start(ctx, by, j.ID, s.count, m.Now); err != nil {
		return err
	}
	return say(ctx, m, store, j)
}

func stop() cli.Command {
	return cli.Command{
		Use: "stop JOB", Short: "End a job between two deliveries; what was sent stays sent", JSON: "the job", Missing: whichJob, Keyed: true, Examples: []string{"jobs stop 019a0c1e-7a4b-7c3d-9e2f-5b6a7c8d9e0f"},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			store, by, _, err := open(ctx, m)
			if err != nil {
				return err
			}
			j, err := store.Stop(ctx, by, m.Args[0], m.Now)
			if err != nil {
				return err
			}
			return say(ctx, m, store, j)
		},
	}
}
