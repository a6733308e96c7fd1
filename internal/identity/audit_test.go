package identity_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/test/registries"
)

// An operation that changes something is recorded once, in its transaction. An operation
// that is refused, changes nothing or has no actor is not recorded.
func TestOperationsAreRecorded(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	h.Seed(t, registries.Full) // changes nothing
	id := h.KeyID(t, registries.KeyTest)
	rotated, _, err := identity.RotateKey(t.Context(), h.Pool, h.Keys, registries.Actor, id, time.Hour, registries.Epoch)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := identity.CreateKey(t.Context(), h.Pool, h.Keys, registries.Actor, identity.KeyRequest{Application: registries.AppA}, registries.Epoch); err == nil {
		t.Error("a third key was made")
	}
	for range 2 {
		if _, _, err := identity.RevokeKey(t.Context(), h.Pool, h.Keys, registries.Actor, id, registries.Epoch); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := identity.CreateKey(t.Context(), h.Pool, h.Keys, registries.Actor, identity.KeyRequest{Agencies: []string{"impots"}}, registries.Epoch); err != nil {
		t.Fatal(err)
	}
	if _, err := identity.AddClerk(t.Context(), h.Pool, h.Keys, registries.Actor, identity.ClerkRequest{Agency: "impots", Code: "c03", Name: "x", Counter: "y"}, registries.Epoch); err != nil {
		t.Fatal(err)
	}
	if _, _, err := identity.RevokeClerkKeys(t.Context(), h.Pool, h.Keys, registries.Actor, "impots/c01", registries.Epoch); err != nil {
		t.Fatal(err)
	}
	if _, err := registry.RotateSecret(t.Context(), h.Pool, h.Keys, registries.Actor, h.Open(t).AllEndpoints()[0].ID, time.Hour, registries.Epoch); err != nil {
		t.Fatal(err)
	}
	if got, want := h.Audited(t), []string{
		"registry.apply", "key.rotate", "key.revoke", "key.create", "clerk.add_key", "clerk.revoke_key", "clerk.revoke_key", "endpoint.rotate_secret",
	}; !slices.Equal(got, want) {
		t.Errorf("recorded %v, want %v", got, want)
	}
	revision := h.Revision(t)
	if _, _, err := identity.RevokeKey(t.Context(), h.Pool, h.Keys, operation.Actor{}, rotated.ID, registries.Epoch); err == nil {
		t.Error("a key was revoked without an actor")
	}
	if h.Revision(t) != revision {
		t.Error("an operation that was not recorded changed something")
	}
}

// An earlier release stored clerks' keys in another table. They are valid after the
// migration, and after going back and migrating again.
func TestClerkKeysOfAnEarlierRelease(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	before, err := h.Open(t).AuthenticateClerk(registries.ClerkLive)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../postgres/migrations/0012_one_table_of_keys.sql")
	if err != nil {
		t.Fatal(err)
	}
	up, down, _ := strings.Cut(string(text), "-- +goose Down")
	h.Exec(t, `DROP TRIGGER api_keys_updated ON api_keys`) // it names later columns
	h.Exec(t, down)
	var n int
	if err := h.Pool.QueryRow(t.Context(), `SELECT count(*) FROM clerk_keys`).Scan(&n); err != nil || n != 3 {
		t.Fatalf("%d keys of clerks, %v", n, err)
	}
	h.Exec(t, up)
	h.SignForged(t)
	r := h.Open(t)
	if after, err := r.AuthenticateClerk(registries.ClerkLive); err != nil || after != before {
		t.Errorf("%+v, was %+v, %v", after, before, err)
	}
	if _, err := r.AuthenticateKey(registries.KeyPlatform); err != nil {
		t.Errorf("the platform's key: %v", err)
	}
}
