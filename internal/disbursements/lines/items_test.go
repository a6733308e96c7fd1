package lines_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"quittance/disbursement"
	"quittance/internal/disbursements/lines"
	"quittance/money"
)

// goodItems are items of an ERP, one for each account of rules, in another order than that of their line_ref.
func goodItems() []lines.Item {
	return []lines.Item{
		{Ref: "S-0004", Name: "Sita Marie", IBAN: goodIBAN, Mode: "bank", Amount: 1, Currency: "XAF"},
		{Ref: "S-0001", Name: "Ngoma Éloïse", Phone: "+242 06 600 00 01", Mode: "momo", Amount: 150000, Currency: "XAF", Purpose: "Bourse de « novembre »"},
		{Ref: "S-0003", Name: "Okemba Albert", Number: goodRIB, BIC: "BCCGCGCG", Mode: "VIREMENT", Amount: 450000, Currency: "XAF"},
		{Ref: "S-0002", Name: "Mboungou Pauline", Phone: "055000001", Mode: "AIRTEL", Amount: 98000, Currency: "XAF"},
	}
}

func items(t *testing.T, all ...lines.Item) *lines.File {
	t.Helper()
	x, err := lines.NewItems(rules())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		x.Add(i)
	}
	return x.File()
}

// What an ERP states is sealed as the same lines of a file would be.
func TestItems(t *testing.T) {
	t.Parallel()
	f := items(t, goodItems()...)
	if f.Refused() || f.Format != lines.FormatERP || len(f.Lines) != 4 {
		t.Fatalf("%s, %+v", faults(f), f)
	}
	rows := table{
		headings,
		{"S-0001", "Ngoma Éloïse", "150000", "XAF", "momo", "+242 06 600 00 01", "", "", "", "Bourse de « novembre »", ""},
		{"S-0002", "Mboungou Pauline", "98000", "XAF", "AIRTEL", "055000001", "", "", "", "", ""},
		{"S-0003", "Okemba Albert", "450000", "XAF", "VIREMENT", "", "", goodRIB, "BCCGCGCG", "", ""},
		{"S-0004", "Sita Marie", "1", "XAF", "bank", "", goodIBAN, "", "", "", ""},
	}
	if want := contents(read(t, rows.csv(","), rules()).Lines); !slices.Equal(contents(f.Lines), want) {
		t.Errorf("%+v\nwant %+v", contents(f.Lines), want)
	}
	if f.Lines[0].Row != 2 || len(f.Lines[0].Changes) != 3 { // the second item; name, number and purpose are written otherwise
		t.Errorf("%+v", f.Lines[0])
	}
	if _, err := lines.NewItems(lines.Rules{Currency: "XAF"}); !errors.Is(err, lines.ErrRules) {
		t.Errorf("without accounts: %v", err)
	}
}

// Each fault of an item, by its place. One of them refuses all, and all are told at once.
func TestFaultsOfItems(t *testing.T) {
	t.Parallel()
	wrong := func(member, rule string) func(*lines.Item) {
		return func(i *lines.Item) { i.Wrong = append(i.Wrong, lines.Wrong{Path: "items[1]" + member, Rule: rule}) }
	}
	for _, c := range []struct {
		change func(*lines.Item)
		want   string
	}{
		{func(i *lines.Item) { i.Ref = "" }, "items[1].line_ref: missing"},
		{func(i *lines.Item) { i.Ref = "S-0004" }, "items[1].line_ref: line_ref_twice"},
		{func(i *lines.Item) { i.Ref = "é" }, "items[1].line_ref: character"},
		{func(i *lines.Item) { i.Name = "" }, "items[1].beneficiary.name: missing"},
		{func(i *lines.Item) { i.Name = "محمد" }, "items[1].beneficiary.name: script"},
		{func(i *lines.Item) { i.Name = "=1+1" }, "items[1].beneficiary.name: formula"},
		{func(i *lines.Item) { i.Name = strings.Repeat("a", lines.MaxName+1) }, "items[1].beneficiary.name: length"},
		{func(i *lines.Item) { i.Purpose = "a\u200bb" }, "items[1].purpose: invisible"},
		{func(i *lines.Item) { i.Amount = -1 }, "items[1].amount_minor: not_positive"},
		{func(i *lines.Item) { i.Amount = disbursement.MaxSum + 1 }, "items[1].amount_minor: amount_large"},
		{func(i *lines.Item) { i.Amount = disbursement.MaxSum }, "items[1].amount_minor: sum"},
		{func(i *lines.Item) { i.Currency = "EUR" }, "items[1].currency: currency"},
		{func(i *lines.Item) { i.Mode = "CASH" }, "items[1].payment_mode: mode"},
		{func(i *lines.Item) { i.Phone = "05 500 00 01" }, "items[1].beneficiary.msisdn: operator"},
		{func(i *lines.Item) { i.Phone = "6600" }, "items[1].beneficiary.msisdn: phone"},
		{func(i *lines.Item) { i.Mode, i.Phone, i.Number = "BANK", "", goodRIB[1:] }, "items[1].beneficiary.account.number: zero_lost"},
		{func(i *lines.Item) { i.Phone = "2.42066E+11" }, "items[1].beneficiary.msisdn: scientific"},
		{func(i *lines.Item) { i.Phone = "" }, "items[1].beneficiary.msisdn: missing"},
		{func(i *lines.Item) { i.Mode = "BANK" }, "items[1].beneficiary.account.number: missing, items[1].beneficiary.msisdn: unwanted"},
		{func(i *lines.Item) { i.Mode, i.Phone, i.IBAN = "BANK", "", "CG00"+goodRIB }, "items[1].beneficiary.account.iban: iban_check"},
		{func(i *lines.Item) { i.Mode, i.Phone, i.Number = "BANK", "", goodRIB[:22]+"0" }, "items[1].beneficiary.account.number: rib_key"},
		{func(i *lines.Item) { i.Mode, i.Phone, i.Number, i.BIC = "BANK", "", goodRIB, "x" }, "items[1].beneficiary.account.bic: bic"},
		// What breaks the contract is told once, and what is wrong beside it, too.
		{wrong("", "type"), "items[1]: item_type"},
		{wrong(".line_ref", "length"), "items[1].line_ref: item_length"},
		{wrong(".beneficiary", "required"), "items[1].beneficiary: missing"},
		{wrong(".beneficiary.msisdn", "required"), "items[1].beneficiary.msisdn: item_payee"},
		{wrong(".beneficiary.account.iban", "required"), "items[1].beneficiary.account.iban: item_payee"},
		{wrong(".beneficiary.account.number", "format"), "items[1].beneficiary.account.number: item_text"},
		{wrong(".amount_minor", "range"), "items[1].amount_minor: item_range"},
		{wrong(".currency", "enum"), "items[1].currency: currency"},
		{wrong(".metadata.a", "type"), "items[1].metadata.a: item_type"},
		{func(i *lines.Item) { wrong(".amount_minor", "type")(i); i.Amount, i.Mode = 0, "CASH" }, "items[1].amount_minor: item_type, items[1].payment_mode: mode"},
	} {
		in := goodItems()
		c.change(&in[1])
		f := items(t, in...)
		got := strings.Split(faults(f), "\n")
		slices.Sort(got)
		if strings.Join(got, ", ") != c.want || f.Lines != nil || f.Count != len(got) {
			t.Errorf("%q, want %s", got, c.want)
		}
		for _, fault := range f.Faults {
			sayAll(t, fault)
		}
	}
	in := goodItems()
	in[1].Amount, in[3].Currency = 0, "EUR"
	if got := faults(items(t, in...)); got != "items[1].amount_minor: not_positive\nitems[3].currency: currency" {
		t.Errorf("two faults: %s", got)
	}
	f := items(t)
	if got := faults(f); got != "items: no_lines" || !strings.Contains(f.Faults[0].Text(money.English), "The ERP has no line") {
		t.Errorf("no lines: %s", got)
	}
}

// sayAll fails unless a fault has words in both languages that name its place and speak of no spreadsheet's columns.
func sayAll(t *testing.T, f lines.Fault) {
	t.Helper()
	for _, lang := range []money.Language{money.French, money.English} {
		text := f.Text(lang)
		if !strings.HasPrefix(text, f.Path) || f.Detail(lang) == "" || f.Mend(lang) == "" || strings.Contains(text, "%!") {
			t.Errorf("%s: %q", f, text)
		}
		for _, word := range []string{"cellule", "the cell", "colonne", "column", "Ligne ", "Row "} {
			if strings.Contains(text, word) {
				t.Errorf("%s speaks of a file: %q", f, text)
			}
		}
	}
}
