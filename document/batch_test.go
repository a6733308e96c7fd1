package document_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quittance/document"
	"quittance/money"
)

var update = flag.Bool("update", false, "write the golden files anew")

var moment = time.Date(2026, 11, 23, 9, 30, 0, 0, time.UTC)

func approval() document.Approval {
	hash := strings.Repeat("0123456789abcdef", 4)
	return document.Approval{
		Agency: document.Agency{Name: "Direction générale des impôts"}, Batch: "dsb_1", BatchRef: "salaires/2026 11", Revision: 2, Date: "2026-11-30", PayUntil: "2026-12-05", Count: 3, Sum: 600_000, Largest: 300_000,
		Currency: "XAF", Maker: document.Person{ID: "id-ama", Name: "Ama", Number: "M-1"}, SealedAt: moment, Digest: hash, Root: hash, Policy: 3, Accounts: []document.Total{{Name: "mtn", Count: 1, Sum: 100_000}, {Name: "banque", Count: 2, Sum: 500_000}},
		Levels: []document.Level{{Role: "chief", Needed: 2, Given: []document.Approved{
			{By: document.Person{ID: "id-ben", Name: "Ben"}, At: moment.Add(time.Hour), Passkey: hash},
			{By: document.Person{ID: "id-cleo"}, For: document.Person{ID: "id-dan", Name: "Dan", Number: "M-4"}, At: moment.Add(2 * time.Hour), Passkey: hash},
		}}},
		ReleasedAt: moment.Add(3 * time.Hour), State: document.StateReleasing, HeldSince: moment.Add(4 * time.Hour), At: moment.Add(5 * time.Hour), CheckAddress: "pay.example/q",
		Lines: []document.StateTotal{{State: document.StateReady, Count: 1, Sum: 100_000}, {State: document.StatePaid, Count: 2, Sum: 500_000}, {State: document.StateSent}},
	}
}

func payout() document.Payout {
	return document.Payout{
		Agency: document.Agency{Name: "Direction générale des impôts"}, PaidAt: moment, ReturnedAt: moment.Add(48 * time.Hour), Amount: 250_000, Currency: "XAF", Payee: "NGOMA Jean", Account: "•••• 0001", Purpose: "Salaire", Means: "mobile_money",
		BatchRef: "salaires", LineRef: "../AGENT 001", Revision: 1, Number: 1, PayoutRef: "QD1", OperatorRef: "235", At: moment.Add(72 * time.Hour), CheckAddress: "pay.example/q",
		Returned: []document.ReturnedPart{{Amount: 5, Currency: "XAF", At: moment.Add(time.Hour)}},
	}
}

// said writes a paper as text.
func said(head []string, sections ...document.Section) string {
	var b strings.Builder
	for _, line := range head {
		b.WriteString(line + "\n")
	}
	for _, s := range sections {
		fmt.Fprintf(&b, "\n[%s]\n", s.Title)
		for _, r := range s.Rows {
			fmt.Fprintf(&b, "%s: %s\n", r.Label, r.Value)
		}
	}
	return b.String()
}

// What certificates and advices say, word for word, in both languages.
func TestBatchPapersSay(t *testing.T) {
	t.Parallel()
	for _, lang := range money.Languages {
		c, err := document.NewCertificate(lang, approval())
		if err != nil {
			t.Fatal(err)
		}
		golden(t, "certificate-"+string(lang), said(append(append([]string{c.Name, c.Title}, c.Notes...), c.Total, c.InWords, c.CheckTitle, c.Check, c.Footer), c.Sections...))
		for name, change := range map[string]func(*document.Payout){
			"returned": func(*document.Payout) {},
			"paid":     func(p *document.Payout) { p.ReturnedAt, p.Returned = time.Time{}, nil },
			"test": func(p *document.Payout) {
				p.Test, p.ReturnedAt, p.Decided, p.CheckAddress = true, time.Time{}, true, ""
			},
		} {
			p := payout()
			change(&p)
			a, err := document.NewAdvice(lang, p)
			if err != nil {
				t.Fatal(err)
			}
			head := append([]string{a.Name, a.Title, "stamp: " + a.Stamp, "paid: " + a.Paid, "mark: " + a.Mark}, a.Notes...)
			golden(t, "advice-"+name+"-"+string(lang), said(append(head, a.Total, a.InWords, a.CheckTitle, a.Check, a.Footer), document.Section{Rows: a.Facts}, document.Section{Rows: a.Proof}))
		}
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s says\n%s\nwant\n%s", name, got, want)
	}
}

// There is no certificate of a batch that lacks an approval or is in another state, and no advice of a line that is not paid,
// whatever else is known of them.
func TestNoPaperOfWhatIsNot(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := approval()
		a.State = document.State(rapid.SampledFrom([]string{"draft", "sealed", "approved", "releasing", "done", "rejected", "recalled", "expired", "discarded", ""}).Draw(t, "state"))
		needed, given := rapid.IntRange(0, 3).Draw(t, "needed"), rapid.IntRange(0, 3).Draw(t, "given")
		a.Levels[0].Needed, a.Levels[0].Given = needed, make([]document.Approved, given)
		holds := needed > 0 && given >= needed && (a.State == document.StateApproved || a.State == document.StateReleasing || a.State == document.StateDone)
		if _, err := document.NewCertificate(money.French, a); holds != (err == nil) || !holds && !errors.Is(err, document.ErrUnapproved) {
			t.Fatalf("%s with %d of %d approvals: %v", a.State, given, needed, err)
		}
		p := payout()
		if rapid.Bool().Draw(t, "unpaid") {
			p.PaidAt = time.Time{}
		}
		if _, err := document.NewAdvice(money.English, p); p.PaidAt.IsZero() != errors.Is(err, document.ErrUnpaid) || !p.PaidAt.IsZero() && err != nil {
			t.Fatalf("%v: %v", p.PaidAt, err)
		}
	})
	a := approval()
	a.Levels = nil
	if _, err := document.NewCertificate(money.French, a); !errors.Is(err, document.ErrUnapproved) {
		t.Errorf("without levels: %v", err)
	}
	a = approval()
	a.Currency = "ZZZ"
	if _, err := document.NewCertificate(money.French, a); !errors.Is(err, document.ErrIncomplete) {
		t.Errorf("an unknown currency: %v", err)
	}
	p := payout()
	p.Payee = ""
	if _, err := document.NewAdvice(money.French, p); !errors.Is(err, document.ErrIncomplete) {
		t.Errorf("without a payee: %v", err)
	}
}
