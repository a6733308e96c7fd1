package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"quittance/ingress/web"
)

func TestClient(t *testing.T) {
	t.Parallel()
	proxies, err := web.ParseProxies("10.0.0.0/24, 192.0.2.7,2001:db8::/64,")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		remote    string
		forwarded []string
		want      string
		uncertain bool
	}{
		{remote: "203.0.113.9:4000", want: "203.0.113.9"},
		{remote: "[::ffff:203.0.113.9]:4000", want: "203.0.113.9"},
		{remote: "[fe80::1%eth0]:4000", want: "fe80::1"},
		// Only a proxy may say for whom it calls.
		{remote: "203.0.113.9:4000", forwarded: []string{"198.51.100.1"}, want: "203.0.113.9", uncertain: true},
		{remote: "10.0.0.3:4000", forwarded: []string{"198.51.100.1"}, want: "198.51.100.1"},
		{remote: "[::ffff:10.0.0.3]:4000", forwarded: []string{"::ffff:198.51.100.1"}, want: "198.51.100.1"},
		{remote: "[2001:db8::5]:4000", forwarded: []string{"[2001:db9::1]:5000"}, want: "2001:db9::1"},
		// The caller's own claims are to the left of what the proxies saw.
		{remote: "10.0.0.3:4000", forwarded: []string{"41.202.1.1, 198.51.100.1"}, want: "198.51.100.1"},
		{remote: "10.0.0.3:4000", forwarded: []string{"41.202.1.1", "198.51.100.1:6000, 10.0.0.9, 192.0.2.7"}, want: "198.51.100.1"},
		{remote: "10.0.0.3:4000", forwarded: []string{"nonsense, 198.51.100.1"}, want: "198.51.100.1"},
		{remote: "10.0.0.3:4000", forwarded: []string{"198.51.100.1, nonsense"}, want: "10.0.0.3", uncertain: true},
		{remote: "10.0.0.3:4000", forwarded: []string{"198.51.100.1, 192.0.2.7, unknown"}, want: "10.0.0.3", uncertain: true},
		{remote: "10.0.0.3:4000", want: "10.0.0.3", uncertain: true},
		{remote: "10.0.0.3:4000", forwarded: []string{"10.0.0.4"}, want: "10.0.0.4"},
	} {
		r := httptest.NewRequest(http.MethodPost, "/callbacks", http.NoBody)
		r.RemoteAddr = c.remote
		r.Header["X-Forwarded-For"] = c.forwarded
		if got, certain := proxies.Client(r); got.String() != c.want || certain == c.uncertain {
			t.Errorf("%s %q: %s, certain %v; want %s, %v", c.remote, c.forwarded, got, certain, c.want, !c.uncertain)
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/callbacks", http.NoBody)
	r.RemoteAddr = "203.0.113.9:4000"
	r.Header.Set("Forwarded", "for=41.202.1.1")
	if _, certain := proxies.Client(r); certain {
		t.Error("an unknown proxy's address is certain")
	}
}

func TestParseProxies(t *testing.T) {
	t.Parallel()
	if p, err := web.ParseProxies(""); err != nil || p != nil {
		t.Errorf("none: %v, %v", p, err)
	}
	for _, list := range []string{"0.0.0.0/0", "10.0.0.0/24,::/0", "10.0.0.1/24", "proxy.example", "10.0.0.0/24;10.0.1.0/24", "::ffff:10.0.0.0/120"} {
		if _, err := web.ParseProxies(list); err == nil || !strings.Contains(err.Error(), "must") {
			t.Errorf("%s: %v", list, err)
		}
	}
}
