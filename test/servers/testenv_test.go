package servers_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"quittance/test/httpclient"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"

	"quittance/test/servers"
)

func TestKafkaIsShared(t *testing.T) {
	t.Parallel()
	addr := servers.Kafka(t)
	if again := servers.Kafka(t); again != addr {
		t.Errorf("the second call returns the broker at %s, want %s", again, addr)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	topic := servers.Prefix(t) + "topic"
	servers.CreateTopic(t, kadm.NewClient(client), topic, 1, nil)
	if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte("x")}).FirstErr(); err != nil {
		t.Error(err)
	}
}

// Each test gets a database of its own. It is empty and writable, and it is dropped after
// the test.
func TestPostgresDatabasePerTest(t *testing.T) {
	t.Parallel()
	var first, name string
	t.Run("inner", func(t *testing.T) {
		first = servers.Postgres(t)
		conn, err := pgx.Connect(t.Context(), first)
		if err != nil {
			t.Fatal(err)
		}
		// The connection stays open, because the drop must not wait for it.
		if _, err := conn.Exec(t.Context(), `CREATE TABLE t (n int)`); err != nil {
			t.Fatal(err)
		}
		if err := conn.QueryRow(t.Context(), `SELECT current_database()`).Scan(&name); err != nil {
			t.Fatal(err)
		}
	})
	second := servers.Postgres(t)
	if second == first {
		t.Fatal("two calls return the same database")
	}
	conn, err := pgx.Connect(t.Context(), second)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	var left, tables int
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_database WHERE datname = $1`, name).Scan(&left); err != nil {
		t.Fatal(err)
	}
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_tables WHERE schemaname = 'public'`).Scan(&tables); err != nil {
		t.Fatal(err)
	}
	if left != 0 || tables != 0 {
		t.Errorf("%d databases %s exist after its test, and the new one has %d tables, want 0", left, name, tables)
	}
}

func TestClickHouseDatabasePerTest(t *testing.T) {
	t.Parallel()
	var addr, first string
	t.Run("inner", func(t *testing.T) {
		addr, first = servers.ClickHouse(t)
		query(t, addr, "CREATE TABLE "+first+".t (n Int64) ENGINE = MergeTree ORDER BY n")
		query(t, addr, "INSERT INTO "+first+".t VALUES (42)")
		if got := query(t, addr, "SELECT n FROM "+first+".t"); got != "42" {
			t.Errorf("read %q, want 42", got)
		}
	})
	if got := query(t, addr, "SELECT count() FROM system.databases WHERE name = '"+first+"'"); got != "0" {
		t.Errorf("%s databases of the first test exist after it, want 0", got)
	}
}

func query(t *testing.T, addr, sql string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/", strings.NewReader(sql))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := httpclient.Default.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s: %s, %v", sql, resp.Status, body, err)
	}
	return strings.TrimSpace(string(body))
}

func TestSchemaRegistryIsShared(t *testing.T) {
	t.Parallel()
	client, err := sr.NewClient(sr.URLs(servers.SchemaRegistry(t)))
	if err != nil {
		t.Fatal(err)
	}
	subject := servers.Prefix(t) + "subject"
	made, err := client.CreateSchema(t.Context(), subject, sr.Schema{Schema: `"string"`})
	if err != nil || made.Subject != subject {
		t.Errorf("registered %+v, %v", made, err)
	}
}

func TestLoggerIsSilentAfterTheTest(t *testing.T) {
	t.Parallel()
	var log func()
	t.Run("inner", func(t *testing.T) {
		l := servers.Logger(t)
		log = func() { l.Info("hello") }
		log()
	})
	log() // panics if it writes to the inner test's log
}
