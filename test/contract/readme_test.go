package contract_test

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/checkout"
	"quittance/test/harness"
	"quittance/test/servers"
)

// readmeProgram is what a reader of the README puts around its receiver.
const readmeProgram = `package main

import (
	"context"
	"database/sql"
	"errors"
	"log"
	"net/http"
	"os"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib"
	quittance "quittance.example/go"
)

var (
	db       *sql.DB
	receiver *quittance.Receiver
	live     = strings.HasPrefix(os.Getenv("QUITTANCE_KEY"), "sk_live_")
)

func main() {
	var err error
	if receiver, err = quittance.NewReceiver(os.Getenv("QUITTANCE_WEBHOOK_SECRET")); err == nil {
		db, err = sql.Open("pgx", os.Getenv("DATABASE_URL"))
	}
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("POST /webhooks", webhook)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}

`

// readmeTables are the tables of the README's receiver.
const readmeTables = `
CREATE TABLE cases (order_id text PRIMARY KEY, amount bigint NOT NULL, currency text NOT NULL);
CREATE TABLE payments (session_id text PRIMARY KEY, order_id text NOT NULL REFERENCES cases, sequence bigint NOT NULL, paid boolean NOT NULL)`

// An integrator copies the receiver of the README. It stores what the events say about the
// money of a case, and answers 2xx only then.
func TestReadmeReceiver(t *testing.T) {
	t.Parallel()
	sample := goSample(t, "README.md")
	if sample != goSample(t, "sdk/go/README.md") {
		t.Error("sdk/go/README.md has another receiver than README.md")
	}
	dsn := servers.Postgres(t)
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	execute(t, pool, readmeTables)

	q := quickstart{language: "README", dir: servers.Dir(t), receive: "readme.go", env: []string{"DATABASE_URL=" + dsn}}
	q.run = func(t *testing.T, file, _ string) []string { t.Helper(); return withSDK(t, file) }
	q.text = readmeProgram + sample
	r := &receiver{port: harness.Ports(t, 1)[0], key: []byte(rand.Text())}
	r.start(t, q, "sk_live_"+rand.Text())

	for name, c := range journeys() {
		execute(t, pool, `INSERT INTO cases VALUES ($1, 5000, 'XAF')`, name)
		for _, h := range c.hooks {
			h.order, h.session = name, name+h.session
			if status := r.deliver(t, h.body(t)); status != http.StatusNoContent {
				t.Errorf("%s: %s is answered %d", name, h.event, status)
			}
		}
		// The table knows paid and not paid only.
		want := strings.NewReplacer("reversed", "false", "differs", "false", "paid", "true", "chs_", "chs_"+name).Replace(c.want)
		if got := payments(t, pool, name); got != want {
			t.Errorf("%s: the case has %q, want %q", name, got, want)
		}
	}
	for _, event := range []checkout.EventType{checkout.EventFailed, checkout.EventCancelled, checkout.EventExpired, checkout.EventLatePayment} {
		if status := r.deliver(t, hook{order: "paid", session: string(event), event: event, sequence: 2}.body(t)); status != http.StatusNoContent || strings.Contains(payments(t, pool, "paid"), string(event)) {
			t.Errorf("%s is answered %d, and the case has %q", event, status, payments(t, pool, "paid"))
		}
	}
	if status := r.deliver(t, hook{order: "theirs", session: "x", event: checkout.EventCompleted, sequence: 2}.body(t)); status != http.StatusNoContent {
		t.Errorf("another system's order is answered %d", status)
	}
	if status, err := r.post(t, "{}"); err != nil || status != http.StatusBadRequest {
		t.Errorf("an unsigned body is answered %d %v", status, err)
	}

	execute(t, pool, `INSERT INTO cases VALUES ('fails', 5000, 'XAF'), ('slow', 5000, 'XAF')`)
	execute(t, pool, `ALTER TABLE payments RENAME TO away`)
	body := hook{order: "fails", session: "fails", event: checkout.EventCompleted, sequence: 3}.body(t)
	if status := r.deliver(t, body); status != http.StatusInternalServerError {
		t.Errorf("what cannot be stored is answered %d", status)
	}
	execute(t, pool, `ALTER TABLE away RENAME TO payments`)
	if status := r.deliver(t, body); status != http.StatusNoContent || payments(t, pool, "fails") != "chs_fails 3 true" {
		t.Errorf("when the store works again: %d, %q", status, payments(t, pool, "fails"))
	}
	readmeWaits(t, r, pool)
}

// readmeWaits checks that the answer comes after the store's, which waits for a lock.
func readmeWaits(t *testing.T, r *receiver, pool *pgxpool.Pool) {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `LOCK TABLE payments`); err != nil {
		t.Fatal(err)
	}
	answered := make(chan int, 1)
	body := hook{order: "slow", session: "slow", event: checkout.EventCompleted, sequence: 3}.body(t)
	go func() { answered <- r.deliver(t, body) }()
	harness.Eventually(t, "the receiver waits for the lock", func() error {
		var n int
		if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'payments'::regclass`).Scan(&n); err != nil || n == 0 {
			return fmt.Errorf("%d wait: %w", n, err)
		}
		return nil
	})
	select {
	case status := <-answered:
		_ = tx.Rollback(t.Context())
		t.Fatalf("answered %d before it is stored", status)
	case <-time.After(100 * time.Millisecond): // an answer that does not wait comes at once
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status := <-answered; status != http.StatusNoContent || payments(t, pool, "slow") != "chs_slow 3 true" {
		t.Errorf("answered %d, and the case has %q", status, payments(t, pool, "slow"))
	}
}

// goSample is the receiver of a README.
func goSample(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(harness.Absolute(t, file))
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(text), "```go\nfunc webhook(")
	sample, _, ended := strings.Cut(after, "```\n")
	if !ok || !ended {
		t.Fatalf("%s has no receiver", file)
	}
	return "func webhook(" + sample
}

// withSDK builds a program that uses our SDK and our driver of Postgres, by a go.mod which has both.
func withSDK(t *testing.T, file string) []string {
	t.Helper()
	root, path := harness.Absolute(t, "."), strings.TrimSuffix(file, ".go")
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if name == "go.mod" {
			text = fmt.Appendf(text, "\nrequire quittance.example/go v0.0.0\n\nreplace quittance.example/go => %s\n", strconv.Quote(filepath.Join(root, "sdk/go")))
		}
		write(t, filepath.Join(filepath.Dir(file), name), text)
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-modfile="+filepath.Join(filepath.Dir(file), "go.mod"), "-o", path, file)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "GOPROXY=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the receiver of the README: %v\n%s", err, out)
	}
	return []string{path}
}

// execute runs a statement.
func execute(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// payments are the payments of a case, "session sequence paid", the oldest word first.
func payments(t *testing.T, pool *pgxpool.Pool, order string) (out string) {
	t.Helper()
	err := pool.QueryRow(t.Context(), `SELECT coalesce(string_agg(concat(session_id, ' ', sequence, ' ', paid::text), ' ' ORDER BY sequence), '') FROM payments WHERE order_id = $1`, order).Scan(&out)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
