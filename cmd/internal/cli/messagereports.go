package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"quittance/internal/deliveries"
	"quittance/internal/notify"
	"quittance/internal/provider/all"
)

// reports are what providers report of the messages of deliveries, by the messages' ids.
type reports map[string]notify.Reported

// reported reads the reports on the messages among deliveries.
func (m *Meta) reported(ctx context.Context, list ...deliveries.Delivery) (reports, error) {
	var ids []string
	for _, d := range list {
		if d.Kind == notify.DeliveryKind {
			ids = append(ids, d.EventID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	return notify.NewReports(m.pool).Of(ctx, ids)
}

// json returns the member of a delivery's JSON; none without a report.
func (r reports) json(d deliveries.Delivery) object {
	one, ok := r[d.EventID]
	if !ok {
		return nil
	}
	return object{"report", object{"state", string(one.State), "reason?", one.Reason, "sent_at", one.SentAt, "reported_at", one.At}}
}

// text returns the state, and the provider's code; empty without a report.
func (r reports) text(d deliveries.Delivery) string {
	one, ok := r[d.EventID]
	switch {
	case !ok:
		return ""
	case one.Reason != "":
		return string(one.State) + ":" + one.Reason
	}
	return string(one.State)
}

// textWithTime returns the text with the time of the report.
func (r reports) textWithTime(d deliveries.Delivery) string {
	if at := r[d.EventID].At; !at.IsZero() {
		return r.text(d) + ", " + moment(at)
	}
	return r.text(d)
}

// reportingProviders returns the names of the providers that report on messages.
func reportingProviders() (names []string) {
	for _, p := range all.Providers() {
		if p.Reports != nil {
			names = append(names, p.Name)
		}
	}
	return names
}

func reportURL() Command {
	var callbacks string
	return Command{
		Use: "report-url PROVIDER", Short: "Print the address for the delivery reports of a provider of SMS that takes one address for all messages", JSON: "it",
		Examples: []string{"deliveries report-url mtnsms --callback-url https://pay.example"},
		Missing:  "say of which provider: {usage}; one of " + strings.Join(reportingProviders(), ", "), Valid: reportingProviders(),
		Flags: func(f *pflag.FlagSet, _ *Meta) {
			f.StringVar(&callbacks, "callback-url", "", "URL at which providers reach /callbacks, as that of the ingress")
		},
		Check: func(m *Meta) error {
			switch {
			case !slices.Contains(reportingProviders(), m.args[0]):
				return usage("no provider of this name reports on messages: %s", strings.Join(reportingProviders(), ", "))
			case callbacks == "":
				return usage("--callback-url: give the URL at which providers reach /callbacks, such as https://pay.example")
			}
			return nil
		},
		Operate: func(_ context.Context, m *Meta) error {
			keys, err := m.OpenKeys()
			if err != nil {
				return err
			}
			address := notify.ReportURL(keys, callbacks, m.args[0], "")
			return m.show(object{"provider", m.args[0], "url", address}, func(p *page) {
				p.say("%s", address)
				p.say("\nGive it to the provider only: whoever knows it can report on any message. It is valid until its master key leaves QUITTANCE_MASTER_KEYS or is marked open.")
			})
		},
	}
}
