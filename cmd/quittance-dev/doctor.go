package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/roles"
	"quittance/dev/stack"
	"quittance/dev/stack/chdb"
)

// doctorUp returns the checks of what `up` needs before it starts.
func doctorUp() cli.DoctorRole {
	u := &installation{}
	return cli.DoctorRole{
		Name: "up", Flags: u.flags,
		Checks: func(s roles.Settings, f *pflag.FlagSet) []cli.Check {
			port, _ := f.GetInt("port") // every command has it, see portFlag
			u.Settings, u.port = s, cmp.Or(port, defaultPort)
			return u.checks()
		},
	}
}

// checks returns the checks of the parts that `up` starts.
func (u *installation) checks() []cli.Check {
	out := []cli.Check{
		{Name: "registry file", Do: func(context.Context) (string, error) {
			if _, err := os.Stat(u.registry); err != nil {
				return "", fmt.Errorf("%w; name the file with --registry", err)
			}
			return u.registry, nil
		}},
		{Name: "data folder", Do: func(context.Context) (string, error) {
			dir, err := filepath.Abs(u.Data)
			if err != nil {
				return "", err
			}
			return dir, stack.CheckPostgresDir(dir)
		}},
		{Name: "postgres", Do: func(context.Context) (string, error) { return stack.FindPostgres("") }},
		{Name: "clickhouse", Do: func(context.Context) (string, error) { return chdb.FindLibrary() }},
	}
	if u.broker == brokerKafka {
		out = append(out,
			cli.Check{Name: "kafka", Do: func(context.Context) (string, error) { return stack.FindKafkaLibs("") }},
			cli.Check{Name: "java", Do: func(context.Context) (string, error) {
				java, err := exec.LookPath("java")
				if err != nil {
					return "", errors.New("no java on the PATH; run `make deps/test`, which installs it or names the command that does")
				}
				return java, nil
			}})
	}
	ports := map[string]int{
		"service": 0, "simulators": portSimulators, "broker": portBroker, "postgres": portPostgres, "clickhouse": portClickHouse,
		"schema registry": portSchemaRegistry, "health": portHealth,
	}
	return append(out, cli.Check{Name: "ports", Do: func(ctx context.Context) (string, error) {
		var taken []string
		for name, offset := range ports {
			l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", local(u.port+offset))
			if err != nil {
				taken = append(taken, fmt.Sprintf("%d (%s)", u.port+offset, name))
				continue
			}
			_ = l.Close()
		}
		slices.Sort(taken)
		if len(taken) > 0 {
			return "", fmt.Errorf("in use: %s; is an `up` running already? Choose another --port", strings.Join(taken, ", "))
		}
		return fmt.Sprintf("%d to %d are free", u.port, u.port+portHealth), nil
	}})
}
