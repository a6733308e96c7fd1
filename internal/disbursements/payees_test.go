package disbursements_test

import (
	"bytes"
	"encoding/base64"
	"slices"
	"testing"

	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/internal/disbursements"
	"quittance/internal/disbursements/lines"
	"quittance/internal/secret"
	"quittance/test/servers"
)

// After a rotation of master keys each payee looked new, and warnings of a second payment and of another account were lost.
func TestPayeesAreKnownAfterARotation(t *testing.T) {
	t.Parallel()
	_, pool := servers.Database(t)
	entry := func(id string, b byte) string {
		return id + ":" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, secret.KeySize))
	}
	payees := func(keys string) *disbursements.Payees {
		t.Helper()
		k, err := secret.ParseKeys(keys)
		if err != nil {
			t.Fatal(err)
		}
		p, err := disbursements.NewPayees(pool, k)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	of := func(name, number string) lines.Line {
		return lines.Line{Content: digest.Line{LineRef: name, Name: name, MSISDN: number, Amount: 1000, Currency: "XAF"}}
	}
	const day = "2026-11-30"
	b := disbursement.Batch{ID: "dsb_1", TenantID: "agency", Live: true, Date: day}
	if _, err := pool.Exec(t.Context(), `INSERT INTO disbursement_batches (id, tenant_id, livemode, batch_ref, revision, status, held, opened_at, sequence, snapshot)
		VALUES ($1, $2, true, 'ref', 1, 'done', false, now(), 1, '')`, b.ID, b.TenantID); err != nil {
		t.Fatal(err)
	}
	old, next := entry("old", 1), entry("new", 2)
	if err := payees(old).Keep(t.Context(), b, []lines.Line{of("NGOMA", "242066000001"), of("MABIALA", "242066000002")}); err != nil {
		t.Fatal(err)
	}
	list := []lines.Line{of("NGOMA", "242066000001"), of("MABIALA", "242066000009"), of("NEW", "242066000003")}
	rotated := payees(next + "," + old)
	known, err := rotated.Known(t.Context(), b.TenantID, true, day, list)
	if err != nil {
		t.Fatal(err)
	}
	mac := func(text string) lines.MAC { return rotated.MAC(text) }
	if n := len(known.Payees[mac(lines.PayeeText(list[0].Content))]); n != 1 {
		t.Errorf("the payee has %d payments, want 1", n)
	}
	if accounts := known.Names[mac(lines.NameText(list[0].Content))]; !slices.Equal(accounts, []lines.MAC{mac(lines.PayeeText(list[0].Content))}) {
		t.Errorf("the name has the accounts %v", accounts)
	}
	if accounts := known.Names[mac(lines.NameText(list[1].Content))]; len(accounts) != 1 || accounts[0] == mac(lines.PayeeText(list[1].Content)) {
		t.Errorf("the name with another account has the accounts %v", accounts)
	}
	if len(known.Payees) != 1 || len(known.Names) != 2 {
		t.Errorf("%d payees and %d names are known", len(known.Payees), len(known.Names))
	}
}
