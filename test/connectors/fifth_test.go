package connectors_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/checkout"
	"quittance/internal/connector"
	"quittance/internal/form"
	"quittance/internal/postgres"
	"quittance/internal/registry"
	"quittance/internal/registryfile"
	"quittance/internal/secret"
	"quittance/test/connectors"
	"quittance/test/registries"
	"quittance/test/servers"
)

// fifth is an operator that only this file knows. It has an existing offer, in a table of
// its own.
var fifth = connector.Registration{
	Operator: "fifth",
	Offer:    checkout.OfferMomo,
	USSD:     "*555#",
	Account: func(base connector.BaseURL, f connector.Fields) connector.Account {
		return fifthAccount{BaseURL: base, Till: f.Text("till"), Pass: f.Secret("pass").Reveal()}
	},
	Simulated: func(_, agencySlug string) map[string]string {
		return map[string]string{"till": agencySlug, "pass": "simulator"}
	},
	New: func(cfg connector.Config) (connector.Connector, error) {
		base, err := connector.NewBase[fifthAccount]("fifth", cfg, nil)
		return &fifthConnector{base}, err
	},
}

type fifthAccount struct {
	connector.BaseURL
	Till, Pass string
}

func (a fifthAccount) Fingerprint() string { return connector.Fingerprint("fifth", "", a.Till) }

type fifthConnector struct{ *connector.Base[fifthAccount] }

// payment is the body of requests and answers.
type payment struct {
	ID       string `json:"id"`
	Payer    string `json:"payer,omitempty"`
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
	State    string `json:"state,omitempty"`
}

func (c *fifthConnector) Payer(input string) (string, error) {
	return connector.CongoPayer(input, "06")
}

func (c *fifthConnector) Collect(ctx context.Context, account connector.Account, r connector.Request) (connector.Outcome, error) {
	const doing = "requesting payment"
	body, err := json.Marshal(payment{ID: r.ID, Payer: r.Payer, Amount: r.Amount, Currency: r.Currency})
	if err != nil {
		return connector.Outcome{}, connector.Malformed(doing, err)
	}
	a, err := c.call(ctx, account, connector.Call{Doing: doing, Method: http.MethodPut, Path: "/payments/" + r.ID, Body: body})
	switch {
	case err != nil:
		return connector.Outcome{}, err
	case a.Status != http.StatusAccepted:
		return connector.Outcome{}, a.Fault(doing, true, "")
	}
	return connector.Outcome{Status: checkout.OutcomePending}, nil
}

func (c *fifthConnector) Enquire(ctx context.Context, account connector.Account, ref connector.Reference) (connector.Outcome, error) {
	const doing = "asking about a payment"
	a, err := c.call(ctx, account, connector.Call{Doing: doing, Method: http.MethodGet, Path: "/payments/" + ref.ID})
	switch {
	case err != nil:
		return connector.Outcome{}, err
	case a.Status != http.StatusOK:
		return connector.Outcome{}, a.Fault(doing, false, "")
	}
	r, err := c.ParseReport(nil, a.Body)
	if err != nil {
		return connector.Outcome{}, connector.Malformed(doing, err)
	}
	return r.Outcome, nil
}

func (c *fifthConnector) ParseReport(_ http.Header, body []byte) (connector.Report, error) {
	var p payment
	if connector.DecodeReport(body, &p) != nil {
		return connector.Report{}, connector.ErrReport
	}
	o := connector.Outcome{Amount: p.Amount, Currency: p.Currency, OperatorRef: "F-" + p.ID}
	switch p.State {
	case "paid":
		o.Status = checkout.OutcomeApproved
	case "refused":
		o.Status, o.FailureCode = checkout.OutcomeRefused, checkout.FailureRejected
	case "open":
		o.Status = checkout.OutcomePending
	case "none":
		o.Status = checkout.OutcomeUnknown
	default:
		return connector.Report{}, connector.ErrReport
	}
	return connector.Report{ID: p.ID, Outcome: o}, nil
}

func (c *fifthConnector) call(ctx context.Context, account connector.Account, q connector.Call) (connector.Answer, error) {
	own, err := c.Own(account)
	if err != nil {
		return connector.Answer{}, err
	}
	q.Header = map[string]string{"Authorization": own.Till + " " + own.Pass}
	return c.Do(ctx, own, q)
}

// playFifth plays the operator. Payers with a number that ends in 1 pay, in 4 refuse.
func playFifth(*testing.T) connectors.Standin {
	var mu sync.Mutex
	payments := map[string]payment{}
	return connectors.Standin{
		Collections: func(id string) int {
			mu.Lock()
			defer mu.Unlock()
			if _, ok := payments[id]; ok {
				return 1
			}
			return 0
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			id := r.URL.Path[len("/payments/"):]
			p, known := payments[id]
			switch {
			case r.Header.Get("Authorization") != "till-7 the-pass":
				w.WriteHeader(http.StatusUnauthorized)
			case r.Method == http.MethodPut:
				if !known && json.NewDecoder(r.Body).Decode(&p) == nil {
					p.State = map[byte]string{'1': "paid", '4': "refused"}[p.Payer[len(p.Payer)-1]]
					payments[id] = p
				}
				w.WriteHeader(http.StatusAccepted)
			case !known:
				_ = json.NewEncoder(w).Encode(payment{State: "none"})
			default:
				if p.State == "" {
					p.State = "open"
				}
				_ = json.NewEncoder(w).Encode(p)
			}
		}),
	}
}

// A fifth operator passes the suite.
func TestFifthOperator(t *testing.T) {
	t.Parallel()
	connectors.Run(t, fifth, connectors.Operator{
		Standin: playFifth,
		Fields:  map[string]string{"till": "till-7", "pass": "the-pass"},
		Wrong:   map[string]string{"till": "till-7", "pass": "another"},
		Asks:    func(r *http.Request) bool { return r.Method == http.MethodPut },
		Enquires: func(r *http.Request) bool {
			return r.Method == http.MethodGet
		},
		Approves:  "06 600 00 01",
		Waits:     "06 600 00 03",
		Refuses:   map[string]checkout.FailureCode{"06 600 00 04": checkout.FailureRejected},
		Malformed: []string{"", "05 500 00 01"},
		Claims: func(id string) (int, string) {
			return http.StatusAccepted, fmt.Sprintf(`{"id":%q,"state":"paid","amount":5075,"currency":"XAF"}`, id)
		},
		Report: func(id string, amount int64, currency string) []byte {
			return fmt.Appendf(nil, `{"id":%q,"state":"paid","amount":%d,"currency":%q}`, id, amount, currency)
		},
	})
}

// The registry reads, seals and opens accounts of an operator by its registration alone.
func TestFifthOperatorInTheRegistry(t *testing.T) {
	t.Parallel()
	const agency = "018f0000-0000-7000-8000-000000000001"
	dsn := servers.Migrated(t)
	pool, err := postgres.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	base := connectors.Serve(t, &connectors.Faults{}, playFifth(t))
	keys, table := secret.GenerateKeys(), connector.Table{fifth}
	text := fmt.Sprintf("agencies: [{id: %s, slug: impots, name: Impôts, connectors: {test: {momo: {base_url: %q, till: till-7, pass: the-pass}}}}]", agency, string(base))
	if _, err := registryfile.Apply(t.Context(), pool, registries.Actor, []byte(text), registryfile.Options{Keys: keys, Developer: true, Operators: table}); err != nil {
		t.Fatal(err)
	}
	known, err := registry.Open(t.Context(), registry.Config{Pool: pool, Keys: keys, Log: servers.Logger(t), Now: time.Now, Operators: table})
	if err != nil {
		t.Fatal(err)
	}
	account, ok := known.MerchantAccount(agency, false, fifth.Offer)
	if !ok || account.Account != (fifthAccount{BaseURL: base, Till: "till-7", Pass: "the-pass"}) {
		t.Fatalf("account %+v, %v", account, ok)
	}
	all, err := table.Connect(connectors.Config())
	if err != nil {
		t.Fatal(err)
	}
	request := connector.Request{ID: uuid.NewString(), Payer: "242066000001", Amount: 5075, Currency: "XAF"}
	if o, err := all[fifth.Offer].Collect(t.Context(), account.Account, request); err != nil || o.Status != checkout.OutcomePending {
		t.Errorf("%+v, %v", o, err)
	}

	var faults *form.FaultsError
	_, err = registryfile.Apply(t.Context(), pool, registries.Actor, []byte("agencies: [{id: "+agency+", slug: impots, name: Impôts, connectors: {test: {momo: {base_url: \"http://127.0.0.1:9\", api_user: u}}}}]"),
		registryfile.Options{Keys: keys, Developer: true, Operators: table})
	if !errors.As(err, &faults) || len(faults.Faults) != 3 {
		t.Errorf("an account of another operator's fields: %v", err)
	}
}
