package smtp_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"quittance/dev/simulator"
	"quittance/internal/provider"
	"quittance/internal/provider/smtp"
	"quittance/test/providers"
)

// certificate makes a certificate of 127.0.0.1 and returns it with the PEM file of its
// authority.
func certificate(t *testing.T) (config *tls.Config, file string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, file
}

const query = "?from=no-reply@pay.example&name=Quittance"

// world returns a mail server with STARTTLS and a password.
func world(t *testing.T) (*providers.Simulator, providers.World) {
	t.Helper()
	s := providers.NewSimulator(t)
	config, file := certificate(t)
	host := s.Mail(simulator.MailServer{TLS: config, User: providers.User, Password: providers.Secret})
	at := func(host string) string { return "smtp://" + providers.User + "@" + host + query + "&ca_file=" + file }
	return s, providers.World{
		Address: at(host), Secret: providers.Secret, Elsewhere: at, Received: func() []providers.Received { return s.Inbox(provider.ChannelEmail) },
		Temporary: func() { s.Control("mail", `{"status":451,"times":1}`) },
		Permanent: func() { s.Control("mail", `{"status":550,"at":"data","times":1}`) },
		Silent:    func() { s.Control("mail", `{"hang":true,"times":1}`) },
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	providers.Run(t, providers.Subject{
		Registration: smtp.Registration, To: "citoyen@example.org", Text: "« 123456 » est votre code d’accès.\n\n.\nÇa, ê, œ, 5 000 FCFA, العربية\n" + strings.Repeat("long ", 300) + "end",
		Start: func(t *testing.T) providers.World { _, w := world(t); return w },
	})
}

// Every step may refuse, for now or for good. The message id is made of the message's.
func TestSteps(t *testing.T) {
	t.Parallel()
	s, w := world(t)
	p, err := smtp.Registration.New(providers.Settings(t, w.Address, w.Secret))
	if err != nil {
		t.Fatal(err)
	}
	send := func() error {
		return p.Send(t.Context(), provider.Message{ID: "msg_1", To: "citoyen@example.org", Subject: "s", Text: "x", At: time.Now()})
	}
	for body, want := range map[string]provider.Fault{
		`{"status":450,"at":"rcpt","times":1}`: provider.FaultBusy,
		`{"status":452,"at":"data","times":1}`: provider.FaultBusy,
		`{"status":550,"at":"rcpt","times":1}`: provider.FaultRefused,
		`{"status":554,"at":"data","times":1}`: provider.FaultRefused,
	} {
		s.Control("mail", body)
		var e *provider.Error
		if err := send(); !errors.As(err, &e) || e.Fault != want || !strings.Contains(body, strings.TrimPrefix(e.Code, "smtp_")) {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
	if err := send(); err != nil {
		t.Fatal(err)
	}
	if got := w.Received(); len(got) != 1 || got[0].ID != "msg_1@pay.example" {
		t.Errorf("received %+v", got)
	}
}

// A server without TLS, or whose certificate nobody vouches for, gets neither the password nor
// a message.
func TestNoPlaintext(t *testing.T) {
	t.Parallel()
	s := providers.NewSimulator(t)
	config, file := certificate(t)
	plain, starttls := s.Mail(simulator.MailServer{}), s.Mail(simulator.MailServer{TLS: config})
	try := func(address string) error {
		p, err := smtp.Registration.New(providers.Settings(t, address, ""))
		if err != nil {
			t.Fatal(err)
		}
		return p.Send(t.Context(), provider.Message{ID: "msg_1", To: "citoyen@example.org", Subject: "s", Text: "x", At: time.Now()})
	}
	for address, want := range map[string]string{
		"smtp://" + plain + query:                          "not_sent",
		"smtps://" + plain + query + "&ca_file=" + file:    "not_sent",
		"smtp://" + starttls + query:                       "tls_certificate",
		"smtp://" + starttls + query + "&ca_file=" + file:  "",
		"smtp+plain://" + plain + query:                    "",
		"smtp+plain://" + starttls + query + "&name=Autre": "",
	} {
		err := try(address)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
	if n := len(s.Inbox(provider.ChannelEmail)); n != 3 {
		t.Errorf("%d arrived, want 3", n)
	}
	for address, want := range map[string]string{
		"smtp+plain://mail.example" + query:              "this machine",
		"smtp://mail.example":                            "from",
		"smtp://mail.example" + query + "&ca_file=/none": "ca_file",
		"smtp://user@mail.example" + query:               "secret",
	} {
		if _, err := smtp.Registration.New(providers.Settings(t, address, "")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want it to name %q", address, err, want)
		}
	}
}
