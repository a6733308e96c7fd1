package cashin_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"quittance/checkout"
	"quittance/ingress/cashin"
	"quittance/ingress/problem"
	"quittance/ingress/web"
	"quittance/internal/address"
	credentials "quittance/internal/cashin"
	"quittance/internal/commands"
	"quittance/internal/contact"
	"quittance/internal/drafts"
	"quittance/internal/personal"
	"quittance/internal/quota"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/money"
	"quittance/test/processor"
	"quittance/test/registries"
	"quittance/test/servers"
)

const (
	agency = registries.AgencyA
	shop   = registries.AppA
)

// world serves the surface over a processor in memory. Credentials, quotas and personal
// data are those of a real database.
type world struct {
	t         *testing.T
	house     registries.House
	watch     registries.Watch
	processor *processor.Processor
	personal  *personal.Store
	pair      credentials.Minted
	usage     *credentials.Usage
	server    *httptest.Server
	stop      context.CancelFunc

	mu    sync.Mutex
	app   registry.Application
	off   map[string]bool // offers without an account
	names map[string][]netip.Addr
	// perClient is how many calls a second of a client serve admits.
	perClient float64
	said      checkout.Code // by the operator; empty: nothing
	patience  time.Duration // of the last command
	asked     error         // of the processor
	asks      int           // commands
	numbers   int64
}

var start = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, house: registries.SetUp(t), off: map[string]bool{}, names: map[string][]netip.Addr{}, said: checkout.CodeCollectionAccepted}
	w.house.Seed(t, `
agencies:
  - {id: 018f0000-0000-7000-8000-000000000001, slug: impots, name: X, applications: [
      {id: 018f0000-0000-7000-8000-00000000000a, name: Boutique}, {id: 018f0000-0000-7000-8000-00000000000b, name: Autre}]}`)
	w.watch.Set(start.Sub(registries.Epoch))
	w.processor = processor.New(t, start)
	w.app = registry.Application{
		ID: shop, AgencyID: agency, Active: true, Offers: []string{checkout.OfferMomo, checkout.OfferMomoB, checkout.OfferCard, checkout.OfferCashAgency}, SessionLifetime: 24 * time.Hour,
		Cashin: &registry.Cashin{
			RedirectOrigins: []string{"https://partner.example", "https://shop.example:8443"},
			Providers:       []string{"mobile_money_a", "mobile_money_b", "card_network_a", "card_network_b"},
		},
	}
	var err error
	if w.personal, err = personal.New(personal.Config{Pool: w.house.Pool, Keys: w.house.Keys, Now: w.watch.Now}); err != nil {
		t.Fatal(err)
	}
	if w.usage, err = credentials.NewUsage(credentials.UsageConfig{Pool: w.house.Pool, Log: servers.Logger(t)}); err != nil {
		t.Fatal(err)
	}
	w.pair = w.mint(shop)
	w.server = w.serve()
	return w
}

func (w *world) mint(application string) credentials.Minted {
	w.t.Helper()
	m, err := credentials.Create(w.t.Context(), w.house.Pool, w.house.Keys, registries.Actor, application, false, w.watch.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

// serve runs one instance.
func (w *world) serve() *httptest.Server {
	w.t.Helper()
	store, err := credentials.New(credentials.Config{Pool: w.house.Pool, Keys: w.house.Keys, Now: w.watch.Now})
	if err != nil {
		w.t.Fatal(err)
	}
	quotas, err := quota.New(quota.Config{Postgres: w.house.Pool, Now: w.watch.Now})
	if err != nil {
		w.t.Fatal(err)
	}
	stopping, stop := context.WithCancel(context.Background())
	w.stop = stop
	w.t.Cleanup(stop)
	drafted, err := drafts.New(drafts.Config{
		Commands: w, References: w, Personal: w.personal, Keys: w.house.Keys, IDs: checkout.NewIDs(secret.GenerateReferenceKey().MAC("ids")),
		Partition: func(string) int32 { return 1 }, RequestID: problem.RequestID, Log: servers.Logger(w.t),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	api, err := cashin.New(cashin.Config{
		Commands: w, Expect: func() cashin.Expectation { return &word{w} }, Credentials: store, Configuration: w, Quotas: quotas, Usage: w.usage, Drafts: drafted, Personal: w.personal,
		Payers:   map[string]cashin.Payer{checkout.OfferMomo: prefixes{"06"}, checkout.OfferMomoB: prefixes{"05", "04"}},
		Webhooks: address.Rule{}, Resolver: w,
		CheckoutURL: "https://pay.example", Stopping: stopping, Limits: web.Multiples(cmp.Or(w.perClient, 1000)), Now: w.watch.Now, Log: servers.Logger(w.t), Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	r := chi.NewRouter()
	r.Use(web.ClientAddress(nil), problem.WithRequestID)
	api.Routes(r)
	r.Get("/api/v1/checkout/sessions", func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusNoContent) }) // of the ministry API
	r.Handle("/api/v1/*", http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusTeapot) }))
	server := httptest.NewServer(r)
	w.t.Cleanup(server.Close)
	return server
}

type prefixes []string

func (p prefixes) Payer(input string) (string, error) { return contact.MobileOf(input, p...) }

// word is what the operator says, or nothing.
type word struct{ w *world }

func (*word) Address() commands.ReplyTo { return commands.ReplyTo{CorrelationID: "word", Partition: 2} }
func (*word) Close()                    {}

func (x *word) Await(ctx context.Context) (checkout.Answer, bool) {
	x.w.mu.Lock()
	said := x.w.said
	x.w.mu.Unlock()
	if said == "" {
		<-ctx.Done()
		return checkout.Answer{}, false
	}
	return checkout.Answer{Code: said}, true
}

// AskWithin implements cashin.Asker and drafts.Asker.
func (w *world) AskWithin(_ context.Context, cmd checkout.Command, patience time.Duration) (checkout.Answer, error) {
	w.mu.Lock()
	w.patience = patience
	w.asks++
	err := w.asked
	w.mu.Unlock()
	if err != nil {
		return checkout.Answer{}, err
	}
	w.processor.Lock()
	defer w.processor.Unlock()
	return w.processor.Decide(cmd), nil
}

func (w *world) change(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
}

// The methods of cashin.Configuration.

func (w *world) Application(id string) (registry.Application, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	app := w.app
	app.ID = id
	return app, id == shop || id == registries.AppB
}

func (w *world) Configured(_ string, _ bool, offer, currency string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return currency == "XAF" && !w.off[offer]
}

func (w *world) AccountOf(string, bool, string) string { return "account" }

func (w *world) ERP(string, bool) (registry.ERPSettings, bool) { return registry.ERPSettings{}, false }

func (w *world) Fee(_ string, channel checkout.Channel, _ string) (money.Schedule, bool) {
	return money.Schedule{RatioPPM: 15_000, Fixed: 25}, channel == checkout.ChannelMobileMoney
}

// The methods of drafts.References.

func (w *world) next() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.numbers++
	return w.numbers
}

func (w *world) PaymentRef() (string, error) { return "0000000000000001", nil }
func (w *world) NoticeRef() (string, error)  { return "AV20260000000001", nil }
func (w *world) PaymentID() (int64, error)   { return w.next(), nil }

// panicking is a name whose resolution panics.
const panicking = "panic.example.org"

// LookupNetIP implements cashin.Resolver.
func (w *world) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if host == panicking {
		panic("a fault of the program")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if addrs, ok := w.names[host]; ok {
		return addrs, nil
	}
	return nil, errors.New("no such host")
}

// response is an answer.
type response struct {
	status int
	header http.Header
	body   string
}

// json returns the object in the body.
func (r response) json(t *testing.T) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal([]byte(r.body), &out); err != nil {
		t.Fatalf("%d %s: %v", r.status, r.body, err)
	}
	return out
}

// send sends a request and checks the headers that every answer has.
func (w *world) send(method, path, token, body string, change ...func(*http.Request)) response {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.server.URL+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for _, c := range change {
		c(req)
	}
	resp, err := w.server.Client().Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	for name, want := range map[string]string{
		"Deprecation": "true", "Sunset": "Thu, 30 Sep 2027 00:00:00 GMT", "Link": `</api/v1/checkout/sessions>; rel="successor-version"`, "Content-Type": "application/json",
	} {
		if got := resp.Header.Values(name); len(got) != 1 || got[0] != want {
			w.t.Errorf("%s %s answers %d with %s %q", method, path, resp.StatusCode, name, got)
		}
	}
	return response{resp.StatusCode, resp.Header, string(text)}
}

// token generates a token.
func (w *world) token(pair credentials.Minted) string {
	w.t.Helper()
	r := w.send(http.MethodPost, "/api/generate-application-access-token", "", `{"apiKey":"`+pair.APIKey.Reveal()+`","secretKey":"`+pair.SecretKey.Reveal()+`"}`)
	if r.status != http.StatusOK {
		w.t.Fatalf("no token: %d %s", r.status, r.body)
	}
	return r.json(w.t)["token"].(string)
}

// minute passes, so that the quotas begin again.
func (w *world) minute() {
	now := w.watch.Now().Add(time.Minute)
	w.watch.Set(now.Sub(registries.Epoch))
	w.processor.Change(func() { w.processor.Time = now })
}

func keys(object map[string]any) []string {
	var out []string
	for k := range object {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// wantRefusal checks an error of three fields.
func wantRefusal(t *testing.T, r response, status int, code string) {
	t.Helper()
	got := r.json(t)
	if r.status != status || got["code"] != code || got["status"] != float64(status) || got["message"] == "" || !slices.Equal(keys(got), []string{"code", "message", "status"}) {
		t.Errorf("answered %d %s, want %d %s", r.status, r.body, status, code)
	}
}

// wantFaults checks an error of a form: field and rule of each fault, in order.
func wantFaults(t *testing.T, r response, want ...string) {
	t.Helper()
	got := r.json(t)
	if r.status != http.StatusUnprocessableEntity || !slices.Equal(keys(got), []string{"errors", "message"}) {
		t.Errorf("answered %d %s, want faults %v", r.status, r.body, want)
		return
	}
	var faults []string
	for _, f := range got["errors"].([]any) {
		f := f.(map[string]any)
		if !slices.Equal(keys(f), []string{"field", "message", "rule"}) || f["message"] == "" {
			t.Errorf("a fault is %v", f)
		}
		faults = append(faults, f["field"].(string)+" "+f["rule"].(string))
	}
	slices.Sort(faults)
	slices.Sort(want)
	if !slices.Equal(faults, want) {
		t.Errorf("faults %v, want %v", faults, want)
	}
}
