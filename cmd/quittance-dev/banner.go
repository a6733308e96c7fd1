package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"quittance/cmd/internal/roles"
	"quittance/dev/simulator"
	"quittance/dev/staff"
	"quittance/money/localtime"
)

// demo is the part of a registry file with plain secrets that the banner shows.
type demo struct {
	Platform struct {
		Keys []demoKey `yaml:"keys"`
	} `yaml:"platform"`
	Agencies []struct {
		ID           string `yaml:"id"`
		Name         string `yaml:"name"`
		Applications []struct {
			Name         string    `yaml:"name"`
			Keys         []demoKey `yaml:"keys"`
			EmbedOrigins []string  `yaml:"embed_origins"`
			Cashin       demoPair  `yaml:"cashin"`
			Endpoints    []struct {
				URL string `yaml:"url"`
			} `yaml:"webhook_endpoints"`
		} `yaml:"applications"`
		Clerks []struct {
			Code string    `yaml:"code"`
			Name string    `yaml:"name"`
			Keys []demoKey `yaml:"keys"`
		} `yaml:"clerks"`
	} `yaml:"agencies"`
}

type demoKey struct {
	Secret string `yaml:"secret"`
}

// demoPair is a pair of credentials for the deprecated cash-in API.
type demoPair struct {
	APIKey          string   `yaml:"api_key"`
	SecretKey       string   `yaml:"secret_key"`
	RedirectOrigins []string `yaml:"redirect_origins"`
}

func readDemo(file string) (d demo, err error) {
	text, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(text, &d)
	}
	if err != nil {
		return d, fmt.Errorf("reading the registry file: %w", err)
	}
	return d, nil
}

// demoShop is the origin of the demo shop in a registry file. `up` replaces it by the
// origin at its own port.
const demoShop = "https://127.0.0.1:8088"

// shopKey returns a test key of the application whose sessions the demo shop may frame.
func (d demo) shopKey() string {
	for _, agency := range d.Agencies {
		for _, app := range agency.Applications {
			if !slices.Contains(app.EmbedOrigins, demoShop) {
				continue
			}
			for _, k := range app.Keys {
				if strings.HasPrefix(k.Secret, "sk_test_") {
					return k.Secret
				}
			}
		}
	}
	return ""
}

// demoPartner is the origin of the simulated partner in a registry file. `up` replaces it by
// the origin at its own port.
const demoPartner = "http://127.0.0.1:8090"

// partner returns the credentials of the application to whose citizens the simulated partner
// sells; empty when there is none.
func (d demo) partner() demoPair {
	for _, agency := range d.Agencies {
		for _, app := range agency.Applications {
			if slices.Contains(app.Cashin.RedirectOrigins, demoPartner) {
				return app.Cashin
			}
		}
	}
	return demoPair{}
}

// clerkKeys returns the test keys of the clerks, one list for each agency.
func (d demo) clerkKeys() (keys [][]string) {
	for _, agency := range d.Agencies {
		var of []string
		for _, clerk := range agency.Clerks {
			for _, k := range clerk.Keys {
				if strings.HasPrefix(k.Secret, "ck_test_") {
					of = append(of, k.Secret)
				}
			}
		}
		keys = append(keys, of)
	}
	return keys
}

// banner prints how to use the installation. It is the only output with keys and a test
// number.
func (u *installation) banner(ctx context.Context, base *roles.Base, signs *staff.Signatories, out io.Writer) error {
	d, err := readDemo(u.registry)
	if err != nil {
		return err
	}
	address := "http://" + local(u.port)
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("\nQuittance is ready (developer mode; nothing here is real money).")
	if u.broker == brokerEmbedded {
		line("The broker is in-process and not crash-safe: never for real payments.")
	}
	line(`
  API          %[1]s/api/v1
  Checkout     %[1]s/c/{session_id}
  Portal       %[1]s/portal   where citizens see and pay what they owe
  Reference    %[1]s/p   where anybody pays with a payment reference
  Counter      %[1]s/counter   where clerks take cash
  Staff        %[6]s   where staff sign in with passkeys and look after payments
  ClickHouse   curl 'http://%[2]s/?query=SELECT+*+FROM+quittance.receipts+FORMAT+Vertical'
  Health       http://%[3]s/readyz   metrics on /metrics
  Demo shop    https://%[4]s/   an agency's site with the embedded checkout
  Simulators   %[5]s/   operators, ERPs, webhook inboxes, /control
  Messages     %[5]s/inbox/sms and /inbox/mail   what people get; sign-in codes`, address, local(u.port+portClickHouse), local(u.port+portHealth), local(u.port+portShop), u.SimulatorURL, fmt.Sprintf("http://localhost:%d", u.port+portOffice))
	if d.partner().APIKey != "" {
		line("  Old partner  http://%s/   a site that uses the deprecated cash-in API; `quittance-dev cashin usage --port %d` counts its calls", local(u.port+portPartner), u.port)
	}
	line("")
	key := u.keys(d, line)
	if err := u.portal(ctx, base, line); err != nil {
		return err
	}
	if key != "" {
		line("\nCreate a session, open its checkout_url, and pay with 06 600 00 01:\n")
		line(`curl -sS %s/api/v1/checkout/sessions -H 'Authorization: Bearer %s' -H 'Content-Type: application/json' -H "Idempotency-Key: $(date +%%s%%N)" -d '{"order_id":"demo-'"$(date +%%s%%N)"'","amount":5000,"description":"Patente 2026","service_code":"patente","metadata":{"erp_due_ref":"DUE-'"$(date +%%s%%N)"'"}}'`, address, key)
	}
	u.payday(base, signs, line)
	line("")
	_, err = io.WriteString(out, b.String())
	return err
}

// payday prints how the demo agency pays the people of a file beside the registry file.
func (u *installation) payday(base *roles.Base, signs *staff.Signatories, line func(string, ...any)) {
	file := filepath.Join(filepath.Dir(u.registry), "salaries.csv")
	if _, err := os.Stat(file); err != nil || signs == nil {
		return
	}
	pages := fmt.Sprintf("http://localhost:%d", u.port+portOffice)
	program, today := os.Args[0], localtime.Day(base.Now())
	line("\nPay the 20 people of %s, and nobody twice (test money; %s prepares, another person approves):\n", file, staff.Preparer)
	if signs.PreparerKey != "" {
		line("  1. QUITTANCE_STAFF_KEY=%s %s batches import %s --port %d --agency %s --mode test --date %s --batch-ref demo-%s",
			signs.PreparerKey, program, file, u.port, staff.DemoAgency, today, today)
	} else {
		line("  1. Sign in at %s as %s, open %s/agency/batches?mode=test and import %s", pages, staff.Preparer, pages, file)
	}
	if signs.PreparerKey != "" {
		line("     Or pay the 6 people of the batch %s of the agency's simulated ERP, which is asked again at the release:\n     QUITTANCE_STAFF_KEY=%s %s batches pull --port %d --agency %s --mode test --date %s --batch-ref %s",
			simulator.StandardBatch, signs.PreparerKey, program, u.port, staff.DemoAgency, today, simulator.StandardBatch)
	}
	line(`  2. Sign in at %[1]s as %[2]s, open the batch in %[1]s/agency/batches?mode=test, press “Approve”, then “Release”
  3. %[3]s batches list --mode test --port %[4]d   shows 20 paid about a minute later: operators are asked each minute
     Above 10,000,000 FCFA a day two approve: %[5]s, or %[6]s for that person, is the second.`,
		pages, staff.Approver1, program, u.port, staff.Approver2, staff.Delegate)
}

// keys writes the demo's keys and where its webhooks are seen. It returns the first test key of an
// application.
func (u *installation) keys(d demo, line func(format string, args ...any)) (key string) {
	for _, k := range d.Platform.Keys {
		line("  Platform key %s", k.Secret)
	}
	for _, agency := range d.Agencies {
		for _, app := range agency.Applications {
			for _, k := range app.Keys {
				line("  Key          %s   %s, %s", k.Secret, agency.Name, app.Name)
				if key == "" && strings.HasPrefix(k.Secret, "sk_test_") {
					key = k.Secret
				}
			}
			if app.Cashin.APIKey != "" {
				line("  Cash-in      apiKey %s, secretKey %s   %s, %s", app.Cashin.APIKey, app.Cashin.SecretKey, agency.Name, app.Name)
			}
			for _, e := range app.Endpoints {
				url := strings.Replace(e.URL, "http://127.0.0.1:8081", u.SimulatorURL, 1)
				line("  Webhooks     curl %s", url)
			}
		}
		for _, clerk := range agency.Clerks {
			for _, k := range clerk.Keys {
				line("  Clerk        %s   %s, %s (%s)", k.Secret, agency.Name, clerk.Name, clerk.Code)
			}
		}
	}
	return key
}

// portal prints how to sign in to the citizen portal, and the link codes of the subjects that the
// simulated ERPs have.
func (u *installation) portal(ctx context.Context, base *roles.Base, line func(string, ...any)) error {
	subjects := []string{"TP-1001", "TP-1002", "TP-1003", "TP-1004", "TP-1005", "TP-1006"}
	for _, agency := range base.Registry.Agencies() {
		if portal, ok := base.Registry.PortalOf(agency.ID); !ok || !portal.Active {
			continue
		}
		codes, err := base.LinkCodes(ctx, agency.ID, subjects)
		if err != nil {
			return err
		}
		line("\n  Citizen      06 600 00 01   signs in at the portal; the code is in /inbox/sms. Link codes of %s:", agency.Name)
		for i, code := range codes {
			line("               %s   %s", subjects[i], code)
		}
	}
	return nil
}
