package delivery

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/deliveries"
	"quittance/internal/registry"
	"quittance/sinks/cashin"
	"quittance/sinks/erp"
	"quittance/sinks/webhook"
)

// endpointFlags are the flags of a webhook endpoint's fields.
type endpointFlags struct {
	events, modes             []string
	maxInFlight, maxPerSecond int64
}

func (e *endpointFlags) declare(f *pflag.FlagSet) {
	f.StringSliceVar(&e.events, "events", nil, "events that it receives: "+render.Some(registry.WebhookEvents())+"; repeatable")
	f.StringSliceVar(&e.modes, "modes", nil, "test, live or both; both by default")
	f.Int64Var(&e.maxInFlight, "max-in-flight", registry.DefaultMaxInFlight, "calls at the same time")
	f.Int64Var(&e.maxPerSecond, "max-per-second", 0, "calls that may begin in a second; 0 is no limit")
}

// changed returns the fields whose flags were given.
func (e *endpointFlags) changed(m *cli.Meta) registry.EndpointChange {
	return registry.EndpointChange{
		Events: cli.ListIfGiven(m, "events", e.events), Modes: cli.ListIfGiven(m, "modes", e.modes),
		MaxInFlight: cli.IfGiven(m, "max-in-flight", &e.maxInFlight), MaxPerSecond: cli.IfGiven(m, "max-per-second", &e.maxPerSecond),
	}
}

func addEndpoint() cli.Command {
	var owner access.OwnerFlags
	var flags endpointFlags
	var url string
	return cli.Command{
		Use: "add", Short: "Register an endpoint for webhooks and show its signing secret once", JSON: "the endpoint and its secret",
		Examples: []string{`endpoints add --application "Guichet fiscal" --url https://guichet.example/webhooks --events checkout.completed,checkout.failed`},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			owner.Declare(f)
			f.StringVar(&url, "url", "", "the address, https to a public name")
			flags.declare(f)
		},
		Check: func(m *cli.Meta) error {
			switch {
			case url == "":
				return cli.Usage("--url: say where webhooks go, such as https://guichet.example/webhooks")
			case len(flags.events) == 0:
				return cli.Usage("--events: say which events it receives: %s", render.Some(registry.WebhookEvents()))
			}
			return owner.Check(m)
		},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			keys, err := m.OpenKeys()
			if err != nil {
				return err
			}
			added, err := registry.AddEndpoint(ctx, m.Pool, keys, m.By, registry.EndpointRequest{
				Application: owner.Application, URL: url, Loopback: m.Loopback, EndpointChange: flags.changed(m),
			}, m.Now)
			if err != nil {
				return err
			}
			err = showChanged(ctx, m, deliveries.Entry{Name: added.Endpoint.ID}, func(p *render.Page) {
				what := "New endpoint"
				if added.Restored {
					what = "Restored endpoint"
				}
				p.Say("%s %s of %s, modes %s. Its signing secret is shown once:\n\n  %s\n", what, added.Endpoint.ID, added.Endpoint.Owner(),
					strings.Join(added.Endpoint.Modes(), ", "), added.Secret.Reveal())
				p.Say("Events from before can be sent with `quittance replay webhooks --to webhook --endpoint %s --since TIME`.", added.Endpoint.ID)
			}, "secret", added.Secret.Reveal(), "restored", added.Restored)
			if err != nil || !added.Restored {
				return err
			}
			return resumeRestored(ctx, m, added.Endpoint.ID)
		},
	}
}

// resumeRestored sends what waited since the endpoint was removed. Its secret must be shown
// before: it is stored, and nothing shows it again.
func resumeRestored(ctx context.Context, m *cli.Meta, id string) error {
	_, due, err := access.Deliveries(m).Resume(ctx, m.By, webhook.Kind, id, m.Now, cli.Progress(m.Err))
	if err != nil {
		return fmt.Errorf("the endpoint is restored, but what waited for it is not sent yet; `quittance endpoints resume %s` sends it: %w", id, m.InWords(err))
	}
	if due == 0 || m.AsJSON {
		return nil
	}
	return m.Show(nil, func(p *render.Page) {
		p.Say("%s due now that waited since it was removed.", render.CountedIs(due, "delivery"))
	})
}

func setEndpoint() cli.Command {
	var flags endpointFlags
	return cli.Command{
		Use: "set ENDPOINT", Short: "Set what a webhook endpoint receives and how fast; a registry file leaves it from then on", JSON: "the endpoint", Missing: whichEndpoint,
		Examples: []string{"endpoints set 0198c5d2-… --events checkout.completed,checkout.reversed --max-per-second 20"},
		Flags:    func(f *pflag.FlagSet, _ *cli.Meta) { flags.declare(f) },
		Check:    cli.AnyGiven("events", "modes", "max-in-flight", "max-per-second"),
		Keyed:    true,
		Operate: onWebhookEndpoint(func(ctx context.Context, m *cli.Meta, d deliveries.Entry) error {
			if _, err := registry.ChangeEndpoint(ctx, m.Pool, m.Keys, m.By, d.ID, flags.changed(m), m.Now); err != nil {
				return err
			}
			return showChanged(ctx, m, d, func(p *render.Page) { p.Say("%s is set; `quittance endpoints show %s` shows it.", d.Title, d.Name) })
		}),
	}
}

func removeEndpoint() cli.Command {
	return cli.Command{
		Use: "remove ENDPOINT", Short: "Remove a webhook endpoint: no event goes to it any more", JSON: "the endpoint", Missing: whichEndpoint, Examples: []string{"endpoints remove 0198c5d2-…"},
		Keyed: true,
		Operate: onWebhookEndpoint(func(ctx context.Context, m *cli.Meta, d deliveries.Entry) error {
			if _, err := access.Deliveries(m).RemoveEndpoint(ctx, m.Keys, m.By, d.Kind, d.ID, m.Now); err != nil {
				return err
			}
			found, err := withStatus(ctx, m, d)
			if err != nil {
				return err
			}
			waiting := int(found[0].status.Waiting + found[0].status.Queued)
			return showChanged(ctx, m, d, func(p *render.Page) {
				p.Say("%s is removed, and its signing secret has ended.", d.Title)
				if waiting > 0 {
					p.Say("%s kept for 30 days. `quittance endpoints add` with the same owner and address restores the endpoint and sends them.", render.CountedIs(waiting, "delivery"))
				}
			})
		}),
	}
}

// onWebhookEndpoint is onEndpoint for a command that is for webhook endpoints only.
func onWebhookEndpoint(run func(ctx context.Context, m *cli.Meta, d deliveries.Entry) error) func(context.Context, *cli.Meta) error {
	return onEndpoint(func(ctx context.Context, m *cli.Meta, d deliveries.Entry) error {
		if err := WebhookOnly(d); err != nil {
			return err
		}
		return run(ctx, m, d)
	})
}

// WebhookOnly refuses destinations that are no webhook endpoints.
func WebhookOnly(d deliveries.Entry) error {
	switch d.Kind {
	case webhook.Kind:
		return nil
	case erp.Kind:
		return errors.New("ENDPOINT: an ERP and its credentials are set by `quittance seed FILE`, and it has no signing secret; the command is for webhook endpoints")
	case cashin.Kind:
		return errors.New("ENDPOINT: the address of a partner of the cash-in surface is set by `quittance seed FILE`, and its webhooks are not signed; the command is for webhook endpoints")
	}
	return errors.New("ENDPOINT: the command is for webhook endpoints")
}

// inUse refuses a removed endpoint.
func inUse(d deliveries.Entry) error {
	if d.RemovedAt.IsZero() {
		return nil
	}
	return errors.New("ENDPOINT: " + words["endpoint.removed"](map[string]any{"at": d.RemovedAt}))
}
