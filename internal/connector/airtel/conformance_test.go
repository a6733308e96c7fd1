package airtel_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/dev/simulator"
	"quittance/internal/connector"
	"quittance/internal/connector/airtel"
	"quittance/test/connectors"
)

func now() time.Time { return time.Now().UTC() }

func isRequest(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, "/merchant/v1/payments/")
}

func isEnquiry(r *http.Request) bool { return strings.Contains(r.URL.Path, "/standard/v1/payments/") }
func isToken(r *http.Request) bool   { return strings.HasSuffix(r.URL.Path, "/token") }

func account(base connector.BaseURL) airtel.Account {
	return airtel.Account{BaseURL: base, ClientID: "client-id", ClientSecret: "client-secret"}
}

// accepts makes the simulator accept only the account.
func accepts(c *simulator.Config) {
	c.Airtel = func(id, secret string) bool { return id == "client-id" && secret == "client-secret" }
}

// bare returns our id without dashes, as Airtel uses it.
func bare(id string) string { return strings.ReplaceAll(id, "-", "") }

// operator runs the simulator behind faults and returns its address.
func operator(t *testing.T, faults *connectors.Faults, configure ...func(*simulator.Config)) connector.BaseURL {
	t.Helper()
	return connectors.Serve(t, faults, connectors.Simulators(t, airtel.Operator, append(configure, accepts)...))
}

func newConnector(t *testing.T) *airtel.Connector {
	t.Helper()
	c, err := airtel.New(connectors.Config())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestConformance(t *testing.T) {
	t.Parallel()
	connectors.Run(t, airtel.Registration, connectors.Operator{
		Standin: func(t *testing.T) connectors.Standin { return connectors.Simulators(t, airtel.Operator, accepts) },
		Fields:  map[string]string{"client_id": "client-id", "client_secret": "client-secret"},
		Wrong:   map[string]string{"client_id": "client-id", "client_secret": "another-secret"},
		Asks:    isRequest, Enquires: isEnquiry, Tokens: true,
		Approves: "05 500 00 01", Waits: "05 500 00 03",
		Refuses: map[string]checkout.FailureCode{
			"05 500 00 04": checkout.FailureRejected,
			"05 500 00 05": checkout.FailureInsufficientFunds,
			"05 500 00 06": checkout.FailurePayerLimitReached,
			"05 500 00 07": checkout.FailurePayerNotFound,
			"05 500 00 13": checkout.FailureWrongPIN,
		},
		Malformed: []string{"", "05", "06 600 00 01", "01 100 00 01", "05 500 00 0", "05 500 00 011", "+33 5 50 00 00 01", "zero five"},
		Claims: func(id string) (int, string) {
			return http.StatusOK, fmt.Sprintf(`{"data":{"transaction":{"id":%q,"status":"TS","airtel_money_id":"MP1"}},
					"status":{"code":"200","message":"SUCCESS","result_code":"ESB000010","response_code":"DP00800001001","success":true}}`, bare(id))
		},
		Report: func(id string, amount int64, currency string) []byte {
			return fmt.Appendf(nil, `{"transaction":{"id":%q,"message":"Paid %s %d to TRESOR, Trans ID MP210603.1234.L06941.",
					"status_code":"TS","airtel_money_id":"MP210603.1234.L06941"},"hash":"zITVAAGYSlzl1WkUQJn81kbpT5drH3koffT8jCkcJJA="}`, bare(id), currency, amount)
		},
	})
}
