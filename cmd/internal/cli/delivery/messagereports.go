package delivery

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/notify"
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
