package shop

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certificateLife is the longest validity that browsers accept.
const certificateLife = 397 * 24 * time.Hour

// loadCertificate returns the self-signed certificate for localhost, 127.0.0.1 and
// ::1 that dir keeps, so that a developer has to trust it only once. It makes a
// certificate when there is none and when the old one ends within a month.
func loadCertificate(dir string, now time.Time) (tls.Certificate, error) {
	path := filepath.Join(dir, "shop.pem")
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return tls.Certificate{}, fmt.Errorf("reading the shop's certificate: %w", err)
	}
	if err == nil {
		kept, err := tls.X509KeyPair(text, text)
		if err == nil && now.Add(30*24*time.Hour).Before(kept.Leaf.NotAfter) {
			return kept, nil
		}
	}
	if text, err = newCertificate(now); err != nil {
		return tls.Certificate{}, fmt.Errorf("making the shop's certificate: %w", err)
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return tls.Certificate{}, fmt.Errorf("making the shop's folder: %w", err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return tls.Certificate{}, fmt.Errorf("keeping the shop's certificate: %w", err)
	}
	return tls.X509KeyPair(text, text)
}

// newCertificate returns a certificate and its key.
func newCertificate(now time.Time) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	const serialBits = 120
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return nil, err
	}
	about := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "Quittance demo shop"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		DNSNames:              []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return append(
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...), nil
}
