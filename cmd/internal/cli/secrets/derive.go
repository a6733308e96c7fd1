package secrets

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/render"
	"quittance/cmd/internal/roles"
)

// derive prints the keys of a role.
func derive() cli.Command {
	table := roles.Table()
	names := strings.Join(roles.Names(table), ", ")
	return cli.Command{
		Use: "derive ROLE", Short: "Print the keys of a role, derived from the master keys: it gets these and not the master keys", JSON: "the role and its keys",
		Examples: []string{"secrets derive webhook > webhook.keys"}, Args: cobra.ExactArgs(1),
		Missing: "say which role: " + names,
		Valid:   render.Mapped(table, func(r roles.Role) cobra.Completion { return cobra.CompletionWithDesc(r.Name, r.Short) }),
		Run: func(_ context.Context, m *cli.Meta) error {
			i := slices.IndexFunc(table, func(r roles.Role) bool { return r.Name == m.Args[0] })
			if i < 0 {
				return cli.Usage("no role is called %q; there are %s", m.Args[0], names)
			}
			keys, err := m.OpenKeys()
			if err != nil {
				return err
			}
			if keys.Role() != "" {
				return errors.New("QUITTANCE_MASTER_KEYS holds the keys of the role " + keys.Role() + ": the keys of a role are derived from the master keys")
			}
			text := keys.Subset(table[i].Name, table[i].Keys).Reveal()
			return m.Show(render.Object{"role", table[i].Name, "keys", text}, func(p *render.Page) { p.Say("%s", strings.TrimSuffix(text, "\n")) })
		},
	}
}
