package identity_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/internal/identity"
	"quittance/test/registries"
)

// sessionsOf counts the rows of clerks' sessions.
func sessionsOf(t *testing.T, h registries.House) (n int) {
	t.Helper()
	if err := h.Pool.QueryRow(t.Context(), `SELECT count(*) FROM clerk_sessions`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func signIn(t *testing.T, r registries.Instance, key string) string {
	t.Helper()
	c, err := r.AuthenticateClerk(key)
	if err != nil {
		t.Fatal(err)
	}
	id, err := r.BeginClerkSession(t.Context(), c.KeyID)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// A session that one instance ends is over on the other at once. Neither of them runs, so
// that nothing but Postgres can tell them.
func TestClerkSession(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	var clock registries.Watch
	one, two := h.Open(t, clock.Wear), h.Open(t, clock.Wear)
	in := func(id string) bool {
		t.Helper()
		var found [2]error
		for i, r := range []registries.Instance{one, two} {
			var c identity.ClerkPrincipal
			if c, found[i] = r.ClerkSession(t.Context(), id); found[i] == nil && c.Code != "c01" {
				t.Errorf("the session is of %+v", c)
			}
		}
		if (found[0] == nil) != (found[1] == nil) {
			t.Errorf("the instances disagree: %v", found)
		}
		for _, err := range found {
			if err != nil && !errors.Is(err, identity.ErrUnauthorized) {
				t.Errorf("ended with %v", err)
			}
		}
		return found[0] == nil
	}
	id, other := signIn(t, one, registries.ClerkTest), signIn(t, two, registries.ClerkTest)
	if !in(id) || !in(other) || in(uuid.NewString()) {
		t.Error("sessions are not told apart")
	}
	if err := two.EndClerkSession(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if in(id) || !in(other) {
		t.Error("the wrong session ended")
	}
	if err := one.EndClerkSession(t.Context(), id); err != nil {
		t.Errorf("ending it again: %v", err)
	}

	// Use keeps a session, up to twelve hours.
	clock.Set(time.Hour)
	if in(other) {
		t.Error("a session without use lasts")
	}
	used := signIn(t, one, registries.ClerkTest)
	begun := time.Hour
	for at := begun; at < begun+identity.ClerkSessionLifetime; at += identity.ClerkSessionIdle - time.Second {
		if clock.Set(at); !in(used) {
			t.Fatalf("the session ended after %v", at-begun)
		}
	}
	if clock.Set(begun + identity.ClerkSessionLifetime); in(used) {
		t.Error("a session lasts for ever")
	}

	// A revocation ends the session, also on an instance that has not heard of it.
	last := signIn(t, one, registries.ClerkTest)
	if !in(last) {
		t.Error("nobody is signed in")
	}
	if _, _, err := identity.RevokeClerkKeys(t.Context(), h.Pool, h.Keys, registries.Actor, "impots/c01", clock.Now()); err != nil {
		t.Fatal(err)
	}
	if in(last) {
		t.Error("the session of a revoked key lasts")
	}
}

// Whoever has a key cannot fill the table.
func TestClerkSessionsAreBounded(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	var clock registries.Watch
	r := h.Open(t, clock.Wear)
	elsewhere := signIn(t, r, registries.ClerkTwo)
	var ids []string
	for n := range 30 {
		clock.Set(time.Duration(n) * time.Second)
		ids = append(ids, signIn(t, r, registries.ClerkTest))
	}
	if n := sessionsOf(t, h); n != 11 {
		t.Errorf("there are %d sessions, want 10 and that of another key", n)
	}
	for i, id := range ids {
		if _, err := r.ClerkSession(t.Context(), id); (err == nil) != (i >= 20) {
			t.Errorf("session %d of 30: %v", i+1, err)
		}
	}
	if _, err := r.ClerkSession(t.Context(), elsewhere); err != nil {
		t.Errorf("the session of another key: %v", err)
	}
}

func TestEndedSessionsAreDeleted(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	var clock registries.Watch
	r := h.Open(t, clock.Wear)
	sweep := func() {
		t.Helper()
		if err := identity.Sweep(t.Context(), h.Pool, clock.Now()); err != nil {
			t.Fatal(err)
		}
	}
	signIn(t, r, registries.ClerkTwo)
	signIn(t, r, registries.ClerkTest)
	clock.Set(identity.ClerkSessionIdle - time.Second)
	kept := signIn(t, r, registries.ClerkTwo)
	sweep()
	if n := sessionsOf(t, h); n != 3 {
		t.Errorf("%d sessions before any is idle", n)
	}
	clock.Set(identity.ClerkSessionIdle)
	sweep()
	if n := sessionsOf(t, h); n != 1 {
		t.Errorf("%d sessions when two are idle", n)
	}
	if _, err := r.ClerkSession(t.Context(), kept); err != nil {
		t.Errorf("a session in use: %v", err)
	}
	if _, _, err := identity.RevokeClerkKeys(t.Context(), h.Pool, h.Keys, registries.Actor, "impots/c02", clock.Now()); err != nil {
		t.Fatal(err)
	}
	sweep()
	if n := sessionsOf(t, h); n != 0 {
		t.Errorf("%d sessions of a revoked key", n)
	}
}
