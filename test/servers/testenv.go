package servers

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"quittance/test/httpclient"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	topics "quittance/internal/kafka"
	migrations "quittance/internal/postgres"
)

// patience bounds the start of a server and each statement that creates or drops a
// database, also on a busy machine.
const patience = 2 * time.Minute

// Kafka returns the bootstrap address of a real Kafka, which does not create topics by
// itself. The broker is shared: see Prefix.
func Kafka(t testing.TB) string {
	t.Helper()
	return kafka.addr(t)
}

// Postgres returns the URL of an empty database that only this test uses. It is dropped
// when the test ends, even if connections are still open.
func Postgres(t testing.TB) string {
	t.Helper()
	return create(t, postgres.addr(t), "template0")
}

// Migrated returns the URL of a database like that of Postgres, with the migrations applied.
// It is a copy of a template, which costs a tenth of the migrations.
func Migrated(t testing.TB) string {
	t.Helper()
	server := postgres.addr(t)
	return create(t, server, migrated.of(t, server))
}

// migrated is the template that this process has made or found.
var migrated knownTemplate

type knownTemplate struct {
	mu   sync.Mutex
	name string
}

func (k *knownTemplate) of(t testing.TB, server string) string {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.name == "" {
		k.name = template(t, server)
	}
	return k.name
}

// template returns the name of a database of the server that has the migrations applied.
// Test binaries that share the server share it. The first one makes it while the others wait.
func template(t testing.TB, server string) string {
	t.Helper()
	digest, err := migrations.Digest()
	if err != nil {
		t.Fatal(err)
	}
	name := "migrated_" + digest[:16]
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		t.Fatalf("servers: connecting to PostgreSQL: %v", err)
	}
	defer func() { _ = conn.Close(ctx) }() // ends the lock
	var exists bool
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock(hashtext($1))`, name); err != nil {
		t.Fatalf("servers: waiting for the template: %v", err)
	}
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, name).Scan(&exists); err != nil {
		t.Fatalf("servers: looking for the template: %v", err)
	}
	if exists {
		return name
	}
	// The last step gives the template its name, so that an interrupted one is not used.
	unfinished := "unfinished_" + token()
	admin(t, server, `CREATE DATABASE `+unfinished)
	if err := migrations.Migrate(ctx, address(t, server, unfinished)); err != nil {
		t.Fatal(err)
	}
	// A database with connections cannot be copied. Autovacuum is a connection too.
	admin(t, server, `ALTER DATABASE `+unfinished+` ALLOW_CONNECTIONS false`)
	admin(t, server, `ALTER DATABASE `+unfinished+` RENAME TO `+name)
	return name
}

// create returns the URL of a copy of a database, which is dropped when the test ends.
func create(t testing.TB, server, template string) string {
	t.Helper()
	name := "t_" + token()
	admin(t, server, `CREATE DATABASE `+name+` TEMPLATE `+template+` STRATEGY FILE_COPY`)
	t.Cleanup(func() { admin(t, server, `DROP DATABASE `+name+` WITH (FORCE)`) })
	return address(t, server, name)
}

// address returns the URL of a database of the server.
func address(t testing.TB, server, database string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatalf("servers: the address of the PostgreSQL server is not a URL") // err contains the password
	}
	u.Path = "/" + database
	return u.String()
}

// ClickHouse returns the address (host:port of the HTTP interface) of a real ClickHouse
// engine, and the name of an empty database that only this test uses. The database is
// dropped when the test ends.
func ClickHouse(t testing.TB) (addr, database string) {
	t.Helper()
	addr = clickhouse.addr(t)
	database = "t_" + token()
	statement(t, addr, "CREATE DATABASE "+database)
	t.Cleanup(func() { statement(t, addr, "DROP DATABASE "+database) })
	return addr, database
}

// SchemaRegistry returns the URL of a schema registry. It is shared: see Prefix.
func SchemaRegistry(t testing.TB) string {
	t.Helper()
	return schemaRegistry.addr(t)
}

// Database returns a Postgres with the migrations applied, and a pool that is closed when
// the test ends.
func Database(t testing.TB, prepare ...func(*pgx.Conn)) (dsn string, pool *pgxpool.Pool) {
	t.Helper()
	dsn = Migrated(t)
	pool, err := migrations.Open(t.Context(), dsn, prepare...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return dsn, pool
}

// CreateTopic creates a topic with one replica and waits until every partition takes
// records. configs may be nil.
func CreateTopic(t testing.TB, adm *kadm.Client, topic string, partitions int32, configs map[string]*string) {
	t.Helper()
	createTopics(t, adm, partitions, configs, topic)
}

// CreateTopics creates the topics of an installation, which begin with its prefix, with their numbers of
// partitions, and waits as CreateTopic does. It sends few requests: see Prefix.
func CreateTopics(t testing.TB, adm *kadm.Client, prefix string, topics map[string]int32) {
	t.Helper()
	of := map[int32][]string{}
	for topic, partitions := range topics {
		of[partitions] = append(of[partitions], prefix+topic)
	}
	for partitions, names := range of {
		createTopics(t, adm, partitions, nil, names...)
	}
}

func createTopics(t testing.TB, adm *kadm.Client, partitions int32, configs map[string]*string, names ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	created, err := adm.CreateTopics(ctx, partitions, 1, configs, names...)
	if err == nil {
		err = created.Error()
	}
	if err == nil {
		err = topics.AwaitTopics(ctx, adm, names...)
	}
	if err != nil {
		t.Fatalf("creating %s: %v", strings.Join(names, ", "), err)
	}
}

// Prefix returns a unique prefix, such as "t4kzq2m7x.", for the names of topics, groups,
// transactional ids and subjects. Topics that the shared Kafka has under the prefix are deleted when
// the test ends: whenever a topic is created or deleted, a broker looks at all partitions that it has.
func Prefix(t testing.TB) string {
	t.Helper()
	prefix := "t" + token() + "."
	t.Cleanup(func() {
		if addr := kafka.known(); addr != "" {
			deleteTopics(t, addr, prefix)
		}
	})
	return prefix
}

// deleteTopics deletes the topics under a prefix with one request. Nothing depends on it.
func deleteTopics(t testing.TB, addr, prefix string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Logf("deleting topics: %v", err)
		return
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	found, err := adm.ListTopics(ctx)
	if err == nil {
		names := slices.DeleteFunc(found.Names(), func(name string) bool { return !strings.HasPrefix(name, prefix) })
		if len(names) > 0 {
			_, err = adm.DeleteTopics(ctx, names...)
		}
	}
	if err != nil {
		t.Logf("deleting topics: %v", err)
	}
}

// Dir returns an empty folder that other users may enter. It is removed when the test
// ends. PostgreSQL needs such a folder when the tests run as root; t.TempDir does not
// promise it.
func Dir(t testing.TB) string {
	t.Helper()
	base, err := Folder()
	if err != nil {
		t.Fatalf("servers: making a folder: %v", err)
	}
	dir, err := os.MkdirTemp(base, "test-") //nolint:usetesting // other users cannot enter t.TempDir
	if err != nil {
		t.Fatalf("servers: making a folder: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("servers: removing a folder: %v", err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // other users must be able to enter
		t.Fatalf("servers: opening a folder: %v", err)
	}
	return dir
}

// Logger returns a logger with level debug that writes to the test's log. After the end of
// the test it writes nothing, so that a goroutine that ends a little later does not panic.
func Logger(t testing.TB) *slog.Logger {
	t.Helper()
	w := &testWriter{t: t}
	t.Cleanup(w.close)
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

type testWriter struct {
	mu     sync.Mutex
	t      testing.TB
	closed bool
}

func (w *testWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.t.Log(strings.TrimSuffix(string(p), "\n"))
	}
	return len(p), nil
}

func (w *testWriter) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
}

// Folder returns the temporary folder of this process's servers, the same at every call. It
// is in memory if there is enough of it. Other users may enter it. It is removed after this
// process ends, also after a kill.
var Folder = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp(dataFolder(), "quittance-testenv-")
	if err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // PostgreSQL runs as another user when we are root
		return "", err
	}
	return dir, removeAfterUs(dir)
})

// token returns random lower-case characters that are valid in every kind of name.
func token() string { return strings.ToLower(rand.Text()[:10]) }

// admin runs one statement on the server's own database.
func admin(t testing.TB, dsn, sql string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatalf("servers: connecting to PostgreSQL: %v", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	for range 50 {
		_, err = conn.Exec(ctx, sql)
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "55006" { // object_in_use: another session is connected to the template
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		t.Errorf("servers: %s: %v", sql, err)
	}
}

// statement runs one statement over ClickHouse's HTTP interface.
func statement(t testing.TB, addr, sql string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/", strings.NewReader(sql))
	if err != nil {
		t.Fatalf("servers: %s: %v", sql, err)
	}
	resp, err := httpclient.Default.Do(req)
	if err != nil {
		t.Fatalf("servers: %s: %v", sql, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		t.Errorf("servers: %s: %s: %s", sql, resp.Status, body)
	}
}
