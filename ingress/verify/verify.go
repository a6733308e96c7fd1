package verify

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"

	"quittance/checkout"
	"quittance/ingress/problem"
	"quittance/ingress/web"
	"quittance/internal/batchseal"
	"quittance/internal/receipts"
	"quittance/internal/sessions"
	"quittance/money"
)

// Keys knows the keys of receipts; receipts.Store does.
type Keys interface {
	// Keys returns all keys. The caller does not change them.
	Keys(ctx context.Context) (receipts.Keys, error)
	// SignerOf returns the signer of a key that is not revoked, or receipts.ErrUnknownKey.
	SignerOf(ctx context.Context, kid string) (*receipts.Signer, error)
	// Issuer returns the host that tokens name.
	Issuer() string
}

// Sessions reads payments; internal/sessions does.
type Sessions interface {
	// ByTransaction returns the completed session of a transaction. The error wraps
	// sessions.ErrNotFound; any other means that it cannot be read now.
	ByTransaction(ctx context.Context, transactionID string) (checkout.Session, error)
	// Reversals returns the reversals of the payments of a mode and time.
	Reversals(ctx context.Context, live bool, from, until time.Time) ([]sessions.Reversal, error)
}

// Config of New. All fields are required unless stated otherwise.
type Config struct {
	Keys     Keys
	Sessions Sessions
	// Papers are the public keys of certificates and payment advices of batches; may be empty.
	Papers receipts.Keys
	// Slug returns the slug of an agency.
	Slug func(agencyID string) string
	// Agencies returns the full names of all agencies by their slugs.
	Agencies func() map[string]string
	// Gate admits the calls about payments.
	Gate *web.Gate
	// PublicURL is where browsers reach the pages.
	PublicURL string
	// ListAge is how long a signed list is sent again; 5 s if zero.
	ListAge time.Duration
	Now     func() time.Time
	Log     *slog.Logger
}

// Verify serves what those need who check receipts. It is safe for concurrent use.
type Verify struct {
	cfg    Config
	site   *web.Site
	worker []byte

	mu    sync.Mutex
	lists map[string]list // by kid
}

// list is a signed list of reversals.
type list struct {
	body []byte
	at   time.Time
}

// Prefix is the path of the page. Addresses in QR codes end with it.
const Prefix = "/q"

// PathKeys is where the key set is.
const PathKeys = "/.well-known/jwks.json"

const (
	// keysCacheControl is short, so that a revoked key is soon unknown everywhere. A cache may
	// go on with what it has while the service is away.
	keysCacheControl = "public, max-age=300, stale-if-error=86400"
	listCacheControl = "public, max-age=60, stale-if-error=86400"
	listAge          = 5 * time.Second
)

//go:embed templates
var templates embed.FS

//go:embed dist/check.js dist/sw.js
var dist embed.FS

// New makes a Verify.
func New(cfg Config) (*Verify, error) {
	if cfg.Keys == nil || cfg.Sessions == nil || cfg.Slug == nil || cfg.Agencies == nil || cfg.Gate == nil || cfg.Now == nil || cfg.Log == nil {
		return nil, errors.New("verify: Keys, Sessions, Slug, Agencies, Gate, Now and Log are required")
	}
	site, err := web.New(web.Config{
		Prefix: Prefix, Files: templates, PublicURL: cfg.PublicURL, Log: cfg.Log, Script: content("check.js"),
		Policy: "connect-src 'self'; worker-src 'self'",
	})
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	v := &Verify{cfg: cfg, site: site, lists: map[string]list{}}
	v.worker, err = v.serviceWorker()
	return v, err
}

// content returns a file of dist.
func content(name string) []byte {
	body, err := dist.ReadFile("dist/" + name)
	if err != nil {
		panic("verify: dist is embedded, run go generate ./sdk: " + err.Error())
	}
	return body
}

// serviceWorker returns the script with what it keeps. Its name changes with that, so that
// browsers replace what they have.
func (v *Verify) serviceWorker() ([]byte, error) {
	files := []string{Prefix + "?lang=fr", Prefix + "?lang=en"}
	files = append(files, v.site.Assets()...)
	known, err := json.Marshal(files)
	if err != nil {
		return nil, err
	}
	page, err := templates.ReadFile("templates/check.html")
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	_, _ = sum.Write(known)
	_, _ = sum.Write(page)
	for _, lang := range money.Languages {
		_, _ = fmt.Fprintf(sum, "%+v", *texts.In(lang))
	}
	return fmt.Appendf(nil, "self.FILES=%s;self.NAME=\"q-page-%x\";\n%s", known, sum.Sum(nil)[:6], content("sw.js")), nil
}

// Routes mounts the package's paths.
func (v *Verify) Routes(r chi.Router) {
	r.Get(PathKeys, v.jwks)
	r.Head(PathKeys, v.jwks)
	r.Get(batchseal.Path, v.paperKeys)
	r.Head(batchseal.Path, v.paperKeys)
	v.site.Routes(r.With(web.Compress()), func(r chi.Router) {
		r.Get("/", v.show)
		r.Get("/sw.js", func(w http.ResponseWriter, _ *http.Request) {
			h := w.Header()
			h.Set("Content-Type", "text/javascript; charset=utf-8")
			h.Set("Cache-Control", "no-cache")
			h.Set("Service-Worker-Allowed", Prefix) // without it only what is below /q/
			h.Set("X-Content-Type-Options", "nosniff")
			_, _ = w.Write(v.worker)
		})
		r.Get("/agencies.json", v.agencies)
		r.Get("/reversed/{kid}.json", v.reversed)
		r.Get("/status/{jti}", v.status)
	}, func(r chi.Router) {
		r.Post("/", v.check)
	})
}

// jwks answers with the key set.
func (v *Verify) jwks(w http.ResponseWriter, r *http.Request) {
	keys, err := v.cfg.Keys.Keys(r.Context())
	if err != nil {
		v.unavailable(w, r, "reading the keys of receipts", err)
		return
	}
	write(w, r, "application/jwk-set+json", keysCacheControl, keys.JWKS(v.cfg.Now()))
}

// paperKeys answers with the key set of papers of batches.
func (v *Verify) paperKeys(w http.ResponseWriter, r *http.Request) {
	write(w, r, "application/jwk-set+json", keysCacheControl, v.cfg.Papers.JWKS(v.cfg.Now()))
}

// agencies answers with the full names of the agencies by their slugs, which tokens name.
func (v *Verify) agencies(w http.ResponseWriter, r *http.Request) {
	body, err := json.Marshal(v.cfg.Agencies())
	if err != nil {
		panic(err) // texts
	}
	write(w, r, "application/json", keysCacheControl, body)
}

// agency returns the full name of an agency, or its slug if it has none here.
func (v *Verify) agency(slug string) string { return cmp.Or(v.cfg.Agencies()[slug], slug) }

// What /q/status/{jti} says of a payment.
const (
	StatusPaid     = "paid"
	StatusReversed = "reversed"
	StatusUnknown  = "unknown"
)

// QueryPayment names the digest of what a receipt says of the payment (receipts.Claims.PaymentDigest) in the
// query of /q/status/{jti}.
const QueryPayment = "payment"

// Status is the body of /q/status/{jti}. Times are in seconds.
type Status struct {
	Status     string `json:"status"`
	At         int64  `json:"at"`
	ReversedAt int64  `json:"reversed_at,omitempty"`
	// Agrees says whether the record has the payment whose digest was sent; nil if none was sent, or if no
	// payment is known.
	Agrees *bool `json:"agrees,omitempty"`
}

// status answers whether the payment of a receipt stands, and whether it is as the receipt says.
func (v *Verify) status(w http.ResponseWriter, r *http.Request) {
	if !v.admit(w, r) {
		return
	}
	out := Status{Status: StatusUnknown, At: v.cfg.Now().Unix()}
	if id, ok := (receipts.Claims{ID: chi.URLParam(r, "jti")}).TransactionID(); ok {
		s, err := v.cfg.Sessions.ByTransaction(r.Context(), id)
		switch {
		case errors.Is(err, sessions.ErrNotFound):
		case err != nil:
			v.unavailable(w, r, "reading the payment of a receipt", err)
			return
		default:
			out.Status = StatusPaid
			if at := returnedAt(s, id); !at.IsZero() {
				out.Status, out.ReversedAt = StatusReversed, at.Unix()
			}
			out.Agrees = v.agrees(s, id, r.URL.Query().Get(QueryPayment))
		}
	}
	body, err := json.Marshal(out)
	if err != nil {
		panic(err) // a text and numbers
	}
	write(w, r, "application/json", "no-store", body)
}

// agrees returns whether the record of a transaction has the payment of a digest; nil without a digest.
func (v *Verify) agrees(s checkout.Session, transactionID, digest string) *bool {
	if digest == "" {
		return nil
	}
	claims, err := receipts.NewClaims(v.cfg.Keys.Issuer(), v.cfg.Slug(s.TenantID), s, transactionID)
	return new(err == nil && claims.HasPayment(digest))
}

// reversed answers with the signed list of a key.
func (v *Verify) reversed(w http.ResponseWriter, r *http.Request) {
	if !v.admit(w, r) {
		return
	}
	kid := chi.URLParam(r, "kid")
	body, err := v.list(r.Context(), kid)
	switch {
	case errors.Is(err, receipts.ErrUnknownKey):
		public(w.Header())
		w.Header().Set("Cache-Control", "no-store")
		http.Error(w, "no key of receipts has this kid, or it was revoked; the keys are at "+PathKeys, http.StatusNotFound)
	case err != nil:
		v.unavailable(w, r, "listing reversals", err)
	default:
		write(w, r, "application/json", listCacheControl, body)
	}
}

// list returns the signed list of a key, at most ListAge old.
func (v *Verify) list(ctx context.Context, kid string) ([]byte, error) {
	signer, err := v.cfg.Keys.SignerOf(ctx, kid)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	known := v.lists[kid]
	v.mu.Unlock()
	if time.Since(known.at) < cmp.Or(v.cfg.ListAge, listAge) {
		return known.body, nil
	}
	// The list is complete up to the time before it is read.
	key, at, began := signer.Key(), v.cfg.Now().Unix(), time.Now()
	from := key.From
	if from.Unix() == 0 {
		from = time.Time{}
	}
	found, err := v.cfg.Sessions.Reversals(ctx, key.Live, from, key.Until)
	if err != nil {
		return nil, err
	}
	out := receipts.Reversals{Issuer: v.cfg.Keys.Issuer(), At: at, Reversed: make(map[string]int64, len(found))}
	for _, f := range found {
		if id, ok := receipts.IDOf(f.TransactionID); ok {
			out.Reversed[id] = f.At.Unix()
		}
	}
	out.Count = len(out.Reversed)
	body, err := signer.SignReversals(out)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	v.lists[kid] = list{body, began}
	v.mu.Unlock()
	return body, nil
}

// record is the receipts.Records of the service.
func (v *Verify) record(ctx context.Context, transactionID string) (receipts.Record, bool, error) {
	s, err := v.cfg.Sessions.ByTransaction(ctx, transactionID)
	switch {
	case errors.Is(err, sessions.ErrNotFound):
		return receipts.Record{}, false, nil
	case err != nil:
		return receipts.Record{}, false, err
	}
	claims, err := receipts.NewClaims(v.cfg.Keys.Issuer(), v.cfg.Slug(s.TenantID), s, transactionID)
	if err != nil {
		return receipts.Record{}, false, nil //nolint:nilerr // not paid: no receipt
	}
	return receipts.Record{Claims: claims, Live: s.Live, ReversedAt: returnedAt(s, transactionID)}, true, nil
}

// returnedAt returns when the money of a transaction was given back; zero if it was not.
func returnedAt(s checkout.Session, transactionID string) time.Time {
	due, _ := s.Due(transactionID)
	return s.Returned(due)
}

// admit applies the limits of calls without a key. If ok is false the request has been answered.
func (v *Verify) admit(w http.ResponseWriter, r *http.Request) (ok bool) {
	err := v.cfg.Gate.Call(r)
	if err != nil {
		public(w.Header())
		problem.Write(w, r, problem.From(err))
	}
	return err == nil
}

// write answers with a public document that pages of any site may read.
func write(w http.ResponseWriter, r *http.Request, contentType, cacheControl string, body []byte) {
	sum := sha256.Sum256(body)
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", cacheControl)
	h.Set("ETag", `"`+hex.EncodeToString(sum[:12])+`"`)
	public(h)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body)) // conditional requests, HEAD
}

// public sets the headers of answers that pages of any site may read.
func public(h http.Header) {
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set("X-Content-Type-Options", "nosniff")
}

// unavailable answers 503 in plain text.
func (v *Verify) unavailable(w http.ResponseWriter, r *http.Request, what string, err error) {
	v.fault(r, what, err)
	public(w.Header())
	w.Header().Set("Retry-After", "5")
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, "unavailable, try again", http.StatusServiceUnavailable)
}

func (v *Verify) fault(r *http.Request, what string, err error) {
	v.cfg.Log.LogAttrs(r.Context(), slog.LevelError, "a check of receipts failed", slog.String("step", what), slog.String("request_id", problem.RequestID(r.Context())), slog.Any("error", err))
}
