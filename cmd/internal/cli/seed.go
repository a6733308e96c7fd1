package cli

import (
	"context"
	"encoding/json"
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
	var asJSON bool
	cmd := command("seed FILE", "Apply a registry file: agencies, applications, keys, endpoints", m, func(cmd *cobra.Command, args []string) error {
		if err := m.locate(); err != nil {
			return err
		}
		report, err := Seed(cmd.Context(), m.Settings, args[0])
		if err != nil {
			return err
		}
		out := cmd.OutOrStdout()
		if asJSON {
			return json.NewEncoder(out).Encode(report)
		}
		_, _ = fmt.Fprintf(out, "%s: %d agencies, %d applications, %d services, %d keys, %d webhook endpoints, %d clerks: %s\n", args[0],
			report.Agencies, report.Applications, report.Services, report.Keys, report.Endpoints, report.Clerks,
			map[bool]string{true: "applied", false: "nothing changed"}[report.Changed])
		for _, m := range report.Minted {
			_, _ = fmt.Fprintf(out, "new secret, shown once: %s %s\n", m.Path, m.Secret.Reveal())
		}
		for _, n := range report.Notes {
			_, _ = fmt.Fprintf(out, "note: %s\n", n)
		}
		return nil
	})
	cmd.Args = cobra.ExactArgs(1)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
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
