package proxy

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"quittance/dev/stack/program"
	"quittance/test/harness"
	"quittance/test/servers"
)

// limited starts nginx with the example before a server that answers everything. The header
// X-Client names the client, as a balancer in front of nginx would.
func limited(t *testing.T, values map[string]string) *front {
	t.Helper()
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/live") {
			w.Header().Set("X-Accel-Buffering", "no") // as the ingress does
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}))
	t.Cleanup(behind.Close)
	ports := harness.Ports(t, 2)
	f := &front{dir: servers.Dir(t), listen: strings.TrimPrefix(behind.URL, "http://"), https: program.Local(ports[0]), plain: program.Local(ports[1])}
	f.certificate(t)
	cmd := nginxWith(f, t, "\tset_real_ip_from 127.0.0.0/8;\n\treal_ip_header X-Client;\n", values)
	harness.Launch(t, "nginx", cmd, f.path("output.log"))
	visitor := f.from("127.0.0.1")
	harness.Eventually(t, "reaching nginx", func() error {
		_, err := f.visit(t, visitor, "192.0.2.1", "/")
		return err
	})
	return f
}

// visit sends a request of a client and returns the status.
func (f *front) visit(t *testing.T, as *http.Client, client, path string) (int, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+f.https+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Client", client)
	resp, err := as.Do(req)
	if err != nil {
		return 0, err
	}
	if !strings.HasSuffix(path, "/live") || resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return resp.StatusCode, nil
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp.StatusCode, nil
}

// nginx counts the calls of an address, or of a /64, and of a /24 or a /48. Bytes of addresses
// that are no text, such as 0 and 10, count like others.
func TestNginxLimitsNetworks(t *testing.T) {
	if testing.Short() {
		t.Skip("starts nginx")
	}
	t.Parallel()
	f := limited(t, map[string]string{
		"rate=400r/s": "rate=1r/m", "rate=800r/s": "rate=1r/m", "burst=2000 nodelay": "burst=9 nodelay", "burst=4000 nodelay": "burst=29 nodelay",
	})
	as := f.from("127.0.0.1")
	for name, c := range map[string]struct {
		client func(n int) string
		want   int
		other  string
	}{
		"address":       {func(int) string { return "198.51.100.10" }, 10, "198.51.100.11"},
		"/24":           {func(n int) string { return fmt.Sprintf("10.10.10.%d", n) }, 30, "10.10.11.1"},
		"/64":           {func(n int) string { return fmt.Sprintf("2001:db8:1:2::%x", n) }, 10, "2001:db8:1:3::1"},
		"/48":           {func(n int) string { return fmt.Sprintf("2001:db8:2:%x::1", n) }, 30, "2001:db8:3::1"},
		"/48 with 0x0a": {func(n int) string { return fmt.Sprintf("2001:db8:a0a:%x::1", n) }, 30, "2001:db8:a0b::1"},
	} {
		got := 0
		for n := range 50 {
			status, err := f.visit(t, as, c.client(n), "/")
			if err != nil {
				t.Fatal(err)
			}
			if status == http.StatusOK {
				got++
			} else if status != http.StatusTooManyRequests {
				t.Fatalf("%s: answered %d", name, status)
			}
		}
		if got < c.want || got > c.want+1 { // one more after a minute
			t.Errorf("%s: %d calls get through, want %d", name, got, c.want)
		}
		if status, err := f.visit(t, as, c.other, "/"); err != nil || status != http.StatusOK {
			t.Errorf("%s: the neighbour is answered %d, %v", name, status, err)
		}
	}
	for n := range 50 { // an operator's reports
		if status, err := f.visit(t, as, "203.0.113.9", "/callbacks/mtn/x/y/z"); err != nil || status != http.StatusOK {
			t.Fatalf("report %d is answered %d, %v", n, status, err)
		}
	}
}

// A client has so many calls open at once, and a /48 has as many as two.
func TestNginxLimitsOpenCalls(t *testing.T) {
	if testing.Short() {
		t.Skip("starts nginx")
	}
	t.Parallel()
	f := limited(t, map[string]string{"quittance_client_open 1200;\n\t\tlimit_conn quittance_site_open   2400": "quittance_client_open 3;\n\t\tlimit_conn quittance_site_open 5"})
	as := f.from("127.0.0.1")
	open := func(client func(n int) string) (n int) {
		for i := range 8 {
			status, err := f.visit(t, as, client(i), "/live")
			if err != nil {
				t.Fatal(err)
			}
			if status == http.StatusOK {
				n++
			}
		}
		return n
	}
	if n := open(func(int) string { return "2001:db8:1::1" }); n != 3 {
		t.Errorf("a client has %d calls open, want 3", n)
	}
	if n := open(func(n int) string { return fmt.Sprintf("2001:db8:2:%x::1", n) }); n != 5 {
		t.Errorf("a /48 has %d calls open, want 5", n)
	}
}

// A client that sends its header or its body a byte now and then is cut off, and what is too
// large is refused before the ingress sees it.
func TestNginxBoundsRequests(t *testing.T) {
	if testing.Short() {
		t.Skip("starts nginx")
	}
	t.Parallel()
	f := limited(t, map[string]string{"client_header_timeout 5s": "client_header_timeout 1s"})
	f.bounds(t, 9<<10)
	f.dripsTo(t, f.plain)
}

// Caddy has no limits of clients without a module. Sizes and times it bounds as nginx does: of headers, of
// bodies, and of clients that send a byte now and then, over TLS and on the port that redirects.
func TestCaddyBoundsRequests(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Caddy")
	}
	t.Parallel()
	var whole atomic.Int32 // bodies without a length that came to their end
	behind := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil && r.ContentLength < 0 {
			whole.Add(1)
		}
	}))
	t.Cleanup(behind.Close)
	ports := harness.Ports(t, 2)
	f := &front{dir: servers.Dir(t), listen: strings.TrimPrefix(behind.URL, "http://"), https: program.Local(ports[0]), plain: program.Local(ports[1])}
	f.certificate(t)
	harness.Launch(t, "Caddy", caddyWith(f, t, map[string]string{"read_header 10s": "read_header 1s", "read_body 15s": "read_body 1s"}), f.path("output.log"))
	harness.Eventually(t, "reaching Caddy", func() error {
		_, err := f.visit(t, f.from("127.0.0.1"), "192.0.2.1", "/")
		return err
	})
	f.bounds(t, 40<<10)
	f.dripsTo(t, f.plain)
	f.dripsTo(t, f.https)
	f.hangsBody(t)
	if whole.Load() > 0 {
		t.Error("a body that was cut off is passed on as a whole one")
	}
}

// hangsBody sends a body that never ends over TLS, and fails if the proxy does not give up.
func (f *front) hangsBody(t *testing.T) {
	t.Helper()
	pipe, feed := io.Pipe()
	defer func() { _ = feed.Close() }()
	go func() { _, _ = feed.Write([]byte("x")) }() // and no more; ends with the pipe
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+f.https+"/", pipe)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := f.from("127.0.0.1").Do(req); err == nil { // Caddy answers with an empty page
		_ = resp.Body.Close()
	}
	if ctx.Err() != nil {
		t.Error("a client that never ends its body keeps its connection")
	}
}

// bounds checks that a body of 65 KiB and a header of that size are refused.
func (f *front) bounds(t *testing.T, header int) {
	t.Helper()
	as := f.from("127.0.0.1")
	status := func(change func(*http.Request)) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+f.https+"/", strings.NewReader(strings.Repeat("x", 65<<10)))
		if err != nil {
			t.Fatal(err)
		}
		change(req)
		resp, err := as.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	if got := status(func(*http.Request) {}); got != http.StatusRequestEntityTooLarge {
		t.Errorf("a body of 65 KiB is answered %d", got)
	}
	if got := status(func(r *http.Request) {
		r.Body, r.ContentLength = nil, 0
		r.Header.Set("X-Long", strings.Repeat("x", header))
	}); got != http.StatusBadRequest && got != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a header of %d bytes is answered %d", header, got)
	}
}

// dripsTo opens a connection and never ends its header.
func (f *front) dripsTo(t *testing.T, address string) {
	t.Helper()
	slow, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if address == f.https {
		slow = tls.Client(slow, &tls.Config{RootCAs: f.roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12})
	}
	defer func() { _ = slow.Close() }()
	f.drips(t, slow)
}

// drips sends a header a byte at a time, and fails if the proxy does not hang up.
func (f *front) drips(t *testing.T, slow interface{ Write([]byte) (int, error) }) {
	t.Helper()
	for _, b := range []byte("GET / HTTP/1.1\r\nHost: pay.example\r\nX-Slow: " + strings.Repeat("x", 60)) {
		if _, err := slow.Write([]byte{b}); err != nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Error("a client that never ends its header keeps its connection")
}
