package verify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"quittance/ingress/problem"
	"quittance/internal/receipts"
)

// Keys knows the keys of receipts; receipts.Store does.
type Keys interface {
	// Keys returns all keys. The caller does not change them.
	Keys(ctx context.Context) (receipts.Keys, error)
}

// Config of New. All fields are required.
type Config struct {
	Keys Keys
	Now  func() time.Time
	Log  *slog.Logger
}

// Verify serves what those need who check receipts. It is safe for concurrent use.
type Verify struct{ cfg Config }

// New makes a Verify.
func New(cfg Config) (*Verify, error) {
	if cfg.Keys == nil || cfg.Now == nil || cfg.Log == nil {
		return nil, errors.New("verify: Keys, Now and Log are required")
	}
	return &Verify{cfg}, nil
}

// PathKeys is where the key set is.
const PathKeys = "/.well-known/jwks.json"

// keysCacheControl is short, so that a revoked key is soon unknown everywhere. A cache may go on
// with what it has while the service is away.
const keysCacheControl = "public, max-age=300, stale-if-error=86400"

// Routes mounts the package's paths.
func (v *Verify) Routes(r chi.Router) {
	r.Get(PathKeys, v.jwks)
	r.Head(PathKeys, v.jwks)
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
	v.cfg.Log.LogAttrs(r.Context(), slog.LevelError, "a check of receipts failed", slog.String("step", what), slog.String("request_id", problem.RequestID(r.Context())), slog.Any("error", err))
	public(w.Header())
	w.Header().Set("Retry-After", "5")
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, "unavailable, try again", http.StatusServiceUnavailable)
}
