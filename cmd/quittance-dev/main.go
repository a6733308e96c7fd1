// Command quittance-dev is the service with the options of a developer. It has every
// command of quittance; its listen reads the broker. Its flag --port N stands for the addresses of an `up` on that
// port. It also has commands that run the service on one machine: up, simulate, listen
// and bench. See README.md.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"quittance/cmd/internal/cli"
	commands "quittance/cmd/internal/program"
	"quittance/cmd/internal/roles"
	"quittance/dev/clock"
	"quittance/internal/postgres"
)

const name = "quittance-dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := program().Run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// options are what a developer's installation allows.
func options() roles.Options {
	return roles.Options{
		Loopback: true, PlainSecrets: true, Simulators: true, Profiles: true,
		Clock: func(ctx context.Context, pool *postgres.Pool, log *slog.Logger) (roles.Clock, error) {
			return clock.Follow(ctx, pool, log)
		},
	}
}

func program() cli.Program {
	return commands.New(cli.Program{
		Name: name, Options: options(), AddressHint: addressHint, Addresses: portFlag,
		Groups: []cli.Group{{Title: "To develop with it:", Commands: []cli.Command{up(), simulate(), listen(), benchmark()}}},
	}, doctorUp())
}
