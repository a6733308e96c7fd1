package delivery

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/notify"
	"quittance/internal/provider"
	"quittance/internal/provider/all"
)

// reportingProviders returns the names of the providers that report on messages.
func reportingProviders() (names []string) {
	for _, p := range all.Providers() {
		if p.Reports != nil {
			names = append(names, p.Name)
		}
	}
	return names
}

func reportURL() cli.Command {
	var callbacks string
	return cli.Command{
		Use: "report-url PROVIDER", Short: "Print the address for the delivery reports of a provider of SMS that takes one address for all messages", JSON: "it",
		Examples: []string{"deliveries report-url mtnsms --callback-url https://pay.example"},
		Missing:  "say of which provider: {usage}; one of " + strings.Join(reportingProviders(), ", "), Valid: reportingProviders(),
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&callbacks, "callback-url", "", "URL at which providers reach /callbacks, as that of the ingress")
		},
		Check: func(m *cli.Meta) error {
			switch {
			case !slices.Contains(reportingProviders(), m.Args[0]):
				return cli.Usage("no provider of this name reports on messages: %s", strings.Join(reportingProviders(), ", "))
			case callbacks == "":
				return cli.Usage("--callback-url: give the URL at which providers reach /callbacks, such as https://pay.example")
			}
			return nil
		},
		Operate: func(_ context.Context, m *cli.Meta) error {
			keys, err := m.OpenKeys()
			if err != nil {
				return err
			}
			address := notify.ReportURL(keys, callbacks, m.Args[0], "")
			return m.Show(render.Object{"provider", m.Args[0], "url", address}, func(p *render.Page) {
				p.Say("%s", address)
				p.Say("\nGive it to the provider only: whoever knows it can report on any message. It is valid until its master key leaves QUITTANCE_MASTER_KEYS or is marked open.")
			})
		},
	}
}

func liftSuppressions() cli.Command {
	var channel, since, until string
	var dryRun bool
	return cli.Command{
		Use: "lift-suppressions", Short: "Let messages reach again the addresses that a provider wrongly called unknown in a span of time", JSON: "the number of addresses",
		Examples: []string{"deliveries lift-suppressions --channel email --since 2026-11-29T09:00:00Z --until 2026-11-29T10:00:00Z --dry-run"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			cli.TakesChoice(f, &channel, "channel", render.Mapped(provider.Channels, func(c provider.Channel) string { return string(c) }), "")
			f.StringVar(&since, "since", "", "addresses that were suppressed at or after this time: "+cli.MomentForms)
			f.StringVar(&until, "until", "", "addresses that were suppressed before this time, at most a day later; now when not given")
			f.BoolVar(&dryRun, "dry-run", false, "only print how many addresses there are")
		},
		Check: func(*cli.Meta) error {
			if channel == "" {
				return cli.Usage("--channel: say of which channel the provider is")
			}
			return nil
		},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			from, to, err := cli.Span(since, until, m.Now)
			if err != nil {
				return err
			}
			if to.Sub(from) > notify.LongestLift {
				return cli.Usage("--since: at most a day before --until")
			}
			addresses, of := notify.NewAddresses(m.Pool), provider.Channel(channel)
			said, n := "Not suppressed any more: %s of %s, since %s to %s.", int64(0)
			if dryRun {
				said = "Suppressed: %s of %s, from %s to %s. Nothing was changed."
				n, err = addresses.CountSuppressed(ctx, of, from, to)
			} else {
				n, err = addresses.Lift(ctx, m.By, of, from, to, m.Now)
			}
			if err != nil {
				return err
			}
			return m.Show(render.Object{"channel", channel, "since", from, "until", to, "addresses", n, "lifted", !dryRun}, func(p *render.Page) {
				p.Say(said, render.Counted(n, "address"), channel, render.Moment(from), render.Moment(to))
			})
		},
	}
}
