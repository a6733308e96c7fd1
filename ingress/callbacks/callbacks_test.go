package callbacks_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"quittance/test/httpclient"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"quittance/checkout"
	"quittance/ingress/callbacks"
	"quittance/ingress/web"
	"quittance/internal/connector"
	"quittance/internal/connector/airtel"
	"quittance/internal/connector/card"
	"quittance/internal/connector/mtn"
	"quittance/internal/secret"
)

// outbox is a Sender that keeps the commands, or returns err.
type outbox struct {
	mu   sync.Mutex
	err  error
	sent []checkout.Command
}

func (o *outbox) Tell(_ context.Context, cmd checkout.Command) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return o.err
	}
	o.sent = append(o.sent, cmd)
	return nil
}

// take returns the commands since the last call.
func (o *outbox) take() []checkout.Command {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := o.sent
	o.sent = nil
	return out
}

func (o *outbox) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = err
}

type edge struct {
	t          *testing.T
	keys       *secret.Keys
	outbox     *outbox
	log        *bytes.Buffer
	url        string
	session    string
	collection string
	metrics    *prometheus.Registry

	// Calls of Account and their answer.
	mu      sync.Mutex
	asked   []string
	account connector.Account
	trouble error
	// networks of the operators.
	networks []netip.Prefix
}

// ids make the ids of sessions.
var ids = checkout.NewIDs(secret.GenerateReferenceKey().MAC("ids"))

var at = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newEdge(t *testing.T, unproven float64, proxies ...netip.Prefix) *edge {
	t.Helper()
	return newLimitedEdge(t, unproven, 1e6, proxies...)
}

func newLimitedEdge(t *testing.T, unproven, perClient float64, proxies ...netip.Prefix) *edge {
	t.Helper()
	momo, err := mtn.New(connector.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	airtelMoney, err := airtel.New(connector.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	e := &edge{
		t: t, keys: secret.GenerateKeys(), outbox: &outbox{}, log: &bytes.Buffer{},
		session: ids.NewSession(at, 3, [16]byte(uuid.New())), collection: uuid.NewString(),
		metrics: prometheus.NewRegistry(), account: acquirer, networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("41.202.16.0/20")},
	}
	cards, err := card.New(connector.Config{Now: time.Now, Timestamp: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	gate, err := web.NewGate(web.GateConfig{IDs: ids, PerClient: perClient, PerInstance: 1e6, Metrics: e.metrics})
	if err != nil {
		t.Fatal(err)
	}
	h, err := callbacks.New(callbacks.Config{
		Connectors: map[string]connector.Connector{"mtn": momo, "airtel": airtelMoney, "card": cards}, Merchant: e.merchantOf, HonoursLate: e.honoursLate, Verifier: e.keys, Sender: e.outbox,
		Gate: gate, Now: func() time.Time { return at }, Log: slog.New(slog.NewJSONHandler(e.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Metrics: e.metrics, UnprovenPerSecond: unproven,
	})
	if err != nil {
		t.Fatal(err)
	}
	r := chi.NewRouter()
	r.Use(web.ClientAddress(proxies))
	h.Routes(r)
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	e.url = server.URL
	return e
}

// address returns the callback address of the collection.
func (e *edge) address() string {
	return connector.CallbackURL(e.keys, e.url, "mtn", e.session, e.collection)
}

// honoursLate is Config.HonoursLate.
func (e *edge) honoursLate(_ context.Context, sessionID string) bool { return sessionID == e.session }

// merchantOf is Config.Merchant.
func (e *edge) merchantOf(_ context.Context, operator, sessionID, collectionID string) (callbacks.Merchant, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = append(e.asked, operator+" "+sessionID+" "+collectionID)
	return callbacks.Merchant{Account: e.account, Networks: e.networks, Live: true}, e.trouble
}

func (e *edge) call(method, url, body string) int {
	e.t.Helper()
	return e.callSigned(method, url, body, "")
}

func (e *edge) callSigned(method, url, body, authorization string) int {
	e.t.Helper()
	req, err := http.NewRequestWithContext(e.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		e.t.Fatal(err)
	}
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	resp, err := httpclient.Default.Do(req)
	if err != nil {
		e.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if body, _ := io.ReadAll(resp.Body); len(body) > 0 && resp.StatusCode/100 == 2 {
		e.t.Errorf("answer has a body: %q", body)
	}
	return resp.StatusCode
}

// enquiry fails unless exactly one enquiry about the collection was sent.
func (e *edge) enquiry(what string) {
	e.t.Helper()
	sent := e.outbox.take()
	if len(sent) != 1 || sent[0] != (checkout.Command{At: at, SessionID: e.session, Do: checkout.Enquire{CollectionID: e.collection}}) {
		e.t.Errorf("%s: sent %+v, want one enquiry", what, sent)
	}
}

const (
	number   = "242066000001"
	approved = `{"financialTransactionId":"991","externalId":"1234","amount":"5075","currency":"XAF","payer":{"partyIdType":"MSISDN","partyId":"` + number + `"},"status":"SUCCESSFUL"}`
	refused  = `{"externalId":"1234","amount":"5075","currency":"XAF","payer":{"partyIdType":"MSISDN","partyId":"` + number + `"},"status":"FAILED","reason":"NOT_ENOUGH_FUNDS"}`
)

func TestReportAtItsAddress(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 0)
	for _, method := range []string{http.MethodPut, http.MethodPost, http.MethodPut} { // repeated reports are sent again
		if status := e.call(method, e.address(), approved); status != http.StatusOK {
			t.Fatalf("%s: status %d", method, status)
		}
		sent := e.outbox.take()
		want := checkout.Command{At: at, SessionID: e.session, Live: true, Do: checkout.Outcome{
			CollectionID: e.collection, Source: checkout.SourceCallback, Status: checkout.OutcomeApproved,
			Amount: 5075, Currency: "XAF", OperatorRef: "991", HonourLate: true, Account: e.account.Fingerprint(),
		}}
		if len(sent) != 1 || sent[0] != want {
			t.Errorf("sent %+v, want %+v", sent, want)
		}
	}

	if status := e.call(http.MethodPut, e.address(), refused); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	sent := e.outbox.take()
	if o, ok := sent[0].Do.(checkout.Outcome); !ok || o.Status != checkout.OutcomeRefused || o.FailureCode != checkout.FailureInsufficientFunds {
		t.Errorf("sent %+v", sent)
	}

	if status := e.call(http.MethodPut, e.address(), `{"status":"PENDING"}`); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	if sent := e.outbox.take(); len(sent) != 0 {
		t.Errorf("pending sends %+v", sent)
	}
	if status := e.call(http.MethodGet, e.address(), ""); status != http.StatusMethodNotAllowed {
		t.Errorf("GET: status %d", status)
	}
}

// An operator whose reports have no amount and no reason is asked, even if the address is
// valid.
func TestReportThatLeavesThingsOut(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 0)
	address := connector.CallbackURL(e.keys, e.url, "airtel", e.session, e.collection)
	report := func(id, status string) string {
		return `{"transaction":{"id":"` + strings.ReplaceAll(id, "-", "") + `","message":"Paid XAF 5,075","status_code":"` + status + `","airtel_money_id":"MP1"},"hash":"x"}`
	}
	for _, status := range []string{"TS", "TF", "SUCCESS"} {
		if got := e.call(http.MethodPost, address, report(e.collection, status)); got != http.StatusAccepted {
			t.Errorf("%s: status %d, want 202", status, got)
		}
		e.enquiry(status)
	}
	if got := e.call(http.MethodPost, address, report(e.collection, "TIP")); got != http.StatusOK || len(e.outbox.take()) != 0 {
		t.Errorf("in progress: status %d", got)
	}
	if got := e.call(http.MethodPost, address, report(uuid.NewString(), "TS")); got != http.StatusAccepted {
		t.Errorf("another collection: status %d", got)
	}
	e.enquiry("another collection")
}

var acquirer = card.Account{BaseURL: "https://acquirer.example", Merchant: "impots", Secret: "the-secret-of-impots"}

// signed returns the Authorization header of a report, as package card describes it.
func signed(secret string, when time.Time, body string) string {
	sum := sha256.Sum256([]byte(body))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(fmt.Appendf(nil, "report\nimpots\n%d\n%x", when.Unix(), sum))
	return fmt.Sprintf(`HMAC-SHA256 merchant="impots", timestamp="%d", signature="%x"`, when.Unix(), mac.Sum(nil))
}

func (e *edge) cardReport(status string) string {
	return `{"transaction_id":"T-991","reference":"` + e.collection + `","status":"` + status + `","amount":5075,"currency":"EUR"}`
}

func (e *edge) cardAddress() string {
	return connector.CallbackURL(e.keys, e.url, "card", e.session, e.collection)
}

func TestSignedReport(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 1000)
	// The policy of the session's agency travels with an approval.
	for status, want := range map[string]checkout.Outcome{
		"approved":              {Status: checkout.OutcomeApproved, Amount: 5075, Currency: "EUR", HonourLate: true},
		"declined":              {Status: checkout.OutcomeRefused, FailureCode: checkout.FailureCardDeclined},
		"authentication_failed": {Status: checkout.OutcomeRefused, FailureCode: checkout.FailureCardAuthentication},
		"abandoned":             {Status: checkout.OutcomeRefused, FailureCode: checkout.FailureCardAbandoned},
	} {
		body := e.cardReport(status)
		if got := e.callSigned(http.MethodPost, e.cardAddress(), body, signed(acquirer.Secret, at, body)); got != http.StatusOK {
			t.Errorf("%s: status %d", status, got)
		}
		want.CollectionID, want.Source, want.OperatorRef, want.Account = e.collection, checkout.SourceCallback, "T-991", acquirer.Fingerprint()
		if sent := e.outbox.take(); len(sent) != 1 || sent[0].Do != want {
			t.Errorf("%s: sent %+v, want %+v", status, sent, want)
		}
	}
	// So does the operator's date.
	body := strings.Replace(e.cardReport("approved"), "{", `{"approved_at":"2026-03-01T12:00:00Z",`, 1)
	if got := e.callSigned(http.MethodPost, e.cardAddress(), body, signed(acquirer.Secret, at, body)); got != http.StatusOK {
		t.Errorf("with a date: status %d", got)
	}
	if sent := e.outbox.take(); len(sent) != 1 || !sent[0].Do.(checkout.Outcome).HonourLate || !sent[0].Do.(checkout.Outcome).ApprovedAt.Equal(at) {
		t.Errorf("with a date: sent %+v", sent)
	}
	if want := "card " + e.session + " " + e.collection; len(e.asked) != 5 || e.asked[0] != want {
		t.Errorf("asked for the account of %q, want %q", e.asked, want)
	}
	body = e.cardReport("processing")
	if got := e.callSigned(http.MethodPost, e.cardAddress(), body, signed(acquirer.Secret, at, body)); got != http.StatusOK || len(e.outbox.take()) != 0 {
		t.Errorf("processing: status %d", got)
	}
	// A valid signature on the report of another collection.
	body = strings.ReplaceAll(e.cardReport("approved"), e.collection, uuid.NewString())
	if got := e.callSigned(http.MethodPost, e.cardAddress(), body, signed(acquirer.Secret, at, body)); got != http.StatusAccepted {
		t.Errorf("another collection: status %d", got)
	}
	e.enquiry("another collection")
}

// A report with a valid address and a wrong signature decides nothing. The acquirer gets
// 401.
func TestBadSignature(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 1000)
	body := e.cardReport("approved")
	for name, authorization := range map[string]string{
		"none": "", "another scheme": "Bearer x", "another secret": signed("another", at, body), "another body": signed(acquirer.Secret, at, body+" "),
		"old": signed(acquirer.Secret, at.Add(-6*time.Minute), body), "early": signed(acquirer.Secret, at.Add(6*time.Minute), body),
	} {
		if got := e.callSigned(http.MethodPost, e.cardAddress(), body, authorization); got != http.StatusUnauthorized {
			t.Errorf("%s: status %d, want 401", name, got)
		}
		e.enquiry(name)
	}
	if n := e.counted("card", "bad_signature"); n != 6 {
		t.Errorf("%v counted, want 6", n)
	}
	// The address is not valid at an operator that does not sign its reports.
	if got := e.call(http.MethodPut, strings.Replace(e.cardAddress(), "/card/", "/mtn/", 1), approved); got != http.StatusAccepted {
		t.Errorf("at another operator: status %d, want 202", got)
	}
	e.enquiry("at another operator")
	// A signature does not replace the address.
	address := e.cardAddress()
	if got := e.callSigned(http.MethodPost, address[:strings.LastIndex(address, "/")], body, signed(acquirer.Secret, at, body)); got != http.StatusAccepted {
		t.Errorf("without MAC: status %d, want 202", got)
	}
	e.enquiry("without MAC")
	for _, secret := range []string{acquirer.Secret, "another", address[strings.LastIndex(address, "/")+1:]} {
		if strings.Contains(e.log.String(), secret+`"`) || strings.Contains(e.log.String(), acquirer.Secret) {
			t.Errorf("the log holds %q: %s", secret, e.log)
		}
	}
	if !strings.Contains(e.log.String(), e.collection) {
		t.Error("the log does not tell of the signature")
	}
}

// While the account is unknown, a report causes an enquiry.
func TestAccountAway(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 1000)
	e.trouble = errors.New("the read model is behind")
	body := e.cardReport("approved")
	for _, authorization := range []string{signed(acquirer.Secret, at, body), ""} {
		if got := e.callSigned(http.MethodPost, e.cardAddress(), body, authorization); got != http.StatusAccepted {
			t.Errorf("status %d, want 202", got)
		}
		e.enquiry("no account")
	}
	if n := e.counted("card", "unverified"); n != 2 {
		t.Errorf("%v counted, want 2", n)
	}
	// The networks of an operator that does not sign its reports are unknown too.
	if got := e.call(http.MethodPut, e.address(), approved); got != http.StatusAccepted {
		t.Errorf("status %d", got)
	}
	e.enquiry("no networks")
}

// An address alone completes nothing, because addresses end up in logs: the operator is
// asked. The report decides if it also comes from the operator's own networks, directly or
// through a proxy that is known.
func TestReportFromAnotherNetwork(t *testing.T) {
	t.Parallel()
	const known, unknown = "127.0.0.1/32", "10.9.9.9/32"
	for name, c := range map[string]struct {
		networks  string
		proxy     string
		forwarded []string
		decides   bool
	}{
		"the operator itself":                    {networks: "127.0.0.0/8", decides: true},
		"no networks":                            {},
		"another network":                        {networks: "41.202.16.0/20"},
		"somebody claims to be the operator":     {networks: "41.202.16.0/20", forwarded: []string{"41.202.17.1"}},
		"an unknown proxy in such a network":     {networks: "127.0.0.0/8", forwarded: []string{"203.0.113.9"}},
		"the operator through the proxy":         {networks: "41.202.16.0/20", proxy: known, forwarded: []string{"41.202.17.1"}, decides: true},
		"in IPv6 notation":                       {networks: "41.202.16.0/20", proxy: known, forwarded: []string{"::ffff:41.202.17.1"}, decides: true},
		"somebody else through the proxy":        {networks: "41.202.16.0/20", proxy: known, forwarded: []string{"41.202.17.1, 203.0.113.9"}},
		"the proxy's own network":                {networks: "127.0.0.0/8", proxy: known, forwarded: []string{"203.0.113.9"}},
		"a proxy that names no caller":           {networks: "127.0.0.0/8", proxy: known},
		"through another proxy than the trusted": {networks: "41.202.16.0/20", proxy: unknown, forwarded: []string{"41.202.17.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var proxies []netip.Prefix
			if c.proxy != "" {
				proxies = []netip.Prefix{netip.MustParsePrefix(c.proxy)}
			}
			e := newEdge(t, 0, proxies...)
			e.networks = nil
			if c.networks != "" {
				e.networks = []netip.Prefix{netip.MustParsePrefix(c.networks)}
			}
			for _, body := range []string{approved, refused} {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, e.address(), strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				req.Header["X-Forwarded-For"] = c.forwarded
				resp, err := httpclient.Default.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
				if !c.decides {
					if resp.StatusCode != http.StatusAccepted {
						t.Errorf("status %d, want 202", resp.StatusCode)
					}
					e.enquiry(name)
					continue
				}
				sent := e.outbox.take()
				if len(sent) != 1 || resp.StatusCode != http.StatusOK {
					t.Fatalf("status %d, sent %+v", resp.StatusCode, sent)
				}
				if o, ok := sent[0].Do.(checkout.Outcome); !ok || o.Source != checkout.SourceCallback {
					t.Errorf("sent %+v, want a decision", sent)
				}
			}
			if n := e.counted("mtn", "other_network"); n != map[bool]float64{false: 2}[c.decides] {
				t.Errorf("%v are counted", n)
			}
		})
	}
}

// A flood of wrongly signed reports is refused and causes few enquiries.
func TestFloodOfBadSignatures(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 5)
	for range 50 {
		if got := e.call(http.MethodPost, e.cardAddress(), e.cardReport("approved")); got != http.StatusUnauthorized {
			t.Fatalf("status %d, want 401", got)
		}
	}
	if sent := len(e.outbox.take()); sent == 0 || sent > 10 {
		t.Errorf("%d enquiries of 50 reports", sent)
	}
	if n := e.counted("card", "bad_signature"); n != 50 {
		t.Errorf("%v counted, want 50", n)
	}
}

// counted returns the metric of an operator's reports with the outcome.
func (e *edge) counted(operator, outcome string) float64 {
	e.t.Helper()
	families, err := e.metrics.Gather()
	if err != nil {
		e.t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if family.GetName() == "quittance_callbacks_total" && labels["operator"] == operator && labels["outcome"] == outcome {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// A forged report completes nothing. The operator is asked.
func TestForgedReport(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 1000)
	address := e.address()
	mac := address[strings.LastIndex(address, "/")+1:]
	unsigned := strings.TrimSuffix(address, "/"+mac)
	other := connector.CallbackURL(secret.GenerateKeys(), e.url, "mtn", e.session, e.collection)
	elsewhere := connector.CallbackURL(e.keys, e.url, "mtn", e.session, uuid.NewString())
	for name, url := range map[string]string{
		"without MAC":          unsigned,
		"with another key":     other,
		"MAC of another":       unsigned + elsewhere[strings.LastIndex(elsewhere, "/"):],
		"shortened MAC":        address[:len(address)-1],
		"not base64":           unsigned + "/%21%21",
		"longer than any MAC":  unsigned + "/" + strings.Repeat("A", 500),
		"an empty byte as MAC": unsigned + "/%00",
	} {
		if status := e.call(http.MethodPut, url, approved); status != http.StatusAccepted {
			t.Errorf("%s: status %d, want 202", name, status)
		}
		e.enquiry(name)
	}
}

func TestUnreadableReport(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 0)
	for _, body := range []string{
		"", "{", "null", `{"status":"PAID"}`, `{"status":["SUCCESSFUL"]}`, approved + approved,
		strings.Replace(approved, "{", `{"referenceId":"`+uuid.NewString()+`",`, 1),
	} {
		if status := e.call(http.MethodPut, e.address(), body); status != http.StatusAccepted {
			t.Errorf("%.40q: status %d, want 202", body, status)
		}
		e.enquiry(body)
	}
	if status := e.call(http.MethodPut, e.address(), strings.Repeat(" ", 65<<10)); status != http.StatusRequestEntityTooLarge {
		t.Errorf("oversize: status %d", status)
	}
	// A report with an unreadable amount has no amount, which matches no collection.
	if status := e.call(http.MethodPut, e.address(), strings.Replace(approved, "5075", "5e3", 1)); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	if sent := e.outbox.take(); len(sent) != 1 || sent[0].Do.(checkout.Outcome).Amount != 0 {
		t.Errorf("sent %+v", sent)
	}
	for _, secret := range []string{number, "066000001", e.session, e.address()[strings.LastIndex(e.address(), "/")+1:]} {
		if strings.Contains(e.log.String(), secret) {
			t.Errorf("the log holds %q: %s", secret, e.log)
		}
	}
	if !strings.Contains(e.log.String(), e.collection) {
		t.Error("the log does not tell of the unreadable report")
	}
}

func TestNoSuchAddress(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 1000)
	for _, path := range []string{
		"/callbacks/mtn/chs_x/" + e.collection + "/AAAA",
		"/callbacks/mtn/" + e.session[:len(e.session)-10] + "0123456789/" + e.collection + "/AAAA", // another MAC
		"/callbacks/mtn/" + e.session + "/1/AAAA",
		"/callbacks/mtn/" + e.session + "/" + strings.ToUpper(e.collection) + "X/AAAA",
		"/callbacks/mtn/" + e.session + "/{" + e.collection + "}/AAAA",
		"/callbacks/nobody/" + e.session + "/" + e.collection + "/AAAA",
	} {
		if status := e.call(http.MethodPut, e.url+path, approved); status != http.StatusNotFound {
			t.Errorf("%s: status %d, want 404", path, status)
		}
	}
	if sent := e.outbox.take(); len(sent) != 0 {
		t.Errorf("sent %+v", sent)
	}
}

// An operator reports all its payments from a few addresses: the limit of a client does not
// apply to addresses that we made.
func TestReportsAreNotLimited(t *testing.T) {
	t.Parallel()
	e := newLimitedEdge(t, 1000, 0.001)
	for range 5 {
		if status := e.call(http.MethodPut, e.address(), approved); status != http.StatusOK {
			t.Errorf("status %d, want 200", status)
		}
	}
	unproven := e.address()[:strings.LastIndex(e.address(), "/")] + "/AAAA"
	statuses := map[int]int{}
	for range 50 {
		statuses[e.call(http.MethodPut, unproven, approved)]++
	}
	if statuses[http.StatusAccepted] == 0 || statuses[http.StatusTooManyRequests] < 20 || len(statuses) != 2 {
		t.Errorf("statuses %v of an address that we did not make, want some 202, as the session is ours, and then 429", statuses)
	}
}

// While the broker is unavailable, the operator is told to report again.
func TestBrokerAway(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 1000)
	e.outbox.fail(errors.New("no broker"))
	unsigned := e.address()[:strings.LastIndex(e.address(), "/")]
	for _, url := range []string{e.address(), unsigned} {
		if status := e.call(http.MethodPut, url, approved); status != http.StatusServiceUnavailable {
			t.Errorf("status %d, want 503", status)
		}
	}
	e.outbox.fail(nil)
	if status := e.call(http.MethodPut, e.address(), approved); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	e.outbox.fail(checkout.ErrMalformedID) // a partition that this installation does not have
	if status := e.call(http.MethodPut, e.address(), approved); status != http.StatusNotFound {
		t.Errorf("status %d, want 404", status)
	}
}

// A flood of forged reports is refused. A real report passes at the same time.
func TestFloodIsShed(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 5) // half a report a second for each caller
	forged := e.address()[:strings.LastIndex(e.address(), "/")] + "/AAAA"
	shed := 0
	for range 50 {
		if e.call(http.MethodPut, forged, approved) == http.StatusTooManyRequests {
			shed++
		}
	}
	if sent := len(e.outbox.take()); shed < 40 || sent+shed != 50 {
		t.Errorf("%d of 50 shed, %d sent", shed, sent)
	}
	if status := e.call(http.MethodPut, e.address(), approved); status != http.StatusOK {
		t.Errorf("the real report: status %d", status)
	}
}
