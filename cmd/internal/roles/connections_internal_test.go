package roles

import (
	"context"
	"log/slog"
	"strings"
	"testing"

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
