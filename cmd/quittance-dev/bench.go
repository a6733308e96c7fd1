package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"quittance/cmd/internal/cli"
	"quittance/dev/bench"
)

// benchmark is `bench`, which measures creations as `bench create` does.
func benchmark() *cobra.Command {
	cmd := benchCreate("bench", "Measure an installation of this program, on real Kafka: creations, or what a subcommand names")
	cmd.Example = name + " bench --seconds 2 --rounds 1"
	cmd.AddCommand(
		benchCreate("create", "Measure creations per second, beside the raw echo of the same broker"),
		benchQuota(),
	)
	return cmd
}

func benchCreate(use, short string) *cobra.Command {
	cmd, b := benchCommand(use, short, (*bench.Installation).Run)
	f := cmd.Flags()
	f.Float64Var(&b.Seconds, "seconds", 6, "length of each measurement, after a warm-up of one second")
	f.IntVar(&b.Rounds, "rounds", 3, "how often everything is measured; medians are printed")
	f.IntVar(&b.Applications, "applications", 64, "how many applications share the creations")
	f.StringVar(&b.Profiles, "profile", "", "folder for CPU and allocation profiles of ingress and processor under 512 clients")
	return cmd
}

func benchQuota() *cobra.Command {
	cmd, _ := benchCommand("quota", "Count the creations of flooding applications at four ingresses, and what they cost the others", (*bench.Installation).Quota)
	return cmd
}

// benchCommand is a benchmark with the flags that all have.
func benchCommand(use, short string, run func(*bench.Installation, context.Context, io.Writer) error) (*cobra.Command, *bench.Installation) {
	s, b := settings(), &bench.Installation{}
	cmd := cli.Command(use, short, func(cmd *cobra.Command, _ []string) (err error) {
		if b.Log, err = s.Logger(cmd.ErrOrStderr()); err != nil {
			return err
		}
		return run(b, cmd.Context(), cmd.OutOrStdout())
	})
	cmd.Example = name + " bench " + use
	f := cmd.Flags()
	f.StringVar(&b.Broker, "broker", "", "host:port of a Kafka that runs, with the settings of dev/stack; one is started when empty")
	f.StringVar(&s.LogLevel, "log", "info", "log level: debug, info, warn, error")
	return cmd, b
}
