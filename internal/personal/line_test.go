package personal_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/checkout"
	"quittance/internal/disbursements"
	"quittance/internal/operation"
	"quittance/internal/personal"
)

const batch = "dsb_0000000000000000000000000001"

// sealLine seals a line of a batch that can end within ten days.
func (v *vault) sealLine(t *testing.T, id string, payee personal.Payee) []byte {
	t.Helper()
	sealed, err := v.SealLine(t.Context(), id, json.RawMessage(`{"name":"Mireille Okoko"}`), payee, v.now.Add(10*24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

// ends sets the true end of batches.
func (v *vault) ends(t *testing.T, ended map[string]time.Time) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), v.pool, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		personal.KeepLines(b, ended)
		return tx.SendBatch(t.Context(), b).Close()
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A sweep deleted every key after 61 days, and so the content of every line: a return after
// five weeks would have had no payee, and a batch of the year before no names.
func TestLinesOutliveTheSweepByAge(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	line := v.sealLine(t, personal.LineID(batch, 0), personal.Payee{})
	other := v.sealLine(t, personal.LineID(batch+"0", 0), personal.Payee{}) // its id begins with that of the batch
	session := v.seal(t, "chs_a", checkout.Customer{Name: "n"})
	opens := func(lineID string, sealed []byte) bool {
		t.Helper()
		content, err := v.Line(t.Context(), lineID, sealed)
		if err != nil && !errors.Is(err, personal.ErrErased) {
			t.Fatal(err)
		}
		return string(content) == `{"name":"Mireille Okoko"}`
	}
	sweep := func(at time.Time, want int64) {
		t.Helper()
		if n, err := personal.Sweep(t.Context(), v.pool, at); err != nil || n != want {
			t.Errorf("%d keys deleted, %v; want %d", n, err, want)
		}
	}

	sweep(begin.Add(personal.KeptAtMost+time.Hour), 1)
	if _, err := v.Customer(t.Context(), "chs_a", session); !errors.Is(err, personal.ErrErased) {
		t.Errorf("the session's data: %v", err)
	}
	end := begin.Add(3 * 24 * time.Hour)
	v.ends(t, map[string]time.Time{batch: end})
	if _, err := v.pool.Exec(t.Context(), `CREATE TABLE dump AS TABLE personal_keys`); err != nil {
		t.Fatal(err)
	}
	sweep(end.Add(personal.LineKept), 0) // exactly at its time it is kept
	if !opens(personal.LineID(batch, 0), line) {
		t.Error("a line does not open at the end of its time")
	}
	sweep(end.Add(personal.LineKept+time.Hour), 1)
	if opens(personal.LineID(batch, 0), line) || !opens(personal.LineID(batch+"0", 0), other) {
		t.Error("swept is not the line whose time is over, and it alone")
	}

	// A restored database brings the key back, and with it its time.
	if _, err := v.pool.Exec(t.Context(), `INSERT INTO personal_keys SELECT * FROM dump ON CONFLICT DO NOTHING`); err != nil {
		t.Fatal(err)
	}
	if !opens(personal.LineID(batch, 0), line) {
		t.Error("the restored key opens nothing: the test sees nothing")
	}
	sweep(end.Add(personal.LineKept+time.Hour), 1)
	if opens(personal.LineID(batch, 0), line) {
		t.Error("a restored key outlives its time")
	}
	// One that was restored from before the end of its batch has the latest time at which the
	// batch could end.
	sweep(begin.Add(10*24*time.Hour+personal.LineKept+time.Hour), 1)
	if n := v.count(t, countKeys); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

// A payee asks for erasure. Lines are found by phone and by account, and each is erased
// alone: the others of its batch stay. What is still to be paid is not erased.
func TestEraseLines(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	byPhone, byAccount, foreign := personal.LineID(batch, 0), personal.LineID(batch, 1), personal.LineID(batch, 10)
	contents := map[string][]byte{
		byPhone:   v.sealLine(t, byPhone, personal.Payee{Phone: "+242 06 699 88 77"}),
		byAccount: v.sealLine(t, byAccount, personal.Payee{Account: "cg39 30011 00020 066998877 75"}),
		foreign:   v.sealLine(t, foreign, personal.Payee{Account: "066998877"}), // an account with the digits of the number
	}
	v.seal(t, "chs_a", checkout.Customer{Phone: "066998877"})

	if ids, err := v.Find(t.Context(), "06 699 88 77"); err != nil || !slices.Equal(ids, []string{"chs_a", byPhone}) {
		t.Errorf("found %v, %v", ids, err)
	}
	if ids, err := v.FindAccount(t.Context(), "CG39 3001 1000 2006 6998 8777 5"); err != nil || !slices.Equal(ids, []string{byAccount}) {
		t.Errorf("found %v, %v", ids, err)
	}
	var refused *operation.Error
	if _, err := v.FindAccount(t.Context(), " - "); !errors.As(err, &refused) || refused.Code != "personal.account_malformed" {
		t.Errorf("an account without letters and digits: %v", err)
	}

	erase := func(id string, want personal.Result) {
		t.Helper()
		got, err := v.Erase(t.Context(), nil, id, personal.Request{Actor: actor, At: v.now, By: "account", Forget: disbursements.ForgetPayee})
		if err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", id, got, err, want)
		}
	}
	// The payees of batches are known by hashes, which an erasure takes as well.
	for position := range 2 {
		if _, err := v.pool.Exec(t.Context(), `INSERT INTO disbursement_payees (batch, position, tenant_id, livemode, payee, name, amount, currency, date) VALUES ($1, $2, 'a', true, '', '', 1, 'XAF', '2026-11-30')`, batch, position); err != nil {
			t.Fatal(err)
		}
	}
	hashes := func(position int) int {
		return v.count(t, `SELECT count(*) FROM disbursement_payees WHERE batch = $1 AND position = $2`, batch, position)
	}
	v.now = begin.Add(3 * 24 * time.Hour)
	erase(byAccount, personal.ResultOpen)
	if hashes(1) != 1 {
		t.Error("a line that is not erased has lost its hashes")
	}
	v.ends(t, map[string]time.Time{batch: v.now})
	erase(byAccount, personal.ResultErased)
	erase(byAccount, personal.ResultUnknown)
	if hashes(0) != 1 || hashes(1) != 0 {
		t.Errorf("after an erasure the lines have %d and %d hashes, want 1 and 0", hashes(0), hashes(1))
	}
	for id, sealed := range contents {
		if _, err := v.Line(t.Context(), id, sealed); errors.Is(err, personal.ErrErased) != (id == byAccount) {
			t.Errorf("%s: %v", id, err)
		}
	}
	if n := v.count(t, `SELECT count(*) FROM audit WHERE action = 'personal.erase' AND subject = $1`, byAccount); n != 1 {
		t.Errorf("%d records of the erasure, want 1", n)
	}
	// A line whose end was never told can be erased when its batch has ended in any case.
	late := personal.LineID("dsb_0000000000000000000000000002", 0)
	v.sealLine(t, late, personal.Payee{})
	v.now = v.now.Add(10 * 24 * time.Hour)
	erase(late, personal.ResultErased)
}
