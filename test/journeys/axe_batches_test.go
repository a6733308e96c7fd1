package journeys_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"quittance/disbursement"
	"quittance/money"
	processor "quittance/processors/disbursement"
	"quittance/test/approvals"
	"quittance/test/await"
)

// batches adds the pages on which an agency approves batches, in both languages, in each state that a person meets.
func (g *gallery) batches(t *testing.T) {
	t.Helper()
	w := approvals.New(t)
	for _, path := range w.Site.Assets() {
		g.mux.Handle("GET "+path, w.Handler)
	}
	add := func(name, by, path string) {
		t.Helper()
		for _, lang := range money.Languages {
			join := "?"
			if u, err := url.Parse(path); err == nil && u.RawQuery != "" {
				join = "&"
			}
			a := w.Browsers[by].Get(path + join + "lang=" + string(lang))
			if a.Code != http.StatusOK {
				t.Fatalf("%s answers %d:\n%s", name, a.Code, a.Body)
			}
			g.tours = append(g.tours, tour{{name: "staff." + name + "-" + string(lang), widths: []int{320, 1280}, pictured: true, page: withForms(a)}})
		}
	}
	upload := func(name, file string, status int) {
		t.Helper()
		for _, lang := range money.Languages {
			a := w.Browsers["Ama"].Upload("/agency/batches/import?lang="+string(lang), url.Values{"mode": {"test"}, "batch_ref": {"salaires-2026-11"}, "date": {w.Now().Format(time.DateOnly)}, "currency": {"XAF"}}, []byte(file))
			if a.Code != status {
				t.Fatalf("%s answers %d:\n%s", name, a.Code, a.Body)
			}
			g.tours = append(g.tours, tour{{name: "staff." + name + "-" + string(lang), widths: []int{320, 1280}, pictured: true, page: withForms(a)}})
		}
	}
	const list, one, held = "/agency/batches?mode=test", "/agency/batches/dsb_1", "/agency/batches/dsb_2"
	add("batches.none", "Ben", list)
	add("signatories.none", "Ama", approvals.PeoplePath)
	w.Agency(t)
	const heads = "line_ref,name,amount,currency,payment_mode,msisdn\n"
	made := w.Import(t, "salaires-2026-10", heads+"A-1,Ngoma Jean,150000,XAF,mobile_money,242066010001\nA-2,Mabiala Chantal,162500,XAF,mobile_money,242066010002\nA-3,Okemba Prosper,175000,XAF,mobile_money,242066010003\n", false)
	draft := w.Import(t, "salaires-2026-11", heads+"B-1,Ngoma Jean,150000,XAF,mobile_money,242066010009\nB-2,Mabiala Chantal,165000,XAF,mobile_money,242066010002\nB-4,Itoua Alphonse,200000,XAF,mobile_money,242066010004\n", true)
	w.Sealed(t, "dsb_1", 12)
	w.Sealed(t, "dsb_2", 3)
	if a := w.Browsers["Ben"].Post(held+"/hold", url.Values{"reason": {"une adresse à vérifier"}}); a.Code != http.StatusSeeOther {
		t.Fatalf("a hold is answered %d", a.Code)
	}
	w.Press(t, "Ama", approvals.PeoplePath, approvals.Propose, "kind", "people", "person", w.IDs["Cleo"], "roles", "chief, director")
	add("batches", "Ben", list)
	add("batches.import", "Ama", "/agency/batches/import?mode=test")
	upload("batches.refused", heads+"AGENT-001,Ngoma Jean,1.5E5,XAF,mobile_money,242066010001\nAGENT-002,Mabiala Chantal,162500,XAF,mobile_money,66010002\n", http.StatusUnprocessableEntity)
	add("batch.draft", "Ama", "/agency/batches/"+draft.Batch.ID)
	// What operators tell of names, as sink disburse stores it.
	w.Exec(t, `UPDATE disbursement_notes SET notes = notes || '{"names": {"check": "new", "lines": 3}}' WHERE batch = '`+draft.Batch.ID+`'`)
	w.Exec(t, `INSERT INTO disbursement_names (batch, position, line_ref, tenant_id, livemode, account, fingerprint, verdict, again_at, date)
		SELECT '`+draft.Batch.ID+`', p, r, '', false, 'mtn', 'f-mtn', v, now(), current_date FROM (VALUES (0, 'B-1', 'different'), (1, 'B-2', 'match'), (2, 'B-4', 'waiting')) x (p, r, v)`)
	add("batch.names", "Ama", "/agency/batches/"+draft.Batch.ID)
	add("batch.found", "Ben", "/agency/batches/"+made.Batch.ID)
	add("batch", "Ben", one)
	add("batch.maker", "Ama", one)
	add("batch.reader", "Rita", one)
	add("batch.held", "Cleo", held)
	add("signatories", "Ben", approvals.PeoplePath)
	const contested, settle = "/agency/batches/dsb_3/lines/2", "agency/batches/dsb_3/lines/2/settle"
	w.Sealed(t, "dsb_3", 4)
	w.Press(t, "Ben", "/agency/batches/dsb_3", "agency/batches/dsb_3/approve")
	w.Press(t, "Cleo", "/agency/batches/dsb_3", "agency/batches/dsb_3/release")
	await.Until(t, "four sent lines", func() bool { return w.Batch(t, "dsb_3").Lines.Sent.Count == 4 })
	for position, word := range []disbursement.Word{{Kind: disbursement.WordPaid, Amount: 1000}, {Kind: disbursement.WordPaid, Amount: 900}, {Kind: disbursement.WordRefused, Code: "PAYEE_NOT_FOUND"}} {
		w.Installation.OK(processor.SenderDisburse, "dsb_3", disbursement.Word{Position: position, Attempt: 1, Try: 1, Source: disbursement.FromRequest, Kind: disbursement.WordPending})
		word.Position, word.Attempt, word.Source, word.Currency = position, 1, disbursement.FromEnquiry, "XAF"
		w.Shows(t, w.Installation.OK(processor.SenderDisburse, "dsb_3", word))
	}
	add("line.contested", "Ben", contested)
	w.Press(t, "Ben", contested, settle, "outcome", "refused", "reference", "MTN statement of 2 December, line 14")
	add("line.waits", "Ben", contested)
	add("line.second", "Cleo", contested)
	add("line.paid", "Ben", "/agency/batches/dsb_3/lines/1")
	add("line.refused", "Ama", "/agency/batches/dsb_3/lines/3")
	add("batch.pays", "Ben", "/agency/batches/dsb_3")
	const ofERP = "/agency/batches/dsb_4"
	w.SealedOf(t, disbursement.SourceERP, "dsb_4", 2)
	w.Press(t, "Ben", ofERP, ofERP[1:]+"/approve")
	add("batch.erp", "Cleo", ofERP)
	w.Press(t, "Cleo", ofERP, ofERP[1:]+"/release")
	add("batch.erp.waits", "Cleo", ofERP+"?done=release")
	w.Shows(t, w.Installation.OK(processor.SenderDisburse, "dsb_3", disbursement.Word{Position: 3, Attempt: 1, Try: 1, Source: disbursement.FromRequest, Kind: disbursement.WordClosed, Absent: true, Code: "ROUTER115"}))
	add("batch.closed", "Ben", "/agency/batches/dsb_3")
	w.Exec(t, `UPDATE disbursement_lines SET sealed = '' WHERE batch = 'dsb_1' AND position = 1`)
	add("batch.differs", "Ben", one)
}

// The pages of batches are held to what all pages of staff are.
func TestBatchPagesForEverybody(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	t.Parallel()
	galleryOf(t, (*gallery).batches).forEverybody(t)
}
