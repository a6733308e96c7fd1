package batch_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"

	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/internal/batchseal"
	"quittance/internal/disbursements"
	"quittance/internal/receipts"
	processor "quittance/processors/disbursement"
	"quittance/test/await"
	"quittance/test/payroll"
)

const (
	checkout = "https://pay.example"
	header   = "line_ref,name,amount,currency,payment_mode,msisdn,purpose\n"
)

// enrolled makes the person of the desk a maker, with everybody in force.
func (d *desk) enrolled() {
	d.t.Helper()
	d.Agency()
	enrol := disbursement.Enrol{People: []disbursement.Enrolled{payroll.Enrolled(d.person, "maker")}}
	enrol.Confirmed = payroll.Confirm(4, enrol.Content(), "ama", "ben")
	d.OK(processor.SenderOffice, "", enrol)
	d.Advance(25 * time.Hour)
}

// imports makes a sealed batch of lines of a file, and returns it when the read model has it.
func (d *desk) imports(ref, text string) disbursement.Batch {
	d.t.Helper()
	file := filepath.Join(d.t.TempDir(), "lines.csv")
	if err := os.WriteFile(file, []byte(header+text), 0o600); err != nil {
		d.t.Fatal(err)
	}
	d.run(0, "import", file, "--agency", "impots", "--mode", "test", "--batch-ref", ref, "--date", d.Now().Format(time.DateOnly))
	var out disbursement.Batch
	await.Until(d.t, "the batch is in the read model", func() bool {
		list, err := d.store.List(d.t.Context(), disbursements.Scope{}, disbursements.Query{BatchRef: ref, Status: disbursement.StatusSealed, Size: 1})
		if err == nil && len(list) == 1 {
			out = list[0]
		}
		return len(list) == 1
	})
	return out
}

// shows waits until the read model has a batch as the processor has it.
func (d *desk) shows(b disbursement.Batch) {
	d.t.Helper()
	await.Until(d.t, "the batch is as the processor has it", func() bool {
		got, err := d.store.Batch(d.t.Context(), disbursements.Scope{}, b.ID)
		return err == nil && got.Sequence >= b.Sequence
	})
}

// paid approves and releases a batch of three lines, of which the operator then says what became.
func (d *desk) paid(b disbursement.Batch) {
	d.t.Helper()
	d.OK(processor.SenderOffice, b.ID, disbursement.Approve{Level: 1, Signed: payroll.Step(b.Digest, "ben", 1, digest.Approve)})
	d.releases(b)
}

// paperOf is what a PDF reader finds in a paper: its text, and the claims of its code.
func paperOf(d *desk, file string) (text string, claims batchseal.Claims) {
	d.t.Helper()
	folder, err := filepath.Abs("../../../../.deps/papers")
	if err != nil {
		d.t.Fatal(err)
	}
	out, err := exec.CommandContext(d.t.Context(), "node", "../../../../test/tools/papers/read.mjs", folder, "^$", file).Output()
	if err != nil {
		d.t.Fatalf("%v: %s", err, out)
	}
	var got struct {
		Text  string
		Print [2]*string
	}
	if err := json.Unmarshal(out, &got); err != nil || got.Print[1] == nil {
		d.t.Fatalf("%s has no code: %s, %v", file, out, err)
	}
	keys := d.publicKeys()
	v, err := batchseal.Verify(keys, "pay.example", *got.Print[1])
	if err != nil || !v.Test() {
		d.t.Fatalf("the code of %s is not verified: %+v, %v", file, v, err)
	}
	return strings.Join(strings.Fields(got.Text), " "), v.Claims
}

func (d *desk) publicKeys() receipts.Keys {
	d.t.Helper()
	keys, err := batchseal.Keys(d.Keys)
	if err != nil {
		d.t.Fatal(err)
	}
	return keys
}

// verifies has the script of the documentation verify the signature of a file; code is how it ends.
func (d *desk) verifies(file, signature string) error {
	d.t.Helper()
	keys := filepath.Join(d.t.TempDir(), "jwks.json")
	if err := os.WriteFile(keys, d.publicKeys().JWKS(time.Now()), 0o600); err != nil {
		d.t.Fatal(err)
	}
	out, err := exec.CommandContext(d.t.Context(), "node", "../../../../docs/operating/disbursements/verify-signature.mjs", keys, file, signature).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// A batch has a certificate from its approval on, and advices of what is paid of it, in both languages; each paper is in the audit
// table, and none is made for other people.
func TestPapersOfABatch(t *testing.T) {
	d := newDesk(t)
	d.enrolled()
	b := d.imports("salaries", "a,Ngoma Jean,1500,XAF,mobile_money,06 600 00 01,Salaire\nb,Mabiala Rose,2500,XAF,mobile_money,06 600 00 02,Salaire\nc,Okemba Paul,3500,XAF,mobile_money,06 600 00 03,Salaire\n")
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	certificate := func(code int, out string, more ...string) string {
		t.Helper()
		return d.run(code, append([]string{"certificate", b.ID, "--out", at(out), "--checkout-url", checkout}, more...)...)
	}
	says(t, certificate(1, "none.pdf"), "not approved by all")
	says(t, d.run(2, "certificate", b.ID, "--checkout-url", checkout), "--out")
	says(t, d.run(2, "certificate", b.ID, "--out", at("none.pdf")), "--checkout-url")
	says(t, d.run(1, "advices", b.ID, "--out", at("advices"), "--checkout-url", checkout), "no line of the batch is paid")
	d.shows(d.OK(processor.SenderOffice, b.ID, disbursement.Approve{Level: 1, Signed: payroll.Step(b.Digest, "ben", 1, digest.Approve)}))
	says(t, certificate(0, "approved.pdf"), "it is approved", b.Digest.String())
	says(t, certificate(1, "approved.pdf"), "exists")
	text, claims := paperOf(d, at("approved.pdf"))
	says(t, text, "TEST", "Certificat d’approbation", "7 500 FCFA", "sept mille cinq cents francs CFA", "salaries", "Mireille", "mtn_payout, 3 lignes 7 500 FCFA", "Approuvé par ben", "n’est pas encore mis en paiement", "À payer, 3 lignes")
	if claims.Kind != batchseal.KindCertificate || claims.State != "approved" || claims.Amount != 7500 || claims.Count != 3 || claims.Batch != b.ID || claims.Digest != batchseal.DigestClaim(b.Digest) || claims.Agency != "impots" {
		t.Errorf("%+v", claims)
	}
	d.releases(b)
	says(t, certificate(0, "done.pdf", "--lang", "en"), "it is done")
	text, claims = paperOf(d, at("done.pdf"))
	says(t, text, "Released by cleo", "Done", "Paid, 1 line FCFA 1,500", "Refused, 1 line FCFA 2,500", "Returned, 1 line FCFA 3,500")
	for _, payee := range []string{"Ngoma", "Mabiala", "Okemba", "600 00 01", "66000001", "•••• 0001"} { // a digest may have 0001
		if strings.Contains(text, payee) {
			t.Errorf("the certificate names %s", payee)
		}
	}
	if claims.State != "done" || claims.Held != 0 {
		t.Errorf("%+v", claims)
	}
	d.advices(b, at)
	d.strangers(b, at)
}

// releases is the second half of paid, for a batch that is approved.
func (d *desk) releases(b disbursement.Batch) {
	d.t.Helper()
	d.OK(processor.SenderOffice, b.ID, disbursement.Release{Signed: payroll.Step(b.Digest, "cleo", b.Holds, digest.Release)})
	d.answers(b)
}

func (d *desk) advices(b disbursement.Batch, at func(string) string) {
	t := d.t
	one := func(code int, ref, out string, more ...string) string {
		t.Helper()
		return d.run(code, append([]string{"advices", b.ID, "--line", ref, "--out", at(out), "--checkout-url", checkout}, more...)...)
	}
	says(t, one(0, "a", "a.pdf"), "is the payment advice of line")
	text, claims := paperOf(d, at("a.pdf"))
	says(t, text, "Avis de versement", "1 500 FCFA", "mille cinq cents francs CFA", "Bénéficiaire Ngoma Jean", "•••• 0001", "Objet Salaire", "OP-1", "Référence de la ligne a", "TEST")
	if strings.Contains(text, "RETOURNÉ") || strings.Contains(text, "66000001") {
		t.Errorf("%s", text)
	}
	if claims.Kind != batchseal.KindAdvice || claims.Amount != 1500 || claims.LineRef != "a" || claims.State != "paid" || claims.PaidAt == 0 || claims.ReturnedAt != 0 || !strings.HasPrefix(claims.PayoutRef, "QD") {
		t.Errorf("%+v", claims)
	}
	says(t, one(0, "c", "c.pdf", "--lang", "en"), "returned")
	text, claims = paperOf(d, at("c.pdf"))
	says(t, text, "RETURNED", "Payee Okemba Paul", "came back to the agency", "Returned on")
	if claims.State != "returned" || claims.ReturnedAt == 0 {
		t.Errorf("%+v", claims)
	}
	says(t, one(1, "b", "none.pdf"), "the line is refused: only a line that is paid")
	says(t, one(1, "nobody", "none.pdf"), "no line with this line_ref")
	if _, err := os.Stat(at("none.pdf")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file is left: %v", err)
	}
	// All of them, with the list and its signature.
	says(t, d.run(0, "advices", b.ID, "--out", at("all"), "--checkout-url", checkout), "2 payment advices")
	says(t, d.run(1, "advices", b.ID, "--out", at("all"), "--checkout-url", checkout), "exists")
	list, err := os.ReadFile(filepath.Join(at("all"), "index.csv"))
	if err != nil {
		t.Fatal(err)
	}
	says(t, string(list), "a,paid,000001-001000/0000", "c,returned,000001-001000/0000")
	if strings.Contains(string(list), "\nb,") || strings.Contains(string(list), "Ngoma") {
		t.Errorf("%s", list)
	}
	if err := d.verifies(filepath.Join(at("all"), "index.csv"), filepath.Join(at("all"), "index.csv.jws")); err != nil {
		t.Error(err)
	}
	files, err := filepath.Glob(filepath.Join(at("all"), "*", "*.pdf"))
	if err != nil || len(files) != 2 {
		t.Errorf("%q, %v", files, err)
	}
	var actions []string
	if err := d.pool.QueryRow(t.Context(), `SELECT array_agg(action || ' ' || coalesce(detail ->> 'line', detail ->> 'lines', detail ->> 'status') ORDER BY id) FROM audit WHERE subject = $1 AND actor = $2 AND action IN ('batch.certificate', 'batch.advice')`, b.ID, d.person).Scan(&actions); err != nil {
		t.Fatal(err)
	}
	// What was written in vain, since the file existed, is there as well.
	want := []string{"batch.certificate approved", "batch.certificate approved", "batch.certificate done", "batch.advice 1", "batch.advice 3", "batch.advice 2"}
	if !slices.Equal(actions, want) {
		t.Errorf("the audit table has %q", actions)
	}
}

// strangers are people of another agency, and people without the role.
func (d *desk) strangers(b disbursement.Batch, at func(string) string) {
	t := d.t
	mine := os.Getenv("QUITTANCE_STAFF_KEY")
	t.Setenv("QUITTANCE_STAFF_KEY", d.foreign)
	for _, args := range [][]string{{"certificate", b.ID}, {"advices", b.ID}, {"export", b.ID, "--format", "csv"}} {
		args = append(args, "--out", at("none"))
		if args[0] != "export" {
			args = append(args, "--checkout-url", checkout)
		}
		says(t, d.run(1, args...), "no batch that you may see")
	}
	d.exec(`DELETE FROM staff_roles`)
	t.Setenv("QUITTANCE_STAFF_KEY", mine)
	says(t, d.run(1, "advices", b.ID, "--out", at("none"), "--checkout-url", checkout), "the role preparer or approver")
	says(t, d.run(1, "export", b.ID, "--format", "csv", "--out", at("none")), "the role preparer or approver")
}

// Whoever writes Postgres gets no paper of what was not approved or not paid, and the command says why. With the rows as they were
// there are papers again.
func TestPapersOfChangedRows(t *testing.T) {
	d := newDesk(t)
	d.enrolled()
	b := d.imports("salaries", "a,Ngoma Jean,1500,XAF,mobile_money,06 600 00 01,\nb,Mabiala Rose,2500,XAF,mobile_money,06 600 00 02,\nc,Okemba Paul,3500,XAF,mobile_money,06 600 00 03,\n")
	d.paid(b)
	folder, n := t.TempDir(), 0
	paper := func(code int, args ...string) string {
		t.Helper()
		n++
		return d.run(code, append(append(slices.Clone(args), b.ID), "--out", filepath.Join(folder, fmt.Sprint(n)), "--checkout-url", checkout)...)
	}
	d.exec(`CREATE TABLE kept_lines AS SELECT * FROM disbursement_lines; CREATE TABLE kept_batches AS SELECT * FROM disbursement_batches`)
	for what, sql := range map[string]string{
		"the status of another line":   `UPDATE disbursement_lines SET snapshot = (SELECT snapshot FROM kept_lines WHERE line_ref = 'a') WHERE line_ref = 'b'`,
		"a line that is gone":          `DELETE FROM disbursement_lines WHERE line_ref = 'b'`,
		"an approval that is gone":     `UPDATE disbursement_batches SET sealing = NULL`,
		"two lines, one for the other": `UPDATE disbursement_lines x SET snapshot = k.snapshot FROM kept_lines k WHERE x.line_ref = 'a' AND k.line_ref = 'c' OR x.line_ref = 'c' AND k.line_ref = 'a'`,
	} {
		d.exec(sql)
		for _, args := range [][]string{{"certificate"}, {"advices"}, {"advices", "--line", "a"}} {
			if got := paper(1, args...); !strings.Contains(got, "do not show the batch as Kafka has it") && !strings.Contains(got, "nobody has approved") {
				t.Errorf("%s: %v says %s", what, args, got)
			}
		}
		d.exec(`DELETE FROM disbursement_lines; INSERT INTO disbursement_lines SELECT * FROM kept_lines; DELETE FROM disbursement_batches; INSERT INTO disbursement_batches SELECT * FROM kept_batches`)
	}
	// The content of another line, or none: no advice, and the list says so. A certificate has no content.
	d.exec(`UPDATE disbursement_lines SET sealed = (SELECT sealed FROM kept_lines WHERE line_ref = 'c') WHERE line_ref = 'a'`)
	says(t, paper(1, "advices", "--line", "a"), "was erased, or cannot be opened")
	says(t, paper(0, "advices"), "1 payment advice of", "1 line without one")
	says(t, paper(0, "certificate"), "it is done")
	d.exec(`UPDATE disbursement_lines x SET sealed = k.sealed FROM kept_lines k WHERE k.line_ref = x.line_ref`)
	says(t, paper(0, "advices", "--line", "a"), "is the payment advice")
	// A refused line whose row says that it is paid has no advice, whatever else is changed with it.
	says(t, paper(1, "advices", "--line", "b"), "the line is refused")
}

// Results of a batch as CSV and as a workbook: what Kafka proves, without names, signed with a published key, and harmless in a
// spreadsheet.
func TestResultsOfABatch(t *testing.T) {
	d := newDesk(t)
	d.enrolled()
	b := d.imports("salaries", "a,Ngoma Jean,1500,XAF,mobile_money,06 600 00 01,\nb,Mabiala Rose,2500,XAF,mobile_money,06 600 00 02,\nc,Okemba Paul,3500,XAF,mobile_money,06 600 00 03,\n")
	d.paid(b)
	folder := t.TempDir()
	export := func(format string) []byte {
		t.Helper()
		file := filepath.Join(folder, "results."+format)
		says(t, d.run(0, "export", b.ID, "--format", format, "--out", file), "3 lines and 1 approval of")
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.verifies(file, file+".jws"); err != nil {
			t.Error(err)
		}
		signature, err := os.ReadFile(file + ".jws")
		if err != nil {
			t.Fatal(err)
		}
		if k, err := batchseal.VerifyDetached(d.publicKeys(), string(signature), content); err != nil || k.Live {
			t.Errorf("%s: %+v, %v", format, k, err)
		}
		if err := os.WriteFile(file, append(content, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := d.verifies(file, file+".jws"); err == nil {
			t.Errorf("a changed %s is verified", format)
		}
		return content
	}
	text := string(export("csv"))
	says(t, text, "# report: results of a batch; agency: impots; batch: "+b.ID, "digest: "+b.Digest.String(), "mode: test payments", "total XAF; amount_minor: 7500")
	reader := csv.NewReader(strings.NewReader(text))
	reader.Comment = '#'
	rows, err := reader.ReadAll()
	if err != nil || len(rows) != 4 {
		t.Fatalf("%q, %v", rows, err)
	}
	if head := strings.Join(rows[0], ","); head != "position,line_ref,payout_ref,status,code,amount_minor,currency,account,attempts,sent_at,ended_at,operator_ref,corrects,case" {
		t.Errorf("%s", head)
	}
	byRef := map[string][]string{}
	for _, r := range rows[1:] {
		byRef[r[1]] = r
	}
	if r := byRef["b"]; r == nil || r[3] != "refused" || r[4] != "'=HYPERLINK(1)" || r[5] != "2500" || r[8] != "1" || !strings.HasPrefix(r[2], "QD") {
		t.Errorf("%q", rows)
	}
	if r := byRef["a"]; r == nil || r[3] != "paid" || r[11] != "OP-1" || r[7] != "mtn_payout" || r[10] == "" {
		t.Errorf("%q", rows)
	}
	if r := byRef["c"]; r == nil || r[3] != "returned" {
		t.Errorf("%q", rows)
	}
	book, err := excelize.OpenReader(bytes.NewReader(export("xlsx")))
	if err != nil {
		t.Fatal(err)
	}
	cells, err := book.GetRows("batch-results")
	if err != nil || len(cells) != 5 || cells[0][2] != "Payout reference" {
		t.Errorf("%q, %v", cells, err)
	}
	for _, payee := range []string{"Ngoma", "66000001", "Mabiala"} {
		if strings.Contains(text+fmt.Sprint(cells), payee) {
			t.Errorf("results name %s", payee)
		}
	}
	json := export("json")
	says(t, string(json), "Ngoma Jean", `"form":"quittance disbursement export v1"`)
	// They come from Kafka: whoever changes rows changes no result.
	d.exec(`UPDATE disbursement_lines SET sealed = ''`)
	if err := os.Remove(filepath.Join(folder, "results.csv")); err != nil {
		t.Fatal(err)
	}
	says(t, d.run(1, "export", b.ID, "--format", "csv", "--out", filepath.Join(folder, "results.csv")), "exists") // the signature
	says(t, d.run(0, "export", b.ID, "--format", "csv", "--out", filepath.Join(folder, "again.csv")), "It names no payee")
	says(t, d.run(1, "export", b.ID, "--out", filepath.Join(folder, "again.json")), "was erased")
}

// answers has the operator answer about the three lines of a batch that pays, by line_ref: b is refused, with a reason that a
// spreadsheet would run; a is paid, c is paid and returned.
func (d *desk) answers(b disbursement.Batch) {
	d.t.Helper()
	var list []disbursement.Line
	await.Until(d.t, "three sent lines", func() bool {
		got, err := d.store.Lines(context.WithoutCancel(d.t.Context()), b.ID, disbursements.LineQuery{Status: disbursement.LineSent, Size: 10})
		list = got
		return err == nil && len(got) == 3
	})
	for _, l := range list {
		say := func(word disbursement.Word) {
			word.Position, word.Attempt, word.Source, word.Currency = l.Position, 1, disbursement.FromEnquiry, "XAF"
			d.shows(d.OK(processor.SenderDisburse, b.ID, word))
		}
		switch l.Ref {
		case "a":
			say(disbursement.Word{Kind: disbursement.WordPaid, Amount: l.Amount, OperatorRef: "OP-1"})
		case "c":
			say(disbursement.Word{Kind: disbursement.WordPaid, Amount: l.Amount, OperatorRef: "OP-3"})
			say(disbursement.Word{Kind: disbursement.WordReturned, Amount: l.Amount})
		default:
			say(disbursement.Word{Kind: disbursement.WordRefused, Code: "=HYPERLINK(1)"})
		}
	}
}
