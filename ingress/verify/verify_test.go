package verify_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"quittance/checkout"
	"quittance/ingress/verify"
	"quittance/ingress/web"
	"quittance/internal/batchseal"
	"quittance/internal/operation"
	"quittance/internal/receipts"
	"quittance/internal/secret"
	"quittance/internal/sessions"
	"quittance/test/servers"
)

const (
	host        = "paiement.example.cg"
	transaction = "019ab1c2-0000-7abc-8def-0123456789ab"
	jti         = "AZqxwgAAeryN7wEjRWeJqw"
)

var (
	now    = time.Date(2026, 11, 23, 9, 30, 0, 0, time.UTC)
	paidAt = now.Add(-time.Hour)
)

// payments are a read model with one payment at most.
type payments struct {
	session checkout.Session
	away    bool
}

var errAway = errors.New("away")

func (p *payments) ByTransaction(_ context.Context, id string) (checkout.Session, error) {
	switch {
	case p.away:
		return checkout.Session{}, errAway
	case id != transaction || p.session.ID == "":
		return checkout.Session{}, sessions.ErrNotFound
	}
	return p.session, nil
}

func (p *payments) Reversals(context.Context, bool, time.Time, time.Time) ([]sessions.Reversal, error) {
	if p.away {
		return nil, errAway
	}
	if p.session.ReversedAt.IsZero() {
		return nil, nil
	}
	return []sessions.Reversal{{TransactionID: transaction, At: p.session.ReversedAt}}, nil
}

func paid() checkout.Session {
	return checkout.Session{
		ID: "chs_1", TenantID: "a", Live: true, Amount: 5000, Currency: "XAF", CitizenID: "1", Status: checkout.StatusCompleted, EndedAt: paidAt, PaymentRef: "4821903344556672",
		Items:      []checkout.Item{{ERPDueRef: "D-1", SubjectRef: "NIU-4711", ServiceLabel: "Timbre", Amount: 5000, Outstanding: 5000, TransactionID: transaction, NoticeRef: "AV1"}},
		Collection: &checkout.Collection{OfferID: checkout.OfferMomo, Channel: checkout.ChannelMobileMoney, DecidedAt: paidAt},
	}
}

type world struct {
	payments
	store  *receipts.Store
	papers *batchseal.Signer
	router chi.Router
	revoke func(kid string)
}

func newWorld(t *testing.T, perClient float64) *world {
	t.Helper()
	_, pool := servers.Database(t)
	master := secret.GenerateKeys()
	actor := operation.Actor{Kind: operation.ActorService, Name: "test"}
	if err := receipts.EnsureKeys(t.Context(), pool, master, actor, now); err != nil {
		t.Fatal(err)
	}
	w := &world{}
	w.session = paid()
	serve := func() {
		var err error
		if w.store, err = receipts.NewStore(receipts.StoreConfig{Pool: pool, Keys: master, PublicURL: "https://" + host}); err != nil {
			t.Fatal(err)
		}
		gate, err := web.NewGate(web.GateConfig{IDs: checkout.IDs{}, PerClient: perClient, PerInstance: 1000, Metrics: prometheus.NewRegistry()})
		if err != nil {
			t.Fatal(err)
		}
		printed, err := batchseal.Keys(master)
		if err != nil {
			t.Fatal(err)
		}
		if w.papers, err = batchseal.NewSigner(master); err != nil {
			t.Fatal(err)
		}
		v, err := verify.New(verify.Config{
			Papers: printed, Keys: w.store, Sessions: &w.payments, Slug: func(string) string { return "impots" }, Agencies: func() map[string]string { return map[string]string{"impots": "Direction générale des impôts"} }, Gate: gate, PublicURL: "https://" + host, ListAge: time.Nanosecond,
			Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		w.router = chi.NewRouter()
		v.Routes(w.router)
	}
	serve()
	w.revoke = func(kid string) {
		if _, _, _, err := receipts.RevokeKey(t.Context(), pool, master, actor, kid, now); err != nil {
			t.Fatal(err)
		}
		serve() // another process, which reads the keys now
	}
	return w
}

func (w *world) token(t *testing.T, s checkout.Session) string {
	t.Helper()
	token, _, err := w.store.Issue(t.Context(), "impots", s, transaction)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func (w *world) do(t *testing.T, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "https://"+host+path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	out := httptest.NewRecorder()
	w.router.ServeHTTP(out, r)
	return out
}

// The key set is public, cached for minutes, and read by pages of any site.
func TestKeySet(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1000)
	a := w.do(t, http.MethodGet, verify.PathKeys, "")
	keys, err := receipts.ParseJWKS(a.Body.Bytes())
	if a.Code != http.StatusOK || err != nil || len(keys) != 2 {
		t.Fatalf("%d %s, %v", a.Code, a.Body, err)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/jwk-set+json", "Cache-Control": "public, max-age=300, stale-if-error=86400", "Access-Control-Allow-Origin": "*",
	} {
		if got := a.Header().Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if again := w.do(t, http.MethodGet, verify.PathKeys, "", "If-None-Match", a.Header().Get("ETag")); again.Code != http.StatusNotModified {
		t.Errorf("with the ETag: %d", again.Code)
	}
}

// The state of a payment, and the signed list of reversals.
func TestStatusAndReversals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1000)
	keys, err := w.store.Keys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	live, err := keys.Signing(true, paidAt)
	if err != nil {
		t.Fatal(err)
	}
	list := func() receipts.Reversals {
		t.Helper()
		a := w.do(t, http.MethodGet, "/q/reversed/"+live.ID+".json", "")
		kid, r, err := keys.ReadReversals(host, a.Body.Bytes())
		if a.Code != http.StatusOK || err != nil || kid != live.ID || r.At != now.Unix() {
			t.Fatalf("%d %s, %v", a.Code, a.Body, err)
		}
		return r
	}
	status := func(jti, want string) {
		t.Helper()
		a := w.do(t, http.MethodGet, "/q/status/"+jti, "")
		if a.Code != http.StatusOK || strings.TrimSpace(a.Body.String()) != want || a.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %s, want %s", jti, a.Code, a.Body, want)
		}
	}
	status(jti, `{"status":"paid","at":1795426200}`)
	// With the digest of a receipt's payment the service says whether its record agrees.
	claims, err := receipts.NewClaims(host, "impots", w.session, transaction)
	if err != nil {
		t.Fatal(err)
	}
	status(jti+"?payment="+claims.PaymentDigest(), `{"status":"paid","at":1795426200,"agrees":true}`)
	claims.Amount = 9000
	status(jti+"?payment="+claims.PaymentDigest(), `{"status":"paid","at":1795426200,"agrees":false}`)
	status(jti+"?payment=x", `{"status":"paid","at":1795426200,"agrees":false}`)
	for _, unknown := range []string{"AZqxwgAAeryN7wEjRWeJqA", "x", transaction, "x?payment=" + claims.PaymentDigest()} {
		status(unknown, `{"status":"unknown","at":1795426200}`)
	}
	if r := list(); r.Count != 0 || len(r.Reversed) != 0 {
		t.Errorf("%+v", r)
	}
	w.session.ReversedAt = now.Add(-time.Minute)
	status(jti, `{"status":"reversed","at":1795426200,"reversed_at":1795426140}`)
	if r := list(); r.Count != 1 || r.Reversed[jti] != 1795426140 {
		t.Errorf("%+v", r)
	}
	w.away = true
	for _, path := range []string{"/q/status/" + jti, "/q/reversed/" + live.ID + ".json"} {
		if a := w.do(t, http.MethodGet, path, ""); a.Code != http.StatusServiceUnavailable || a.Header().Get("Retry-After") == "" {
			t.Errorf("%s while the read model is away: %d", path, a.Code)
		}
	}
	w.away = false
	w.revoke(live.ID)
	if a := w.do(t, http.MethodGet, "/q/reversed/"+live.ID+".json", ""); a.Code != http.StatusNotFound {
		t.Errorf("the list of a revoked key: %d", a.Code)
	}
}

// The service checks what the form has: in words, and as JSON for the script.
func TestForm(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1000)
	token := w.token(t, paid())
	check := func(receipt, accept string) *httptest.ResponseRecorder {
		return w.do(t, http.MethodPost, "/q", url.Values{"receipt": {receipt}, "lang": {"fr"}}.Encode(), "Accept", accept, "Sec-Fetch-Site", "same-origin")
	}
	says := func(name, receipt string, status int, want ...string) {
		t.Helper()
		a := check(receipt, "text/html")
		text := strings.Join(strings.Fields(a.Body.String()), " ")
		for _, part := range want {
			if a.Code != status || !strings.Contains(text, part) {
				t.Errorf("%s: %d, without %q: %s", name, a.Code, part, text)
			}
		}
	}
	verdict := func(receipt string) (out struct {
		Verdict string
		At      int64
		Claims  map[string]any
	},
	) {
		t.Helper()
		if a := check(receipt, "application/json"); a.Code != http.StatusOK || json.Unmarshal(a.Body.Bytes(), &out) != nil {
			t.Fatalf("%d %s", a.Code, a.Body)
		}
		return out
	}
	says("paid", " https://"+host+"/q#"+token+" ", http.StatusOK, "Authentique, vérifiée en ligne à 10:30 le 23 novembre 2026", "5 000 FCFA", "AV1", "4821", "…4711", "Mobile money")
	if got := verdict(token); got.Verdict != "authentic" || got.At != now.Unix() || got.Claims["n"] != "AV1" {
		t.Errorf("%+v", got)
	}
	if strings.Contains(check(token, "text/html").Header().Get("Content-Security-Policy"), "unsafe") {
		t.Error("the policy allows what is unsafe")
	}
	says("nothing", " ", http.StatusUnprocessableEntity, "Collez l’adresse")
	says("forged", token[:len(token)-8]+"AAAAAAAA", http.StatusOK, "Ce n’est pas un reçu de ce service")
	w.session.ReversedAt = now
	says("reversed", token, http.StatusOK, "Paiement annulé le 23 novembre 2026 à 10:30")
	trial := paid()
	trial.Live = false
	testToken := w.token(t, trial)
	says("test, reversed", testToken, http.StatusOK, "Reçu de TEST, sans valeur ; paiement annulé le 23 novembre 2026 à 10:30")
	if got := verdict(testToken); got.Verdict != "test" || got.At != now.Unix() {
		t.Errorf("test, reversed: %+v", got)
	}
	w.session.ReversedAt = time.Time{}
	if got := verdict(testToken); got.Verdict != "test" || got.At != 0 {
		t.Errorf("test: %+v", got)
	}

	// A thief signs more than was paid: the record says otherwise. Once the key is revoked, its signature
	// proves nothing.
	more := paid()
	more.Items[0].Amount = 9000
	stolen := w.token(t, more)
	says("a stolen key", stolen, http.StatusOK, "Ce reçu ne correspond pas au paiement enregistré", "N’acceptez pas ce reçu")
	english := w.do(t, http.MethodPost, "/q", url.Values{"receipt": {stolen}, "lang": {"en"}}.Encode(), "Sec-Fetch-Site", "same-origin")
	if text := english.Body.String(); !strings.Contains(text, "This receipt does not agree with the recorded payment") || strings.Contains(text, "9,000") {
		t.Errorf("a stolen key, in English: %s", text)
	}
	if got := verdict(stolen); got.Verdict != "differs" || got.Claims != nil {
		t.Errorf("a stolen key: %+v", got)
	}
	kid := func() string { k, _ := w.store.Keys(t.Context()); s, _ := k.Signing(true, paidAt); return s.ID }()
	w.revoke(kid)
	if got := verdict(stolen); got.Verdict != "none" || got.Claims != nil {
		t.Errorf("a stolen, revoked key: %+v", got)
	}
	if got := verdict(token); got.Verdict != "authentic" {
		t.Errorf("the true receipt of a revoked key: %+v", got)
	}
	w.away = true
	says("away", token, http.StatusServiceUnavailable, "Le service ne répond pas")
	if a := check(token, "application/json"); a.Code != http.StatusServiceUnavailable {
		t.Errorf("away, as JSON: %d", a.Code)
	}
	if a := w.do(t, http.MethodPost, "/q", "receipt=x", "Sec-Fetch-Site", "cross-site"); a.Code != http.StatusForbidden {
		t.Errorf("from another site: %d", a.Code)
	}
}

// The codes of certificates and payment advices are checked by their signature, with keys of their own; the service's own pages of
// receipts say what they say, and a paper of another kind of key is none.
func TestPapersOfBatches(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1000)
	set := w.do(t, http.MethodGet, batchseal.Path, "")
	keys, err := receipts.ParseJWKS(set.Body.Bytes())
	if err != nil || len(keys) != 2 || set.Header().Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("%s, %v", set.Body, err)
	}
	for _, k := range keys {
		if strings.Contains(w.do(t, http.MethodGet, verify.PathKeys, "").Body.String(), k.ID) {
			t.Errorf("the key %s of papers is among those of receipts", k.ID)
		}
	}
	advice := batchseal.Claims{
		Version: batchseal.Version, Kind: batchseal.KindAdvice, Issuer: host, IssuedAt: now.Unix(), Agency: "impots", BatchRef: "salaries", Revision: 1, Amount: 250_000, Currency: "XAF", State: "paid",
		LineRef: "<b>A", PayoutRef: "QD1", PaidAt: paidAt.Unix(),
	}
	later := advice
	later.Version++
	for name, c := range map[string]struct {
		claims  batchseal.Claims
		live    bool
		verdict string
		says    []string
	}{
		"advice":             {advice, true, "advice", []string{"Avis de versement authentique, état au 23 novembre 2026 à 10:30", "250 000 FCFA", "&lt;b&gt;A", "Direction générale des impôts"}},
		"test":               {advice, false, "paper_test", []string{"Document de TEST, sans valeur"}},
		"of a later version": {later, true, "unknown_key", []string{"Clé inconnue"}},
	} {
		token, err := w.papers.Token(c.live, c.claims)
		if err != nil {
			t.Fatal(err)
		}
		form := url.Values{"receipt": {"https://" + host + "/q#" + token}, "lang": {"fr"}}.Encode()
		text := strings.Join(strings.Fields(w.do(t, http.MethodPost, "/q", form, "Sec-Fetch-Site", "same-origin").Body.String()), " ")
		for _, part := range c.says {
			if !strings.Contains(text, part) {
				t.Errorf("%s does not say %q: %s", name, part, text)
			}
		}
		var got struct {
			Verdict string
			Paper   *batchseal.Claims
		}
		a := w.do(t, http.MethodPost, "/q", form, "Accept", "application/json", "Sec-Fetch-Site", "same-origin")
		if err := json.Unmarshal(a.Body.Bytes(), &got); err != nil || got.Verdict != c.verdict || (got.Paper != nil) != (c.verdict != "unknown_key") || got.Paper != nil && *got.Paper != c.claims {
			t.Errorf("%s: %s, %v", name, a.Body, err)
		}
	}
}

// A paper's dossier number is compared with the code: its own, another one, none, and of a receipt
// that has none. The page says the full name of the agency, due, fee and total, and that nothing
// proves the payer.
func TestDossierNumber(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1000)
	s := paid()
	s.CitizenID, s.OrderID, s.Items[0].Fee = "", "DOS-2026-17", 100
	w.session = s
	token := w.token(t, s)
	ofPortal := paid()
	portal := w.token(t, ofPortal)
	for name, c := range map[string]struct{ token, typed, text, result string }{
		"its own":       {token, " DOS-2026-17 ", "conforme au code", "matches"},
		"another":       {token, "DOS-2026-18", "le numéro saisi n’est pas celui de ce reçu", "differs"},
		"not typed":     {token, "", "saisissez le numéro du papier", "untyped"},
		"of the portal": {portal, "DOS-2026-17", "non prouvé par le code", "unproven"},
	} {
		if w.session = s; c.token == portal {
			w.session = ofPortal
		}
		form := url.Values{"receipt": {c.token}, "order": {c.typed}, "lang": {"fr"}}.Encode()
		page := w.do(t, http.MethodPost, "/q", form, "Accept", "text/html", "Sec-Fetch-Site", "same-origin")
		text := strings.Join(strings.Fields(page.Body.String()), " ")
		for _, part := range []string{c.text, "Direction générale des impôts", "<dt>Payeur</dt><dd>non prouvé par le code</dd>", "<dt>Total payé</dt>"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s: without %q: %s", name, part, text)
			}
		}
		if warned := strings.Contains(text, `class="warn"`); warned != (c.result == "differs") {
			t.Errorf("%s: warned is %v: %s", name, warned, text)
		}
		var got struct{ Verdict, Order string }
		if a := w.do(t, http.MethodPost, "/q", form, "Accept", "application/json", "Sec-Fetch-Site", "same-origin"); json.Unmarshal(a.Body.Bytes(), &got) != nil || got.Verdict != "authentic" || got.Order != c.result {
			t.Errorf("%s: %s", name, a.Body)
		}
	}
}

// A client's calls are limited, and none of them can be used to find payments.
func TestLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0.1)
	token := w.token(t, paid())
	if a := w.do(t, http.MethodGet, "/q/status/"+jti, ""); a.Code != http.StatusOK {
		t.Fatal(a.Code)
	}
	for _, a := range []*httptest.ResponseRecorder{
		w.do(t, http.MethodGet, "/q/status/"+jti, ""), w.do(t, http.MethodGet, "/q/reversed/x.json", ""),
		w.do(t, http.MethodPost, "/q", "receipt="+token), w.do(t, http.MethodPost, "/q", "receipt="+token, "Accept", "application/json"),
	} {
		if a.Code != http.StatusTooManyRequests || a.Header().Get("Retry-After") == "" {
			t.Errorf("%d %v", a.Code, a.Header())
		}
	}
	if a := w.do(t, http.MethodGet, verify.PathKeys, ""); a.Code != http.StatusOK {
		t.Errorf("the key set: %d", a.Code)
	}
}

// The first view takes at most 8 kB in three answers, in both languages, and everything that
// works without network later is named by the service worker.
func TestFirstView(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1000)
	worker := w.do(t, http.MethodGet, "/q/sw.js", "")
	if worker.Header().Get("Service-Worker-Allowed") != "/q" || worker.Header().Get("Cache-Control") != "no-cache" {
		t.Errorf("the service worker: %v", worker.Header())
	}
	for _, lang := range []string{"fr", "en"} {
		page := w.do(t, http.MethodGet, "/q?lang="+lang, "", "Accept-Encoding", "br")
		if page.Header().Get("Content-Encoding") != "br" {
			t.Fatalf("%s: %v", lang, page.Header())
		}
		size := page.Body.Len()
		var plain bytes.Buffer
		if _, err := plain.ReadFrom(brotli.NewReader(page.Body)); err != nil {
			t.Fatal(err)
		}
		requests := 1
		for _, attribute := range []string{`href="/q/assets/`, `src="/q/assets/`} {
			_, rest, found := strings.Cut(plain.String(), attribute)
			name, _, _ := strings.Cut(rest, `"`)
			if !found || !strings.Contains(worker.Body.String(), "/q/assets/"+name) {
				t.Errorf("%s: %s%s is not kept", lang, attribute, name)
			}
			size += w.do(t, http.MethodGet, "/q/assets/"+name, "", "Accept-Encoding", "br").Body.Len()
			requests++
		}
		const most = 7_250 // 8 kB with the headers of three answers
		t.Logf("%s: %d bytes in %d answers", lang, size, requests)
		if size > most {
			t.Errorf("%s: %d bytes, want %d", lang, size, most)
		}
	}
}
