package provider

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"quittance/internal/secret"
)

// Registration describes a provider to the service.
type Registration struct {
	// Name is the provider's short name and the scheme of its address.
	Name    string
	Channel Channel
	// Schemes are further schemes of its address.
	Schemes []string
	// Form shows the form of its address and what the secret is, for people.
	Form string
	// New makes the provider of an installation. Its error names the part of the address
	// that is wrong.
	New func(Settings) (Provider, error)
	// Reports reads the body of the provider's call with delivery reports: at least one.
	// Errors wrap ErrReport. Nil for a provider that does not report.
	Reports func(body []byte) ([]Report, error)
}

// Settings are an installation's settings of one provider.
type Settings struct {
	// Address has the provider's name as its scheme, the host of its API, and its further
	// settings as parameters of the query.
	Address *url.URL
	// Secret is the key or the password. It is never in the address.
	Secret secret.Text
	// Plain allows http in place of https. Developer mode only.
	Plain bool
	// Now is the service's time, for tokens.
	Now func() time.Time
	// Timeout of one call; 10 s when zero.
	Timeout time.Duration

	read []string
}

// DefaultTimeout is the time that a provider has for its answer.
const DefaultTimeout = 10 * time.Second

// Text returns a parameter of the address.
func (s *Settings) Text(name string) string {
	s.read = append(s.read, name)
	return s.Address.Query().Get(name)
}

// Roots returns the authorities of the parameter ca_file, a PEM file; nil without it.
func (s *Settings) Roots() (*x509.CertPool, error) {
	name := s.Text("ca_file")
	if name == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("ca_file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("ca_file: %s has no certificate in PEM", name)
	}
	return pool, nil
}

// TLS returns the settings of TLS to the address's host.
func (s *Settings) TLS() (*tls.Config, error) {
	roots, err := s.Roots()
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: s.Address.Hostname()}, err
}

// Unknown returns an error that names the parameters that nobody has read. Call it after the
// last Text.
func (s *Settings) Unknown() error {
	var errs []error
	for name := range s.Address.Query() {
		if !slices.Contains(s.read, name) {
			errs = append(errs, fmt.Errorf("%s: is no setting of %s; it has %s", name, s.Address.Scheme, strings.Join(s.read, ", ")))
		}
	}
	return errors.Join(errs...)
}

// BaseURL returns the address of an HTTP API: https, or http where the scheme ends in +http
// and Plain allows it.
func (s *Settings) BaseURL() (string, error) {
	scheme := "https"
	if strings.HasSuffix(s.Address.Scheme, plainSuffix) {
		if !s.Plain {
			return "", errors.New("http is for developers' installations only: the messages hold sign-in codes")
		}
		scheme = "http"
	}
	if s.Address.Host == "" {
		return "", errors.New("the host is missing")
	}
	return (&url.URL{Scheme: scheme, Host: s.Address.Host, Path: strings.TrimSuffix(s.Address.Path, "/")}).String(), nil
}

const plainSuffix = "+http"

// IsLoopback reports whether the address's host is this machine.
func (s *Settings) IsLoopback() bool {
	ip := net.ParseIP(s.Address.Hostname())
	return s.Address.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// Table is the registrations of providers.
type Table []Registration

// Reporting returns the registration of a provider that reports, by its name.
func (t Table) Reporting(name string) (Registration, bool) {
	i := slices.IndexFunc(t, func(r Registration) bool { return r.Name == name && r.Reports != nil })
	if i < 0 {
		return Registration{}, false
	}
	return t[i], true
}

// Forms describes the addresses of a channel's providers.
func (t Table) Forms(channel Channel) string {
	var forms []string
	for _, r := range t {
		if r.Channel == channel {
			forms = append(forms, r.Form)
		}
	}
	return strings.Join(forms, "; ")
}

// Open makes the provider that an address names. Errors name the part that is wrong and
// never hold the secret.
func (t Table) Open(channel Channel, address string, s Settings) (Provider, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" {
		return nil, fmt.Errorf("must be an address such as %s", t.Forms(channel))
	}
	if _, has := u.User.Password(); has {
		return nil, errors.New("the address must have no password; it is a setting of its own")
	}
	s.Address = u
	if s.Timeout == 0 {
		s.Timeout = DefaultTimeout
	}
	for _, r := range t {
		if r.Channel == channel && (r.Name == u.Scheme || slices.Contains(r.Schemes, u.Scheme)) {
			return r.New(s)
		}
	}
	return nil, fmt.Errorf("no provider of %s is called %q; the forms are: %s", channel, u.Scheme, t.Forms(channel))
}
