package connectors_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/checkout"
	"quittance/internal/connector"
	"quittance/internal/contact"
	"quittance/internal/form"
	"quittance/internal/postgres"
	"quittance/internal/registry"
	"quittance/internal/registryfile"
	"quittance/internal/secret"
	"quittance/test/connectors"
	"quittance/test/registries"
	"quittance/test/servers"
)

// fifth is an operator that only this file knows.
var fifth = operator("fifth")

// operator returns a registration of that name, which is also the name of its accounts.
func operator(name string) connector.Registration {
	return connector.Registration{Operator: name, Collector: &connector.Collector{
		Account: connector.AccountType{
			Name: name,
			Read: func(base connector.BaseURL, f connector.Fields) connector.Account {
				return fifthAccount{BaseURL: base, Till: f.Text("till"), Pass: f.Secret("pass").Reveal()}
			},
			Simulated: func(_, agencySlug string) map[string]string {
				return map[string]string{"till": agencySlug, "pass": "simulator"}
			},
		},
		USSD: "*555#",
		New: func(cfg connector.Config) (connector.Connector, error) {
			base, err := connector.NewBase[fifthAccount](name, cfg, nil)
			return &fifthConnector{base}, err
		},
	}}
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
	return contact.MobileOf(input, "06")
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

// registryOf applies registry files to a database of its own, and reads them, for a table of
// operators.
type registryOf struct {
	*testing.T
	connector.Table
	pool *pgxpool.Pool
	keys *secret.Keys
}

func newRegistry(t *testing.T, table connector.Table) registryOf {
	t.Helper()
	pool, err := postgres.Open(t.Context(), servers.Migrated(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return registryOf{t, table, pool, secret.GenerateKeys()}
}

const agency = "018f0000-0000-7000-8000-000000000001"

// apply applies a file of one agency.
func (r registryOf) apply(rest string, args ...any) error {
	text := "agencies: [{id: " + agency + ", slug: impots, name: Impôts, " + fmt.Sprintf(rest, args...) + "}]"
	_, err := registryfile.Apply(r.Context(), r.pool, registries.Actor, []byte(text), registryfile.Options{Keys: r.keys, Developer: true, Operators: r.Table})
	return err
}

// open reads what the files say.
func (r registryOf) open() *registry.Registry {
	r.Helper()
	known, err := registry.Open(r.Context(), registry.Config{Pool: r.pool, Keys: r.keys, Log: servers.Logger(r.T), Now: time.Now, Operators: r.Table})
	if err != nil {
		r.Fatal(err)
	}
	return known
}

// The registry reads, seals and opens accounts of an operator by its registration alone.
func TestFifthOperatorInTheRegistry(t *testing.T) {
	t.Parallel()
	base := connectors.Serve(t, &connectors.Faults{}, playFifth(t))
	table := connector.Table{Operators: []connector.Registration{fifth}, Offers: map[string]string{checkout.OfferMomo: "fifth"}}
	r := newRegistry(t, table)
	if err := r.apply("connectors: {test: {fifth: {base_url: %q, till: till-7, pass: the-pass}}}", string(base)); err != nil {
		t.Fatal(err)
	}
	account, ok := r.open().MerchantAccount(agency, false, checkout.OfferMomo)
	if !ok || account.Account != (fifthAccount{BaseURL: base, Till: "till-7", Pass: "the-pass"}) {
		t.Fatalf("account %+v, %v", account, ok)
	}
	all, err := table.Connect(connectors.Config())
	if err != nil {
		t.Fatal(err)
	}
	request := connector.Request{ID: uuid.NewString(), Payer: "242066000001", Amount: 5075, Currency: "XAF"}
	if o, err := table.ByOffer(all)[checkout.OfferMomo].Collect(t.Context(), account.Account, request); err != nil || o.Status != checkout.OutcomePending {
		t.Errorf("%+v, %v", o, err)
	}

	var faults *form.FaultsError
	err = r.apply(`connectors: {test: {fifth: {base_url: "http://127.0.0.1:9", api_user: u}}}`)
	if !errors.As(err, &faults) || len(faults.Faults) != 3 {
		t.Errorf("an account of another operator's fields: %v", err)
	}
}

// payer is an operator that takes money with one account and pays people with another.
func payer(name string) connector.Registration {
	r := operator(name)
	account := r.Collector.Account
	account.Name = name + "_payout"
	r.Disburser = &connector.Disburser{Account: account, New: func(connector.Config) (connector.PayoutConnector, error) { return nil, nil }}
	return r
}

// An account stands for an operator and a purpose, and a registry file has a block for each.
func TestPayoutAccountsAreApart(t *testing.T) {
	t.Parallel()
	table := connector.Table{Operators: []connector.Registration{fifth, payer("sixth")}, Offers: map[string]string{checkout.OfferMomo: "fifth"}}
	connectors.Check(t, table)
	for purpose, want := range map[connector.Purpose][]string{connector.PurposeCollect: {"fifth", "sixth"}, connector.PurposePayout: {"sixth_payout"}, "": nil} {
		var names []string
		for _, a := range table.Accounts(purpose) {
			names = append(names, a.Name)
		}
		if !slices.Equal(names, want) {
			t.Errorf("accounts to %s: %v, want %v", purpose, names, want)
		}
	}
	if a, ok := table.AccountOf("sixth", connector.PurposePayout); !ok || a.Name != "sixth_payout" {
		t.Errorf("%+v, %v", a, ok)
	}
	for _, operator := range []string{"fifth", "nobody"} {
		if _, ok := table.AccountOf(operator, connector.PurposePayout); ok {
			t.Errorf("%s pays", operator)
		}
	}
	if all, err := table.ConnectPayouts(connectors.Config()); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}

	r := newRegistry(t, table)
	const account = `{base_url: "http://127.0.0.1:9", till: till-7, pass: p}`
	for text, field := range map[string]string{
		"connectors: {test: {sixth_payout: " + account + "}}": "agencies[0].connectors.test.sixth_payout",
		"payouts: {test: {sixth: " + account + "}}":           "agencies[0].payouts.test.sixth",
	} {
		var faults *form.FaultsError
		if err := r.apply("%s", text); !errors.As(err, &faults) || len(faults.Faults) != 1 || faults.Faults[0].Field != field || faults.Faults[0].Rule != "unknown" {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := r.apply("%s", `payouts: {test: {sixth_payout: {modes: [mobile_money], base_url: "http://127.0.0.1:9", till: till-7, pass: p}}}`); err != nil {
		t.Error(err)
	}
}

// An operator serves two offers by one account. Another one serves none, and a third takes no
// money at all: it only stands in the table.
func TestOperatorsOfTwoOffersAndOfNone(t *testing.T) {
	t.Parallel()
	table := connector.Table{
		Operators: []connector.Registration{fifth, operator("sixth"), {Operator: "seventh"}},
		Offers:    map[string]string{checkout.OfferMomo: "fifth", checkout.OfferMomoB: "fifth"},
	}
	connectors.Check(t, table)
	all, err := table.Connect(connectors.Config())
	if byOffer := table.ByOffer(all); err != nil || len(all) != 2 || len(byOffer) != 2 || byOffer[checkout.OfferMomo] != all["fifth"] || byOffer[checkout.OfferMomoB] != all["fifth"] {
		t.Errorf("connectors %v, by offer %v, %v", all, byOffer, err)
	}

	r := newRegistry(t, table)
	const accounts = `connectors: {test: {fifth: {base_url: "http://127.0.0.1:9", till: %s, pass: p}, sixth: {base_url: "http://127.0.0.1:9", till: till-6, pass: p}}}`
	if err := r.apply(accounts, "till-7"); err != nil {
		t.Fatal(err)
	}
	first, _ := r.open().MerchantAccount(agency, false, checkout.OfferMomo)
	if err := r.apply(accounts+`, accounts: {test: [{code: fifth, kind: operator, offer: momo, number: "7", profile: mtn}]}`, "till-8"); err != nil {
		t.Fatal(err)
	}
	known := r.open()
	for _, offer := range []string{checkout.OfferMomo, checkout.OfferMomoB} {
		if a, ok := known.MerchantAccount(agency, false, offer); !ok || a.Account != (fifthAccount{BaseURL: "http://127.0.0.1:9", Till: "till-8", Pass: "p"}) {
			t.Errorf("%s: account %+v, %v", offer, a, ok)
		}
		if a, ok := known.AccountOfCollection(agency, false, offer, first.Account.Fingerprint()); !ok || !a.Replaced || a.Account != first.Account {
			t.Errorf("%s: replaced account %+v, %v", offer, a, ok)
		}
		if a, ok := known.StatementAccountOf(agency, false, offer, "XAF", first.Account.Fingerprint()); !ok || a.Code != "fifth" {
			t.Errorf("%s: money arrives on %+v, %v", offer, a, ok)
		}
		if !known.Takes(agency, false, offer, "XAF") {
			t.Errorf("%s takes no francs", offer)
		}
	}
	for name, want := range map[string]bool{"fifth": true, "sixth": true, "seventh": false, "": false} {
		if _, ok := known.CollectingAccount(agency, false, name, ""); ok != want {
			t.Errorf("account of operator %q: %v", name, ok)
		}
	}
	if a, ok := known.MerchantAccount(agency, false, checkout.OfferCard); ok {
		t.Errorf("an offer without operator has the account %+v", a)
	}

	for _, c := range []struct{ text, field, rule string }{
		{`connectors: {test: {seventh: {base_url: "http://127.0.0.1:9"}}}`, "agencies[0].connectors.test.seventh", "unknown"},
		{`accounts: {test: [{code: other, kind: operator, offer: momo_b, number: "8", profile: mtn}]}`, "agencies[0].accounts.test[0].offer", "taken"},
	} {
		var faults *form.FaultsError
		if err := r.apply("%s", c.text); !errors.As(err, &faults) || len(faults.Faults) != 1 || faults.Faults[0].Field != c.field || faults.Faults[0].Rule != c.rule {
			t.Errorf("%s: %v", c.text, err)
		}
	}
}
