package quota_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/internal/quota"
)

// Instances count the unknown references of a key together, by the hour.
func TestUnknown(t *testing.T) {
	t.Parallel()
	var w watch
	w.set(10 * time.Minute)
	pool := database(t)
	one, two := &quota.Unknown{Postgres: pool, Now: w.now, Most: 5}, &quota.Unknown{Postgres: pool, Now: w.now, Most: 5}
	key := uuid.NewString()
	exhausted := func(u *quota.Unknown, key string) bool {
		t.Helper()
		until, is, err := u.Exhausted(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if now := w.now(); !now.Add(until).Equal(now.Truncate(time.Hour).Add(time.Hour)) {
			t.Errorf("at %v the hour is said to end in %v", now, until)
		}
		return is
	}
	note := func(u *quota.Unknown) {
		if err := u.Note(t.Context(), key); err != nil {
			t.Error(err)
		}
	}
	if exhausted(one, key) {
		t.Error("a new key finds nothing")
	}
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() { note([]*quota.Unknown{one, two}[n%2]) })
	}
	wg.Wait()
	if exhausted(one, key) || exhausted(two, key) {
		t.Error("4 of 5 are too many")
	}
	note(two)
	if !exhausted(one, key) || !exhausted(two, key) || exhausted(one, uuid.NewString()) {
		t.Error("5 of 5 are not too many, or count for another key")
	}
	w.set(time.Hour - time.Nanosecond)
	if !exhausted(one, key) {
		t.Error("the hour ends too early")
	}
	w.set(time.Hour)
	if exhausted(one, key) {
		t.Error("the hour does not end")
	}
	note(one)
	w.set(time.Hour - time.Second) // an instance whose clock is behind counts in the newer hour
	note(two)
	w.set(time.Hour + time.Minute)
	for range 2 {
		note(one)
	}
	if exhausted(one, key) {
		t.Error("4 of 5 are too many")
	}
	if note(two); !exhausted(two, key) {
		t.Error("one is lost")
	}
}
