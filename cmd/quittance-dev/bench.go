package main

import (
	"context"
	"io"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/dev/bench"
)

// benchmark is the command `bench`. Without a subcommand it does the same as `bench
// create`.
func benchmark() cli.Command {
	cmd := benchCreate("bench", "Measure an installation of this program on real Kafka: creations, or what a subcommand names", "bench --seconds 2 --rounds 1")
	cmd.Commands = []cli.Command{
		benchCreate("create", "Measure creations per second, beside the raw echo of the same broker", "bench create"),
		benchCommand("quota", "Count the creations of flooding applications at four ingresses, and what they cost the others", "bench quota",
			&bench.Installation{}, (*bench.Installation).Quota, func(*pflag.FlagSet) {}),
	}
	return cmd
}

func benchCreate(use, short, example string) cli.Command {
	b := &bench.Installation{}
	return benchCommand(use, short, example, b, (*bench.Installation).Run, func(f *pflag.FlagSet) {
		f.Float64Var(&b.Seconds, "seconds", 6, "length of each measurement, after a warm-up of one second")
		f.IntVar(&b.Rounds, "rounds", 3, "how many times everything is measured; medians are printed")
		f.IntVar(&b.Applications, "applications", 64, "how many applications share the creations")
		f.StringVar(&b.Profiles, "profile", "", "folder for CPU and allocation profiles of ingress and processor under 512 clients")
	})
}

// benchCommand makes a benchmark with the common flags and its own.
func benchCommand(use, short, example string, b *bench.Installation, run func(*bench.Installation, context.Context, io.Writer) error, own func(*pflag.FlagSet)) cli.Command {
	return cli.Command{
		Use: use, Short: short, Examples: []string{example}, Connection: cli.ConnectionNone,
		Flags: func(f *pflag.FlagSet, m *cli.Meta) {
			f.StringVar(&b.Broker, "broker", "", "host:port of a running Kafka with the settings of dev/stack; one is started when empty")
			f.StringVar(&m.LogLevel, "log", "info", "log level: debug, info, warn, error")
			own(f)
		},
		Run: func(ctx context.Context, m *cli.Meta) error {
			b.Log = m.Log
			return run(b, ctx, m.Out)
		},
	}
}
