package erpcheck

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/address"
	"quittance/internal/erp"
	"quittance/internal/erp/conformance"
	"quittance/internal/registry"
	"quittance/internal/secret"
)

// Command returns the command `erp`.
func Command() cli.Command {
	return cli.Command{
		Use: "erp", Short: "Check an agency's ERP against the contract, as its vendor does",
		Commands: []cli.Command{checkERP()},
	}
}

// secretVariable holds the secret of the ERP when --erp-secret-file is not given.
const secretVariable = "QUITTANCE_ERP_SECRET" //nolint:gosec // the name of a variable

// erpFlags name an ERP and its credentials.
type erpFlags struct {
	baseURL, auth, name, secretFile, caFile string
}

func (e *erpFlags) declare(f *pflag.FlagSet) {
	f.StringVar(&e.baseURL, "base-url", "", "the address before /health, /dues and /payment-confirmations; https, or http://127.0.0.1:PORT")
	cli.TakesChoice(f, &e.auth, "auth", []string{string(registry.AuthBearer), string(registry.AuthAPIKey), string(registry.AuthBasic)}, "how calls authenticate: ")
	f.StringVar(&e.name, "auth-name", "", "the header of an api_key, such as X-API-Key, or the user name of basic")
	f.StringVar(&e.secretFile, "erp-secret-file", "", "file with the token, the key or the password; or set "+secretVariable)
	f.StringVar(&e.caFile, "ca-file", "", "PEM file of the authority that signed the ERP's certificate, if it is your own")
}

// everywhere allows the ERP any address: the vendor's own machine calls it.
var everywhere = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}

// settings returns the ERP's settings. Its errors are those of the command line.
func (e *erpFlags) settings() (registry.ERPSettings, error) {
	s := registry.ERPSettings{BaseURL: strings.TrimRight(e.baseURL, "/"), Networks: everywhere, Auth: registry.ERPAuth{Type: registry.AuthType(e.auth), Name: e.name}}
	if e.baseURL == "" {
		return s, cli.Usage("--base-url: give the address of the ERP, such as https://erp.example/quittance")
	}
	if err := (address.Rule{Loopback: true, Backend: true, Networks: everywhere}).CheckNew(e.baseURL); err != nil {
		return s, cli.Usage("--base-url: the address %v", err)
	}
	switch {
	case e.auth == "":
		return s, cli.Usage("--auth: say how calls authenticate: bearer, api_key or basic")
	case s.Auth.Type == registry.AuthBearer && e.name != "":
		return s, cli.Usage("--auth-name is for api_key and basic")
	case s.Auth.Type != registry.AuthBearer && e.name == "":
		return s, cli.Usage("--auth-name: give the header of the api_key, or the user name of basic")
	}
	text := os.Getenv(secretVariable)
	if e.secretFile != "" {
		read, err := os.ReadFile(e.secretFile)
		if err != nil {
			return s, cli.Usage("--erp-secret-file: %v", err)
		}
		text = strings.TrimRight(string(read), "\r\n")
	}
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return s, cli.Usage("give the secret in the file --erp-secret-file or in %s: ASCII without spaces; never among the arguments, which every user of the machine can read", secretVariable)
	}
	s.Auth.Secret = secret.NewText(text)
	return s, nil
}

func (e *erpFlags) roots() (*x509.CertPool, error) {
	if e.caFile == "" {
		return nil, nil //nolint:nilnil // nil are the system's authorities
	}
	text, err := os.ReadFile(e.caFile)
	if err != nil {
		return nil, cli.Usage("--ca-file: %v", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, cli.Usage("--ca-file: %s holds no certificate in PEM", e.caFile)
	}
	return roots, nil
}

func checkERP() cli.Command {
	var flags erpFlags
	var cfg conformance.Config
	return cli.Command{
		Use: "check", Short: "Call every path of an ERP as the service does, and say what is wrong and how to mend it",
		JSON: "the findings", Connection: cli.ConnectionNone,
		Examples: []string{
			"erp check --base-url https://erp-test.example/quittance --auth bearer --erp-secret-file token.txt",
			"erp check --base-url http://127.0.0.1:9000 --auth api_key --auth-name X-API-Key --subject NIU-TEST-1 --read-only",
		},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			flags.declare(f)
			f.StringVar(&cfg.Subject, "subject", conformance.Subject, "subject_ref of a test taxpayer who owes something; payments that never took place are confirmed for it, so use a test system")
			f.StringVar(&cfg.Batch, "batch", "", "batch_ref of a disbursement batch with lines, if the agency pays batches out")
			f.BoolVar(&cfg.ReadOnly, "read-only", false, "confirm no payments")
		},
		Run: func(ctx context.Context, m *cli.Meta) error {
			var err error
			if cfg.Settings, err = flags.settings(); err != nil {
				return err
			}
			if !erp.IsReference(cfg.Subject) {
				return cli.Usage("--subject: must be 1 to %d characters without control characters", erp.MaxReference)
			}
			roots, err := flags.roots()
			if err != nil {
				return err
			}
			cfg.Client = erp.New(erp.Config{Loopback: true, Roots: roots})
			findings, err := conformance.Run(ctx, cfg)
			if err != nil {
				return err
			}
			if err := m.Show(findingsJSON(findings), func(p *render.Page) { sayFindings(p, findings) }); err != nil {
				return err
			}
			if bad := conformance.Failed(findings); bad > 0 {
				return fmt.Errorf("%d of %s failed", bad, render.Counted(len(findings), "check"))
			}
			return nil
		},
	}
}

func findingsJSON(findings []conformance.Finding) render.Object {
	return render.Object{"passed", conformance.Failed(findings) == 0, "failed", conformance.Failed(findings), "findings", render.Mapped(findings, func(f conformance.Finding) render.Object {
		return render.Object{"check", f.Check, "outcome", string(f.Outcome), "said", f.Said, "mend?", f.Mend}
	})}
}

var outcomeMarks = map[conformance.Outcome]string{
	conformance.OutcomeOK: "ok  ", conformance.OutcomeWarning: "WARN", conformance.OutcomeFailed: "FAIL", conformance.OutcomeSkipped: "skip",
}

func sayFindings(p *render.Page, findings []conformance.Finding) {
	for _, f := range findings {
		p.Say("%s  %-28s %s", outcomeMarks[f.Outcome], f.Check, f.Said)
		if f.Mend != "" {
			p.Say("      %s", f.Mend)
		}
	}
}
