package counter_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/test/httpclient"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/crypto/bcrypt"

	"quittance/checkout"
	"quittance/ingress/counter"
	"quittance/ingress/problem"
	"quittance/ingress/web"
	"quittance/internal/commands"
	"quittance/internal/identity"
	"quittance/internal/papers"
	"quittance/internal/personal"
	"quittance/internal/quota"
	"quittance/internal/receipts"
	"quittance/internal/registry"
	registryfile "quittance/internal/registryfile"
	"quittance/internal/secret"
	"quittance/internal/sessions"
	"quittance/internal/tills"
	"quittance/money/localtime"
	"quittance/test/erps"
	"quittance/test/processor"
	"quittance/test/registries"
	"quittance/test/servers"
)

const (
	agency = "018f0000-0000-7000-8000-000000000001"
	app    = "018f0000-0000-7000-8000-00000000000a"
	other  = "018f0000-0000-7000-8000-000000000002"
	abroad = "018f0000-0000-7000-8000-00000000000b" // an application of the other agency

	c01     = "ck_test_Clerk01KeyOfTheseTests00000"
	c02     = "ck_test_Clerk02KeyOfTheseTests00000"
	c01Live = "ck_live_Clerk01KeyOfTheseTests00000"
	d01     = "ck_test_ClerkOfTheOtherAgency000000"
)

const file = `
agencies:
  - id: 018f0000-0000-7000-8000-000000000001
    slug: impots
    name: Direction générale des impôts
    applications: [{id: 018f0000-0000-7000-8000-00000000000a, name: A}]
    clerks:
      - {code: c01, name: Guichet 1, counter: Hall, keys: [{secret: ck_test_Clerk01KeyOfTheseTests00000}, {secret: ck_live_Clerk01KeyOfTheseTests00000}]}
      - {code: c02, name: Guichet 2, counter: Hall, keys: [{secret: ck_test_Clerk02KeyOfTheseTests00000}]}
  - id: 018f0000-0000-7000-8000-000000000002
    slug: douanes
    name: Douanes
    applications: [{id: 018f0000-0000-7000-8000-00000000000b, name: B}]
    clerks: [{code: c01, name: Guichet, counter: Port, keys: [{secret: ck_test_ClerkOfTheOtherAgency000000}]}]
`

var (
	_ counter.Sessions = (*sessions.Reader)(nil)
	_ counter.Asker    = (*commands.Checkout)(nil)
	_ tills.ReadModel  = (*sessions.Reader)(nil)
)

// world is what a counter needs: a processor and a read model in memory, without delay.
// Clerks and quotas are the real ones.
type world struct {
	*processor.Processor
	url string
	// instance starts another instance and returns its address.
	instance func() string
	pool     *pgxpool.Pool
	masters  *secret.Keys
	log      *bytes.Buffer

	receipts *receipts.Store
	contacts *personal.Store
	papers   *papers.Maker
	refs     *checkout.References
	commands []checkout.Command
	lost     int // number of answers to lose; their commands are carried out
	blind    error
	erp      *erps.ERP // the agency's
	// first is an action on the session just before the next command.
	first checkout.Action
}

func (w *world) List(_ context.Context, f sessions.Filter) (out []checkout.Session, total int64, err error) {
	w.Lock()
	defer w.Unlock()
	for _, s := range w.Sessions {
		if slices.Contains(f.ApplicationIDs, s.ApplicationID) && s.Live == f.Live && s.PaymentRef == f.PaymentRef {
			out = append(out, s)
		}
	}
	return out, int64(len(out)), w.blind
}

func (w *world) Cash(_ context.Context, f sessions.CashFilter) (day sessions.CashDay, err error) {
	w.Lock()
	defer w.Unlock()
	for _, s := range w.Sessions {
		for _, m := range s.Cash() {
			if m.AgencyID != f.AgencyID || m.Live != f.Live || m.Clerk != f.Clerk || localtime.Day(m.At) != f.Day {
				continue
			}
			sum := &day.Taken
			if m.Kind == checkout.CashReturned {
				sum = &day.Returned
			}
			sum.Count, sum.Amount = sum.Count+1, sum.Amount+m.Amount
			if f.Search != "" && !strings.Contains(m.PaymentRef+" "+m.Receipt, f.Search) {
				continue
			}
			day.Found++
			day.Entries = append(day.Entries, sessions.CashEntry{CashMovement: m})
		}
	}
	slices.SortFunc(day.Entries, func(a, b sessions.CashEntry) int { return b.At.Compare(a.At) })
	from := min((max(f.Page, 1)-1)*f.PageSize, len(day.Entries))
	day.Entries = day.Entries[from:min(from+f.PageSize, len(day.Entries))]
	return day, w.blind
}

// Transact writes the movements of all sessions, as the sink does, before it runs do.
func (w *world) Transact(ctx context.Context, _ string, do func(context.Context, pgx.Tx) error) error {
	var all []checkout.CashMovement
	w.Change(func() {
		for _, s := range w.Sessions {
			all = append(all, s.Cash()...)
		}
	})
	return pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		for _, m := range all {
			if _, err := tx.Exec(ctx, `INSERT INTO cash_movements (session_id, collection_id, kind, agency_id, livemode, clerk, at, day, amount, payment_ref, notice_refs, service_label, counter, receipt)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, '', $11, $12, $13) ON CONFLICT DO NOTHING`,
				m.SessionID, m.CollectionID, string(m.Kind), m.AgencyID, m.Live, m.Clerk, m.At, localtime.Day(m.At), m.Amount, m.PaymentRef, m.ServiceLabel, m.Counter, m.Receipt); err != nil {
				return err
			}
		}
		return do(ctx, tx)
	})
}

func (w *world) Ask(_ context.Context, cmd checkout.Command) (checkout.Answer, error) {
	w.Lock()
	defer w.Unlock()
	if w.first != nil {
		w.Decide(checkout.Command{SessionID: cmd.SessionID, Do: w.first})
		w.first = nil
	}
	w.commands = append(w.commands, cmd)
	a := w.Decide(cmd)
	if w.lost > 0 {
		w.lost--
		return checkout.Answer{}, fmt.Errorf("awaiting a reply: %w", commands.ErrUnavailable)
	}
	return a, nil
}

// later advances the clock and ticks a session.
func (w *world) later(id string, d time.Duration) {
	w.Change(func() { w.Time = w.Time.Add(d) })
	w.Do(id, checkout.Tick{})
}

var start = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// create makes a session with a fee of 50 for cash; change may be nil.
func (w *world) create(change func(*checkout.Session)) checkout.Session {
	w.T.Helper()
	w.Lock()
	defer w.Unlock()
	n := len(w.Sessions)
	ref, ok := "", false
	for i := int64(n * 100); !ok; i++ {
		ref, ok = w.refs.PaymentRef(i)
	}
	s := checkout.Session{
		ID: checkout.NewSessionID(w.Time, 3, [16]byte{byte(n + 1)}), ApplicationID: app, TenantID: agency, OrderID: fmt.Sprint("order-", n),
		Amount: 5000, Currency: "XAF", Mode: checkout.ModeHosted, ServiceLabel: "Contribution de la patente", Description: "Patente 2026",
		PaymentRef: ref, Note: "internal note", Customer: &checkout.Customer{Name: "contact-name", Phone: "+242060000000"},
		Offers: []checkout.Offer{
			{ID: checkout.OfferMomo, Channel: checkout.ChannelMobileMoney, Fee: 75},
			{ID: checkout.OfferCashAgency, Channel: checkout.ChannelCash, Fee: 50},
		},
		ExpiresAt: w.Time.Add(24 * time.Hour),
	}
	if change != nil {
		change(&s)
	}
	a := w.Decide(checkout.Command{SessionID: s.ID, Do: checkout.Create{Session: s, IdempotencyKey: s.ID, CreationsPerMinute: 1000}})
	if a.Code != checkout.CodeOK {
		w.T.Fatalf("creating a session: %s", a.Code)
	}
	return *a.Session
}

// byPhone starts the citizen's own payment.
func (w *world) byPhone(s checkout.Session) {
	w.T.Helper()
	a := w.Do(s.ID, checkout.Collect{CollectionID: "11111111-1111-4111-8111-" + s.PaymentRef[:12], OfferID: checkout.OfferMomo, Total: 5075, ApprovalWindow: 5 * time.Minute, SendWithin: time.Minute})
	if a.Code != checkout.CodeOK {
		w.T.Fatalf("paying by phone: %s", a.Code)
	}
}

// phoneSays reports the operator's outcome of that payment.
func (w *world) phoneSays(s checkout.Session, status checkout.OutcomeStatus) {
	w.Do(s.ID, checkout.Outcome{
		CollectionID: "11111111-1111-4111-8111-" + s.PaymentRef[:12], Source: checkout.SourceCallback, Status: status, Amount: 5075, Currency: "XAF",
	})
}

// serve starts a counter over a world.
func serve(t *testing.T, change ...func(*counter.Config)) *world {
	t.Helper()
	_, pool := servers.Database(t)
	refs, err := checkout.NewReferences(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		Processor: processor.New(t, start), pool: pool, log: &bytes.Buffer{}, refs: refs,
	}
	w.erp = erps.Start(t, agency, w.Now)
	keys := secret.GenerateKeys()
	w.masters = keys
	if _, err := registryfile.Apply(t.Context(), pool, registries.Actor, []byte(file), registryfile.Options{Keys: keys, Developer: true, Now: w.Now}); err != nil {
		t.Fatal(err)
	}
	if err := receipts.EnsureKeys(t.Context(), pool, keys, registries.Actor, w.Now()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, r := range w.Requests {
			if r.Session.Collection.Channel == checkout.ChannelCash {
				t.Errorf("an operator is asked about cash: %+v", r)
			}
		}
		for _, key := range []string{c01, c02, c01Live, d01} {
			if strings.Contains(w.log.String(), key) {
				t.Errorf("the log holds a key:\n%s", w.log)
			}
		}
	})
	w.instance = func() string { return w.start(keys, change) }
	w.url = w.instance()
	return w
}

// configuration is the registry, with an account for every offer.
type configuration struct{ *registry.Registry }

func (configuration) StatementAccountOf(string, bool, string, string, string) (registry.StatementAccount, bool) {
	return registry.StatementAccount{}, false
}

func (configuration) Configured(string, bool, string, string) bool { return true }

// start starts an instance of the counter and returns its address.
func (w *world) start(keys *secret.Keys, change []func(*counter.Config)) string {
	t := w.T
	t.Helper()
	agencies, err := registry.Open(t.Context(), registry.Config{Pool: w.pool, Keys: keys, Log: servers.Logger(t), Now: w.Now})
	if err != nil {
		t.Fatal(err)
	}
	clerks, err := identity.Open(t.Context(), identity.Config{Registry: agencies, Pool: w.pool, Keys: keys, Log: servers.Logger(t), Now: w.Now, PINCost: bcrypt.MinCost})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- agencies.Run(ctx) }()
	reads, err := quota.New(quota.Config{Postgres: w.pool, Now: w.Now})
	if err != nil {
		t.Fatal(err)
	}
	cash, err := tills.New(tills.Config{Pool: w.pool, ReadModel: w, Now: w.Now})
	if err != nil {
		t.Fatal(err)
	}
	w.receipts, err = receipts.NewStore(receipts.StoreConfig{Pool: w.pool, Keys: keys, PublicURL: "https://pay.example"})
	if err != nil {
		t.Fatal(err)
	}
	contacts, err := personal.New(personal.Config{Pool: w.pool, Keys: keys, Now: w.Now})
	if err != nil {
		t.Fatal(err)
	}
	w.contacts = contacts
	maker, err := papers.NewMaker(papers.Config{Registry: configuration{agencies}, Contacts: contacts, Dues: w.erp, Tokens: w.receipts, Base: "https://pay.example", Now: w.Now, Log: servers.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	w.papers = maker
	cfg := counter.Config{
		Commands: w, Sessions: w, Dues: w.erp, Registry: agencies, Identities: clerks, Tills: cash, Papers: maker, Reads: reads, Keys: keys, Unknown: &quota.Unknown{Postgres: w.pool, Now: w.Now, Most: counter.MaxUnknown}, Limits: web.Shares(1e6, 1e6), PublicURL: "http://127.0.0.1:8080", Now: w.Now,
		Log: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})), Metrics: prometheus.NewRegistry(),
	}
	for _, c := range change {
		c(&cfg)
	}
	desks, err := counter.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := chi.NewRouter()
	r.Use(problem.WithRequestID, web.ClientAddress([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}))
	desks.Routes(r)
	server := httptest.NewServer(r)
	t.Cleanup(func() {
		server.Close()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("running the registry: %v", err)
		}
	})
	return server.URL
}

// answer is an answer of the API.
type answer struct {
	status int
	header http.Header
	body   map[string]any
	raw    string
}

func (a answer) text(field string) string { s, _ := a.body[field].(string); return s }

// call calls the API with a clerk's key and checks the answer against openapi.yaml.
func (w *world) call(key, method, path string, body any) answer {
	w.T.Helper()
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			w.T.Fatal(err)
		}
		reader = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(w.T.Context(), method, w.url+counter.Prefix+path, reader)
	if err != nil {
		w.T.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := httpclient.Default.Do(req)
	if err != nil {
		w.T.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		w.T.Fatal(err)
	}
	a := answer{status: resp.StatusCode, header: resp.Header, raw: string(raw)}
	if err := json.Unmarshal(raw, &a.body); err != nil {
		w.T.Fatalf("%s %s answers %d %s", method, path, a.status, raw)
	}
	conforms(w.T, method, counter.Prefix+path, a)
	for _, private := range []string{"contact-name", "+242060000000", "internal note", "ck_test_C", "ck_live_C"} {
		if strings.Contains(a.raw, private) {
			w.T.Errorf("%s %s tells %q: %s", method, path, private, raw)
		}
	}
	return a
}

func (w *world) want(a answer, status int, code string) answer {
	w.T.Helper()
	if a.status != status || a.text("code") != code {
		w.T.Errorf("answers %d %s, want %d %s: %s", a.status, a.text("code"), status, code, a.raw)
	}
	if (a.status == http.StatusServiceUnavailable || a.status == http.StatusTooManyRequests) && a.header.Get("Retry-After") == "" {
		w.T.Errorf("a %d without Retry-After", a.status)
	}
	return a
}

type object map[string]any

func (w *world) reserve(key string, s checkout.Session) answer {
	w.T.Helper()
	return w.call(key, http.MethodPost, "/reservations", object{"payment_ref": s.PaymentRef})
}

// held reserves a session and returns the id of the collection.
func (w *world) held(key string, s checkout.Session) string {
	w.T.Helper()
	a := w.want(w.reserve(key, s), http.StatusCreated, "")
	return a.text("collection_id")
}

func (w *world) take(key string, s checkout.Session, id string) answer {
	w.T.Helper()
	return w.call(key, http.MethodPost, "/payments", object{"payment_ref": s.PaymentRef, "collection_id": id, "total": 5050})
}

func (w *world) release(key string, s checkout.Session, id string) answer {
	w.T.Helper()
	return w.call(key, http.MethodPost, "/releases", object{"payment_ref": s.PaymentRef, "collection_id": id})
}

func (w *world) reverse(key string, s checkout.Session, id string) answer {
	w.T.Helper()
	return w.call(key, http.MethodPost, "/reversals", object{"payment_ref": s.PaymentRef, "collection_id": id, "reason": "wrong case"})
}

func (w *world) stands(key string, s checkout.Session) answer {
	w.T.Helper()
	return w.call(key, http.MethodGet, "/payments/"+s.PaymentRef, nil)
}

// browser is a clerk's browser without scripts.
type browser struct {
	w      *world
	client *http.Client
	header http.Header
	base   string // of another instance than the world's

	status int
	at     string // path and query of the page shown
	html   string
	answer http.Header
	sent   []*http.Cookie // with the last answers
}

func (w *world) browse() *browser {
	w.T.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.T.Fatal(err)
	}
	return &browser{w: w, client: &http.Client{Transport: httpclient.Transport, Jar: jar}, header: http.Header{"Accept-Language": {"fr"}}}
}

func (b *browser) get(path string) *browser {
	b.w.T.Helper()
	return b.request(http.MethodGet, path, nil)
}

func (b *browser) request(method, path string, form url.Values) *browser {
	t := b.w.T
	t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequestWithContext(t.Context(), method, cmp.Or(b.base, b.w.url)+path, body)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(req.Header, b.header)
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	client := *b.client
	client.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		b.sent = append(b.sent, next.Response.Cookies()...)
		if next.Response.StatusCode != http.StatusSeeOther || len(via) > 3 {
			return errors.New("redirected too often, or with another status")
		}
		return nil
	}
	b.sent = nil
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	b.sent = append(b.sent, resp.Cookies()...)
	b.status, b.at, b.html, b.answer = resp.StatusCode, resp.Request.URL.RequestURI(), string(text), resp.Header
	for _, private := range []string{c01, c02, c01Live, "contact-name", "+242060000000", "internal note"} {
		if strings.Contains(b.html, private) || strings.Contains(fmt.Sprint(resp.Header), private) {
			t.Errorf("%s tells %q", b.at, private)
		}
	}
	return b
}

var (
	formPattern  = regexp.MustCompile(`(?s)<form[^>]* action="([^"]*)"[^>]*>(.*?)</form>`)
	inputPattern = regexp.MustCompile(`<input[^>]*>`)
	attrPattern  = regexp.MustCompile(`([a-z_-]+)="([^"]*)"`)
	tagPattern   = regexp.MustCompile(`<[^>]*>`)
)

// post sends the form whose action has this ending, with the clerk's input.
func (b *browser) post(action string, fill ...string) *browser {
	b.w.T.Helper()
	path, form := b.form(action, fill...)
	return b.request(http.MethodPost, path, form)
}

func (b *browser) form(action string, fill ...string) (string, url.Values) {
	b.w.T.Helper()
	for _, f := range formPattern.FindAllStringSubmatch(b.html, -1) {
		if !strings.HasSuffix(f[1], action) {
			continue
		}
		form := url.Values{}
		for _, in := range inputPattern.FindAllString(f[2], -1) {
			attrs := map[string]string{}
			for _, a := range attrPattern.FindAllStringSubmatch(in, -1) {
				attrs[a[1]] = a[2]
			}
			form.Set(attrs["name"], attrs["value"])
		}
		for i := 0; i+1 < len(fill); i += 2 {
			form.Set(fill[i], fill[i+1])
		}
		return f[1], form
	}
	b.w.T.Fatalf("%s has no form %s:\n%s", b.at, action, b.html)
	return "", nil
}

func (b *browser) want(status int, texts ...string) *browser {
	b.w.T.Helper()
	if b.status != status {
		b.w.T.Fatalf("%s answers %d, want %d:\n%s", b.at, b.status, status, b.html)
	}
	said := tagPattern.ReplaceAllString(b.html, "")
	for _, text := range texts {
		if !strings.Contains(said, text) {
			b.w.T.Fatalf("%s does not say %q:\n%s", b.at, text, said)
		}
	}
	return b
}

func (b *browser) lacks(texts ...string) *browser {
	b.w.T.Helper()
	for _, text := range texts {
		if strings.Contains(b.html, text) {
			b.w.T.Errorf("%s has %q:\n%s", b.at, text, b.html)
		}
	}
	return b
}

// signedIn returns a browser of a signed-in clerk.
func (w *world) signedIn(key string) *browser {
	w.T.Helper()
	return w.browse().get("/counter").post("/sign-in", "key", key).want(http.StatusOK, "Rechercher un paiement")
}
