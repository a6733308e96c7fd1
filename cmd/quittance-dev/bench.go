package main

import (
	"context"
	"errors"
	"strconv"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/dev/bench"
	"quittance/dev/bench/delivery"
	"quittance/dev/bench/letters"
	"quittance/dev/bench/live"
	"quittance/dev/bench/matching"
	"quittance/dev/bench/office"
	"quittance/dev/bench/reports"
	"quittance/dev/bench/salaries"
)

// benchmark is the command `bench`. Without a subcommand it does the same as `bench
// create`.
func benchmark() cli.Command {
	cmd := benchCreate("bench", "Measure an installation of this program: creations, or what a subcommand names", "bench --seconds 2 --rounds 1")
	cmd.Commands = []cli.Command{
		benchCreate("create", "Measure creations per second, beside the raw echo of the same broker",
			"bench create", "bench create --broker 127.0.0.1:9092 --seconds 2 --rounds 1"),
		benchQuota(), benchDelivery(), benchLive(), benchLetters(), benchReports(), benchMatch(), benchDisburse(), benchOffice(),
	}
	return cmd
}

func benchCreate(use, short string, examples ...string) cli.Command {
	b := &bench.Create{}
	return benchCommand(use, short, examples, &b.Broker, func(f *pflag.FlagSet) {
		f.Float64Var(&b.Seconds, "seconds", 6, "length of each measurement, after a warm-up of one second")
		countVar(f, &b.Rounds, "rounds", 3, "how many times everything is measured; medians are printed")
		countVar(f, &b.Applications, "applications", 64, "how many applications share the creations")
		f.StringVar(&b.Profiles, "profile", "", "folder for CPU and allocation profiles of ingress and processor under 512 clients")
	}, func(ctx context.Context, m *cli.Meta) error {
		b.Log = m.Log
		return b.Run(ctx, m.Out)
	})
}

func benchQuota() cli.Command {
	b := &bench.Quota{}
	return benchCommand("quota", "Count the creations of flooding applications at four ingresses, and what they cost the others",
		[]string{"bench quota"}, &b.Broker, nil, func(ctx context.Context, m *cli.Meta) error {
			b.Log = m.Log
			return b.Run(ctx, m.Out)
		})
}

func benchDelivery() cli.Command {
	b := delivery.Config{}
	return benchCommand("delivery", "Measure deliveries, also beside faulty endpoints, and count what kills and outages lose (an hour)",
		[]string{"bench delivery", "bench delivery --scenario single,fanout --runs 1"}, &b.Broker, func(f *pflag.FlagSet) {
			f.Func("scenario", "`names` of the scenarios to run, separated by commas; all when empty:"+delivery.Help(), func(text string) (err error) {
				b.Scenarios, err = delivery.Parse(text)
				return err
			})
			countVar(f, &b.Runs, "runs", 3, "runs of each scenario; medians are judged")
		}, func(ctx context.Context, m *cli.Meta) error {
			b.Log = m.Log
			return delivery.Run(ctx, b, m.Out)
		})
}

func benchLive() cli.Command {
	b := live.Config{}
	return benchCommand("live", "Measure how soon citizens who wait at their pages are told that their payment is made",
		[]string{"bench live", "bench live --citizens 100 --broker kafka"}, nil, func(f *pflag.FlagSet) {
			f.StringVar(&b.Broker, "broker", brokerEmbedded, "broker of the installation: embedded, kafka, or host:port of a running Kafka")
			f.StringVar(&b.Registry, "registry", "deploy/dev/registry.yaml", "demo registry file")
			countVar(f, &b.Citizens, "citizens", 500, "citizens who wait at the same time")
		}, func(ctx context.Context, m *cli.Meta) error {
			b.Log = m.Log
			return live.Run(ctx, b, m.Out)
		})
}

func benchLetters() cli.Command {
	b := letters.Config{}
	return benchCommand("letters", "Measure how soon the receipt of a payment is at the payer's mail server",
		[]string{"bench letters", "bench letters --broker kafka --rate 50"}, nil, func(f *pflag.FlagSet) {
			f.StringVar(&b.Broker, "broker", brokerKafka, "broker of the installation: embedded, kafka, or host:port of a running Kafka")
			f.StringVar(&b.Registry, "registry", "deploy/dev/registry.yaml", "demo registry file")
			countVar(f, &b.Rate, "rate", 50, "payments a second")
			countVar(f, &b.Warmup, "warmup", 60, "seconds of payments before those that are measured")
			countVar(f, &b.Seconds, "seconds", 60, "seconds of payments that are measured")
		}, func(ctx context.Context, m *cli.Meta) error {
			b.Log = m.Log
			return letters.Run(ctx, b, m.Out)
		})
}

func benchReports() cli.Command {
	b := reports.Config{}
	return benchCommand("reports", "Measure what reports on receipts cost, on rows that it makes in ClickHouse's engine",
		[]string{"bench reports", "bench reports --rows 1000000"}, nil, func(f *pflag.FlagSet) {
			countVar(f, &b.Rows, "rows", 100_000_000, "rows of receipt_rows, spread over three years; 10^8 need 16 GB of disk and up to an hour")
			f.StringVar(&b.Folder, "folder", "", "folder for the data, which must not exist; a temporary one when empty")
		}, func(ctx context.Context, m *cli.Meta) error {
			b.Log = m.Log
			return reports.Run(ctx, b, m.Out)
		})
}

func benchMatch() cli.Command {
	b := matching.Config{Turns: 3}
	return benchCommand("match", "Measure runs of `sink match`: a large day, and a day after a short and a long history",
		[]string{"bench match", "bench match --lines 1000 --days 30 --reach 15"}, &b.Broker, func(f *pflag.FlagSet) {
			countVar(f, &b.Lines, "lines", 1_000_000, "lines of the large day, and as many payments")
			countVar(f, &b.Daily, "daily", 100_000, "lines of each day of the history and of the day after it")
			countVar(f, &b.Days, "days", 90, "days of the long history")
			countVar(f, &b.Reach, "reach", 30, "how many days back the payments are that lines name a second time")
		}, func(ctx context.Context, m *cli.Meta) error {
			b.Log = m.Log
			return matching.Run(ctx, b, m.Out)
		})
}

func benchDisburse() cli.Command {
	b := salaries.Config{}
	return benchCommand("disburse", "Measure how an agency pays many people: imports, payments, memory, and what others notice meanwhile",
		[]string{"bench disburse", "bench disburse --lines 100000"}, &b.Broker, func(f *pflag.FlagSet) {
			countVar(f, &b.Lines, "lines", 10_000, "lines of each of the two batches, 100 to 100,000")
			f.StringVar(&b.Profiles, "profile", "", "existing folder for CPU profiles of the roles while lines go out")
		}, func(ctx context.Context, m *cli.Meta) error {
			b.Log = m.Log
			return salaries.Run(ctx, b, m.Out)
		})
}

func benchOffice() cli.Command {
	b := office.Config{}
	return benchCommand("office", "Measure the pages of staff with many sessions, and what integrators notice while people look at them",
		[]string{"bench office", "bench office --rows 10000000"}, &b.Broker, func(f *pflag.FlagSet) {
			countVar(f, &b.Rows, "rows", 1_000_000, "sessions in Postgres; 10^7 need 40 GB of disk and half an hour")
			countVar(f, &b.Viewers, "viewers", 50, "people who look at pages at the same time")
			countVar(f, &b.Seconds, "seconds", 60, "how long they look, and how long creations are measured before")
			f.StringVar(&b.Profiles, "profile", "", "existing folder for a CPU profile of office while people look")
		}, func(ctx context.Context, m *cli.Meta) error {
			b.Log = m.Log
			return office.Run(ctx, b, m.Out)
		})
}

// benchCommand is a benchmark with the flags of all benchmarks and its own. It has the
// usual --broker when broker is not nil.
func benchCommand(use, short string, examples []string, broker *string, own func(*pflag.FlagSet), run func(context.Context, *cli.Meta) error) cli.Command {
	return cli.Command{
		Use: use, Short: short, Examples: examples, Connection: cli.ConnectionNone,
		Flags: func(f *pflag.FlagSet, m *cli.Meta) {
			if broker != nil {
				f.StringVar(broker, "broker", "", "host:port of a running Kafka with the settings of dev/stack; the benchmark starts one when empty")
			}
			f.StringVar(&m.LogLevel, "log", "info", "log level: debug, info, warn, error")
			if own != nil {
				own(f)
			}
		},
		Run: run,
	}
}

// count is the value of a flag for a number of 1 or more.
type count struct{ to *int }

// countVar declares a flag for a number of 1 or more.
func countVar(f *pflag.FlagSet, to *int, name string, value int, usage string) {
	*to = value
	f.Var(count{to}, name, usage)
}

func (c count) String() string { return strconv.Itoa(*c.to) }
func (c count) Type() string   { return "number" }

func (c count) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return errors.New("must be a number of 1 or more")
	}
	*c.to = n
	return nil
}
