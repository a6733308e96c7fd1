package operations_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"quittance/internal/identity"
	"quittance/internal/intake"
	"quittance/internal/statements"
	"quittance/test/backoffice"
	"quittance/test/registries"
	"quittance/test/servers"
)

// asks has a person's passkey sign a form of the page of an import.
func asks(t *testing.T, b *backoffice.Browser, name, page, form string, reason string) (*httptest.ResponseRecorder, url.Values) {
	t.Helper()
	html := b.Get(page).Body.String()
	_, html, found := strings.Cut(html, `id="`+form+`"`)
	if !found {
		t.Fatalf("%s has no form %s for %s", page, form, name)
	}
	_, action, _ := strings.Cut(html, `data-finish="`)
	action, _, _ = strings.Cut(action, `?`)
	fields := url.Values{"request": {value(t, html, "request")}, "reason": {reason}}
	return b.Press(t, name, action+"/begin", fields, action), fields
}

// approves has a person's passkey sign the approval that a page shows.
func approves(t *testing.T, b *backoffice.Browser, name, page string) *httptest.ResponseRecorder {
	t.Helper()
	html := b.Get(page).Body.String()
	_, html, found := strings.Cut(html, `id="approve-`)
	if !found {
		t.Fatalf("%s has nothing to approve for %s", page, name)
	}
	_, action, _ := strings.Cut(html, `data-finish="`)
	action, _, _ = strings.Cut(action, `?`)
	fields := url.Values{"shown": {value(t, html, "shown")}}
	return b.Press(t, name, action+"/begin", fields, action)
}

// The people of an agency with passkeys see what was imported, and decide about it by two: the statement of a day waits no more.
// Another agency is told the same of it as of nothing.
func TestAnAgencyDecidesAboutStatements(t *testing.T) {
	t.Parallel()
	w := twoAgencies(t)
	w.Add(t, "impots", []identity.Role{identity.RoleAccountant}, "Awa")
	w.Add(t, "impots", []identity.Role{identity.RoleApprover}, "Blaise")
	w.Add(t, "douanes", []identity.Role{identity.RoleAccountant, identity.RoleApprover}, "Chantal")
	w.Add(t, "", []identity.Role{identity.RoleLead}, "Léa")
	accountant, approver, stranger, lead := w.Enter(t, "Awa"), w.Enter(t, "Blaise"), w.Enter(t, "Chantal"), w.Enter(t, "Léa")
	first, held := backoffice.Statement(1, 0, 300, 200), backoffice.Statement(1, 0, 400, 200)
	accepted, id := w.Import(t, first, statements.VerdictAccepted), w.Import(t, held, statements.VerdictQuarantined)
	root := "/agency/imports/"
	path := root + id

	list := accountant.Get("/agency/imports")
	backoffice.Want(t, list, http.StatusOK, path+"?lang=fr", root+accepted, "En attente de vérification", "Accepté", "quittance statements list")
	backoffice.Lacks(t, list, "/ops/", `name="agency"`, "MABIALA")
	backoffice.Want(t, accountant.Get("/agency/imports?state=quarantined"), http.StatusOK, path)
	backoffice.Lacks(t, accountant.Get("/agency/imports?state=quarantined"), root+accepted)
	backoffice.Want(t, accountant.Get("/agency/imports?day=2026-03-01"), http.StatusOK, path)
	backoffice.Want(t, accountant.Get("/agency/imports?day=2026-02-28"), http.StatusOK, "Aucun relevé ne remplit ces conditions")
	backoffice.Want(t, accountant.Get("/agency/imports?day=hier"), http.StatusUnprocessableEntity, "AAAA-MM-JJ")
	backoffice.Want(t, lead.Get("/ops/imports?agency="+registries.AgencyA), http.StatusOK, "/ops/imports/"+id, "Direction générale des impôts", "quittance statements list --agency impots")
	page := accountant.Get(path)
	backoffice.Want(t, page, http.StatusOK, "Un relevé de même identifiant a été accepté", root+accepted, "quittance statements show "+id, `id="release"`, `id="reading"`, "SHA-256")
	backoffice.Lacks(t, page, `id="dismissal"`, "MABIALA", "46733123454") // an accountant dismisses nothing
	backoffice.Want(t, approver.Get(path), http.StatusOK, `id="dismissal"`)
	backoffice.Lacks(t, approver.Get(path), `id="release"`)

	none := root + "01a22ab6-0000-7000-8000-000000000000"
	one, two := stranger.Get(path), stranger.Get(none)
	if one.Code != http.StatusNotFound || two.Code != one.Code || !bytes.Equal(bytes.ReplaceAll(one.Body.Bytes(), []byte(path), nil), bytes.ReplaceAll(two.Body.Bytes(), []byte(none), nil)) {
		t.Errorf("another agency is told more of %s:\n%s\n%s", path, one.Body, two.Body)
	}
	backoffice.Lacks(t, stranger.Get("/agency/imports"), id)
	backoffice.Want(t, stranger.Post(path+"/ask/release/begin", url.Values{"reason": {"r"}}), http.StatusNotFound)
	backoffice.Want(t, stranger.Post(path+"/reopen", url.Values{"reason": {"r"}}), http.StatusNotFound)

	// The accountant requests, and the approver approves what the page has shown.
	refused, _ := asks(t, accountant, "Awa", path, "release", "")
	backoffice.Want(t, refused, http.StatusUnprocessableEntity, "Indiquez le motif")
	asked, fields := asks(t, accountant, "Awa", path, "release", "MTN a corrigé la ligne 2")
	leadsTo(t, asked, path+"?done=asked&lang=fr")
	leadsTo(t, accountant.Post(path+"/ask/release/begin", fields), path+"?done=asked&lang=fr") // sent twice
	backoffice.Want(t, approver.Get("/work"), http.StatusOK, path, "Acceptation du fichier")
	backoffice.Want(t, accountant.Get("/work"), http.StatusOK, path)
	backoffice.Lacks(t, stranger.Get("/work"), id)
	own := accountant.Get(path)
	backoffice.Want(t, own, http.StatusOK, "Retirer ma demande", "MTN a corrigé la ligne 2")
	backoffice.Lacks(t, own, `id="approve-`, `id="release"`)
	request := fields.Get("request")
	approve := path + "/release/" + request + "/approve"
	backoffice.Want(t, approver.Press(t, "Blaise", approve+"/begin", url.Values{"shown": {strings.Repeat("0", 64)}}, approve), http.StatusConflict, "Le dossier a changé")
	backoffice.Want(t, approver.Press(t, "Blaise", approve+"/begin", url.Values{}, approve), http.StatusConflict, "Le dossier a changé")
	backoffice.Want(t, accountant.Post(approve+"/begin", nil), http.StatusForbidden)
	backoffice.Want(t, approver.Post(root+accepted+"/release/"+request+"/approve/begin", nil), http.StatusNotFound) // a request of another import
	backoffice.Want(t, stranger.Post(approve+"/begin", nil), http.StatusNotFound)
	leadsTo(t, approves(t, approver, "Blaise", path), path+"?done=approved&lang=fr")
	backoffice.Want(t, accountant.Get(path), http.StatusOK, "À importer de nouveau", "Blaise", "s’il est importé de nouveau")
	w.Import(t, held, statements.VerdictAccepted)

	restored, _ := asks(t, accountant, "Awa", root+accepted, "restoration", "MTN a retiré la seconde")
	leadsTo(t, restored, root+accepted+"?done=asked&lang=fr")
	backoffice.Want(t, approver.Get("/work"), http.StatusOK, "Retour à une version antérieure")
	backoffice.Lacks(t, approver.Get("/work"), "Acceptation du fichier")

	// The lead of operations asks to withdraw the first one, takes it back, and the approver dismisses a third file and takes that back.
	ops := "/ops/imports/" + accepted
	third := root + w.Import(t, backoffice.Statement(1, 0, 500, 200), statements.VerdictQuarantined)
	dismissed, _ := asks(t, approver, "Blaise", third, "dismissal", "la première est juste")
	leadsTo(t, dismissed, third+"?done=dismissed&lang=fr")
	backoffice.Want(t, approver.Get(third), http.StatusOK, "Écarté", "Rien du fichier ne compte", `action="`+third+`/reopen?lang=fr"`)
	backoffice.Want(t, approver.Post(third+"/reopen", url.Values{"reason": {""}}), http.StatusUnprocessableEntity, "Indiquez le motif")
	leads(t, approver.Post(third+"/reopen", url.Values{"reason": {"MTN a retiré la première"}}), third+"?done=reopened&lang=fr")
	backoffice.Want(t, approver.Get(third), http.StatusOK, "En attente de vérification")
	// What nobody has signed is said on the page.
	w.Exec(t, `UPDATE statement_imports SET state = 'dismissed', dismissed_at = now(), dismissed_by = 'Blaise', dismissed_reason = 'r' WHERE id = $1`, strings.TrimPrefix(third, root))
	backoffice.Want(t, approver.Get(third), http.StatusOK, "pas signé par les personnes", `id="dismissal"`)
	backoffice.Want(t, lead.Get(ops), http.StatusOK, "/ops/imports")
	// A release that is over is no reason for an alarm.
	asked, _ = asks(t, accountant, "Awa", third, "release", "MTN a corrigé la ligne 2")
	leadsTo(t, asked, third+"?done=asked&lang=fr")
	leadsTo(t, approves(t, approver, "Blaise", third), third+"?done=approved&lang=fr")
	w.MoveTo(w.Now().Add(25 * time.Hour))
	late := w.Enter(t, "Blaise").Get(third)
	backoffice.Want(t, late, http.StatusOK, "cette décision est caduque", `id="dismissal"`)
	backoffice.Lacks(t, late, "responsable de la sécurité")
}

// A file is downloaded by the person who asked, once another one has allowed it and the sink cases has opened it. It is an
// attachment that no browser shows, and each download is in the audit table.
func TestAFileIsDownloaded(t *testing.T) {
	t.Parallel()
	w := twoAgencies(t)
	w.Add(t, "impots", []identity.Role{identity.RoleAccountant}, "Awa")
	w.Add(t, "impots", []identity.Role{identity.RoleApprover, identity.RoleAccountant}, "Blaise")
	w.Add(t, "douanes", []identity.Role{identity.RoleAccountant}, "Chantal")
	accountant, approver, stranger := w.Enter(t, "Awa"), w.Enter(t, "Blaise"), w.Enter(t, "Chantal")
	text := backoffice.Statement(1, 0, 300, 200)
	path := "/agency/imports/" + w.Import(t, text, statements.VerdictAccepted)
	asked, fields := asks(t, accountant, "Awa", path, "reading", "MTN conteste la ligne 2")
	leadsTo(t, asked, path+"?done=asked&lang=fr")
	file := path + "/files/" + fields.Get("request")
	backoffice.Want(t, accountant.Get(file), http.StatusConflict, "Une autre personne doit d’abord approuver")
	leadsTo(t, approves(t, approver, "Blaise", path), path+"?done=approved&lang=fr")
	backoffice.Want(t, accountant.Get(file), http.StatusConflict, "s’ouvre dans les secondes")
	r, err := intake.NewReadings(intake.ReadingsConfig{Pool: w.Pool, Keys: w.Keys, Now: w.Now, Log: servers.Logger(t)})
	if err == nil {
		err = r.Open(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	backoffice.Want(t, accountant.Get(path), http.StatusOK, file+"?lang=fr")
	backoffice.Lacks(t, approver.Get(path), file)
	got := accountant.Get(file)
	h := got.Header()
	if got.Code != http.StatusOK || got.Body.String() != text || h.Get("Content-Type") != "application/octet-stream" || !strings.HasPrefix(h.Get("Content-Disposition"), "attachment; ") ||
		h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Content-Length") != fmt.Sprint(len(text)) {
		t.Errorf("%d %v %q", got.Code, h, got.Body)
	}
	for _, other := range []*backoffice.Browser{approver, stranger} {
		backoffice.Want(t, other.Get(file), http.StatusNotFound)
	}
	var n int
	if err := w.Pool.QueryRow(t.Context(), `SELECT count(*) FROM audit WHERE action = 'statements.original.read' AND actor = $1 AND detail ->> 'reason' = 'MTN conteste la ligne 2'`, w.IDs["Awa"]).Scan(&n); err != nil || n != 1 {
		t.Errorf("%d downloads are recorded, %v", n, err)
	}
	w.MoveTo(w.Now().Add(25 * time.Hour))
	late := w.Enter(t, "Awa")
	backoffice.Want(t, late.Get(file), http.StatusConflict, "caduque")
}
