package acl

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kmsg"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/render"
	"quittance/cmd/internal/roles"
	"quittance/internal/kafka"
)

// Command prints the rights of each role at Kafka.
func Command() cli.Command {
	var prefix, principal, bootstrap, admin string
	clients := roles.KafkaClients()
	names := render.Mapped(clients, func(c roles.KafkaClient) string { return c.Name })
	return cli.Command{
		Use: "acls [ROLE]", Short: "Print the least rights of each role at Kafka, as commands of kafka-acls.sh", JSON: "one object for each right",
		Examples: []string{"acls --bootstrap-server kafka-1:9093 --command-config admin.properties | sh", "acls erp --json"},
		Args:     cobra.MaximumNArgs(1), Connection: cli.ConnectionNone,
		Valid: render.Mapped(clients, func(c roles.KafkaClient) cobra.Completion { return cobra.CompletionWithDesc(c.Name, c.Short) }),
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&prefix, "topic-prefix", "", "prefix of topics and groups of the installation")
			f.StringVar(&principal, "principal", "User:quittance-{role}", "principal of a role; {role} stands for its name. For client certificates such as 'User:CN=quittance-{role},O=Treasury'")
			f.StringVar(&bootstrap, "bootstrap-server", "$BOOTSTRAP", "address of a broker, for the printed commands")
			f.StringVar(&admin, "command-config", "admin.properties", "file with the administrator's connection, for the printed commands")
		},
		Check: func(m *cli.Meta) error {
			if len(m.Args) > 0 {
				i := slices.Index(names, m.Args[0])
				if i < 0 {
					return cli.Usage("no role is called %q; there are %s", m.Args[0], strings.Join(names, ", "))
				}
				clients = clients[i : i+1]
			}
			if !strings.HasPrefix(principal, "User:") || len(clients) > 1 && !strings.Contains(principal, "{role}") {
				return cli.Usage("--principal %q: must begin with User: and contain {role}; with one ROLE it may be without {role}", principal)
			}
			return nil
		},
		Run: func(_ context.Context, m *cli.Meta) error {
			var all []render.Object
			for _, c := range clients {
				for _, r := range c.Rights {
					all = append(all, render.Object{
						"role", c.Name, "principal", principalOf(principal, c), "operation", kafka.OperationName(r.Operation),
						"resource_type", kafka.ResourceName(r.Type), "resource", r.FullName(prefix), "pattern", pattern(r.Resource),
					})
				}
			}
			return m.Show(all, func(p *render.Page) {
				for i, c := range clients {
					if i > 0 {
						p.Say("")
					}
					p.Say("# %s: %s", c.Name, c.Short)
					for _, g := range grouped(c.Rights) {
						p.Say("kafka-acls.sh --bootstrap-server %s --command-config %s --add %s", bootstrap, shellWord(admin), g.arguments(principalOf(principal, c), prefix))
					}
				}
			})
		},
	}
}

func principalOf(form string, c roles.KafkaClient) string {
	return strings.ReplaceAll(form, "{role}", c.Name)
}

func pattern(r kafka.Resource) string {
	if r.Prefixed {
		return "prefixed"
	}
	return "literal"
}

// shellWord quotes a word for a shell if that is necessary.
func shellWord(s string) string {
	if strings.IndexFunc(s, func(r rune) bool {
		return !strings.ContainsRune("-_./:,@%+", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) < 0 && s != "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// sameRights are resources of one type on which the same operations are allowed.
type sameRights struct {
	operations []kmsg.ACLOperation
	resources  []kafka.Resource
}

// grouped groups rights, so that few commands give them.
func grouped(rights []kafka.Right) []sameRights {
	by := map[kafka.Resource][]kmsg.ACLOperation{}
	var order []kafka.Resource
	for _, r := range rights {
		if by[r.Resource] == nil {
			order = append(order, r.Resource)
		}
		by[r.Resource] = append(by[r.Resource], r.Operation)
	}
	var out []sameRights
	for _, r := range order {
		i := slices.IndexFunc(out, func(g sameRights) bool {
			return g.resources[0].Type == r.Type && g.resources[0].Prefixed == r.Prefixed && slices.Equal(g.operations, by[r])
		})
		if i < 0 {
			out, i = append(out, sameRights{operations: by[r]}), len(out)
		}
		out[i].resources = append(out[i].resources, r)
	}
	slices.SortStableFunc(out, func(a, b sameRights) int { return cmp.Compare(a.resources[0].Type, b.resources[0].Type) })
	return out
}

// arguments returns the arguments of kafka-acls.sh.
func (g sameRights) arguments(principal, prefix string) string {
	words := []string{"--allow-principal", shellWord(principal)}
	for _, o := range g.operations {
		words = append(words, "--operation", kafka.OperationName(o))
	}
	if g.resources[0].Prefixed {
		words = append(words, "--resource-pattern-type", "prefixed")
	}
	for _, r := range g.resources {
		words = append(words, "--"+kafka.ResourceName(r.Type), shellWord(r.FullName(prefix)))
	}
	return strings.Join(words, " ")
}
