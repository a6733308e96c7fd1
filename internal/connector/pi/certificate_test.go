package pi_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"quittance/internal/connector"
	"quittance/internal/connector/pi"
	"quittance/test/connectors"
)

// authority issues certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// issue makes a certificate that ends at a time; nil makes an authority that signs itself.
func issue(t *testing.T, by *authority, name string, ends time.Time) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour * 48), NotAfter: ends,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	parent := by
	if by == nil {
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage, c.ExtKeyUsage = true, true, x509.KeyUsageCertSign, nil
		parent = &authority{c, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent.certificate, &key.PublicKey, parent.key)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return authority{c, key}
}

func (a authority) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw}))
}

func (a authority) keyPEM(t *testing.T) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func inBase64(texts ...string) string {
	return base64.StdEncoding.EncodeToString([]byte(strings.Join(texts, "")))
}

// The switch knows its clients by their certificates. An account whose certificate it refuses is closed, nothing is sent, and
// no error tells the key.
func TestClientCertificate(t *testing.T) {
	t.Parallel()
	later := time.Now().Add(time.Hour)
	ours, others := issue(t, nil, "switch", later), issue(t, nil, "another", later)
	server, own, ended, foreign := issue(t, &ours, "server", later), issue(t, &ours, "agency", later), issue(t, &ours, "agency", time.Now().Add(-time.Hour)), issue(t, &others, "agency", later)

	s := payoutStandin(t)
	served := httptest.NewUnstartedServer(s)
	clients := x509.NewCertPool()
	clients.AddCert(ours.certificate)
	pair, err := tls.X509KeyPair([]byte(server.pem()), []byte(server.keyPEM(t)))
	if err != nil {
		t.Fatal(err)
	}
	served.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
	served.StartTLS()
	t.Cleanup(served.Close)
	c, err := pi.NewPayouts(connectors.Config())
	if err != nil {
		t.Fatal(err)
	}
	good := payingAccount(connector.BaseURL(served.URL + s.Path))
	good.Certificate, good.PrivateKey = inBase64(own.pem(), ours.pem()), inBase64(own.keyPEM(t))
	p := payoutTo("242044000001")
	if o, err := c.Pay(t.Context(), good, p); err != nil || o.Status != connector.PayoutPending || s.Payments(p.ID) != 1 {
		t.Errorf("with the certificate: %+v, %v", o, err)
	}
	for name, x := range map[string]struct {
		certificate, key string
		fault            connector.FaultKind
	}{
		"of another authority":    {inBase64(foreign.pem(), ours.pem()), inBase64(foreign.keyPEM(t)), connector.FaultCredentials},
		"that has ended":          {inBase64(ended.pem(), ours.pem()), inBase64(ended.keyPEM(t)), connector.FaultCredentials},
		"of another key":          {inBase64(own.pem(), ours.pem()), inBase64(foreign.keyPEM(t)), connector.FaultCredentials},
		"not base64":              {own.pem(), inBase64(own.keyPEM(t)), connector.FaultCredentials},
		"a key that is not":       {inBase64(own.pem(), ours.pem()), "no key", connector.FaultCredentials},
		"something else":          {inBase64(own.keyPEM(t)), inBase64(own.keyPEM(t)), connector.FaultCredentials},
		"none":                    {"", "", connector.FaultCredentials},
		"of an unknown switch":    {inBase64(own.pem(), others.pem()), inBase64(own.keyPEM(t)), connector.FaultNetwork},
		"without its authorities": {inBase64(own.pem()), inBase64(own.keyPEM(t)), connector.FaultNetwork},
	} {
		bad, p := good, payoutTo("242044000001")
		bad.Certificate, bad.PrivateKey = x.certificate, x.key
		_, err := c.Pay(t.Context(), bad, p)
		var e *connector.Error
		if !errors.As(err, &e) || e.Fault != x.fault || e.Sent || s.Payments(p.ID) != 0 {
			t.Errorf("a certificate %s: %v", name, err)
		}
		if strings.Contains(err.Error(), "BEGIN") || x.key != "" && strings.Contains(err.Error(), x.key) {
			t.Errorf("a certificate %s: the error tells the key: %v", name, err)
		}
	}
}
