package card_test

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/dev/simulator"
	"quittance/internal/connector"
	"quittance/internal/connector/card"
	"quittance/test/connectors"
)

// client has its own transport. A test server that closes also closes the idle connections
// of the default transport, which parallel tests use. client does not follow redirects.
var client = &http.Client{
	Transport:     &http.Transport{},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func now() time.Time { return time.Now().UTC() }

func isRequest(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/v1/transactions") }
func isEnquiry(r *http.Request) bool { return strings.Contains(r.URL.Path, "/v1/transactions/") }

func account(base connector.BaseURL) card.Account {
	return card.Account{BaseURL: base, Merchant: "impots", Secret: "the-secret-of-impots", ReportSecret: "the-secret-of-reports"}
}

// accepts makes the simulator accept only the account.
func accepts(c *simulator.Config) {
	c.Card = func(merchant string) (requests, reports string, ok bool) {
		return "the-secret-of-" + merchant, "the-secret-of-reports", merchant == "impots"
	}
}

// operator runs the simulator behind faults and returns its address.
func operator(t *testing.T, faults *connectors.Faults, configure ...func(*simulator.Config)) connector.BaseURL {
	t.Helper()
	return connectors.Serve(t, faults, connectors.Simulators(t, card.Operator, append(configure, accepts)...))
}

// nobody is a payer who does not visit the page.
const nobody = "nobody"

// visit presses a button of the page or pays with a card number.
func visit(t *testing.T, redirect connector.Redirect, payer string) {
	t.Helper()
	if payer == nobody {
		return
	}
	u, err := url.Parse(redirect.URL)
	if err != nil {
		t.Fatal(err)
	}
	form := url.Values{"token": {u.Query().Get("token")}, "action": {payer}}
	if strings.Trim(payer, "0123456789 ") == "" {
		form.Set("action", "pay")
		form.Set("card", payer)
	}
	u.RawQuery = ""
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u.String(), strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusSeeOther || !strings.HasSuffix(resp.Header.Get("Location"), "/c/hush") {
		t.Fatalf("%s: %s to %q", payer, resp.Status, resp.Header.Get("Location"))
	}
}

// signReport follows the documentation of the package, not its code.
func signReport(account connector.Account, at time.Time, body []byte) http.Header {
	a, _ := account.(card.Account)
	timestamp := strconv.FormatInt(at.Unix(), 10)
	sum := sha256.Sum256(body)
	mac := hmac.New(sha256.New, []byte(cmp.Or(a.ReportSecret, a.Secret)))
	mac.Write([]byte("report\n" + a.Merchant + "\n" + timestamp + "\n" + hex.EncodeToString(sum[:])))
	return http.Header{"Authorization": {fmt.Sprintf(
		`HMAC-SHA256 merchant="%s", timestamp="%s", signature="%x"`, a.Merchant, timestamp, mac.Sum(nil))}}
}

func report(id, status string, amount int64, currency string) []byte {
	return fmt.Appendf(nil, `{"transaction_id":"T-991","reference":%q,"status":%q,"amount":%d,"currency":%q}`, id, status, amount, currency)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	answer := func(id, status, address string) string {
		body, err := json.Marshal(map[string]string{
			"transaction_id": "T-991", "reference": id, "status": status, "url": address, "client_token": "token", "checkout_environment": "live",
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	connectors.Run(t, card.Registration, connectors.Operator{
		Standin: func(t *testing.T) connectors.Standin { return connectors.Simulators(t, card.Operator, accepts) },
		Fields:  map[string]string{"merchant": "impots", "secret": "the-secret-of-impots", "report_secret": "the-secret-of-reports"},
		Wrong:   map[string]string{"merchant": "impots", "secret": "another-secret", "report_secret": "another-secret"},
		Asks:    isRequest, Enquires: isEnquiry,
		Approves: "4000 0000 0000 0001", Waits: nobody, Visit: visit, Sign: signReport,
		Refuses: map[string]checkout.FailureCode{
			"decline":             checkout.FailureCardDeclined,
			"fail_authentication": checkout.FailureCardAuthentication,
			"abandon":             checkout.FailureCardAbandoned,
			"4000 0000 0000 0004": checkout.FailureCardDeclined,
			"4000 0000 0000 0005": checkout.FailureCardDeclined,
			"4000 0000 0000 0013": checkout.FailureCardAuthentication,
			"4000 0000 0000 0014": checkout.FailureCardAbandoned,
		},
		Claims: func(id string) (int, string) {
			return http.StatusCreated, answer(id, "approved", "https://pay.example/T-991")
		},
		Redirects: func(id, address string) (int, string) {
			return http.StatusCreated, answer(id, "pending", address)
		},
		Report: func(id string, amount int64, currency string) []byte { return report(id, "approved", amount, currency) },
	})
}
