package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/render"
	"quittance/cmd/internal/roles"
	"quittance/internal/connector/all"
	"quittance/internal/form"
	"quittance/internal/receipts"
	"quittance/internal/registryfile"
)

// SeedCommand returns the command `seed`.
func SeedCommand() cli.Command {
	var overrule bool
	return cli.Command{
		Use: "seed FILE", Short: "Apply a registry file: agencies, applications, keys, endpoints", JSON: "the report", Examples: []string{"seed registry.yaml"},
		Missing: "say which registry file: {usage}",
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.BoolVar(&overrule, "overrule", false, "set fields and embed origins of the file also where a command has set them")
		},
		Run: func(ctx context.Context, m *cli.Meta) error {
			report, err := Seed(ctx, m.Settings, m.Args[0], overrule)
			if err != nil {
				return err
			}
			return m.Show(reportJSON(report), func(p *render.Page) {
				p.Say("%s: %s, %s, %s, %s, %s, %s, %s: %s", m.Args[0],
					render.Counted(report.Agencies, "agency"), render.Counted(report.Applications, "application"), render.Counted(report.Services, "service"), render.Counted(report.Keys, "key"),
					render.Counted(report.Endpoints, "webhook endpoint"), render.Counted(report.Clerks, "clerk"), render.Counted(report.Accounts, "account"),
					map[bool]string{true: "applied", false: "nothing changed"}[report.Changed])
				for _, m := range report.Minted {
					p.Say("new secret, shown once: %s %s", m.Path, m.Secret.Reveal())
				}
				for _, n := range report.Notes {
					p.Say("note: %s", n)
				}
			})
		},
	}
}

// reportJSON is a report with its secrets. No other output shows them.
func reportJSON(r registryfile.Report) render.Object {
	return render.Object{
		"Agencies", r.Agencies, "Applications", r.Applications, "Services", r.Services, "Keys", r.Keys, "Endpoints", r.Endpoints,
		"Clerks", r.Clerks, "Accounts", r.Accounts, "Changed", r.Changed, "Notes", r.Notes,
		"Minted", render.Mapped(r.Minted, func(m registryfile.Minted) render.Object {
			return render.Object{"Path", m.Path, "Secret", m.Secret.Reveal()}
		}),
	}
}

// Seed applies a registry file to the installation, and makes the first keys of receipts. overrule is that of registryfile.Options.
func Seed(ctx context.Context, s roles.Settings, path string, overrule bool) (report registryfile.Report, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return report, fmt.Errorf("reading the registry file: %w", err)
	}
	keys, err := s.OpenKeys()
	if err != nil {
		return report, err
	}
	pool, err := s.OpenPostgres(ctx)
	if err != nil {
		return report, err
	}
	defer pool.Close()
	now, _, err := s.Time(ctx, pool)
	if err != nil {
		return report, err
	}
	by, err := cli.Actor(ctx, pool, keys, now)
	if err != nil {
		return report, err
	}
	report, err = registryfile.Apply(ctx, pool, by, text, registryfile.Options{Keys: keys, Developer: s.PlainSecrets, Operators: all.Operators(), Overrule: overrule, Now: func() time.Time { return now }})
	if err != nil {
		return report, fmt.Errorf("%s: %w", path, fileFaults(err))
	}
	return report, receipts.EnsureKeys(ctx, pool, keys, by, now)
}

// fileFaults lists the faults of a file, one on each line. Other errors stay as they are.
func fileFaults(err error) error {
	var faulty *form.FaultsError
	if !errors.As(err, &faulty) {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "registry file refused, nothing changed; faults: %d", len(faulty.Faults))
	for _, f := range faulty.Faults {
		b.WriteString("\n  " + f.Message)
	}
	return errors.New(b.String())
}
