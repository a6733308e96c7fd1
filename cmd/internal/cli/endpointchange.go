package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

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
	f.StringSliceVar(&e.events, "events", nil, "events that it receives: "+some(registry.WebhookEvents())+"; repeatable")
	f.StringSliceVar(&e.modes, "modes", nil, "test, live or both; both by default")
	f.Int64Var(&e.maxInFlight, "max-in-flight", registry.DefaultMaxInFlight, "calls at the same time")
	f.Int64Var(&e.maxPerSecond, "max-per-second", 0, "calls that may begin in a second; 0 is no limit")
}

// changed returns the fields whose flags were given.
func (e *endpointFlags) changed(m *Meta) registry.EndpointChange {
	return registry.EndpointChange{
		Events: listIfGiven(m, "events", e.events), Modes: listIfGiven(m, "modes", e.modes),
		MaxInFlight: ifGiven(m, "max-in-flight", &e.maxInFlight), MaxPerSecond: ifGiven(m, "max-per-second", &e.maxPerSecond),
	}
}

func addEndpoint() Command {
	var owner ownerFlags
	var flags endpointFlags
	var url string
	return Command{
		Use: "add", Short: "Register an endpoint for webhooks and show its signing secret once", JSON: "the endpoint and its secret",
		Examples: []string{`endpoints add --application "Guichet fiscal" --url https://guichet.example/webhooks --events checkout.completed,checkout.failed`},
		Flags: func(f *pflag.FlagSet, _ *Meta) {
			owner.declare(f)
			f.StringVar(&url, "url", "", "the address, https to a public name")
			flags.declare(f)
		},
		Check: func(m *Meta) error {
			switch {
			case url == "":
				return usage("--url: say where webhooks go, such as https://guichet.example/webhooks")
			case len(flags.events) == 0:
				return usage("--events: say which events it receives: %s", some(registry.WebhookEvents()))
			}
			return owner.check(m)
		},
		Operate: func(ctx context.Context, m *Meta) error {
			keys, err := m.OpenKeys()
			if err != nil {
				return err
			}
			added, err := registry.AddEndpoint(ctx, m.pool, keys, operator(), registry.EndpointRequest{
				Application: owner.application, URL: url, Loopback: m.Loopback, EndpointChange: flags.changed(m),
			}, m.now)
			if err != nil {
				return err
			}
			err = m.showChanged(ctx, deliveries.Entry{Name: added.Endpoint.ID}, func(p *page) {
				what := "New endpoint"
				if added.Restored {
					what = "Restored endpoint"
				}
				p.say("%s %s of %s, modes %s. Its signing secret is shown once:\n\n  %s\n", what, added.Endpoint.ID, added.Endpoint.Owner(),
					strings.Join(added.Endpoint.Modes(), ", "), added.Secret.Reveal())
				p.say("Events from before can be sent with `quittance replay webhooks --to webhook --endpoint %s --since TIME`.", added.Endpoint.ID)
			}, "secret", added.Secret.Reveal(), "restored", added.Restored)
			if err != nil || !added.Restored {
				return err
			}
			return m.resumeRestored(ctx, added.Endpoint.ID)
		},
	}
}

// resumeRestored sends what waited since the endpoint was removed. Its secret must be shown
// before: it is stored, and nothing shows it again.
func (m *Meta) resumeRestored(ctx context.Context, id string) error {
	_, due, err := m.deliveries().Resume(ctx, operator(), webhook.Kind, id, m.now, progress(m.Err))
	if err != nil {
		return fmt.Errorf("the endpoint is restored, but what waited for it is not sent yet; `quittance endpoints resume %s` sends it: %w", id, m.inWords(err))
	}
	if due == 0 || m.asJSON {
		return nil
	}
	return m.show(nil, func(p *page) {
		p.say("%s that waited since it was removed %s due now.", deliveriesText(due), isAre(due))
	})
}

func setEndpoint() Command {
	var flags endpointFlags
	return Command{
		Use: "set ENDPOINT", Short: "Set what a webhook endpoint receives and how fast; a registry file leaves it from then on", JSON: "the endpoint", Missing: whichEndpoint,
		Examples: []string{"endpoints set 0198c5d2-… --events checkout.completed,checkout.reversed --max-per-second 20"},
		Flags:    func(f *pflag.FlagSet, _ *Meta) { flags.declare(f) },
		Check:    anyGiven("events", "modes", "max-in-flight", "max-per-second"),
		Operate: onWebhookEndpoint(func(ctx context.Context, m *Meta, d deliveries.Entry) error {
			if _, err := registry.ChangeEndpoint(ctx, m.pool, operator(), d.ID, flags.changed(m), m.now); err != nil {
				return err
			}
			return m.showChanged(ctx, d, func(p *page) { p.say("%s is set; `quittance endpoints show %s` shows it.", d.Title, d.Name) })
		}),
	}
}

func removeEndpoint() Command {
	return Command{
		Use: "remove ENDPOINT", Short: "Remove a webhook endpoint: no event goes to it any more", JSON: "the endpoint", Missing: whichEndpoint, Examples: []string{"endpoints remove 0198c5d2-…"},
		Operate: onWebhookEndpoint(func(ctx context.Context, m *Meta, d deliveries.Entry) error {
			if d.RemovedAt.IsZero() { // suspended first: what is on its way stops, too
				if _, _, err := m.deliveries().Suspend(ctx, operator(), d.Kind, d.ID, m.now); err != nil {
					return err
				}
			}
			if _, err := registry.RemoveEndpoint(ctx, m.pool, operator(), d.ID, m.now); err != nil {
				return err
			}
			found, err := m.withStatus(ctx, d)
			if err != nil {
				return err
			}
			waiting := int(found[0].status.Waiting + found[0].status.Queued)
			return m.showChanged(ctx, d, func(p *page) {
				p.say("%s is removed, and its signing secret has ended.", d.Title)
				if waiting > 0 {
					p.say("%s %s kept for 30 days. `quittance endpoints add` with the same owner and address restores the endpoint and sends them.", deliveriesText(waiting), isAre(waiting))
				}
			})
		}),
	}
}

// onWebhookEndpoint is onEndpoint for a command that is for webhook endpoints only.
func onWebhookEndpoint(run func(ctx context.Context, m *Meta, d deliveries.Entry) error) func(context.Context, *Meta) error {
	return onEndpoint(func(ctx context.Context, m *Meta, d deliveries.Entry) error {
		if err := webhookOnly(d); err != nil {
			return err
		}
		return run(ctx, m, d)
	})
}

// webhookOnly refuses destinations that are no webhook endpoints.
func webhookOnly(d deliveries.Entry) error {
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
	return errors.New("ENDPOINT: " + deliveryWords["endpoint.removed"](map[string]any{"at": d.RemovedAt}))
}
