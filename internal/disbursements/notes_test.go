package disbursements_test

import (
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"quittance/internal/disbursements"
	"quittance/internal/disbursements/lines"
	"quittance/test/approvals"
)

// fileOf is a file of lines: line_ref, name, amount and number each.
func fileOf(rows ...string) string {
	out := "line_ref,name,amount,currency,payment_mode,msisdn\n"
	for _, r := range rows {
		f := strings.Split(r, ",")
		out += f[0] + "," + f[1] + "," + f[2] + ",XAF,mobile_money,2420660000" + f[3] + "\n"
	}
	return out
}

// A file is compared with the last revision of its batch_ref and with the last batch of the agency, and warns of what people
// should look at. A recalled batch is no payment. What is stored has no name and no number.
func TestImportsSayWhatDiffers(t *testing.T) {
	t.Parallel()
	w := approvals.New(t)
	w.Agency(t)

	first := w.Import(t, "salaries-11", fileOf("a1,Ngoma Jean,1500,01", "b1,Mabiala,2000,02", "c1,Okemba,2500,03"), false)
	if n := first.Notes; n.Revision != nil || n.Last != nil || !reflect.DeepEqual(n.Warnings, map[lines.WarningKind]int{lines.WarnPayee: 3}) {
		t.Errorf("the first file: %+v", n)
	}
	if a := w.Browsers["Ama"].Post("/agency/batches/"+first.Batch.ID+"/recall", url.Values{}); a.Code != http.StatusSeeOther {
		t.Fatalf("a recall is answered %d", a.Code)
	}

	again := w.Import(t, "salaries-11", fileOf("a1,Ngoma Jean,1500,01", "b1,Mabiala,2100,02", "d1,Itoua,3000,04", "f1,Samba,900,05"), false)
	n := again.Notes
	if n.Last != nil || !reflect.DeepEqual(n.Warnings, map[lines.WarningKind]int{lines.WarnPayee: 4}) {
		t.Errorf("a recalled batch counts as paid: %+v", n)
	}
	want := &disbursements.Comparison{
		Batch: first.Batch.ID, BatchRef: "salaries-11", Revision: 1, Date: first.Batch.Date, Before: 6000, After: 7500,
		Count: map[disbursements.ChangeKind]int{disbursements.ChangeAdded: 2, disbursements.ChangeRemoved: 1, disbursements.ChangeLine: 1},
		List: []disbursements.Changed{
			{Kind: disbursements.ChangeAdded, Ref: "d1", After: 3000},
			{Kind: disbursements.ChangeAdded, Ref: "f1", After: 900},
			{Kind: disbursements.ChangeRemoved, Ref: "c1", Before: 2500},
			{Kind: disbursements.ChangeLine, Ref: "b1", Columns: []lines.Column{lines.ColumnAmount}, Before: 2000, After: 2100},
		},
	}
	if !reflect.DeepEqual(n.Revision, want) {
		t.Errorf("against the last revision: %+v, want %+v", n.Revision, want)
	}

	// The month after: line_refs are others, so people are known by number and name.
	next := w.Import(t, "salaries-12", fileOf("a2,Jean NGOMA,1500,09", "b2,Mabiala,2100,02", "d2,Itoua,3100,04", "e2,Loemba,700,06", "e3,Loemba,700,06"), false)
	n = next.Notes
	want = &disbursements.Comparison{
		Batch: again.Batch.ID, BatchRef: "salaries-11", Revision: 2, Date: again.Batch.Date, Before: 7500, After: 8100,
		Count: map[disbursements.ChangeKind]int{disbursements.ChangeAccount: 1, disbursements.ChangeAmount: 1, disbursements.ChangeNew: 1, disbursements.ChangeGone: 1},
		List: []disbursements.Changed{
			{Kind: disbursements.ChangeAccount, Ref: "a2", Before: 1500, After: 1500},
			{Kind: disbursements.ChangeAmount, Ref: "d2", Before: 3000, After: 3100},
			{Kind: disbursements.ChangeNew, Ref: "e2", After: 1400},
			{Kind: disbursements.ChangeGone, Ref: "f1", Before: 900},
		},
	}
	if n.Revision != nil || !reflect.DeepEqual(n.Last, want) {
		t.Errorf("against the last batch: %+v, want %+v", n.Last, want)
	}
	warned := []disbursements.Warned{
		{Kind: lines.WarnAccount, Ref: "a2"},
		{Kind: lines.WarnRecent, Ref: "b2", Other: again.Batch.Date},
		{Kind: lines.WarnPayee, Ref: "e2"},
		{Kind: lines.WarnTwice, Ref: "e3", Other: "e2"},
		{Kind: lines.WarnPayee, Ref: "e3"},
	}
	if !reflect.DeepEqual(n.Warned, warned) {
		t.Errorf("warnings: %+v, want %+v", n.Warned, warned)
	}

	stored, err := w.Batches.Notes(t.Context(), next.Batch.ID)
	if err != nil || !reflect.DeepEqual(stored, n) {
		t.Errorf("stored: %+v %v, want %+v", stored, err, n)
	}
	var all string
	if err := w.Pool.QueryRow(t.Context(), `SELECT (SELECT string_agg(p::text, ' ') FROM disbursement_payees p) || (SELECT string_agg(n::text, ' ') FROM disbursement_notes n)`).Scan(&all); err != nil {
		t.Fatal(err)
	}
	for _, private := range []string{"660000", "NGOMA", "Ngoma", "Mabiala", "4d6162"} {
		if strings.Contains(all, private) {
			t.Errorf("the tables have %q", private)
		}
	}
}
