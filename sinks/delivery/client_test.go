package delivery_test

import (
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"quittance/sinks/delivery"
)

// What a receiver may do to us, and what we make of it.
func TestClient(t *testing.T) {
	t.Parallel()
	endless := func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, strings.Repeat("é", 4096)); err != nil {
				return
			}
		}
	}
	gzip := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = io.WriteString(w, "\x1f\x8bno gzip\x00")
	}
	reset := func(w http.ResponseWriter, _ *http.Request) {
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = c.Close()
		}
	}
	after := func(w http.ResponseWriter, _ *http.Request) {
		now := time.Now().UTC()
		w.Header().Set("Date", now.Format(http.TimeFormat))
		w.Header().Set("Retry-After", now.Add(90*time.Second).Format(http.TimeFormat))
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	client := delivery.NewClient(delivery.Rule{Developer: true}, nil)
	defer client.Close()
	for name, c := range map[string]struct {
		h    http.HandlerFunc
		want func(delivery.Result) bool
	}{
		"endless body": {endless, func(r delivery.Result) bool { return r.OK() && len(r.Answer) <= 1024 && len(r.Answer) > 1000 }},
		"gzip": {gzip, func(r delivery.Result) bool {
			return r.OK() && strings.Contains(r.Answer, "no gzip") && !strings.Contains(r.Answer, "\x00")
		}},
		"reset":       {reset, func(r delivery.Result) bool { return r.Fault == delivery.FaultConnection }},
		"retry-after": {after, func(r delivery.Result) bool { return r.Status == 503 && r.RetryAfter == 90*time.Second }},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(c.h)
			defer s.Close()
			if r := client.Post(t.Context(), s.URL, http.Header{}, []byte("{}")); !c.want(r) {
				t.Errorf("%+v", r)
			}
		})
	}
	s := httptest.NewServer(nil)
	s.Close()
	if r := client.Post(t.Context(), s.URL, http.Header{}, nil); r.Fault != delivery.FaultConnect {
		t.Errorf("nobody listens: %+v", r)
	}
}

// An agency's own networks, and nothing else; certificates count.
func TestClientNetworks(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	post := func(rule delivery.Rule, roots *x509.CertPool, url string) delivery.Result {
		c := delivery.NewClient(rule, roots)
		defer c.Close()
		return c.Post(t.Context(), url, http.Header{}, nil)
	}
	own := delivery.Rule{AnyPort: true, Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	other := delivery.Rule{AnyPort: true, Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	if r := post(own, roots, s.URL); !r.OK() {
		t.Errorf("in the agency's networks: %+v", r)
	}
	if r := post(own, x509.NewCertPool(), s.URL); r.Fault != delivery.FaultTLS {
		t.Errorf("unknown authority: %+v", r)
	}
	if r := post(other, roots, s.URL); r.Fault != delivery.FaultAddress {
		t.Errorf("outside the agency's networks: %+v", r)
	}
	if r := post(own, roots, strings.Replace(s.URL, "https", "http", 1)); r.Fault != delivery.FaultAddress {
		t.Errorf("plain http: %+v", r)
	}
	// A public name that resolves to loopback, as after a rebind: the dial refuses.
	if r := post(delivery.Rule{AnyPort: true}, roots, "https://localtest.example.invalid"+s.URL[strings.LastIndexByte(s.URL, ':'):]); r.Fault == "" {
		t.Errorf("unresolvable name: %+v", r)
	}
}
