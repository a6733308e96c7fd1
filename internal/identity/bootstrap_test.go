package identity_test

import (
	"slices"
	"testing"
	"time"

	"quittance/internal/identity"
	"quittance/test/registries"
)

// Whoever runs the command line revokes the people of a group and puts others in their place. They approve nothing for
// a day, and nobody approves them before; the others are told at once; revoking ends it.
func TestASecondBootstrapWaits(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	now := registries.Epoch
	add := func(name, agency string) identity.MintedStaff {
		t.Helper()
		m, err := identity.AddStaff(t.Context(), h.Pool, h.Keys, registries.Actor, "", identity.StaffRequest{
			Name: name, Agency: agency, Contact: identity.StaffContactRequest{Email: "x@example.org"},
		}, now)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	approve := func(named string) error {
		_, err := identity.ApproveStaff(t.Context(), h.Pool, h.Keys, registries.Actor, "", named, now)
		return err
	}
	revoke := func(named string) {
		t.Helper()
		if _, _, err := identity.RevokeStaff(t.Context(), h.Pool, h.Keys, registries.Actor, named, now); err != nil {
			t.Fatal(err)
		}
	}
	told := func() (ids []string) {
		t.Helper()
		err := h.Pool.QueryRow(t.Context(), `SELECT coalesce(array_agg(staff_id::text ORDER BY staff_id), '{}') FROM digests WHERE sent_at IS NULL AND items @> '[{"topic": "staff"}]'`).Scan(&ids)
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	jean, mireille, op := add("Jean", "impots"), add("Mireille", "impots"), add("Op", "")
	if got := told(); len(got) != 0 {
		t.Errorf("the first of the groups tell %v", got)
	}
	if !jean.InForce() || !mireille.InForce() {
		t.Fatal("the first of a group wait")
	}
	revoke("Mireille")
	now = now.Add(time.Minute)
	thief, second := add("Thief", "impots"), add("Second", "impots")
	want := []string{jean.ID, op.ID}
	slices.Sort(want)
	if got := told(); !slices.Equal(got, want) {
		t.Errorf("told %v, want %v", got, want)
	}
	_, err := identity.AuthenticateStaff(t.Context(), h.Pool, h.Keys, thief.Secret.Reveal(), now)
	refusedBy(t, err, "staff.waits", "", "name=Thief")
	now = now.Add(identity.StaffWait - time.Second)
	refusedBy(t, approve("Thief"), "staff.waits", "id")
	_, err = identity.ApproveStaff(t.Context(), h.Pool, h.Keys, registries.Actor, jean.Secret.Reveal(), "Thief", now)
	refusedBy(t, err, "staff.waits", "id") // who runs the command line may be one of the group
	_, err = identity.ApproveStaff(t.Context(), h.Pool, h.Keys, registries.Actor, thief.Secret.Reveal(), second.ID, now)
	refusedBy(t, err, "staff.waits", "id")
	revoke("Second")
	now = now.Add(time.Second)
	refusedBy(t, approve("Second"), "staff.key_missing", "")
	if err := approve("Thief"); err != nil {
		t.Fatal(err)
	}
	if s, err := identity.AuthenticateStaff(t.Context(), h.Pool, h.Keys, thief.Secret.Reveal(), now); err != nil || !s.InForce() || !s.ApprovedAt.Equal(now) {
		t.Errorf("%+v, %v", s, err)
	}
	if got := h.Audited(t); !slices.Equal(got[len(got)-5:], []string{"staff.revoke", "staff.add", "staff.add", "staff.revoke", "staff.approve"}) {
		t.Errorf("recorded %v", got)
	}
}

// One who waits is not approved after a week, nor when the group decides about itself again.
func TestAWaitEnds(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	now := registries.Epoch
	group(t, h, "impots", "Jean", "Mireille")
	if _, _, err := identity.RevokeStaff(t.Context(), h.Pool, h.Keys, registries.Actor, "Jean", now); err != nil {
		t.Fatal(err)
	}
	group(t, h, "impots", "One", "Two")
	approve := func(named string, after time.Duration) error {
		_, err := identity.ApproveStaff(t.Context(), h.Pool, h.Keys, registries.Actor, "", named, now.Add(after))
		return err
	}
	refusedBy(t, approve("One", identity.StaffWaitEnds), "staff.wait_ended", "id")
	if err := approve("One", identity.StaffWaitEnds-time.Second); err != nil {
		t.Fatal(err)
	}
	refusedBy(t, approve("Two", identity.StaffWait), "staff.group_decides", "id", "group=impots")
}
