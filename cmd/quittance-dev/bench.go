package main

import (
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"quittance/cmd/internal/cli"
	"quittance/dev/bench"
)

func benchmark() *cobra.Command {
	s, b := settings(), &bench.Installation{}
	cmd := cli.Command("bench", "Measure creations per second on real Kafka, beside the raw echo of the same broker", func(cmd *cobra.Command, _ []string) (err error) {
		if b.Log, err = s.Logger(cmd.ErrOrStderr()); err != nil {
			return err
		}
		b.Environment = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "QUITTANCE_") })
		return b.Run(cmd.Context(), cmd.OutOrStdout())
	})
	cmd.Example = name + " bench --seconds 2 --rounds 1"
	f := cmd.Flags()
	f.StringVar(&b.Broker, "broker", "", "host:port of a Kafka that runs, with the settings of dev/stack; one is started when empty")
	f.Float64Var(&b.Seconds, "seconds", 6, "length of each measurement, after a warm-up of one second")
	f.IntVar(&b.Rounds, "rounds", 3, "how often everything is measured; medians are printed")
	f.IntVar(&b.Applications, "applications", 64, "how many applications share the creations")
	f.StringVar(&b.Profiles, "profile", "", "folder for CPU and allocation profiles of ingress and processor under 512 clients")
	f.StringVar(&s.LogLevel, "log", "info", "log level: debug, info, warn, error")
	return cmd
}
