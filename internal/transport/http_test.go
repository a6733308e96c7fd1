package transport_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"quittance/internal/address"
	"quittance/internal/call"
	"quittance/internal/connector"
	"quittance/internal/connector/mtn"
	"quittance/internal/erp"
	"quittance/internal/provider"
	"quittance/internal/provider/infobip"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/internal/transport"
	"quittance/schemas"
)

// TestMain lets this process trust the certificate of httptest, as it trusts those of operators.
func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	dir, err := os.MkdirTemp("", "authorities")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		panic(err)
	}
	if err := os.Setenv("SSL_CERT_FILE", file); err != nil { // before the first test: the system's authorities are read once
		panic(err)
	}
	return m.Run()
}

// A balancer forgets the connections that it has: both sides keep theirs, and no byte passes any
// more. Each later call on such a connection of HTTP/2 timed out, for minutes, and each payment that
// was asked of an operator meanwhile was uncertain. Every kind of call recovers within 15 s.
func TestForgottenConnections(t *testing.T) {
	t.Parallel()
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	var recovering sync.WaitGroup
	for name, dial := range map[string]func(t *testing.T, at string) func(context.Context) error{
		"operator": func(t *testing.T, at string) func(context.Context) error {
			c, err := mtn.New(connector.Config{Now: time.Now})
			if err != nil {
				t.Fatal(err)
			}
			account := mtn.Account{BaseURL: connector.BaseURL(at), TargetEnvironment: "sandbox", SubscriptionKey: "key", APIUser: "user", APIKey: "key"}
			return func(ctx context.Context) error {
				_, err := c.Enquire(ctx, account, connector.Reference{ID: "0198"})
				return err
			}
		},
		"provider of messages": func(t *testing.T, at string) func(context.Context) error {
			to, err := url.Parse("infobip://" + strings.TrimPrefix(at, "https://") + "?sender=Impots")
			if err != nil {
				t.Fatal(err)
			}
			p, err := infobip.New(provider.Settings{Address: to, Secret: secret.NewText("key"), Now: time.Now, Timeout: provider.DefaultTimeout})
			if err != nil {
				t.Fatal(err)
			}
			return p.Check
		},
		"ERP": func(t *testing.T, at string) func(context.Context) error {
			c := erp.New(erp.Config{})
			s := registry.ERPSettings{AgencyID: "impots", BaseURL: at, Networks: loopback, Auth: registry.ERPAuth{Type: registry.AuthBearer, Secret: secret.NewText("key")}}
			return func(ctx context.Context) error { return answered(c.Health(ctx, s)) }
		},
		"webhook": func(t *testing.T, at string) func(context.Context) error {
			c := call.New(call.Config{Rule: address.Rule{Backend: true, Networks: loopback}})
			t.Cleanup(c.Close)
			return func(ctx context.Context) error { return answered(c.Post(ctx, at, http.Header{}, []byte("{}"))) }
		},
		"schema registry": func(t *testing.T, at string) func(context.Context) error {
			c, err := schemas.NewClient(at, transport.HTTP(&net.Dialer{}))
			if err != nil {
				t.Fatal(err)
			}
			return func(ctx context.Context) error { _, err := c.ID(ctx, "subject", `"string"`, false); return err }
		},
	} {
		r := newRelay(t, everyAnswer(t))
		ask := dial(t, "https://"+r.Addr().String())
		if err := ask(t.Context()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r.forget()
		recovering.Go(func() { recoversWithin(t, 15*time.Second, name, ask) })
	}
	recovering.Wait()
}

func recoversWithin(t *testing.T, d time.Duration, name string, ask func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	for begun := time.Now(); ; {
		err := ask(ctx)
		if err == nil {
			t.Logf("%s: recovered after %v", name, time.Since(begun).Round(100*time.Millisecond))
			return
		}
		if ctx.Err() != nil {
			t.Errorf("%s: still failing after %v: %v", name, d, err)
			return
		}
	}
}

func answered(r call.Result) error {
	if !r.OK() {
		return fmt.Errorf("%s", r.Reason())
	}
	return nil
}

// everyAnswer serves HTTP/2 with an answer that each kind of caller accepts.
func everyAnswer(t *testing.T) string {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("the call came by %s", r.Proto)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token":"t","expires_in":3600,"status":"PENDING","subject":"subject","id":1,"version":1}`)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// relay passes connections on until it forgets them. Then it keeps them open, and drops what
// comes. Later connections are passed on again.
type relay struct {
	net.Listener
	mu    sync.Mutex
	flows map[net.Conn]*bool
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: l, flows: map[net.Conn]*bool{}}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			onward, err := net.Dial("tcp", to)
			if err != nil {
				t.Error(err)
				return
			}
			forgotten := new(bool)
			r.mu.Lock()
			r.flows[from], r.flows[onward] = forgotten, forgotten
			r.mu.Unlock()
			open.Go(func() { r.pass(onward, from, forgotten) })
			open.Go(func() { r.pass(from, onward, forgotten) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		r.mu.Lock()
		for c := range r.flows {
			_ = c.Close()
		}
		r.mu.Unlock()
		open.Wait()
	})
	return r
}

func (r *relay) pass(to, from net.Conn, forgotten *bool) {
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		r.mu.Lock()
		drop := *forgotten
		r.mu.Unlock()
		if drop && err == nil {
			continue
		}
		if n > 0 {
			_, _ = to.Write(buffer[:n])
		}
		if err != nil {
			if !drop {
				_ = to.Close()
			}
			return
		}
	}
}

func (r *relay) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, forgotten := range r.flows {
		*forgotten = true
	}
}

// An idle connection of HTTP/1.1 is probed by the kernel.
func TestKeepAlive(t *testing.T) {
	t.Parallel()
	d := &net.Dialer{}
	transport.HTTP(d)
	if k := d.KeepAliveConfig; !k.Enable || k.Idle+time.Duration(k.Count)*k.Interval > 15*time.Second {
		t.Errorf("a dead connection stays for longer than 15 s: %+v", k)
	}
}

// Lint forbids Go's default transport; this test forbids others that are not probed.
func TestOnePlaceMakesTransports(t *testing.T) {
	t.Parallel()
	root := os.DirFS("../..")
	for _, dir := range []string{"checkout", "cmd", "ingress", "internal", "processors", "reconciliation", "schemas", "sinks"} {
		if err := fs.WalkDir(root, dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || path == "internal/transport/http.go" {
				return err
			}
			text, err := fs.ReadFile(root, path)
			if bytes.Contains(text, []byte("http.Transport{")) {
				t.Errorf("%s makes a transport: use transport.HTTP, whose connections are probed", path)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
}
