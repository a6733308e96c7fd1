package identity_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/internal/signed"
	"quittance/test/registries"
	"quittance/test/servers"
)

// keyOfThief is a key whose hash somebody writes into the database.
const keyOfThief = "sk_live_TheKeyOfAThief000000000"

func hashOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return `'\x` + hex.EncodeToString(sum[:]) + `'`
}

// Whoever can write to Postgres inserts or edits a key, a clerk or a member of staff. It opens nothing.
func TestForgedPeopleOpenNothing(t *testing.T) {
	t.Parallel()
	asKey := func(key string) func(registries.Instance) error {
		return func(r registries.Instance) error {
			_, err := r.AuthenticateKey(key)
			return err
		}
	}
	asClerk := func(key string) func(registries.Instance) error {
		return func(r registries.Instance) error {
			_, err := r.AuthenticateClerk(key)
			return err
		}
	}
	copied := func(columns, values, of string) string {
		return `INSERT INTO api_keys (id, hash, live, created_at, signature, ` + columns + `) SELECT gen_random_uuid(), ` + values + ` FROM api_keys WHERE hash = ` + hashOf(of)
	}
	for _, c := range []struct {
		name, sql, table string
		opens            func(registries.Instance) error
		want             error
	}{
		{"a key of the application", copied("application_id", hashOf(keyOfThief)+", true, created_at, signature, application_id", registries.KeyLive), "api_keys", asKey(keyOfThief), identity.ErrKeyForged},
		{"a key of the platform", copied("agencies", hashOf(keyOfThief)+", true, created_at, NULL, agencies", registries.KeyPlatform), "api_keys", asKey(keyOfThief), identity.ErrKeyForged},
		{"another secret", `UPDATE api_keys SET hash = ` + hashOf(keyOfThief) + ` WHERE hash = ` + hashOf(registries.KeyLive), "api_keys", asKey(keyOfThief), identity.ErrKeyForged},
		{"another application", `ALTER TABLE api_keys DROP CONSTRAINT api_keys_application_id_fkey; UPDATE api_keys SET application_id = '` + registries.AppB + `' WHERE hash = ` + hashOf(registries.KeyLive), "api_keys", asKey(registries.KeyLive), identity.ErrKeyForged},
		{"the platform", `UPDATE api_keys SET application_id = NULL WHERE hash = ` + hashOf(registries.KeyLive), "api_keys", asKey(registries.KeyLive), identity.ErrKeyForged},
		{"more agencies", `UPDATE api_keys SET agencies = agencies || '018f0000-0000-7000-8000-0000000000ff'::uuid WHERE hash = ` + hashOf(registries.KeyPlatform), "api_keys", asKey(registries.KeyPlatform), identity.ErrKeyForged},
		{"a revoked key", `UPDATE api_keys SET revoked_at = NULL WHERE revoked_at IS NOT NULL`, "api_keys", asKey(registries.KeyTest), identity.ErrKeyForged},
		{"a revocation by hand", `UPDATE api_keys SET revoked_at = now() WHERE hash = ` + hashOf(registries.KeyLive), "api_keys", asKey(registries.KeyLive), identity.ErrKeyForged},
		{"a clerk who is switched off", `UPDATE clerks SET active = true WHERE code = 'c02'`, "clerks", asClerk(registries.ClerkTwo), identity.ErrClerkInactive},
		{"the limits of a clerk", `UPDATE clerks SET payment_limit = 0, day_limit = 9000000 WHERE code = 'c01'`, "clerks", asClerk(registries.ClerkTest), identity.ErrClerkInactive},
		{"the counter of a clerk", `UPDATE clerks SET counter = 'Annexe' WHERE code = 'c01'`, "clerks", asClerk(registries.ClerkTest), identity.ErrClerkInactive},
		{"a key of another clerk", `UPDATE api_keys SET clerk_code = 'c02' WHERE hash = ` + hashOf(registries.ClerkTest), "api_keys", asClerk(registries.ClerkTest), identity.ErrKeyForged},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := registries.SetUp(t)
			h.Seed(t, registries.Full)
			h.Write(t, `UPDATE api_keys SET revoked_at = now() WHERE hash = `+hashOf(registries.KeyTest))
			h.Write(t, `UPDATE clerks SET active = false WHERE code = 'c02'`)
			running := h.Open(t)
			registries.Run(t, running)
			h.Exec(t, c.sql)
			if err := c.opens(h.Open(t)); !errors.Is(err, c.want) || !errors.Is(err, identity.ErrUnauthorized) {
				t.Errorf("it opens: %v", err)
			}
			registries.Within(t, 5*time.Second, "a running instance refuses it", func() bool { return errors.Is(c.opens(running), c.want) })
			f, err := registry.LookAtRows(t.Context(), h.Pool, h.Keys)
			if err != nil || len(f.Rows) != 1 || f.Rows[0].Table != c.table {
				t.Errorf("found %+v, %v", f.Rows, err)
			}
		})
	}
}

// A member of staff who was inserted, approved or moved by SQL decides nothing, and proposes nobody.
func TestForgedStaffDecideNothing(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	keys := group(t, h, "impots", "One", "Two")
	three, err := identity.AddStaff(t.Context(), h.Pool, h.Keys, registries.Actor, keys[0], identity.StaffRequest{Name: "Three", Agency: "impots"}, registries.Epoch)
	if err != nil {
		t.Fatal(err)
	}
	const thief = "st_TheKeyOfAThief0000000000000"
	h.Exec(t, `INSERT INTO staff (id, name, folded, agency_id, created_at, approved_at, signature) SELECT gen_random_uuid(), 'Thief', 'thief', agency_id, created_at, approved_at, signature FROM staff WHERE name = 'One'`)
	h.Exec(t, `INSERT INTO api_keys (id, hash, staff_id, live, created_at, signature) SELECT gen_random_uuid(), `+hashOf(thief)+`, s.id, true, k.created_at, k.signature FROM staff s, api_keys k WHERE s.name = 'Thief' AND k.staff_id = (SELECT id FROM staff WHERE name = 'One')`)
	h.Exec(t, `UPDATE staff SET approved_at = now(), approved_by = (SELECT id FROM staff WHERE name = 'Two') WHERE name = 'Three'`)
	for name, key := range map[string]string{"inserted": thief, "approved by SQL": three.Secret.Reveal()} {
		_, err := identity.AuthenticateStaff(t.Context(), h.Pool, h.Keys, key, registries.Epoch)
		refusedBy(t, err, signed.CodeForged, "")
		if _, err := identity.ApproveStaff(t.Context(), h.Pool, h.Keys, registries.Actor, key, three.ID, registries.Epoch); err == nil {
			t.Errorf("%s: approves", name)
		}
	}
	_, err = identity.ApproveStaff(t.Context(), h.Pool, h.Keys, registries.Actor, keys[1], three.ID, registries.Epoch)
	if err == nil {
		t.Error("a forged person is approved")
	}
	h.Exec(t, `UPDATE staff SET agency_id = NULL`)
	_, err = identity.AuthenticateStaff(t.Context(), h.Pool, h.Keys, keys[0], registries.Epoch)
	refusedBy(t, err, signed.CodeForged, "")
}

// Whoever breaks the rows of all members of a group does not make the next one valid at once.
func TestForgedGroupIsNotEmpty(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	group(t, h, "impots", "One", "Two")
	h.Exec(t, `UPDATE staff SET created_at = now()`)
	_, err := identity.AddStaff(t.Context(), h.Pool, h.Keys, registries.Actor, "", identity.StaffRequest{Name: "Thief", Agency: "impots"}, registries.Epoch)
	refusedBy(t, err, "staff.needs_proposer", "")
}

// An address that somebody gave to another person gets no digests.
func TestForgedAddressGetsNothing(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	group(t, h, "impots", "One", "Two")
	if _, err := identity.SetStaffContact(t.Context(), h.Pool, h.Keys, registries.Actor, "One", identity.StaffContactRequest{Email: "one@example.org"}, registries.Epoch); err != nil {
		t.Fatal(err)
	}
	with := func() (n int) {
		list, err := identity.ListStaff(t.Context(), h.Pool, signed.NewVerifier(h.Keys))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			if s.Contact.Email != "" {
				n++
			}
		}
		return n
	}
	if with() != 1 {
		t.Fatal("nobody has an address")
	}
	h.Exec(t, `UPDATE staff_contacts SET staff_id = (SELECT id FROM staff WHERE name = 'Two')`)
	if with() != 0 {
		t.Error("the other person has it")
	}
}

// A forged address can be removed, and the command says that there was one.
func TestForgedAddressIsRemoved(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	group(t, h, "impots", "One", "Two")
	if _, err := identity.SetStaffContact(t.Context(), h.Pool, h.Keys, registries.Actor, "One", identity.StaffContactRequest{Email: "one@example.org"}, registries.Epoch); err != nil {
		t.Fatal(err)
	}
	h.Exec(t, `UPDATE staff_contacts SET masked = 'x@example.org'`)
	if _, changed, err := identity.RemoveStaffContact(t.Context(), h.Pool, h.Keys, registries.Actor, "One", registries.Epoch); err != nil || !changed {
		t.Errorf("removed: %v, %v", changed, err)
	}
	if f, err := registry.LookAtRows(t.Context(), h.Pool, h.Keys); err != nil || len(f.Rows)+len(f.Lost) != 0 {
		t.Errorf("after it: %+v, %v", f, err)
	}
}

// Whoever runs the command line and writes to Postgres inserts a person who is in force, and signs the row. The person
// waits as one who is added on the command line, and the others are told.
func TestSignedStaffWait(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	group(t, h, "impots", "One", "Two")
	now := registries.Epoch.Add(time.Hour)
	if _, err := identity.SetStaffContact(t.Context(), h.Pool, h.Keys, registries.Actor, "One", identity.StaffContactRequest{Email: "one@example.org"}, now); err != nil {
		t.Fatal(err)
	}
	h.Exec(t, `INSERT INTO staff (id, name, folded, agency_id, created_at, approved_at) SELECT gen_random_uuid(), 'Thief', 'thief', agency_id, created_at - interval '3 days', approved_at FROM staff WHERE name = 'One'`)
	h.Exec(t, `UPDATE staff SET revoked_at = approved_at, clerks = '{x}' WHERE name = 'Two'`)
	f, err := registry.LookAtRows(t.Context(), h.Pool, h.Keys)
	if err != nil || len(f.Rows) != 2 {
		t.Fatalf("%+v, %v", f, err)
	}
	if err := identity.SignStaff(t.Context(), h.Pool, h.Keys, registries.Actor, f.Rows, now); err != nil {
		t.Fatal(err)
	}
	list, err := identity.ListStaff(t.Context(), h.Pool, signed.NewVerifier(h.Keys))
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]identity.StaffState{}
	for _, s := range list {
		if states[s.Name] = s.State(); s.Forged {
			t.Errorf("%s is not signed", s.Name)
		}
	}
	if states["Thief"] != identity.StaffStateWaiting || states["Two"] != identity.StaffStateRevoked || states["One"] != identity.StaffStateActive {
		t.Errorf("states %v", states)
	}
	_, err = identity.ApproveStaff(t.Context(), h.Pool, h.Keys, registries.Actor, "", "Thief", now.Add(identity.StaffWait-time.Second))
	refusedBy(t, err, "staff.waits", "id")
	var told int
	if err := h.Pool.QueryRow(t.Context(), `SELECT count(*) FROM digests WHERE items @> '[{"topic": "staff"}]'`).Scan(&told); err != nil || told != 1 {
		t.Errorf("%d people are told, %v", told, err)
	}
	if after, err := registry.LookAtRows(t.Context(), h.Pool, h.Keys); err != nil || len(after.Rows)+len(after.Lost) != 0 {
		t.Errorf("after it: %+v, %v", after, err)
	}
	// A row that has changed since somebody looked at it is not signed.
	thief := slices.DeleteFunc(f.Rows, func(r signed.Row) bool {
		return !slices.Contains(r.Columns(), signed.Column{Name: "name", Value: "Thief"})
	})
	refusedBy(t, identity.SignStaff(t.Context(), h.Pool, h.Keys, registries.Actor, thief, now), signed.CodeChanged, "", "table=staff")
}

// A change needs the master keys, and refuses to sign what somebody else has written.
func TestPeopleAreChangedWithKeys(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	req := identity.KeyRequest{Application: registries.AppA, Live: true}
	_, err := identity.CreateKey(t.Context(), h.Pool, nil, registries.Actor, req, registries.Epoch)
	refusedBy(t, err, signed.CodeNoKey, "")
	role := h.Keys.Subset("tidy", []secret.Use{{Purpose: secret.PurposeVerify, Label: secret.LabelRegistryRows}})
	_, err = identity.CreateKey(t.Context(), h.Pool, role, registries.Actor, req, registries.Epoch)
	refusedBy(t, err, signed.CodeNoKey, "")
	h.Exec(t, `UPDATE clerks SET day_limit = 7 WHERE code = 'c01'`)
	limit := int64(5)
	_, err = identity.LimitClerk(t.Context(), h.Pool, h.Keys, registries.Actor, "impots/c01", &limit, nil, registries.Epoch)
	refusedBy(t, err, signed.CodeForged, "")
}

// later are the tables that the release before did not sign: those of people, and what came after them.
var later = []string{"staff", "staff_contacts", "clerks", "api_keys", "cashin_pairs", "payout_modes"}

// earlier makes the database that of the release before.
func earlier(t *testing.T, h registries.House) {
	t.Helper()
	earlierManifest(t, h)
	for _, table := range later {
		h.Exec(t, `UPDATE `+table+` SET signature = NULL`)
	}
}

// earlierManifest puts the manifest of the release before in the place of the present one.
func earlierManifest(t *testing.T, h registries.House) {
	t.Helper()
	var content []byte
	if err := h.Pool.QueryRow(t.Context(), `SELECT content FROM row_manifest`).Scan(&content); err != nil {
		t.Fatal(err)
	}
	var manifest map[string]any
	if err := json.Unmarshal(content, &manifest); err != nil {
		t.Fatal(err)
	}
	delete(manifest, "generation")
	tables := manifest["tables"].(map[string]any)
	for _, table := range later {
		delete(tables, table)
	}
	content, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := h.Keys.Sign(secret.LabelRegistryRows, append([]byte("quittance manifest of rows 1\n"), content...))
	if err != nil {
		t.Fatal(err)
	}
	h.Exec(t, `UPDATE row_manifest SET content = $1, signature = $2`, content, signature)
	h.Exec(t, `DELETE FROM staff_manifest`) // there was none
}

// The release before did not sign people. Until migrate has done so nobody is believed, and then
// everybody is as before. It signs them once.
func TestPeopleOfAnEarlierReleaseAreSignedOnce(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	device, _ := remember(t, h.Open(t), registries.ClerkTest, "", pin)
	earlier(t, h)
	h.Exec(t, `UPDATE clerk_devices SET mac = NULL`)
	if _, err := registry.Open(t.Context(), registry.Config{Pool: h.Pool, Keys: h.Keys, Log: servers.Logger(t), Now: time.Now}); !errors.Is(err, signed.ErrNotSigned) {
		t.Errorf("a role starts: %v", err)
	}
	_, err := identity.CreateKey(t.Context(), h.Pool, h.Keys, registries.Actor, identity.KeyRequest{Application: registries.AppA, Live: true}, registries.Epoch)
	refusedBy(t, err, signed.CodeUnsigned, "")
	counts, err := registry.SignAll(t.Context(), h.Pool, h.Keys, registries.Actor, registries.Epoch, identity.ProveDevices)
	if err != nil || counts["api_keys"] != 6 || counts["clerks"] != 2 || counts["cashin_pairs"] != 1 || counts["agencies"] != 0 {
		t.Errorf("signed %v, %v", counts, err)
	}
	r := h.Open(t)
	if _, err := r.AuthenticateKey(registries.KeyLive); err != nil {
		t.Error(err)
	}
	if _, err := r.SignInWithPIN(t.Context(), device, "c01", pin); err != nil {
		t.Error(err)
	}
	h.Exec(t, `UPDATE clerks SET signature = NULL, day_limit = 1`)
	if counts, err = registry.SignAll(t.Context(), h.Pool, h.Keys, registries.Actor, registries.Epoch, identity.ProveDevices); err != nil || len(counts) != 0 {
		t.Errorf("a second time it signs %v, %v", counts, err)
	}
}

// Whoever kept the manifest of the release before puts it back. Nothing of it makes migrate sign people once more.
func TestEarlierManifestSignsNobody(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	group(t, h, "impots", "One", "Two")
	device, _ := remember(t, h.Open(t), registries.ClerkTest, "", pin)
	earlierManifest(t, h)
	h.Exec(t, `INSERT INTO staff (id, name, folded, agency_id, created_at, approved_at) SELECT gen_random_uuid(), 'Thief', 'thief', agency_id, created_at, approved_at FROM staff WHERE name = 'One'`)
	h.Exec(t, `UPDATE clerk_devices SET mac = NULL`)
	counts, err := registry.SignAll(t.Context(), h.Pool, h.Keys, registries.Actor, registries.Epoch, identity.ProveDevices)
	if err != nil || len(counts) != 0 {
		t.Errorf("signed %v, %v", counts, err)
	}
	if f, err := registry.LookAtRows(t.Context(), h.Pool, h.Keys); err != nil || f.NotSigned || f.Outdated || len(f.Rows) != 1 || f.Rows[0].Table != "staff" {
		t.Errorf("found %+v, %v", f, err)
	}
	if _, err := h.Open(t).SignInWithPIN(t.Context(), device, "c01", pin); !errors.Is(err, identity.ErrPINUsedUp) {
		t.Errorf("a device without a proof: %v", err)
	}
}

// While people are not signed yet, nothing writes a manifest that calls them signed: migrate could never sign them then.
func TestNoManifestBeforePeopleAreSigned(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	group(t, h, "impots", "One", "Two")
	if _, err := identity.SetStaffContact(t.Context(), h.Pool, h.Keys, registries.Actor, "One", identity.StaffContactRequest{Email: "one@example.org"}, registries.Epoch); err != nil {
		t.Fatal(err)
	}
	earlier(t, h)
	err := registry.Change(t.Context(), h.Pool, h.Keys, registries.Epoch, func(tx *registry.Tx) error {
		_, err := tx.Exec(t.Context(), `DELETE FROM staff_contacts`) // a deletion signs no row
		return err
	})
	refusedBy(t, err, signed.CodeUnsigned, "")
	if counts, err := registry.SignAll(t.Context(), h.Pool, h.Keys, registries.Actor, registries.Epoch, identity.ProveDevices); err != nil || counts["staff"] != 2 {
		t.Errorf("signed %v, %v", counts, err)
	}
}

// A clerk who can write to Postgres makes the own session, or the PIN of the own device, another clerk's.
func TestForgedSignInsOpenNothing(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	r := h.Open(t)
	session := signIn(t, r, registries.ClerkTest)
	device, _ := remember(t, r, registries.ClerkTest, "", pin)
	remember(t, r, registries.ClerkTwo, device, "918273")
	h.Exec(t, `UPDATE clerk_sessions SET key_id = (SELECT id FROM api_keys WHERE hash = `+hashOf(registries.ClerkTwo)+`) WHERE id = '`+session+`'`)
	if c, err := r.ClerkSession(t.Context(), session); !errors.Is(err, identity.ErrSessionEnded) {
		t.Errorf("the session is of %s, %v", c.Ref(), err)
	}
	h.Exec(t, `UPDATE clerk_devices SET pin = (SELECT pin FROM clerk_devices WHERE clerk_code = 'c01') WHERE clerk_code = 'c02'`)
	if _, err := r.SignInWithPIN(t.Context(), device, "c02", pin); !errors.Is(err, identity.ErrPINUsedUp) {
		t.Errorf("the PIN of another clerk: %v", err)
	}
	h.Exec(t, `UPDATE clerk_devices SET mac = (SELECT mac FROM clerk_devices WHERE clerk_code = 'c01') WHERE clerk_code = 'c02'`)
	if _, err := r.SignInWithPIN(t.Context(), device, "c02", pin); !errors.Is(err, identity.ErrPINUsedUp) {
		t.Errorf("with its proof: %v", err)
	}
	if _, err := r.SignInWithPIN(t.Context(), device, "c01", pin); err != nil {
		t.Errorf("the own PIN: %v", err)
	}
}

// The staff pages sign invitations with a key of their own. Whoever takes the pages changes no configuration with it,
// and no key, clerk or person.
func TestStaffRowsHaveAKeyOfTheirOwn(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	keys := group(t, h, "impots", "Jean", "Mireille")
	pages := h.Keys.Subset("office", []secret.Use{
		{Purpose: secret.PurposeVerify, Label: secret.LabelRegistryRows}, {Purpose: secret.PurposeVerify, Label: secret.LabelStaffRows}, {Purpose: secret.PurposeSign, Label: secret.LabelStaffRows},
	})
	write := func(keys *secret.Keys, sql string) error {
		return registry.Change(t.Context(), h.Pool, keys, registries.Epoch, func(tx *registry.Tx) error {
			_, err := tx.Exec(t.Context(), sql)
			return err
		})
	}
	if err := write(pages, `INSERT INTO staff_invitations (id, staff_id, roles, token_hash, invited_at, ends_at) SELECT gen_random_uuid(), id, '{}', sha256('x'), now(), now() FROM staff WHERE name = 'Jean'`); err != nil {
		t.Fatal(err)
	}
	verifies := h.Keys.Subset("cases", []secret.Use{{Purpose: secret.PurposeVerify, Label: secret.LabelRegistryRows}, {Purpose: secret.PurposeVerify, Label: secret.LabelStaffRows}})
	for name, of := range map[string]*secret.Keys{"the master keys": h.Keys, "a role": verifies, "the pages": pages} {
		if f, err := registry.LookAtRows(t.Context(), h.Pool, of); err != nil || len(f.Rows) != 0 || len(f.Lost) != 0 {
			t.Errorf("%s find %+v, %v", name, f, err)
		}
	}
	for name, sql := range map[string]string{
		"an address of an ERP": `UPDATE erp_settings SET base_url = 'https://thief.example'`, "a key": `UPDATE api_keys SET revoked_at = NULL, live = true`,
		"a clerk": `UPDATE clerks SET day_limit = 9`, "a person": `UPDATE staff SET suspended_at = now()`, "a role": `INSERT INTO staff_roles SELECT id, 'lead', now() FROM staff`, "a key is deleted": `DELETE FROM api_keys WHERE staff_id IS NULL AND clerk_code IS NULL`,
	} {
		refused := func(err error) {
			t.Helper()
			var e *operation.Error
			if !errors.As(err, &e) || e.Code != signed.CodeNoKey {
				t.Errorf("%s: %v", name, err)
			}
		}
		refused(write(pages, sql))
	}
	// Signed by hand with the key of the pages: the registry's rows do not verify with it.
	h.Exec(t, `UPDATE clerks SET day_limit = 9, signature = (SELECT signature FROM staff WHERE name = 'Jean') WHERE code = 'c01'`)
	if f, err := registry.LookAtRows(t.Context(), h.Pool, h.Keys); err != nil || len(f.Rows) != 1 || f.Rows[0].Table != "clerks" {
		t.Errorf("found %+v, %v", f, err)
	}
	// A change with the master keys goes on beside it. A person of yesterday is noticed, also when the manifest of the
	// staff is removed.
	h.Exec(t, `CREATE TABLE kept AS TABLE staff`)
	h.Exec(t, `UPDATE clerks SET day_limit = 0, signature = (SELECT signature FROM clerks WHERE false) WHERE code = 'c01'`)
	h.SignForged(t)
	if err := write(h.Keys, `UPDATE staff SET suspended_at = now() WHERE name = 'Jean'`); err != nil {
		t.Fatal(err)
	}
	_, err := identity.AuthenticateStaff(t.Context(), h.Pool, h.Keys, keys[0], registries.Epoch)
	refusedBy(t, err, "staff.suspended", "")
	for _, sql := range []string{`UPDATE staff s SET suspended_at = k.suspended_at, signature = k.signature FROM kept k WHERE k.id = s.id; DROP TABLE kept`, `DELETE FROM staff_manifest`} {
		h.Exec(t, sql)
		if f, err := registry.LookAtRows(t.Context(), h.Pool, h.Keys); err != nil || !slices.Contains(f.Lost, "staff") {
			t.Errorf("a person of yesterday: %+v, %v", f, err)
		}
	}
}
