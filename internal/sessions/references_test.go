package sessions_test

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/checkout"
	"quittance/internal/kafka"
	"quittance/internal/sessions"
	"quittance/test/servers"
)

// door is a connection to Postgres that can be shut.
type door struct {
	sessions.Beginner
	mu   sync.Mutex
	shut bool
}

func (d *door) set(shut bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut = shut
}

func (d *door) Begin(ctx context.Context) (pgx.Tx, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shut {
		return nil, errors.New("connection refused")
	}
	return d.Beginner.Begin(ctx)
}

// counters is an installation that issues references.
type counters struct {
	t    *testing.T
	cfg  sessions.ReferencesConfig
	seen map[string]bool
}

func newCounters(t *testing.T) *counters {
	t.Helper()
	c := &counters{t: t, seen: map[string]bool{}, cfg: sessions.ReferencesConfig{
		Kafka: kafka.Config{Brokers: []string{servers.Kafka(t)}, Prefix: servers.Prefix(t), Replication: 1, Partitions: 1},
		Codec: codec(t), Key: make([]byte, 32), Block: 50, Now: time.Now, Log: servers.Logger(t),
	}}
	cl, err := c.cfg.Kafka.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if _, err := kafka.Migrate(t.Context(), c.cfg.Kafka, cl); err != nil {
		t.Fatal(err)
	}
	if c.cfg.Topology, err = kafka.Load(t.Context(), c.cfg.Kafka, cl); err != nil {
		t.Fatal(err)
	}
	return c
}

// start runs an instance on a database.
func (c *counters) start(db sessions.Beginner) *sessions.References {
	c.t.Helper()
	cfg := c.cfg
	cfg.Postgres = db
	s, err := sessions.NewReferences(c.t.Context(), cfg)
	// Two databases are a fault of operation. An instance does not start while one on another
	// database leases, and its supervisor starts it again.
	for deadline := time.Now().Add(time.Minute); err != nil && strings.Contains(err.Error(), "in another database") && time.Now().Before(deadline); {
		s, err = sessions.NewReferences(c.t.Context(), cfg)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	c.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			c.t.Error(err)
		}
	})
	return s
}

// take takes one number of each kind. It fails when one was issued before.
func (c *counters) take(s *sessions.References) error {
	c.t.Helper()
	ref, err := s.PaymentRef()
	if err != nil {
		return err
	}
	notice, err := s.NoticeRef()
	if err != nil {
		return err
	}
	if c.seen[ref] || c.seen[notice] || !checkout.ValidPaymentRef(ref) {
		c.t.Fatalf("%s or %s twice, or malformed", ref, notice)
	}
	c.seen[ref], c.seen[notice] = true, true
	id, err := s.PaymentID()
	if err != nil {
		return err
	}
	if text := strconv.FormatInt(id, 10); c.seen[text] || id < 1 || id > math.MaxInt32 {
		c.t.Fatalf("paymentId %d twice, or out of range", id)
	} else {
		c.seen[text] = true
	}
	return nil
}

// issue takes n numbers of the instances in turn.
func (c *counters) issue(n int, instances ...*sessions.References) {
	c.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for taken := 0; taken < n; {
		switch err := c.take(instances[taken%len(instances)]); {
		case err == nil:
			taken++
		case !errors.Is(err, sessions.ErrExhausted):
			c.t.Fatal(err)
		case time.Now().After(deadline):
			c.t.Fatal("no numbers within a minute")
		default:
			time.Sleep(5 * time.Millisecond) // Run leases more
		}
	}
}

func TestNumbersAreUniqueAndSurviveAnAbsence(t *testing.T) {
	t.Parallel()
	c := newCounters(t)
	db := &door{Beginner: database(t)}
	sources := []*sessions.References{c.start(db), c.start(db)}
	other := c.cfg
	other.Postgres, other.Key = db, append([]byte{1}, make([]byte, 31)...)
	if _, err := sessions.NewReferences(t.Context(), other); !errors.Is(err, sessions.ErrKey) {
		t.Errorf("another key: %v", err)
	}
	c.issue(500, sources...)

	lasts := func() (n int) { // counts the leased numbers, up to 40
		db.set(true)
		for n < 40 && c.take(sources[0]) == nil {
			n++
		}
		return n
	}
	for tries := 0; lasts() < 40; tries++ {
		if tries == 50 {
			t.Fatal("what is leased does not last for 40 numbers without Postgres")
		}
		db.set(false) // the previous request for a lease was still running
		time.Sleep(100 * time.Millisecond)
	}
	var err error
	for !errors.Is(err, sessions.ErrExhausted) {
		err = c.take(sources[0])
	}
	db.set(false)
	c.issue(1, sources[0])
}

// The drill: dump Postgres, create sessions, restore the dump, create sessions. The
// instances that ran on, one that starts afterwards, and one that starts on an empty
// database issue no number twice.
func TestARestoredPostgresLeasesNoBlockTwice(t *testing.T) {
	t.Parallel()
	c := newCounters(t)
	db := database(t)
	a, b := c.start(db), c.start(db)
	c.issue(10, a, b)

	dump := map[string]int64{}
	rows, err := db.Query(t.Context(), `SELECT name, next FROM reference_counters`)
	if err != nil {
		t.Fatal(err)
	}
	var name string
	var next int64
	if _, err := pgx.ForEachRow(rows, []any{&name, &next}, func() error { dump[name] = next; return nil }); err != nil {
		t.Fatal(err)
	}
	if len(dump) != 5 { // payment_ref, payment_id, notice_ref of two years, and the key
		t.Fatalf("the dump has %v", dump)
	}

	c.issue(600, a, b)

	for name, next := range dump {
		if _, err := db.Exec(t.Context(), `UPDATE reference_counters SET next = $2 WHERE name = $1`, name, next); err != nil {
			t.Fatal(err)
		}
	}
	c.issue(600, a, b, c.start(db))
	c.issue(600, a, b, c.start(database(t)))
}

// crossing is a transaction during which something else happens, once.
type crossing struct {
	sessions.Beginner
	now atomic.Bool
	do  func()
}

type crossed struct {
	pgx.Tx
	crossing *crossing
}

func (c *crossing) Begin(ctx context.Context) (pgx.Tx, error) {
	tx, err := c.Beginner.Begin(ctx)
	return crossed{tx, c}, err
}

func (c crossed) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if c.crossing.now.CompareAndSwap(true, false) {
		c.crossing.do()
	}
	return c.Tx.QueryRow(ctx, sql, args...)
}

// While Postgres moves, an instance may still lease from the old one. Instances of two
// databases do not wait for each other. They notice it in Kafka.
func TestTwoDatabasesLeaseNoBlockTwice(t *testing.T) {
	t.Parallel()
	c := newCounters(t)
	first := &crossing{Beginner: database(t)}
	a := c.start(first)
	c.issue(60, a) // the next lease is due
	second := database(t)
	var b *sessions.References
	started := make(chan struct{})
	first.do = func() { b = c.start(second); close(started) }
	first.now.Store(true)
	c.issue(200, a)
	<-started
	c.issue(400, a, b)
}

// With another key the counters would make numbers again that are printed already. A Postgres
// that was lost does not know the key any more; Kafka does.
func TestAnotherKeyIsRefused(t *testing.T) {
	t.Parallel()
	c := newCounters(t)
	db := database(t)
	known := func(db sessions.Beginner) (int64, bool) {
		t.Helper()
		cfg := c.cfg
		cfg.Postgres = db
		fingerprint, ok, err := sessions.KnownFingerprint(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		return fingerprint, ok
	}
	if fingerprint, ok := known(db); ok {
		t.Errorf("before the first number the key is known: %d", fingerprint)
	}
	c.issue(10, c.start(db))
	other := c.cfg
	other.Key = append([]byte{1}, make([]byte, 31)...)
	lost := database(t)
	for name, postgres := range map[string]sessions.Beginner{"the same Postgres": db, "an empty Postgres": lost} {
		other.Postgres = postgres
		if _, err := sessions.NewReferences(t.Context(), other); !errors.Is(err, sessions.ErrKey) {
			t.Errorf("another key on %s: %v", name, err)
		}
		if fingerprint, ok := known(postgres); !ok || fingerprint != sessions.KeyFingerprint(c.cfg.Key) {
			t.Errorf("on %s the key is known as %d, %v", name, fingerprint, ok)
		}
	}
	c.issue(10, c.start(lost)) // the refused key has left nothing behind
}

// An earlier release wrote the fingerprint of the key to Postgres only.
func TestKeyOfAnEarlierRelease(t *testing.T) {
	t.Parallel()
	c := newCounters(t)
	db := database(t)
	if _, err := db.Exec(t.Context(), `INSERT INTO reference_counters (name, next) VALUES ('key', $1)`, sessions.KeyFingerprint(c.cfg.Key)); err != nil {
		t.Fatal(err)
	}
	other := c.cfg
	other.Postgres, other.Key = db, append([]byte{1}, make([]byte, 31)...)
	if _, err := sessions.NewReferences(t.Context(), other); !errors.Is(err, sessions.ErrKey) {
		t.Errorf("another key: %v", err)
	}
	c.issue(10, c.start(db))
	other.Postgres = database(t)
	if _, err := sessions.NewReferences(t.Context(), other); !errors.Is(err, sessions.ErrKey) {
		t.Errorf("another key after the first lease of this release: %v", err)
	}
}
