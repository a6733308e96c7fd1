// Package partner is a simulated partner of the deprecated cash-in API: a small site as it
// was written years ago, without a script, that must keep working until its partner moves to
// the ministry API. It uses all six routes, and only what a partner has: apiKey, secretKey
// and the answers.
//
//	POST /commande.php ──init-checkout──► redirectUrl ──► the citizen pays ──► GET /commande.php
//	POST /notification.php ◄── unsigned webhook
//
//	POST /commande.php ──partners/payments──► the payer approves on the phone
//	                   ──check-status, repeatedly──► completed
//
// The webhook proves nothing by itself. The answer of init-checkout has no number to ask
// check-status with, so each order has a webhook address that nobody can guess, and the
// amount is compared. Orders are kept in memory.
package partner

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Config of a Partner. All fields are required.
type Config struct {
	// Listen is the address to serve http on.
	Listen string
	// APIBase is the origin of the API, without the path /api.
	APIBase string
	// APIKey and SecretKey are the application's credentials.
	APIKey, SecretKey string
	Log               *slog.Logger
}

// Partner serves the site and asks for the status of payments. Safe for concurrent use.
type Partner struct {
	cfg       Config
	api       *api
	secret    []byte // of the webhook addresses
	templates *template.Template

	mu       sync.Mutex
	orders   map[string]*order // by externalNumber
	gateways []gateway
	read     time.Time // when gateways was read
}

// stamp is what the site sells.
type stamp struct {
	Code   string
	Name   map[string]string // by language
	Amount int64
}

var stamps = []stamp{
	{"TF-5000", map[string]string{"fr": "Timbre fiscal à 5\u202f000\u00a0FCFA", "en": "Revenue stamp, FCFA\u00a05,000"}, 5_000},
	{"TP-25000", map[string]string{"fr": "Timbre de passeport à 25\u202f000\u00a0FCFA", "en": "Passport stamp, FCFA\u00a025,000"}, 25_000},
}

// Statuses of an order: those of a payment.
const (
	created   = "created"
	pending   = "pending"
	completed = "completed"
	failed    = "failed"
	cancelled = "cancelled"
)

// order is one order of a citizen. Its id is the externalNumber.
type order struct {
	ID        string
	Stamp     stamp
	PaymentID int64
	Number    string // of partners/payments
	Status    string
	// Webhooks counts the calls that were received, Asked the answers of check-status.
	Webhooks, Asked int
	asked           time.Time
}

// undecided reports whether check-status may tell more.
func (o *order) undecided() bool {
	return o.Number != "" && (o.Status == created || o.Status == pending)
}

//go:embed templates assets
var files embed.FS

// New makes a Partner.
func New(cfg Config) (*Partner, error) {
	if cfg.Listen == "" || cfg.APIKey == "" || cfg.SecretKey == "" || cfg.Log == nil {
		return nil, errors.New("partner: Listen, APIKey, SecretKey and Log are required")
	}
	if u, err := url.Parse(cfg.APIBase); err != nil || u.Host == "" || u.Path != "" {
		return nil, fmt.Errorf("partner: %q is no origin such as https://pay.example", cfg.APIBase)
	}
	templates, err := template.ParseFS(files, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("reading the partner's pages: %w", err)
	}
	return &Partner{
		cfg: cfg, templates: templates, orders: map[string]*order{}, secret: []byte(rand.Text()),
		// partners/payments waits up to 25 s for the operator.
		api: &api{base: cfg.APIBase, key: cfg.APIKey, secret: cfg.SecretKey, client: &http.Client{Timeout: 40 * time.Second}},
	}, nil
}

// askEvery is how often Run asks for the status of one payment. The API allows 30 a minute.
const askEvery = 3 * time.Second

// Run serves, and asks for the status of pending payments, until ctx ends. Then it revokes
// its token.
func (p *Partner) Run(ctx context.Context) error {
	server := &http.Server{Addr: p.cfg.Listen, Handler: p.Handler(), ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for serving := true; serving; {
		select {
		case err := <-ended:
			return fmt.Errorf("serving the partner's site: %w", err)
		case <-tick.C:
			p.ask(ctx)
		case <-ctx.Done():
			serving = false
		}
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := p.api.revoke(drain); err != nil {
		p.cfg.Log.LogAttrs(drain, slog.LevelDebug, "the partner's token stays valid until it expires", slog.Any("error", err))
	}
	if err := server.Shutdown(drain); err != nil {
		return errors.Join(fmt.Errorf("draining the partner's site: %w", err), server.Close())
	}
	return nil
}

// Handler is the site.
func (p *Partner) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.home)
	mux.HandleFunc("POST /commande.php", p.buy)
	mux.HandleFunc("GET /commande.php", p.page)
	mux.HandleFunc("POST /notification.php", p.notified)
	mux.Handle("GET /assets/", http.FileServerFS(files))
	return p.headers(mux)
}

func (p *Partner) headers(next http.Handler) http.Handler {
	// The form leads to the checkout.
	policy := "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self' " + p.cfg.APIBase + "; base-uri 'none'; frame-ancestors 'none'"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// view is the content of a page.
type view struct {
	Lang, Other, OtherURL string
	W                     map[string]string // words
	Stamps                []stamp
	Providers             []gateway // that collect by telephone
	Order                 *order
	Fault                 string
}

func (p *Partner) render(w http.ResponseWriter, r *http.Request, status int, name string, v view) {
	v.Lang, v.Other = "fr", "en"
	if r.FormValue("lang") == "en" {
		v.Lang, v.Other = "en", "fr"
	}
	query := r.URL.Query()
	query.Set("lang", v.Other)
	v.OtherURL = r.URL.Path + "?" + query.Encode()
	if r.Method != http.MethodGet {
		v.OtherURL = "/?lang=" + v.Other
	}
	v.W = words[v.Lang]
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if err := p.templates.ExecuteTemplate(w, name, v); err != nil {
		p.cfg.Log.LogAttrs(r.Context(), slog.LevelError, "rendering a page of the partner", slog.Any("error", err))
	}
}

// home shows the stamps and the ways to pay.
func (p *Partner) home(w http.ResponseWriter, r *http.Request) {
	p.render(w, r, http.StatusOK, "home.html", view{Stamps: stamps, Providers: p.byTelephone(r.Context())})
}

// byTelephone returns the providers that collect by telephone, read once a minute.
func (p *Partner) byTelephone(ctx context.Context) []gateway {
	p.mu.Lock()
	known, fresh := p.gateways, time.Since(p.read) < time.Minute
	p.mu.Unlock()
	if fresh {
		return known
	}
	list, err := p.api.gateways(ctx)
	if err != nil {
		p.warn(ctx, "reading the payment gateways", err)
		return known
	}
	list = slices.DeleteFunc(list, func(g gateway) bool { return !g.PhoneRequired })
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gateways, p.read = list, time.Now()
	return list
}

func (p *Partner) warn(ctx context.Context, what string, err error) {
	p.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "a call of the simulated partner failed", slog.String("doing", what), slog.Any("error", err))
}

// buy makes an order and its payment: on the checkout page, or by telephone.
func (p *Partner) buy(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	i := slices.IndexFunc(stamps, func(s stamp) bool { return s.Code == r.PostFormValue("timbre") })
	if i < 0 {
		p.render(w, r, http.StatusUnprocessableEntity, "home.html", view{Stamps: stamps, Providers: p.byTelephone(r.Context()), Fault: "choose"})
		return
	}
	o := &order{ID: "CMD-" + rand.Text()[:12], Stamp: stamps[i], Status: created}
	p.mu.Lock()
	p.orders[o.ID] = o
	p.mu.Unlock()
	provider, to := r.PostFormValue("moyen"), ""
	answer, err := made{}, error(nil)
	if provider == "" {
		answer, err = p.api.initCheckout(r.Context(), p.initial(r, *o))
		to = answer.RedirectURL
	} else {
		answer, err = p.api.pay(r.Context(), payment{
			ExternalNumber: o.ID, Amount: o.Stamp.Amount, Description: o.Stamp.Name["fr"], Provider: provider,
			Customer: customer{Phone: r.PostFormValue("telephone")}, Items: o.items(),
		})
		to = p.own(r, o.ID)
	}
	if err != nil {
		p.refused(w, r, err)
		return
	}
	p.mu.Lock()
	o.PaymentID, o.Number = answer.PaymentID, answer.Number
	if provider != "" {
		o.Status = pending
	}
	p.mu.Unlock()
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// initial is the body of init-checkout for an order.
func (p *Partner) initial(r *http.Request, o order) initCheckout {
	own := p.own(r, o.ID)
	return initCheckout{
		ExternalNumber: o.ID, Amount: o.Stamp.Amount, Description: o.Stamp.Name["fr"], Type: "ecommerce", Items: o.items(),
		Merchant: merchant{RedirectURL: own, BackURL: own, WebhookURL: p.site() + "/notification.php?" + url.Values{"commande": {o.ID}, "cle": {p.proof(o.ID)}}.Encode()},
	}
}

func (o order) items() []item {
	return []item{{Number: o.Stamp.Code, Name: o.Stamp.Name["fr"], Price: o.Stamp.Amount, Quantity: 1}}
}

func (p *Partner) site() string { return "http://" + p.cfg.Listen }

// own is the address of an order's page, in the language of the request.
func (p *Partner) own(r *http.Request, id string) string {
	query := url.Values{"commande": {id}}
	if r.FormValue("lang") == "en" {
		query.Set("lang", "en")
	}
	return p.site() + "/commande.php?" + query.Encode()
}

// proof makes an order's webhook address one that nobody can guess.
func (p *Partner) proof(id string) string {
	mac := hmac.New(sha256.New, p.secret)
	mac.Write([]byte(id))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// refused shows why the payment was not made.
func (p *Partner) refused(w http.ResponseWriter, r *http.Request, err error) {
	fault, status := "later", http.StatusBadGateway
	if e := (*refusal)(nil); errors.As(err, &e) {
		switch e.Code {
		case "INVALID_PHONE_NUMBER":
			fault, status = "phone", http.StatusUnprocessableEntity
		case "E_TOO_MANY_REQUESTS":
			fault, status = "busy", http.StatusServiceUnavailable
		case "GATEWAY_REQUEST_FAILED":
			fault = "operator"
		}
		for _, f := range e.Errors {
			if f.Field == "customer.phone" {
				fault, status = "phone", http.StatusUnprocessableEntity
			}
		}
	}
	p.warn(r.Context(), "making a payment", err)
	p.render(w, r, status, "home.html", view{Stamps: stamps, Providers: p.byTelephone(r.Context()), Fault: fault})
}

// page shows an order.
func (p *Partner) page(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	o, ok := p.orders[r.URL.Query().Get("commande")]
	var shown order
	if ok {
		shown = *o
	}
	p.mu.Unlock()
	if !ok {
		p.render(w, r, http.StatusNotFound, "order.html", view{})
		return
	}
	p.render(w, r, http.StatusOK, "order.html", view{Order: &shown})
}

// notified takes an unsigned webhook. It answers 200 to a call that it has understood, also
// when it comes again.
func (p *Partner) notified(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("commande")
	if !hmac.Equal([]byte(r.URL.Query().Get("cle")), []byte(p.proof(id))) {
		http.NotFound(w, r)
		return
	}
	var call struct {
		PaymentID      int64  `json:"paymentId"`
		ExternalNumber string `json:"externalNumber"`
		Amount         int64  `json:"amount"`
		Status         string `json:"status"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(&call); err != nil {
		http.Error(w, "no JSON", http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	o, ok := p.orders[id]
	if !ok || call.ExternalNumber != id || call.Amount != o.Stamp.Amount || call.PaymentID != o.PaymentID || call.Status != completed && call.Status != failed {
		http.Error(w, "not this order", http.StatusUnprocessableEntity)
		return
	}
	o.Webhooks++
	if o.Status != completed { // money that came stays
		o.Status = call.Status
	}
	_, _ = w.Write([]byte("OK\n")) // fails only when the caller is gone
}

// ask asks for the status of the payment that was asked about longest ago.
func (p *Partner) ask(ctx context.Context) {
	p.mu.Lock()
	var next *order
	for _, o := range p.orders {
		if o.undecided() && (next == nil || o.asked.Before(next.asked)) {
			next = o
		}
	}
	number := ""
	if next != nil {
		number, next.asked = next.Number, time.Now()
	}
	p.mu.Unlock()
	if number == "" {
		return
	}
	status, err := p.api.status(ctx, number)
	if err != nil {
		if ctx.Err() == nil {
			p.warn(ctx, "asking for a status", err)
		}
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	next.Status = strings.ToLower(status)
	next.Asked++
}
