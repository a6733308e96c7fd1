package disbursements_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"quittance/disbursement"
	"quittance/internal/disbursements"
	"quittance/test/approvals"
	"quittance/test/await"
	"quittance/test/backoffice"
	"quittance/test/registries"
)

const importPath = "/agency/batches/import"

// lineRows is a file of lines: line_ref, name, amount and number each.
func lineRows(rows ...string) []byte {
	out := "line_ref,name,amount,currency,payment_mode,msisdn\n"
	for _, r := range rows {
		f := strings.Split(r, ",")
		out += fmt.Sprintf("%s,%s,%s,XAF,mobile_money,%s\n", f[0], f[1], f[2], f[3])
	}
	return []byte(out)
}

// Who prepares uploads a file, reads all its faults, looks at the draft with what differs, and seals or discards it. Who approves
// sees what the import found, and that it is not signed. Nobody else imports, seals or discards.
func TestAFileBecomesABatch(t *testing.T) {
	t.Parallel()
	w := approvals.New(t)
	w.Agency(t)
	ama, ben := w.Browsers["Ama"], w.Browsers["Ben"]
	form := url.Values{"mode": {"test"}, "batch_ref": {"salaries-11"}, "date": {w.Now().Format(time.DateOnly)}, "currency": {"XAF"}}
	with := func(name, value string) url.Values {
		out := url.Values{}
		for k, v := range form {
			out[k] = v
		}
		out.Set(name, value)
		return out
	}
	good := lineRows("a1,Ngoma Jean,1500,242066000001", "b1,Mabiala,2000,242066000002")

	backoffice.Want(t, ama.Get("/agency/batches?mode=test"), http.StatusOK, `href="/agency/batches/import?`)
	backoffice.Lacks(t, ben.Get("/agency/batches?mode=test"), "/agency/batches/import")
	backoffice.Want(t, ama.Get(importPath+"?mode=test"), http.StatusOK, `enctype="multipart/form-data"`, `<option value="test" selected>`)
	for _, name := range []string{"Ben", "Rita"} {
		backoffice.Want(t, w.Browsers[name].Upload(importPath, form, good), http.StatusForbidden)
	}
	for format, begins := range map[string]string{"xlsx": "PK", "csv": "\xef\xbb\xbf"} {
		if a := ama.Get("/agency/batches/template?mode=test&format=" + format); a.Code != http.StatusOK || !bytes.HasPrefix(a.Body.Bytes(), []byte(begins)) {
			t.Errorf("the template as %s is answered %d with %.20q", format, a.Code, a.Body)
		}
	}

	// All faults at once, with row, column and what to do. What was typed stays.
	bad := ama.Upload(importPath, form, lineRows("a1,Ngoma Jean,1.5E3,242066000001", "b1,Mabiala,2000,66000002", "b1,Okemba,0,242066000003"))
	backoffice.Want(t, bad, http.StatusUnprocessableEntity, "Nombre d’erreurs\u00a0: 4", "1.5E3", "66000002", `value="salaries-11"`)
	if rows := regexp.MustCompile(`<tr role="row"><t`).FindAllString(bad.Body.String(), -1); len(rows) != 1+4 {
		t.Errorf("the table of faults has %d rows, want 4 below the heads:\n%s", len(rows), bad.Body)
	}
	for field, want := range map[string]string{"batch_ref": "Référence\u00a0:", "date": "Date de paiement\u00a0:", "currency": "Devise\u00a0:"} {
		backoffice.Want(t, ama.Upload(importPath, with(field, ""), good), http.StatusUnprocessableEntity, want)
	}
	backoffice.Want(t, ama.Upload(importPath, form, nil), http.StatusUnprocessableEntity, "Fichier\u00a0:")
	backoffice.Want(t, ama.Upload(importPath, form, make([]byte, 24<<20)), http.StatusRequestEntityTooLarge, "24 Mo")
	backoffice.Want(t, ama.Post(importPath, form), http.StatusUnprocessableEntity, "Fichier\u00a0:")
	if list := ama.Get("/agency/batches?mode=test"); strings.Contains(list.Body.String(), "salaries-11") {
		t.Error("a refused file has made a batch")
	}

	draft := imported(t, ama, form, good)
	page := "/agency/batches/" + draft
	backoffice.Want(t, ama.Get(page), http.StatusOK, "Brouillon", "3\u202f500", "Ce que l’import a relevé", "n’est pas signée", "Bénéficiaire jamais payé", page[1:]+"/seal", page[1:]+"/discard")
	backoffice.Lacks(t, ben.Get(page), page[1:]+"/seal", page[1:]+"/discard")
	backoffice.Lacks(t, w.Browsers["Rita"].Get(page), "Ce que l’import a relevé")
	backoffice.Want(t, w.Browsers["Zoe"].Get(page), http.StatusNotFound)
	for _, act := range []string{"/seal", "/discard"} {
		backoffice.Want(t, ben.Post(page+act, nil), http.StatusForbidden)
		backoffice.Want(t, w.Browsers["Zoe"].Post(page+act, nil), http.StatusNotFound)
	}
	if b := w.Batch(t, draft); b.Status != disbursement.StatusDraft {
		t.Fatalf("the draft is %s", b.Status)
	}
	backoffice.Want(t, ama.Upload(importPath, form, good), http.StatusConflict, "un lot en cours l’a déjà")
	backoffice.Want(t, ama.Post(page+"/seal", nil), http.StatusSeeOther)
	if b := w.Batch(t, draft); b.Status != disbursement.StatusSealed || b.Maker != w.IDs["Ama"] || b.Count != 2 {
		t.Fatalf("sealed: %+v", b.Batch)
	}
	backoffice.Want(t, ben.Get(page), http.StatusOK, "Ce que l’import a relevé", "n’est pas signée")
	w.Press(t, "Ben", page, page[1:]+"/approve")

	// The next month: the page says who differs. A line that is paid already is refused with its row, and leaves no draft.
	form.Set("batch_ref", "salaries-12")
	backoffice.Want(t, ama.Upload(importPath, form, lineRows("a0,Okemba,1,242066000003", "b1,Mabiala,2000,242066000002")), http.StatusConflict, "Ligne 3 du fichier, référence b1")
	next := imported(t, ama, form, lineRows("a2,Ngoma Jean,1500,242066000009", "b2,Mabiala,2100,242066000002"))
	backoffice.Want(t, ama.Get("/agency/batches/"+next), http.StatusOK, "Comparé au dernier lot (salaries-11, révision 1", "Même nom, autre compte", "Même bénéficiaire, autre montant", "Nom connu avec un compte qu’il n’a jamais eu", "2\u202f000")
	backoffice.Want(t, ama.Post("/agency/batches/"+next+"/discard", nil), http.StatusSeeOther)
	if b := w.Batch(t, next); b.Status != disbursement.StatusDiscarded {
		t.Errorf("a discarded draft is %s", b.Status)
	}
	var rows int
	if err := w.Pool.QueryRow(t.Context(), `SELECT count(*) FROM audit WHERE action IN ('batch.import', 'batch.seal', 'batch.discard') AND subject IN ($1, $2)`, draft, next).Scan(&rows); err != nil || rows != 4 {
		t.Errorf("the audit table has %d rows of imports, sealing and discarding, want 4: %v", rows, err)
	}
}

// imported uploads a file that becomes a draft, and returns its id.
func imported(t *testing.T, b *backoffice.Browser, form url.Values, file []byte) string {
	t.Helper()
	a := b.Upload(importPath, form, file)
	m := regexp.MustCompile(`/agency/batches/(dsb_[a-z0-9]+)`).FindStringSubmatch(a.Header().Get("Location"))
	if a.Code != http.StatusSeeOther || m == nil {
		t.Fatalf("an import is answered %d %q:\n%.3000s", a.Code, a.Header().Get("Location"), a.Body)
	}
	return m[1]
}

// Only the maker seals a draft, also among those who prepare batches.
func TestAnotherPreparerDoesNotSeal(t *testing.T) {
	t.Parallel()
	w := approvals.New(t)
	w.Agency(t)
	file := lineRows("a1,Ngoma Jean,1500,242066000001")
	made, err := w.Files.Import(t.Context(), disbursements.Import{
		TenantID: registries.AgencyA, BatchRef: "salaries-11", Date: w.Now().Format(time.DateOnly), Currency: "XAF", Maker: w.IDs["Ben"], Draft: true,
		File: bytes.NewReader(file), Size: int64(len(file)),
	})
	if err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the draft in the read model", func() bool {
		b, err := w.Batches.Batch(t.Context(), disbursements.Scope{}, made.Batch.ID)
		return err == nil && b.Count == 1
	})
	page := "/agency/batches/" + made.Batch.ID
	backoffice.Lacks(t, w.Browsers["Ama"].Get(page), page[1:]+"/seal")
	backoffice.Want(t, w.Browsers["Ama"].Post(page+"/seal", nil), http.StatusUnprocessableEntity, "Seule la personne qui a préparé")
	if b := w.Batch(t, made.Batch.ID); b.Status != disbursement.StatusDraft {
		t.Errorf("the draft is %s", b.Status)
	}
	backoffice.Want(t, w.Browsers["Ama"].Post(page+"/discard", nil), http.StatusSeeOther)
}

// Two files that came slowly closed imports for all agencies for two minutes. The place to read is taken when a file is there, and an
// agency sends one at a time.
func TestSlowFilesCloseImportsForNobodyElse(t *testing.T) {
	t.Parallel()
	w := approvals.New(t)
	w.Agency(t)
	form := url.Values{"mode": {"test"}, "batch_ref": {"salaries-11"}, "date": {w.Now().Format(time.DateOnly)}, "currency": {"XAF"}}
	file := lineRows("a1,Ngoma Jean,1500,242066000001")
	ama, zoe := w.Browsers["Ama"], w.Browsers["Zoe"]
	begun, end := make(chan struct{}), make(chan struct{})
	slow := make(chan *httptest.ResponseRecorder, 1)
	go func() { slow <- ama.SlowUpload(importPath, form, file, end, func() { close(begun) }) }()
	<-begun
	backoffice.Want(t, ama.Upload(importPath, form, file), http.StatusTooManyRequests, "en cours de lecture")
	if a := zoe.Upload(importPath, form, file); a.Code == http.StatusTooManyRequests {
		t.Errorf("another agency waits for it: %d\n%.2000s", a.Code, a.Body)
	}
	close(end)
	if a := <-slow; a.Code != http.StatusSeeOther {
		t.Errorf("the slow file: %d\n%.2000s", a.Code, a.Body)
	}
	form.Set("batch_ref", "salaries-12")
	imported(t, ama, form, lineRows("a2,Ngoma Jean,1500,242066000001"))
}
