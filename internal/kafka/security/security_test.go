package security_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/kafka/security"
	"quittance/internal/transport"
	"quittance/test/servers"
)

// Both libraries connect to a real broker in the same ways, and are refused alike.
func TestConnections(t *testing.T) {
	t.Parallel()
	k := servers.StartSecureKafka(t)
	password, _ := k.User(t, "someone")
	cert, key := k.Certificate(t, "someone")
	other := servers.NewAuthority(t, servers.Dir(t))
	otherCert, otherKey := other.Certificate(t, "someone")

	known := transport.Files{CA: k.File}
	for _, c := range []struct {
		name, address string
		files         transport.Files
		cfg           security.Config
		refused       string // empty: it connects
	}{
		{"scram 512", k.Scram, known, security.Config{User: "someone", Password: security.Password(password)}, ""},
		{"scram 256", k.Scram, known, security.Config{User: "someone", Password: security.Password(password), Mechanism: security.ScramSHA256}, ""},
		{"certificate", k.Mutual, transport.Files{CA: k.File, Cert: cert, Key: key}, security.Config{}, ""},
		{"by name", strings.Replace(k.Scram, "127.0.0.1", "localhost", 1), known, security.Config{User: "someone", Password: security.Password(password)}, ""},
		{"wrong password", k.Scram, known, security.Config{User: "someone", Password: "veryprivate"}, "the broker refuses User:someone: user or password is wrong"},
		{"unknown user", k.Scram, known, security.Config{User: "nobody", Password: "veryprivate"}, "the broker refuses User:nobody: user or password is wrong"},
		{"unknown authority", k.Scram, transport.Files{CA: other.File}, security.Config{User: "someone", Password: "veryprivate"}, "the broker's certificate is refused; --kafka-ca-file"},
		{"unknown client", k.Mutual, transport.Files{CA: k.File, Cert: otherCert, Key: otherKey}, security.Config{}, "--kafka-cert-file must have a certificate that the broker trusts"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tls, err := c.files.Config("kafka")
			if err != nil {
				t.Fatal(err)
			}
			c.cfg.TLS = tls
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			for library, connect := range map[string]func(context.Context, security.Config, string) error{"franz-go": ping, "kafka-go": dial} {
				err := connect(ctx, c.cfg, c.address)
				if (err == nil) != (c.refused == "") {
					t.Errorf("%s: %v", library, err)
				}
				if err == nil {
					continue
				}
				if strings.Contains(err.Error(), "veryprivate") {
					t.Errorf("%s: the error shows the password: %v", library, err)
				}
				if refused := c.cfg.Refused(err); library == "franz-go" && (refused == nil || !strings.Contains(refused.Error(), c.refused)) {
					t.Errorf("%s: %v is explained as %v, want %s", library, err, refused, c.refused)
				}
			}
		})
	}
}

func ping(ctx context.Context, c security.Config, address string) error {
	cl, err := kgo.NewClient(append(c.Options(), kgo.SeedBrokers(address), kgo.RequestRetries(0))...)
	if err != nil {
		return err
	}
	defer cl.Close()
	return cl.Ping(ctx)
}

func dial(ctx context.Context, c security.Config, address string) error {
	conn, err := c.Dialer().DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_, err = conn.Brokers()
	return err
}

// The bootstrap address may be on this machine while the brokers name another one.
func TestPlaintextToAnotherMachineIsRefused(t *testing.T) {
	t.Parallel()
	c := security.Config{RefusePlaintext: true}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := ping(ctx, c, "192.0.2.1:9092"); !errors.Is(err, security.ErrPlaintext) || c.Refused(err) == nil {
		t.Errorf("franz-go: %v", err)
	}
	if err := dial(ctx, c, "192.0.2.1:9092"); !errors.Is(err, security.ErrPlaintext) {
		t.Errorf("kafka-go: %v", err)
	}
	addr := servers.Kafka(t)
	if err := ping(ctx, c, addr); err != nil {
		t.Errorf("on this machine: %v", err)
	}
	if err := dial(ctx, c, addr); err != nil {
		t.Errorf("on this machine: %v", err)
	}
}

func TestPrincipal(t *testing.T) {
	t.Parallel()
	a := servers.NewAuthority(t, servers.Dir(t))
	cert, key := a.Certificate(t, "quittance-erp")
	tls, err := transport.Files{CA: a.File, Cert: cert, Key: key}.Config("kafka")
	if err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]security.Config{
		"User:ANONYMOUS":                    {},
		"User:quittance-erp":                {TLS: tls, User: "quittance-erp", Password: "veryprivate"},
		"User:CN=quittance-erp,O=Quittance": {TLS: tls},
	} {
		if got := c.Principal(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		for _, text := range []string{fmt.Sprintf("%v %+v %#v", c, c, c.Password), c.Protection("192.0.2.1:9092").How} {
			if strings.Contains(text, "veryprivate") {
				t.Errorf("the password is shown: %s", text)
			}
		}
	}
	if _, err := (transport.Files{Cert: cert}).Config("kafka"); err == nil || !strings.Contains(err.Error(), "--kafka-key-file is not set") {
		t.Error(err)
	}
	if _, err := (transport.Files{CA: key}).Config("kafka"); err == nil || !strings.Contains(err.Error(), "no certificate in PEM form") {
		t.Error(err)
	}
	if _, err := (transport.Files{CA: a.File + "x"}).Config("kafka"); err == nil || !strings.Contains(err.Error(), "--kafka-ca-file: open") {
		t.Error(err)
	}
}
