package row_test

import (
	"encoding/json"
	"strings"
	"testing"

	"quittance/cmd/internal/cli/clitest"
	"quittance/cmd/internal/cli/row"
	"quittance/internal/registry"
	"quittance/test/registries"
)

// An operator finds a row that somebody has written, sees its content, puts it right and signs it.
func TestWayBackOfAForgedRow(t *testing.T) {
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	t.Setenv("QUITTANCE_POSTGRES", h.DSN)
	t.Setenv("QUITTANCE_MASTER_KEYS", h.Keys.Reveal())
	run := func(want int, args ...string) string {
		t.Helper()
		code, stdout, stderr := clitest.Run(t, row.Command(), append([]string{"rows"}, args...)...)
		if code != want {
			t.Errorf("%v ends with %d: %s%s", args, code, stdout, stderr)
		}
		return stdout + stderr
	}
	says := func(text string, parts ...string) {
		t.Helper()
		for _, p := range parts {
			if !strings.Contains(text, p) {
				t.Errorf("%q is not in:\n%s", p, text)
			}
		}
	}
	says(run(0, "list"), "All rows that decide are as they were signed")

	h.Exec(t, `UPDATE applications SET offers = '{cash_agency}' WHERE id = '`+registries.AppA+`'`)
	h.Exec(t, `DELETE FROM service_mappings WHERE erp_code = '4711'`)
	text := run(1, "list")
	says(text, "applications "+registries.AppA+": its signature does not verify", "{cash_agency}", "rows sign", "service_mappings", "rows accept", "not as signed: 1 row; without some of their rows: 1 table")
	if strings.Contains(text, "sk_") {
		t.Errorf("a secret is shown: %s", text)
	}
	var found struct {
		Rows []struct {
			Table, Key string
			Content    map[string]string
		}
		Lost []string
	}
	out, _, _ := strings.Cut(run(1, "list", "--json"), "\nquittance")
	if err := json.NewDecoder(strings.NewReader(out)).Decode(&found); err != nil || len(found.Rows) != 1 || found.Rows[0].Content["offers"] != "{cash_agency}" || len(found.Lost) != 1 {
		t.Errorf("%+v, %v", found, err)
	}

	says(run(2, "sign", "applications", registries.AppA), "{cash_agency}", "nothing was done")
	says(run(2, "sign", "applications"), "say which rows")
	says(run(1, "sign", "sessions", "x", "--yes"), "no such table", "agencies")
	says(run(1, "sign", "applications", registries.AppB, "--yes"), "no such row")

	h.Exec(t, `UPDATE applications SET offers = '{momo}' WHERE id = '`+registries.AppA+`'`)
	says(run(0, "sign", "applications", registries.AppA, "--yes"), "Signed: applications "+registries.AppA)
	says(run(0, "accept", "--yes"), "Accepted: service_mappings.")
	says(run(0, "accept", "--yes"), "Nothing changed")
	says(run(0, "list"), "All rows that decide are as they were signed")
	if a, _ := h.Open(t).Application(registries.AppA); !a.Active || len(a.Offers) != 1 {
		t.Errorf("the signed row is not used: %+v", a)
	}
	audited := strings.Join(h.Audited(t), " ")
	says(audited, "rows.sign", "rows.accept")

	// Without master keys, and with others.
	t.Setenv("QUITTANCE_MASTER_KEYS", "")
	says(run(1, "list"), "QUITTANCE_MASTER_KEYS")
}

// What an operator has looked at is what is signed.
func TestSignsWhatWasSeen(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	h.Exec(t, `UPDATE fees SET ratio_ppm = 1 WHERE channel = 'CARD'`)
	f, err := registry.LookAtRows(t.Context(), h.Pool, h.Keys)
	if err != nil || len(f.Rows) != 1 {
		t.Fatalf("%+v, %v", f, err)
	}
	h.Exec(t, `UPDATE fees SET ratio_ppm = 2 WHERE channel = 'CARD'`)
	if _, err := registry.SignRows(t.Context(), h.Pool, h.Keys, registries.Actor, f.Rows, registries.Epoch); err == nil {
		t.Error("another row than the one that was shown is signed")
	}
}
