package identity_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/internal/secret"
	"quittance/money"
	"quittance/test/registries"
)

// A member of staff has an address from the beginning, or gets one later. It is sealed in the
// database, masked where it is shown, and recorded in the audit table without itself.
func TestStaffHaveAddresses(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	set := func(named string, req identity.StaffContactRequest) (identity.StaffEntry, error) {
		return identity.SetStaffContact(t.Context(), h.Pool, h.Keys, registries.Actor, named, req, registries.Epoch.Add(time.Hour))
	}
	opens := func(s identity.StaffEntry, want string) {
		t.Helper()
		if a, err := s.Contact.Open(h.Keys); err != nil || a.Text() != want {
			t.Errorf("the address does not open: %v", err)
		}
	}
	jean, err := identity.AddStaff(t.Context(), h.Pool, h.Keys, registries.Actor, "", identity.StaffRequest{
		Name: "Jean", Agency: "impots", Contact: identity.StaffContactRequest{Email: " Jean.Mabiala@Example.org ", Language: money.English},
	}, registries.Epoch)
	if err != nil || jean.Contact.Language != money.English || !jean.Contact.SetAt.Equal(registries.Epoch) {
		t.Fatalf("%+v, %v", jean.Contact, err)
	}
	opens(jean.StaffEntry, "jean.mabiala@example.org")
	if strings.Contains(strings.ToLower(jean.Contact.Email), "jean.mabiala") || !strings.HasSuffix(jean.Contact.Email, "@example.org") {
		t.Errorf("shown as %q", jean.Contact.Email)
	}
	group(t, h, "impots", "Anne")
	s, err := set("Anne", identity.StaffContactRequest{Email: "anne@example.org"})
	if err != nil || s.Contact.Language != money.French {
		t.Fatalf("%+v, %v", s.Contact, err)
	}
	if s, err = set("JEAN", identity.StaffContactRequest{Email: "j.mabiala@example.org"}); err != nil || s.Contact.Language != money.English || !s.Contact.SetAt.Equal(registries.Epoch.Add(time.Hour)) {
		t.Errorf("%+v, %v", s.Contact, err)
	}
	opens(s, "j.mabiala@example.org")
	if s, err = set(jean.ID, identity.StaffContactRequest{Language: money.French}); err != nil || s.Contact.Language != money.French {
		t.Errorf("%+v, %v", s.Contact, err)
	}
	opens(s, "j.mabiala@example.org")
	if _, err := s.Contact.Open(secret.GenerateKeys()); err == nil {
		t.Error("another master key opens the address")
	}
	done, err := identity.SealedContacts.Reseal(t.Context(), h.Pool, h.Keys, registries.Actor, registries.Epoch, 10, func(int) {})
	if err != nil || done.Before != 2 || done.Unopened != 0 {
		t.Errorf("%+v, %v", done, err)
	}

	removed, changed, err := identity.RemoveStaffContact(t.Context(), h.Pool, h.Keys, registries.Actor, "Jean", registries.Epoch)
	if err != nil || !changed || removed.Contact.Email != "" {
		t.Errorf("%+v, %v, %v", removed.Contact, changed, err)
	}
	if _, changed, err = identity.RemoveStaffContact(t.Context(), h.Pool, h.Keys, registries.Actor, "Jean", registries.Epoch); err != nil || changed {
		t.Errorf("again: %v, %v", changed, err)
	}
	// A revoked person needs no address.
	if _, _, err := identity.RevokeStaff(t.Context(), h.Pool, h.Keys, registries.Actor, "Anne", registries.Epoch); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := h.Pool.QueryRow(t.Context(), `SELECT count(*) FROM staff_contacts`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d addresses are left, %v", left, err)
	}
	if got, want := h.Audited(t)[1:], []string{
		"staff.add", "staff.add", "staff.set_contact", "staff.set_contact", "staff.set_contact", "staff.remove_contact", "staff.revoke",
	}; !slices.Equal(got, want) {
		t.Errorf("recorded %v", got)
	}
	var text string
	if err := h.Pool.QueryRow(t.Context(), `SELECT (SELECT string_agg(a::text, '') FROM audit a)`).Scan(&text); err != nil || strings.Contains(text, "example.org") {
		t.Errorf("the audit table has an address, or: %v", err)
	}
}

// The database has no address in plain.
func TestAddressesOfStaffAreSealed(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	group(t, h, "", "Jean")
	if _, err := identity.SetStaffContact(t.Context(), h.Pool, h.Keys, registries.Actor, "Jean", identity.StaffContactRequest{Email: "jean.mabiala@example.org"}, registries.Epoch); err != nil {
		t.Fatal(err)
	}
	var row string
	if err := h.Pool.QueryRow(t.Context(), `SELECT c::text || encode(sealed, 'escape') FROM staff_contacts c`).Scan(&row); err != nil || strings.Contains(row, "jean.mabiala") {
		t.Errorf("a row has the address in plain, or: %v", err)
	}
}

// A wrong address or language is refused with the field. The error does not repeat the
// address, and nothing has changed.
func TestAddressesOfStaffThatAreRefused(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	group(t, h, "", "Jean", "Anne")
	if _, _, err := identity.RevokeStaff(t.Context(), h.Pool, h.Keys, registries.Actor, "Anne", registries.Epoch); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		named       string
		req         identity.StaffContactRequest
		code, field string
	}{
		{"Jean", identity.StaffContactRequest{Email: "jean.mabiala"}, "staff.email_malformed", "email"},
		{"Jean", identity.StaffContactRequest{Email: "jean.mabiala@"}, "staff.email_malformed", "email"},
		{"Jean", identity.StaffContactRequest{Email: "jean mabiala <j@example.org>"}, "staff.email_malformed", "email"},
		{"Jean", identity.StaffContactRequest{Email: "+242 06 600 00 01"}, "staff.email_malformed", "email"},
		{"Jean", identity.StaffContactRequest{Email: "j@example.org", Language: "ln"}, "staff.language_unknown", "language"},
		{"Jean", identity.StaffContactRequest{Language: money.English}, "staff.no_contact", "email"},
		{"Anne", identity.StaffContactRequest{Email: "a@example.org"}, "staff.contact_revoked", "id"},
		{"nobody", identity.StaffContactRequest{Email: "a@example.org"}, "staff.unknown", "id"},
	} {
		_, err := identity.SetStaffContact(t.Context(), h.Pool, h.Keys, registries.Actor, c.named, c.req, registries.Epoch)
		if refusedBy(t, err, c.code, c.field); err != nil && c.req.Email != "" && strings.Contains(err.Error(), c.req.Email) {
			t.Errorf("the error repeats the address: %v", err)
		}
	}
	_, err := identity.AddStaff(t.Context(), h.Pool, h.Keys, registries.Actor, "", identity.StaffRequest{Name: "Luc", Contact: identity.StaffContactRequest{Email: "x"}}, registries.Epoch)
	refusedBy(t, err, "staff.email_malformed", "email")
	if _, err := identity.SetStaffContact(t.Context(), h.Pool, h.Keys, operation.Actor{}, "Jean", identity.StaffContactRequest{Email: "j@example.org"}, registries.Epoch); err == nil {
		t.Error("an address was set without an actor")
	}
	list, err := identity.ListStaff(t.Context(), h.Pool, nil)
	if err != nil || len(list) != 2 || list[0].Contact.Email != "" {
		t.Errorf("%+v, %v", list, err)
	}
}
