// Package network says by which networks limits count a client. Every limit that counts
// clients asks it, so that all of them know the same subscribers: docs/design/limits.md.
package network

import "net/netip"

// Width is how wide a network is, from the narrow to the wide.
type Width int

// The widths. A limit counts a client in a network of each.
const (
	// Subscriber is an IPv4 address, which many phones may share, or a /64 of IPv6: one
	// customer of a provider has at least that many addresses.
	Subscriber Width = iota
	// Site is a /24 of IPv4 or a /48 of IPv6, which a customer may have for the asking.
	Site
	// Provider is a /16 of IPv4 or a /32 of IPv6, the least that a registry gives to a provider.
	Provider
	// Widths is the number of widths.
	Widths
)

// bits are the lengths of the prefixes of IPv4 and IPv6, by width.
var bits = [Widths]struct{ v4, v6 int }{Subscriber: {32, 64}, Site: {24, 48}, Provider: {16, 32}}

// Where a limit is small, a site counts as SiteClients clients, and a provider's network as
// ProviderClients.
const (
	SiteClients     = 4
	ProviderClients = 16
)

// Multiples are the numbers of clients as which networks count, by width.
var Multiples = [Widths]int{Subscriber: 1, Site: SiteClients, Provider: ProviderClients}

// Client returns the name of the narrowest network of an address: an IPv4 address, or a /64 of
// IPv6. It is empty for an address that is not valid.
func Client(addr netip.Addr) string { return name(addr.Unmap().WithZone(""), Subscriber) }

// Networks are the names of the networks of a client, by width.
type Networks [Widths]string

// Of returns the networks of a client, which is what Client has returned. A client that names no
// network is alone in networks of its own.
func Of(client string) (n Networks) {
	addr := address(client)
	for w := range n {
		if n[w] = name(addr, Width(w)); !addr.IsValid() {
			n[w] = client
		}
	}
	return n
}

// Shared reports whether many subscribers may be behind a client: providers of mobile phones
// translate the addresses of IPv4, and not those of IPv6.
func Shared(client string) bool { return !address(client).Is6() }

// Names returns the networks as a slice, from the narrow to the wide.
func (n Networks) Names() []string { return n[:] }

func address(client string) netip.Addr {
	if p, err := netip.ParsePrefix(client); err == nil {
		return p.Addr()
	}
	addr, err := netip.ParseAddr(client)
	if err != nil {
		return netip.Addr{}
	}
	return addr
}

func name(addr netip.Addr, w Width) string {
	length := bits[w].v6
	switch {
	case !addr.IsValid():
		return ""
	case addr.Is4() && w == Subscriber:
		return addr.String()
	case addr.Is4():
		length = bits[w].v4
	}
	return netip.PrefixFrom(addr, length).Masked().String()
}
