package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"quittance/cmd/internal/roles"
	"quittance/internal/connector"
	"quittance/internal/connector/all"
	"quittance/internal/registry"
)

// certificateEnds is how long before its end a client certificate is called ending.
const certificateEnds = 30 * 24 * time.Hour

// checkNotices says what operators' connectors have to be said of, and when client certificates end.
func (m examination) checkNotices(ctx context.Context) (found string, err error) {
	err = m.onRegistry(ctx, func(_ context.Context, b *roles.Base) error {
		var out []string
		for _, agency := range b.Registry.Agencies() {
			for _, live := range []bool{false, true} {
				out = append(out, notices(b, agency, live)...)
			}
		}
		if found = "none"; len(out) > 0 {
			found = strings.Join(out, "; ")
		}
		return nil
	})
	return found, err
}

// notices are those of the accounts of an agency in a mode, but for the accounts with simulators.
func notices(b *roles.Base, agency registry.Agency, live bool) (out []string) {
	add := func(operator connector.Registration, name string, account connector.Account) {
		said := operator.Notice
		if certified, ok := account.(connector.CertifiedAccount); ok {
			said += certificateOf(certified, b.Now())
		}
		if said != "" {
			out = append(out, fmt.Sprintf("%s of %s/%s: %s", name, agency.Slug, registry.Mode(live), said))
		}
	}
	for _, operator := range all.Operators().Operators {
		if operator.Collector != nil {
			if a, ok := b.Registry.CollectingAccount(agency.ID, live, operator.Operator, ""); ok && !a.Simulated {
				add(operator, operator.Collector.Account.Name, a.Account)
			}
		}
		if operator.Disburser != nil {
			if a, ok := b.Registry.PayoutAccount(agency.ID, live, operator.Disburser.Account.Name, ""); ok && !a.Simulated {
				add(operator, operator.Disburser.Account.Name, a.Account)
			}
		}
	}
	return out
}

// certificateOf says when the client certificate of an account ends.
func certificateOf(account connector.CertifiedAccount, now time.Time) string {
	cfg, err := account.TLS()
	switch {
	case err != nil:
		return "; WARNING: " + err.Error()
	case len(cfg.Certificates) == 0 || cfg.Certificates[0].Leaf == nil:
		return ""
	}
	ends := cfg.Certificates[0].Leaf.NotAfter.UTC()
	said := "its certificate ends on " + ends.Format(time.DateOnly)
	if ends.Before(now.Add(certificateEnds)) {
		said = "WARNING: " + said + ": ask the switch for another one, and seed it"
	}
	return "; " + said
}
