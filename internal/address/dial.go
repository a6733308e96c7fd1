package address

import (
	"net/netip"
	"slices"
	"syscall"

	"code.dny.dev/ssrf"
)

// Control is for a net.Dialer: it refuses, with an *Error, what the rule does not
// allow of the addresses that a name has resolved to. Of a name with several the
// others are still tried; one that is refused is never dialled.
func (r Rule) Control() func(network, address string, c syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		to, err := parse(address)
		if err != nil {
			return err
		}
		if len(r.Networks) > 0 {
			return r.inNetworks(to.Addr())
		}
		if !r.Backend && to.Port() != 443 {
			return refuse(ReasonPort, "must use port 443: remove the port")
		}
		return public(to.Addr())
	}
}

// ControlLoopback is Control for calls to the two loopback addresses of developer
// mode, and for nothing else.
func ControlLoopback(_, address string, _ syscall.RawConn) error {
	to, err := parse(address)
	if err != nil {
		return err
	}
	if to.Addr() != netip.AddrFrom4([4]byte{127, 0, 0, 1}) && to.Addr() != netip.IPv6Loopback() {
		return refuse(ReasonOutsideNetworks, "must be this machine itself")
	}
	return nil
}

func parse(address string) (netip.AddrPort, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return to, refuse(ReasonInvalidName, "has resolved to something that is no IP address")
	}
	return netip.AddrPortFrom(to.Addr().Unmap(), to.Port()), nil
}

func (r Rule) inNetworks(ip netip.Addr) error {
	if slices.Contains(metadata, ip.WithZone("")) {
		return isMetadata()
	}
	if !slices.ContainsFunc(r.Networks, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return refuse(ReasonOutsideNetworks, "is in none of its networks: add the network to the list, or correct what the name resolves to")
	}
	return nil
}

// metadata are the services that answer with secrets of the machine that asks:
// AWS, Google, Azure and others; AWS for containers; Alibaba; Oracle; Azure's
// host, whose address is a public one; and theirs in IPv6.
var metadata = []netip.Addr{
	netip.MustParseAddr("169.254.169.254"), netip.MustParseAddr("169.254.170.2"), netip.MustParseAddr("169.254.170.23"),
	netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("192.0.0.192"), netip.MustParseAddr("168.63.129.16"),
	netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd00:ec2::23"), netip.MustParseAddr("fd20:ce::254"),
}

// translated are IPv6 networks whose addresses hold an IPv4 one that a gateway,
// or this machine, would call instead.
var translated = []netip.Prefix{
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), // NAT64 (RFC 6052, 8215)
	netip.MustParsePrefix("2002::/16"),       // 6to4 (RFC 3056)
	netip.MustParsePrefix("2001::/32"),       // Teredo (RFC 4380)
	netip.MustParsePrefix("::ffff:0:0:0/96"), // SIIT (RFC 2765)
	netip.MustParsePrefix("::/96"),           // compatible (RFC 4291), but for :: and ::1, which come first
}

var (
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8") // Linux takes 0.0.0.0 for itself
	shared      = netip.MustParsePrefix("100.64.0.0/10")
	special     = ssrf.New()
)

// public refuses all but public addresses. What is refused is ssrf's affair and
// two lists of ours; which reason it gets is for people.
func public(ip netip.Addr) error {
	ip = ip.WithZone("")
	switch {
	case slices.Contains(metadata, ip):
		return isMetadata()
	case ip.IsLoopback() || ip.IsUnspecified() || thisNetwork.Contains(ip):
		return refuse(ReasonLoopback, "resolves to the machine that calls it: its name must resolve to public addresses")
	case ip.IsPrivate() || shared.Contains(ip):
		return refuse(ReasonPrivate, "resolves to a private address: its name must resolve to public addresses")
	case ip.IsLinkLocalUnicast():
		return refuse(ReasonLinkLocal, "resolves to a link-local address: its name must resolve to public addresses")
	case slices.ContainsFunc(translated, func(p netip.Prefix) bool { return p.Contains(ip) }):
		return refuse(ReasonTranslated, "resolves to an IPv6 address that stands for an IPv4 one: publish the IPv4 address itself")
	case special.SafeAddr(ip) != nil:
		return refuse(ReasonReserved, "resolves to a reserved address: its name must resolve to public addresses")
	}
	return nil
}

func isMetadata() *Error {
	return refuse(ReasonMetadata, "resolves to a cloud's metadata service, which is never called")
}
