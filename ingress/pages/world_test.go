package pages_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/xml"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"quittance/checkout"
	"quittance/checkout/page"
	"quittance/ingress/pages"
	"quittance/ingress/watch"
	"quittance/ingress/web"
	"quittance/internal/commands"
	"quittance/internal/connector"
	"quittance/internal/contact"
	"quittance/internal/notify"
	"quittance/internal/papers"
	"quittance/internal/personal"
	"quittance/internal/quota"
	"quittance/internal/receipts"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/internal/sessions"
	"quittance/test/erps"
	"quittance/test/processor"
	"quittance/test/servers"
)

// world is what the pages need: a processor and a read model in memory, without delay.
type world struct {
	*processor.Processor
	stop func() // ends Run
	// ending ends the streams once it is closed.
	ending chan struct{}

	commands []checkout.Command
	deaf     error // error of Ask, which then does nothing
	blind    error // error of ByID and Statuses
	rebuilt  error // error of ByID; Statuses finds no session
	polls    [][]string
	logs     logs // of the pages
	// first is an action on the session just before the next command.
	first checkout.Action
	// payer is the name in contact data.
	payer string
	// unsealed is the error of the personal data.
	unsealed error
	// keys seal redirects, as the sink collect does.
	keys *secret.Keys
	// apart is the number of readers of a session that wait for each other, so that all of
	// them have read before one continues.
	apart int
	met   chan struct{}
	// takes has, by offer, the currencies of the agency's account or counter.
	takes map[string][]string
	// lookups limit the look-ups of references; only tests of references have it.
	lookups quota.Lookups
	// prompts limit the requests to a phone; only their test has live sessions.
	prompts quota.Prompts
	// payers are the numbers that were sealed, by session.
	payers map[string][]string
	// messages are those that the pages sent; unsent is the error of sending one.
	messages []notify.Message
	unsent   error
	// asked limits the receipts that payers ask for; only their test has it.
	asked quota.Receipts
	// erp is the agency's.
	erp *erps.ERP
}

// logs keeps what was logged.
type logs struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

var (
	_ pages.Sessions = (*world)(nil)
	_ pages.Sessions = (*sessions.Reader)(nil)
	_ pages.Asker    = (*world)(nil)
	_ pages.Asker    = (*commands.Checkout)(nil)
	_ pages.Payer    = connector.PayerReader(nil)
	_ pages.Personal = (*world)(nil)
	_ pages.Personal = (*personal.Store)(nil)
	_ pages.Messages = (*notify.Sender)(nil)
)

// SealPayer and Customer show the values that the tests look at.
func (w *world) SealPayer(_ context.Context, sessionID, payer string) ([]byte, error) {
	w.Lock()
	defer w.Unlock()
	if w.payers == nil {
		w.payers = map[string][]string{}
	}
	w.payers[sessionID] = append(w.payers[sessionID], payer)
	return []byte(sessionID + "/" + payer), w.unsealed
}

func (w *world) PayerOf(_ context.Context, sessionID, masked string) (string, error) {
	w.Lock()
	defer w.Unlock()
	for _, number := range w.payers[sessionID] {
		if contact.Mask(number) == masked && w.unsealed == nil {
			return number, nil
		}
	}
	return "", cmp.Or(w.unsealed, personal.ErrErased)
}

// Send keeps a message that the sender would take.
func (w *world) Send(_ context.Context, m notify.Message) error {
	w.Lock()
	defer w.Unlock()
	if w.unsent == nil {
		w.messages = append(w.messages, m)
	}
	return w.unsent
}

func (w *world) Customer(_ context.Context, sessionID string, sealed []byte) (checkout.Customer, error) {
	w.Lock()
	defer w.Unlock()
	phone, ok := strings.CutPrefix(string(sealed), sessionID+"/")
	if !ok {
		return checkout.Customer{}, personal.ErrMalformed
	}
	return checkout.Customer{Phone: phone, Name: w.payer}, w.unsealed
}

// Erased is part of papers.Contacts.
func (w *world) Erased(context.Context, string) (bool, error) { return false, nil }

// payerOf returns the payer's number of a request for money.
func payerOf(r checkout.CollectionRequest) string {
	return strings.TrimPrefix(string(r.PayerSealed), r.Session.ID+"/") + r.Payer
}

func (w *world) ByID(_ context.Context, id string) (checkout.Session, error) {
	w.Lock()
	blind, met := cmp.Or(w.blind, w.rebuilt), (chan struct{})(nil)
	s, ok := w.Sessions[id]
	if w.apart > 0 {
		met = w.met
		if w.apart--; w.apart == 0 {
			close(met)
		}
	}
	w.Unlock()
	switch {
	case blind != nil:
		return checkout.Session{}, blind
	case !ok:
		return s, sessions.ErrNotFound
	case met != nil:
		<-met
	}
	return s, nil
}

func (w *world) ByPaymentRef(ctx context.Context, ref string) (checkout.Session, error) {
	var ids []string
	w.Lock()
	for id, s := range w.Sessions {
		if s.PaymentRef == ref {
			ids = append(ids, id)
		}
	}
	w.Unlock()
	if len(ids) != 1 {
		return checkout.Session{}, cmp.Or(w.blind, sessions.ErrNotFound)
	}
	return w.ByID(ctx, ids[0])
}

func (w *world) Statuses(_ context.Context, ids []string) (map[string]checkout.Session, error) {
	w.Lock()
	defer w.Unlock()
	if w.blind != nil {
		return nil, w.blind
	}
	w.polls = append(w.polls, slices.Clone(ids))
	out := map[string]checkout.Session{}
	if w.rebuilt != nil {
		return out, nil
	}
	for _, id := range ids {
		if s, ok := w.Sessions[id]; ok {
			out[id] = s
		}
	}
	return out, nil
}

func (w *world) Ask(_ context.Context, cmd checkout.Command) (checkout.Answer, error) {
	w.Lock()
	defer w.Unlock()
	if w.deaf != nil {
		return checkout.Answer{}, w.deaf
	}
	if w.first != nil {
		w.Decide(checkout.Command{SessionID: cmd.SessionID, Do: w.first})
		w.first = nil
	}
	w.commands = append(w.commands, cmd)
	return w.Decide(cmd), nil
}

// outcome reports the operator's outcome of the session's collection.
func (w *world) outcome(id string, status checkout.OutcomeStatus, code checkout.FailureCode) {
	s := w.Session(id)
	w.Do(id, checkout.Outcome{
		CollectionID: s.Collection.ID, Source: checkout.SourceCallback, Status: status, FailureCode: code,
		Amount: s.Collection.Amount, Currency: "XAF", OperatorRef: "23503452",
	})
}

// misfit reports that the operator took another amount.
func (w *world) misfit(id string) {
	s := w.Session(id)
	w.Do(id, checkout.Outcome{
		CollectionID: s.Collection.ID, Source: checkout.SourceCallback, Status: checkout.OutcomeApproved,
		Amount: s.Collection.Amount - 1, Currency: "XAF", OperatorRef: "23503452",
	})
}

// outOfTime ends the approval window without an outcome.
func (w *world) outOfTime(id string) {
	w.T.Helper()
	w.Change(func() { w.Time = w.Time.Add(6 * time.Minute) })
	w.Do(id, checkout.Tick{}) // asks the operator
	w.Change(func() { w.Time = w.Time.Add(25 * time.Second) })
	w.Do(id, checkout.Tick{})
	if s := w.Session(id); s.Status != checkout.StatusFailed {
		w.T.Fatalf("session is %s after the payer's time, want failed", s.Status)
	}
}

// collected returns the requests for money so far.
func (w *world) collected() (out []checkout.CollectionRequest) {
	w.Lock()
	defer w.Unlock()
	for _, r := range w.Requests {
		if r.Kind == checkout.RequestCollect {
			out = append(out, r)
		}
	}
	return out
}

const (
	tenant = "018f0000-0000-7000-8000-000000000001"
	app    = "018f0000-0000-7000-8000-00000000000a"
)

var start = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// create makes a session; change may be nil.
func (w *world) create(order string, change func(*checkout.Session)) string {
	w.Lock()
	defer w.Unlock()
	var random [16]byte
	random[0] = byte(len(w.Sessions) + 1)
	s := checkout.Session{
		ID: ids.NewSession(w.Time, 3, random), ApplicationID: app, TenantID: tenant, OrderID: order,
		Amount: 5000, Currency: "XAF", Mode: checkout.ModeHosted, ServiceLabel: "Contribution de la patente", Description: "Patente 2026",
		PaymentRef: "4821093377150264", NoticeRef: "AV20260000012345", Note: "internal note",
		SuccessURL: "https://guichet.example/merci", CancelURL: "https://guichet.example/retour",
		Offers:    []checkout.Offer{{ID: checkout.OfferMomo, Channel: checkout.ChannelMobileMoney, Fee: 75}},
		ExpiresAt: w.Time.Add(24 * time.Hour),
	}
	if change != nil {
		change(&s)
	}
	a := w.Decide(checkout.Command{SessionID: s.ID, ApplicationID: app, Live: s.Live, Do: checkout.Create{
		Session: s, IdempotencyKey: s.ID, CreationsPerMinute: 1000,
	}})
	if a.Code != checkout.CodeOK {
		w.T.Fatalf("creating a session: %s", a.Code)
	}
	return s.ID
}

// both gives a session the offers of two operators.
func both(s *checkout.Session) {
	s.Offers = append(s.Offers, checkout.Offer{ID: checkout.OfferMomoB, Channel: checkout.ChannelMobileMoney, Fee: 100})
}

// operator reads numbers with one prefix, as the connectors do.
type operator string

func (o operator) Payer(input string) (string, error) { return contact.MobileOf(input, string(o)) }

// agencies has one agency with the accounts of takes, in test mode only.
type agencies struct{ *world }

func (agencies) Payee(tenantID string) (pages.Payee, bool) {
	return pages.Payee{Name: "Direction générale des impôts", Logo: []byte("a picture"), Contact: page.Contact{
		Address: "Avenue de l’Indépendance, Brazzaville", Phone: "+242220000000", Email: "contact@impots.example", Hours: "du lundi au vendredi",
	}}, tenantID == tenant
}

func (agencies) Agency(id string) (registry.Agency, bool) {
	return registry.Agency{
		ID: id, Name: "Direction générale des impôts", Address: "Avenue de l’Indépendance, Brazzaville", Contact: registry.Contact{Phone: "+242 22 000 00 00", Hours: "du lundi au vendredi"},
		Slug: "impots", Receipt: registry.ReceiptTexts{Title: "Quittance", Mention: "Article 412 du code.", Accountant: "Le trésorier-payeur"},
	}, id == tenant
}

// tokens signs receipts with a key of each mode.
type tokens struct{}

func (tokens) CheckAddress() string { return "pay.example/q" }

func (tokens) Issue(_ context.Context, agency string, s checkout.Session, transactionID string) (token, address string, err error) {
	claims, err := receipts.NewClaims("pay.example", agency, s, transactionID)
	if err != nil {
		return "", "", err
	}
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	key, err := receipts.NewKey(s.Live, private.Public().(ed25519.PublicKey), time.Unix(0, 0))
	if err != nil {
		return "", "", err
	}
	signer, err := receipts.NewSigner(key, private)
	if err != nil {
		return "", "", err
	}
	token, err = signer.Sign(claims)
	return token, receipts.Address("https://pay.example", token), err
}

func (agencies) Counters(tenantID string, live bool) []string {
	if tenantID == tenant && !live {
		return []string{"Annexe", "Hall d’accueil"}
	}
	return nil
}

func (agencies) TransferAccount(string, bool, string) (page.Transfer, bool) {
	return page.Transfer{Holder: "Trésor public", Bank: "Banque d’essai", IBAN: "CG3930011000101013451300019"}, true
}

func (agencies) StatementAccountOf(string, bool, string, string, string) (registry.StatementAccount, bool) {
	return registry.StatementAccount{Holder: "Trésor public", Bank: "Banque d’essai", IBAN: "CG3930011000101013451300019"}, true
}

func (agencies) AccountOf(string, bool, string) string { return "account" }

func (agencies) Embeds(origin string) bool { return origin == "https://guichet.example" }

func (agencies) EmbedOrigins(_ string, platform bool) []string {
	if platform {
		return []string{"https://portal.example"}
	}
	return []string{"https://guichet.example", "https://autre.example"}
}

func (a agencies) Configured(tenantID string, _ bool, offer, currency string) bool {
	a.Lock()
	defer a.Unlock()
	return tenantID == tenant && slices.Contains(a.takes[offer], currency)
}

// serve starts the pages over a world.
func serve(t *testing.T) (*world, *httptest.Server) {
	t.Helper()
	return serveWithin(t, 1e6)
}

// ids make the ids of sessions.
var ids = checkout.NewIDs(secret.GenerateReferenceKey().MAC("ids"))

// serveWithin is serve with a limit of calls that one client makes in a second.
func serveWithin(t *testing.T, perClient float64) (*world, *httptest.Server) {
	t.Helper()
	return serveGated(t, web.GateConfig{PerClient: perClient, PerSession: perClient, PerInstance: 1e6})
}

// serveGated is serve with the limits of a gate.
func serveGated(t *testing.T, limits web.GateConfig) (*world, *httptest.Server) {
	t.Helper()
	w := &world{Processor: processor.New(t, start), ending: make(chan struct{}), keys: secret.GenerateKeys()}
	limits.IDs, limits.Metrics = ids, prometheus.NewRegistry()
	gate, err := web.NewGate(limits)
	if err != nil {
		t.Fatal(err)
	}
	w.erp = erps.Start(t, tenant, w.Now)
	w.takes = map[string][]string{
		checkout.OfferMomo: {"XAF"}, checkout.OfferMomoB: {"XAF"}, checkout.OfferCard: {"EUR", "XAF"}, checkout.OfferCashAgency: {"XAF"},
		checkout.OfferBankTransfer: {"XAF"},
	}
	live := watch.New(watch.Config{Sessions: w, Ending: w.ending, Heartbeat: 200 * time.Millisecond, SessionStreams: 12, ClientStreams: 25, Log: servers.Logger(t), Metrics: prometheus.NewRegistry()})
	maker, err := papers.NewMaker(papers.Config{Registry: agencies{w}, Contacts: w, Dues: w.erp, Tokens: tokens{}, Base: "https://pay.example", Now: w.Now, Log: servers.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	p, err := pages.New(pages.Config{
		Sessions: w, Commands: w, Agencies: agencies{w}, Dues: w.erp, Live: live,
		MobileMoney: map[string]pages.MobileMoney{
			checkout.OfferMomo: {Payer: operator("06"), USSD: "*105#"}, checkout.OfferMomoB: {Payer: operator("05")},
		},
		Lookups: &w.lookups, Prompts: &w.prompts, Messages: w, Asked: &w.asked, Keys: w.keys, PublicURL: "https://pay.example",
		Gate: gate, Opener: w.keys, Personal: w, Papers: maker, FrameScript: []byte("// frame\n"), Now: w.Now, Log: slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), &w.logs), nil)), Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	r := chi.NewRouter()
	r.Use(web.ClientAddress([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}))
	p.Routes(r)
	r.With(p.CrossOrigin).HandleFunc("/embed/{session_id}/completion-token", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	server := httptest.NewServer(r)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- live.Run(ctx) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("running the live status: %v", err)
		}
	})
	t.Cleanup(func() {
		w.stop()
		server.CloseClientConnections()
		server.Close()
	})
	return w, server
}

// browser is a browser without JavaScript: it reads pages, follows links and sends forms.
type browser struct {
	t      *testing.T
	base   string
	header http.Header
	client *http.Client

	status int
	at     *url.URL // of the page shown, after redirects
	html   string
	root   *element
	answer http.Header
	// visited are all addresses asked for.
	visited []string
}

func browse(t *testing.T, server *httptest.Server) *browser {
	return &browser{t: t, base: server.URL, client: server.Client(), header: http.Header{"Accept-Language": {"fr"}}}
}

func (b *browser) get(path string) *browser {
	b.t.Helper()
	return b.request(http.MethodGet, path, nil)
}

func (b *browser) request(method, path string, form url.Values) *browser {
	b.t.Helper()
	if !strings.HasPrefix(path, "http") {
		path = b.base + path
	}
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequestWithContext(b.t.Context(), method, path, body)
	if err != nil {
		b.t.Fatal(err)
	}
	maps.Copy(req.Header, b.header)
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	client := *b.client
	client.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		b.visited = append(b.visited, next.URL.String())
		if next.Response.StatusCode != http.StatusSeeOther {
			b.t.Errorf("redirected with %d", next.Response.StatusCode)
		}
		if len(via) > 3 {
			return errors.New("too many redirects")
		}
		return nil
	}
	b.visited = append(b.visited, path)
	resp, err := client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	if c := resp.Header.Values("Set-Cookie"); len(c) > 0 && !strings.HasPrefix(resp.Request.URL.Path, "/p/") {
		b.t.Errorf("%s sets cookies %v", path, c)
	}
	b.status, b.at, b.html, b.answer, b.root = resp.StatusCode, resp.Request.URL, string(text), resp.Header, nil
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
		b.root = parse(b.t, b.html)
	}
	return b
}

// form returns what the first button of the page's n-th form would send, with the
// citizen's input.
func (b *browser) form(n int, fill url.Values) (action string, sent url.Values) {
	b.t.Helper()
	forms := b.root.all("form")
	if n >= len(forms) {
		b.t.Fatalf("page %s has %d forms:\n%s", b.at, len(forms), b.html)
	}
	f := forms[n]
	sent = url.Values{}
	for _, in := range f.all("input") {
		_, checked := in.attr["checked"]
		if in.attr["type"] != "radio" || checked {
			sent.Set(in.attr["name"], in.attr["value"])
		}
	}
	if button := f.all("button")[0]; button.attr["name"] != "" {
		sent.Set(button.attr["name"], button.attr["value"])
	}
	for name, values := range fill {
		sent[name] = values
	}
	return f.attr["action"], sent
}

// forward sends the page's forward form.
func (b *browser) forward(fill ...string) *browser {
	b.t.Helper()
	values := url.Values{}
	for i := 0; i+1 < len(fill); i += 2 {
		values.Set(fill[i], fill[i+1])
	}
	action, sent := b.form(0, values)
	return b.request(http.MethodPost, action, sent)
}

// link follows the link of that text.
func (b *browser) link(text string) *browser {
	b.t.Helper()
	for _, a := range b.root.all("a") {
		if strings.TrimSpace(a.text()) == text {
			return b.get(a.attr["href"])
		}
	}
	b.t.Fatalf("no link %q on\n%s", text, b.html)
	return b
}

func (b *browser) want(status int, texts ...string) *browser {
	b.t.Helper()
	if b.status != status {
		b.t.Fatalf("%s answers %d, want %d:\n%s", b.at, b.status, status, b.html)
	}
	for _, text := range texts {
		if !strings.Contains(b.root.text(), text) {
			b.t.Fatalf("%s does not say %q:\n%s", b.at, text, b.root.text())
		}
	}
	return b
}

func (b *browser) holds(texts ...string) *browser {
	b.t.Helper()
	for _, text := range texts {
		if !strings.Contains(b.html, text) {
			b.t.Errorf("%s does not hold %q", b.at, text)
		}
	}
	return b
}

func (b *browser) doesNotSay(texts ...string) {
	b.t.Helper()
	for _, text := range texts {
		if strings.Contains(b.root.text(), text) {
			b.t.Errorf("%s says %q:\n%s", b.at, text, b.root.text())
		}
	}
}

// nothingToPress checks that the page has no form and no link with these texts.
func (b *browser) nothingToPress(texts ...string) {
	b.t.Helper()
	if n := len(b.root.all("form")) + len(b.root.all("button")); n != 0 {
		b.t.Errorf("%s has %d forms and buttons, want none", b.at, n)
	}
	for _, a := range b.root.all("a") {
		for _, text := range texts {
			if strings.Contains(a.text(), text) {
				b.t.Errorf("%s has a link %q", b.at, a.text())
			}
		}
	}
}

// toReview goes from the first page to the review.
func (b *browser) toReview(id string) *browser {
	b.t.Helper()
	return b.get("/c/"+id).want(http.StatusOK).forward("phone", "06 600 00 02").want(http.StatusOK, "Vérifiez avant de payer")
}

// element is a node of a page.
type element struct {
	name     string
	attr     map[string]string
	content  string
	children []*element
}

func parse(t *testing.T, html string) *element {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(html))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	root := &element{name: "#root"}
	open := []*element{root}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return root
		}
		if err != nil {
			t.Fatalf("parsing page: %v", err)
		}
		top := open[len(open)-1]
		switch token := token.(type) {
		case xml.StartElement:
			e := &element{name: token.Name.Local, attr: map[string]string{}}
			for _, a := range token.Attr {
				e.attr[a.Name.Local] = a.Value
			}
			top.children = append(top.children, e)
			open = append(open, e)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			top.children = append(top.children, &element{content: string(token)})
		}
	}
}

// all lists the descendants of a name in document order.
func (e *element) all(name string) (found []*element) {
	for _, child := range e.children {
		if child.name == name {
			found = append(found, child)
		}
		found = append(found, child.all(name)...)
	}
	return found
}

func (e *element) text() string {
	text := e.content
	for _, child := range e.children {
		text += child.text()
	}
	return text
}
