package simulator_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"net"
	"net/http"
	"os"
	"regexp"
	"testing"
	"time"

	"quittance/dev/simulator"
	"quittance/test/servers"
)

// demoField returns a field in base64 of the demo agency's account at the switch.
func demoField(t *testing.T, name string) []byte {
	t.Helper()
	file, err := os.ReadFile("../../deploy/dev/registry.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(name + `: (\S+)\n`).FindSubmatch(file)
	if m == nil {
		t.Fatalf("the demo registry has no %s", name)
	}
	text, err := base64.StdEncoding.DecodeString(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The switch on its own port knows its clients by their certificates: that of the demo agency, and nobody without one.
func TestSwitchWithCertificates(t *testing.T) {
	t.Parallel()
	s, err := simulator.New(simulator.Config{Now: time.Now, Log: servers.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.ServeSwitch(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	chain := demoField(t, "certificate")
	pair, err := tls.X509KeyPair(chain, demoField(t, "private_key"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(chain)
	get := func(certificates ...tls.Certificate) (int, error) {
		via := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: certificates, MinVersion: tls.VersionTLS12}}
		defer via.CloseIdleConnections()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+l.Addr().String()+"/alias/x", http.NoBody)
		if err != nil {
			return 0, err
		}
		resp, err := via.RoundTrip(req)
		if err != nil {
			return 0, err
		}
		return resp.StatusCode, resp.Body.Close()
	}
	if status, err := get(pair); err != nil || status != http.StatusUnauthorized { // a client without a token
		t.Errorf("with the certificate: %d, %v", status, err)
	}
	if status, err := get(); err == nil {
		t.Errorf("without a certificate: %d", status)
	}
}
