// Package security configures the connections of Kafka clients, of franz-go and of kafka-go
// alike: TLS, client certificates and SASL/SCRAM.
package security

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	gosasl "github.com/segmentio/kafka-go/sasl"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"quittance/internal/transport"
)

// The SASL mechanisms.
const (
	ScramSHA256 = "SCRAM-SHA-256"
	ScramSHA512 = "SCRAM-SHA-512"
)

// Mechanisms are the names of all mechanisms.
func Mechanisms() []string { return []string{ScramSHA512, ScramSHA256} }

const dialTimeout = 10 * time.Second

// Password is a secret that no format shows.
type Password string

// String implements fmt.Stringer.
func (Password) String() string { return "configured" }

// GoString implements fmt.GoStringer.
func (Password) GoString() string { return "configured" }

// Config of the connections to the brokers. The zero value is plaintext without a user.
type Config struct {
	// TLS is nil for plaintext.
	TLS *tls.Config
	// User is the name for SASL. Without it a client certificate is the client's name.
	User     string
	Password Password
	// Mechanism is one of Mechanisms; ScramSHA512 when empty.
	Mechanism string
	// RefusePlaintext refuses connections without TLS to other machines, also to those that
	// only the brokers' advertised.listeners name.
	RefusePlaintext bool
}

// anonymous is the principal of a client that does not say who it is.
const anonymous = "User:ANONYMOUS"

// Principal returns the name that the brokers know this client by, as ACLs write it.
// Brokers may shorten the names of certificates (ssl.principal.mapping.rules).
func (c Config) Principal() string {
	if c.User != "" {
		return "User:" + c.User
	}
	if c.TLS == nil || c.TLS.GetClientCertificate == nil {
		return anonymous
	}
	pair, err := c.TLS.GetClientCertificate(&tls.CertificateRequestInfo{})
	if err != nil || len(pair.Certificate) == 0 {
		return anonymous
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return anonymous
	}
	var name pkix.RDNSequence
	if _, err := asn1.Unmarshal(leaf.RawSubject, &name); err != nil {
		return anonymous
	}
	return "User:" + name.String()
}

// Anonymous reports whether the client does not say who it is.
func (c Config) Anonymous() bool { return c.Principal() == anonymous }

// Protection describes the connections to brokers.
func (c Config) Protection(brokers ...string) transport.Protection {
	p := transport.Of(c.TLS, brokers...)
	if c.User != "" {
		p.How += ", " + c.mechanism()
	}
	p.How += ", as " + c.Principal()
	return p
}

func (c Config) mechanism() string { return cmp.Or(c.Mechanism, ScramSHA512) }

// sasl returns the mechanism, or nil if there is no user.
func (c Config) sasl() sasl.Mechanism {
	if c.User == "" {
		return nil
	}
	auth := scram.Auth{User: c.User, Pass: string(c.Password)}
	if c.mechanism() == ScramSHA256 {
		return auth.AsSha256Mechanism()
	}
	return auth.AsSha512Mechanism()
}

// Options returns the options of a franz-go client.
func (c Config) Options() []kgo.Opt {
	opts := []kgo.Opt{kgo.Dialer(c.dial)}
	if m := c.sasl(); m != nil {
		opts = append(opts, kgo.SASL(m))
	}
	return opts
}

// Dialer returns the dialer of kafka-go's clients.
func (c Config) Dialer() *kafkago.Dialer {
	d := &kafkago.Dialer{Timeout: dialTimeout, DialFunc: c.dial}
	if m := c.sasl(); m != nil {
		d.SASLMechanism = mechanism{m}
	}
	return d
}

// dial opens a connection.
func (c Config) dial(ctx context.Context, network, address string) (net.Conn, error) {
	plain := &net.Dialer{Timeout: dialTimeout}
	if c.TLS != nil {
		// It takes the server's name from the address.
		return (&tls.Dialer{NetDialer: plain, Config: c.TLS}).DialContext(ctx, network, address)
	}
	if c.RefusePlaintext && !transport.Local(address) {
		return nil, fmt.Errorf("%w: %s", ErrPlaintext, address)
	}
	return plain.DialContext(ctx, network, address)
}

// ErrPlaintext says that the brokers' advertised.listeners name another machine, to which
// the connection would be plaintext.
var ErrPlaintext = errors.New("plaintext to another machine is refused; it is named by the brokers' advertised.listeners")

// mechanism makes franz-go's mechanism one of kafka-go.
type mechanism struct{ sasl.Mechanism }

// Start implements kafka-go's sasl.Mechanism.
func (m mechanism) Start(ctx context.Context) (gosasl.StateMachine, []byte, error) {
	s, first, err := m.Authenticate(ctx, "")
	return conversation{s}, first, err
}

type conversation struct{ sasl.Session }

// Next implements kafka-go's sasl.StateMachine.
func (c conversation) Next(_ context.Context, challenge []byte) (done bool, response []byte, err error) {
	return c.Challenge(challenge)
}

// Refused returns an error that says who was refused and why, if err is the broker's
// refusal of this client or this client's refusal of the broker. Trying again cannot help.
// Otherwise it returns nil.
func (c Config) Refused(err error) error {
	var certificate *tls.CertificateVerificationError
	switch {
	case err == nil:
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return fmt.Errorf("the broker refuses %s: user or password is wrong, or the user has no credentials for %s: %w", c.Principal(), c.mechanism(), err)
	case errors.Is(err, kerr.UnsupportedSaslMechanism):
		return fmt.Errorf("the broker does not offer %s: %w", c.mechanism(), err)
	case errors.As(err, &certificate):
		return fmt.Errorf("the broker's certificate is refused; --kafka-ca-file must have the authority that signed it, and the address must be one of its names: %w", err)
	case errors.Is(err, ErrPlaintext):
		return err
	case c.TLS != nil && strings.Contains(err.Error(), "remote error: tls:"):
		return fmt.Errorf("the broker refuses the TLS connection of %s; --kafka-cert-file must have a certificate that the broker trusts: %w", c.Principal(), err)
	}
	return nil
}
