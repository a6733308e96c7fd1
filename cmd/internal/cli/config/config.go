package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/render"
	"quittance/cmd/internal/roles"
)

// Command returns the command `config`.
func Command() cli.Command {
	return cli.Command{Use: "config", Short: "Check the settings of a role", Commands: []cli.Command{check()}}
}

func check() cli.Command {
	var file string
	table := roles.Table()
	names := roles.Names(table)
	return cli.Command{
		Use: "check ROLE", Short: "Say what is wrong with the settings of a role, without a connection to anything", JSON: "the faults",
		Examples: []string{"config check ingress --env-file /etc/quittance/ingress.env"}, Connection: cli.ConnectionNone,
		Missing: "say of which role: {usage}; one of " + strings.Join(names, ", "), Valid: names,
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&file, "env-file", "", "file of NAME=VALUE lines, as systemd and containers read it; the environment when empty")
		},
		Run: func(_ context.Context, m *cli.Meta) error {
			i := slices.IndexFunc(table, func(r roles.Role) bool {
				return r.Name == m.Args[0] || string(r.Kind) == m.Args[0] && r.Kind != roles.KindSink
			})
			if i < 0 {
				return cli.Usage("no role is called %q; the roles are %s", m.Args[0], strings.Join(names, ", "))
			}
			environ := os.Environ()
			if file != "" {
				text, err := os.ReadFile(file)
				if err != nil {
					return fmt.Errorf("--env-file: %w", err)
				}
				if environ, err = variables(string(text)); err != nil {
					return fmt.Errorf("%s: %w", file, err)
				}
			}
			faults := faultsOf(m, table[i], environ)
			if err := m.Show(render.Object{"role", table[i].Name, "faults", faults}, func(p *render.Page) {
				for _, fault := range faults {
					p.Say("FAIL  %s", fault)
				}
				if len(faults) == 0 {
					p.Say("The role %s can be started with these settings. Nothing was connected to: `quittance doctor %[1]s` does that.", table[i].Name)
				}
			}); err != nil {
				return err
			}
			if len(faults) > 0 {
				return fmt.Errorf("%s in the settings of %s", render.Counted(len(faults), "fault"), table[i].Name)
			}
			return nil
		},
	}
}

// faultsOf returns what is wrong with NAME=VALUE pairs as the settings of a role.
func faultsOf(m *cli.Meta, r roles.Role, environ []string) []string {
	values := map[string]string{}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
	}
	faults := []string{}
	if unknown := roles.UnknownVariables(environ, cli.Known(m.Root())); len(unknown) > 0 {
		faults = append(faults, cli.UnknownText(unknown))
	}
	s := roles.Settings{Options: m.Options, Program: m.Program}
	f := pflag.NewFlagSet(r.Name, pflag.ContinueOnError)
	s.ConnectionFlags(f)
	s.RunFlags(f, r.Kind)
	err := roles.FromVariables(f, func(name string) (string, bool) { value, ok := values[name]; return value, ok })
	for _, err := range []error{err, s.CheckRole(r), s.Secure()} {
		faults = append(faults, lines(err)...)
	}
	return faults
}

// lines returns the parts of a joined error, each of which is one fault.
func lines(err error) []string {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []string{err.Error()}
	}
	var out []string
	for _, one := range joined.Unwrap() {
		out = append(out, lines(one)...)
	}
	return out
}

// variables reads NAME=VALUE lines: # and ; begin a comment, and quotes around a value do not belong to
// it. An error never holds a value, which may be a secret.
func variables(text string) (out []string, err error) {
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		if !ok {
			return nil, errors.New("line " + strconv.Itoa(n+1) + " is not NAME=VALUE")
		}
		if len(value) > 1 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
			value = value[1 : len(value)-1]
		}
		out = append(out, strings.TrimSpace(name)+"="+value)
	}
	return out, nil
}
