package roles

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"quittance/checkout"
	"quittance/dev/simulator"
	"quittance/internal/clock"
	"quittance/internal/registry"
)

func simulate() *cobra.Command {
	s := &Settings{}
	cmd := command("simulate", "Run the simulators of operators, ERPs and webhook receivers alone, on port N+1", s, func(cmd *cobra.Command, _ []string) error {
		if s.Port == 0 {
			s.Port = defaultPort
		}
		s.SimulatorURL = "http://" + local(s.Port+portSimulators)
		s.CheckoutURL = cmp.Or(s.CheckoutURL, "http://"+local(s.Port))
		port := s.Port
		if s.Kafka != "" {
			s.Port = 0 // the parts are named: --port is only where to listen
		}
		s.Developer = true
		return runRole(cmd, *s, func(b *base) error { return b.simulate(local(port+portSimulators), nil) })
	})
	s.runFlags(cmd.Flags())
	cmd.Flags().StringVar(&s.CheckoutURL, "checkout-url", "", "where the agencies' counters reach the service; that of an up on this port when empty")
	return cmd
}

// simulate runs the simulators on addr. They know the registry's webhook secrets
// and ERP credentials, so that what is signed or sent wrongly is refused. Clerks are
// keys, an agency a list.
func (b *base) simulate(addr string, clerks [][]string) error {
	if err := b.openRegistry(); err != nil {
		return err
	}
	sim, err := simulator.New(simulator.Config{
		Now: b.now, Log: b.log, Metrics: b.metrics, Secrets: b.inboxSecrets, ERPAuth: b.erpAuth, Card: b.cardSecret,
		Counter: strings.TrimSuffix(b.CheckoutURL, "/"), Clerks: clerks,
		AdvanceClock: func(ctx context.Context, d time.Duration) error {
			_, err := clock.Advance(ctx, b.pool, d)
			return err
		},
	})
	if err != nil {
		return err
	}
	b.run("simulators", sim.Run)
	return b.serve("simulators", addr, sim.Handler())
}

// inboxSecrets are the signing secrets of the endpoints that deliver to an inbox.
func (b *base) inboxSecrets(inbox string) []string {
	var out []string
	for _, e := range b.reg.AllEndpoints() {
		if e.URL == b.SimulatorURL+"/inbox/"+inbox {
			for _, s := range e.Secrets {
				out = append(out, s.Reveal())
			}
		}
	}
	return out
}

// cardSecret is what an agency's account shares with the simulated acquirer.
func (b *base) cardSecret(merchant string) (string, bool) {
	for _, agency := range b.reg.Agencies() {
		a, ok := b.reg.Connector(agency.ID, false, checkout.OfferCard)
		if ok && a.Merchant == merchant && a.BaseURL == b.SimulatorURL+"/card" {
			return a.Secret.Reveal(), true
		}
	}
	return "", false
}

// erpAuth are the credentials with which the service goes to an agency's
// simulated ERP.
func (b *base) erpAuth(slug string) []simulator.Auth {
	var out []simulator.Auth
	for _, agency := range b.reg.Agencies() {
		erp, ok := b.reg.ERP(agency.ID, false)
		if !ok || erp.BaseURL != b.SimulatorURL+"/erp/"+slug {
			continue
		}
		switch erp.Auth.Type {
		case registry.AuthBearer:
			out = append(out, simulator.Auth{Type: simulator.AuthBearer, Token: erp.Auth.Secret.Reveal()})
		case registry.AuthAPIKey:
			out = append(out, simulator.Auth{Type: simulator.AuthAPIKey, Header: erp.Auth.Name, Value: erp.Auth.Secret.Reveal()})
		case registry.AuthBasic:
			out = append(out, simulator.Auth{Type: simulator.AuthBasic, Username: erp.Auth.Name, Password: erp.Auth.Secret.Reveal()})
		}
	}
	return out
}
