// Package transport protects the connections to the servers of an installation: the files
// of TLS, and which hosts are on this machine.
package transport

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
)

// Files name the PEM files of TLS to a server. Empty names are allowed.
type Files struct {
	// CA has the certificates of the authorities that sign the server's certificate; the
	// authorities of the system when empty.
	CA string
	// Cert and Key are this client's certificate, with its chain, and its private key.
	Cert, Key string
}

// Given reports whether a file is named.
func (f Files) Given() bool { return f != Files{} }

// Config returns a configuration that verifies the server's certificate and name. flag is
// the beginning of the names of the flags, for errors. The client's certificate is read
// again at each handshake, so that a renewed one needs no restart.
func (f Files) Config(flag string) (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.CA != "" {
		pem, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, fmt.Errorf("--%s-ca-file: %w", flag, err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--%s-ca-file: %s has no certificate in PEM form", flag, f.CA)
		}
	}
	switch {
	case f.Cert == "" && f.Key == "":
		return cfg, nil
	case f.Key == "":
		return nil, fmt.Errorf("--%s-key-file is not set: --%[1]s-cert-file needs its private key", flag)
	case f.Cert == "":
		return nil, fmt.Errorf("--%s-cert-file is not set: --%[1]s-key-file needs its certificate", flag)
	}
	load := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, fmt.Errorf("--%[1]s-cert-file %[2]s with --%[1]s-key-file %[3]s: %[4]w", flag, f.Cert, f.Key, err)
		}
		return &pair, nil
	}
	if _, err := load(); err != nil {
		return nil, err
	}
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	return cfg, nil
}

// Local reports whether a host is this machine: a loopback address, localhost, or the
// folder of a Unix socket. The host may have a port.
func Local(host string) bool {
	if strings.HasPrefix(host, "/") || strings.HasPrefix(host, "@") {
		return true
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// Protection describes the connection to a server.
type Protection struct {
	// How is for people, such as "TLS" or "plaintext".
	How string
	// Exposed means that the server is another machine and that the network between could
	// read or change what is sent: there is no TLS, or TLS does not verify the server.
	Exposed bool
}

// Of returns the protection of connections to hosts with a configuration, which is nil for
// plaintext.
func Of(cfg *tls.Config, hosts ...string) Protection {
	p := Protection{How: "TLS"}
	switch {
	case cfg == nil:
		p.How, p.Exposed = "plaintext", true
	case cfg.InsecureSkipVerify && cfg.VerifyPeerCertificate == nil && cfg.VerifyConnection == nil:
		p.How, p.Exposed = "TLS that does not verify the server", true
	case cfg.GetClientCertificate != nil || len(cfg.Certificates) > 0:
		p.How = "TLS with a client certificate"
	}
	if !p.Exposed {
		return p
	}
	for _, host := range hosts {
		if !Local(host) {
			p.How += " to another machine"
			return p
		}
	}
	return Protection{How: p.How + " on this machine"}
}
