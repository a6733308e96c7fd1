package pages

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"quittance/checkout"
	"quittance/checkout/page"
	"quittance/internal/connector"
)

// Defaults of a Config.
const (
	// DefaultApprovalWindow is the payer's time to approve (decisions § 6).
	DefaultApprovalWindow = 5 * time.Minute
	// DefaultCardWindow is the payer's time on the acquirer's page: a card has to be
	// found and its holder authenticated.
	DefaultCardWindow = 15 * time.Minute
	// DefaultSendWithin bounds how late the operator may be asked.
	DefaultSendWithin = 2 * time.Minute
	// DefaultHeartbeat is the longest silence of a live stream.
	DefaultHeartbeat = 15 * time.Second
	// DefaultMaxViewers bounds the live streams of one instance.
	DefaultMaxViewers = 10_000
)

// maxBody is more than any form of ours needs.
const maxBody = 16 << 10

// Sessions reads sessions; *readmodel.Reader does.
type Sessions interface {
	// ByID is the session with everything that was acknowledged before the call.
	// The error wraps readmodel.ErrNotFound; any other means that it cannot be
	// told now.
	ByID(ctx context.Context, id string) (checkout.Session, error)
	// Statuses has those of the sessions that exist, by id, with one query and
	// however old. Only Sequence and Collection.Enquiries need be set. None may be
	// older than ByID has told before.
	Statuses(ctx context.Context, ids []string) (map[string]checkout.Session, error)
}

// Asker sends a command to the processors and awaits the answer.
type Asker interface {
	// Ask carries the command out. An error that wraps checkout.ErrMalformedID
	// means that there is no such session; after any other the command may or may
	// not be carried out.
	Ask(ctx context.Context, cmd checkout.Command) (checkout.Answer, error)
}

// Agencies knows who is paid and by which means.
type Agencies interface {
	// AgencyName is what citizens call the agency.
	AgencyName(tenantID string) (name string, ok bool)
	// Configured says whether the agency can be paid in the currency by the offer in
	// that mode: it has an account that takes it, or a counter.
	Configured(tenantID string, live bool, offerID, currency string) bool
	// AccountOf is the fingerprint of that account, empty when there is none.
	AccountOf(tenantID string, live bool, offerID string) string
	// EmbedOrigins are those that may frame the checkout of the application's
	// sessions, or of those that a platform key made (decisions § 9).
	EmbedOrigins(applicationID string, platform bool) []string
	// Embeds says whether the origin is on anybody's list.
	Embeds(origin string) bool
}

// Payer reads numbers as an operator's connector wants them.
type Payer interface {
	// Payer turns what a citizen typed into what the operator wants. Errors wrap
	// connector.ErrPayerMalformed or connector.ErrPayerElsewhere.
	Payer(input string) (string, error)
}

// MobileMoney is an offer that is paid by approving on a phone.
type MobileMoney struct {
	// Payer is the operator's connector.
	Payer Payer
	// USSD shows pending payments, such as "*105#"; may be empty.
	USSD string
}

// Config of Pages. What has no default is required.
type Config struct {
	Sessions Sessions
	Commands Asker
	Agencies Agencies
	// MobileMoney are the mobile money offers that the page can collect, by
	// offer_id. One that no entry speaks for is not shown.
	MobileMoney map[string]MobileMoney
	// Opener opens the redirects to acquirers that the collect sink sealed.
	Opener connector.Opener
	// FrameScript is the messaging script of frames (package sdk).
	FrameScript []byte
	// Now is the service's clock, UTC.
	Now     func() time.Time
	Log     *slog.Logger
	Metrics prometheus.Registerer

	ApprovalWindow time.Duration // DefaultApprovalWindow
	CardWindow     time.Duration // DefaultCardWindow
	SendWithin     time.Duration // DefaultSendWithin
	Heartbeat      time.Duration // DefaultHeartbeat
	MaxViewers     int           // DefaultMaxViewers
}

func (c Config) validate() error {
	switch {
	case c.Sessions == nil || c.Commands == nil || c.Agencies == nil:
		return errors.New("pages: Sessions, Commands and Agencies are required")
	case c.Now == nil || c.Log == nil || c.Metrics == nil || c.Opener == nil:
		return errors.New("pages: Now, Log, Metrics and Opener are required")
	}
	for offer, m := range c.MobileMoney {
		if channel, ok := checkout.OfferChannel(offer); !ok || channel != checkout.ChannelMobileMoney || m.Payer == nil {
			return errors.New("pages: " + offer + " is no mobile money offer with a Payer")
		}
	}
	return nil
}

// Pages serves the checkout page. Safe for concurrent use.
type Pages struct {
	cfg      Config
	renderer *page.Renderer
	assets   map[string]page.Asset
	frame    page.Asset // the messaging script
	watcher  *watcher

	rendered      *prometheus.CounterVec
	confirmations *prometheus.CounterVec
}

// New makes Pages. Live status needs Run.
func New(cfg Config) (*Pages, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.ApprovalWindow = cmp.Or(cfg.ApprovalWindow, DefaultApprovalWindow)
	cfg.CardWindow = cmp.Or(cfg.CardWindow, DefaultCardWindow)
	cfg.SendWithin = cmp.Or(cfg.SendWithin, DefaultSendWithin)
	cfg.Heartbeat = cmp.Or(cfg.Heartbeat, DefaultHeartbeat)
	cfg.MaxViewers = cmp.Or(cfg.MaxViewers, DefaultMaxViewers)
	renderer, err := page.New()
	if err != nil {
		return nil, err
	}
	factory := promauto.With(cfg.Metrics)
	p := &Pages{
		cfg: cfg, renderer: renderer, assets: map[string]page.Asset{},
		frame:   page.NewAsset("frame.js", page.ContentTypeScript, cfg.FrameScript),
		watcher: newWatcher(cfg.Sessions, cfg.MaxViewers, cfg.Log, factory),
		rendered: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_pages_rendered_total", Help: "Checkout pages shown, by state.",
		}, []string{"state"}),
		confirmations: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_pages_confirmations_total", Help: "Payments that citizens confirmed, by outcome: an answer's code, or unavailable.",
		}, []string{"outcome"}),
	}
	for _, outcome := range []string{string(checkout.CodeOK), "unavailable"} {
		p.confirmations.WithLabelValues(outcome)
	}
	for _, asset := range append(renderer.Assets(), p.frame) {
		p.assets[asset.Path] = asset
	}
	return p, nil
}

// Run keeps the live status up to date until ctx ends; then it ends the streams,
// so that a server which drains has nothing to wait for.
func (p *Pages) Run(ctx context.Context) error { return p.watcher.run(ctx) }

// Routes mounts everything under /c and /embed.
func (p *Pages) Routes(r chi.Router) {
	get := func(r chi.Router, pattern string, h http.HandlerFunc) {
		r.Get(pattern, h)
		r.Head(pattern, h)
	}
	journey := func(r chi.Router) {
		get(r, "/", p.show)
		// A step's address, typed or reopened, leads to where the session is.
		get(r, "/{step:offer|phone|pay|cancel}", p.back)
		r.Group(func(r chi.Router) {
			r.Use(sameSite)
			r.Post("/offer", p.offer)
			r.Post("/phone", p.phone)
			r.Post("/pay", p.pay)
			r.Post("/cancel", p.cancel)
		})
		get(r, "/*", p.nowhere)
	}
	r.Route("/embed/{session_id}", func(r chi.Router) {
		r.Use(compressor().Handler)
		journey(r)
	})
	r.Route("/c", func(r chi.Router) {
		// Streams are not compressed: an encoder would keep what it has.
		r.Get("/{session_id}/live", p.live)

		r.Group(func(r chi.Router) {
			// chi's compressor, as it is at hand and pools its encoders; it has no
			// brotli of its own, which saves a citizen a sixth of gzip's bytes.
			r.Use(compressor().Handler)
			get(r, "/assets/{name}", p.asset)
			r.Route("/{session_id}", journey)
			get(r, "/*", p.nowhere)
			get(r, "/", p.nowhere)
		})
	})
}

func compressor() *middleware.Compressor {
	const level = 5
	c := middleware.NewCompressor(level, "text/html", "text/css", "text/javascript")
	c.SetEncoder("br", func(w io.Writer, level int) io.Writer { return brotli.NewWriterLevel(w, level) })
	return c
}

// sameSite refuses posts from other sites. The pages' Referrer-Policy makes
// browsers send "Origin: null" with our own forms, so that only Sec-Fetch-Site
// tells; one that is too old to send it (before 2023) could not pay at all if
// null counted as foreign, and there is no cookie here to protect.
func sameSite(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		old := r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "null"
		if !old && protection.Check(r) != nil {
			setHeaders(w)
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, "Cette demande vient d’un autre site.\nThis request comes from another site.\n")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// setHeaders sets the headers of a page, those of the hosted one if none are given.
func setHeaders(w http.ResponseWriter, headers ...page.Header) {
	if len(headers) == 0 {
		headers = page.Headers()
	}
	for _, h := range headers {
		w.Header().Set(h.Name, h.Value)
	}
}

func (p *Pages) asset(w http.ResponseWriter, r *http.Request) {
	asset, ok := p.assets[page.AssetPrefix+chi.URLParam(r, "name")]
	if !ok {
		p.nowhere(w, r)
		return
	}
	w.Header().Set("Content-Type", asset.ContentType)
	w.Header().Set("Cache-Control", page.AssetCacheControl)
	w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(asset.Body)
}

// write answers with a page. One for a frame names the origins that may show it.
func (p *Pages) write(w http.ResponseWriter, r *http.Request, status int, v page.View, origins ...string) {
	var b bytes.Buffer
	if err := p.renderer.Render(&b, v); err != nil {
		p.cfg.Log.LogAttrs(r.Context(), slog.LevelError, "rendering a checkout page",
			slog.String("state", string(v.State)), slog.Any("error", err))
		status, v = http.StatusInternalServerError, page.View{Lang: v.Lang, State: page.StateUnavailable, SelfURL: v.SelfURL, Embed: v.Embed}
		b.Reset()
		_ = p.renderer.Render(&b, v) // needs nothing that could be missing
	}
	if v.Embed != nil {
		setHeaders(w, page.EmbedHeaders(origins)...)
	} else {
		setHeaders(w)
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	w.WriteHeader(status)
	_, _ = b.WriteTo(w)
	p.rendered.WithLabelValues(string(v.State)).Inc()
}
