package sessions_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/checkout"
	"quittance/internal/postgres"
	"quittance/internal/sessions"
	"quittance/test/servers"
)

// door is a connection to Postgres that can be shut.
type door struct {
	sessions.Querier
	mu   sync.Mutex
	shut bool
}

func (d *door) set(shut bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut = shut
}

func (d *door) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shut {
		return away{}
	}
	return d.Querier.QueryRow(ctx, sql, args...)
}

type away struct{}

func (away) Scan(...any) error { return errors.New("connection refused") }

func TestNumbersAreUniqueAndSurviveAnAbsence(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	dsn := servers.Postgres(t)
	if err := postgres.Migrate(ctx, dsn); err != nil {
		t.Fatal(err)
	}
	pool, err := postgres.Open(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	db := &door{Querier: pool}
	var sources []*sessions.References
	var running sync.WaitGroup
	for range 2 { // two instances
		s, err := sessions.NewReferences(ctx, sessions.ReferencesConfig{Postgres: db, Key: make([]byte, 32), Block: 50, Now: time.Now, Log: servers.Logger(t)})
		if err != nil {
			t.Fatal(err)
		}
		running.Go(func() {
			if err := s.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		sources = append(sources, s)
	}
	other := make([]byte, 32)
	other[0] = 1
	if _, err := sessions.NewReferences(ctx, sessions.ReferencesConfig{Postgres: db, Key: other, Now: time.Now, Log: servers.Logger(t)}); !errors.Is(err, sessions.ErrKey) {
		t.Errorf("another key: %v", err)
	}
	defer running.Wait()
	defer cancel()

	seen := map[string]bool{}
	take := func(s *sessions.References) error {
		ref, err := s.PaymentRef()
		if err != nil {
			return err
		}
		notice, err := s.NoticeRef()
		if err != nil {
			return err
		}
		if seen[ref] || seen[notice] || !checkout.ValidPaymentRef(ref) {
			t.Fatalf("%s or %s twice, or malformed", ref, notice)
		}
		seen[ref], seen[notice] = true, true
		return nil
	}
	for n := 0; n < 500; {
		if err := take(sources[n%2]); err == nil {
			n++
		} else if errors.Is(err, sessions.ErrExhausted) {
			time.Sleep(5 * time.Millisecond) // Run leases more
		} else {
			t.Fatal(err)
		}
	}
	lasts := func() (n int) { // counts the leased numbers, up to 40
		db.set(true)
		for n < 40 && take(sources[0]) == nil {
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
	for !errors.Is(err, sessions.ErrExhausted) {
		err = take(sources[0])
	}
	db.set(false)
	deadline := time.Now().Add(20 * time.Second)
	for take(sources[0]) != nil {
		if time.Now().After(deadline) {
			t.Fatal("no numbers after Postgres came back")
		}
		time.Sleep(10 * time.Millisecond)
	}
}
