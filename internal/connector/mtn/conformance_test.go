package mtn_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/checkout/money"
	"quittance/dev/simulator"
	"quittance/internal/connector"
	"quittance/internal/connector/mtn"
	"quittance/test/connectors"
	"quittance/test/servers"
)

// client is the tests' own: a test server that closes takes the connections of
// the default one with it, those of tests beside it too.
var client = &http.Client{Transport: &http.Transport{}}

func now() time.Time { return time.Now().UTC() }

func isRequest(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/requesttopay") }
func isEnquiry(r *http.Request) bool { return strings.Contains(r.URL.Path, "/requesttopay/") }
func isToken(r *http.Request) bool   { return strings.HasSuffix(r.URL.Path, "/token/") }

func account(base string) connector.Account {
	return connector.Account{
		BaseURL: base, TargetEnvironment: "mtncongo", SubscriptionKey: "subscription-key", APIUser: "api-user", APIKey: "api-key",
	}
}

// operator runs the simulator behind faults and returns its address.
func operator(t *testing.T, faults *connectors.Faults, configure ...func(*simulator.Config)) string {
	t.Helper()
	cfg := simulator.Config{
		Now: now, Log: servers.Logger(t), ApprovalDelay: 300 * time.Millisecond, AmbiguousDelay: 300 * time.Millisecond,
		ApprovalWindow: 500 * time.Millisecond, LateDelay: 100 * time.Millisecond, Poll: 20 * time.Millisecond,
		MTN: func(key, user, secret string) bool {
			return key == "subscription-key" && user == "api-user" && secret == "api-key"
		},
	}
	for _, f := range configure {
		f(&cfg)
	}
	s, err := simulator.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	server := httptest.NewServer(faults.Handler(s.Handler()))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return server.URL
}

func newConnector(t *testing.T) *mtn.Connector {
	t.Helper()
	c, err := mtn.New(mtn.Config{Now: now, Timeout: time.Second, EnquiriesPerSecond: 100})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestConformance(t *testing.T) {
	t.Parallel()
	connectors.Run(t, func(t *testing.T) connectors.Target {
		faults := &connectors.Faults{}
		base := operator(t, faults)
		wrong := account(base + "/mtn")
		wrong.APIKey = "another-key"
		return connectors.Target{
			Connector: newConnector(t), Account: account(base + "/mtn"), Wrong: wrong,
			Faults: faults, Asks: isRequest, Enquires: isEnquiry, Tokens: true,
			Approves: "06 600 00 01", Waits: "06 600 00 03",
			Refuses: map[string]checkout.FailureCode{
				"06 600 00 04": checkout.FailureRejected,
				"06 600 00 05": checkout.FailureInsufficientFunds,
				"06 600 00 06": checkout.FailurePayerLimitReached,
				"06 600 00 07": checkout.FailurePayerNotFound,
				"06 600 00 13": checkout.FailureRejected,
			},
			Malformed:   []string{"", "06", "05 500 00 01", "04 400 00 01", "06 600 00 0", "06 600 00 011", "+33 6 60 00 00 01", "zero six"},
			Collections: func(t *testing.T, id string) int { return collections(t, base, id) },
			Claims: func(string) (int, string) {
				return http.StatusAccepted, `{"amount":"5075","currency":"XAF","financialTransactionId":"1","status":"SUCCESSFUL"}`
			},
			Report: func(_ string, amount int64, currency string) []byte {
				c, _ := money.Lookup(currency)
				return fmt.Appendf(nil, `{"financialTransactionId":"1","externalId":"2","amount":%q,"currency":%q,
					"payer":{"partyIdType":"MSISDN","partyId":"242066000001"},"status":"SUCCESSFUL"}`, c.Decimal(amount), currency)
			},
		}
	})
}

// collections asks the simulator how many collections it has of an id.
func collections(t *testing.T, base, id string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/control/collections", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var all []struct {
		ID string `json:"id"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&all); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, c := range all {
		if c.ID == id {
			n++
		}
	}
	return n
}
