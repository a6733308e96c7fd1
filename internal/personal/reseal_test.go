package personal_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/internal/personal"
	"quittance/internal/secret"
)

// After a rotation the data keys are sealed with the newest master key, so that the old one
// can go, and what Kafka has still opens. An erasure that runs meanwhile is not undone and
// not waited for.
func TestResealRetiresTheOldKey(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	old, newest := secret.GenerateKeys(), secret.GenerateKeys()
	both, err := secret.ParseKeys(newest.Reveal() + "," + old.Reveal() + ":open")
	if err != nil {
		t.Fatal(err)
	}
	v.Store = v.with(t, old)
	sealed := map[string][]byte{}
	for n := range 7 {
		id := fmt.Sprintf("chs_%d", n)
		sealed[id] = v.seal(t, id, checkout.Customer{Name: id})
	}
	needs := func(keys *secret.Keys) int {
		t.Helper()
		found, err := personal.DataKeys.Count(t.Context(), v.pool)
		if err != nil {
			t.Fatal(err)
		}
		return found.Keys[keys.Entries()[0].ID]
	}
	if needs(old) != 7 || needs(newest) != 0 {
		t.Fatalf("before: %d and %d", needs(old), needs(newest))
	}
	ctx, cancel := context.WithCancel(t.Context())
	if done, err := personal.DataKeys.Reseal(ctx, v.pool, both, actor, begin, 2, func(int) { cancel() }); !errors.Is(err, context.Canceled) || done.Sealed != 2 {
		t.Fatalf("%+v, %v", done, err)
	}

	// The sink deletes the data key of a session, and has not committed yet.
	erasing, err := v.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var erased string
	if err := erasing.QueryRow(t.Context(), `DELETE FROM personal_keys WHERE id = (SELECT id FROM personal_keys ORDER BY id DESC LIMIT 1) RETURNING session_id`).Scan(&erased); err != nil {
		t.Fatal(err)
	}
	limited, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	done, err := personal.DataKeys.Reseal(limited, v.pool, both, actor, begin, 2, func(int) {})
	if err != nil || done.Sealed != 4 || done.Before != 2 || done.Unopened != 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	if err := erasing.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if needs(old) != 0 || needs(newest) != 6 {
		t.Errorf("after: %d and %d", needs(old), needs(newest))
	}
	alone := v.with(t, newest)
	for id, value := range sealed {
		c, err := alone.Customer(t.Context(), id, value)
		switch {
		case id == erased && !errors.Is(err, personal.ErrErased):
			t.Errorf("%s is erased and opens as %+v, %v", id, c, err)
		case id != erased && (err != nil || c.Name != id):
			t.Errorf("%s opens as %+v, %v", id, c, err)
		}
	}
	if n := v.count(t, `SELECT count(*) FROM audit WHERE action = 'secrets.reseal' AND subject = 'personal_keys'`); n != 3 {
		t.Errorf("%d transactions are recorded, want 3", n)
	}
	if done, err := personal.DataKeys.Reseal(t.Context(), v.pool, secret.GenerateKeys(), actor, begin, 2, func(int) {}); err != nil || done.Unopened != 6 {
		t.Errorf("with an unknown key: %+v, %v", done, err)
	}
}
