package servers

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"quittance/dev/stack"
)

// Authority signs the certificates of one test.
type Authority struct {
	// File has its certificate.
	File string

	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes an authority with its files in dir.
func NewAuthority(t testing.TB, dir string) *Authority {
	t.Helper()
	a := &Authority{dir: dir, File: filepath.Join(dir, "ca.pem")}
	a.key = newKey(t)
	a.cert = &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: "authority of a test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, a.File, block("CERTIFICATE", der))
	return a
}

// Certificate makes a certificate with that common name, for servers on this machine and
// for clients, and returns the files of the certificate and of its key.
func (a *Authority) Certificate(t testing.TB, name string) (certFile, keyFile string) {
	t.Helper()
	key := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: name, Organization: []string{"Quittance"}}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(a.dir, name+".pem"), filepath.Join(a.dir, name+".key")
	writePEM(t, certFile, block("CERTIFICATE", der))
	writePEM(t, keyFile, block("PRIVATE KEY", pkcs8))
	return certFile, keyFile
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func serial(t testing.TB) *big.Int {
	t.Helper()
	n, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func writePEM(t testing.TB, file string, blocks ...[]byte) {
	t.Helper()
	var all []byte
	for _, b := range blocks {
		all = append(all, b...)
	}
	if err := os.WriteFile(file, all, 0o600); err != nil {
		t.Fatal(err)
	}
}

// SecureKafka is a broker with TLS, SCRAM and ACLs.
type SecureKafka struct {
	*Authority
	// Scram takes users of SASL/SCRAM over TLS, Mutual takes client certificates. Open is a
	// plaintext listener whose clients may do everything.
	Scram, Mutual, Open string
	// Admin may do everything.
	Admin *kadm.Client

	client *kgo.Client
	log    string
}

// StartSecureKafka starts a broker that only this test uses, and stops it at its end.
func StartSecureKafka(t testing.TB) *SecureKafka {
	t.Helper()
	dir := Dir(t)
	k := &SecureKafka{Authority: NewAuthority(t, dir), log: filepath.Join(dir, "kafka", "kafka.log")}
	cert, key := k.Certificate(t, "broker")
	var pair [2][]byte
	for i, file := range []string{key, cert} {
		var err error
		if pair[i], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	store := filepath.Join(dir, "keystore.pem")
	writePEM(t, store, pair[0], pair[1])

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	start(t, func() (*server, error) {
		ports, err := stack.FreePorts(4)
		if err != nil {
			return nil, err
		}
		local := func(i int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[i])) }
		k.Open, k.Scram, k.Mutual = local(0), local(2), local(3)
		clients := fmt.Sprintf("PLAINTEXT://%s,SCRAM://%s,MUTUAL://%s", k.Open, k.Scram, k.Mutual)
		const login = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
		broker, err := stack.StartKafka(ctx, stack.KafkaConfig{
			Dir: filepath.Join(dir, "kafka"), Port: ports[0], ControllerPort: ports[1], Log: slog.New(slog.DiscardHandler),
			JVM: []string{"-Dorg.slf4j.simpleLogger.log.kafka.authorizer.logger=info"},
			Properties: map[string]string{
				"listeners": clients + ",CONTROLLER://" + local(1), "advertised.listeners": clients, "inter.broker.listener.name": "PLAINTEXT",
				"listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SCRAM:SASL_SSL,MUTUAL:SSL",
				"ssl.keystore.type":              "PEM", "ssl.keystore.location": store, "ssl.truststore.type": "PEM", "ssl.truststore.location": k.File,
				"listener.name.mutual.ssl.client.auth": "required", "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
				"listener.name.scram.scram-sha-256.sasl.jaas.config": login, "listener.name.scram.scram-sha-512.sasl.jaas.config": login,
				"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer", "super.users": "User:ANONYMOUS",
			},
		})
		if err != nil {
			return nil, err
		}
		return &server{stop: broker.Stop}, nil
	})
	cl, err := kgo.NewClient(kgo.SeedBrokers(k.Open), kgo.MetadataMinAge(20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	k.client, k.Admin = cl, kadm.NewClient(cl)
	return k
}

// User makes a user of SASL/SCRAM for both mechanisms and returns the password and a file
// that holds it.
func (k *SecureKafka) User(t testing.TB, name string) (password, file string) {
	t.Helper()
	password, file = rand.Text(), k.PasswordFile(name)
	if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, m := range []kadm.ScramMechanism{kadm.ScramSha256, kadm.ScramSha512} {
		done, err := k.Admin.AlterUserSCRAMs(t.Context(), nil, []kadm.UpsertSCRAM{{User: name, Mechanism: m, Iterations: 4096, Password: password}})
		if err == nil {
			err = done.Error()
		}
		if err != nil {
			t.Fatalf("servers: making user %s: %v", name, err)
		}
	}
	k.await(t, name, password)
	return password, file
}

// await waits until the broker admits a user by both mechanisms: it learns of a user some time
// after the controller.
func (k *SecureKafka) await(t testing.TB, name, password string) {
	t.Helper()
	roots := x509.NewCertPool()
	if authority, err := os.ReadFile(k.File); err != nil || !roots.AppendCertsFromPEM(authority) {
		t.Fatalf("servers: reading %s: %v", k.File, err)
	}
	auth := scram.Auth{User: name, Pass: password}
	for _, mechanism := range []sasl.Mechanism{auth.AsSha256Mechanism(), auth.AsSha512Mechanism()} {
		cl, err := kgo.NewClient(kgo.SeedBrokers(k.Scram), kgo.SASL(mechanism), kgo.DialTLSConfig(&tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}), kgo.RequestRetries(0))
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			if err = cl.Ping(t.Context()); err == nil {
				break
			}
			if !errors.Is(err, kerr.SaslAuthenticationFailed) || time.Now().After(deadline) {
				t.Fatalf("servers: waiting for user %s: %v", name, err)
			}
		}
	}
}

// PasswordFile returns the file that holds the password of a user.
func (k *SecureKafka) PasswordFile(name string) string {
	return filepath.Join(k.dir, name+".password")
}

// Denied returns the lines of the broker's log that tell of refused requests.
func (k *SecureKafka) Denied(t testing.TB) []string {
	t.Helper()
	text, err := os.ReadFile(k.log)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, " is Denied ") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// ACL allows a principal an operation on a resource. Its JSON is that of `quittance acls`.
type ACL struct {
	Role         string `json:"role"`
	Principal    string `json:"principal"`
	Operation    string `json:"operation"`
	ResourceType string `json:"resource_type"`
	Resource     string `json:"resource"`
	Pattern      string `json:"pattern"`
}

// parsed returns the resource and the operation of an ACL.
func (a ACL) parsed(t testing.TB) (kmsg.ACLResourceType, kmsg.ACLResourcePatternType, kmsg.ACLOperation) {
	t.Helper()
	kind, err := kmsg.ParseACLResourceType(a.ResourceType)
	if err != nil {
		t.Fatal(err)
	}
	pattern, err := kmsg.ParseACLResourcePatternType(a.Pattern)
	if err != nil {
		t.Fatal(err)
	}
	operation, err := kmsg.ParseACLOperation(a.Operation)
	if err != nil {
		t.Fatal(err)
	}
	return kind, pattern, operation
}

// Allow makes ACLs. The broker may apply them a moment later.
func (k *SecureKafka) Allow(t testing.TB, acls ...ACL) {
	t.Helper()
	req := kmsg.NewPtrCreateACLsRequest()
	for _, a := range acls {
		c := kmsg.NewCreateACLsRequestCreation()
		c.ResourceType, c.ResourcePatternType, c.Operation = a.parsed(t)
		c.ResourceName, c.Principal, c.Host, c.PermissionType = a.Resource, a.Principal, "*", kmsg.ACLPermissionTypeAllow
		req.Creations = append(req.Creations, c)
	}
	resp, err := req.RequestWith(t.Context(), k.client)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range resp.Results {
		if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
			t.Fatal(err)
		}
	}
}

// Forbid deletes ACLs. The broker may apply that a moment later.
func (k *SecureKafka) Forbid(t testing.TB, acls ...ACL) {
	t.Helper()
	req := kmsg.NewPtrDeleteACLsRequest()
	for _, a := range acls {
		f := kmsg.NewDeleteACLsRequestFilter()
		f.ResourceType, f.ResourcePatternType, f.Operation = a.parsed(t)
		f.ResourceName, f.Principal, f.Host, f.PermissionType = &a.Resource, &a.Principal, kmsg.StringPtr("*"), kmsg.ACLPermissionTypeAllow
		req.Filters = append(req.Filters, f)
	}
	resp, err := req.RequestWith(t.Context(), k.client)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range resp.Results {
		if err := kerr.ErrorForCode(r.ErrorCode); err != nil || len(r.MatchingACLs) != 1 {
			t.Fatalf("%d ACLs are deleted, want 1; %v", len(r.MatchingACLs), err)
		}
	}
}

// StartSecurePostgres starts a PostgreSQL with a certificate of the authority, which only
// this test uses. Clients with TLS need a certificate of the authority. It returns the
// address of a database, which does not ask for TLS.
func StartSecurePostgres(t testing.TB, a *Authority) (dsn string) {
	t.Helper()
	cert, key := a.Certificate(t, "server")
	hba := filepath.Join(a.dir, "pg_hba.conf")
	if err := os.WriteFile(hba, []byte("hostssl all all 127.0.0.1/32 scram-sha-256 clientcert=verify-ca\nhostnossl all all 127.0.0.1/32 scram-sha-256\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 { // the server runs as another user
		for _, file := range []string{cert, key, hba, a.File} {
			if err := os.Chown(file, nobody, nobody); err != nil {
				t.Fatal(err)
			}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var p *stack.Postgres
	start(t, func() (*server, error) {
		ports, err := stack.FreePorts(1)
		if err != nil {
			return nil, err
		}
		p, err = stack.StartPostgres(ctx, stack.PostgresConfig{
			Dir: filepath.Join(a.dir, "postgres"), Port: ports[0], Volatile: true, Log: slog.New(slog.DiscardHandler),
			Settings: map[string]string{"ssl": "on", "ssl_cert_file": cert, "ssl_key_file": key, "ssl_ca_file": a.File, "hba_file": hba},
		})
		if err != nil {
			return nil, err
		}
		return &server{stop: p.Stop}, nil
	})
	u, err := url.Parse(p.DSN("quittance"))
	if err != nil {
		t.Fatal("servers: the address of PostgreSQL is no URL") // err contains the password
	}
	u.RawQuery = ""
	return u.String()
}

// nobody is the user that PostgreSQL runs as when the tests run as root.
const nobody = 65534

// start starts a server for the test, which stops it at its end.
func start(t testing.TB, one func() (*server, error)) {
	t.Helper()
	s, err := retry(one)
	if err != nil {
		t.Fatalf("servers: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		if err := s.stop(ctx); err != nil {
			t.Errorf("servers: %v", err)
		}
	})
}
