package address_test

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"quittance/internal/address"
)

func networks(prefixes ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(prefixes))
	for i, p := range prefixes {
		out[i] = netip.MustParsePrefix(p)
	}
	return out
}

// reasonOf returns the reason of a refusal, "" when there is none.
func reasonOf(t *testing.T, err error) address.Reason {
	t.Helper()
	if err == nil {
		return ""
	}
	var refused *address.Error
	if !errors.As(err, &refused) || refused.Reason == "" || refused.Error() == "" {
		t.Errorf("not an address.Error: %#v", err)
		return "?"
	}
	return refused.Reason
}

// Addresses with the reasons for which they are refused at registration and, unless the
// last column says otherwise, before a call.
var written = []struct {
	url string
	// The reason by the rule of webhooks, and by that of a backend with the networks
	// 10.20.0.0/16 and 2001:db8::/32.
	webhook, backend address.Reason
}{
	{"https://hooks.example.org/in?k=v", "", address.ReasonQuery},
	{"https://hooks.example.org", "", ""},
	{"HTTPS://Hooks.Example.ORG:443/", "", ""},
	{"https://hooks.example.org./", "", ""},
	{"https://xn--caf-dma.example/", "", ""},
	{"https://1e100.net/", "", ""},
	{"https://a_b.example.org/", "", ""},

	{"", address.ReasonNotAbsolute, address.ReasonNotAbsolute},
	{"/hook", address.ReasonNotAbsolute, address.ReasonNotAbsolute},
	{"hooks.example.org", address.ReasonNotAbsolute, address.ReasonNotAbsolute},
	{"//hooks.example.org/", address.ReasonNotHTTPS, address.ReasonNotHTTPS},
	{"https:hooks.example.org", address.ReasonNotAbsolute, address.ReasonNotAbsolute},
	{"https:///hook", address.ReasonNotAbsolute, address.ReasonNotAbsolute},
	{"https://:443/", address.ReasonNotAbsolute, address.ReasonNotAbsolute},
	{"https://hooks.example.org/%zz", address.ReasonNotAbsolute, address.ReasonNotAbsolute},
	{"https://hooks.example.org/" + strings.Repeat("x", address.MaxLength), address.ReasonTooLong, address.ReasonTooLong},

	{"http://hooks.example.org/", address.ReasonNotHTTPS, address.ReasonNotHTTPS},
	{"http://hooks.example.org:443/", address.ReasonNotHTTPS, address.ReasonNotHTTPS},
	{"ftp://hooks.example.org/", address.ReasonNotHTTPS, address.ReasonNotHTTPS},
	{"http://127.0.0.1:8081/", address.ReasonNotHTTPS, address.ReasonNotHTTPS},
	{"http://169.254.169.254/latest/meta-data/", address.ReasonNotHTTPS, address.ReasonNotHTTPS},

	{"https://user:secret@hooks.example.org/", address.ReasonCredentials, address.ReasonCredentials},
	{"https://user@hooks.example.org/", address.ReasonCredentials, address.ReasonCredentials},
	{"https://@hooks.example.org/", address.ReasonCredentials, address.ReasonCredentials},
	{"https://hooks.example.org@127.0.0.1/", address.ReasonCredentials, address.ReasonCredentials},
	{"https://hooks.example.org/#x", address.ReasonFragment, address.ReasonFragment},
	{"https://hooks.example.org/#", address.ReasonFragment, address.ReasonFragment},
	{"https://hooks.example.org#@127.0.0.1/", address.ReasonFragment, address.ReasonFragment},

	{"https://hooks.example.org:8443/", address.ReasonPort, ""},
	{"https://hooks.example.org:80/", address.ReasonPort, ""},
	{"https://hooks.example.org:/", address.ReasonPort, address.ReasonPort},
	{"https://hooks.example.org:0/", address.ReasonPort, address.ReasonPort},
	{"https://hooks.example.org:0443/", address.ReasonPort, address.ReasonPort},
	{"https://hooks.example.org:65536/", address.ReasonPort, address.ReasonPort},
	{"https://hooks.example.org:https/", address.ReasonPort, address.ReasonPort},

	// IP addresses in every spelling that some resolver or browser accepts.
	{"https://93.184.216.34/", address.ReasonIPLiteral, address.ReasonOutsideNetworks},
	{"https://10.20.0.7:8443/", address.ReasonIPLiteral, ""},
	{"https://10.20.0.7./", address.ReasonIPLiteral, address.ReasonIPLiteral},
	{"https://10.20.7/", address.ReasonIPLiteral, address.ReasonIPLiteral},
	{"https://127.1/", address.ReasonIPLiteral, address.ReasonIPLiteral},
	{"https://2130706433/", address.ReasonIPLiteral, address.ReasonIPLiteral},
	{"https://017700000001/", address.ReasonIPLiteral, address.ReasonIPLiteral},
	{"https://0177.0.0.1/", address.ReasonIPLiteral, address.ReasonIPLiteral},
	{"https://0x7f000001/", address.ReasonIPLiteral, address.ReasonIPLiteral},
	{"https://0X7F.0.0.0X1/", address.ReasonIPLiteral, address.ReasonIPLiteral},
	{"https://0x7f.1/", address.ReasonIPLiteral, address.ReasonIPLiteral},
	{"https://127.0.0.0x/", address.ReasonIPLiteral, address.ReasonIPLiteral},
	{"https://0/", address.ReasonIPLiteral, address.ReasonIPLiteral},
	{"https://256.256.256.256/", address.ReasonIPLiteral, address.ReasonIPLiteral},
	{"https://[2606:2800:220:1::1]/", address.ReasonIPLiteral, address.ReasonOutsideNetworks},
	{"https://[2001:db8::7]/", address.ReasonIPLiteral, ""},
	{"https://[::1]/", address.ReasonIPLiteral, address.ReasonOutsideNetworks},
	{"https://[::ffff:127.0.0.1]/", address.ReasonIPLiteral, address.ReasonOutsideNetworks},
	{"https://[::ffff:7f00:1]/", address.ReasonIPLiteral, address.ReasonOutsideNetworks},
	{"https://[::127.0.0.1]/", address.ReasonIPLiteral, address.ReasonOutsideNetworks},
	{"https://[64:ff9b::7f00:1]/", address.ReasonIPLiteral, address.ReasonOutsideNetworks},
	{"https://[fe80::1%25eth0]/", address.ReasonIPLiteral, address.ReasonOutsideNetworks},
	{"https://[2001:db8::7%25eth0]/", address.ReasonIPLiteral, address.ReasonOutsideNetworks},
	{"https://[v1.a]/", address.ReasonIPLiteral, address.ReasonIPLiteral},
	{"https://[127.0.0.1]/", address.ReasonIPLiteral, address.ReasonIPLiteral},
	{"https://169.254.169.254/", address.ReasonIPLiteral, address.ReasonMetadata},
	// IP addresses in disguise.
	{"https://%31%32%37.0.0.1/", address.ReasonInvalidName, address.ReasonInvalidName},
	{"https://127.0.0%2e1/", address.ReasonInvalidName, address.ReasonInvalidName},
	{"https://%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1/", address.ReasonInvalidName, address.ReasonInvalidName},
	{"https://１２７.０.０.１/", address.ReasonNotASCII, address.ReasonNotASCII},
	{"https://127。0。0。1/", address.ReasonNotASCII, address.ReasonNotASCII},
	{"https://①②⑦.0.0.1/", address.ReasonNotASCII, address.ReasonNotASCII},
	{"https://ⓛocalhost/", address.ReasonNotASCII, address.ReasonNotASCII},
	{"https://hooks.example.org\\@127.0.0.1/", address.ReasonNotASCII, address.ReasonNotASCII},
	{"https://hooks.example.org /", address.ReasonNotASCII, address.ReasonNotASCII},
	{"https://hooks.example.org\t/", address.ReasonNotASCII, address.ReasonNotASCII},
	{"https://hooks.example.org/\r\nHost: x", address.ReasonNotASCII, address.ReasonNotASCII},

	{"https://localhost/", address.ReasonLocalName, address.ReasonLocalName},
	{"https://LOCALHOST./", address.ReasonLocalName, address.ReasonLocalName},
	{"https://a.localhost/", address.ReasonLocalName, address.ReasonLocalName},
	{"https://hooks/", address.ReasonLocalName, ""},
	{"https://erp.impots.local/", address.ReasonLocalName, ""},
	{"https://erp.internal./", address.ReasonLocalName, ""},
	{"https://metadata.google.internal/", address.ReasonLocalName, ""},
	{"https://nas.home.arpa/", address.ReasonLocalName, ""},

	{"https://hooks..example.org/", address.ReasonInvalidName, address.ReasonInvalidName},
	{"https://hooks.example.org../", address.ReasonInvalidName, address.ReasonInvalidName},
	{"https://./", address.ReasonInvalidName, address.ReasonInvalidName},
	{"https://-hooks.example.org/", address.ReasonInvalidName, address.ReasonInvalidName},
	{"https://hooks,example.org/", address.ReasonInvalidName, address.ReasonInvalidName},
	{"https://" + strings.Repeat("x", 64) + ".example.org/", address.ReasonInvalidName, address.ReasonInvalidName},
	{"https://" + strings.Repeat("x.", 130) + "org/", address.ReasonInvalidName, address.ReasonInvalidName},
}

// Resolved addresses with the reasons for which they are refused at the dial.
var resolved = []struct {
	ip      string
	webhook address.Reason
}{
	{"93.184.216.34", ""},
	{"::ffff:93.184.216.34", ""},
	{"2606:2800:220:1::1", ""},
	{"10.0.0.1", address.ReasonPrivate},
	{"172.16.0.1", address.ReasonPrivate},
	{"172.31.255.255", address.ReasonPrivate},
	{"192.168.1.1", address.ReasonPrivate},
	{"100.64.0.1", address.ReasonPrivate},
	{"fd12:3456::1", address.ReasonPrivate},
	{"::ffff:10.0.0.1", address.ReasonPrivate},
	{"127.0.0.1", address.ReasonLoopback},
	{"127.255.0.1", address.ReasonLoopback},
	{"0.0.0.0", address.ReasonLoopback},
	{"0.1.2.3", address.ReasonLoopback},
	{"::1", address.ReasonLoopback},
	{"::", address.ReasonLoopback},
	{"::ffff:127.0.0.1", address.ReasonLoopback},
	{"169.254.1.1", address.ReasonLinkLocal},
	{"fe80::1", address.ReasonLinkLocal},
	{"fe80::1%eth0", address.ReasonLinkLocal},
	{"169.254.169.254", address.ReasonMetadata},
	{"::ffff:169.254.169.254", address.ReasonMetadata},
	{"169.254.170.2", address.ReasonMetadata},
	{"100.100.100.200", address.ReasonMetadata},
	{"168.63.129.16", address.ReasonMetadata},
	{"fd00:ec2::254", address.ReasonMetadata},
	{"fd00:ec2::254%eth0", address.ReasonMetadata},
	{"64:ff9b::a00:1", address.ReasonTranslated},
	{"64:ff9b::a9fe:a9fe", address.ReasonTranslated},
	{"64:ff9b:1::a00:1", address.ReasonTranslated},
	{"2002:a00:1::1", address.ReasonTranslated},
	{"2001:0:a00:1::1", address.ReasonTranslated},
	{"::10.0.0.1", address.ReasonTranslated},
	{"::ffff:0:a00:1", address.ReasonTranslated},
	{"224.0.0.1", address.ReasonReserved},
	{"255.255.255.255", address.ReasonReserved},
	{"192.0.2.1", address.ReasonReserved},
	{"198.18.0.1", address.ReasonReserved},
	{"ff02::1", address.ReasonReserved},
	{"fec0::1", address.ReasonReserved},
	{"2001:db8::1", address.ReasonReserved},
	{"4000::1", address.ReasonReserved},
}

// reasons lists all reasons.
var reasons = []address.Reason{
	address.ReasonNotAbsolute, address.ReasonTooLong, address.ReasonNotASCII, address.ReasonCredentials, address.ReasonFragment,
	address.ReasonQuery, address.ReasonNotHTTPS, address.ReasonPort, address.ReasonIPLiteral, address.ReasonLocalName, address.ReasonInvalidName,
	address.ReasonPrivate, address.ReasonLoopback, address.ReasonLinkLocal, address.ReasonMetadata, address.ReasonTranslated,
	address.ReasonReserved, address.ReasonOutsideNetworks,
}

// Registration, calls and dials refuse each address with the expected reason. Every reason
// occurs. No text repeats the address.
func TestReasons(t *testing.T) {
	t.Parallel()
	webhook := address.Rule{}
	backend := address.Rule{Backend: true, Networks: networks("10.20.0.0/16", "2001:db8::/32")}
	seen := map[address.Reason]bool{}
	for _, c := range written {
		for _, r := range []struct {
			name string
			rule address.Rule
			want address.Reason
		}{{"webhook", webhook, c.webhook}, {"backend", backend, c.backend}} {
			err := r.rule.CheckNew(c.url)
			if got := reasonOf(t, err); got != r.want {
				t.Errorf("registering %s %q: %q, want %q", r.name, c.url, got, r.want)
			}
			seen[r.want] = true
			if err != nil && len(c.url) > 8 && strings.Contains(err.Error(), strings.TrimPrefix(c.url, "https://")) {
				t.Errorf("%q is repeated: %v", c.url, err)
			}
			if r.want == address.ReasonTooLong || r.want == address.ReasonQuery {
				continue // only registration limits the length; a path may be appended later
			}
			u, err := r.rule.Check(c.url)
			if got := reasonOf(t, err); got != r.want || (err == nil) != (u != nil) {
				t.Errorf("calling %s %q: %q, want %q", r.name, c.url, got, r.want)
			}
		}
	}
	for _, c := range resolved {
		seen[c.webhook] = true
		err := webhook.Control()("tcp", net.JoinHostPort(c.ip, "443"), nil)
		if got := reasonOf(t, err); got != c.webhook {
			t.Errorf("dialling %s: %q, want %q", c.ip, got, c.webhook)
		}
		if err != nil && strings.Contains(err.Error(), c.ip) && len(c.ip) > 2 {
			t.Errorf("%s is repeated: %v", c.ip, err)
		}
		// Systems of operators may use any port. The addresses are the same.
		if got := reasonOf(t, address.Rule{Backend: true}.Control()("tcp", net.JoinHostPort(c.ip, "8443"), nil)); got != c.webhook {
			t.Errorf("dialling %s of a backend without networks: %q, want %q", c.ip, got, c.webhook)
		}
	}
	for _, r := range reasons {
		if !seen[r] {
			t.Errorf("no case for %s", r)
		}
		delete(seen, r)
	}
	if delete(seen, ""); len(seen) != 0 {
		t.Errorf("not among the reasons: %v", seen)
	}
}

// A rule with networks allows only their addresses. The dial also refuses a port other
// than 443.
func TestControl(t *testing.T) {
	t.Parallel()
	own := address.Rule{Backend: true, Networks: networks("10.20.0.0/16", "169.254.0.0/16", "fd00::/8")}
	for _, c := range []struct {
		rule    address.Rule
		address string
		want    address.Reason
	}{
		{own, "10.20.0.7:8443", ""},
		{own, "[::ffff:10.20.0.7]:443", ""},
		{own, "[fd12::1]:443", ""},
		{own, "169.254.1.1:443", ""},
		{own, "10.21.0.1:443", address.ReasonOutsideNetworks},
		{own, "93.184.216.34:443", address.ReasonOutsideNetworks},
		{own, "127.0.0.1:443", address.ReasonOutsideNetworks},
		{own, "169.254.169.254:80", address.ReasonMetadata},
		{own, "[::ffff:169.254.169.254]:80", address.ReasonMetadata},
		{own, "[fd00:ec2::254]:80", address.ReasonMetadata},
		{address.Rule{}, "93.184.216.34:8443", address.ReasonPort},
		{address.Rule{Loopback: true}, "127.0.0.1:443", address.ReasonLoopback},
		{address.Rule{}, "hooks.example.org:443", address.ReasonInvalidName},
	} {
		if got := reasonOf(t, c.rule.Control()("tcp", c.address, nil)); got != c.want {
			t.Errorf("%s: %q, want %q", c.address, got, c.want)
		}
	}
	for a, want := range map[string]address.Reason{
		"127.0.0.1:1": "", "[::1]:1": "", "[::ffff:127.0.0.1]:1": "",
		"127.0.0.2:1": address.ReasonOutsideNetworks, "10.0.0.1:1": address.ReasonOutsideNetworks, "93.184.216.34:443": address.ReasonOutsideNetworks,
	} {
		if got := reasonOf(t, address.ControlLoopback("tcp", a, nil)); got != want {
			t.Errorf("%s in developer mode: %q, want %q", a, got, want)
		}
	}
}

// Developer mode allows two more spellings and nothing else.
func TestDeveloper(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]address.Reason{
		"http://127.0.0.1:8081/inbox": "", "http://[::1]:8081/inbox": "", "https://hooks.example.org/": "",
		"http://127.0.0.1/":                   address.ReasonNotHTTPS,
		"http://127.0.0.1:08081/":             address.ReasonPort,
		"http://127.0.0.1:/":                  address.ReasonPort,
		"http://127.0.0.2:8081/":              address.ReasonNotHTTPS,
		"http://127.1:8081/":                  address.ReasonNotHTTPS,
		"http://localhost:8081/":              address.ReasonNotHTTPS,
		"http://[0:0:0:0:0:0:0:1]:8081/":      address.ReasonNotHTTPS,
		"http://[::ffff:127.0.0.1]:8081/":     address.ReasonNotHTTPS,
		"http://[::1%25lo]:8081/":             address.ReasonNotHTTPS,
		"http://192.168.1.2:8081/":            address.ReasonNotHTTPS,
		"http://hooks.example.org:8081/":      address.ReasonNotHTTPS,
		"http://u@127.0.0.1:8081/":            address.ReasonCredentials,
		"https://127.0.0.1:8081/":             address.ReasonIPLiteral,
		"https://localhost:8081/":             address.ReasonLocalName,
		"https://hooks.example.org:8443/hook": address.ReasonPort,
	} {
		for _, backend := range []bool{false, true} {
			want := want
			switch raw {
			case "https://hooks.example.org:8443/hook", "https://127.0.0.1:8081/":
				if backend {
					want = ""
				}
			}
			if got := reasonOf(t, address.Rule{Loopback: true, Backend: backend}.CheckNew(raw)); got != want {
				t.Errorf("%s: %q, want %q", raw, got, want)
			}
		}
	}
}

// net/http and net/url agree about the host of every address that Parse accepts.
func FuzzCheck(f *testing.F) {
	for _, c := range written {
		f.Add(c.url)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := address.Rule{}.Check(raw)
		if err != nil {
			reasonOf(t, err)
			return
		}
		host := strings.TrimSuffix(u.Hostname(), ".")
		if _, err := netip.ParseAddr(host); err == nil || !strings.Contains(host, ".") || u.Scheme != "https" || u.User != nil || u.Port() != "" && u.Port() != "443" {
			t.Errorf("%q passes", raw)
		}
	})
}

// A rule may also allow http to public names, on port 80 and nowhere else.
func TestPlain(t *testing.T) {
	t.Parallel()
	rule := address.Rule{Plain: true}
	for url, want := range map[string]address.Reason{
		"http://hooks.example.org/in": "", "http://hooks.example.org:80/": "", "https://hooks.example.org/": "",
		"http://hooks.example.org:443/": address.ReasonPort, "https://hooks.example.org:80/": address.ReasonPort, "http://hooks.example.org:8080/": address.ReasonPort,
		"http://127.0.0.1:8081/": address.ReasonNotHTTPS, "http://10.0.0.7/": address.ReasonIPLiteral, "http://printer.local/": address.ReasonLocalName,
		"http://localhost/": address.ReasonLocalName, "http://user@hooks.example.org/": address.ReasonCredentials, "ftp://hooks.example.org/": address.ReasonNotHTTPS,
	} {
		if got := reasonOf(t, rule.CheckNew(url)); got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
	for to, want := range map[string]address.Reason{
		"93.184.216.34:80": "", "93.184.216.34:443": "", "93.184.216.34:81": address.ReasonPort, "10.0.0.7:80": address.ReasonPrivate, "169.254.169.254:80": address.ReasonMetadata,
	} {
		if got := reasonOf(t, rule.Control()("tcp", to, nil)); got != want {
			t.Errorf("dialling %s: %q, want %q", to, got, want)
		}
	}
	if got := reasonOf(t, address.Rule{}.Control()("tcp", "93.184.216.34:80", nil)); got != address.ReasonPort {
		t.Errorf("without Plain: %q", got)
	}
}

func TestCheckResolved(t *testing.T) {
	t.Parallel()
	public, private := netip.MustParseAddr("93.184.216.34"), netip.MustParseAddr("10.20.0.7")
	for _, row := range []struct {
		rule  address.Rule
		addrs []netip.Addr
		want  address.Reason
	}{
		{address.Rule{}, nil, ""},
		{address.Rule{}, []netip.Addr{public}, ""},
		{address.Rule{}, []netip.Addr{public, private}, address.ReasonPrivate},
		{address.Rule{}, []netip.Addr{netip.MustParseAddr("::ffff:127.0.0.1")}, address.ReasonLoopback},
		{address.Rule{Networks: networks("10.20.0.0/16")}, []netip.Addr{private}, ""},
		{address.Rule{Networks: networks("10.20.0.0/16")}, []netip.Addr{public}, address.ReasonOutsideNetworks},
	} {
		if got := reasonOf(t, row.rule.CheckResolved(row.addrs)); got != row.want {
			t.Errorf("%v by %+v: %q, want %q", row.addrs, row.rule, got, row.want)
		}
	}
}
