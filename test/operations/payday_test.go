package operations_test

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"quittance/dev/staff"
	"quittance/test/harness"
)

// payday pays the 20 people of the demo file as the banner says: the demo preparer imports it by the printed command, and an
// approver approves and releases it on the pages. Each payee is paid once, by the simulators' own book. The preparer cannot
// approve, and the same file is refused a second time. It returns the id of the batch and what the log may not have.
func payday(t *testing.T, u *harness.Up) (batch string, secrets []string) {
	t.Helper()
	begun := time.Now()
	m := regexp.MustCompile(`(?m)^ +1\. QUITTANCE_STAFF_KEY=(st_\S+) \S+ (batches import .*)$`).FindStringSubmatch(u.Banner)
	if m == nil {
		t.Fatalf("the banner does not say how to pay people: %s", u.Banner)
	}
	preparer := harness.Operator{Up: u, StaffKey: m[1]}
	args := withoutPort(strings.Fields(m[2]))
	for i, a := range args {
		if a == demoFile {
			args[i] = harness.Absolute(t, a)
		}
	}
	var b paydayBatch
	preparer.JSON(t, &b, args...)
	if b.Status != "sealed" || b.Count != 20 {
		t.Fatalf("the file becomes %+v, want a sealed batch of 20", b)
	}
	preparer.Refused(t, "batch_ref", args...) // a batch with the reference is live

	page := "/agency/batches/" + b.Batch
	maker := signInDemo(t, u, staff.Preparer)
	if maker.has(t, page, "/approve?") {
		t.Error("the preparer has a form to approve the own batch")
	}
	approver := signInDemo(t, u, staff.Approver1)
	approver.sign(t, page, "approve")
	approver.sign(t, page, "release")
	becomes := func(what string, is func(paydayBatch) bool) {
		harness.Eventually(t, what, func() error {
			var list []paydayBatch
			preparer.JSON(t, &list, "batches", "list", "--mode", "test", "--agency", staff.DemoAgency)
			for _, x := range list {
				if x.Batch == b.Batch {
					b = x
				}
			}
			if !is(b) {
				return fmt.Errorf("%+v", b)
			}
			return nil
		})
	}
	becomes("the operators have 20 requests", func(x paydayBatch) bool { return x.Lines.Sent.Count+x.Lines.Paid.Count == 20 })
	// An operator that does not say at once whether it has paid is asked a minute later.
	u.Control(t, "clock", `{"advance": "61s"}`)
	becomes("20 people are paid", func(x paydayBatch) bool { return x.Status == "done" && x.Lines.Paid.Count == 20 })
	t.Logf("20 people are paid after %v", time.Since(begun).Round(100*time.Millisecond))

	var book []struct {
		Payee    string `json:"payee"`
		Operator string `json:"operator"`
		Payments int    `json:"payments"`
	}
	u.Call(t, http.MethodGet, u.URL(harness.AtSimulators, "/control/payouts"), "").Into(t, &book)
	payees, operators := map[string]bool{}, map[string]int{}
	for _, p := range book {
		payees[p.Payee] = true
		operators[p.Operator]++
		if p.Payments != 1 {
			t.Errorf("a payee of %s was paid %d times", p.Operator, p.Payments)
		}
	}
	if len(payees) != 20 || operators["mtn"] != 10 || operators["airtel"] != 6 || operators["switch"] != 4 {
		t.Errorf("%d payees, by operator %v, want 20: ten, six and four", len(payees), operators)
	}
	preparer.Refused(t, "line_ref", args...) // everybody in it is paid
	salariesOnStatements(t, u)
	paydayOfERP(t, u, preparer, maker, approver)
	return b.Batch, []string{m[1], "66010001", "5010001", "44010007", "66010021", "5010022"}
}

// paydayOfERP pays the people of the batch that the demo agency's ERP has, as the banner says. Another batch, of which the ERP has
// another amount at the release, is held and pays nobody.
func paydayOfERP(t *testing.T, u *harness.Up, preparer harness.Operator, maker, approver demoBrowser) {
	t.Helper()
	m := regexp.MustCompile(`(?m)^ +QUITTANCE_STAFF_KEY=(st_\S+) \S+ (batches pull .*)$`).FindStringSubmatch(u.Banner)
	if m == nil {
		t.Fatalf("the banner does not say how to pull a batch: %s", u.Banner)
	}
	pull := withoutPort(strings.Fields(m[2]))
	becomes := func(b *paydayBatch, what string, is func(paydayBatch) bool) {
		t.Helper()
		harness.Eventually(t, what, func() error {
			preparer.JSON(t, b, "batches", "show", b.Batch)
			if !is(*b) {
				return fmt.Errorf("%+v", *b)
			}
			return nil
		})
	}
	var grants, changed paydayBatch
	preparer.JSON(t, &grants, pull...)
	if grants.Status != "sealed" || grants.Count != 6 || grants.Source != "erp" {
		t.Fatalf("the batch of the ERP becomes %+v", grants)
	}
	const lines = `{"disbursements": {"%s": [{"line_ref": "OTHER-1", "beneficiary": {"name": "Ngoma Jean", "msisdn": "+242066010031"}, "payment_mode": "MTN", "amount_minor": %d, "currency": "XAF"}]}}`
	u.Control(t, "erp/"+staff.DemoAgency, fmt.Sprintf(lines, "CHANGED", 1000))
	pull[len(pull)-1] = "CHANGED"
	preparer.JSON(t, &changed, pull...)
	u.Control(t, "erp/"+staff.DemoAgency, fmt.Sprintf(lines, "CHANGED", 1001))
	if maker.has(t, "/agency/batches/"+grants.Batch, "/approve?") {
		t.Error("the preparer has a form to approve the own batch")
	}
	for _, b := range []*paydayBatch{&grants, &changed} {
		approver.sign(t, "/agency/batches/"+b.Batch, "approve")
		approver.sign(t, "/agency/batches/"+b.Batch, "release")
	}
	becomes(&changed, "the batch of other lines is held", func(x paydayBatch) bool { return x.Held && x.Status == "approved" })
	becomes(&grants, "the operators have 6 requests", func(x paydayBatch) bool { return x.Lines.Sent.Count+x.Lines.Paid.Count == 6 })
	u.Control(t, "clock", `{"advance": "61s"}`)
	becomes(&grants, "6 people are paid", func(x paydayBatch) bool { return x.Status == "done" && x.Lines.Paid.Count == 6 })
}

// salariesOnStatements imports the statements of the payout accounts that have some. Each payment is found there by its reference.
func salariesOnStatements(t *testing.T, u *harness.Up) {
	t.Helper()
	operations := harness.Operator{Up: u}
	for account, count := range map[string]string{"salaires-mtn": "10 lines", "salaires-airtel": "6 lines"} {
		file := filepath.Join(t.TempDir(), account+".csv")
		body := u.Call(t, http.MethodGet, u.URL(harness.AtSimulators, "/control/statements/"+account+"?agency="+staff.DemoAgency), "").Body
		if err := os.WriteFile(file, body, 0o600); err != nil {
			t.Fatal(err)
		}
		operations.Says(t, count, "statements", "import", "--agency", staff.DemoAgency, "--mode", "test", "--account", account, file)
	}
	harness.Eventually(t, "the statements have all salaries", func() error {
		rows, err := u.Rows(t, "SELECT toString(account) AS account, expected, matched, open_expected, open_found, expected_amount = found_amount AS equal FROM quittance.reconciliation_days WHERE account LIKE 'salaires-%' ORDER BY account")
		if err != nil {
			return err
		}
		if want := "[map[account:salaires-airtel equal:1 expected:6 matched:6 open_expected:0 open_found:0] map[account:salaires-mtn equal:1 expected:10 matched:10 open_expected:0 open_found:0]]"; fmt.Sprint(rows) != want {
			return fmt.Errorf("%v\nwant %s", rows, want)
		}
		return nil
	})
}

const demoFile = "deploy/dev/salaries.csv"

// paydayBatch is a batch as `batches list --json` shows it.
type paydayBatch struct {
	Batch  string `json:"batch"`
	Status string `json:"status"`
	Source string `json:"source"`
	Held   bool   `json:"held"`
	Count  int    `json:"count"`
	Lines  struct {
		Sent, Paid struct{ Count int }
	} `json:"lines"`
}

// withoutPort leaves out --port, which Operator adds.
func withoutPort(args []string) (out []string) {
	for i := 0; i < len(args); i++ {
		if args[i] == "--port" {
			i++
			continue
		}
		out = append(out, args[i])
	}
	return out
}

// demoBrowser is the browser of a demo person who has signed in.
type demoBrowser struct {
	http *http.Client
	base string
}

func signInDemo(t *testing.T, u *harness.Up, name string) demoBrowser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := demoBrowser{&http.Client{Jar: jar, Timeout: harness.Soon}, fmt.Sprintf("http://localhost:%d", u.Port+11)}
	b.post(t, "/demo/sign-in", "application/x-www-form-urlencoded", url.Values{"person": {name}}.Encode())
	return b
}

func (b demoBrowser) post(t *testing.T, path, kind, body string) string {
	t.Helper()
	return b.send(t, http.MethodPost, path, kind, body)
}

func (b demoBrowser) send(t *testing.T, method, path, kind, body string) string {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, b.base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if kind != "" {
		q.Header.Set("Content-Type", kind)
	}
	q.Header.Set("Origin", b.base)
	a, err := b.http.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	text, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode != http.StatusOK {
		t.Fatalf("%s %s answers %d %v:\n%.2000s", method, path, a.StatusCode, err, text)
	}
	return string(text)
}

func (b demoBrowser) has(t *testing.T, path, part string) bool {
	t.Helper()
	return strings.Contains(b.send(t, http.MethodGet, path+"?lang=en", "", ""), part)
}

var hiddenField = regexp.MustCompile(`<input type="hidden" name="([a-z_]+)" value="([^"]*)">`)

// sign does what the script of a page does with the form of a step: it has the demo person's passkey answer.
func (b demoBrowser) sign(t *testing.T, page, step string) {
	t.Helper()
	text := b.send(t, http.MethodGet, page+"?lang=en", "", "")
	_, form, found := strings.Cut(text, `action="`+page+"/"+step+`?`)
	if !found {
		t.Fatalf("the page has no form for %s:\n%.9000s", step, text)
	}
	form, _, _ = strings.Cut(form, "</form>")
	fields := url.Values{}
	for _, field := range hiddenField.FindAllStringSubmatch(form, -1) {
		fields.Set(field[1], html.UnescapeString(field[2]))
	}
	options := b.post(t, page+"/"+step+"/begin", "application/x-www-form-urlencoded", fields.Encode())
	answer := b.post(t, "/demo/answer", "application/json", options)
	pressed, err := json.Marshal(map[string]string{"form": fields.Encode(), "answer": answer})
	if err != nil {
		t.Fatal(err)
	}
	b.post(t, page+"/"+step, "application/json", string(pressed))
}
