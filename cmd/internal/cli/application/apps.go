package application

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/registry"
)

// Apps returns the command `apps`.
func Apps() cli.Command {
	return cli.Command{
		Use: "apps", Short: "Make and set integrators' applications, without a registry file",
		Commands: []cli.Command{addApp(), listApps(), setApp()},
		Words:    words,
	}
}

// appJSON is an application as --json prints it. The agency is a slug.
func appJSON(a registry.ApplicationEntry) render.Object {
	return render.Object{
		"id", a.ID, "name", a.Name, "agency", a.Agency, "active", a.Active, "integrator", a.Integrator, "portal", a.Portal, "offers", a.Offers, "embed_origins", a.EmbedOrigins, "success_origins", a.SuccessOrigins,
		"session_lifetime", a.SessionLifetime.String(), "creations_per_minute", a.CreationsPerMinute, "reads_per_minute", a.ReadsPerMinute, "page_size", a.PageSize,
		"set_by_command", a.ByCommand, "created_at", a.CreatedAt,
	}
}

// appFlags are the flags of an application's fields.
type appFlags struct {
	active                                       bool
	offers                                       []string
	lifetime                                     time.Duration
	creationsPerMinute, readsPerMinute, pageSize int64
}

func (a *appFlags) declare(f *pflag.FlagSet) {
	f.StringSliceVar(&a.offers, "offers", nil, "how citizens may pay: "+strings.Join(registry.OfferIDs(), ", ")+"; repeatable")
	f.DurationVar(&a.lifetime, "session-lifetime", 24*time.Hour, "how long a session is open")
	f.Int64Var(&a.creationsPerMinute, "creations-per-minute", 30, "quota of creations, over all keys")
	f.Int64Var(&a.readsPerMinute, "reads-per-minute", registry.DefaultReadsPerMinute, "quota of reads, for each key")
	f.Int64Var(&a.pageSize, "page-size", registry.DefaultPageSize, "sessions on a page of a list")
	f.BoolVar(&a.active, "active", true, "whether the application's keys are valid, or the agency has a citizen portal; --active=false ends all access at once")
}

// changed returns the fields whose flags were given.
func (a *appFlags) changed(m *cli.Meta) registry.ApplicationChange {
	return registry.ApplicationChange{
		Active: cli.IfGiven(m, "active", &a.active), Offers: cli.ListIfGiven(m, "offers", a.offers), SessionLifetime: cli.IfGiven(m, "session-lifetime", &a.lifetime),
		CreationsPerMinute: cli.IfGiven(m, "creations-per-minute", &a.creationsPerMinute), ReadsPerMinute: cli.IfGiven(m, "reads-per-minute", &a.readsPerMinute),
		PageSize: cli.IfGiven(m, "page-size", &a.pageSize),
	}
}

func addApp() cli.Command {
	var req registry.ApplicationRequest
	var flags appFlags
	return cli.Command{
		Use: "add", Short: "Make an application of an agency", JSON: "the application",
		Examples: []string{`apps add --agency impots --name "Guichet en ligne" --offers momo,momo_b,cash_agency`},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&req.Agency, "agency", "", "the agency, by slug or id")
			f.StringVar(&req.Name, "name", "", "name of the application; no other of the agency has it")
			f.BoolVar(&req.Integrator, "integrator", false, "it gets the agency's sessions of platform keys; one application of an agency does")
			flags.declare(f)
		},
		Check: func(m *cli.Meta) error {
			switch {
			case req.Agency == "":
				return cli.Usage("--agency: say whose application it is, by the agency's slug or id")
			case len(flags.offers) == 0:
				return cli.Usage("--offers: say how its citizens may pay: %s", strings.Join(registry.OfferIDs(), ", "))
			}
			return nil
		},
		Keyed: true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			req.ApplicationChange = flags.changed(m)
			a, err := registry.AddApplication(ctx, m.Pool, m.Keys, m.By, req, m.Now)
			if err != nil {
				return err
			}
			return m.Show(appJSON(a), func(p *render.Page) {
				p.Say("New application %s of %s.", a.ID, a.Owner())
				p.Say("`quittance keys create --application %s --mode test` makes a key, `quittance endpoints add --application %s` an endpoint for its webhooks.", a.ID, a.ID)
			})
		},
	}
}

func listApps() cli.Command {
	return cli.Command{
		Use: "list", Short: "List all applications", JSON: "the list", Examples: []string{"apps list --json"},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			list, err := registry.ListApplications(ctx, m.Pool)
			if err != nil {
				return err
			}
			return m.Show(render.Mapped(list, appJSON), func(p *render.Page) {
				p.Table("there are no applications yet; make one with `quittance apps add`", "ID,AGENCY,NAME,OFFERS,SESSIONS OPEN,CREATIONS A MINUTE,SET BY COMMAND,STATE", render.Mapped(list, func(a registry.ApplicationEntry) []any {
					state := "active"
					if !a.Active {
						state = "not active"
					}
					switch {
					case a.Integrator:
						state += ", integrator"
					case a.Portal:
						state += ", citizen portal"
					}
					return []any{a.ID, a.Agency, a.Name, strings.Join(a.Offers, " "), a.SessionLifetime, quota(a.CreationsPerMinute), strings.Join(a.ByCommand, " "), state}
				}))
			})
		},
	}
}

// quota shows a limit; 0 is none.
func quota(perMinute int) any {
	if perMinute == 0 {
		return "no limit"
	}
	return perMinute
}

func setApp() cli.Command {
	var flags appFlags
	return cli.Command{
		Use: "set APPLICATION", Short: "Set fields of an application; a registry file leaves them from then on", JSON: "the application",
		Missing:  "say which application: {usage}, the id, or the name if no other has it; `quittance apps list` shows both",
		Examples: []string{`apps set "Guichet fiscal" --offers momo,card --session-lifetime 48h`, "apps set 018f0000-0000-7000-8000-00000000000a --active=false"},
		Flags:    func(f *pflag.FlagSet, _ *cli.Meta) { flags.declare(f) },
		Check:    cli.AnyGiven("offers", "session-lifetime", "creations-per-minute", "reads-per-minute", "page-size", "active"),
		Keyed:    true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			a, err := registry.ChangeApplication(ctx, m.Pool, m.Keys, m.By, m.Args[0], flags.changed(m), m.Now)
			if err != nil {
				return err
			}
			return m.Show(appJSON(a), func(p *render.Page) {
				p.Say("Application %s of %s is set. Registry files leave: %s; `quittance seed --overrule` sets them from a file again.", a.ID, a.Owner(), strings.Join(a.ByCommand, ", "))
				switch {
				case !a.Active && a.Portal:
					p.Say("It is not active: the agency has no citizen portal.")
				case !a.Active:
					p.Say("It is not active: its keys open nothing.")
				}
			})
		},
	}
}
