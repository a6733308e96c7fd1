package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/roles"
	"quittance/dev/clock"
	"quittance/dev/simulator"
	machine "quittance/internal/clock"
	"quittance/internal/connector"
	"quittance/internal/connector/airtel"
	"quittance/internal/connector/card"
	"quittance/internal/connector/mtn"
	"quittance/internal/connector/pi"
	"quittance/internal/registry"
)

func simulate() cli.Command {
	var port int
	return cli.Command{
		Use: "simulate", Short: "Run the simulators of operators, ERPs, webhook receivers, SMS and e-mail alone, on ports N+1, N+9 and N+13", Examples: []string{"simulate --port 8080"},
		Connection: cli.ConnectionParts,
		Flags: func(f *pflag.FlagSet, m *cli.Meta) {
			m.RunFlags(f, "")
			f.IntVar(&port, "port", defaultPort, "the simulators listen on the port after this one, the mail server on the ninth and the switch on the thirteenth after it; without --kafka it is the port of an up")
			f.StringVar(&m.CheckoutURL, "checkout-url", "", "URL of the service, for the agencies' counters; the up on this port when empty")
		},
		Run: func(ctx context.Context, m *cli.Meta) error {
			m.SimulatorURL = "http://" + local(port+portSimulators)
			m.CheckoutURL = cmp.Or(m.CheckoutURL, "http://"+local(port))
			if m.Kafka == "" { // otherwise flags name the parts, and --port is only the port to listen on
				if err := readLocator(port, &m.Settings); err != nil {
					return err
				}
			}
			b, err := roles.Open(ctx, m.Settings, m.Log)
			if err != nil {
				return err
			}
			b.Start(func(b *roles.Base) error { return startSimulators(b, port, nil) }, (*roles.Base).ServeHealth)
			return b.Wait()
		},
	}
}

// simulatedMail is the address of the simulated mail server beside an `up`.
func simulatedMail(port int) string {
	return "smtp+plain://" + local(port+portMail) + "?from=no-reply@quittance.example&name=Quittance"
}

// startSimulators runs the simulators beside the service on a port. They have the registry's webhook secrets
// and ERP credentials, so that they refuse wrong signatures and credentials. clerks are
// keys, one list for each agency.
func startSimulators(b *roles.Base, port int, clerks [][]string) error {
	if err := b.OpenRegistry(); err != nil {
		return err
	}
	sim, err := simulator.New(simulator.Config{
		Now: b.Now, Log: b.Log, Metrics: b.Metrics, Counter: strings.TrimSuffix(b.CheckoutURL, "/"), Clerks: clerks,
		Secrets: func(inbox string) []string { return inboxSecrets(b, inbox) },
		ERPAuth: func(slug string) []simulator.Auth { return erpAuth(b, slug) },
		Card:    func(merchant string) (requests, reports string, ok bool) { return cardSecrets(b, merchant) },

		Statements: func() []simulator.StatementAccount { return statementAccounts(b) },
		AdvanceClock: func(ctx context.Context, d time.Duration) (time.Time, error) {
			ahead, err := clock.Advance(ctx, b.Pool, d)
			if err == nil {
				clock.Reached(ctx)
			}
			return machine.Now().Add(ahead), err
		},
	})
	if err != nil {
		return err
	}
	b.Run("simulators", sim.Run)
	mail := local(port + portMail)
	l, err := net.Listen("tcp", mail) //nolint:noctx // at start
	if err != nil {
		return fmt.Errorf("listening on %s for simulated mail: %w", mail, err)
	}
	door := local(port + portSwitch)
	switched, err := net.Listen("tcp", door) //nolint:noctx // at start
	if err != nil {
		return fmt.Errorf("listening on %s for the simulated switch: %w", door, err)
	}
	b.Run("simulated switch", func(ctx context.Context) error { return sim.ServeSwitch(ctx, switched) })
	b.Run("simulated mail server", func(ctx context.Context) error {
		return sim.ServeMail(ctx, l, simulator.MailServer{})
	})
	return b.Serve("simulators", local(port+portSimulators), sim.Handler(), roles.Limits{Connections: roles.DefaultMaxConnections}) // simulated operators may answer late
}

// inboxSecrets returns the signing secrets of the endpoints that deliver to an inbox.
func inboxSecrets(b *roles.Base, inbox string) []string {
	var out []string
	for _, e := range b.Registry.AllEndpoints() {
		if e.URL == b.SimulatorURL+"/inbox/"+inbox {
			for _, s := range e.Secrets {
				out = append(out, s.Reveal())
			}
		}
	}
	return out
}

// cardSecrets returns the secrets that an agency's account shares with the simulated
// acquirer, of requests and of reports.
func cardSecrets(b *roles.Base, merchant string) (requests, reports string, ok bool) {
	for _, agency := range b.Registry.Agencies() {
		a, _ := b.Registry.CollectingAccount(agency.ID, false, card.Operator, "")
		if a, ok := a.Account.(card.Account); ok && a.Merchant == merchant && string(a.BaseURL) == b.SimulatorURL+"/"+card.Operator {
			return a.Secret, a.ReportSecret, a.Secret != ""
		}
	}
	return "", "", false
}

// erpAuth returns the credentials that the service uses at an agency's simulated ERP.
func erpAuth(b *roles.Base, slug string) []simulator.Auth {
	var out []simulator.Auth
	for _, agency := range b.Registry.Agencies() {
		erp, ok := b.Registry.ERP(agency.ID, false)
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

// statementAccounts returns the accounts for tests of all agencies whose statements the
// simulators can write. Cash is that of all counters: the simulators do not know which agency
// a clerk is of.
func statementAccounts(b *roles.Base) (out []simulator.StatementAccount) {
	for _, agency := range b.Registry.Agencies() {
		for _, a := range b.Registry.StatementAccounts(agency.ID, false) {
			zone, err := a.Location()
			if err != nil || a.Columns != nil || a.Fingerprint != "" {
				continue // a layout or a merchant that no simulator has
			}
			out = append(out, simulator.StatementAccount{
				Agency: agency.Slug, Code: a.Code, Profile: a.Profile, Merchants: merchants(b, agency.ID, a), Payouts: a.Payouts(), IBAN: a.IBAN, Number: a.Number, Currency: a.Currency,
				Zone: zone, Cutoff: a.Cutoff, SettlesTo: a.SettlesTo,
			})
		}
	}
	return out
}

// merchants returns the name of an account at its operator; nil for a bank and for cash.
func merchants(b *roles.Base, agencyID string, a registry.StatementAccount) []string {
	if a.Kind == registry.AccountBank || a.Kind == registry.AccountCash {
		return nil
	}
	if a.Payouts() {
		payout, _ := b.Registry.PayoutAccount(agencyID, a.Live, a.Offer, "")
		return []string{merchantName(payout.Account)}
	}
	merchant, _ := b.Registry.MerchantAccount(agencyID, a.Live, a.Offer)
	return []string{merchantName(merchant.Account)}
}

func merchantName(a connector.Account) string {
	switch a := a.(type) {
	case mtn.Account:
		return a.APIUser
	case airtel.Account:
		return a.ClientID
	case mtn.PayoutAccount:
		return a.APIUser
	case airtel.PayoutAccount:
		return a.ClientID
	case pi.Account:
		return a.ClientID
	case card.Account:
		return a.Merchant
	}
	return ""
}
