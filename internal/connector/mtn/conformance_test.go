package mtn_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/dev/simulator"
	"quittance/internal/connector"
	"quittance/internal/connector/mtn"
	"quittance/money"
	"quittance/test/connectors"
)

func now() time.Time { return time.Now().UTC() }

func isRequest(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/requesttopay") }
func isEnquiry(r *http.Request) bool { return strings.Contains(r.URL.Path, "/requesttopay/") }
func isToken(r *http.Request) bool   { return strings.HasSuffix(r.URL.Path, "/token/") }

func account(base connector.BaseURL) mtn.Account {
	return mtn.Account{
		BaseURL: base, TargetEnvironment: "mtncongo", SubscriptionKey: "subscription-key", APIUser: "api-user", APIKey: "api-key",
	}
}

// accepts makes the simulator accept only the account.
func accepts(c *simulator.Config) {
	c.MTN = func(key, user, secret string) bool {
		return key == "subscription-key" && user == "api-user" && secret == "api-key"
	}
}

// operator runs the simulator behind faults and returns its address.
func operator(t *testing.T, faults *connectors.Faults, configure ...func(*simulator.Config)) connector.BaseURL {
	t.Helper()
	return connectors.Serve(t, faults, connectors.Simulators(t, mtn.Operator, append(configure, accepts)...))
}

func newConnector(t *testing.T) *mtn.Connector {
	t.Helper()
	c, err := mtn.New(connectors.Config())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestConformance(t *testing.T) {
	t.Parallel()
	fields := map[string]string{"target_environment": "mtncongo", "subscription_key": "subscription-key", "api_user": "api-user", "api_key": "api-key"}
	wrong := maps.Clone(fields)
	wrong["api_key"] = "another-key"
	connectors.Run(t, mtn.Registration, connectors.Operator{
		Standin: func(t *testing.T) connectors.Standin { return connectors.Simulators(t, mtn.Operator, accepts) },
		Fields:  fields, Wrong: wrong, Asks: isRequest, Enquires: isEnquiry, Tokens: true,
		Approves: "06 600 00 01", Waits: "06 600 00 03",
		Refuses: map[string]checkout.FailureCode{
			"06 600 00 04": checkout.FailureRejected,
			"06 600 00 05": checkout.FailureInsufficientFunds,
			"06 600 00 06": checkout.FailurePayerLimitReached,
			"06 600 00 07": checkout.FailurePayerNotFound,
			"06 600 00 13": checkout.FailureRejected,
		},
		Malformed: []string{"", "06", "05 500 00 01", "04 400 00 01", "06 600 00 0", "06 600 00 011", "+33 6 60 00 00 01", "zero six"},
		Claims: func(string) (int, string) {
			return http.StatusAccepted, `{"amount":"5075","currency":"XAF","financialTransactionId":"1","status":"SUCCESSFUL"}`
		},
		Report: func(_ string, amount int64, currency string) []byte {
			c, _ := money.Lookup(currency)
			return fmt.Appendf(nil, `{"financialTransactionId":"1","externalId":"2","amount":%q,"currency":%q,
					"payer":{"partyIdType":"MSISDN","partyId":"242066000001"},"status":"SUCCESSFUL"}`, c.Decimal(amount), currency)
		},
	})
}
