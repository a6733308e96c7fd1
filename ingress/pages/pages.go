package pages

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"quittance/checkout"
	"quittance/checkout/page"
	"quittance/ingress/problem"
	"quittance/ingress/watch"
	"quittance/ingress/web"
	"quittance/internal/connector"
	"quittance/internal/erp"
	"quittance/internal/papers"
)

const (
	// approvalWindow is the payer's time to approve (docs/design/decisions.md § 6).
	approvalWindow = 5 * time.Minute
	// cardWindow is the payer's time on the acquirer's page. It must be enough to find a
	// card and authenticate.
	cardWindow = 15 * time.Minute
	// sendWithin is how long after its confirmation a collection may be sent to the
	// operator.
	sendWithin = 2 * time.Minute
)

// Sessions reads sessions; internal/sessions does.
type Sessions interface {
	// ByID returns the session with everything that was acknowledged before the call.
	// The error wraps sessions.ErrNotFound; any other error means that the session
	// cannot be read now.
	ByID(ctx context.Context, id string) (checkout.Session, error)
	// ByPaymentRef returns the session of a payment reference. Errors are those of ByID.
	ByPaymentRef(ctx context.Context, ref string) (checkout.Session, error)
}

// Asker sends a command to the processors and awaits the answer; internal/commands
// does.
type Asker interface {
	// Ask carries the command out. An error that wraps checkout.ErrMalformedID means
	// that there is no such session. After any other error the command may or may not
	// have been carried out.
	Ask(ctx context.Context, cmd checkout.Command) (checkout.Answer, error)
}

// Agencies knows who is paid and by which means.
type Agencies interface {
	// Payee returns what citizens see of the agency.
	Payee(tenantID string) (p Payee, ok bool)
	// Counters returns the names of the agency's counters that take cash in that mode.
	Counters(tenantID string, live bool) []string
	// Configured reports whether the agency can be paid in the currency by the offer in
	// that mode: it has an account that takes the currency, or a counter.
	Configured(tenantID string, live bool, offerID, currency string) bool
	// TransferAccount returns the agency's bank account to which citizens transfer money in the currency.
	TransferAccount(tenantID string, live bool, currency string) (page.Transfer, bool)
	// AccountOf returns the fingerprint of that account, empty when there is none.
	AccountOf(tenantID string, live bool, offerID string) string
	// EmbedOrigins returns the origins that may frame the checkout of the application's
	// sessions, or of sessions made with a platform key (docs/design/decisions.md § 9).
	EmbedOrigins(applicationID string, platform bool) []string
	// Embeds reports whether any list of embed origins has the origin.
	Embeds(origin string) bool
}

// Payee is what citizens see of an agency.
type Payee struct {
	Name    string
	Logo    []byte // a PNG of at most 2 KiB; nil for none
	Contact page.Contact
}

// Payer reads numbers as an operator's connector wants them.
type Payer interface {
	// Payer turns what a citizen typed into the operator's form of the number. Errors
	// wrap contact.ErrNotMobile or contact.ErrOtherOperator.
	Payer(input string) (string, error)
}

// Personal seals payers' numbers and opens contact data: personal.Store.
type Personal interface {
	SealPayer(ctx context.Context, sessionID, payer string) ([]byte, error)
	Customer(ctx context.Context, sessionID string, sealed []byte) (checkout.Customer, error)
	// PayerOf returns the session's number that has the masked form. The error wraps personal.ErrErased if it
	// is not known, or not which.
	PayerOf(ctx context.Context, sessionID, masked string) (string, error)
}

// Dues asks the agencies' ERPs again for what a portal session pays: erp.Dues.
type Dues interface {
	Recheck(ctx context.Context, s checkout.Session) erp.Recheck
}

// MobileMoney is an offer that the citizen pays by approving on a phone.
type MobileMoney struct {
	// Payer is the operator's connector.
	Payer Payer
	// USSD is the code that shows pending payments, such as "*105#". It may be empty.
	USSD string
}

// Config of Pages. All fields but MobileMoney and FrameScript are required.
type Config struct {
	Sessions Sessions
	Commands Asker
	Agencies Agencies
	// Dues are asked before a portal session is paid.
	Dues Dues
	// Live reports changes of sessions. The caller runs it.
	Live *watch.Watcher
	// MobileMoney are the mobile money offers that the page can collect, by offer_id.
	// Other mobile money offers are not shown.
	MobileMoney map[string]MobileMoney
	// Gate admits the calls about a session.
	Gate *web.Gate
	// Opener opens the sealed addresses of acquirers' pages.
	Opener connector.Opener
	// Personal seals payers' numbers and opens contact data.
	Personal Personal
	// Papers makes notices and receipts.
	Papers Papers
	// Lookups has the limits LookupsPerClient and UnknownLookups.
	Lookups Lookups
	// Prompts limits the requests to pay that are sent to a phone.
	Prompts Prompts
	// Messages sends the receipts that payers ask for, and Asked limits them.
	Messages Messages
	Asked    Asked
	// Keys seal the cookies of browsers that pay by reference.
	Keys web.Sealer
	// PublicURL is where browsers reach the pages, such as https://pay.example, without a slash
	// at its end.
	PublicURL string
	// FrameScript is the messaging script of frames (package sdk).
	FrameScript []byte
	// Now is the service's clock, UTC.
	Now     func() time.Time
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

func (c Config) validate() error {
	switch {
	case c.Sessions == nil || c.Commands == nil || c.Agencies == nil || c.Dues == nil || c.Live == nil:
		return errors.New("pages: Sessions, Commands, Agencies, Dues and Live are required")
	case c.Now == nil || c.Log == nil || c.Metrics == nil || c.Opener == nil || c.Personal == nil || c.Gate == nil:
		return errors.New("pages: Now, Log, Metrics, Opener, Personal and Gate are required")
	}
	if c.Lookups == nil || c.Prompts == nil || c.Messages == nil || c.Asked == nil || c.Keys == nil || c.Papers == nil || c.PublicURL == "" {
		return errors.New("pages: Lookups, Prompts, Messages, Asked, Keys, Papers and PublicURL are required")
	}
	for offer, m := range c.MobileMoney {
		if channel, ok := checkout.OfferChannel(offer); !ok || !channel.ByPhone() || m.Payer == nil {
			return errors.New("pages: " + offer + " is not a mobile money offer with a Payer")
		}
	}
	return nil
}

// Pages serves the checkout page. Safe for concurrent use.
type Pages struct {
	cfg      Config
	renderer *page.Renderer
	papers   *papers.Pages
	assets   map[string]page.Asset
	frame    page.Asset // the messaging script
	sameSite func(http.Handler) http.Handler

	rendered      *prometheus.CounterVec
	confirmations *prometheus.CounterVec
	lookups       *prometheus.CounterVec
	asked         *prometheus.CounterVec
}

// New makes Pages.
func New(cfg Config) (*Pages, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	renderer, err := page.New()
	if err != nil {
		return nil, err
	}
	// The pages' Referrer-Policy is no-referrer, and there is no cookie to protect.
	sameSite, err := web.SameSite("", func(h http.Header) { setHeaders(h) })
	if err != nil {
		return nil, err
	}
	sheets, err := papers.NewPages(renderer.Script())
	if err != nil {
		return nil, err
	}
	factory := promauto.With(cfg.Metrics)
	p := &Pages{
		cfg: cfg, renderer: renderer, papers: sheets, assets: map[string]page.Asset{},
		frame: page.NewAsset("frame.js", page.ContentTypeScript, cfg.FrameScript), sameSite: sameSite,
		rendered: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_pages_rendered_total", Help: "Checkout pages shown, by state; paper for the page of a notice or receipt, pdf for its file.",
		}, []string{"state"}),
		confirmations: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_pages_confirmations_total", Help: "Payments that citizens confirmed, by outcome: an answer's code, prompt_open or prompts_limited (of the phone), network_limited (of the browser), or unavailable.",
		}, []string{"outcome"}),
		lookups: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_pages_reference_lookups_total", Help: "Payment references that people without an account looked up, by outcome: found, unknown, refused (a limit is reached).",
		}, []string{"outcome"}),
		asked: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_pages_receipts_asked_total", Help: "Receipts that payers asked for on the page of their payment, by outcome: sent (a message was made), faulty (no address), limited, unavailable.",
		}, []string{"outcome"}),
	}
	for _, outcome := range askedOutcomes {
		p.asked.WithLabelValues(outcome)
	}
	for _, outcome := range []string{"found", "unknown", "refused"} {
		p.lookups.WithLabelValues(outcome)
	}
	for _, outcome := range append([]string{string(checkout.CodeOK), "unavailable"}, promptMetrics...) {
		p.confirmations.WithLabelValues(outcome)
	}
	for _, asset := range append(renderer.Assets(), p.frame) {
		p.assets[asset.Path] = asset
	}
	return p, nil
}

// Routes adds everything under /c, /p and /embed to the router of the whole edge.
func (p *Pages) Routes(r chi.Router) {
	get := func(r chi.Router, pattern string, h http.HandlerFunc) {
		r.Get(pattern, h)
		r.Head(pattern, h)
	}
	paying := func(r chi.Router) {
		get(r, "/", p.visited(visit.showSession))
		// The address of a step's form, typed or opened again, leads to the session's page.
		get(r, "/{step:offer|phone|pay}", p.visited(visit.see))
		r.With(p.sameSite).Post("/offer", p.form(steps.offer))
		r.With(p.sameSite).Post("/phone", p.form(steps.phone))
		r.With(p.sameSite).Post("/pay", p.form(steps.pay))
		get(r, "/*", p.nowhere)
	}
	journey := func(r chi.Router) {
		get(r, "/cancel", p.visited(visit.askCancel))
		r.With(p.sameSite).Post("/cancel", p.visited(visit.cancel))
		paying(r)
	}
	receipts := func(r chi.Router) {
		get(r, "/"+paperReceipt, p.visited(visit.showReceipt))
		get(r, "/"+paperReceiptPDF, p.visited(visit.receiptPDF))
	}
	r.Post("/embed/origin", p.mayFrame)
	r.Route("/embed/{session_id}", func(r chi.Router) {
		r.Use(web.Compress())
		journey(r)
	})
	r.Route("/c", func(r chi.Router) {
		// Streams are not compressed: an encoder would hold back small pieces.
		r.Get("/{session_id}/live", p.live)
		r.Group(func(r chi.Router) {
			r.Use(web.Compress())
			get(r, "/assets/{name}", p.asset)
			r.Route("/{session_id}", func(r chi.Router) {
				receipts(r)
				get(r, "/"+paperNotice, p.visited(visit.showNotice))
				get(r, "/"+paperNoticePDF, p.visited(visit.noticePDF))
				get(r, "/"+pathSend, p.visited(visit.see))
				r.With(p.sameSite).Post("/"+pathSend, p.visited(visit.send))
				journey(r)
			})
			get(r, "/*", p.nowhere)
			get(r, "/", p.nowhere)
		})
	})
	// What no surface of the edge has is answered with a page, too: people mistype addresses.
	r.NotFound(p.nowhere)
	// Codes that have capitals alone are smaller.
	for _, prefix := range []string{"/p", "/P"} {
		r.Route(prefix, func(r chi.Router) {
			r.Get("/{payment_ref}/live", p.liveByReference)
			r.Group(func(r chi.Router) {
				r.Use(web.Compress())
				get(r, "/", p.askReference)
				// Nobody cancels by reference.
				r.Route("/{payment_ref}", func(r chi.Router) {
					receipts(r)
					paying(r)
				})
			})
		})
	}
}

// setHeaders sets the headers of a page, by default those of the hosted page.
func setHeaders(to http.Header, headers ...page.Header) {
	if len(headers) == 0 {
		headers = page.Headers()
	}
	for _, h := range headers {
		to.Set(h.Name, h.Value)
	}
}

// live is GET /c/{id}/live.
func (p *Pages) live(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	id := chi.URLParam(r, "session_id")
	switch err := p.cfg.Gate.Session(r, id); {
	case errors.Is(err, checkout.ErrMalformedID):
		w.WriteHeader(http.StatusNotFound)
		return
	case err != nil:
		problem.Write(w, r, problem.From(err))
		return
	}
	p.cfg.Live.Serve(w, r, id, web.Client(r))
}

func (p *Pages) asset(w http.ResponseWriter, r *http.Request) {
	asset, ok := p.assets[page.AssetPrefix+chi.URLParam(r, "name")]
	if !ok {
		p.nowhere(w, r)
		return
	}
	w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
	web.WriteAsset(w, asset.ContentType, asset.Body)
}

// write answers with a page. The origins are those that may show a page in a frame.
func (p *Pages) write(w http.ResponseWriter, r *http.Request, status int, v page.View, origins ...string) {
	var b bytes.Buffer
	if err := p.renderer.Render(&b, v); err != nil {
		p.cfg.Log.LogAttrs(r.Context(), slog.LevelError, "rendering a checkout page",
			slog.String("state", string(v.State)), slog.Any("error", err))
		status, v = http.StatusInternalServerError, page.View{Lang: v.Lang, State: page.StateUnavailable, SelfURL: v.SelfURL, Embed: v.Embed}
		b.Reset()
		_ = p.renderer.Render(&b, v) // this state needs no data
	}
	if v.Embed != nil {
		setHeaders(w.Header(), page.EmbedHeaders(origins)...)
	} else {
		setHeaders(w.Header())
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	w.WriteHeader(status)
	_, _ = b.WriteTo(w)
	p.rendered.WithLabelValues(string(v.State)).Inc()
}
