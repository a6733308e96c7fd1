// Package shop is the demo shop: an agency's site that takes payments with the
// embedded checkout. Integrators may copy it. It uses only what an integrator has: the
// API, a key and the SDK.
//
// It shows these steps:
//
//  1. The back end creates a session with its secret key and gives the browser
//     the client secret, nothing else (checkout).
//  2. The browser shows the checkout with /sdk/v1.js (assets/shop.js).
//  3. The browser sends the completion token to the back end. The back end verifies the
//     token with its key and only then unlocks the case (completion).
//
// A citizen may close the browser before step 3. A real site therefore also has an endpoint
// for the signed webhook checkout.completed. It unlocks the case at the first of the two,
// once for each order_id. This shop keeps its cases in memory and has no webhook endpoint.
package shop

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Config of a Shop. Fields without a default are required.
type Config struct {
	// Listen is the address to serve https on.
	Listen string
	// DataDir keeps the certificate.
	DataDir string
	// APIBase is the origin of the API, without the path /api/v1.
	APIBase string
	// CheckoutURL is the origin of the checkout and of /sdk/v1.js.
	CheckoutURL string
	// Key is the application's secret key. Without it the pages say that it is missing.
	Key string
	Log *slog.Logger
}

func (c Config) validate() error {
	if c.Listen == "" || c.DataDir == "" || c.Log == nil {
		return errors.New("shop: Listen, DataDir and Log are required")
	}
	for _, address := range []string{c.APIBase, c.CheckoutURL} {
		if u, err := url.Parse(address); err != nil || u.Host == "" || u.Path != "" {
			return fmt.Errorf("shop: %q is no origin such as https://pay.example", address)
		}
	}
	return nil
}

// Shop serves the site. Safe for concurrent use.
type Shop struct {
	cfg         Config
	certificate tls.Certificate
	api         api
	templates   *template.Template

	mu    sync.Mutex
	cases map[string]*kase // by id
}

// notice is a tax notice with the amount to pay.
type notice struct {
	Code     string
	Name     map[string]string // by language
	Amount   int64             // in minor units; XAF has no decimals, EUR has cents
	Currency string
}

var notices = []notice{
	{"vignette", map[string]string{"fr": "Vignette automobile 2026", "en": "Vehicle licence 2026"}, 5_000, "XAF"},
	{"patente", map[string]string{"fr": "Patente 2026", "en": "Business licence 2026"}, 25_000, "XAF"},
	{"visa", map[string]string{"fr": "Visa d’entrée", "en": "Entry visa"}, 60_00, "EUR"}, // by card
}

// kase is a citizen's case. Its id is the order_id.
type kase struct {
	id       string
	notice   notice
	attempt  int // 1 and the number of sessions that ended unpaid
	unlocked bool
}

//go:embed templates assets
var files embed.FS

// New makes a Shop, with a new certificate if DataDir has none.
func New(cfg Config) (*Shop, error) {
	cfg.APIBase, cfg.CheckoutURL = strings.TrimSuffix(cfg.APIBase, "/"), strings.TrimSuffix(cfg.CheckoutURL, "/")
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	certificate, err := loadCertificate(cfg.DataDir, time.Now())
	if err != nil {
		return nil, err
	}
	templates, err := template.New("").Funcs(template.FuncMap{"money": money}).ParseFS(files, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("reading the shop's pages: %w", err)
	}
	return &Shop{
		cfg: cfg, certificate: certificate, templates: templates, cases: map[string]*kase{},
		api: api{base: cfg.APIBase, key: cfg.Key, client: &http.Client{Timeout: 20 * time.Second}},
	}, nil
}

// Run serves until ctx ends.
func (s *Shop) Run(ctx context.Context) error {
	server := &http.Server{
		Addr: s.cfg.Listen, Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{s.certificate}, MinVersion: tls.VersionTLS12},
		// Browsers close the connection while they do not trust the certificate.
		ErrorLog: slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServeTLS("", "") }()
	select {
	case err := <-ended:
		return fmt.Errorf("serving the shop: %w", err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := server.Shutdown(drain); err != nil {
		return errors.Join(fmt.Errorf("draining the shop: %w", err), server.Close())
	}
	return nil
}

// Handler is the site.
func (s *Shop) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.home)
	mux.HandleFunc("POST /cases", s.open)
	mux.HandleFunc("GET /cases/{id}", s.page)
	mux.HandleFunc("POST /cases/{id}/checkout", s.checkout)
	mux.HandleFunc("POST /cases/{id}/completion", s.completion)
	mux.HandleFunc("GET /lab", s.lab)
	mux.Handle("GET /assets/", http.FileServerFS(files))
	// A form on another site must not create cases here.
	return s.headers(http.NewCrossOriginProtection().Handler(mux))
}

func (s *Shop) headers(next http.Handler) http.Handler {
	// The checkout needs three of these: its script, its frame, and the connection with
	// which the SDK distinguishes a refusal from a network fault.
	policy := fmt.Sprintf("default-src 'none'; script-src 'self' %[1]s; frame-src %[1]s; connect-src 'self' %[1]s; "+
		"style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'", s.cfg.CheckoutURL)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Referrer-Policy", "same-origin")
		w.Header().Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// view is the content of a page.
type view struct {
	Lang, Other, OtherURL string
	W                     map[string]string // words
	Notices               []notice
	Notice                notice
	Case                  string
	Unlocked, NoKey, Lab  bool
	SDK                   string
	Layout, Locale        string
	Resize                string
}

func (s *Shop) render(w http.ResponseWriter, r *http.Request, name string, status int, v view) {
	v.Lang, v.Other = "fr", "en"
	if r.URL.Query().Get("lang") == "en" {
		v.Lang, v.Other = "en", "fr"
	}
	query := r.URL.Query()
	query.Set("lang", v.Other)
	v.OtherURL = r.URL.Path + "?" + query.Encode()
	v.W, v.NoKey, v.SDK = words[v.Lang], s.cfg.Key == "", s.cfg.CheckoutURL+"/sdk/v1.js"
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if err := s.templates.ExecuteTemplate(w, name, v); err != nil {
		s.cfg.Log.LogAttrs(r.Context(), slog.LevelError, "rendering a page of the shop", slog.Any("error", err))
	}
}

// home lists the notices.
func (s *Shop) home(w http.ResponseWriter, r *http.Request) {
	s.render(w, r, "home.html", http.StatusOK, view{Notices: notices})
}

// open creates a case.
func (s *Shop) open(w http.ResponseWriter, r *http.Request) {
	i := slices.IndexFunc(notices, func(n notice) bool { return n.Code == r.PostFormValue("notice") })
	if i < 0 {
		http.Error(w, "no such notice", http.StatusUnprocessableEntity)
		return
	}
	lang := ""
	if r.PostFormValue("lang") == "en" {
		lang = "?lang=en"
	}
	http.Redirect(w, r, "/cases/"+s.newCase(notices[i]).id+lang, http.StatusSeeOther)
}

func (s *Shop) newCase(n notice) *kase {
	c := &kase{id: strings.ToUpper(n.Code) + "-" + rand.Text()[:12], notice: n, attempt: 1}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cases[c.id] = c
	return c
}

// page shows a case, with the checkout unless it is unlocked.
func (s *Shop) page(w http.ResponseWriter, r *http.Request) {
	c, ok := s.find(r)
	if !ok {
		s.render(w, r, "unknown.html", http.StatusNotFound, view{})
		return
	}
	s.render(w, r, "case.html", http.StatusOK, view{Case: c.id, Notice: c.notice, Unlocked: c.unlocked, Resize: "auto"})
}

// lab is a new case's page with the notice, layout, locale and resize of its
// address. Its window.messages has every message that the page sees.
func (s *Shop) lab(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	i := slices.IndexFunc(notices, func(n notice) bool { return n.Code == query.Get("notice") })
	c := s.newCase(notices[max(i, 0)])
	s.render(w, r, "case.html", http.StatusOK, view{
		Case: c.id, Notice: c.notice, Lab: true,
		Layout: query.Get("layout"), Locale: query.Get("locale"), Resize: query.Get("resize"),
	})
}

// find returns a copy of the case that the address names.
func (s *Shop) find(r *http.Request) (kase, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.cases[r.PathValue("id")]
	if !ok {
		return kase{}, false
	}
	return *c, true
}

// checkout gives the browser the client secret of the case's session, or answers that
// nothing is left to pay.
func (s *Shop) checkout(w http.ResponseWriter, r *http.Request) {
	c, ok := s.find(r)
	if !ok {
		http.NotFound(w, r)
		return
	}
	// The idempotency key is the attempt's, so that a reload of the page or a second tab
	// gets the same session. The answer has a secret while that session is open.
	for range 2 {
		created, err := s.api.create(r.Context(), c.id+"-"+strconv.Itoa(c.attempt), newSession{
			OrderID: c.id, Amount: c.notice.Amount, Currency: c.notice.Currency, Mode: "embedded", Description: c.notice.Name["fr"],
			Metadata: map[string]string{"notice": c.notice.Code},
		})
		var p problem
		switch {
		case errors.As(err, &p) && p.Code == "checkout.order_paid":
			s.unlock(c.id)
			answer(w, http.StatusOK, map[string]any{"unlocked": true})
			return
		case err != nil:
			s.refuse(w, r, err)
			return
		case created.ClientSecret != "":
			answer(w, http.StatusOK, map[string]any{"client_secret": created.ID + ":" + created.ClientSecret})
			return
		}
		c.attempt = s.nextAttempt(c)
	}
	s.refuse(w, r, errors.New("two sessions were over before they began"))
}

// completion unlocks the case if the API says that the token belongs to a completed
// payment of this case. It trusts nothing else that the browser sends.
func (s *Shop) completion(w http.ResponseWriter, r *http.Request) {
	c, ok := s.find(r)
	if !ok {
		http.NotFound(w, r)
		return
	}
	var said struct {
		CompletionToken string `json:"completion_token"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<10)).Decode(&said); err != nil {
		http.Error(w, "want a completion_token", http.StatusBadRequest)
		return
	}
	verified, err := s.api.verify(r.Context(), said.CompletionToken)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	if verified.Paid && verified.OrderID == c.id {
		s.unlock(c.id)
		answer(w, http.StatusOK, map[string]any{"unlocked": true})
		return
	}
	answer(w, http.StatusOK, map[string]any{"unlocked": false})
}

// unlock unlocks the case. Repeated calls change nothing.
func (s *Shop) unlock(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cases[id].unlocked = true
}

// nextAttempt begins the attempt after c's. Tabs that ask at the same time share it.
func (s *Shop) nextAttempt(c kase) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.cases[c.id]
	now.attempt = max(now.attempt, c.attempt+1)
	return now.attempt
}

// refuse answers with an error and logs the reason.
func (s *Shop) refuse(w http.ResponseWriter, r *http.Request, err error) {
	s.cfg.Log.LogAttrs(r.Context(), slog.LevelWarn, "asking Quittance", slog.Any("error", err))
	answer(w, http.StatusBadGateway, map[string]any{"error": "the payment service did not do it"})
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // an error means that the caller is gone
}

// money formats the amount of a notice.
func money(lang string, n notice) string {
	amount, cents := n.Amount, ""
	if n.Currency == "EUR" {
		amount, cents = amount/100, fmt.Sprintf(",%02d", amount%100)
	}
	digits, separator := strconv.FormatInt(amount, 10), "\u202f"
	if lang == "en" {
		separator, cents = ",", strings.Replace(cents, ",", ".", 1)
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + separator + digits[i:]
	}
	sign := map[string]string{"XAF": "FCFA", "EUR": "€"}[n.Currency]
	if lang == "en" {
		return strings.Replace(sign+"\u00a0"+digits+cents, "€\u00a0", "€", 1)
	}
	return digits + cents + "\u00a0" + sign
}
