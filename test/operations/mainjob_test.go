package operations_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"quittance/test/harness"
)

// A newcomer starts everything, runs the printed curl line, and pays in a browser. The
// integrator, the ERP and ClickHouse get the payment once. Then the demo agency pays 20
// people. After a stop and a second start everything is still there.
func TestMainJob(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation and a browser")
	}
	t.Parallel()
	u := harness.NewUp(t, "--log", "debug") // debug messages must not contain secrets either
	u.Start(t)
	secrets := harness.PublishedSecrets(t)

	type journey struct {
		language, phone string
		script          bool
		paid            harness.Session
	}
	journeys := []*journey{
		{language: "fr", phone: "06 600 00 02", script: true}, // the payer takes five seconds
		{language: "fr", phone: "06 600 00 01", script: true},
		{language: "en", phone: "06 600 00 01", script: false},
	}
	for _, j := range journeys {
		j.paid = curl(t, u)
		pages := payInBrowser(t, j.paid.CheckoutURL, j.phone, j.language, j.script)
		checkPages(t, pages, j.language, j.paid)
	}

	for _, j := range journeys {
		s := u.Becomes(t, j.paid.ID, "completed")
		if !s.Paid {
			t.Error("the completed session is not paid")
		}
		u.Confirmed(t, j.paid)
		var payments []map[string]any
		harness.Eventually(t, "ClickHouse has the payment", func() (err error) {
			payments, err = printedQuery(t, u, j.paid.ID)
			if err == nil && len(payments) == 0 {
				err = fmt.Errorf("no row of %s", j.paid.ID)
			}
			return err
		})
		if len(payments) != 1 || payments[0]["order_id"] != j.paid.OrderID || payments[0]["payment_ref"] != j.paid.PaymentRef {
			t.Errorf("the payments are %v, want only that of %s", payments, j.paid.OrderID)
		}
	}
	reports(t, harness.Operator{Up: u})
	// By now a second webhook or confirmation would have arrived.
	for _, j := range journeys {
		inbox := u.Inbox(t, j.paid.ID)
		if len(inbox) != 1 || inbox[0].Event.Event != "checkout.completed" || !inbox[0].Event.Paid ||
			inbox[0].SignatureValid == nil || !*inbox[0].SignatureValid || inbox[0].Headers["webhook-id"] != inbox[0].Event.EventID {
			t.Errorf("the inbox has %+v, want one valid checkout.completed", inbox)
		}
		accepted := u.Confirmations(t, j.paid)
		if len(accepted) != 1 || accepted[0].Accepted != 1 || accepted[0].Body.Amount != 5000 || !strings.HasPrefix(accepted[0].Body.DueRef, "DUE-") {
			t.Errorf("the ERP has accepted %+v, want one confirmation of 5000", accepted)
		}
		if c := u.Collections(t, j.paid); len(c) != 1 || c[0].Amount != "5075" {
			t.Errorf("the operator has %+v, want one payment of 5075", c)
		}
	}

	embedded := u.Post(t, harness.GuichetKey, `{"order_id":"embedded","amount":100,"mode":"embedded"}`)
	var s harness.Session
	if embedded.Into(t, &s); s.ClientSecret == nil {
		t.Fatalf("the embedded session has no client_secret: %s", embedded.Body)
	}
	secrets = append(secrets, *s.ClientSecret)

	batch, private := payday(t, u)
	secrets = append(secrets, private...)

	if took := u.End(30 * time.Second); took > 10*time.Second {
		t.Errorf("SIGTERM ended it after %v, want 10 s at most", took)
	}
	u.Start(t)
	harness.Operator{Up: u}.Says(t, "done", "batches", "show", batch)
	if !strings.Contains(u.Banner, "QUITTANCE_STAFF_KEY=st_") {
		t.Errorf("after the second start the banner does not say how to pay people: %s", u.Banner)
	}
	for _, j := range journeys {
		if again := u.Session(t, j.paid.ID); again.Status != "completed" || !again.Paid || again.PaymentRef != j.paid.PaymentRef {
			t.Errorf("after the second start the session is %+v, want it completed", again)
		}
	}
	if s := u.Create(t, "after-the-start"); s.Status != "open" {
		t.Errorf("after the second start a session is created as %+v, want it open", s)
	}
	if took := u.End(30 * time.Second); took > 10*time.Second {
		t.Errorf("SIGTERM ended it after %v, want 10 s at most", took)
	}

	log, err := os.ReadFile(u.Stderr())
	if err != nil {
		t.Fatal(err)
	}
	keys, err := os.ReadFile(filepath.Join(u.Data(), "master.keys"))
	if err != nil {
		t.Fatal(err)
	}
	_, master, _ := strings.Cut(strings.TrimSpace(string(keys)), ":")
	secrets = append(secrets, master,
		"66000001", "6 600 00 01", "6%20600%2000%2001", "6+600+00+01", "66000002", "6 600 00 02")
	for _, secret := range secrets {
		if at := bytes.Index(log, []byte(secret)); at >= 0 {
			t.Errorf("the log holds %q: …%s…", secret, log[max(0, at-200):min(len(log), at+100)])
		}
	}
	for _, line := range bytes.Split(log, []byte("\n")) {
		if bytes.Contains(line, []byte("level=ERROR")) {
			t.Errorf("the log has an error: %s", line)
		}
	}
}

// curl runs the printed curl line unchanged.
func curl(t *testing.T, u *harness.Up) harness.Session {
	t.Helper()
	line := regexp.MustCompile(`(?m)^curl .*$`).FindString(u.Banner)
	if line == "" {
		t.Fatalf("the banner has no curl line: %s", u.Banner)
	}
	ctx, cancel := context.WithTimeout(t.Context(), harness.Soon)
	defer cancel()
	out, err := exec.CommandContext(ctx, "bash", "-c", line).Output()
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	var s harness.Session
	if err := json.Unmarshal(out, &s); err != nil || s.ID == "" || s.CheckoutURL == "" {
		t.Fatalf("%s answers %s", line, out)
	}
	return s
}

// printedQuery queries ClickHouse at the printed address.
func printedQuery(t *testing.T, u *harness.Up, id string) ([]map[string]any, error) {
	t.Helper()
	m := regexp.MustCompile(`curl '(http://[^?]+/\?query=[^']+)\+FORMAT\+Vertical'`).FindStringSubmatch(u.Banner)
	if m == nil || !strings.HasPrefix(m[1], u.URL(harness.AtClickHouse, "/")) {
		t.Fatalf("the banner has no query at port N+5: %s", u.Banner)
	}
	where := url.QueryEscape(" WHERE session_id = '" + id + "' FORMAT JSON")
	a, err := u.Send(t.Context(), http.MethodGet, m[1]+where, "")
	if err != nil {
		return nil, err
	}
	var out struct {
		Data []map[string]any `json:"data"`
	}
	if err := json.Unmarshal(a.Body, &out); err != nil {
		return nil, fmt.Errorf("%d %s: %w", a.Status, a.Body, err)
	}
	return out.Data, nil
}

// reports prints the month of the three payments in each format.
func reports(t *testing.T, o harness.Operator) {
	t.Helper()
	month := time.Now().UTC().Add(time.Hour).Format("2006-01") // in Brazzaville
	args := func(report string, more ...string) []string {
		return append([]string{"report", report, "--month", month, "--mode", "test", "--agency", "impots"}, more...)
	}
	o.Says(t, "15225", args("takings")...)
	o.Says(t, ",XAF,3,15225,0,0,0,15225\n", args("takings", "--format", "csv")...)
	o.Says(t, "# report: takings; agency: impots; month: "+month+"; mode: test payments: no money was moved; generated at: ", args("takings", "--format", "csv")...)
	o.Says(t, "(compared with Kafka)", args("takings")...)
	o.Says(t, `"fees_minor": 225,`, args("fees", "--format", "json")...)
	o.Says(t, "MOBILE_MONEY", args("channels")...)
	for _, report := range []string{"undelivered", "open-cases"} {
		o.Says(t, "there is nothing to report for "+month, args(report)...)
	}
	o.Says(t, "there is nothing to report for 2020-01", "report", "takings", "--month", "2020-01")
	o.Refused(t, `--agency: no agency has the id or slug "nobody"; there are: douanes; impots`, "report", "takings", "--month", month, "--agency", "nobody")
	file := filepath.Join(t.TempDir(), "takings.xlsx")
	o.Says(t, "", args("takings", "--format", "xlsx", "--out", file)...)
	if book, err := os.ReadFile(file); err != nil || !bytes.HasPrefix(book, []byte("PK")) {
		t.Errorf("the workbook begins with %q, %v", book[:min(len(book), 10)], err)
	}
}

// seen is a page as journey.mjs reports it.
type seen struct {
	Fault string            `json:"fault"`
	Step  string            `json:"step"`
	Lang  string            `json:"lang"`
	Title string            `json:"title"`
	List  map[string]string `json:"list"`
}

// payInBrowser pays in a browser.
func payInBrowser(t *testing.T, page, phone, language string, script bool) map[string]seen {
	t.Helper()
	pages := map[string]seen{}
	harness.Browse(t, 3*time.Minute, "journey.mjs", map[string]any{
		"url": page, "phone": phone, "language": language, "javascript": script, "shots": os.Getenv("QUITTANCE_SHOTS"),
	}, func(line []byte) {
		var s seen
		switch err := json.Unmarshal(line, &s); {
		case err != nil:
			t.Fatalf("the browser's line %q: %v", line, err)
		case s.Fault != "":
			t.Errorf("in the browser: %s", s.Fault)
		default:
			pages[s.Step] = s
		}
	})
	return pages
}

// checkPages checks the titles and languages of the pages, the three amounts from the
// review on, and the reference of the receipt.
func checkPages(t *testing.T, pages map[string]seen, language string, s harness.Session) {
	t.Helper()
	titles := map[string]string{"phone": "Votre numéro mobile money", "review": "Vérifiez avant de payer", "waiting": "Confirmez sur votre téléphone", "result": "✓ Paiement réussi"}
	words := map[string]string{"due": "Montant dû", "fee": "Frais de service", "total": "Total", "ref": "Référence de paiement"}
	amounts := map[string]string{"due": "5 000 FCFA", "fee": "75 FCFA", "total": "5 075 FCFA"}
	if language == "en" {
		titles = map[string]string{"phone": "Your mobile money number", "review": "Check before you pay", "waiting": "Confirm on your phone", "result": "✓ Payment successful"}
		words = map[string]string{"due": "Amount due", "fee": "Service fee", "total": "Total", "ref": "Payment reference"}
		amounts = map[string]string{"due": "FCFA 5,000", "fee": "FCFA 75", "total": "FCFA 5,075"}
	}
	for step, title := range titles {
		page, shown := pages[step]
		if !shown {
			if step != "waiting" { // the operator may answer before the page is shown
				t.Errorf("%s: page %s was not shown", language, step)
			}
			continue
		}
		answered := step == "waiting" && page.Title == titles["result"] // while the page was read
		if page.Title != title && !answered || page.Lang != language {
			t.Errorf("page %s is %q in %s, want %q in %s", step, page.Title, page.Lang, title, language)
		}
		if step == "phone" {
			continue
		}
		for what, amount := range amounts {
			if got := page.List[words[what]]; got != amount {
				t.Errorf("page %s shows %s as %q, want %q; the page has %v", step, words[what], got, amount, page.List)
			}
		}
	}
	if got := strings.ReplaceAll(pages["result"].List[words["ref"]], " ", ""); got != s.PaymentRef {
		t.Errorf("the receipt has the reference %q, want %s", got, s.PaymentRef)
	}
}
