package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"quittance/ingress/web"
)

func TestClient(t *testing.T) {
	t.Parallel()
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for name, c := range map[string]struct {
		proxies   []netip.Prefix
		peer      string
		forwarded []string
		want      string
		uncertain bool
	}{
		"no proxy":                      {nil, "198.51.100.7:1234", nil, "198.51.100.7", false},
		"no proxy is trusted":           {nil, "10.0.0.1:1234", []string{"198.51.100.7"}, "10.0.0.1", true},
		"through a proxy":               {proxies, "10.0.0.1:1234", []string{"198.51.100.7"}, "198.51.100.7", false},
		"through two":                   {proxies, "[fd00::1]:1234", []string{"198.51.100.7, 10.0.0.9"}, "198.51.100.7", false},
		"a client that claims another":  {proxies, "10.0.0.1:1234", []string{"203.0.113.1, 198.51.100.7"}, "198.51.100.7", false},
		"in another header":             {proxies, "10.0.0.1:1234", []string{"203.0.113.1", "198.51.100.7"}, "198.51.100.7", false},
		"not through the proxy":         {proxies, "198.51.100.7:1234", []string{"203.0.113.1"}, "198.51.100.7", true},
		"the proxy names none":          {proxies, "10.0.0.1:1234", nil, "10.0.0.1", true},
		"the proxy names nonsense":      {proxies, "10.0.0.1:1234", []string{"x"}, "10.0.0.1", true},
		"IPv6 by its network":           {nil, "[2001:db8:1:2:3:4:5:6]:1234", nil, "2001:db8:1:2::/64", false},
		"IPv6 through a proxy":          {proxies, "10.0.0.1:1234", []string{"2001:db8:1:2::9"}, "2001:db8:1:2::/64", false},
		"IPv4 in IPv6":                  {nil, "[::ffff:198.51.100.7]:1234", nil, "198.51.100.7", false},
		"no address, as on a Unix path": {nil, "@", nil, "@", true},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr, r.Header["X-Forwarded-For"] = c.peer, c.forwarded
		got, certain := "", false
		var caller netip.Addr
		web.ClientAddress(c.proxies)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			got = web.Client(r)
			caller, certain = web.Caller(r)
		})).ServeHTTP(httptest.NewRecorder(), r)
		if got != c.want || certain == c.uncertain {
			t.Errorf("%s: %q, want %q; certain %v, want %v", name, got, c.want, certain, !c.uncertain)
		}
		if certain && caller.Is4() && caller.String() != c.want {
			t.Errorf("%s: caller %s, want %s", name, caller, c.want)
		}
	}
}
