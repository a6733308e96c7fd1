package ministry

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/internal/connector/all"
	"quittance/internal/identity"
	"quittance/internal/registry"
	"quittance/internal/registryfile"
	"quittance/internal/secret"
	"quittance/test/registries"
	"quittance/test/servers"
)

// testOnly is a registry whose test offers can be paid and whose live ones cannot.
type testOnly struct{ *registry.Registry }

// HasChannel implements Registry.
func (testOnly) HasChannel(_ string, live bool, _, _ string) bool { return !live }

// An application that only offers cards can have sessions in XAF if its agency's acquirer
// of that mode is configured for XAF (docs/design/decisions.md § 7).
func TestOffersTakeTheCurrency(t *testing.T) {
	t.Parallel()
	const agency, cards, every = "018f0000-0000-7000-8000-000000000001", "018f0000-0000-7000-8000-00000000000a", "018f0000-0000-7000-8000-00000000000b"
	_, pool := servers.Database(t)
	keys := secret.GenerateKeys()
	now := func() time.Time { return time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC) }
	// configured returns the API with this test account and without a live account.
	configured := func(account string) *API {
		t.Helper()
		_, err := registryfile.Apply(t.Context(), pool, registries.Actor, fmt.Appendf(nil, `
agencies:
  - id: %s
    slug: impots
    name: Direction générale des impôts
    fees: [{channel: CARD, currency: XAF, ratio: "0.02", fixed: 10}, {channel: CARD, currency: EUR, fixed: 30}, {channel: MOBILE_MONEY, ratio: "0.01"}]
    connectors: {test: {%s}}
    applications:
      - {id: %s, name: Cartes, offers: [card]}
      - {id: %s, name: Tout, offers: [momo, card, cash_agency]}
`, agency, account, cards, every), registryfile.Options{Keys: keys, Developer: true, Operators: all.Operators(), Now: now})
		if err != nil {
			t.Fatal(err)
		}
		r, err := registry.Open(t.Context(), registry.Config{Pool: pool, Keys: keys, Log: servers.Logger(t), Now: now, Operators: all.Operators()})
		if err != nil {
			t.Fatal(err)
		}
		return &API{cfg: Config{Registry: testOnly{r}}}
	}
	// want creates a session of 1003 and checks its offers and fees.
	want := func(a *API, application string, live bool, currency, offers string) {
		t.Helper()
		app, ok := a.cfg.Registry.Application(application)
		if !ok {
			t.Fatalf("no application %s", application)
		}
		q := checkout.Session{OrderID: "A-1", Amount: 1003, Currency: currency, Mode: checkout.ModeHosted}
		s, faults := a.draft(q, app, identity.Principal{Live: live, ApplicationID: app.ID, AgencyIDs: []string{agency}}, now())
		got := ""
		for _, o := range s.Offers {
			got += fmt.Sprintf("%s %s %d, ", o.ID, o.Channel, o.Fee)
		}
		if got != offers {
			t.Errorf("%s, live %v, %s: offers %q, want %q", app.Name, live, currency, got, offers)
		}
		code := checkout.CodeOK
		if len(faults) == 1 && faults[0].Field == "currency" {
			code = faults[0].Code
		}
		wanted := checkout.CodeOK
		switch {
		case offers == "":
			wanted = checkout.CodeValidationFailed
		case live:
			wanted = checkout.CodeNoChannel
		}
		if code != wanted || wanted == checkout.CodeOK && len(faults) != 0 {
			t.Errorf("%s, live %v, %s: faults %+v, want %s", app.Name, live, currency, faults, wanted)
		}
	}
	const account = "card: {base_url: https://card.example.org, merchant: impots, secret: s"
	for _, without := range []string{"", account + "}"} {
		a := configured(without)
		want(a, cards, false, "XAF", "")
		want(a, cards, false, "EUR", "card CARD 30, ")
		want(a, every, false, "XAF", "momo MOBILE_MONEY 10, cash_agency CASH 0, ")
	}
	a := configured(account + ", xaf: true}")
	want(a, cards, false, "XAF", "card CARD 30, ") // 20.06 and 10
	want(a, cards, false, "EUR", "card CARD 30, ")
	want(a, cards, false, "XOF", "")
	want(a, every, false, "XAF", "momo MOBILE_MONEY 10, card CARD 30, cash_agency CASH 0, ")
	want(a, cards, true, "XAF", "")
	want(a, cards, true, "EUR", "card CARD 30, ") // configured or not
	want(a, every, true, "XAF", "momo MOBILE_MONEY 10, cash_agency CASH 0, ")
}

// A replay is the first answer again, also after a payment that was given back.
func TestReplayAfterAReversal(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	s := checkout.Session{ID: "chs_1", Status: checkout.StatusCompleted, CreatedAt: at, EndedAt: at, ReversedAt: at}
	out, err := (&API{}).created(checkout.Answer{Session: &s, Replayed: true}, nil)
	if err != nil || out.Body.Status != "open" || out.Body.Paid || out.Body.ReversedAt != nil {
		t.Errorf("%+v %v", out.Body, err)
	}
}

// A payment that is confirmed to an ERP has the offer of the switch only if the ERP has a word for its channel: it would refuse
// the confirmation of money that was paid.
func TestSwitchNeedsTheERPsWord(t *testing.T) {
	t.Parallel()
	const agency, application = "018f0000-0000-7000-8000-000000000001", "018f0000-0000-7000-8000-00000000000a"
	_, pool := servers.Database(t)
	keys := secret.GenerateKeys()
	now := func() time.Time { return time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC) }
	for _, c := range []struct{ channels, due, offers string }{
		{"", "", "momo switch"},
		{"", "D-1", "momo"},
		{"channels: {SWITCH: MOBILE_MONEY}, ", "D-1", "momo switch"},
		{"channels: {}, ", "D-1", "momo"},
	} {
		_, err := registryfile.Apply(t.Context(), pool, registries.Actor, fmt.Appendf(nil, `
agencies:
  - id: %s
    slug: impots
    name: Direction générale des impôts
    erp: {test: {%sbase_url: http://127.0.0.1:8081/erp/impots, networks: [127.0.0.0/8], auth: {type: bearer, token: t}}}
    applications: [{id: %s, name: Guichet, offers: [momo, switch]}]
`, agency, c.channels, application), registryfile.Options{Keys: keys, Developer: true, Operators: all.Operators(), Now: now})
		if err != nil {
			t.Fatal(err)
		}
		r, err := registry.Open(t.Context(), registry.Config{Pool: pool, Keys: keys, Log: servers.Logger(t), Now: now, Operators: all.Operators()})
		if err != nil {
			t.Fatal(err)
		}
		a := &API{cfg: Config{Registry: testOnly{r}}}
		app, _ := r.Application(application)
		q := checkout.Session{OrderID: "A-1", Amount: 1003, Currency: "XAF", Mode: checkout.ModeHosted}
		if c.due != "" {
			q.Metadata = map[string]string{checkout.MetadataERPDueRef: c.due}
		}
		s, faults := a.draft(q, app, identity.Principal{ApplicationID: app.ID, AgencyIDs: []string{agency}}, now())
		var got []string
		for _, o := range s.Offers {
			got = append(got, o.ID)
		}
		if strings.Join(got, " ") != c.offers || len(faults) != 0 {
			t.Errorf("%q, due %q: %v, %v, want %s", c.channels, c.due, got, faults, c.offers)
		}
	}
}
