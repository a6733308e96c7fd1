// Package address holds the rules for addresses that this service calls:
// webhook endpoints, agencies' ERPs, operators (docs/design/decisions.md § 5 and § 10).
// The same Rule is applied three times: CheckNew when an address is registered,
// Check before each call, and Control at each dial, to the addresses that the name
// has resolved to. So a name cannot pass the check and later resolve to a private
// address.
package address

import (
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// MaxLength of a registered address in characters.
const MaxLength = 2048

// Reason names the rule that an address breaks. Operators read it beside failed
// deliveries and may count by it, so a released name never changes.
type Reason string

// Reasons that follow from the address itself.
const (
	// ReasonNotAbsolute: no scheme, no host, or not a URL.
	ReasonNotAbsolute Reason = "not_absolute"
	// ReasonTooLong: more than MaxLength characters.
	ReasonTooLong Reason = "too_long"
	// ReasonNotASCII: spaces, control characters, backslashes, or letters and
	// digits outside ASCII. Some libraries turn those into other addresses.
	ReasonNotASCII Reason = "not_ascii"
	// ReasonCredentials: a user name or password before the host.
	ReasonCredentials Reason = "credentials"
	// ReasonFragment: the address contains a #.
	ReasonFragment Reason = "fragment"
	// ReasonQuery: a base address, to which paths are appended, contains a ?.
	ReasonQuery Reason = "query"
	// ReasonNotHTTPS: the scheme is not https.
	ReasonNotHTTPS Reason = "not_https"
	// ReasonPort: the rule does not allow the port, or the port is not a number.
	ReasonPort Reason = "port"
	// ReasonIPLiteral: an IP address, in any spelling, instead of a name.
	ReasonIPLiteral Reason = "ip_literal"
	// ReasonLocalName: a name that only a local network resolves.
	ReasonLocalName Reason = "local_name"
	// ReasonInvalidName: the host is not a valid host name.
	ReasonInvalidName Reason = "invalid_name"
)

// Reasons that follow from the addresses that the name resolves to.
const (
	// ReasonPrivate: a private or shared network (RFC 1918, 4193, 6598).
	ReasonPrivate Reason = "private_address"
	// ReasonLoopback: the machine itself.
	ReasonLoopback Reason = "loopback"
	// ReasonLinkLocal: reachable on the same link only.
	ReasonLinkLocal Reason = "link_local"
	// ReasonMetadata: a cloud's metadata service, which answers with the machine's
	// secrets.
	ReasonMetadata Reason = "metadata"
	// ReasonTranslated: an IPv6 address that stands for an IPv4 one (NAT64, 6to4,
	// Teredo). A mapped one (::ffff:a.b.c.d) is judged as the IPv4 address it is.
	ReasonTranslated Reason = "translated_address"
	// ReasonReserved: multicast, documentation and the rest of IANA's special ones.
	ReasonReserved Reason = "reserved_address"
	// ReasonOutsideNetworks: outside the networks that the rule names.
	ReasonOutsideNetworks Reason = "outside_networks"
)

// Error says that an address may not be called. Its text completes a sentence that
// begins with "the address" and tells the owner what is wrong and how to mend it.
// It never repeats the address, because the path may be a secret.
type Error struct {
	Reason Reason
	text   string
}

// Error returns the text.
func (e *Error) Error() string { return e.text }

func refuse(reason Reason, text string) *Error { return &Error{Reason: reason, text: text} }

// Rule says which addresses may be called. The zero value is the rule of
// webhooks: https to a public name on port 443.
type Rule struct {
	// Loopback also allows http://127.0.0.1:PORT and http://[::1]:PORT, in exactly
	// these spellings, and for a Backend https there: an operator may know its clients by
	// certificates, and its simulator does.
	Loopback bool
	// Plain also allows http to a public name on port 80.
	Plain bool
	// Backend is for systems that an agency's contract names (ERPs, operators). Any
	// port is allowed. A query is not, because paths are appended to the address.
	Backend bool
	// Networks restricts calls to these networks, which may be private. The host may
	// then be an IP address in its usual spelling or any name except localhost.
	// Metadata services of clouds stay refused. Empty means no restriction.
	Networks []netip.Prefix
}

// CheckNew returns nil when raw may be registered, else an *Error that says why not.
func (r Rule) CheckNew(raw string) error {
	if len(raw) > MaxLength {
		return refuse(ReasonTooLong, "must have at most "+strconv.Itoa(MaxLength)+" characters")
	}
	u, err := r.Check(raw)
	if err != nil {
		return err
	}
	if r.Backend && (u.RawQuery != "" || u.ForceQuery) {
		return refuse(ReasonQuery, "must not have a query: remove the ? and what follows it")
	}
	return nil
}

// Check returns nil when raw may be called, as far as the address itself shows,
// before its name is resolved. Else it returns an *Error.
func (r Rule) Check(raw string) (*url.URL, error) {
	u, err := Parse(raw)
	if err != nil {
		return nil, err
	}
	if r.Loopback && (loopback(u) || r.Backend && u.Scheme == "https" && loopbackHost.MatchString(u.Host)) {
		return u, nil
	}
	plain := r.Plain && u.Scheme == "http" && !loopback(u)
	switch {
	case plain:
	case u.Scheme != "https" && r.Loopback:
		return nil, refuse(ReasonNotHTTPS, "must be https, or http://127.0.0.1:PORT or http://[::1]:PORT")
	case u.Scheme != "https" && loopback(u):
		return nil, refuse(ReasonNotHTTPS, "must be https; this machine itself is allowed in developer mode only")
	case u.Scheme != "https":
		return nil, refuse(ReasonNotHTTPS, "must be https")
	}
	if err := r.checkHost(u); err != nil {
		return nil, err
	}
	port := "443"
	if plain {
		port = "80"
	}
	if !r.Backend && u.Port() != "" && u.Port() != port {
		return nil, refuse(ReasonPort, "must use port "+port+": remove the port")
	}
	return u, nil
}

// Parse reads an absolute address in ASCII with a host, without credentials and
// without a fragment. The port, if present, must be valid. Errors are *Error.
func Parse(raw string) (*url.URL, error) {
	for _, r := range raw {
		if r <= ' ' || r > '~' || r == '\\' {
			return nil, refuse(ReasonNotASCII, "must be written in ASCII without spaces or backslashes (names in their xn-- form, the rest with %)")
		}
	}
	if strings.Contains(hostOf(raw), "%") && !strings.Contains(hostOf(raw), "[") {
		return nil, invalidName() // url.Parse would decode percent signs in the host
	}
	u, err := url.Parse(raw)
	if err != nil && strings.ContainsAny(hostOf(raw), "[]") {
		return nil, ipLiteral()
	}
	if err != nil && portLike.MatchString(hostOf(raw)) {
		return nil, invalidPort()
	}
	if err != nil || u.Opaque != "" || u.Hostname() == "" {
		return nil, refuse(ReasonNotAbsolute, "must be an absolute address such as https://example.org/path")
	}
	if u.User != nil {
		return nil, refuse(ReasonCredentials, "must not hold credentials: remove the @ and what stands before it")
	}
	if strings.Contains(raw, "#") {
		return nil, refuse(ReasonFragment, "must not have a fragment: remove the # and what follows it")
	}
	if strings.HasSuffix(u.Host, ":") || u.Port() != "" && !validPort(u.Port()) {
		return nil, invalidPort()
	}
	return u, nil
}

// hostOf returns the host and port of an address as they are written.
func hostOf(raw string) string {
	_, rest, ok := strings.Cut(raw, "//")
	if !ok {
		return ""
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	return rest[strings.LastIndexByte(rest, '@')+1:]
}

var (
	portLike     = regexp.MustCompile(`^[^:]+:[^:]*$`)
	loopbackHost = regexp.MustCompile(`^(?:127\.0\.0\.1|\[::1\]):[0-9]+$`)
	hostLabel    = regexp.MustCompile(`^[0-9A-Za-z_]([0-9A-Za-z_-]{0,61}[0-9A-Za-z_])?$`)
)

// IsLoopback reports whether a checked address is one of the two that developer mode allows.
func IsLoopback(u *url.URL) bool { return loopback(u) }

// loopback reports whether u, whose port is valid, has one of the two spellings that
// developer mode allows.
func loopback(u *url.URL) bool { return u.Scheme == "http" && loopbackHost.MatchString(u.Host) }

// validPort reports whether port is a port number without leading zeros.
func validPort(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && 1 <= n && n <= 65535 && strconv.Itoa(n) == s
}

func (r Rule) checkHost(u *url.URL) error {
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if len(r.Networks) > 0 {
		if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
			return r.inNetworks(ip.Unmap())
		}
	}
	if strings.ContainsAny(u.Host, "[]") || endsInNumber(host) {
		return ipLiteral()
	}
	labels := strings.Split(host, ".")
	if len(host) > 253 || slices.ContainsFunc(labels, func(l string) bool { return !hostLabel.MatchString(l) }) {
		return invalidName()
	}
	local := len(labels) == 1 || under(host, localNames)
	if len(r.Networks) > 0 {
		local = under(host, []string{"localhost"})
	}
	if local {
		return refuse(ReasonLocalName, "must not be a local name: use one that public DNS resolves")
	}
	return nil
}

// endsInNumber matches every spelling of an IPv4 address that some resolver accepts
// (127.1, 0x7f.1, 2130706433, 017700000001). It matches no valid name (WHATWG URL,
// "ends-in-a-number checker").
func endsInNumber(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

// localNames are the endings of names that only a local network resolves (RFC 6761,
// 6762, 8375).
var localNames = []string{"localhost", "local", "localdomain", "internal", "intranet", "lan", "home", "corp", "private", "home.arpa", "invalid", "onion"}

func under(host string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return host == name || strings.HasSuffix(host, "."+name) })
}

func ipLiteral() *Error {
	return refuse(ReasonIPLiteral, "must name a host, not an IP address: use its DNS name")
}

func invalidName() *Error {
	return refuse(ReasonInvalidName, "has no valid host name: letters, digits and hyphens between dots, nothing encoded with %")
}

func invalidPort() *Error {
	return refuse(ReasonPort, "has no valid port: a number from 1 to 65535 after the colon")
}
