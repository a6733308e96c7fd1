package operations_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"

	"quittance/internal/identity"
	"quittance/test/backoffice"
	"quittance/test/registries"
)

// Lists are files with the rows, the columns and the scope of the page, and where they come from. Each download is a row of the audit
// table with the digest.
func TestFilesOfLists(t *testing.T) {
	t.Parallel()
	w := twoAgencies(t)
	w.Add(t, "impots", []identity.Role{identity.RoleAccountant}, "Awa")
	w.Add(t, "impots", []identity.Role{identity.RoleReader}, "Lina")
	w.Add(t, "douanes", []identity.Role{identity.RoleAccountant}, "Chantal")
	accountant, reader, stranger := w.Enter(t, "Awa"), w.Enter(t, "Lina"), w.Enter(t, "Chantal")
	park(t, w, registries.AgencyA, 3)
	rows := func(path string, body *bytes.Buffer) (all [][]string) {
		t.Helper()
		in := csv.NewReader(bytes.NewReader(body.Bytes()))
		in.Comment = '#'
		all, err := in.ReadAll()
		if err != nil {
			t.Fatalf("%s: %v\n%s", path, err, body)
		}
		return all
	}
	for name, want := range map[string]string{"payments": "DOSSIER-17", "cases": backoffice.LateCase, "deliveries": "evt_2"} {
		path := "/agency/" + name
		backoffice.Want(t, accountant.Get(path), http.StatusOK, `href="`+path+`/file?format=csv&amp;lang=fr"`, `href="`+path+`/file?format=xlsx&amp;lang=fr"`)
		backoffice.Lacks(t, reader.Get(path), path+"/file")
		backoffice.Want(t, reader.Get(path+"/file?format=csv"), http.StatusForbidden)
		backoffice.Want(t, accountant.Get(path+"/file?format=exe"), http.StatusNotFound)
		file := accountant.Get(path + "/file?format=csv")
		all := rows(path, file.Body)
		body := file.Body.String()
		if len(all) < 2 || !strings.Contains(body, want) || !strings.HasPrefix(body, "# report: "+name+"; agency: impots;") || !strings.Contains(body, "program: quittance test") {
			t.Errorf("%s is\n%s", path, body)
		}
		backoffice.Lacks(t, file, "chs_", backoffice.Contact, backoffice.OrphanCase, "06 ")
		if at := slices.Index(all[0], "agency"); slices.ContainsFunc(all[1:], func(row []string) bool { return row[at] != "impots" }) {
			t.Errorf("%s has rows of others:\n%s", path, body)
		}
		if got := rows(path, stranger.Get(path+"/file?format=csv&agency="+registries.AgencyA).Body); len(got) != 1 {
			t.Errorf("%s of another agency: %q", path, got)
		}
		sum := sha256.Sum256([]byte(body))
		var noted int
		if err := w.Pool.QueryRow(t.Context(), `SELECT count(*) FROM audit WHERE action = $1 AND actor = $2 AND agency_id = $3 AND detail->>'sha256' = $4 AND (detail->>'rows')::int = $5`,
			name+".download", w.IDs["Awa"], registries.AgencyA, hex.EncodeToString(sum[:]), len(all)-1).Scan(&noted); err != nil || noted != 1 {
			t.Errorf("%s: %d rows of the audit table have the digest, %v", path, noted, err)
		}
		book, err := excelize.OpenReader(accountant.Get(path + "/file?format=xlsx").Body)
		if err != nil {
			t.Fatal(err)
		}
		if sheets := book.GetSheetList(); !slices.Equal(sheets, []string{name, "provenance"}) {
			t.Errorf("%s has the sheets %q", path, sheets)
		}
		_ = book.Close()
	}

	// The conditions are those of the page, and what is typed is not kept.
	file := accountant.Get("/agency/payments/file?format=csv&status=completed&text=DOSSIER")
	all := rows("completed", file.Body)
	if at := slices.Index(all[0], "status"); len(all) < 2 || slices.ContainsFunc(all[1:], func(row []string) bool { return row[at] != "completed" }) {
		t.Errorf("completed ones: %q", all)
	}
	var typed int
	if err := w.Pool.QueryRow(t.Context(), `SELECT count(*) FROM audit WHERE detail::text LIKE '%DOSSIER%' AND action = 'payments.download'`).Scan(&typed); err != nil || typed != 0 {
		t.Errorf("%d rows of the audit table have what was typed, %v", typed, err)
	}
	for path, field := range map[string]string{"/agency/payments/file?format=csv&day=2026-02-30": "day", "/agency/deliveries/file?format=xlsx&day=x": "day", "/agency/payments/file?format=csv&status=x": "status"} {
		backoffice.Want(t, accountant.Get(path), http.StatusUnprocessableEntity, `href="#`+field+`"`)
	}
}

// A list that is too long for a file says so, and names the mend.
func TestAListIsTooLongForAFile(t *testing.T) {
	t.Parallel()
	w := backoffice.New(t)
	w.Add(t, "impots", []identity.Role{identity.RoleAccountant}, "Awa")
	accountant := w.Enter(t, "Awa")
	park(t, w, registries.AgencyA, 5001)
	backoffice.Want(t, accountant.Get("/agency/deliveries/file?format=csv"), http.StatusUnprocessableEntity, "plus de 5000 lignes", "Ajoutez une condition")
	w.Exec(t, `DELETE FROM deliveries WHERE event_id = 'evt_1'`)
	if file := accountant.Get("/agency/deliveries/file?format=csv"); file.Code != http.StatusUnprocessableEntity && strings.Count(file.Body.String(), "\n") < 5001 {
		t.Errorf("%d:\n%.400s", file.Code, file.Body)
	}
}
