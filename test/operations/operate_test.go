package operations_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/test/harness"
)

// An operator uses the command line when a receiver is gone, an ERP refuses a confirmation
// and a secret has leaked. Every delivery arrives in the end.
func TestOperatingDeliveries(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation")
	}
	t.Parallel()
	o := deliveryOperator{harness.Operator{Up: harness.NewUp(t)}}
	o.Start(t)

	o.Misused(t, "say what to do", "endpoints")
	o.Misused(t, "say what to do", "deliveries")
	o.Says(t, fmt.Sprintf("an `up` runs on %d and is ready", o.Port), "doctor", "up", "--registry", filepath.Join(harness.Root, o.Registry), "--data", o.Data())
	o.asksBeforeSeveral(t)
	o.Says(t, "there are no deliveries yet", "deliveries", "list")
	var endpoint string
	for _, e := range o.endpoints(t) {
		if e.URL == o.URL(harness.AtSimulators, "/inbox/guichet") {
			endpoint = e.ID
		}
		if e.State != "ok" || e.Waiting != 0 {
			t.Errorf("at the start an endpoint is %+v, want it ok without waiting deliveries", e)
		}
	}
	if !strings.Contains(o.Says(t, endpoint, "endpoints", "list"), "impots/test") {
		t.Error("endpoints list does not show the ERP")
	}
	o.Refused(t, "never suspended", "endpoints", "suspend", "impots/test")
	o.Refused(t, "endpoints list", "endpoints", "suspend", "nobody")
	o.Misused(t, "--state", "deliveries", "retry", "--endpoint", endpoint)

	o.Control(t, "inbox/guichet", `{"status": 410}`)
	o.Control(t, "erp/impots", `{"refuse": {"status": 422, "code": "due_closed"}}`)
	paid := o.Create(t, "operated")
	o.Citizen(paid.ID).Pay(t, "06 600 00 01")
	o.Becomes(t, paid.ID, "completed")

	o.importsStatements(t)

	// The receiver.
	o.stands(t, endpoint, "suspended", func(e endpointShown) bool { return e.State == "suspended" && e.Reason == "gone" && e.Waiting == 1 })
	o.Says(t, "answered 410", "endpoints", "list")
	o.Says(t, "answered 410", "endpoints", "suspend", endpoint)
	held := o.deliveries(t, "--endpoint", endpoint)
	if len(held) != 1 || held[0].State != "waiting" || held[0].SessionID != paid.ID {
		t.Fatalf("the endpoint's deliveries are %+v, want one that waits", held)
	}
	o.Refused(t, "endpoints resume "+endpoint, "deliveries", "retry", held[0].ID)
	o.Says(t, "410", "deliveries", "show", held[0].ID)

	o.supports(t, paid, endpoint)

	// The ERP.
	var parked []deliveryShown
	harness.Eventually(t, "the ERP's refusal is shown", func() error {
		if parked = o.deliveries(t, "--state", "needs_operator"); len(parked) != 1 {
			return fmt.Errorf("%+v", parked)
		}
		return nil
	})
	if parked[0].Endpoint != "impots/test" || parked[0].Kind != "erp" || parked[0].Status != 422 {
		t.Errorf("the parked delivery is %+v, want that to the ERP", parked[0])
	}
	o.Says(t, "due_closed", "deliveries", "show", parked[0].ID)
	o.Says(t, "due now", "deliveries", "retry", parked[0].ID)
	harness.Eventually(t, "the ERP has refused twice", func() error {
		if again := o.deliveries(t, "--endpoint", "impots/test", "--state", "needs_operator"); len(again) != 1 || again[0].Attempts != 2 {
			return fmt.Errorf("%+v", again)
		}
		return nil
	})
	o.Control(t, "erp/impots", `{"reset": true}`)
	o.Says(t, "1 delivery is due now, needs_operator before", "deliveries", "retry", "--endpoint", "impots/test", "--state", "needs_operator")
	o.Confirmed(t, paid)
	o.Says(t, "nothing to do", "deliveries", "retry", "--endpoint", "impots/test", "--state", "needs_operator")
	o.Says(t, "no delivery is like that", "deliveries", "list", "--state", "needs_operator", "--since", "1h")
	if n := len(o.Confirmations(t, paid)); n != 1 {
		t.Errorf("the ERP has accepted %d confirmations, want 1", n)
	}

	// The receiver is back.
	o.Control(t, "inbox/guichet", `{"reset": true}`)
	o.resume(t, endpoint, paid)
	o.stands(t, endpoint, "well", func(e endpointShown) bool { return e.State == "ok" && e.Waiting+e.Queued == 0 })
	o.Refused(t, "was accepted at", "deliveries", "retry", held[0].ID)

	// The integrator has lost one event and asks for it; no other goes with it.
	o.Misused(t, "either --event, --order or --session", "deliveries", "redeliver")
	o.Refused(t, "nothing was sent", "deliveries", "redeliver", "--event", "evt_0000000000000000000000000000")
	before, delivered := len(o.Inbox(t, paid.ID)), o.deliveries(t, "--endpoint", endpoint)
	o.Says(t, "1 webhook is due once more", "deliveries", "redeliver", "--order", paid.OrderID, "--endpoint", endpoint)
	harness.Eventually(t, "the receiver has the event once more", func() error {
		if now, all := len(o.Inbox(t, paid.ID)), o.deliveries(t, "--endpoint", endpoint); now != before+1 || len(all) != len(delivered)+1 || all[0].State != "delivered" {
			return fmt.Errorf("%d webhooks, %+v", now, all)
		}
		return nil
	})

	// A maintenance of the receiver, and its secret.
	o.Says(t, "is suspended", "endpoints", "suspend", endpoint)
	text := o.Says(t, "whsec_", "endpoints", "rotate-secret", endpoint)
	o.Refused(t, "--overlap 0", "endpoints", "rotate-secret", endpoint)
	var rotated endpointShown
	o.JSON(t, &rotated, "endpoints", "rotate-secret", endpoint, "--overlap", "0")
	if !strings.HasPrefix(rotated.Secret, "whsec_") || strings.Contains(text, rotated.Secret) || rotated.Secrets != 1 {
		t.Errorf("after the rotation %d secrets sign, want one new secret", rotated.Secrets)
	}
	time.Sleep(2 * time.Second) // the worker reads the suspensions once a second
	meanwhile := o.Create(t, "meanwhile")
	o.Citizen(meanwhile.ID).Pay(t, "06 600 00 01")
	o.stands(t, endpoint, "held", func(e endpointShown) bool { return e.State == "suspended" && e.Reason == "operator" && e.Waiting == 1 })
	if got := o.Inbox(t, meanwhile.ID); len(got) != 0 {
		t.Errorf("a suspended endpoint got %+v", got)
	}
	got := o.resume(t, endpoint, meanwhile)
	if got.SignatureValid == nil || !*got.SignatureValid || strings.Contains(got.Headers["webhook-signature"], " ") {
		t.Errorf("the webhook has the signatures %q, want one valid signature", got.Headers["webhook-signature"])
	}
	o.asksBeforeRetries(t)
	o.withoutAFile(t)

	// The doctor also asks for dues.
	o.Control(t, "erp/impots", `{"misbehave": ["unknown_subject_404"]}`)
	o.Says(t, "WARNING: without GET /dues, so that citizens see no dues of: impots/test (http_404)", "doctor", "erp")
	o.Control(t, "erp/impots", `{"reset": true}`)
}

// readsOriginal reads the file of an import, which another person approves. It returns both people.
func (o deliveryOperator) readsOriginal(t *testing.T, importID, begins string) (awa, ben caseOperator) {
	t.Helper()
	awa, ben = caseOperator(o).as(t, "Awa Reader", "impots"), caseOperator(o).as(t, "Ben Reader", "impots")
	o.Refused(t, "set QUITTANCE_STAFF_KEY", "statements", "original", "request", importID, "--reason", "r")
	awa.Refused(t, "--reason: must be 1 to 500 printable characters", "statements", "original", "request", importID)
	var request struct {
		ID string `json:"request_id"`
	}
	awa.JSON(t, &request, "statements", "original", "request", importID, "--reason", "line 2 is disputed")
	out := filepath.Join(t.TempDir(), "original.csv")
	awa.Misused(t, "--out FILE", "statements", "original", "save", request.ID)
	awa.Refused(t, "another person must approve it first", "statements", "original", "save", request.ID, "--out", out)
	awa.Refused(t, "whoever requested the file cannot approve it", "statements", "original", "approve", request.ID)
	o.Says(t, "line 2 is disputed", "statements", "original", "list", "--agency", "impots")
	ben.Says(t, "Awa Reader can read the file", "statements", "original", "approve", request.ID)
	ben.Refused(t, "no request of this id", "statements", "original", "save", request.ID, "--out", out)
	awa.Says(t, "delete it when you have read it", "statements", "original", "save", request.ID, "--out", out)
	awa.Refused(t, "file exists", "statements", "original", "save", request.ID, "--out", out)
	text, err := os.ReadFile(out)
	if err != nil || !strings.HasPrefix(string(text), begins) {
		t.Errorf("the file begins with %.80q, %v", text, err)
	}
	if info, err := os.Stat(out); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	return awa, ben
}

// takesBack is the drill "yesterday's statement was of the wrong day": two people withdraw the import of a file, and import the right one. It
// logs how long the commands take.
func (o deliveryOperator) takesBack(t *testing.T, awa, ben caseOperator, importID, wrong, right string) {
	t.Helper()
	begin := time.Now()
	account := []string{"--agency", "impots", "--mode", "test", "--account", "mtn"}
	importing := append([]string{"statements", "import"}, account...)
	var file struct {
		State  string
		Tried  bool
		Faults []struct{ Kind string }
	}
	o.FailsJSON(t, &file, append(importing, right, "--try")...)
	if file.State != "quarantined" || !file.Tried || len(file.Faults) != 1 || file.Faults[0].Kind != "overlap" {
		t.Errorf("the right file, tried: %+v", file)
	}
	var asked struct {
		ID    string `json:"withdrawal_id"`
		State string
		Lines int `json:"withdrawn_lines"`
	}
	o.Refused(t, "set QUITTANCE_STAFF_KEY", "statements", "withdraw", "request", importID, "--reason", "r")
	awa.JSON(t, &asked, "statements", "withdraw", "request", importID, "--reason", "MTN sent the file of the wrong day")
	awa.Refused(t, "whoever requested the withdrawal cannot approve it", "statements", "withdraw", "approve", asked.ID)
	ben.JSON(t, &asked, "statements", "withdraw", "approve", asked.ID)
	if asked.State != "done" || asked.Lines != 1 {
		t.Errorf("%+v", asked)
	}
	o.FailsJSON(t, &file, append(importing, wrong)...) // by a nightly job
	if file.State != "quarantined" || len(file.Faults) != 1 || file.Faults[0].Kind != "withdrawn" {
		t.Errorf("the wrong file again: %+v", file)
	}
	o.Says(t, "accepted", append(importing, right)...)
	t.Logf("drill: the statement of the wrong day is withdrawn and the right one imported after %s", time.Since(begin).Round(10*time.Millisecond))
	o.Says(t, "withdrawn", append([]string{"statements", "list"}, account...)...)
	o.Says(t, "MTN sent the file of the wrong day", "statements", "withdraw", "list", "--agency", "impots")
	harness.Eventually(t, "the right line counts alone", func() error {
		rows, err := o.Rows(t, `SELECT sum(net_amount) AS net, sum(if(withdrawn, -1, 1)) AS lines, countIf(local_day = '2026-11-19') AS right FROM quittance.statement_lines FINAL WHERE account = 'mtn'`)
		if err != nil || fmt.Sprint(rows) != "[map[lines:1 net:5000 right:1]]" {
			return fmt.Errorf("%v, %w", rows, err)
		}
		return nil
	})
	o.Says(t, "its import was withdrawn", "chain", "31000000001")
}

// importsStatements imports statements of the demo registry's accounts. Their lines come to the
// journal; the same file again changes nothing; a faulty one is refused with all its faults.
func (o deliveryOperator) importsStatements(t *testing.T) {
	t.Helper()
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const head = "Id,External id,Status,Type,Date,Amount,Fee,Currency,From,To,Balance\n"
	good := file("good.csv", head+`31000000001,,Successful,Payment,2026-11-20 08:00:01,5075,75,XAF,"MABIALA, Jeanne 066123456",46733123454,5000`+"\n")
	bad := file("bad.csv", head+`31000000002,1020304058519001,Successful,Payment,2026-11-21 08:00:01,5075,75,XAF,X,46733123454,10000
31000000003,,Successful,Payment,21.11.2026,5075,75,XAF,X,46733123454,15000`+"\n")
	account := []string{"statements", "import", "--agency", "impots", "--mode", "test", "--account", "mtn"}
	var done struct {
		State       string
		StatementID string `json:"statement_id"`
		ImportID    string `json:"import_id"`
		Lines       int
		Faults      []struct{ Line, Column int }
	}
	o.JSON(t, &done, append(account, good)...)
	if done.State != "accepted" || done.Lines != 1 || done.StatementID != "2026-11-20..2026-11-20" || done.Faults == nil || len(done.Faults) > 0 {
		t.Errorf("%+v", done)
	}
	o.JSON(t, &done, append(account, good)...)
	if done.State != "unchanged" {
		t.Errorf("the same file: %+v", done)
	}
	o.Says(t, "5000 XAF", "statements", "list", "--agency", "impots", "--account", "mtn")
	o.Says(t, "SHA-256", "statements", "show", done.ImportID)
	awa, ben := o.readsOriginal(t, done.ImportID, head)
	wrong := done.ImportID
	o.FailsJSON(t, &done, append(account, bad)...)
	if done.State != "refused" || len(done.Faults) != 2 || done.Faults[0].Line != 2 || done.Faults[1].Line != 3 || done.Faults[0].Column != 13 {
		t.Errorf("a faulty file: %+v", done)
	}
	o.Refused(t, "statements list", "statements", "show", "nothing")
	o.Refused(t, "impots has no account of this code in the mode test; it has: airtel; banque; guichets; mtn", "statements", "import", "--agency", "impots", "--mode", "test", "--account", "momo", good)
	o.Refused(t, "impots has no accounts in the mode live", "statements", "import", "--agency", "impots", "--mode", "live", "--account", "mtn", good)
	o.Misused(t, "--account CODE", "statements", "import", "--agency", "impots", "--mode", "test", good)
	o.Misused(t, "which file", append(account, "--json")...)
	harness.Eventually(t, "the line is in the journal", func() error {
		rows, err := o.Rows(t, `SELECT line_id, net_amount FROM quittance.statement_lines FINAL WHERE tenant_id = '018f0000-0000-7000-8000-000000000001'`)
		if err != nil || len(rows) != 1 || rows[0]["line_id"] != "mtn/31000000001" {
			return fmt.Errorf("%v, %w", rows, err)
		}
		return nil
	})
	right := file("right.csv", head+`30900000001,,Successful,Payment,2026-11-19 08:00:01,5075,75,XAF,"MABIALA, Jeanne 066123456",46733123454,5000`+"\n")
	o.takesBack(t, awa, ben, wrong, good, right)
}

// withoutAFile makes an application with a key, an endpoint and an embed origin, without a
// registry file, and takes them away again.
func (o deliveryOperator) withoutAFile(t *testing.T) {
	t.Helper()
	var app, key, endpoint struct{ ID, Secret string }
	o.Misused(t, "--offers", "apps", "add", "--agency", "impots", "--name", "Vignettes")
	o.JSON(t, &app, "apps", "add", "--agency", "impots", "--name", "Vignettes", "--offers", "momo,cash_agency")
	o.Says(t, "Vignettes", "apps", "list")
	o.JSON(t, &key, "keys", "create", "--application", "Vignettes", "--mode", "test")
	url := o.URL(harness.AtSimulators, "/inbox/vignettes")
	add := []string{"endpoints", "add", "--application", app.ID, "--url", url, "--events", "checkout.cancelled"}
	o.Misused(t, "either --application ID_OR_NAME, or --platform", "endpoints", "add", "--url", url, "--events", "checkout.cancelled")
	o.Refused(t, "checkout.completed", "endpoints", "add", "--application", app.ID, "--url", url, "--events", "checkout.paid")
	o.JSON(t, &endpoint, add...)
	o.Refused(t, "endpoints set "+endpoint.ID, add...)

	create := func(order, mode, idempotency string) harness.Answer {
		t.Helper()
		return o.Call(t, http.MethodPost, o.Sessions(""), fmt.Sprintf(`{"order_id":%q,"amount":5000,"mode":%q}`, order, mode),
			"Authorization", "Bearer "+key.Secret, "Content-Type", "application/json", "Idempotency-Key", idempotency)
	}
	answers := func(order, mode string, status int) (s harness.Session) {
		t.Helper()
		again := uuid.NewString()
		harness.Eventually(t, fmt.Sprintf("%s is answered %d", order, status), func() error { // instances know a change within a second
			a := create(order, mode, again)
			if a.Status != http.StatusServiceUnavailable { // which may have made the session
				again = uuid.NewString()
			}
			if a.Status != status {
				return fmt.Errorf("%d %s", a.Status, a.Body)
			}
			if status == http.StatusCreated {
				a.Into(t, &s)
			}
			return nil
		})
		return s
	}
	o.Misused(t, "--erp-code CODE with --service SERVICE", "mappings", "set", "impots", "--erp-code", "9100")
	o.Misused(t, "the agency's slug or id", "mappings", "set", "--default-service", "foncier")
	o.Refused(t, "--service: the agency's catalogue has no service of this code; it has: foncier; patente", "mappings", "set", "impots", "--erp-code", "9100", "--service", "fret")
	o.Says(t, "9100", "mappings", "set", "impots", "--erp-code", "9100", "--service", "foncier")
	o.Says(t, "Contribution foncière", "mappings", "list", "impots")
	o.Says(t, "all others", "mappings", "remove", "impots", "--erp-code", "9100")
	o.Refused(t, "--erp-code: the agency has no mapping of this code", "mappings", "remove", "impots", "--erp-code", "9101")
	o.Says(t, "CG3930011000101013451300019", "accounts", "list", "impots")
	answers("without-origin", "embedded", http.StatusUnprocessableEntity)
	o.Says(t, "https://vignettes.example", "origins", "add", "https://vignettes.example", "--application", "Vignettes")
	answers("with-origin", "embedded", http.StatusCreated)
	o.Says(t, "No site may embed", "origins", "remove", "https://vignettes.example", "--application", "Vignettes")
	answers("origin-removed", "embedded", http.StatusUnprocessableEntity)

	cancel := func(order string) harness.Session {
		t.Helper()
		s := answers(order, "hosted", http.StatusCreated)
		o.Call(t, http.MethodPost, o.Sessions("/"+s.ID+"/cancel"), "", "Authorization", "Bearer "+key.Secret)
		return s
	}
	inbox := func(id string) bool {
		var all []harness.Message
		o.Call(t, http.MethodGet, url, "").Into(t, &all)
		return slices.ContainsFunc(all, func(m harness.Message) bool { return strings.Contains(m.Body, id) })
	}
	// A worker reads suspensions once a second and puts a delivery off by a minute that comes
	// before it has read of the restoration, so the clock is moved.
	arrives := func(what, id string) {
		t.Helper()
		for range 5 {
			for end := time.Now().Add(6 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
				if inbox(id) {
					return
				}
			}
			o.Advance(t, 2*time.Minute)
		}
		t.Errorf("%s did not arrive", what)
	}
	arrives("the webhook of an endpoint that a command added", cancel("first").ID)
	o.Says(t, "is removed", "endpoints", "remove", endpoint.ID)
	o.Refused(t, "was removed at", "endpoints", "resume", endpoint.ID)
	o.Says(t, "removed 20", "endpoints", "list", "--removed")
	for _, e := range o.endpoints(t) {
		if e.ID == endpoint.ID {
			t.Errorf("a removed endpoint is listed: %+v", e)
		}
	}
	var again struct {
		ID, Secret string
		Restored   bool
	}
	if o.JSON(t, &again, add...); !again.Restored || again.ID != endpoint.ID || again.Secret == endpoint.Secret {
		t.Errorf("the same endpoint again is %+v, want it restored with a new secret", again)
	}
	time.Sleep(2 * time.Second) // an event before the worker has read of the endpoint is not for it
	arrives("the webhook of a restored endpoint", cancel("second").ID)
	o.Says(t, "keys open nothing", "apps", "set", app.ID, "--active=false")
	answers("not-active", "hosted", http.StatusUnauthorized)
}

// deliveryOperator runs the commands for endpoints and deliveries.
type deliveryOperator struct{ harness.Operator }

// resume resumes an endpoint for which a session's completion waits, and returns the
// delivered message. On a busy machine the worker can read the resumption too late and
// defer the delivery by another minute, so the clock is moved.
func (o deliveryOperator) resume(t *testing.T, endpoint string, s harness.Session) harness.Message {
	t.Helper()
	o.Says(t, "is resumed; 1 delivery", "endpoints", "resume", endpoint)
	for range 5 {
		for end := time.Now().Add(6 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			for _, m := range o.Inbox(t, s.ID) {
				if m.Answered == http.StatusOK {
					return m
				}
			}
		}
		o.Advance(t, 2*time.Minute)
	}
	return o.Delivered(t, s.ID, "checkout.completed")
}

// supports answers calls about a payment whose integrator was not told: by order, payment
// reference, session and the operator's reference, with one command each.
func (o deliveryOperator) supports(t *testing.T, paid harness.Session, endpoint string) {
	t.Helper()
	ref := paid.PaymentRef
	for _, flag := range [][]string{{"--order", paid.OrderID}, {"--session", paid.ID}, {"--payment-ref", ref[:4] + " " + ref[4:8] + " " + ref[8:12] + " " + ref[12:]}} {
		harness.Eventually(t, "the deliveries by "+flag[0], func() error {
			list := o.deliveries(t, flag...)
			if len(list) != 2 {
				return fmt.Errorf("%+v", list)
			}
			for _, d := range list {
				if d.Owner == "" || d.URL == "" || d.SessionID != paid.ID {
					return fmt.Errorf("%+v", d)
				}
			}
			return nil
		})
	}
	o.Refused(t, "--order: no session has this order", "deliveries", "list", "--order", "nothing")
	o.Misused(t, "one of --order", "deliveries", "list", "--order", paid.OrderID, "--session", paid.ID)
	o.Misused(t, "--payment-ref: must be 16 digits", "deliveries", "list", "--payment-ref", "1234")

	if a := o.Call(t, http.MethodPost, o.Sessions("/"+paid.ID+"/cancel"), "", "Authorization", "Bearer "+harness.GuichetKey); a.Status != http.StatusConflict {
		t.Errorf("cancelling a paid session: %d %s", a.Status, a.Body)
	}
	var page sessionShown
	harness.Eventually(t, "the whole page of a payment", func() error {
		page = sessionShown{}
		if o.JSON(t, &page, "sessions", "show", paid.ID); len(page.Missing) > 0 {
			return fmt.Errorf("it lacks %+v", page.Missing)
		}
		for _, want := range []string{
			"command session.create ", "event checkout.created open", "command collection.start ", "event collection.requested open", "call call.collect pending",
			"event checkout.completed completed", "delivery checkout.completed ", "command session.cancel no effect",
		} {
			if !slices.ContainsFunc(page.Timeline, func(s stepShown) bool { return strings.HasPrefix(s.Kind+" "+s.Name+" "+s.Outcome, want) }) {
				return fmt.Errorf("no step %q in %+v", want, page.Timeline)
			}
		}
		return nil
	})
	if page.Verdict != "paid" || page.Agency != "impots" || page.Collection.Reference == "" || len(page.Deliveries) != 2 || !strings.Contains(page.Collection.Payer, "•") {
		t.Errorf("the page is %+v", page)
	}
	for _, s := range page.Timeline {
		if s.Kind == "call" && (s.Facts["operator"] != "mtn" || s.Took < 0) {
			t.Errorf("a call is %+v", s)
		}
	}
	for _, term := range []string{paid.OrderID, paid.ID, ref, page.Collection.Reference, page.Collection.ID} {
		text := o.Says(t, "Paid: 5075 XAF by momo", "sessions", "find", term)
		for _, want := range []string{paid.ID, page.Collection.Reference, o.URL(harness.AtSimulators, "/inbox/guichet") + " (", "is not accepted", endpoint, "call.collect"} {
			if !strings.Contains(text, want) {
				t.Errorf("sessions find %s lacks %q:\n%s", term, want, text)
			}
		}
		for _, secret := range []string{"66000001", "6 600 00 01", "chs_secret_", "sk_test_", "whsec_"} {
			if strings.Contains(text, secret) {
				t.Errorf("sessions find %s shows %q:\n%s", term, secret, text)
			}
		}
	}
	away := []string{"sessions", "find", paid.OrderID, "--clickhouse", "http://127.0.0.1:1/quittance"}
	if text := o.Says(t, "Paid: 5075 XAF by momo", away...); !strings.Contains(text, "Not read: journal") || !strings.Contains(text, "session.create") || strings.Contains(text, "no effect") {
		t.Errorf("without ClickHouse sessions find says:\n%s", text)
	}
	again := o.Create(t, "not tried")
	o.Says(t, "Not paid: nobody has tried yet", "sessions", "find", again.OrderID)
	o.Refused(t, "nothing has this order", "sessions", "find", "NOTHING")
	mistyped := ref[:15] + string('0'+(ref[15]-'0'+1)%10)
	o.Refused(t, "a digit is mistyped", "sessions", "find", mistyped)
	o.Refused(t, "SESSION: no session", "sessions", "show", "chs_nothing")
	o.Misused(t, "say what to look for", "sessions", "find", "--json")
}

// sessionShown is a payment as `sessions show --json` prints it.
type sessionShown struct {
	ID, Verdict, Answer, Agency string
	Collection                  struct {
		ID        string
		Reference string `json:"operator_ref"`
		Payer     string `json:"payer_masked"`
	}
	Deliveries []deliveryShown
	Timeline   []stepShown
	Missing    []struct{ Part, Why string }
}

// stepShown is a step of the timeline.
type stepShown struct {
	Kind, Name, Outcome string
	Took                int `json:"took_ms"`
	Facts               map[string]string
}

// A command that ends more than one thing asks, and does nothing without an answer.
func (o deliveryOperator) asksBeforeSeveral(t *testing.T) {
	t.Helper()
	var keys [3]struct{ Keys []struct{ ID string } }
	for i, mode := range []string{"test", "test", "live"} {
		o.JSON(t, &keys[i], "clerks", "add", "--agency", "impots", "--code", "c77", "--name", "Guichet 77", "--counter", "Annexe", "--mode", mode)
	}
	o.Misused(t, "nothing was done", "clerks", "revoke", "impots/c77")
	o.Misused(t, "revokes 2 keys of impots/c77", "clerks", "revoke", "impots/c77", "--mode", "test")
	o.Says(t, "live mode, is revoked", "clerks", "revoke", "impots/c77", "--mode", "live")
	var c struct {
		Keys []struct {
			RevokedAt *string `json:"revoked_at"`
		}
	}
	o.JSON(t, &c, "clerks", "revoke", "impots/c77", "--yes")
	for _, k := range c.Keys {
		if k.RevokedAt == nil {
			t.Errorf("the keys are %+v, want all revoked", c.Keys)
		}
	}
	o.Says(t, "Nothing to revoke", "clerks", "revoke", "impots/c77")
	o.asksBeforeUngrant(t)
}

// An agency is withdrawn from both keys of a rotation at once, so the command asks. Without
// an answer both keep it.
func (o deliveryOperator) asksBeforeUngrant(t *testing.T) {
	t.Helper()
	type key struct {
		ID       string
		Agencies []string
	}
	var older, newer key
	o.JSON(t, &older, "keys", "create", "--platform", "--agency", "impots,douanes", "--mode", "test")
	o.Says(t, "acts for: impots.", "keys", "ungrant", older.ID, "--agency", "douanes") // one key: no question
	o.JSON(t, &[]key{}, "keys", "grant", older.ID, "--agency", "douanes")
	o.JSON(t, &newer, "keys", "rotate", older.ID)
	agencies := func(want ...string) {
		t.Helper()
		var all []key
		o.JSON(t, &all, "keys", "list")
		for _, id := range []string{older.ID, newer.ID} {
			i := slices.IndexFunc(all, func(k key) bool { return k.ID == id })
			if i < 0 {
				t.Fatalf("keys list lacks %s", id)
			}
			if slices.Sort(all[i].Agencies); !slices.Equal(all[i].Agencies, want) {
				t.Errorf("the key %s acts for %q, want %q", id, all[i].Agencies, want)
			}
		}
	}
	o.Misused(t, "withdraws douanes from 2 keys", "keys", "ungrant", older.ID, "--agency", "douanes")
	o.Misused(t, "nothing was done", "keys", "ungrant", newer.ID, "--agency", "douanes", "--json")
	agencies("douanes", "impots")
	var changed []key
	if o.JSON(t, &changed, "keys", "ungrant", older.ID, "--agency", "douanes", "--yes"); len(changed) != 2 {
		t.Errorf("keys ungrant shows %+v, want both keys", changed)
	}
	agencies("impots")
}

// Several deliveries of an endpoint are sent again after a question only.
func (o deliveryOperator) asksBeforeRetries(t *testing.T) {
	t.Helper()
	o.Control(t, "erp/impots", `{"refuse": {"status": 422, "code": "due_closed"}}`)
	var paid []harness.Session
	for _, order := range []string{"several-1", "several-2"} {
		s := o.Create(t, order)
		o.Citizen(s.ID).Pay(t, "06 600 00 01")
		paid = append(paid, s)
	}
	parked := func(attempts int) error {
		list := o.deliveries(t, "--endpoint", "impots/test", "--state", "needs_operator")
		if len(list) != 2 || list[0].Attempts != attempts || list[1].Attempts != attempts {
			return fmt.Errorf("%+v, want two with %d attempts", list, attempts)
		}
		return nil
	}
	harness.Eventually(t, "the ERP has refused both", func() error { return parked(1) })
	retry := []string{"deliveries", "retry", "--endpoint", "impots/test", "--state", "needs_operator"}
	o.Misused(t, "sends all deliveries of", retry...)
	o.Misused(t, "nothing was done", append(retry, "--json")...)
	if err := parked(1); err != nil {
		t.Errorf("after no answer: %v", err)
	}
	o.Control(t, "erp/impots", `{"reset": true}`)
	var made struct {
		Due int `json:"made_due"`
	}
	if o.JSON(t, &made, append(retry, "--yes")...); made.Due != 2 {
		t.Errorf("%d deliveries are due, want 2", made.Due)
	}
	for _, s := range paid {
		o.Confirmed(t, s)
	}
}

// endpointShown is an endpoint as --json prints it.
type endpointShown struct {
	ID      string `json:"id"`
	URL     string `json:"url"`
	State   string `json:"state"`
	Reason  string `json:"suspended_reason"`
	Waiting int    `json:"waiting"`
	Queued  int    `json:"queued"`
	Secrets int    `json:"signing_secrets"`
	Secret  string `json:"secret"`
}

func (o deliveryOperator) endpoints(t *testing.T) (out []endpointShown) {
	t.Helper()
	o.JSON(t, &out, "endpoints", "list")
	return out
}

// stands waits until is accepts an endpoint.
func (o deliveryOperator) stands(t *testing.T, id, what string, is func(endpointShown) bool) {
	t.Helper()
	harness.Eventually(t, "endpoint is "+what, func() error {
		var e endpointShown
		if o.JSON(t, &e, "endpoints", "show", id); !is(e) {
			return fmt.Errorf("%+v", e)
		}
		return nil
	})
}

// deliveryShown is a delivery as --json prints it.
type deliveryShown struct {
	ID        string `json:"id"`
	Kind      string `json:"kind"`
	Endpoint  string `json:"endpoint"`
	SessionID string `json:"session_id"`
	State     string `json:"state"`
	Attempts  int    `json:"attempts"`
	Status    int    `json:"http_status"`
	Owner     string `json:"owner"`
	URL       string `json:"url"`
}

func (o deliveryOperator) deliveries(t *testing.T, filter ...string) (out []deliveryShown) {
	t.Helper()
	o.JSON(t, &out, append([]string{"deliveries", "list"}, filter...)...)
	return out
}
