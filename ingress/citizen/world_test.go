package citizen_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"quittance/test/httpclient"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"quittance/checkout"
	"quittance/dev/simulator"
	"quittance/ingress/citizen"
	"quittance/ingress/problem"
	"quittance/ingress/web"
	"quittance/internal/citizens"
	"quittance/internal/commands"
	"quittance/internal/connector/all"
	"quittance/internal/contact"
	"quittance/internal/drafts"
	"quittance/internal/erp"
	"quittance/internal/notify"
	"quittance/internal/personal"
	"quittance/internal/provider"
	"quittance/internal/quota"
	"quittance/internal/registry"
	registryfile "quittance/internal/registryfile"
	"quittance/internal/secret"
	"quittance/internal/sessions"
	"quittance/test/await"
	"quittance/test/processor"
	"quittance/test/registries"
	"quittance/test/servers"
)

const (
	agency = "018f0000-0000-7000-8000-000000000001"
	other  = "018f0000-0000-7000-8000-000000000002"

	publicURL = "https://pay.example"
)

const file = `
agencies:
  - id: 018f0000-0000-7000-8000-000000000001
    slug: impots
    name: Direction générale des impôts
    services: [{id: 018f0000-0000-7000-8000-000000000101, code: patente, label: Contribution de la patente, active: true}]
    service_mappings: [{erp_code: "4711", service: patente}]
    fees: [{channel: MOBILE_MONEY, currency: XAF, ratio: "0.01"}]
    erp: {test: {base_url: ERP/erp/impots, auth: {type: bearer, token: DemoErpTokenImpots000000}, networks: [127.0.0.0/8]}}
    portal: {active: true, offers: [momo, cash_agency], session_lifetime: 2h, success_origins: ["https://agency.example"]}
    applications: [{id: 018f0000-0000-7000-8000-00000000000a, name: A}]
  - id: 018f0000-0000-7000-8000-000000000002
    slug: douanes
    name: Douanes
    erp: {test: {base_url: ERP/erp/douanes, auth: {type: bearer, token: DemoErpTokenImpots000000}, networks: [127.0.0.0/8]}}
    portal: {active: true, offers: [momo, cash_agency]}
    applications: [{id: 018f0000-0000-7000-8000-00000000000b, name: B}]
`

var (
	_ citizen.Messages = (*notify.Sender)(nil)
	_ citizen.Sessions = (*sessions.Reader)(nil)
	_ drafts.Asker     = (*commands.Checkout)(nil)
)

// configuration is the registry, with an account for each offer.
type configuration struct{ *registry.Registry }

func (c configuration) HasChannel(agencyID string, live bool, offer, currency string) bool {
	return c.Takes(agencyID, live, offer, currency)
}

var start = time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)

// world is what the service needs. Accounts, registry, quotas and the client of the ERP are
// the real ones, and the ERP is the simulated one. Messages, sessions and the processor are
// in memory, without delay.
type world struct {
	*processor.Processor
	t        testing.TB
	pool     *pgxpool.Pool
	keys     *secret.Keys
	accounts *citizens.Store
	url      string
	erp      string // the address of the simulator
	refs     *checkout.References
	// shared is how long an answer of an ERP is shared; zero for the default.
	shared time.Duration

	mu      sync.Mutex
	sent    []notify.Message
	read    map[string]int // codes that code has returned, by address
	reached []string       // addresses whose code was entered
	log     bytes.Buffer
	blind   error    // of the read model
	counter int64    // of references
	asked   []string // the paths of calls to ERPs
}

func (w *world) wait(d time.Duration) { w.Change(func() { w.Time = w.Time.Add(d) }) }

// AskWithin is drafts.Asker.
func (w *world) AskWithin(_ context.Context, cmd checkout.Command, _ time.Duration) (checkout.Answer, error) {
	w.Lock()
	defer w.Unlock()
	return w.Decide(cmd), nil
}

// Claimants and PaidBy are citizen.Sessions.
func (w *world) Claimants(_ context.Context, agencyID string, live bool, refs []string) (out []checkout.Session, err error) {
	w.Lock()
	defer w.Unlock()
	for _, s := range w.Sessions {
		if s.TenantID == agencyID && s.Live == live && slices.ContainsFunc(s.Dues(), func(d checkout.Item) bool {
			return slices.Contains(refs, d.ERPDueRef) && (s.DueState(d) != checkout.DuePayable || s.Status == checkout.StatusCompleted)
		}) {
			out = append(out, s)
		}
	}
	return out, w.blind
}

func (w *world) PaidBy(_ context.Context, f sessions.CitizenFilter) (out []checkout.Session, total int64, err error) {
	w.Lock()
	defer w.Unlock()
	for _, s := range w.Sessions {
		if s.CitizenID == f.CitizenID && s.Live == f.Live && s.Status == checkout.StatusCompleted {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b checkout.Session) int { return strings.Compare(b.ID, a.ID) })
	total = int64(len(out))
	from := min((f.Page-1)*f.PageSize, len(out))
	return out[from:min(from+f.PageSize, len(out))], total, w.blind
}

// PaymentRef, NoticeRef and PaymentID are drafts.References.
func (w *world) PaymentRef() (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		w.counter++
		if ref, ok := w.refs.PaymentRef(w.counter); ok {
			return ref, nil
		}
	}
}

func (w *world) NoticeRef() (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counter++
	return w.refs.NoticeRef(2026, w.counter), nil
}

func (*world) PaymentID() (int64, error) {
	return 0, errors.New("no cart has a payment of the cash-in surface")
}

// control changes what the simulated ERP of an agency does.
func (w *world) control(slug, body string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.erp+"/control/erp/"+slug, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := httpclient.Default.Do(req)
	if err != nil || resp.Body.Close() != nil || resp.StatusCode != http.StatusNoContent {
		w.t.Fatal(resp, err)
	}
}

// calls returns how often an ERP was asked for dues.
func (w *world) calls() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.asked)
}

// simulate starts the ERPs.
func (w *world) simulate() {
	w.t.Helper()
	s, err := simulator.New(simulator.Config{Now: w.Now, Log: servers.Logger(w.t), ERPAuth: func(string) []simulator.Auth {
		return []simulator.Auth{{Type: simulator.AuthBearer, Token: "DemoErpTokenImpots000000"}}
	}})
	if err != nil {
		w.t.Fatal(err)
	}
	h := s.Handler()
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/dues") {
			w.mu.Lock()
			w.asked = append(w.asked, r.URL.Path)
			w.mu.Unlock()
		}
		h.ServeHTTP(rw, r)
	}))
	w.t.Cleanup(server.Close)
	w.erp = server.URL
}

// Send is citizen.Messages.
func (w *world) Send(_ context.Context, m notify.Message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, m)
	return nil
}

// Reached is citizen.Messages.
func (w *world) Reached(_ context.Context, _ provider.Channel, to string, _ time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reached = append(w.reached, to)
	return nil
}

// Write is the log of all instances.
func (w *world) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(p)
}

// codes returns the codes that were sent to an address.
func (w *world) codes(to string) (codes []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.sent {
		if m.To == to {
			codes = append(codes, m.Variables[notify.VariableCode])
		}
	}
	return codes
}

// code waits for a code that it has not returned before, as codes are sent after the page has answered.
func (w *world) code(to string) string {
	w.t.Helper()
	var codes []string
	await.Until(w.t, "a code is sent", func() bool { codes = w.codes(to); return len(codes) > w.read[to] })
	w.read[to] = len(codes)
	return codes[len(codes)-1]
}

func serve(t testing.TB) *world {
	t.Helper()
	_, pool := servers.Database(t)
	refs, err := checkout.NewReferences(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Processor: processor.New(t, start), t: t, pool: pool, keys: secret.GenerateKeys(), refs: refs, shared: time.Nanosecond, read: map[string]int{}}
	w.simulate()
	if _, err := registryfile.Apply(t.Context(), pool, registries.Actor, []byte(strings.ReplaceAll(file, "ERP", w.erp)), registryfile.Options{Keys: w.keys, Developer: true, Now: w.Now}); err != nil {
		t.Fatal(err)
	}
	if w.accounts, err = citizens.New(citizens.Config{Pool: pool, Keys: w.keys, Reference: secret.GenerateReferenceKey(), Now: w.Now}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		private := []string{"usager", "TP-1001", "+24206"}
		for _, m := range w.sent {
			private = append(private, m.To, m.Variables[notify.VariableCode])
		}
		for _, p := range private {
			if strings.Contains(w.log.String(), p) {
				t.Errorf("the log holds %q:\n%s", p, w.log.String())
			}
		}
	})
	w.url = w.start()
	return w
}

// start starts an instance and returns its address.
func (w *world) start(change ...func(*citizen.Config)) string {
	w.t.Helper()
	agencies, err := registry.Open(w.t.Context(), registry.Config{Pool: w.pool, Keys: w.keys, Log: servers.Logger(w.t), Now: w.Now, Operators: all.Operators()})
	if err != nil {
		w.t.Fatal(err)
	}
	dues, err := erp.NewDues(erp.DuesConfig{Client: erp.New(erp.Config{Loopback: true}), Registry: agencies, Now: w.Now, Shared: w.shared})
	if err != nil {
		w.t.Fatal(err)
	}
	contacts, err := personal.New(personal.Config{Pool: w.pool, Keys: w.keys, Now: w.Now})
	if err != nil {
		w.t.Fatal(err)
	}
	quotas, err := quota.New(quota.Config{Postgres: w.pool, Now: w.Now})
	if err != nil {
		w.t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
	drafted, err := drafts.New(drafts.Config{
		Commands: w, References: w, Personal: contacts, Keys: w.keys, IDs: checkout.NewIDs(secret.GenerateReferenceKey().MAC("ids")),
		Partition: func(string) int32 { return 3 }, RequestID: problem.RequestID, Log: log,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	cfg := citizen.Config{
		Citizens: w.accounts, Messages: w, Registry: configuration{agencies}, Dues: dues, Sessions: w, Drafts: drafted, Quotas: quotas, PublicURL: publicURL, Now: w.Now,
		Log: log, Metrics: prometheus.NewRegistry(),
	}
	for _, c := range change {
		c(&cfg)
	}
	service, err := citizen.NewService(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	api, err := citizen.NewAPI(service, web.Multiples(1e6))
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- service.Run(ctx) }()
	r := chi.NewRouter()
	// A test's client is the last address of X-Forwarded-For.
	r.Use(web.ClientAddress(loopback), problem.WithRequestID)
	api.Routes(r)
	portal, err := citizen.NewPortal(service, web.Multiples(1e6))
	if err != nil {
		w.t.Fatal(err)
	}
	portal.Routes(r)
	server := httptest.NewServer(r)
	w.t.Cleanup(func() {
		server.Close()
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("Run: %v", err)
		}
		service.Flush(context.Background())
	})
	return server.URL
}

// browser is a citizen's browser. It keeps cookies, as a browser would over https.
type browser struct {
	w       *world
	base    string
	client  string
	cookies map[string]string
	header  http.Header
}

func (w *world) browse() *browser {
	return &browser{w: w, base: w.url, client: "203.0.113.7", cookies: map[string]string{}, header: http.Header{"Sec-Fetch-Site": {"same-origin"}, "Accept-Language": {"fr"}}}
}

// answer is an answer of the API.
type answer struct {
	status int
	header http.Header
	body   map[string]any
	raw    string
}

func (a answer) text(field string) string { s, _ := a.body[field].(string); return s }

type object map[string]any

// call calls the API, and checks the answer against openapi.yaml.
func (b *browser) call(method, path string, body any) answer {
	t := b.w.t
	t.Helper()
	var reader io.Reader
	switch body := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(body)
	default:
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		reader = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, b.base+citizen.Prefix+path, reader)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = b.header.Clone()
	req.Header.Set("X-Forwarded-For", b.client)
	if body != nil && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range b.cookies {
		req.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	resp, err := httpclient.Default.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range resp.Cookies() {
		if !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" || !strings.HasPrefix(c.Name, "__Host-quittance_") {
			t.Errorf("the cookie %s is %+v", c.Name, c)
		}
		if b.cookies[c.Name] = c.Value; c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		}
	}
	a := answer{status: resp.StatusCode, header: resp.Header, raw: string(raw)}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &a.body); err != nil {
			t.Fatalf("%s %s answers %d %s", method, path, a.status, raw)
		}
		conforms(t, method, citizen.Prefix+strings.Split(path, "?")[0], a)
	}
	if a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s %s may be cached", method, path)
	}
	return a
}

func (b *browser) want(a answer, status int, code string) answer {
	b.w.t.Helper()
	if a.status != status || a.text("code") != code {
		b.w.t.Fatalf("answers %d %s, want %d %s: %s", a.status, a.text("code"), status, code, a.raw)
	}
	if (a.status == http.StatusServiceUnavailable || a.status == http.StatusTooManyRequests) && a.header.Get("Retry-After") == "" {
		b.w.t.Errorf("a %d without Retry-After", a.status)
	}
	return a
}

// numbered is a phone number as people write it, and as messages have it.
func numbered(t testing.TB, n int) (typed, sent string) {
	t.Helper()
	typed = fmt.Sprintf("06 %03d %02d %02d", 600+n/10_000, n/100%100, n%100)
	a, err := contact.ParsePhone(typed)
	if err != nil {
		t.Fatal(err)
	}
	return typed, a.Text()
}

// signedIn returns a browser in which the n-th person has signed in.
func (w *world) signedIn(n int) *browser {
	w.t.Helper()
	b := w.browse()
	b.client = fmt.Sprintf("198.51.%d.%d", n/250, n%250+1)
	b.signIn(n)
	return b
}

func (b *browser) signIn(n int) {
	b.w.t.Helper()
	typed, to := numbered(b.w.t, n)
	before := len(b.w.codes(to))
	b.want(b.call(http.MethodPost, "/sign-in", object{"phone": typed}), http.StatusAccepted, "")
	await.Until(b.w.t, "a code is sent", func() bool { return len(b.w.codes(to)) > before })
	b.want(b.call(http.MethodPost, "/sign-in/verify", object{"phone": typed, "code": b.w.code(to)}), http.StatusNoContent, "")
}

// linkCode is the code that the agency prints for a reference.
func (w *world) linkCode(agencyID, ref string) string {
	w.t.Helper()
	code, err := w.accounts.LinkCode(w.t.Context(), citizens.Subject{AgencyID: agencyID, Ref: ref})
	if err != nil {
		w.t.Fatal(err)
	}
	return code
}

// link links the browser's account to a reference, and returns the id of the link.
func (b *browser) link(agencyID, ref string) string {
	b.w.t.Helper()
	a := b.want(b.call(http.MethodPost, "/links", object{"tenant_id": agencyID, "subject_ref": ref, "link_code": b.w.linkCode(agencyID, ref)}), http.StatusCreated, "")
	return a.text("id")
}

// fields returns the fields at fault.
func (a answer) fields() (fields []string) {
	list, _ := a.body["errors"].([]any)
	for _, e := range list {
		fields = append(fields, e.(map[string]any)["field"].(string))
	}
	slices.Sort(fields)
	return fields
}
