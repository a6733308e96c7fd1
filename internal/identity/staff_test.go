package identity_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/test/registries"
)

// group makes staff of a group until the group decides about itself, and returns their keys.
func group(t *testing.T, h registries.House, agency string, names ...string) (keys []string) {
	t.Helper()
	for _, name := range names {
		m, err := identity.AddStaff(t.Context(), h.Pool, h.Keys, registries.Actor, "", identity.StaffRequest{Name: name, Agency: agency}, registries.Epoch)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, m.Secret.Reveal())
	}
	return keys
}

// The first two of a group are made on the command line. One of them proposes a third, and
// the other approves.
func TestStaffDecideAboutStaff(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	add := func(by string, req identity.StaffRequest) (identity.MintedStaff, error) {
		return identity.AddStaff(t.Context(), h.Pool, h.Keys, registries.Actor, by, req, registries.Epoch)
	}
	approve := func(by, named string) error {
		_, err := identity.ApproveStaff(t.Context(), h.Pool, h.Keys, registries.Actor, by, named, registries.Epoch)
		return err
	}
	authenticate := func(key string) (identity.StaffEntry, error) {
		return identity.AuthenticateStaff(t.Context(), h.Pool, h.Keys, key, registries.Epoch)
	}
	agency, operations := group(t, h, "impots", "Jean", "Mireille"), group(t, h, "", "Opérations Un", "Opérations Deux")
	if s, err := authenticate(agency[0]); err != nil || s.Name != "Jean" || s.Group() != "impots" || !s.ActsFor(registries.AgencyA) || s.ActsFor("") {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := authenticate(operations[0]); err != nil || s.Group() != "operations" || !s.ActsFor(registries.AgencyA) || !s.ActsFor("") {
		t.Errorf("%+v, %v", s, err)
	}

	paul := identity.StaffRequest{Name: " Paul  Ngoma ", Agency: registries.AgencyA, Clerks: []string{"impots/c01"}}
	_, err := add("", paul)
	refusedBy(t, err, "staff.needs_proposer", "", "group=impots")
	_, err = add(operations[0], paul)
	refusedBy(t, err, "staff.other_group", "", "own=operations")
	third, err := add(agency[0], paul)
	if err != nil || third.Name != "Paul Ngoma" || third.InForce() || !third.IsClerk(registries.AgencyA, "c01") || third.IsClerk(registries.AgencyA, "c02") {
		t.Fatalf("%+v, %v", third, err)
	}
	key := third.Secret.Reveal()
	_, err = authenticate(key)
	refusedBy(t, err, "staff.not_approved", "", third.ID)
	refusedBy(t, approve("", third.ID), "staff.key_missing", "")
	refusedBy(t, approve(key, third.ID), "staff.not_approved", "")
	refusedBy(t, approve(agency[0], third.ID), "staff.second_person", "")
	refusedBy(t, approve(operations[0], third.ID), "staff.other_group", "")
	refusedBy(t, approve(agency[1], "nobody"), "staff.unknown", "id")
	if err := approve(agency[1], "PAUL NGOMA"); err != nil {
		t.Fatal(err)
	}
	refusedBy(t, approve(agency[1], third.ID), "staff.not_proposed", "id", "state=active")
	if s, err := authenticate(key); err != nil || s.ID != third.ID {
		t.Errorf("%+v, %v", s, err)
	}
	if got, want := h.Audited(t)[1:], []string{"staff.add", "staff.add", "staff.add", "staff.add", "staff.add", "staff.approve"}; !slices.Equal(got, want) {
		t.Errorf("recorded %v", got)
	}
	var actor string
	if err := h.Pool.QueryRow(t.Context(), `SELECT actor FROM audit WHERE action = 'staff.approve' AND actor_kind = 'person'`).Scan(&actor); err != nil {
		t.Error(err)
	}
}

// A name is never used twice, and a revoked person acts no more.
func TestStaffAreRevoked(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	r := h.Open(t)
	registries.Run(t, r)
	keys := group(t, h, "", "Éric", "Anne")
	proposed, err := identity.AddStaff(t.Context(), h.Pool, h.Keys, registries.Actor, keys[0], identity.StaffRequest{Name: "Luc"}, registries.Epoch)
	if err != nil {
		t.Fatal(err)
	}
	revoke := func(named string) (identity.StaffEntry, bool, error) {
		return identity.RevokeStaff(t.Context(), h.Pool, h.Keys, registries.Actor, named, registries.Epoch)
	}
	if s, changed, err := revoke("éRIC"); err != nil || !changed || s.State() != identity.StaffStateRevoked || !s.RevokedAt.Equal(registries.Epoch) {
		t.Fatalf("%+v, %v, %v", s, changed, err)
	}
	if _, changed, err := revoke("Éric"); err != nil || changed {
		t.Errorf("again: %v, %v", changed, err)
	}
	_, err = identity.AuthenticateStaff(t.Context(), h.Pool, h.Keys, keys[0], registries.Epoch)
	refusedBy(t, err, "staff.revoked", "", "name=Éric")
	_, err = identity.ApproveStaff(t.Context(), h.Pool, h.Keys, registries.Actor, keys[1], proposed.ID, registries.Epoch)
	refusedBy(t, err, "staff.proposer_revoked", "id")
	for _, name := range []string{"e\u0301ric", "ÉRIC ", " éric"} { // the first is another spelling of é
		_, err = identity.AddStaff(t.Context(), h.Pool, h.Keys, registries.Actor, "", identity.StaffRequest{Name: name}, registries.Epoch)
		refusedBy(t, err, "staff.name_taken", "name", "state=revoked")
	}
	// The group has one member left, so that the command line makes another, who waits.
	solange, err := identity.AddStaff(t.Context(), h.Pool, h.Keys, registries.Actor, "", identity.StaffRequest{Name: "Solange"}, registries.Epoch)
	if err != nil || solange.State() != identity.StaffStateWaiting {
		t.Fatalf("%+v, %v", solange, err)
	}

	for req, code := range map[*identity.StaffRequest]string{
		{Name: " "}:                                         "staff.name_malformed",
		{Name: strings.Repeat("x", 201)}:                    "staff.name_malformed",
		{Name: "x", Agency: "nobody"}:                       "agency.unknown",
		{Name: "x", Clerks: []string{"impots/nobody"}}:      "clerk.unknown",
		{Name: "x", Clerks: []string{registries.ClerkTest}}: "clerk.unknown",
	} {
		_, err := identity.AddStaff(t.Context(), h.Pool, h.Keys, registries.Actor, keys[1], *req, registries.Epoch)
		var refused *operation.Error
		if !errors.As(err, &refused) || refused.Code != code || strings.Contains(err.Error(), registries.ClerkTest) {
			t.Errorf("%+v: %v", *req, err)
		}
	}
}

// A key of staff opens nothing but the commands of staff, and is no platform key.
func TestStaffKeysOpenNothingElse(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	key := group(t, h, "impots", "Jean")[0]
	r := h.Open(t)
	if !strings.HasPrefix(key, "st_") {
		t.Errorf("the key begins with %q", key[:3])
	}
	if _, err := r.AuthenticateKey(key); err == nil {
		t.Error("it opens the integrators' surface")
	}
	if _, err := r.AuthenticateClerk(key); err == nil {
		t.Error("it opens the counter")
	}
	id := h.KeyID(t, key)
	if _, err := r.ClerkByKey(id); err == nil {
		t.Error("its id opens the counter")
	}
	list, err := identity.ListKeys(t.Context(), h.Pool)
	if err != nil || len(list) != 3 {
		t.Errorf("%d API keys, %v", len(list), err)
	}
	_, _, err = identity.RotateKey(t.Context(), h.Pool, h.Keys, registries.Actor, id, time.Hour, registries.Epoch)
	refusedBy(t, err, "key.unknown", "id")
	for _, other := range []string{registries.KeyTest, registries.KeyPlatform, registries.ClerkTest, "st_", key + "x", strings.ToLower(key)} {
		_, err := identity.AuthenticateStaff(t.Context(), h.Pool, h.Keys, other, registries.Epoch)
		if refusedBy(t, err, "staff.key_unknown", ""); strings.Contains(err.Error(), other) {
			t.Errorf("the error repeats the key: %v", err)
		}
	}
}
