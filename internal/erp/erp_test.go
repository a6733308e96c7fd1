package erp_test

import (
	"net/http"
	"net/netip"
	"testing"

	"quittance/internal/call"
	"quittance/internal/erp"
	"quittance/internal/registry"
	"quittance/internal/secret"
	deliverytest "quittance/test/deliveries"
)

// A confirmation is posted with each of the three kinds of credentials. Without a usable
// credential it is not posted.
func TestConfirm(t *testing.T) {
	t.Parallel()
	r := deliverytest.NewReceiver(t, "Idempotency-Key")
	c := erp.New(erp.Config{Loopback: true})
	settings := registry.ERPSettings{AgencyID: "a", Live: true, BaseURL: r.URL + "/erp/", Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	for _, with := range []struct {
		auth         registry.ERPAuth
		header, want string
	}{
		{registry.ERPAuth{Type: registry.AuthBearer, Secret: secret.NewText("s3cret")}, "Authorization", "Bearer s3cret"},
		{registry.ERPAuth{Type: registry.AuthAPIKey, Name: "X-API-Key", Secret: secret.NewText("s3cret")}, "X-Api-Key", "s3cret"},
		{registry.ERPAuth{Type: registry.AuthBasic, Name: "u", Secret: secret.NewText("s3cret")}, "Authorization", "Basic dTpzM2NyZXQ="},
	} {
		settings.Auth = with.auth
		res := c.Confirm(t.Context(), settings, "tx-1", []byte(`{"x":1}`))
		got := r.Got()[len(r.Got())-1]
		if !res.OK() || got.Header.Get(with.header) != with.want || got.Path != "/erp/payment-confirmations" || got.EventID != "tx-1" || got.Body != `{"x":1}` {
			t.Errorf("%s: %+v, %+v", with.auth.Type, res, got)
		}
	}
	calls := len(r.Got())
	locked := settings
	locked.Locked = true
	settings.Auth = registry.ERPAuth{}
	for name, s := range map[string]registry.ERPSettings{"no credentials": settings, "locked ones": locked} {
		if res := c.Confirm(t.Context(), s, "tx-1", nil); res.Fault != call.FaultUnusable || len(r.Got()) != calls {
			t.Errorf("%s: %+v, %d calls", name, res, len(r.Got())-calls)
		}
	}
}

// Each agency's ERP has its own networks, which change with its settings.
func TestNetworks(t *testing.T) {
	t.Parallel()
	r := deliverytest.NewReceiver(t, "Idempotency-Key")
	c := erp.New(erp.Config{Loopback: true})
	settings := func(agency, network string) registry.ERPSettings {
		return registry.ERPSettings{
			AgencyID: agency, BaseURL: "https://10.1.2.3", Networks: []netip.Prefix{netip.MustParsePrefix(network)},
			Auth: registry.ERPAuth{Type: registry.AuthBearer, Secret: secret.NewText("s3cret")},
		}
	}
	for _, s := range []registry.ERPSettings{settings("a", "127.0.0.0/8"), settings("a", "10.9.0.0/16"), settings("b", "192.168.0.0/16")} {
		if res := c.Health(t.Context(), s); res.Fault != call.FaultAddress {
			t.Errorf("%v: %+v", s.Networks, res)
		}
	}
	up := settings("a", "127.0.0.0/8")
	up.BaseURL = r.URL
	if res := c.Health(t.Context(), up); res.Status != http.StatusOK {
		t.Errorf("its own network: %+v", res)
	}
}
