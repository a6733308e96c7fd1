package delivery

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"

	"code.dny.dev/ssrf"
)

// ErrAddress says that a destination's address is not one we may call; the text
// names the rule, never the address, which may hold a secret.
var ErrAddress = errors.New("address refused")

// Rule says which addresses are callable.
type Rule struct {
	// Developer adds exactly http://127.0.0.1:PORT and http://[::1]:PORT.
	Developer bool
	// AnyPort allows ports other than 443 (agency ERPs).
	AnyPort bool
	// Networks, when there are any, are the only addresses that may be called,
	// private ones too, by name or by number (agency ERPs).
	Networks []netip.Prefix
}

// private says that the destination is on networks of its own.
func (r Rule) private() bool { return len(r.Networks) > 0 }

// Check says whether a URL is callable, before any name is resolved:
// contract-decisions § 5. Errors wrap ErrAddress. What the name resolves to is
// checked again at every dial.
func (r Rule) Check(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Opaque != "" {
		return nil, fmt.Errorf("%w: not an absolute URL", ErrAddress)
	}
	switch {
	case u.User != nil:
		return nil, fmt.Errorf("%w: credentials in the URL", ErrAddress)
	case u.Fragment != "":
		return nil, fmt.Errorf("%w: fragment in the URL", ErrAddress)
	case r.Developer && loopback(u):
		return u, nil
	case u.Scheme != "https":
		return nil, fmt.Errorf("%w: not https", ErrAddress)
	case !r.AnyPort && u.Port() != "" && u.Port() != "443":
		return nil, fmt.Errorf("%w: port other than 443", ErrAddress)
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if r.private() {
		if host == "localhost" || strings.HasSuffix(host, ".localhost") {
			return nil, fmt.Errorf("%w: local name", ErrAddress)
		}
		return u, nil
	}
	if numeric(host) {
		return nil, fmt.Errorf("%w: IP address instead of a name", ErrAddress)
	}
	if !strings.Contains(host, ".") {
		return nil, fmt.Errorf("%w: local name", ErrAddress)
	}
	for _, suffix := range []string{".localhost", ".local", ".internal", ".localdomain", ".lan", ".home.arpa", ".intranet", ".corp"} {
		if strings.HasSuffix(host, suffix) {
			return nil, fmt.Errorf("%w: local name", ErrAddress)
		}
	}
	return u, nil
}

// loopback is exactly http://127.0.0.1:PORT or http://[::1]:PORT, so written.
func loopback(u *url.URL) bool {
	if u.Scheme != "http" {
		return false
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil || port == 0 {
		return false
	}
	p := strconv.FormatUint(port, 10)
	return u.Host == "127.0.0.1:"+p || u.Host == "[::1]:"+p
}

// numeric is an IP address in any spelling that some resolver takes: dotted,
// short, decimal, octal, hexadecimal, IPv6. A name whose last label starts with
// a digit is none.
func numeric(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil || strings.Contains(host, ":") {
		return true
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	return last == "" || last[0] >= '0' && last[0] <= '9'
}

// guard checks what is really dialled, after the name was resolved.
func (r Rule) guard(loopbackOnly bool) func(network, address string, c syscall.RawConn) error {
	ports := ssrf.WithPorts(443)
	if r.AnyPort {
		ports = ssrf.WithAnyPort()
	}
	public := ssrf.New(ports)
	return func(network, address string, c syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("%w: not an address", ErrAddress)
		}
		ip := to.Addr().Unmap()
		switch {
		case loopbackOnly:
			if ip != netip.AddrFrom4([4]byte{127, 0, 0, 1}) && ip != netip.IPv6Loopback() {
				return fmt.Errorf("%w: not loopback", ErrAddress)
			}
		case r.private():
			for _, p := range r.Networks {
				if p.Contains(ip) {
					return nil
				}
			}
			return fmt.Errorf("%w: outside the agency's networks", ErrAddress)
		default:
			if err := public.Safe(network, net.JoinHostPort(ip.String(), strconv.Itoa(int(to.Port()))), c); err != nil {
				return fmt.Errorf("%w: private, special or other port", ErrAddress)
			}
		}
		return nil
	}
}
