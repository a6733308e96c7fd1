package mapping

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/registry"
)

// Command returns the command `mappings`.
func Command() cli.Command {
	return cli.Command{
		Use: "mappings", Short: "Say which service of the catalogue a due of an agency's ERP belongs to",
		Commands: []cli.Command{listMappings(), setMappings(), removeMappings()},
		Words:    words,
	}
}

// mappingsJSON is the catalogue mapping of an agency as --json prints it.
func mappingsJSON(e registry.MappingsEntry) render.Object {
	var standard any
	if e.Default.Code != "" {
		standard = render.Object{"service", e.Default.Code, "label", e.Default.Label, "active", e.Default.Active}
	}
	return render.Object{
		"agency", e.Agency, "agency_id", e.AgencyID,
		"mappings", render.Mapped(e.Mappings, func(m registry.Mapping) render.Object {
			return render.Object{"erp_code", m.ERPCode, "service", m.Service.Code, "label", m.Service.Label, "active", m.Service.Active, "by_command", m.ByCommand}
		}),
		"default_service", standard, "default_by_command", e.DefaultByCommand, "removed_by_command", append([]string{}, e.Removed...),
	}
}

// service names a service for people.
func service(s registry.Service) string {
	switch {
	case s.Code == "":
		return "none"
	case !s.Active:
		return s.Code + " (not active: the default counts)"
	}
	return s.Code
}

func sayMappings(p *render.Page, e registry.MappingsEntry) {
	by := func(command bool) string {
		if command {
			return "command"
		}
		return "file"
	}
	rows := render.Mapped(e.Mappings, func(m registry.Mapping) []any {
		return []any{e.Agency, m.ERPCode, service(m.Service), m.Service.Label, by(m.ByCommand)}
	})
	standard := service(e.Default)
	if e.Default.Code != "" && !e.Default.Active {
		standard = e.Default.Code + " (not active)"
	}
	rows = append(rows, []any{e.Agency, "all others", standard, e.Default.Label, by(e.DefaultByCommand)})
	for _, code := range e.Removed {
		rows = append(rows, []any{e.Agency, code, "as all others", "", "command"})
	}
	p.Table("", "AGENCY,ERP CODE,SERVICE,LABEL,SET BY", rows)
}

func listMappings() cli.Command {
	return cli.Command{
		Use: "list [AGENCY]", Short: "List the mappings of an agency, or of all", JSON: "the list", Args: cobra.MaximumNArgs(1),
		Examples: []string{"mappings list impots", "mappings list --json"},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			list, err := registry.ListMappings(ctx, m.Pool, m.Argument(""))
			if err != nil {
				return err
			}
			return m.Show(render.Mapped(list, mappingsJSON), func(p *render.Page) {
				if len(list) == 0 {
					p.Say("there are no agencies yet: add one with `quittance seed FILE`")
				}
				for _, e := range list {
					sayMappings(p, e)
				}
			})
		},
	}
}

// changeMappings runs a command that changes mappings.
func changeMappings(ctx context.Context, m *cli.Meta, change registry.MappingChange) error {
	e, changed, err := registry.ChangeMappings(ctx, m.Pool, m.Keys, m.By, m.Args[0], change, m.Now)
	if err != nil {
		return err
	}
	return m.Show(mappingsJSON(e), func(p *render.Page) {
		if !changed {
			p.Say("Nothing changed: that was so before.")
		}
		sayMappings(p, e)
		if changed {
			p.Say("It counts for dues within a second. A registry file leaves what a command has decided; `quittance seed --overrule` sets it from a file again.")
		}
	})
}

func setMappings() cli.Command {
	var codes []string
	var to, standard string
	return cli.Command{
		Use: "set AGENCY", Short: "Map ERP codes of an agency to a service, or set its default service", JSON: "the mappings of the agency", Missing: access.MissingAgency,
		Examples: []string{"mappings set impots --erp-code 4711 --service patente", "mappings set impots --default-service patente"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringArrayVar(&codes, "erp-code", nil, "revenue_line_code of the ERP's dues; repeatable")
			f.StringVar(&to, "service", "", "the service of these dues, by its code in the agency's catalogue")
			f.StringVar(&standard, "default-service", "", "the service of dues without a mapping, by its code")
		},
		Check: func(*cli.Meta) error {
			if (len(codes) > 0) != (to != "") || len(codes) == 0 && standard == "" {
				return cli.Usage("say what to set: --erp-code CODE with --service SERVICE, or --default-service SERVICE")
			}
			return nil
		},
		Keyed: true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			change := registry.MappingChange{Set: map[string]string{}}
			for _, code := range codes {
				change.Set[code] = to
			}
			if standard != "" {
				change.Default = &standard
			}
			return changeMappings(ctx, m, change)
		},
	}
}

func removeMappings() cli.Command {
	var codes []string
	var standard bool
	return cli.Command{
		Use: "remove AGENCY", Short: "Remove mappings of an agency: such dues belong to its default service", JSON: "the mappings of the agency", Missing: access.MissingAgency,
		Examples: []string{"mappings remove impots --erp-code 4711", "mappings remove impots --default-service"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringArrayVar(&codes, "erp-code", nil, "revenue_line_code whose mapping ends; repeatable")
			f.BoolVar(&standard, "default-service", false, "remove the default service: dues without a mapping have no service, and stay payable")
		},
		Check: func(*cli.Meta) error {
			if len(codes) == 0 && !standard {
				return cli.Usage("say what to remove: --erp-code CODE, or --default-service")
			}
			return nil
		},
		Keyed: true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			change := registry.MappingChange{Remove: codes}
			if standard {
				change.Default = new(string)
			}
			return changeMappings(ctx, m, change)
		},
	}
}
