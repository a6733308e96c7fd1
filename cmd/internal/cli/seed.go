package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"quittance/cmd/internal/roles"
	"quittance/internal/connector/all"
	"quittance/internal/registry/file"
)

func (p Program) seed() *cobra.Command {
	m := p.meta()
	cmd := command("seed FILE", "Apply a registry file: agencies, applications, keys, endpoints", m, func(cmd *cobra.Command, args []string) error {
		if err := m.locate(); err != nil {
			return err
		}
		report, err := Seed(cmd.Context(), m.Settings, args[0])
		if err != nil {
			return err
		}
		return m.show(cmd, report, func(p *page) {
			p.say("%s: %d agencies, %d applications, %d services, %d keys, %d webhook endpoints, %d clerks: %s", args[0],
				report.Agencies, report.Applications, report.Services, report.Keys, report.Endpoints, report.Clerks,
				map[bool]string{true: "applied", false: "nothing changed"}[report.Changed])
			for _, m := range report.Minted {
				p.say("new secret, shown once: %s %s", m.Path, m.Secret.Reveal())
			}
			for _, n := range report.Notes {
				p.say("note: %s", n)
			}
		})
	})
	cmd.Example = p.Name + " seed registry.yaml"
	takesArgument(cmd, "say which registry file: `quittance seed FILE`")
	m.takesJSON(cmd, "the report")
	return cmd
}

// Seed applies a registry file.
func Seed(ctx context.Context, s roles.Settings, path string) (file.Report, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return file.Report{}, fmt.Errorf("reading the registry file: %w", err)
	}
	keys, err := s.OpenKeys()
	if err != nil {
		return file.Report{}, err
	}
	pool, err := s.OpenPostgres(ctx)
	if err != nil {
		return file.Report{}, err
	}
	defer pool.Close()
	now, err := s.Time(ctx, pool)
	if err != nil {
		return file.Report{}, err
	}
	report, err := file.Apply(ctx, pool, operator(), text, file.Options{Keys: keys, Developer: s.PlainSecrets, Operators: all.Operators(), Now: func() time.Time { return now }})
	if err != nil {
		return file.Report{}, fmt.Errorf("%s: %w", path, fileFaults(err))
	}
	return report, nil
}
