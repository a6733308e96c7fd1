package roles

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"quittance/internal/clickhouse"
	"quittance/internal/kafka/security"
	"quittance/internal/postgres"
	"quittance/internal/transport"
)

// connectionSecurity are the settings that protect the connections to the servers of an
// installation. Secure prepares the rest.
type connectionSecurity struct {
	kafkaTLS       bool
	kafkaSASL      string
	kafkaUser      string
	kafkaPassword  string
	kafkaFiles     transport.Files
	postgresFiles  transport.Files
	clickhouse     transport.Files
	registryFiles  transport.Files
	allowPlaintext bool

	kafka    security.Config
	registry *tls.Config
}

// securityFlags declares the settings that protect connections.
func (s *Settings) securityFlags(f *pflag.FlagSet) {
	f.BoolVar(&s.secure.kafkaTLS, "kafka-tls", false, "connect to Kafka with TLS; --kafka-ca-file and --kafka-cert-file do the same")
	f.StringVar(&s.secure.kafkaUser, "kafka-user", "", "user at Kafka (SASL/SCRAM)")
	f.StringVar(&s.secure.kafkaPassword, "kafka-password", "", "password of --kafka-user (prefer --kafka-password-file or the environment)")
	f.StringVar(&s.secure.kafkaSASL, "kafka-sasl", strings.ToLower(security.ScramSHA512), "SASL mechanism of --kafka-user: "+strings.ToLower(strings.Join(security.Mechanisms(), " or ")))
	for _, server := range []struct {
		flag, name string
		files      *transport.Files
	}{
		{"kafka", "Kafka", &s.secure.kafkaFiles},
		{"postgres", "Postgres", &s.secure.postgresFiles},
		{"clickhouse", "ClickHouse", &s.secure.clickhouse},
		{"schema-registry", "the schema registry", &s.secure.registryFiles},
	} {
		f.StringVar(&server.files.CA, server.flag+"-ca-file", "", "PEM file of the authorities that sign the certificate of "+server.name+"; the system's when empty")
		f.StringVar(&server.files.Cert, server.flag+"-cert-file", "", "PEM file of our client certificate for "+server.name)
		f.StringVar(&server.files.Key, server.flag+"-key-file", "", "PEM file of its private key")
	}
	f.BoolVar(&s.secure.allowPlaintext, "allow-plaintext", false, "connect to other machines without verified TLS: whoever controls the network then reads and changes payments")
}

// Secure reads the files of TLS and prepares the connections. In production it refuses
// plaintext to other machines. Call it when the addresses are known, before anything
// connects.
func (s *Settings) Secure() error {
	err := errors.Join(s.secureKafka(), s.secureDatabases(), s.secureRegistry())
	if err != nil || s.Developer() || s.secure.allowPlaintext {
		return err
	}
	var errs []error
	for _, c := range s.Connections() {
		if c.Exposed {
			errs = append(errs, fmt.Errorf("--%s: the connection is %s: whoever controls the network between reads and changes payments; %s, or accept the risk with --allow-plaintext", c.Flag, c.How, c.mend))
		}
	}
	return errors.Join(errs...)
}

func (s *Settings) secureKafka() error {
	c := &s.secure
	mechanism := strings.ToUpper(c.kafkaSASL)
	switch {
	case c.kafkaSASL != "" && !slices.Contains(security.Mechanisms(), mechanism):
		return fmt.Errorf("--kafka-sasl %q: must be %s", c.kafkaSASL, strings.ToLower(strings.Join(security.Mechanisms(), " or ")))
	case c.kafkaUser != "" && c.kafkaPassword == "":
		return fmt.Errorf("--kafka-password-file (or %s) is not set: --kafka-user needs a password", Variable("kafka-password"))
	case c.kafkaUser == "" && c.kafkaPassword != "":
		return errors.New("--kafka-user is not set: --kafka-password needs a user")
	}
	c.kafka = security.Config{
		User: c.kafkaUser, Password: security.Password(c.kafkaPassword), Mechanism: mechanism, RefusePlaintext: !s.Developer() && !c.allowPlaintext,
	}
	if !c.kafkaTLS && !c.kafkaFiles.Given() {
		return nil
	}
	cfg, err := c.kafkaFiles.Config("kafka")
	c.kafka.TLS = cfg
	return err
}

// secureDatabases adds the files to the addresses of Postgres and ClickHouse.
func (s *Settings) secureDatabases() error {
	if s.Postgres != "" && s.secure.postgresFiles.Given() {
		if _, err := s.secure.postgresFiles.Config("postgres"); err != nil {
			return err
		}
		s.Postgres = postgres.WithTLS(s.Postgres, s.secure.postgresFiles)
	}
	if s.ClickHouse != "" && s.secure.clickhouse.Given() {
		if _, err := s.secure.clickhouse.Config("clickhouse"); err != nil {
			return err
		}
		if strings.HasPrefix(s.ClickHouse, "http://") {
			return errors.New("--clickhouse is an http:// address, but files of TLS are given for it; use https:// or clickhouse://")
		}
		s.ClickHouse = clickhouse.WithTLS(s.ClickHouse, s.secure.clickhouse)
	}
	return nil
}

func (s *Settings) secureRegistry() error {
	if s.SchemaRegistry == "" || !s.secure.registryFiles.Given() {
		return nil
	}
	if !strings.HasPrefix(s.SchemaRegistry, "https://") {
		return errors.New("--schema-registry is no https:// address, but files of TLS are given for it; use https://")
	}
	cfg, err := s.secure.registryFiles.Config("schema-registry")
	s.secure.registry = cfg
	return err
}

// Connection describes the connection to a server.
type Connection struct {
	transport.Protection
	// Flag names the server's address.
	Flag string
	mend string
}

// Connections describes the connections to the servers whose addresses are known.
func (s *Settings) Connections() []Connection {
	var out []Connection
	if s.Kafka != "" {
		out = append(out, Connection{s.secure.kafka.Protection(strings.Split(s.Kafka, ",")...), "kafka", "give --kafka-ca-file, or --kafka-tls if a public authority signed the brokers' certificates"})
	}
	if s.Postgres != "" {
		out = append(out, Connection{postgres.Protection(s.Postgres), "postgres", "give --postgres-ca-file, or sslmode=verify-full in the address"})
	}
	if s.ClickHouse != "" {
		out = append(out, Connection{clickhouse.Protection(s.ClickHouse), "clickhouse", "use https:// or clickhouse://…?secure=true, with --clickhouse-ca-file if your own authority signed its certificate"})
	}
	if s.SchemaRegistry != "" {
		var host string
		cfg := s.secure.registry
		if u, err := url.Parse(s.SchemaRegistry); err == nil {
			if host = u.Host; u.Scheme == "https" {
				cfg = cmp.Or(cfg, &tls.Config{MinVersion: tls.VersionTLS12})
			}
		}
		out = append(out, Connection{transport.Of(cfg, host), "schema-registry", "use https://, with --schema-registry-ca-file if your own authority signed its certificate"})
	}
	return out
}
