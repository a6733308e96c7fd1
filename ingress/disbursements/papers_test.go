package disbursements_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/internal/disbursements"
	processor "quittance/processors/disbursement"
	"quittance/schemas/mapping/batches"
	"quittance/test/approvals"
	"quittance/test/await"
	"quittance/test/backoffice"
)

const (
	batchPath   = "/agency/batches/dsb_1"
	certificate = batchPath + "/certificate"
)

func advice(line string) string { return batchPath + "/lines/" + line + "/advice" }

// wantPDF fails unless an answer is a PDF with a name that begins so.
func wantPDF(t *testing.T, a *httptest.ResponseRecorder, name string) {
	t.Helper()
	if a.Code != http.StatusOK || !strings.HasPrefix(a.Body.String(), "%PDF-1.") || !strings.HasPrefix(a.Header().Get("Content-Disposition"), `attachment; filename="`+name) || a.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%d, %v\n%.300s", a.Code, a.Header(), a.Body)
	}
}

// payingWorld has a released batch of three lines: the first is paid, the second refused, the third paid and returned.
func payingWorld(t *testing.T) *approvals.World {
	t.Helper()
	w := approvals.New(t)
	w.Agency(t)
	w.Sealed(t, "dsb_1", 3)
	backoffice.Lacks(t, w.Browsers["Ben"].Get(batchPath), "/certificate")
	backoffice.Want(t, w.Browsers["Ben"].Get(certificate), http.StatusConflict, "Il n’y a pas de certificat")
	w.Press(t, "Ben", batchPath, "agency/batches/dsb_1/approve")
	wantPDF(t, w.Browsers["Ben"].Get(certificate), "certificat-ref-dsb-1-1.pdf")
	w.Press(t, "Cleo", batchPath, "agency/batches/dsb_1/release")
	await.Until(t, "three sent lines", func() bool { return w.Batch(t, "dsb_1").Lines.Sent.Count == 3 })
	say := func(position int, word disbursement.Word) {
		word.Position, word.Attempt, word.Source, word.Currency = position, 1, disbursement.FromEnquiry, "XAF"
		w.Shows(t, w.Installation.OK(processor.SenderDisburse, "dsb_1", word))
	}
	backoffice.Want(t, w.Browsers["Ben"].Get(advice("1")), http.StatusConflict, "cette ligne n’est pas payée")
	say(0, disbursement.Word{Kind: disbursement.WordPaid, Amount: 1000, OperatorRef: "OP-1"})
	say(1, disbursement.Word{Kind: disbursement.WordRefused, Code: "E-1"})
	say(2, disbursement.Word{Kind: disbursement.WordPaid, Amount: 1002})
	say(2, disbursement.Word{Kind: disbursement.WordReturned, Amount: 1002})
	return w
}

// Whoever sees batches has the certificate of an approved one, whoever sees lines the advice of a paid one, in both languages. The
// audit table says who read which.
func TestPapersOnPages(t *testing.T) {
	t.Parallel()
	w := payingWorld(t)
	backoffice.Want(t, w.Browsers["Rita"].Get(batchPath), http.StatusOK, certificate, "Certificat d’approbation (PDF)")
	for _, name := range []string{"Ama", "Ben", "Rita"} {
		wantPDF(t, w.Browsers[name].Get(certificate), "certificat-")
	}
	wantPDF(t, w.Browsers["Rita"].Get(certificate+"?lang=en"), "certificate-ref-dsb-1-1.pdf")
	backoffice.Want(t, w.Browsers["Zoe"].Get(certificate), http.StatusNotFound)
	backoffice.Want(t, w.Browsers["Zoe"].Get(advice("1")), http.StatusNotFound)
	backoffice.Want(t, w.Browsers["Rita"].Get(advice("1")), http.StatusForbidden)
	backoffice.Want(t, w.Browsers["Ben"].Get(batchPath+"/lines/1"), http.StatusOK, advice("1"), "Avis de versement (PDF)")
	backoffice.Lacks(t, w.Browsers["Ben"].Get(batchPath+"/lines/2"), "/advice")
	wantPDF(t, w.Browsers["Ben"].Get(advice("1")), "00001-avis-de-versement-dsb-1-000000.pdf")
	wantPDF(t, w.Browsers["Ama"].Get(advice("3")+"?lang=en"), "00003-payment-advice-dsb-1-000002.pdf")
	for _, none := range []string{advice("0"), advice("4"), advice("x"), "/agency/batches/dsb_2/certificate"} {
		backoffice.Want(t, w.Browsers["Ben"].Get(none), http.StatusNotFound)
	}
	backoffice.Want(t, w.Browsers["Ben"].Get(advice("2")+"?lang=en"), http.StatusConflict, "this line is not paid")

	// A line about which the operator contradicts itself has no advice until two people have decided.
	w.Shows(t, w.Installation.OK(processor.SenderDisburse, "dsb_1", disbursement.Word{Position: 0, Attempt: 1, Source: disbursement.FromEnquiry, Kind: disbursement.WordRefused, Currency: "XAF"}))
	backoffice.Lacks(t, w.Browsers["Ben"].Get(batchPath+"/lines/1"), "/advice")
	backoffice.Want(t, w.Browsers["Ben"].Get(advice("1")), http.StatusConflict, "cette ligne n’est pas payée")
	const settle = "agency/batches/dsb_1/lines/1/settle"
	w.Press(t, "Cleo", batchPath+"/lines/1", settle, "outcome", "paid", "reference", "the payee has it")
	w.Press(t, "Ben", batchPath+"/lines/1", settle)
	wantPDF(t, w.Browsers["Ben"].Get(advice("1")), "00001-")

	var papers []string
	for _, x := range audited(t, w) {
		if strings.Contains(x, "batch.certificate") || strings.Contains(x, "batch.advice") {
			papers = append(papers, x)
		}
	}
	want := []string{
		"Ben batch.certificate dsb_1", "Ama batch.certificate dsb_1", "Ben batch.certificate dsb_1", "Rita batch.certificate dsb_1", "Rita batch.certificate dsb_1",
		"Ben batch.advice dsb_1", "Ama batch.advice dsb_1", "Ben batch.advice dsb_1",
	}
	if !slices.Equal(papers, want) {
		t.Errorf("the audit table has\n%q\nwant\n%q", papers, want)
	}
}

// rewrite changes the stored snapshot of a line.
func rewrite(t *testing.T, w *approvals.World, position int, change func(*disbursement.Line)) {
	t.Helper()
	list, err := w.Batches.Lines(t.Context(), "dsb_1", disbursements.LineQuery{From: position, Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	change(&list[0])
	r := batches.FromLine(list[0])
	r.Sealed = nil
	snapshot, err := w.Codec.Encode(&r)
	if err != nil {
		t.Fatal(err)
	}
	w.Exec(t, `UPDATE disbursement_lines SET snapshot = $1, status = $2 WHERE position = $3`, snapshot, string(list[0].Status), position)
}

// rebatch changes the stored snapshots of the batch, and of what was sealed.
func rebatch(t *testing.T, w *approvals.World, change func(*disbursements.Batch)) {
	t.Helper()
	b := w.Batch(t, "dsb_1")
	change(&b)
	batch := batches.FromBatch(b.Batch)
	snapshot, err := w.Codec.Encode(&batch)
	if err != nil {
		t.Fatal(err)
	}
	sealed := batches.FromSealing(b.Sealing)
	sealing, err := w.Codec.Encode(&sealed)
	if err != nil {
		t.Fatal(err)
	}
	w.Exec(t, `UPDATE disbursement_batches SET snapshot = $1, sealing = $2`, snapshot, sealing)
}

// Whoever writes Postgres gets no paper, and the page says in what the rows do not agree.
func TestPapersOfChangedRows(t *testing.T) {
	t.Parallel()
	w := payingWorld(t)
	w.Exec(t, `CREATE TABLE kept_lines AS SELECT * FROM disbursement_lines`)
	w.Exec(t, `CREATE TABLE kept_batches AS SELECT * FROM disbursement_batches`)
	w.Exec(t, `CREATE TABLE kept_steps AS SELECT * FROM disbursement_steps`)
	ben := w.Browsers["Ben"]
	both, onlyAdvice, onlyCertificate := []string{certificate, advice("1")}, []string{advice("1")}, []string{certificate}
	for what, x := range map[string]struct {
		do   func()
		of   []string
		says string
	}{
		"a refused line that is called paid": {func() { rewrite(t, w, 1, func(l *disbursement.Line) { l.Status = disbursement.LinePaid }) }, []string{certificate, advice("1"), advice("2")}, "état d’une ligne"},
		"with the totals of its batch": {func() {
			rewrite(t, w, 1, func(l *disbursement.Line) { l.Status = disbursement.LinePaid })
			rebatch(t, w, func(b *disbursements.Batch) {
				b.Lines.Paid, b.Lines.Refused = disbursement.Total{Count: 2, Sum: 2001}, disbursement.Total{}
			})
		}, []string{advice("2")}, "état d’une ligne"},
		"a returned line that is called paid": {func() {
			rewrite(t, w, 2, func(l *disbursement.Line) { l.Status = disbursement.LinePaid })
			rebatch(t, w, func(b *disbursements.Batch) {
				b.Lines.Paid, b.Lines.Returned = disbursement.Total{Count: 2, Sum: 2002}, disbursement.Total{}
			})
		}, []string{advice("3")}, "état d’une ligne"},
		"no event of the payment": {func() { w.Exec(t, `DELETE FROM disbursement_steps WHERE type = 'line.paid'`) }, onlyAdvice, "état d’une ligne"},
		"another amount":          {func() { rewrite(t, w, 0, func(l *disbursement.Line) { l.Amount = 9000 }) }, both, "montants"},
		"another name":            {func() { resealed(t, w, "dsb_1", 0, func(l *digest.Line) { l.Name = "MALLORY" }) }, both, "ligne illisible"},
		"another amount inside":   {func() { resealed(t, w, "dsb_1", 0, func(l *digest.Line) { l.Amount = 9000 }) }, both, "ligne illisible"},
		"another leaf":            {func() { rewrite(t, w, 0, func(l *disbursement.Line) { l.Leaf = digest.Hash{1} }) }, both, "contenu des lignes"},
		"a line that is gone":     {func() { w.Exec(t, `DELETE FROM disbursement_lines WHERE position = 1`) }, both, "nombre de lignes"},
		"no approval":             {func() { rebatch(t, w, func(b *disbursements.Batch) { b.Sealing.Approvals = nil }) }, both, "les approbations"},
		"an approval of another": {func() {
			rebatch(t, w, func(b *disbursements.Batch) { b.Sealing.Approvals[0].Person = w.IDs["Cleo"] })
		}, both, "les approbations"},
		"another sum": {func() { rebatch(t, w, func(b *disbursements.Batch) { b.Sum++ }) }, both, "empreinte"},
		"another content": {func() {
			rebatch(t, w, func(b *disbursements.Batch) { b.Sealing.Content.Sum++; b.Sum++ })
		}, both, "empreinte"},
		"another digest for another content": {func() {
			rebatch(t, w, func(b *disbursements.Batch) {
				b.Sealing.Content.BatchRef, b.BatchRef = "other", "other"
				b.Digest, _ = b.Sealing.Content.Digest()
			})
		}, both, "les approbations"},
		"released by nobody":    {func() { w.Exec(t, `DELETE FROM disbursement_steps WHERE type = 'batch.released'`) }, both, "état d’une ligne ou du lot"},
		"a batch called sealed": {func() { rebatch(t, w, func(b *disbursements.Batch) { b.Status = disbursement.StatusSealed }) }, onlyCertificate, "Il n’y a pas de certificat"},
	} {
		x.do()
		for _, path := range x.of {
			if a := ben.Get(path); a.Code != http.StatusConflict || !strings.Contains(a.Body.String(), x.says) {
				t.Errorf("%s: %s answers %d and does not say %q\n%.600s", what, path, a.Code, x.says, a.Body)
			}
		}
		for _, table := range []string{"lines", "batches", "steps"} {
			w.Exec(t, `DELETE FROM disbursement_`+table)
			w.Exec(t, `INSERT INTO disbursement_`+table+` SELECT * FROM kept_`+table)
		}
	}
	wantPDF(t, ben.Get(certificate), "certificat-")
	wantPDF(t, ben.Get(advice("1")), "00001-")
	// An erased line has no advice, and the certificate of its batch stays.
	w.Exec(t, `DELETE FROM personal_keys WHERE session_id = 'dsb_1:0'`)
	backoffice.Want(t, ben.Get(advice("1")), http.StatusConflict, "effacé ou illisible")
	wantPDF(t, ben.Get(certificate), "certificat-")
	// The passkey that approved is nobody's in rows that are signed.
	w.Exec(t, `UPDATE staff_passkeys SET name = 'other' WHERE staff_id = $1`, w.IDs["Ben"])
	backoffice.Want(t, w.Browsers["Cleo"].Get(certificate), http.StatusConflict, "les approbations")
}
