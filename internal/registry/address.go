package registry

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// DefaultSimulators is where the simulators of `quittance up` listen unless told
// otherwise. In developer mode a registry file that says so means the simulators,
// wherever they listen.
const DefaultSimulators = "http://127.0.0.1:8081"

// simulatorScheme begins a stored address at the simulators.
const simulatorScheme = "simulators:"

const maxURL = 2048

// CheckWebhookURL tells why raw cannot be a webhook address; nil when it can.
// https to a public name on port 443; what the name resolves to is checked at
// every dial. In developer mode also exactly http://127.0.0.1:PORT and
// http://[::1]:PORT. The error says what is wrong and never repeats the address,
// whose path may be a secret.
func CheckWebhookURL(raw string, developer bool) error {
	u, err := parseURL(raw)
	if err != nil {
		return err
	}
	if loopback(u) {
		return loopbackFault(developer)
	}
	if u.Scheme != "https" {
		return errors.New("must be https" + orLoopback(developer))
	}
	if err := checkName(u.Hostname()); err != nil {
		return err
	}
	if port := u.Port(); port != "" && port != "443" || strings.HasSuffix(u.Host, ":") {
		return errors.New("must use port 443")
	}
	return nil
}

// checkBackendURL is for ERPs and operators: https with any port, a name or an
// address that networks allow; in developer mode also the two loopbacks.
func checkBackendURL(raw string, networks []netip.Prefix, developer bool) error {
	u, err := parseURL(raw)
	if err != nil {
		return err
	}
	if u.RawQuery != "" || u.ForceQuery {
		return errors.New("must not have a query")
	}
	if loopback(u) {
		return loopbackFault(developer)
	}
	if u.Scheme != "https" {
		return errors.New("must be https" + orLoopback(developer))
	}
	if strings.HasSuffix(u.Host, ":") {
		return errors.New("has an empty port")
	}
	if port := u.Port(); port != "" && !validPort(port) {
		return errors.New("has no valid port")
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		if !slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(ip.Unmap()) }) {
			return errors.New("has an address that is in none of its networks")
		}
		return nil
	}
	return checkName(u.Hostname())
}

func parseURL(raw string) (*url.URL, error) {
	if raw == "" {
		return nil, errors.New("must be an address")
	}
	if len(raw) > maxURL {
		return nil, fmt.Errorf("must have at most %d characters", maxURL)
	}
	for _, r := range raw {
		if r <= ' ' || r > '~' || r == '\\' {
			return nil, errors.New("must be written in ASCII without spaces (names in their xn-- form)")
		}
	}
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" || u.Host == "" || u.Hostname() == "" {
		return nil, errors.New("must be an absolute address such as https://example.org/path")
	}
	if u.User != nil {
		return nil, errors.New("must not hold credentials")
	}
	if strings.Contains(raw, "#") {
		return nil, errors.New("must not have a fragment")
	}
	return u, nil
}

var loopbackHost = regexp.MustCompile(`^(?:127\.0\.0\.1|\[::1\]):([1-9][0-9]{0,4})$`)

// loopback tells whether u is one of the two spellings that developer mode allows.
func loopback(u *url.URL) bool {
	m := loopbackHost.FindStringSubmatch(u.Host)
	return u.Scheme == "http" && m != nil && validPort(m[1])
}

func validPort(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && 1 <= n && n <= 65535 && strconv.Itoa(n) == s
}

func loopbackFault(developer bool) error {
	if developer {
		return nil
	}
	return errors.New("must be https; this machine itself is allowed in developer mode only")
}

func orLoopback(developer bool) string {
	if developer {
		return ", or http://127.0.0.1:PORT or http://[::1]:PORT"
	}
	return ""
}

var hostLabel = regexp.MustCompile(`^[0-9A-Za-z_]([0-9A-Za-z_-]{0,61}[0-9A-Za-z_])?$`)

// localNames end names that only a local network resolves (RFC 6761, 6762, 8375).
var localNames = []string{"localhost", "local", "localdomain", "internal", "intranet", "lan", "home", "corp", "private", "home.arpa", "invalid", "onion"}

// checkName refuses what is no public host name. A last label that is a number
// is how every spelling of an IPv4 address ends (127.1, 0x7f.1, 2130706433).
func checkName(host string) error {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	labels := strings.Split(host, ".")
	last := labels[len(labels)-1]
	hex, isHex := strings.CutPrefix(last, "0x")
	if strings.Contains(host, ":") || isHex && strings.Trim(hex, "0123456789abcdef") == "" || last != "" && strings.Trim(last, "0123456789") == "" {
		return errors.New("must name a host, not an IP address")
	}
	for _, label := range labels {
		if !hostLabel.MatchString(label) {
			return errors.New("has no valid host name")
		}
	}
	for _, name := range localNames {
		if host == name || strings.HasSuffix(host, "."+name) {
			return errors.New("must not be a local name")
		}
	}
	if len(labels) < 2 {
		return errors.New("must not be a local name")
	}
	return nil
}

// checkOrigin is for pages that embed us or are returned to: an https origin as
// a browser writes it.
func checkOrigin(raw string) error {
	u, err := parseURL(raw)
	if err != nil || u.Scheme != "https" || raw != "https://"+u.Host || u.Host != strings.ToLower(u.Host) ||
		strings.HasSuffix(u.Host, ":") || u.Port() == "443" || u.Port() != "" && !validPort(u.Port()) {
		return errors.New("must be an https origin in lower case without a path, such as https://guichet.example")
	}
	return nil
}

// toStored turns an address at DefaultSimulators into one at wherever they are.
func toStored(address string, developer bool) string {
	rest, ok := strings.CutPrefix(address, DefaultSimulators)
	if developer && ok && (rest == "" || rest[0] == '/' || rest[0] == '?') {
		return simulatorScheme + rest
	}
	return address
}

// fromStored is the inverse for an installation whose simulators listen at
// simulators; DefaultSimulators when that is empty.
func fromStored(stored, simulators string) string {
	rest, ok := strings.CutPrefix(stored, simulatorScheme)
	if !ok {
		return stored
	}
	if simulators == "" {
		simulators = DefaultSimulators
	}
	return strings.TrimSuffix(simulators, "/") + rest
}
