package call_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"quittance/internal/address"
	"quittance/internal/call"
)

func networks(prefixes ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(prefixes))
	for i, p := range prefixes {
		out[i] = netip.MustParsePrefix(p)
	}
	return out
}

func client(t testing.TB, cfg call.Config) *call.Client {
	t.Helper()
	c := call.New(cfg)
	t.Cleanup(c.Close)
	return c
}

func post(t testing.TB, c *call.Client, url string) call.Result {
	t.Helper()
	return c.Post(t.Context(), url, http.Header{}, []byte("{}"))
}

// raw is a receiver that reads the head of a request and then writes arbitrary bytes. It
// counts connections and the bytes that it could write.
type raw struct {
	net.Listener
	accepted, written atomic.Int64
}

func newRaw(t testing.TB, at string, answer func(w io.Writer)) *raw {
	t.Helper()
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	r := &raw{Listener: l}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r.accepted.Add(1)
			ended := context.AfterFunc(ctx, func() { _ = c.Close() })
			conns.Go(func() {
				defer func() { ended(); _ = c.Close() }()
				b := bufio.NewReader(c)
				for {
					req, err := http.ReadRequest(b)
					if err != nil {
						return
					}
					if _, err := io.Copy(io.Discard, req.Body); err != nil {
						return
					}
					answer(counting{c, &r.written})
				}
			})
		}
	})
	t.Cleanup(func() { cancel(); _ = l.Close(); conns.Wait() })
	return r
}

func (r *raw) port() string { return strconv.Itoa(r.Addr().(*net.TCPAddr).Port) }

type counting struct {
	io.Writer
	n *atomic.Int64
}

func (c counting) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.n.Add(int64(n))
	return n, err
}

const (
	ok200     = "HTTP/1.1 200 OK\r\n"
	okEmpty   = ok200 + "Content-Length: 0\r\n\r\n"
	okEndless = ok200 + "Content-Length: 1000000000000\r\n\r\n"
)

func write(s string) func(io.Writer) {
	return func(w io.Writer) { _, _ = io.WriteString(w, s) }
}

// forEver writes first, then more until writing fails.
func forEver(first, more string, pause time.Duration) func(io.Writer) {
	return func(w io.Writer) {
		_, err := io.WriteString(w, first)
		for err == nil {
			time.Sleep(pause)
			_, err = io.WriteString(w, more)
		}
	}
}

// The client's results for hostile and faulty receivers. The test measures the memory of
// the whole process, so no other test runs at the same time.
func TestAnswers(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	if _, err := z.Write(make([]byte, 10<<20)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	kib := strings.Repeat("é", 512)
	beginning := func(answer string) bool { return len(answer) > 1000 && strings.HasPrefix(kib, answer) }
	for _, c := range []struct {
		name   string
		answer func(io.Writer)
		reason string
		want   func(call.Result) bool
	}{
		{"nothing", write(okEmpty), "", func(r call.Result) bool { return r.Status == 200 && r.Answer == "" }},
		{"a body that never ends", forEver(okEndless, strings.Repeat(kib, 64), 0), "", func(r call.Result) bool { return r.OK() && beginning(r.Answer) }},
		{"a body that never ends, in chunks", forEver(ok200+"Transfer-Encoding: chunked\r\n\r\n", "400\r\n"+kib+"\r\n", 0), "", func(r call.Result) bool { return r.OK() && beginning(r.Answer) }},
		{"a body that drips", forEver(okEndless, "x", 100*time.Millisecond), "", func(r call.Result) bool {
			return r.OK() && strings.HasPrefix(r.Answer, "xxx") && r.Duration < 14*time.Second
		}},
		{"a body that breaks off", func(w io.Writer) {
			_, _ = io.WriteString(w, ok200+"Content-Length: 10\r\n\r\nabc")
			_ = w.(counting).Writer.(net.Conn).Close()
		}, "", func(r call.Result) bool { return r.OK() && r.Answer == "abc" }},
		{"a failure that never ends", forEver("HTTP/1.1 500 No\r\n\r\n", kib, 0), "http_500", func(r call.Result) bool { return beginning(r.Answer) }},
		{"a gzip bomb", write(fmt.Sprintf("%sContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", ok200, bomb.Len(), bomb.Bytes())), "", func(r call.Result) bool {
			return r.OK() && strings.HasPrefix(r.Answer, "\x1f") && !strings.Contains(r.Answer, "\x00")
		}},
		{"headers that never end", forEver(ok200, "X-More: "+strings.Repeat("x", 1000)+"\r\n", 0), call.FaultConnection, nil},
		{"one header that never ends", forEver(ok200+"X-More: ", strings.Repeat("x", 1000), 0), call.FaultConnection, nil},
		{"interim answers that never end", forEver("", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", 0), call.FaultConnection, nil},
		{"headers that drip", forEver(ok200, "X: y\r\n", 100*time.Millisecond), call.FaultTimeout, nil},
		{"silence", func(w io.Writer) { _, _ = w.(counting).Writer.(net.Conn).Read(make([]byte, 1)) }, call.FaultTimeout, nil},
		{"no HTTP", forEver("SSH-2.0-OpenSSH_9.9\r\n", "\r\n", 0), call.FaultConnection, nil},
		{"the end of the connection", func(w io.Writer) { _ = w.(counting).Writer.(net.Conn).Close() }, call.FaultConnection, nil},
		{"a reset", func(w io.Writer) {
			c := w.(counting).Writer.(*net.TCPConn)
			_ = c.SetLinger(0)
			_ = c.Close()
		}, call.FaultConnection, nil},
		{"another protocol", write("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"), "http_101", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newRaw(t, "127.0.0.1:0", c.answer)
			timeout := 15 * time.Second
			if c.reason == call.FaultTimeout {
				timeout = time.Second
			}
			cl := call.New(call.Config{Rule: address.Rule{Loopback: true}, Timeout: timeout})
			defer cl.Close()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r := post(t, cl, "http://"+s.Addr().String())
			runtime.ReadMemStats(&after)
			if r.Reason() != c.reason || c.want != nil && !c.want(r) {
				t.Errorf("%+v (%s)", r, r.Reason())
			}
			if r.Timeout() != (c.reason == call.FaultTimeout) {
				t.Errorf("a time-out: %v", r.Timeout())
			}
			// The memory of the whole process, in which other tests allocate too.
			if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
				t.Errorf("%d bytes of memory", n)
			}
			if n := s.written.Load(); n > 64<<20 {
				t.Errorf("it could write %d bytes", n)
			}
		})
	}
}

// A Retry-After in seconds, and as a date by the destination's own clock.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for head, want := range map[string]time.Duration{
		"Retry-After: 90": 90 * time.Second,
		"Date: Tue, 01 Jul 2025 10:00:00 GMT\r\nRetry-After: Tue, 01 Jul 2025 10:01:30 GMT": 90 * time.Second,
		"Retry-After: Tue, 01 Jul 2025 10:01:30 GMT":                                        0,
		"Retry-After: -1":                   0,
		"Retry-After: soon":                 0,
		"Retry-After: 99999999999999999999": 0,
		"X: y":                              0,
	} {
		s := newRaw(t, "127.0.0.1:0", write("HTTP/1.1 503 No\r\nContent-Length: 0\r\n"+head+"\r\n\r\n"))
		if r := post(t, client(t, call.Config{Rule: address.Rule{Loopback: true}}), "http://"+s.Addr().String()); r.Status != 503 || r.RetryAfter != want {
			t.Errorf("%s: %+v", head, r)
		}
	}
}

// A redirect is an answer. Nothing is sent to its target.
func TestRedirects(t *testing.T) {
	t.Parallel()
	other := newRaw(t, "127.0.0.1:0", write(okEmpty))
	c := client(t, call.Config{Rule: address.Rule{Loopback: true}})
	for _, to := range []string{"http://" + other.Addr().String(), "//" + other.Addr().String() + "/x", "/same", "http://169.254.169.254/latest/meta-data/", "file:///etc/passwd"} {
		for status := 300; status <= 308; status++ {
			s := newRaw(t, "127.0.0.1:0", write(fmt.Sprintf("HTTP/1.1 %d Elsewhere\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n", status, to)))
			if r := post(t, c, "http://"+s.Addr().String()); r.Status != status || r.OK() || r.Reason() != "redirect" {
				t.Errorf("%d to %s: %+v", status, to, r)
			}
		}
	}
	if n := other.accepted.Load(); n != 0 {
		t.Errorf("%d connections where redirects point", n)
	}
}

// dns is a name server. It gives the answers of a name in order and then repeats the last.
type dns struct {
	mu      sync.Mutex
	answers map[string][][]netip.Addr
}

func (d *dns) set(name string, answers ...[]string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	parsed := make([][]netip.Addr, len(answers))
	for i, a := range answers {
		for _, s := range a {
			parsed[i] = append(parsed[i], netip.MustParseAddr(s))
		}
	}
	d.answers[name+"."] = parsed
}

// next returns the addresses of the requested family. The questions for A and AAAA come
// together and use the same answer.
func (d *dns) next(name string, t dnsmessage.Type, asked map[string]int) ([]netip.Addr, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all, ok := d.answers[strings.ToLower(name)]
	if !ok {
		return nil, false
	}
	key := name + t.String()
	addrs := all[min(asked[key], len(all)-1)]
	asked[key]++
	var out []netip.Addr
	for _, a := range addrs {
		if a.Is4() == (t == dnsmessage.TypeA) {
			out = append(out, a)
		}
	}
	return out, true
}

func newDNS(t testing.TB) (*dns, *net.Resolver) {
	t.Helper()
	d := &dns{answers: map[string][][]netip.Addr{}}
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() {
		asked := map[string]int{}
		b := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			reply, err := d.reply(b[:n], asked)
			if err != nil {
				t.Errorf("answering a question: %v", err)
				return
			}
			_, _ = conn.WriteTo(reply, from)
		}
	})
	t.Cleanup(func() { _ = conn.Close(); served.Wait() })
	return d, &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func (d *dns) reply(question []byte, asked map[string]int) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(question); err != nil {
		return nil, err
	}
	q := m.Questions[0]
	m.Response, m.Authoritative, m.RecursionAvailable, m.Additionals = true, true, true, nil
	addrs, ok := d.next(q.Name.String(), q.Type, asked)
	if !ok {
		m.RCode = dnsmessage.RCodeNameError
	}
	for _, a := range addrs {
		r := dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class}}
		if a.Is4() {
			r.Body = &dnsmessage.AResource{A: a.As4()}
		} else {
			r.Body = &dnsmessage.AAAAResource{AAAA: a.As16()}
		}
		m.Answers = append(m.Answers, r)
	}
	return m.Pack()
}

// The address that a name resolves to at the dial decides, not an earlier one. The result
// contains the reason.
func TestNamesAreRefused(t *testing.T) {
	t.Parallel()
	names, resolver := newDNS(t)
	here := newRaw(t, "127.0.0.1:0", write(okEmpty))
	for name, c := range map[string]struct {
		addrs []string
		want  address.Reason
	}{
		"private":         {[]string{"10.1.2.3"}, address.ReasonPrivate},
		"private-v6":      {[]string{"fd12:3456::1"}, address.ReasonPrivate},
		"shared":          {[]string{"100.64.0.1"}, address.ReasonPrivate},
		"mapped":          {[]string{"::ffff:192.168.1.1"}, address.ReasonPrivate},
		"loopback":        {[]string{"127.0.0.1"}, address.ReasonLoopback},
		"loopback-v6":     {[]string{"::1"}, address.ReasonLoopback},
		"loopback-mapped": {[]string{"::ffff:127.0.0.1"}, address.ReasonLoopback},
		"unspecified":     {[]string{"0.0.0.0"}, address.ReasonLoopback},
		"unspecified-v6":  {[]string{"::"}, address.ReasonLoopback},
		"link":            {[]string{"169.254.7.7"}, address.ReasonLinkLocal},
		"link-v6":         {[]string{"fe80::1"}, address.ReasonLinkLocal},
		"metadata":        {[]string{"169.254.169.254"}, address.ReasonMetadata},
		"metadata-v6":     {[]string{"fd00:ec2::254"}, address.ReasonMetadata},
		"metadata-mapped": {[]string{"::ffff:169.254.169.254"}, address.ReasonMetadata},
		"nat64":           {[]string{"64:ff9b::7f00:1"}, address.ReasonTranslated},
		"6to4":            {[]string{"2002:7f00:1::"}, address.ReasonTranslated},
		"multicast":       {[]string{"224.0.0.251"}, address.ReasonReserved},
		"several":         {[]string{"127.0.0.1", "127.0.0.2"}, address.ReasonLoopback},
	} {
		host := name + ".example.org"
		names.set(host, c.addrs)
		want := call.FaultAddress + ":" + string(c.want)
		// A webhook's port is 443. A backend's port is the listener's.
		webhook := client(t, call.Config{Resolver: resolver})
		if r := post(t, webhook, "https://"+host+"/"); r.Reason() != want {
			t.Errorf("%s: %q, want %q", name, r.Reason(), want)
		}
		backend := client(t, call.Config{Rule: address.Rule{Backend: true, Loopback: true}, Resolver: resolver})
		if r := post(t, backend, "https://"+host+":"+here.port()+"/"); r.Reason() != want {
			t.Errorf("%s, any port: %q, want %q", name, r.Reason(), want)
		}
	}
	if r := post(t, client(t, call.Config{Resolver: resolver}), "https://nobody.example.org/"); r.Reason() != call.FaultName {
		t.Errorf("a name that is not there: %q", r.Reason())
	}
	if n := here.accepted.Load(); n != 0 {
		t.Errorf("%d connections to this machine", n)
	}
}

// An address with a forbidden text is refused before its name is resolved, with the same
// reason as at registration (internal/address).
func TestAddressesAreRefused(t *testing.T) {
	t.Parallel()
	resolver := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		t.Error("a name was asked for")
		return nil, errors.ErrUnsupported
	}}
	c := client(t, call.Config{Rule: address.Rule{Loopback: true}, Resolver: resolver})
	for url, want := range map[string]address.Reason{
		"http://hooks.example.org/":       address.ReasonNotHTTPS,
		"http://localhost:8081/":          address.ReasonNotHTTPS,
		"http://169.254.169.254/":         address.ReasonNotHTTPS,
		"https://u:p@hooks.example.org/":  address.ReasonCredentials,
		"https://127.0.0.1/":              address.ReasonIPLiteral,
		"https://0x7f.1/":                 address.ReasonIPLiteral,
		"https://[::ffff:7f00:1]/":        address.ReasonIPLiteral,
		"https://１２７.０.０.１/":              address.ReasonNotASCII,
		"https://%31%32%37.0.0.1/":        address.ReasonInvalidName,
		"https://erp.internal/":           address.ReasonLocalName,
		"https://hooks.example.org:8443/": address.ReasonPort,
		"https://hooks.example.org/#x":    address.ReasonFragment,
		"hooks.example.org":               address.ReasonNotAbsolute,
	} {
		if r := post(t, c, url); r.Fault != call.FaultAddress || r.Detail != string(want) || r.Answer != "" {
			t.Errorf("%s: %q, want %q", url, r.Reason(), want)
		}
	}
}

// A name resolves to an allowed address first and to another later. Only the first is
// called.
func TestRebinding(t *testing.T) {
	t.Parallel()
	names, resolver := newDNS(t)
	ca := newAuthority(t)
	cert := ca.issue(t, leaf{name: "hooks.example.org"})
	good := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close") // so that the next call dials
	}))
	good.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"http/1.1"}}
	good.StartTLS()
	defer good.Close()
	_, port, err := net.SplitHostPort(good.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	bad := newRaw(t, "127.0.0.9:"+port, write(okEmpty))
	url := "https://hooks.example.org:" + port + "/"
	own := client(t, call.Config{
		Rule: address.Rule{Backend: true, Networks: networks("127.0.0.1/32", "127.0.0.3/32")}, Roots: ca.roots, Resolver: resolver,
	})
	outside := call.FaultAddress + ":" + string(address.ReasonOutsideNetworks)

	names.set("hooks.example.org", []string{"127.0.0.1"}, []string{"127.0.0.9"})
	if r := post(t, own, url); !r.OK() {
		t.Errorf("before the rebinding: %+v", r)
	}
	if r := post(t, own, url); r.Reason() != outside {
		t.Errorf("after it: %+v", r)
	}
	// Of several addresses only the allowed ones are called, in any order, even when an allowed
	// one does not answer.
	for _, addrs := range [][]string{{"127.0.0.9", "127.0.0.1"}, {"127.0.0.1", "127.0.0.9"}} {
		names.set("hooks.example.org", addrs)
		if r := post(t, own, url); !r.OK() {
			t.Errorf("%v: %+v", addrs, r)
		}
	}
	names.set("hooks.example.org", []string{"127.0.0.3", "127.0.0.9"})
	if r := post(t, own, url); r.Reason() != call.FaultConnect && r.Reason() != outside {
		t.Errorf("nobody at the allowed address: %+v", r)
	}
	// The same for public addresses. 3ffe::/16 belonged to the 6bone and is no longer routed.
	// The rule allows it.
	public := client(t, call.Config{Rule: address.Rule{Backend: true}, Roots: ca.roots, Resolver: resolver, Timeout: time.Second})
	names.set("public.example.org", []string{"3ffe::1"}, []string{"127.0.0.9"})
	if r := post(t, public, "https://public.example.org:"+port+"/"); r.Fault == call.FaultAddress || r.OK() {
		t.Errorf("a public address: %+v", r)
	}
	if r := post(t, public, "https://public.example.org:"+port+"/"); r.Reason() != call.FaultAddress+":"+string(address.ReasonLoopback) {
		t.Errorf("a public address that became a private one: %+v", r)
	}
	if n := bad.accepted.Load(); n != 0 {
		t.Errorf("%d connections to an address that is refused", n)
	}
}

// authority issues certificates.
type authority struct {
	cert  *x509.Certificate
	key   *ecdsa.PrivateKey
	roots *x509.CertPool
}

type leaf struct {
	name               string
	notBefore, expires time.Duration // from now; 0 is an hour ago and in an hour
	usage              x509.ExtKeyUsage
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{roots: x509.NewCertPool()}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-1000 * time.Hour), NotAfter: time.Now().Add(1000 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.roots.AddCert(a.cert)
	return a
}

func (a *authority) issue(t testing.TB, l leaf) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if l.notBefore == 0 {
		l.notBefore = -time.Hour
	}
	if l.expires == 0 {
		l.expires = time.Hour
	}
	if l.usage == 0 {
		l.usage = x509.ExtKeyUsageServerAuth
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{l.name}, NotBefore: time.Now().Add(l.notBefore), NotAfter: time.Now().Add(l.expires),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{l.usage},
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Each fault of a certificate or of TLS has a name, and nothing is sent over such a
// connection.
func TestTLS(t *testing.T) {
	t.Parallel()
	names, resolver := newDNS(t)
	names.set("hooks.example.org", []string{"127.0.0.1"})
	ca, stranger := newAuthority(t), newAuthority(t)
	good := leaf{name: "hooks.example.org"}
	var served atomic.Int64
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served.Add(1) })
	plain := httptest.NewServer(handler)
	defer plain.Close()
	closing, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closing.Close() }()
	go func() {
		for {
			c, err := closing.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 4096))
			_ = c.Close()
		}
	}()
	server := func(cfg *tls.Config) string {
		s := httptest.NewUnstartedServer(handler)
		s.EnableHTTP2 = cfg.MaxVersion == 0
		s.TLS = cfg
		s.Config.ErrorLog = log.New(io.Discard, "", 0) // what is refused
		s.StartTLS()
		t.Cleanup(s.Close)
		return s.Listener.Addr().String()
	}
	with := func(a *authority, l leaf) string {
		return server(&tls.Config{Certificates: []tls.Certificate{a.issue(t, l)}})
	}
	self := &authority{}
	self.key, self.cert = stranger.key, &x509.Certificate{SerialNumber: big.NewInt(3), Subject: pkix.Name{CommonName: "self"}}
	refused := map[string]struct{ at, want string }{
		"expired":             {with(ca, leaf{name: good.name, notBefore: -48 * time.Hour, expires: -time.Minute}), "tls:" + call.TLSExpired},
		"not yet valid":       {with(ca, leaf{name: good.name, notBefore: time.Hour, expires: 2 * time.Hour}), "tls:" + call.TLSNotYetValid},
		"another authority":   {with(stranger, good), "tls:" + call.TLSUnknownAuthority},
		"self-signed":         {with(self, good), "tls:" + call.TLSUnknownAuthority},
		"another host":        {with(ca, leaf{name: "other.example.org"}), "tls:" + call.TLSWrongHost},
		"for clients only":    {with(ca, leaf{name: good.name, usage: x509.ExtKeyUsageClientAuth}), "tls:" + call.TLSOther},
		"TLS 1.1":             {server(&tls.Config{Certificates: []tls.Certificate{ca.issue(t, good)}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}), "tls:" + call.TLSOther},
		"wants one of us":     {server(&tls.Config{Certificates: []tls.Certificate{ca.issue(t, good)}, ClientAuth: tls.RequireAnyClientCert, MaxVersion: tls.VersionTLS12}), "tls:" + call.TLSOther},
		"no TLS":              {plain.Listener.Addr().String(), "tls:" + call.TLSOther},
		"closes in the midst": {closing.Addr().String(), call.FaultConnection},
	}
	c := client(t, call.Config{Rule: address.Rule{Backend: true, Networks: networks("127.0.0.0/8")}, Roots: ca.roots, Resolver: resolver})
	to := func(at string) string { return "https://hooks.example.org" + at[strings.LastIndexByte(at, ':'):] + "/" }
	for name, s := range refused {
		if r := post(t, c, to(s.at)); r.Reason() != s.want {
			t.Errorf("%s: %q, want %q", name, r.Reason(), s.want)
		}
	}
	if n := served.Load(); n != 0 {
		t.Errorf("%d requests were served over connections that ought not to be", n)
	}
	for name, at := range map[string]string{
		"TLS 1.2":    server(&tls.Config{Certificates: []tls.Certificate{ca.issue(t, good)}, MaxVersion: tls.VersionTLS12}),
		"HTTP/2":     with(ca, good),
		"any prefix": with(ca, leaf{name: "*.example.org"}),
	} {
		if r := post(t, c, to(at)); !r.OK() {
			t.Errorf("%s: %+v", name, r)
		}
		if r := post(t, c, strings.Replace(to(at), "org:", "org.:", 1)); !r.OK() && r.Fault != call.FaultName {
			t.Errorf("%s, the name with a dot at its end: %+v", name, r)
		}
	}
	if r := post(t, client(t, call.Config{Rule: address.Rule{Backend: true, Networks: networks("10.0.0.0/8")}, Roots: ca.roots, Resolver: resolver}), to(plain.Listener.Addr().String())); r.Reason() != call.FaultAddress+":"+string(address.ReasonOutsideNetworks) {
		t.Errorf("outside the agency's networks: %+v", r)
	}
	s := httptest.NewServer(nil)
	s.Close()
	if r := post(t, client(t, call.Config{Rule: address.Rule{Loopback: true}}), s.URL); r.Reason() != call.FaultConnect {
		t.Errorf("nobody listens: %+v", r)
	}
}

// As many connections are kept as were under way at once, also when many endpoints share a
// host.
func TestConnectionsAreReused(t *testing.T) {
	t.Parallel()
	const endpoints, atOnce, rounds = 20, 64, 3
	var opened atomic.Int64
	var arrived sync.WaitGroup
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived.Done()
		arrived.Wait() // so that each has a connection of its own
		_, _ = io.WriteString(w, `{"received":true}`)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	c := client(t, call.Config{Rule: address.Rule{Loopback: true}})
	for range rounds {
		arrived.Add(endpoints * atOnce)
		var calls sync.WaitGroup
		for i := range endpoints * atOnce {
			calls.Go(func() {
				if r := post(t, c, fmt.Sprintf("%s/hook/%d", s.URL, i%endpoints)); !r.OK() {
					t.Errorf("%+v", r)
				}
			})
		}
		calls.Wait()
		if t.Failed() {
			return
		}
	}
	if n := opened.Load(); n != endpoints*atOnce {
		t.Errorf("%d connections for %d rounds of %d calls at once", n, rounds, endpoints*atOnce)
	}
}
