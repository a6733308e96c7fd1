package registry_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/internal/citizens"
	"quittance/internal/connector/mtn"
	"quittance/internal/identity"
	"quittance/internal/intake"
	"quittance/internal/operation"
	"quittance/internal/personal"
	"quittance/internal/receipts"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/internal/signed"
	"quittance/test/registries"
	"quittance/test/servers"
)

// lists returns the list of master keys before, during and after a rotation.
func lists(t *testing.T, h registries.House) (both, newest *secret.Keys) {
	t.Helper()
	newest = secret.GenerateKeys()
	both, err := secret.ParseKeys(newest.Reveal() + "," + h.Keys.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	return both, newest
}

func reseal(t *testing.T, h registries.House, keys *secret.Keys, batch int) map[string]string {
	t.Helper()
	done, err := registry.Reseal(t.Context(), h.Pool, keys, registries.Actor, registries.Epoch, batch, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, r := range done {
		out[r.Table] = fmt.Sprintf("%d/%d/%d", r.Sealed, r.Before, r.Unopened)
	}
	return out
}

// sealedWith returns how many values a key has sealed.
func sealedWith(t *testing.T, h registries.House, keys *secret.Keys) (n int) {
	t.Helper()
	tables, err := registry.Sealed(t.Context(), h.Pool)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		n += table.Keys[keys.Entries()[0].ID]
	}
	return n
}

// After a rotation everything is sealed with the newest key, and the old one is needed no
// more: what the registry says is the same without it.
func TestResealRetiresTheOldKey(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	replaced, ok := h.Open(t).MerchantAccount(registries.AgencyA, false, checkout.OfferMomo)
	if !ok {
		t.Fatal("no account")
	}
	h.Seed(t, registries.Edit(t, "api_user: momo-user", "api_user: momo-other")) // replaces the account
	endpoint := h.Open(t).AllEndpoints()[0].ID
	if _, err := registry.RotateSecret(t.Context(), h.Pool, h.Keys, registries.Actor, endpoint, time.Hour, registries.Epoch); err != nil {
		t.Fatal(err)
	}
	seen := func(keys *secret.Keys) string {
		r := h.Open(t, func(cfg *registries.Config) { cfg.Keys = keys })
		test, _ := r.ERP(registries.AgencyA, false)
		live, _ := r.ERP(registries.AgencyA, true)
		account, _ := r.MerchantAccount(registries.AgencyA, false, checkout.OfferMomo)
		old, _ := r.AccountOfCollection(registries.AgencyA, false, checkout.OfferMomo, replaced.Account.Fingerprint())
		out := []string{test.Auth.Secret.Reveal(), live.Auth.Secret.Reveal(), fmt.Sprintf("%+v %v", account.Account, account.Locked)}
		if m, ok := old.Account.(mtn.Account); ok {
			out = append(out, m.APIUser, m.APIKey)
		}
		paying, _ := r.PayoutAccount(registries.AgencyA, false, "mtn_payout", "")
		if m, ok := paying.Account.(mtn.PayoutAccount); ok {
			out = append(out, m.APIUser, m.APIKey, strings.Join(paying.Modes, " "))
		}
		for _, e := range r.AllEndpoints() {
			out = append(out, fmt.Sprint(e.ID, e.Locked))
			for _, s := range e.Secrets {
				out = append(out, s.Reveal())
			}
		}
		return strings.Join(out, "\n")
	}
	before := seen(h.Keys)
	both, newest := lists(t, h)
	_, err := registry.Open(t.Context(), registry.Config{Pool: h.Pool, Keys: newest, Log: servers.Logger(t), Now: time.Now})
	if seen(both) != before || !errors.Is(err, signed.ErrOtherKeys) {
		t.Fatal("the old key is not needed before, or not in the list")
	}

	// The first run is interrupted after its first transaction.
	ctx, cancel := context.WithCancel(t.Context())
	done, err := registry.Reseal(ctx, h.Pool, both, registries.Actor, registries.Epoch, 1, func(int) { cancel() })
	if !errors.Is(err, context.Canceled) || len(done) == 0 || done[0].Sealed != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	if got := sealedWith(t, h, newest); got != 2 {
		t.Errorf("%d values and signatures were sealed before the interruption", got)
	}
	if seen(both) != before {
		t.Error("in the middle something does not open")
	}
	want := map[string]string{"erp_settings": "1/1/0", "connector_accounts": "2/0/0", "connector_accounts (reports)": "2/0/0", "replaced_accounts": "1/0/0", "replaced_accounts (reports)": "1/0/0", "webhook_secrets": "4/0/0", "staff_issuers": "0/0/0", "signatures of rows": "31/9/0"}
	if got := reseal(t, h, both, 2); !maps.Equal(got, want) {
		t.Errorf("counts %v, want %v (sealed/before/unopened)", got, want)
	}
	if n := sealedWith(t, h, h.Keys); n != 0 {
		t.Errorf("%d values still need the old key", n)
	}
	if got := seen(newest); got != before {
		t.Errorf("without the old key the registry has\n%s\nwant\n%s", got, before)
	}
	audited := h.Audited(t)
	revision := h.Revision(t)
	if got := reseal(t, h, both, 2); got["webhook_secrets"] != "0/4/0" || got["erp_settings"] != "0/2/0" {
		t.Errorf("again: %v", got)
	}
	if h.Revision(t) != revision || len(h.Audited(t)) != len(audited) || !slices.Contains(audited, "secrets.reseal") {
		t.Errorf("a run that seals nothing changes something, or runs are not recorded: %v", h.Audited(t))
	}
	if _, err := registry.Reseal(t.Context(), h.Pool, secret.GenerateKeys(), operation.Actor{}, registries.Epoch, 1, func(int) {}); err != nil {
		t.Errorf("values of an unknown key: %v", err)
	}
	if got := reseal(t, h, secret.GenerateKeys(), 1); got["webhook_secrets"] != "0/0/4" {
		t.Errorf("values of an unknown key: %v", got)
	}
}

// An operator changes a secret while reseal runs. The change is not lost, and is sealed with
// the newest key, too.
func TestResealLosesNoConcurrentWrite(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	both, newest := lists(t, h)
	err := registry.Change(t.Context(), h.Pool, h.Keys, registries.Epoch, func(tx *registry.Tx) error {
		erp := registry.ERPSettings{AgencyID: registries.AgencyA, BaseURL: "https://erp.example.org", Networks: []netip.Prefix{}, Auth: registry.ERPAuth{Type: registry.AuthBearer, Secret: secret.NewText("erp-token-of-the-operator")}}
		if err := tx.PutERP(t.Context(), erp); err != nil {
			return err
		}
		ended := make(chan error, 1)
		go func() {
			_, err := registry.Reseal(context.WithoutCancel(t.Context()), h.Pool, both, registries.Actor, registries.Epoch, 100, func(int) {})
			ended <- err
		}()
		t.Cleanup(func() {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
		registries.Within(t, 10*time.Second, "reseal waits for the change", func() bool {
			var waiting int
			if err := h.Pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE NOT granted AND pid IN (SELECT pid FROM pg_stat_activity WHERE datname = current_database())`).Scan(&waiting); err != nil {
				t.Fatal(err)
			}
			return waiting > 0
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	registries.Within(t, 10*time.Second, "everything is sealed again", func() bool { return sealedWith(t, h, h.Keys) == 0 })
	r := h.Open(t, func(cfg *registries.Config) { cfg.Keys = newest })
	if e, _ := r.ERP(registries.AgencyA, false); e.Locked || e.Auth.Secret.Reveal() != "erp-token-of-the-operator" {
		t.Errorf("the operator's change is lost: locked %v, %s", e.Locked, e.BaseURL)
	}
}

// Every column of bytes is known either as sealed, which Reseal must seal again, or as not
// sealed.
func TestResealKnowsEveryColumn(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	tables, err := registry.Sealed(t.Context(), h.Pool)
	if err != nil {
		t.Fatal(err)
	}
	for _, rows := range []personal.Sealed{personal.DataKeys, citizens.SealedAddresses, identity.SealedContacts, receipts.SealedKeys, intake.Originals} {
		people, err := rows.Count(t.Context(), h.Pool)
		if err != nil {
			t.Fatal(err)
		}
		tables = append(tables, people)
	}
	known := map[string]bool{
		"row_manifest.content": true, "row_manifest.signature": true, "staff_manifest.content": true, "staff_manifest.signature": true, // the former is public; Reseal signs the latter
		"api_keys.hash": true, "cashin_pairs.api_key_hash": true, "cashin_pairs.secret_hash": true, "cashin_tokens.hash": true, "webhook_secrets.digest": true, // SHA-256
		"case_proposals.digest": true, "case_proposals.proposed_signature": true, "case_proposals.decided_signature": true, // SHA-256, and signatures of a decision that is carried out within a week
		"statement_withdrawals.digest": true, "statement_withdrawals.requested_signature": true, "statement_withdrawals.decided_signature": true, // the same, within a day
		"statement_original_requests.digest": true, "statement_original_requests.requested_signature": true, "statement_original_requests.approved_signature": true,
		"statement_original_requests.reading": true, // sealed for a day, and again by the sink cases when it is NULL
		// The same; a dismissal that nobody can verify any more puts its file back into quarantine, and a person dismisses it again.
		"statement_exits.digest": true, "statement_exits.requested_signature": true, "statement_exits.decided_signature": true,
		// The same, within minutes; a job that nobody can verify any more is refused, and a person starts it again.
		"jobs.rows_digest": true, "jobs.proposed_signature": true, "jobs.decided_signature": true,
		"audit.signature": true,                                                         // a record in Kafka says whether it held when the row was written
		"deliveries.body": true, "session_events.body": true, "sessions.snapshot": true, // what is sent; an event without secrets
		"link_code_epochs.salt": true,                              // random; it tells nothing without the reference key
		"agencies.logo":         true, "receipt_keys.public": true, // everybody sees them
		"statement_original_parts.content": true, // encrypted with the sealed keys of statement_originals
		// Hashes and MACs of the reference key, which never changes, and SHA-256.
		"citizen_addresses.hash": true, "sign_in_codes.address": true, "sign_in_codes.browser": true, "sign_in_codes.mac": true, "sign_in_requests.address": true,
		"sign_in_requests.prefix": true, "sign_in_requests.domain": true, "sign_in_failures.address": true, "payment_prompts.number": true, "payment_prompts.client": true, "payment_prompts.site": true, "payment_prompts.provider": true,
		"sign_in_requests.known": true, "sign_in_codes.known": true, "sign_in_failures.known": true, "known_browsers.key": true, "known_browsers.address": true, "citizen_sessions.token": true, "subject_contacts.address": true,
		"citizen_passkeys.id": true, "citizen_seen.token": true, "citizen_seen.subject": true, "citizen_seen.macs": true, "citizen_reminded.due": true, "passkey_challenges.browser": true,
		"staff_passkeys.credential_id": true, "staff_passkeys.spki_hash": true, "staff_invitations.token_hash": true, "staff_requests.token_hash": true, "staff_sessions.hash": true, "staff_challenges.session": true, "staff_challenges.challenge": true,
		"staff_challenges.statement": true, "decisions.statement": true, "decisions.challenge": true, // public, SHA-256 or random
		"decisions.public_key": true, "decisions.client_data": true, "decisions.authenticator_data": true, "decisions.assertion": true, // signed by a person's passkey
		"staff_issuer_sign_ins.browser": true, "staff_logout_tokens.token": true, "staff_issuer_sign_ins.mac": true, // hashes; short-lived
		"staff_sessions.mac":    true,                                                                                                                      // short-lived
		"citizen_addresses.mac": true, "citizen_links.mac": true, "citizen_passkeys.mac": true, "citizen_sessions.mac": true, "subject_contacts.mac": true, // citizens.ProveAgain, which secrets reseal calls
		"receipt_requests.address": true, "receipt_requests.client": true, "receipt_requests.site": true, "receipt_requests.provider": true, // hashes of the reference key, for a day
		"disbursement_batches.snapshot": true, "disbursement_batches.sealing": true, "disbursement_lines.snapshot": true, "disbursement_agencies.snapshot": true, // records of events
		"disbursement_payees.payee": true, "disbursement_payees.name": true, // MACs, which are not found under an older key
		"disbursement_lines.sealed": true,                                                       // with a data key of personal_keys
		"clerk_sessions.mac":        true, "clerk_devices.mac": true, "cashin_tokens.mac": true, // made again at the next use, or short-lived
	}
	for _, table := range tables {
		known[table.Table] = true
	}
	rows, err := h.Pool.Query(t.Context(), `SELECT table_name || '.' || column_name FROM information_schema.columns c JOIN information_schema.tables USING (table_schema, table_name)
		WHERE table_schema = current_schema() AND data_type = 'bytea' AND table_type = 'BASE TABLE'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		var column string
		if err := rows.Scan(&column); err != nil {
			t.Fatal(err)
		}
		n++
		table, name, _ := strings.Cut(column, ".")
		if name == "signature" {
			continue // Reseal signs again, see internal/signed
		}
		if !known[column] && (!known[table] || !strings.HasSuffix(name, "sealed")) {
			t.Errorf("%s: neither sealed again by Reseal nor known to need no key", column)
		}
	}
	if rows.Err() != nil || n < 9 {
		t.Errorf("%d columns, %v", n, rows.Err())
	}
}
