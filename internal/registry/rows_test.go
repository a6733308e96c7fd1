package registry_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/internal/signed"
	"quittance/test/registries"
	"quittance/test/servers"
)

const (
	urlOfThief = "https://thief.example.org"
	where      = " WHERE agency_id = '" + registries.AgencyA + "' AND NOT live"
)

// findings returns what is not as it was signed.
func findings(t *testing.T, h registries.House) (rows, lost string) {
	t.Helper()
	f, err := registry.LookAtRows(t.Context(), h.Pool, h.Keys)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range f.Rows {
		names = append(names, r.Table)
	}
	return strings.Join(names, " "), strings.Join(f.Lost, " ")
}

// Whoever can write to Postgres edits a row that decides. Nobody believes the row.
func TestForgedRowsAreNotUsed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, sql, table string
		// refused says that an instance does not use what was written.
		refused func(r registries.Instance) bool
	}{
		{"the ERP's token goes to a thief", `UPDATE erp_settings SET base_url = '` + urlOfThief + `', networks = '{}'` + where, "erp_settings", erpLocked},
		{"the ERP may be anywhere in our networks", `UPDATE erp_settings SET networks = '{0.0.0.0/0}'` + where, "erp_settings", erpLocked},
		{"the token of the live ERP goes to that of tests", `UPDATE erp_settings e SET auth_sealed = l.auth_sealed, auth_type = l.auth_type FROM erp_settings l WHERE l.live AND NOT e.live`, "erp_settings", erpLocked},
		{"an operator's keys go to a thief, who says SUCCESSFUL", `UPDATE connector_accounts SET base_url = '` + urlOfThief + `'` + where + ` AND offer = 'momo'`, "connector_accounts", accountLocked},
		{"anybody may report for the operator", `UPDATE connector_accounts SET callback_networks = '{0.0.0.0/0}'` + where + ` AND offer = 'momo'`, "connector_accounts", accountLocked},
		{"the account of tests takes live money", `UPDATE connector_accounts SET live = true WHERE offer = 'momo'`, "connector_accounts", func(r registries.Instance) bool {
			a, ok := r.MerchantAccount(registries.AgencyA, true, checkout.OfferMomo)
			return ok && a.Locked
		}},
		{"a webhook goes to a thief", `UPDATE webhook_endpoints SET url = '` + urlOfThief + `' WHERE application_id = '` + registries.AppA + `'`, "webhook_endpoints", endpointLocked},
		{"another application gets the webhooks", `UPDATE webhook_endpoints SET application_id = '` + registries.AppA + `' WHERE application_id IS NULL`, "webhook_endpoints", endpointLocked},
		{"a webhook of live sessions", `UPDATE webhook_endpoints SET modes = '{test,live}' WHERE application_id = '` + registries.AppA + `'`, "webhook_endpoints", endpointLocked},
		{"a replaced secret signs again", `UPDATE webhook_secrets SET expires_at = '2100-01-01'`, "webhook_secrets webhook_secrets webhook_secrets", endpointLocked},
		{"an application is active", `UPDATE applications SET offers = '{cash_agency}' WHERE id = '` + registries.AppA + `'`, "applications", func(r registries.Instance) bool {
			a, _ := r.Application(registries.AppA)
			return !a.Active && len(a.Offers) == 0
		}},
		{"a thief's page embeds the checkout", `UPDATE platform SET embed_origins = '{` + urlOfThief + `}'`, "platform", func(r registries.Instance) bool {
			return len(r.Platform().EmbedOrigins) == 0
		}},
		{"one person decides about all money", `UPDATE agencies SET single_approval_below = 100000000`, "agencies", func(r registries.Instance) bool {
			a, ok := r.Agency(registries.AgencyA)
			app, _ := r.Application(registries.AppA)
			return ok && a.Locked && a.SingleApprovalBelow == 0 && a.LatePayments == registry.LatePaymentsHold && !app.Active
		}},
		{"a fee without a maximum is none", `UPDATE fees SET maximum = 0, minimum = 0, fixed = 0 WHERE channel = 'MOBILE_MONEY'`, "fees", func(r registries.Instance) bool {
			return !r.Takes(registries.AgencyA, false, checkout.OfferMomo, "XAF")
		}},
		{"NULL is not zero", `UPDATE fees SET maximum = 0 WHERE channel = 'CARD'`, "fees", func(r registries.Instance) bool {
			_, ok := r.Fee(registries.AgencyA, checkout.ChannelCard, "XAF")
			return !ok
		}},
		{"another service gets the money", `UPDATE service_mappings SET service_code = 'foncier' WHERE erp_code = '4711'`, "service_mappings", func(r registries.Instance) bool {
			_, ok := r.ResolveService(registries.AgencyA, "4711")
			return !ok
		}},
		{"a service is active", `UPDATE services SET active = true WHERE code = 'foncier'`, "services", func(r registries.Instance) bool {
			s, _ := r.Service(registries.AgencyA, "foncier")
			return !s.Active
		}},
		{"statements of another account count", `UPDATE statement_accounts SET number = '1' WHERE code = 'mtn'`, "statement_accounts", func(r registries.Instance) bool {
			_, ok := r.Registry.StatementAccount(registry.StatementAccountKey{AgencyID: registries.AgencyA, Code: "mtn"})
			return !ok
		}},
		{"a citizen returns to a thief", `UPDATE cashin_access SET redirect_origins = '{` + urlOfThief + `}'`, "cashin_access", func(r registries.Instance) bool {
			a, _ := r.Application(registries.AppA)
			return a.Cashin == nil
		}},
		{"an account is inserted", `INSERT INTO connector_accounts (agency_id, live, offer, base_url, sealed) SELECT agency_id, true, offer, '` + urlOfThief + `', sealed FROM connector_accounts WHERE offer = 'momo'`, "connector_accounts", func(r registries.Instance) bool {
			a, ok := r.MerchantAccount(registries.AgencyA, true, checkout.OfferMomo)
			return ok && a.Locked
		}},
		{"a signature is copied", `INSERT INTO connector_accounts (agency_id, live, offer, base_url, sealed, signature) SELECT agency_id, true, offer, base_url, sealed, signature FROM connector_accounts WHERE offer = 'momo'`, "connector_accounts", func(r registries.Instance) bool {
			a, ok := r.MerchantAccount(registries.AgencyA, true, checkout.OfferMomo)
			return ok && a.Locked
		}},
		{"people are paid through a thief, who says SUCCESSFUL", `UPDATE connector_accounts SET base_url = '` + urlOfThief + `'` + where + ` AND offer = 'mtn_payout'`, "connector_accounts", func(r registries.Instance) bool {
			_, ok := r.PayoutAccount(registries.AgencyA, false, "mtn_payout", "")
			return !ok
		}},
		{"another account pays the lines", `UPDATE payout_modes SET account = 'airtel_payout' WHERE mode = 'mobile_money'`, "payout_modes", func(r registries.Instance) bool {
			return payerOf(r, "mobile_money") == "" && payerOf(r, "salaries") == "mtn_payout"
		}},
		{"lines of another mode are paid", `UPDATE payout_modes SET mode = 'aid' WHERE mode = 'mobile_money'`, "payout_modes", func(r registries.Instance) bool {
			return payerOf(r, "aid") == "" && payerOf(r, "mobile_money") == ""
		}},
		{"the account of tests pays live lines", `UPDATE payout_modes SET live = true WHERE mode = 'mobile_money'`, "payout_modes", func(r registries.Instance) bool {
			return payerOf(r, "mobile_money") == ""
		}},
		{"a mode is inserted", `INSERT INTO payout_modes SELECT agency_id, live, 'aid', account, signature FROM payout_modes WHERE mode = 'mobile_money'`, "payout_modes", func(r registries.Instance) bool {
			return payerOf(r, "aid") == ""
		}},
		{"a digest is no digest", `UPDATE webhook_secrets SET digest = '\x00' WHERE endpoint_id IN (SELECT id FROM webhook_endpoints WHERE application_id = '` + registries.AppA + `')`, "webhook_secrets", endpointLocked},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := registries.SetUp(t)
			h.Seed(t, registries.Full)
			if r := h.Open(t); c.refused(r) && c.table != "services" && !strings.Contains(c.sql, "INSERT") && !strings.Contains(c.sql, "live = true") {
				t.Error("refused before the attack")
			}
			h.Exec(t, c.sql)
			if rows, _ := findings(t, h); rows != c.table {
				t.Errorf("found %q, want %q", rows, c.table)
			}
			r := h.Open(t)
			if !c.refused(r) {
				t.Error("what was written is believed")
			}
			if _, ok := r.Agency(registries.AgencyA); !ok {
				t.Error("the rest of the registry is not used")
			}
		})
	}
}

func erpLocked(r registries.Instance) bool {
	e, ok := r.ERP(registries.AgencyA, false)
	return ok && e.Locked && e.BaseURL == "" && e.Auth.Secret.Empty()
}

func accountLocked(r registries.Instance) bool {
	a, ok := r.MerchantAccount(registries.AgencyA, false, checkout.OfferMomo)
	return ok && a.Locked && len(a.CallbackNetworks) == 0
}

// payerOf returns the account that pays lines of a mode in test mode; empty for none.
func payerOf(r registries.Instance, mode string) (code string) {
	for _, a := range r.PayoutAccounts(registries.AgencyA, false) {
		if slices.Contains(a.Modes, mode) {
			code = a.Code
		}
	}
	return code
}

func endpointLocked(r registries.Instance) bool {
	for _, e := range r.AllEndpoints() {
		if e.Locked && len(e.Secrets) == 0 {
			return true
		}
	}
	return false
}

// A running instance does not use what is written beside it, and uses it when it is put right.
func TestForgedRowsAreFoundWithinASecond(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	r := h.Open(t)
	registries.Run(t, r)
	h.Exec(t, `UPDATE erp_settings SET base_url = '`+urlOfThief+`'`+where)
	registries.Within(t, 10*time.Second, "the forged row is found", func() bool { return erpLocked(r) })
	h.Exec(t, `UPDATE erp_settings SET base_url = 'simulator:/erp/impots'`+where)
	h.Exec(t, `UPDATE erp_settings SET base_url = (SELECT base_url FROM erp_settings WHERE live) WHERE live`)
	h.Seed(t, registries.Full)
	registries.Within(t, 10*time.Second, "the row is put right", func() bool { return !erpLocked(r) })
}

// A row that was deleted, or put back to an earlier signed state, verifies. The manifest tells.
func TestManifestFindsLostRows(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	h.Exec(t, `CREATE TABLE earlier AS SELECT * FROM applications`)
	off := false
	if _, err := registry.ChangeApplication(t.Context(), h.Pool, h.Keys, registries.Actor, registries.AppA, registry.ApplicationChange{Active: &off}, registries.Epoch); err != nil {
		t.Fatal(err)
	}
	if rows, lost := findings(t, h); rows+lost != "" {
		t.Fatalf("before: %q, %q", rows, lost)
	}
	h.Exec(t, `DELETE FROM fees WHERE channel = 'CARD'`)
	if rows, lost := findings(t, h); rows != "" || lost != "fees" {
		t.Errorf("a deleted row: %q, %q", rows, lost)
	}
	h.Exec(t, `UPDATE applications a SET active = e.active, set_by_command = e.set_by_command, signature = e.signature FROM earlier e WHERE e.id = a.id`)
	if rows, lost := findings(t, h); rows != "" || lost != "applications fees" {
		t.Errorf("a row that was put back: %q, %q", rows, lost)
	}
	if a, _ := h.Open(t).Application(registries.AppA); !a.Active {
		t.Error("a restored row is not used")
	}
	// A later change of ours hides nothing.
	if _, _, err := registry.AddOrigins(t.Context(), h.Pool, h.Keys, registries.Actor, "", []string{"https://other.example"}, registries.Epoch); err != nil {
		t.Fatal(err)
	}
	if _, lost := findings(t, h); lost != "applications fees" {
		t.Errorf("after a change: %q", lost)
	}
	h.Exec(t, `DELETE FROM row_manifest; DELETE FROM staff_manifest`)
	if _, lost := findings(t, h); !strings.Contains(lost, "agencies") {
		t.Errorf("without a manifest: %q", lost)
	}
	if _, err := registry.AcceptRows(t.Context(), h.Pool, h.Keys, registries.Actor, registries.Epoch); err != nil {
		t.Fatal(err)
	}
	if rows, lost := findings(t, h); rows+lost != "" {
		t.Errorf("accepted: %q, %q", rows, lost)
	}
}

// A change does not sign what somebody else has written, and needs a key that signs.
func TestChangesOfForgedRowsAreRefused(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	off := false
	deactivate := func(keys *secret.Keys) (string, string) {
		_, err := registry.ChangeApplication(t.Context(), h.Pool, keys, registries.Actor, registries.AppA, registry.ApplicationChange{Active: &off}, registries.Epoch)
		var refused *operation.Error
		errors.As(err, &refused)
		if refused == nil {
			return "", ""
		}
		key, _ := refused.Args["key"].(string)
		return refused.Code, key
	}
	revision := h.Revision(t)
	for name, keys := range map[string]*secret.Keys{
		"no keys":                   nil,
		"a role that only verifies": h.Keys.Subset("ingress", []secret.Use{{Purpose: secret.PurposeVerify, Label: secret.LabelRegistryRows}}),
	} {
		if code, _ := deactivate(keys); code != signed.CodeNoKey {
			t.Errorf("%s: %q", name, code)
		}
	}
	h.Exec(t, `UPDATE applications SET offers = '{cash_agency}' WHERE id = '`+registries.AppA+`'`)
	if code, key := deactivate(h.Keys); code != signed.CodeForged || key != registries.AppA {
		t.Errorf("a forged row: %q, %q", code, key)
	}
	if h.Revision(t) != revision+1 { // that of the attack
		t.Error("a refused change has changed something")
	}
	// What reads the registry with the verifying keys alone uses the rows.
	r := h.Open(t, func(cfg *registries.Config) {
		cfg.Keys = h.Keys.Subset("ingress", []secret.Use{{Purpose: secret.PurposeVerify, Label: secret.LabelRegistryRows}})
	})
	if a, ok := r.Agency(registries.AgencyA); !ok || a.Locked {
		t.Errorf("a role that only verifies: %+v, %v", a, ok)
	}
}

// A registry file sets rows anew that somebody else has written: nothing of them stays.
func TestSeedSetsForgedRowsAnew(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	h.Exec(t, `UPDATE erp_settings SET base_url = '`+urlOfThief+`', max_in_flight = 999`+where)
	h.Exec(t, `UPDATE connector_accounts SET base_url = '`+urlOfThief+`'`)
	h.Exec(t, `UPDATE payout_modes SET account = 'airtel_payout'`)
	h.Exec(t, `UPDATE fees SET ratio_ppm = 0`)
	h.Exec(t, `UPDATE service_mappings SET service_code = 'foncier'`)
	h.Exec(t, `UPDATE statement_accounts SET number = '1' WHERE code = 'mtn'`)
	h.Exec(t, `UPDATE cashin_access SET providers = '{}'`)
	h.Seed(t, registries.Full)
	if rows, lost := findings(t, h); rows+lost != "" {
		t.Errorf("after the file: %q, %q", rows, lost)
	}
	r := h.Open(t)
	if e, _ := r.ERP(registries.AgencyA, false); e.Locked || e.BaseURL != "http://127.0.0.1:9001/erp/impots" || e.MaxInFlight == 999 {
		t.Errorf("the ERP is %+v", e)
	}
	if payerOf(r, "mobile_money") != "mtn_payout" || payerOf(r, "salaries") != "mtn_payout" {
		t.Errorf("payout accounts: %+v", r.PayoutAccounts(registries.AgencyA, false))
	}
	var thief int
	if err := h.Pool.QueryRow(t.Context(), `SELECT count(*) FROM replaced_accounts`).Scan(&thief); err != nil || thief != 0 {
		t.Errorf("the forged account is kept among the replaced ones: %d, %v", thief, err)
	}
}

// An installation of an earlier release has no signature. Roles wait, changes are refused, and migrate
// signs everything once.
func TestEarlierInstallationIsSignedOnce(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	for _, table := range signed.Tables {
		h.Exec(t, `UPDATE `+table.Name+` SET signature = NULL`)
	}
	h.Exec(t, `DELETE FROM row_manifest; DELETE FROM staff_manifest`)
	if _, err := registry.Open(t.Context(), registry.Config{Pool: h.Pool, Keys: h.Keys, Log: servers.Logger(t), Now: time.Now}); !errors.Is(err, signed.ErrNotSigned) {
		t.Errorf("a role starts: %v", err)
	}
	on := true
	_, err := registry.ChangeApplication(t.Context(), h.Pool, h.Keys, registries.Actor, registries.AppA, registry.ApplicationChange{Active: &on, PageSize: to[int64](7)}, registries.Epoch)
	if refused := (*operation.Error)(nil); !errors.As(err, &refused) || refused.Code != signed.CodeUnsigned {
		t.Errorf("a change: %v", err)
	}
	counts, err := registry.SignAll(t.Context(), h.Pool, h.Keys, registries.Actor, registries.Epoch, identity.ProveDevices)
	if err != nil || counts["agencies"] != 1 || counts["fees"] != 2 || counts["webhook_secrets"] != 3 {
		t.Errorf("signed %v, %v", counts, err)
	}
	if rows, lost := findings(t, h); rows+lost != "" {
		t.Errorf("after that: %q, %q", rows, lost)
	}
	h.Exec(t, `UPDATE fees SET signature = NULL, ratio_ppm = 1`)
	if counts, err = registry.SignAll(t.Context(), h.Pool, h.Keys, registries.Actor, registries.Epoch, identity.ProveDevices); err != nil || len(counts) != 0 {
		t.Errorf("a second time it signs %v, %v", counts, err)
	}
	if _, err := registry.Open(t.Context(), registry.Config{Pool: h.Pool, Keys: secret.GenerateKeys(), Log: servers.Logger(t), Now: time.Now}); !errors.Is(err, signed.ErrOtherKeys) {
		t.Errorf("with other keys: %v", err)
	}
}

// A key that is marked open is one that may have leaked: nothing that it signed is believed.
func TestRowsOfALeakedKeyAreNotBelieved(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	newest := secret.GenerateKeys()
	leaked, err := secret.ParseKeys(newest.Reveal() + "," + h.Keys.Reveal() + ":open")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := registry.Open(t.Context(), registry.Config{Pool: h.Pool, Keys: leaked, Log: servers.Logger(t), Now: time.Now}); !errors.Is(err, signed.ErrOtherKeys) {
		t.Errorf("its rows are believed: %v", err)
	}
	if got := reseal(t, h, leaked, 100); !strings.HasPrefix(got["signatures of rows"], "0/0/") || got["erp_settings"] != "0/0/2" {
		t.Errorf("its rows are signed again: %v", got)
	}
	// Somebody has looked at all of them.
	f, err := registry.LookAtRows(t.Context(), h.Pool, leaked)
	if err != nil || len(f.Rows) == 0 {
		t.Fatal(len(f.Rows), err)
	}
	if _, err := registry.SignRows(t.Context(), h.Pool, leaked, registries.Actor, f.Rows, registries.Epoch); err != nil {
		t.Fatal(err)
	}
	if _, err := registry.AcceptRows(t.Context(), h.Pool, leaked, registries.Actor, registries.Epoch); err != nil {
		t.Fatal(err)
	}
	r := h.Open(t, func(cfg *registries.Config) { cfg.Keys = leaked })
	if e, _ := r.ERP(registries.AgencyA, false); e.Locked {
		t.Error("a row that was signed with the new key is not used")
	}
	if got := reseal(t, h, leaked, 100); got["erp_settings"] != "2/0/0" {
		t.Errorf("then it seals %v", got)
	}
}
