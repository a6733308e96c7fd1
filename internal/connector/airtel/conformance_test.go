package airtel_test

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
	"quittance/dev/simulator"
	"quittance/internal/connector"
	"quittance/internal/connector/airtel"
	"quittance/test/connectors"
	"quittance/test/servers"
)

// client is the tests' own: a test server that closes takes the connections of
// the default one with it, those of tests beside it too.
var client = &http.Client{Transport: &http.Transport{}}

func now() time.Time { return time.Now().UTC() }

func isRequest(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, "/merchant/v1/payments/")
}

func isEnquiry(r *http.Request) bool { return strings.Contains(r.URL.Path, "/standard/v1/payments/") }
func isToken(r *http.Request) bool   { return strings.HasSuffix(r.URL.Path, "/token") }

func account(base string) connector.Account {
	return connector.Account{BaseURL: base, ClientID: "client-id", ClientSecret: "client-secret"}
}

// bare is our id as Airtel has it.
func bare(id string) string { return strings.ReplaceAll(id, "-", "") }

// operator runs the simulator behind faults and returns its address.
func operator(t *testing.T, faults *connectors.Faults, configure ...func(*simulator.Config)) string {
	t.Helper()
	cfg := simulator.Config{
		Now: now, Log: servers.Logger(t), ApprovalDelay: 300 * time.Millisecond, AmbiguousDelay: 300 * time.Millisecond,
		ApprovalWindow: 500 * time.Millisecond, LateDelay: 100 * time.Millisecond, Poll: 20 * time.Millisecond,
		Airtel: func(id, secret string) bool { return id == "client-id" && secret == "client-secret" },
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

func newConnector(t *testing.T) *airtel.Connector {
	t.Helper()
	c, err := airtel.New(airtel.Config{Now: now, Timeout: time.Second, EnquiriesPerSecond: 100})
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
		wrong := account(base + "/airtel")
		wrong.ClientSecret = "another-secret"
		return connectors.Target{
			Connector: newConnector(t), Account: account(base + "/airtel"), Wrong: wrong,
			Faults: faults, Asks: isRequest, Enquires: isEnquiry, Tokens: true,
			Approves: "05 500 00 01", Waits: "05 500 00 03",
			Refuses: map[string]checkout.FailureCode{
				"05 500 00 04": checkout.FailureRejected,
				"05 500 00 05": checkout.FailureInsufficientFunds,
				"05 500 00 06": checkout.FailurePayerLimitReached,
				"05 500 00 07": checkout.FailurePayerNotFound,
				"05 500 00 13": checkout.FailureWrongPIN,
			},
			Malformed:   []string{"", "05", "06 600 00 01", "01 100 00 01", "05 500 00 0", "05 500 00 011", "+33 5 50 00 00 01", "zero five"},
			Collections: func(t *testing.T, id string) int { return collections(t, base, bare(id)) },
			Claims: func(id string) (int, string) {
				return http.StatusOK, fmt.Sprintf(`{"data":{"transaction":{"id":%q,"status":"TS","airtel_money_id":"MP1"}},
					"status":{"code":"200","message":"SUCCESS","result_code":"ESB000010","response_code":"DP00800001001","success":true}}`, bare(id))
			},
			Report: func(id string, amount int64, currency string) []byte {
				return fmt.Appendf(nil, `{"transaction":{"id":%q,"message":"Paid %s %d to TRESOR, Trans ID MP210603.1234.L06941.",
					"status_code":"TS","airtel_money_id":"MP210603.1234.L06941"},"hash":"zITVAAGYSlzl1WkUQJn81kbpT5drH3koffT8jCkcJJA="}`, bare(id), currency, amount)
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
