package address

import (
	"net/netip"
	"slices"
	"syscall"

	"code.dny.dev/ssrf"
)

// Control is a Control function for a net.Dialer. It refuses, with an *Error, each
// resolved address that the rule does not allow, so that it is never dialled. The
// other addresses of the name are still tried.
func (r Rule) Control() func(network, address string, c syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		to, err := parse(address)
		if err != nil {
			return err
		}
		if len(r.Networks) > 0 {
			return r.inNetworks(to.Addr())
		}
		if !r.Backend && to.Port() != 443 && !(r.Plain && to.Port() == 80) {
			return refuse(ReasonPort, "must use port 443: remove the port")
		}
		return public(to.Addr())
	}
}

// ControlLoopback is a Control function that allows only the two loopback addresses
// of developer mode.
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

// CheckResolved refuses, with an *Error, addresses to which a name has resolved if the rule
// does not allow one of them. A name may resolve to others later: Control checks again.
func (r Rule) CheckResolved(addrs []netip.Addr) error {
	for _, ip := range addrs {
		check := public
		if len(r.Networks) > 0 {
			check = r.inNetworks
		}
		if err := check(ip.Unmap()); err != nil {
			return err
		}
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

// metadata lists the metadata services of clouds, which answer with secrets of the
// machine that asks: AWS, Google, Azure and others; AWS for containers; Alibaba;
// Oracle; Azure's host, which has a public address; and their IPv6 addresses.
var metadata = []netip.Addr{
	netip.MustParseAddr("169.254.169.254"), netip.MustParseAddr("169.254.170.2"), netip.MustParseAddr("169.254.170.23"),
	netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("192.0.0.192"), netip.MustParseAddr("168.63.129.16"),
	netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd00:ec2::23"), netip.MustParseAddr("fd20:ce::254"),
}

// translated lists IPv6 networks whose addresses contain an IPv4 address. A gateway,
// or this machine, would connect to that IPv4 address.
var translated = []netip.Prefix{
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), // NAT64 (RFC 6052, 8215)
	netip.MustParsePrefix("2002::/16"),       // 6to4 (RFC 3056)
	netip.MustParsePrefix("2001::/32"),       // Teredo (RFC 4380)
	netip.MustParsePrefix("::ffff:0:0:0/96"), // SIIT (RFC 2765)
	netip.MustParsePrefix("::/96"),           // compatible (RFC 4291); :: and ::1 are judged before
}

var (
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8") // Linux connects 0.0.0.0 to itself
	shared      = netip.MustParsePrefix("100.64.0.0/10")
	special     = ssrf.New()
)

// public refuses all addresses that are not public. Library ssrf and the two lists
// above decide what is refused; the reason only explains it to people.
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
