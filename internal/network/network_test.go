package network_test

import (
	"net/netip"
	"testing"

	"quittance/internal/network"
)

func TestNetworks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		addr string
		want network.Networks
	}{
		{"203.0.113.7", network.Networks{"203.0.113.7", "203.0.113.0/24", "203.0.0.0/16"}},
		{"::ffff:203.0.113.7", network.Networks{"203.0.113.7", "203.0.113.0/24", "203.0.0.0/16"}},
		{"2001:db8:1:2:3::4", network.Networks{"2001:db8:1:2::/64", "2001:db8:1::/48", "2001:db8::/32"}},
		{"fe80::1%eth0", network.Networks{"fe80::/64", "fe80::/48", "fe80::/32"}},
		{"2002:cb00:7107::1", network.Networks{"2002:cb00:7107::/64", "2002:cb00:7107::/48", "2002:cb00::/32"}},
	} {
		client := network.Client(netip.MustParseAddr(c.addr))
		if got := network.Of(client); got != c.want || client != c.want[network.Subscriber] {
			t.Errorf("%s counts as %q in %q, want %q", c.addr, client, got, c.want)
		}
	}
	if got := network.Client(netip.Addr{}); got != "" {
		t.Errorf("no address is the client %q", got)
	}
	if got, want := network.Of("somebody"), (network.Networks{"somebody", "somebody", "somebody"}); got != want {
		t.Errorf("a client without an address is in %q, want %q", got, want)
	}
	if !network.Shared("203.0.113.7") || network.Shared("2001:db8::/64") {
		t.Error("many subscribers share an address of IPv4, and none a /64 of IPv6")
	}
}
