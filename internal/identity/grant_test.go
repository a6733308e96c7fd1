package identity_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/internal/identity"
	"quittance/internal/secret"
	"quittance/test/registries"
)

// two is a second agency that platform keys can target, and a third that they cannot.
const two = `agencies:
  - {id: 018f0000-0000-7000-8000-000000000002, slug: douanes, name: X, applications: [{id: 018f0000-0000-7000-8000-00000000000b, name: Y, integrator: true}]}
  - {id: 018f0000-0000-7000-8000-000000000003, slug: tresor, name: Z}
`

// An agency was withdrawn from a platform key, and the key that had been rotated from it
// still acted for the agency. An ungrant reaches all keys in force of the rotation, on every
// instance within a second, and a later rotation copies what is in force.
func TestWithdrawnAgencyIsWithdrawnFromTheWholeRotation(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	h.Seed(t, two)
	r := h.Open(t)
	registries.Run(t, r)
	first := newKey(t, h, identity.KeyRequest{Agencies: []string{"impots", "douanes"}, Live: true})
	other := newKey(t, h, identity.KeyRequest{Agencies: []string{"impots", "douanes"}, Live: true})
	rotate := func(id string) identity.MintedKey {
		t.Helper()
		k, _, err := identity.RotateKey(t.Context(), h.Pool, h.Keys, registries.Actor, id, time.Hour, registries.Epoch)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	second := rotate(first.ID)
	acts := func(key secret.Text, agencies ...string) bool {
		p, err := r.AuthenticateKey(key.Reveal())
		return err == nil && slices.Equal(p.AgencyIDs, agencies)
	}
	registries.Within(t, 5*time.Second, "the keys", func() bool {
		return acts(first.Secret, registries.AgencyA, registries.AgencyB) && acts(second.Secret, registries.AgencyA, registries.AgencyB)
	})

	// The old key of the rotation is named, and the new one loses the agency with it.
	changed, did, err := identity.UngrantKey(t.Context(), h.Pool, h.Keys, registries.Actor, first.ID, []string{"douanes"}, registries.Epoch)
	if err != nil || !did || len(changed) != 2 || changed[0].ID != first.ID || changed[1].ID != second.ID || !slices.Equal(changed[1].Agencies, []string{"impots"}) {
		t.Fatalf("%+v, %v, %v", changed, did, err)
	}
	registries.Within(t, 5*time.Second, "the withdrawal", func() bool { return acts(first.Secret, registries.AgencyA) && acts(second.Secret, registries.AgencyA) })
	if !acts(other.Secret, registries.AgencyA, registries.AgencyB) {
		t.Error("a key of another rotation lost the agency")
	}
	for _, id := range []string{first.ID, strings.ToUpper(second.ID)} {
		if list, err := identity.ListRotation(t.Context(), h.Pool, id); err != nil || len(list) != 2 || list[0].ID != first.ID || list[1].ID != second.ID {
			t.Errorf("the rotation of %s is %+v, %v", id, list, err)
		}
	}
	third := rotate(second.ID)
	registries.Within(t, 5*time.Second, "the third key", func() bool { return acts(third.Secret, registries.AgencyA) })
	if _, did, err := identity.UngrantKey(t.Context(), h.Pool, h.Keys, registries.Actor, third.ID, []string{registries.AgencyB}, registries.Epoch); err != nil || did {
		t.Errorf("an agency that is not granted: %v, %v", did, err)
	}

	granted, did, err := identity.GrantKey(t.Context(), h.Pool, h.Keys, registries.Actor, third.ID, []string{"douanes", "impots"}, registries.Epoch)
	if err != nil || !did || len(granted) != 3 { // the first two end in an hour
		t.Fatalf("%+v, %v, %v", granted, did, err)
	}
	registries.Within(t, 5*time.Second, "the grant", func() bool { return acts(third.Secret, registries.AgencyA, registries.AgencyB) })
	if _, did, err := identity.GrantKey(t.Context(), h.Pool, h.Keys, registries.Actor, third.ID, []string{"douanes"}, registries.Epoch); err != nil || did {
		t.Errorf("an agency that is granted: %v, %v", did, err)
	}
	var recorded []string
	for _, action := range h.Audited(t) {
		if strings.HasSuffix(action, "grant") {
			recorded = append(recorded, action)
		}
	}
	if !slices.Equal(recorded, []string{"key.ungrant", "key.grant"}) {
		t.Errorf("recorded %v", recorded)
	}
}

func TestRegrantRefuses(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	h.Seed(t, two)
	platform := h.KeyID(t, registries.KeyPlatform)
	grant := func(id string, agencies ...string) error {
		_, _, err := identity.GrantKey(t.Context(), h.Pool, h.Keys, registries.Actor, id, agencies, registries.Epoch)
		return err
	}
	refusedBy(t, grant("x", "impots"), "key.not_an_id", "id")
	refusedBy(t, grant(registries.AppA, "impots"), "key.unknown", "id")
	refusedBy(t, grant(h.KeyID(t, registries.KeyTest), "impots"), "key.not_platform", "id", "Guichet fiscal")
	refusedBy(t, grant(h.KeyID(t, registries.ClerkTest), "impots"), "key.unknown", "id")
	refusedBy(t, grant(platform), "key.without_agencies", "agency")
	refusedBy(t, grant(platform, "nobody"), "agency.unknown", "agency", "nobody")
	refusedBy(t, grant(platform, "tresor"), "agency.without_integrator", "agency", "tresor")
	_, _, err := identity.UngrantKey(t.Context(), h.Pool, h.Keys, registries.Actor, platform, []string{"impots"}, registries.Epoch)
	refusedBy(t, err, "key.last_agency", "agency", platform)
	// An agency that has lost its integrator application can be withdrawn.
	if _, _, err := identity.UngrantKey(t.Context(), h.Pool, h.Keys, registries.Actor, platform, []string{"tresor"}, registries.Epoch); err != nil {
		t.Error(err)
	}
	if _, _, err := identity.RevokeKey(t.Context(), h.Pool, h.Keys, registries.Actor, platform, registries.Epoch); err != nil {
		t.Fatal(err)
	}
	refusedBy(t, grant(platform, "douanes"), "key.grants_over", "id", "revoked")
}

// Rotations of an earlier release are in the audit table only.
func TestRotationsOfAnEarlierRelease(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	h.Seed(t, two)
	first := newKey(t, h, identity.KeyRequest{Agencies: []string{"impots", "douanes"}})
	second, _, err := identity.RotateKey(t.Context(), h.Pool, h.Keys, registries.Actor, first.ID, time.Hour, registries.Epoch)
	if err != nil {
		t.Fatal(err)
	}
	names, err := os.ReadDir("../postgres/migrations")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(names, func(e os.DirEntry) bool { return strings.HasSuffix(e.Name(), "_grants.sql") })
	text, err := os.ReadFile("../postgres/migrations/" + names[i].Name())
	if err != nil {
		t.Fatal(err)
	}
	up, down, _ := strings.Cut(string(text), "-- +goose Down")
	h.Exec(t, `DROP TRIGGER api_keys_updated ON api_keys`) // it names later columns
	h.Exec(t, down)
	h.Exec(t, up)
	changed, _, err := identity.UngrantKey(t.Context(), h.Pool, h.Keys, registries.Actor, first.ID, []string{"douanes"}, registries.Epoch)
	if err != nil || len(changed) != 2 || changed[1].ID != second.ID {
		t.Errorf("%+v, %v", changed, err)
	}
}
