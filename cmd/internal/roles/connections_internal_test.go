package roles

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"log/slog"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"testing"

	"quittance/internal/clickhouse"
	"quittance/internal/postgres"
	"quittance/test/servers"
)

func TestPlaintextToOtherMachinesIsRefused(t *testing.T) {
	t.Parallel()
	a := servers.NewAuthority(t, servers.Dir(t))
	cert, key := a.Certificate(t, "client")
	local := "--kafka=127.0.0.1:9092,[::1]:9092 --postgres=postgres://u:hidden1@localhost/d --clickhouse=http://127.0.0.1:8123/d --schema-registry=http://localhost:8081"
	for _, c := range []struct{ args, want string }{
		{"", ""},
		{local, ""},
		{"--postgres=postgres:///d?host=/run/postgresql", ""},
		{"--kafka=127.0.0.1:9092,kafka-2:9092", "--kafka: the connection is plaintext to another machine"},
		{"--kafka=kafka-1:9092", "give --kafka-ca-file, or --kafka-tls"},
		{"--kafka=kafka-1:9092 --kafka-user=u --kafka-password=hidden1", "--kafka: the connection is plaintext to another machine"},
		{"--kafka=kafka-1:9092 --allow-plaintext", ""},
		{"--kafka=kafka-1:9093 --kafka-tls", ""},
		{"--kafka=kafka-1:9093 --kafka-ca-file=" + a.File, ""},
		{"--kafka=kafka-1:9093 --kafka-cert-file=" + cert + " --kafka-key-file=" + key, ""},
		{"--kafka=kafka-1:9093 --kafka-cert-file=" + cert, "--kafka-key-file is not set"},
		{"--kafka=kafka-1:9093 --kafka-ca-file=" + key, "has no certificate in PEM form"},
		{"--kafka=kafka-1:9093 --kafka-tls --kafka-user=u", "--kafka-password-file (or QUITTANCE_KAFKA_PASSWORD) is not set"},
		{"--kafka=kafka-1:9093 --kafka-tls --kafka-password=hidden1", "--kafka-user is not set"},
		{"--kafka=kafka-1:9093 --kafka-tls --kafka-user=u --kafka-password=hidden1 --kafka-sasl=plain", `--kafka-sasl "plain": must be scram-sha-512 or scram-sha-256`},
		{"--postgres=postgres://u:hidden1@db/d", "--postgres: the connection is plaintext to another machine"},
		{"--postgres=postgres://u:hidden1@db/d?sslmode=require", "--postgres: the connection is TLS that does not verify the server to another machine"},
		{"--postgres=postgres://u:hidden1@db/d?sslmode=verify-full", ""},
		{"--postgres=postgres://u:hidden1@db/d?sslmode=disable --postgres-ca-file=" + a.File, "--postgres: the connection is plaintext"},
		{"--postgres=postgres://u:hidden1@db/d --postgres-ca-file=" + a.File, ""},
		{"--postgres=postgres://u:hidden1@localhost,db/d", "--postgres: the connection is plaintext"},
		{"--clickhouse=http://u:hidden1@ch:8123/d", "--clickhouse: the connection is plaintext to another machine"},
		{"--clickhouse=clickhouse://u:hidden1@ch:9000/d", "--clickhouse: the connection is plaintext"},
		{"--clickhouse=clickhouse://u:hidden1@ch:9440/d?secure=true", ""},
		{"--clickhouse=clickhouse://u:hidden1@ch:9440/d?secure=true&skip_verify=true", "--clickhouse: the connection is TLS that does not verify the server"},
		{"--clickhouse=clickhouse://u:hidden1@ch:9440/d --clickhouse-ca-file=" + a.File, ""},
		{"--clickhouse=https://u:hidden1@ch:8443/d --clickhouse-cert-file=" + cert + " --clickhouse-key-file=" + key, ""},
		{"--clickhouse=http://u:hidden1@ch:8443/d --clickhouse-ca-file=" + a.File, "--clickhouse is an http:// address"},
		{"--schema-registry=http://u:hidden1@sr:8081", "--schema-registry: the connection is plaintext"},
		{"--schema-registry=https://u:hidden1@sr:8081", ""},
		{"--schema-registry=https://sr:8081 --schema-registry-ca-file=" + a.File, ""},
		{"--schema-registry=http://sr:8081 --schema-registry-ca-file=" + a.File, "--schema-registry is no https:// address"},
	} {
		s, _ := flags(t, strings.Fields(c.args)...)
		err := s.Secure()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || err != nil && strings.Contains(err.Error(), "hidden1") {
			t.Errorf("%s: %v, want %s", c.args, err, c.want)
		}
		if strings.Contains(c.want, "the connection is") {
			s, _ := flags(t, append(strings.Fields(c.args), "--allow-plaintext")...)
			if err := s.Secure(); err != nil {
				t.Errorf("%s --allow-plaintext: %v", c.args, err)
			}
			s, _ = flags(t, strings.Fields(c.args)...)
			s.Options.Loopback = true
			if err := s.Secure(); err != nil {
				t.Errorf("%s in developer mode: %v", c.args, err)
			}
		}
	}
}

func TestConnectionsInTheLog(t *testing.T) {
	t.Parallel()
	s, _ := flags(t, "--kafka=kafka-1:9092", "--kafka-user=erp", "--kafka-password=hidden1", "--postgres=host=db password=hidden1", "--allow-plaintext")
	if err := s.Secure(); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	s.print(slog.New(slog.NewTextHandler(&out, nil)))
	for _, want := range []string{
		`level=WARN msg="whoever controls the network reads and changes payments (--allow-plaintext)" connection=kafka protection="plaintext to another machine, SCRAM-SHA-512, as User:erp"`,
		"connection=postgres", "postgres=configured",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "hidden1") {
		t.Errorf("the log shows a password:\n%s", out.String())
	}
}

// A real Postgres asks for a client certificate, and its own is verified.
func TestPostgresWithTLS(t *testing.T) {
	t.Parallel()
	dir := servers.Dir(t)
	a, other := servers.NewAuthority(t, dir), servers.NewAuthority(t, servers.Dir(t))
	dsn := servers.StartSecurePostgres(t, a)
	cert, key := a.Certificate(t, "postgres")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--postgres-ca-file", a.File, "--postgres-cert-file", cert, "--postgres-key-file", key}, ""},
		{[]string{"--postgres-ca-file", a.File}, "connecting to Postgres"},
		{[]string{"--postgres-ca-file", other.File, "--postgres-cert-file", cert, "--postgres-key-file", key}, "certificate signed by unknown authority"},
	} {
		s, _ := flags(t, append(c.args, "--postgres", dsn)...)
		if err := s.Secure(); err != nil {
			t.Fatal(err)
		}
		pool, err := postgres.Open(context.WithoutCancel(t.Context()), s.Postgres)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.args, err, c.want)
		}
		if err == nil {
			var encrypted bool
			if err := pool.QueryRow(t.Context(), `SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()`).Scan(&encrypted); err != nil || !encrypted {
				t.Errorf("encrypted: %t, %v", encrypted, err)
			}
			pool.Close()
		}
	}
}

// ClickHouse and the schema registry behind https that asks for a client certificate.
func TestHTTPServersWithTLS(t *testing.T) {
	t.Parallel()
	a, other := servers.NewAuthority(t, servers.Dir(t)), servers.NewAuthority(t, servers.Dir(t))
	engine, database := servers.ClickHouse(t)
	columns, registry := behindTLS(t, a, "http://"+engine), behindTLS(t, a, servers.SchemaRegistry(t))
	cert, key := a.Certificate(t, "client")
	for want, args := range map[string][]string{
		"": {
			"--clickhouse-ca-file", a.File, "--clickhouse-cert-file", cert, "--clickhouse-key-file", key,
			"--schema-registry-ca-file", a.File, "--schema-registry-cert-file", cert, "--schema-registry-key-file", key,
		},
		"certificate required":                    {"--clickhouse-ca-file", a.File, "--schema-registry-ca-file", a.File},
		"certificate signed by unknown authority": {"--clickhouse-ca-file", other.File, "--schema-registry-ca-file", other.File},
	} {
		s, _ := flags(t, append(args, "--clickhouse", columns+"/"+database, "--schema-registry", strings.Replace(registry, "https://", "https://user:hidden1@", 1))...)
		if err := s.Secure(); err != nil {
			t.Fatal(err)
		}
		for server, open := range map[string]func() error{
			"ClickHouse": func() error {
				conn, err := clickhouse.Open(t.Context(), s.ClickHouse)
				if err == nil {
					_ = conn.Close()
				}
				return err
			},
			"schema registry": func() error {
				_, err := s.OpenSchemas(t.Context(), true)
				return err
			},
		} {
			err := open()
			// A client that writes while the server refuses it may see the closed connection
			// and not the reason.
			for try := 0; try < 20 && err != nil && !strings.Contains(err.Error(), want); try++ {
				err = open()
			}
			if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hidden1")) {
				t.Errorf("%s: %v, want %q", server, err, want)
			}
		}
	}
}

// behindTLS returns the URL of a proxy with TLS before a server.
func behindTLS(t *testing.T, a *servers.Authority, server string) string {
	t.Helper()
	to, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	cert, key := a.Certificate(t, "proxy-"+to.Port())
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(a.File)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(pem)
	proxy := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(to))
	proxy.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert}
	proxy.Config.ErrorLog = log.New(io.Discard, "", 0)
	proxy.StartTLS()
	t.Cleanup(proxy.Close)
	return proxy.URL
}
