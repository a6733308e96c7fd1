package web

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the networks of the reverse proxies in front of the service. They set the
// header X-Forwarded-For.
type Proxies []netip.Prefix

// ParseProxies reads a list of addresses and networks, separated by commas.
func ParseProxies(list string) (Proxies, error) {
	var out Proxies
	for text := range strings.SplitSeq(list, ",") {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		network, err := netip.ParsePrefix(text)
		if address, single := netip.ParseAddr(text); single == nil {
			network, err = netip.PrefixFrom(address.Unmap().WithZone(""), address.Unmap().BitLen()), nil
		}
		if err != nil || network != network.Masked() || network.Addr().Is4In6() {
			return nil, fmt.Errorf("%q: must be an address such as 10.0.0.5 or a network such as 10.0.0.0/24, without bits beyond its length", text)
		}
		if network.Bits() == 0 {
			return nil, fmt.Errorf("%q: must not be all addresses, because any caller could then choose the address that it seems to have", text)
		}
		out = append(out, network)
	}
	return out, nil
}

// trusts reports whether an address is a proxy's.
func (p Proxies) trusts(a netip.Addr) bool {
	return slices.ContainsFunc(p, func(n netip.Prefix) bool { return n.Contains(a) })
}

// Client returns the address of the caller: that of the connection or, if it comes from a
// proxy, the last address in X-Forwarded-For that is no proxy's. Everything to the left of
// it is the caller's own claim. IPv4 addresses in IPv6 notation become IPv4 addresses.
//
// certain is false when the address may be that of a proxy which p does not name: the
// connection comes from elsewhere and has a header of proxies, or a proxy names no address.
func (p Proxies) Client(r *http.Request) (address netip.Addr, certain bool) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}, false
	}
	address = plain(peer.Addr())
	forwarded := r.Header.Values("X-Forwarded-For")
	if !p.trusts(address) {
		return address, len(forwarded) == 0 && r.Header.Get("Forwarded") == ""
	}
	hops := strings.Split(strings.Join(forwarded, ","), ",")
	for _, hop := range slices.Backward(hops) {
		next, ok := parseHop(strings.TrimSpace(hop))
		if !ok {
			return address, false
		}
		if address = next; !p.trusts(address) {
			return address, true
		}
	}
	return address, true
}

// parseHop reads an address with or without a port.
func parseHop(text string) (netip.Addr, bool) {
	if a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")); err == nil {
		return plain(a), true
	}
	a, err := netip.ParseAddrPort(text)
	return plain(a.Addr()), err == nil
}

func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }
