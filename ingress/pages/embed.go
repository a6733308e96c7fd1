package pages

import (
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/cors"

	"quittance/checkout"
	"quittance/checkout/page"
	"quittance/internal/sessions"
)

// Query parameters of the frame's first request. The SDK navigates the frame to it,
// with the client_secret in the query (contract, "Embedded checkout pages and SDK").
// The page's script removes the secret from the address at once and then sends it in
// the Authorization header. A frame that was reloaded has lost the secret and asks the
// SDK for another navigation.
const (
	queryClientSecret = "client_secret"
	queryParentOrigin = "parent_origin"
	queryLayout       = "layout"
	queryLocale       = "locale"

	prefixEmbed  = "/embed/"
	prefixHosted = "/c/"
	layoutLarge  = "large"
	layoutSmall  = "compact"
)

// frame is what a visit in a frame has in addition: who may frame it.
type frame struct {
	page.Embed
	origins []string
}

// embed admits a visit to a frame and reads its session. When ok is false the
// request has been answered.
func (v visit) embed() (_ visit, ok bool) {
	q := v.r.URL.Query()
	secret, scripted := strings.CutPrefix(v.r.Header.Get("Authorization"), "Bearer ")
	parent := q.Get(queryParentOrigin)
	s, err := v.p.cfg.Sessions.ByID(v.r.Context(), v.id)
	switch {
	case errors.Is(err, sessions.ErrNotFound), errors.Is(err, checkout.ErrMalformedID):
		v.refuse(http.StatusNotFound)
		return v, false
	case err != nil:
		// The session's own list is unknown now. A page on any list may show that the
		// service is unavailable; otherwise the citizen would read a refusal.
		if v.p.cfg.Agencies.Embeds(parent) {
			v.frameOf(parent, []string{parent})
		}
		v.unavailable("reading the session", err)
		return v, false
	}
	origins := v.p.cfg.Agencies.EmbedOrigins(s.ApplicationID, s.Platform)
	switch {
	case scripted:
	case v.r.Method == http.MethodPost:
		v.refuse(http.StatusUnauthorized)
		return v, false
	default:
		// A navigation is accepted only into a frame of a configured page.
		dest := v.r.Header.Get("Sec-Fetch-Dest")
		if dest != "" && dest != "iframe" || !slices.Contains(origins, parent) {
			v.refuse(http.StatusForbidden)
			return v, false
		}
		secret = q.Get(queryClientSecret)
	}
	v.frameOf(parent, origins)
	hash := sha256.Sum256([]byte(secret))
	switch {
	case secret == "" && !scripted:
		v.p.write(v.w, v.r, http.StatusOK, page.View{Lang: v.lang, State: page.StateReload, Embed: &v.frame.Embed}, origins...)
		return v, false
	case !s.OpensWith(hash[:], v.p.cfg.Now()):
		// The answer does not show that the session exists.
		v.unknown()
		return v, false
	}
	v.known = &s
	return v, true
}

// frameOf makes the visit one in a frame that these origins may show.
func (v *visit) frameOf(parent string, origins []string) {
	v.frame = &frame{origins: origins, Embed: page.Embed{
		Parent: parent, Script: v.p.frame.Path, Layout: layoutSmall,
		TokenURL: prefixEmbed + v.id + "/completion-token", ReceiptURL: prefixHosted + v.id + "?" + page.FieldLanguage + "=" + string(v.lang),
	}}
	if v.r.URL.Query().Get(queryLayout) == layoutLarge {
		v.frame.Layout = layoutLarge
	}
}

// refuse answers a request that no page may frame. The answer says nothing about the
// session.
func (v visit) refuse(status int) {
	setHeaders(v.w.Header())
	v.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	v.w.WriteHeader(status)
	_, _ = io.WriteString(v.w, "Cette page ne s’affiche que dans le site d’un service public configuré.\n"+
		"This page is shown only inside the site of a public service that is configured for it: parent_origin must be one of its embed origins.\n")
}

// longestID is more characters than the id of a session has.
const longestID = 128

// mayFrame tells the script of any page whether its origin may frame the session: 204, or 403. A
// browser that refuses a frame tells the page nothing, so that a page with an origin that is not
// registered waited for its time-out. The body is the id of the session, which is in no address of the
// page. The answer says what the refused frame says, and nothing else of
// the session.
func (p *Pages) mayFrame(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	w.Header().Set("Access-Control-Allow-Origin", "*")
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, longestID))
	id := string(text)
	if err != nil {
		err = checkout.ErrMalformedID
	} else {
		err = p.cfg.Gate.Session(r, id)
	}
	var s checkout.Session
	if err == nil {
		s, err = p.cfg.Sessions.ByID(r.Context(), id)
	}
	switch {
	case errors.Is(err, sessions.ErrNotFound), errors.Is(err, checkout.ErrMalformedID):
		w.WriteHeader(http.StatusNotFound)
	case err != nil: // too many requests, or the read model is behind: the frame itself says so
		w.WriteHeader(http.StatusServiceUnavailable)
	case !slices.Contains(p.cfg.Agencies.EmbedOrigins(s.ApplicationID, s.Platform), r.Header.Get("Origin")):
		w.WriteHeader(http.StatusForbidden)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// CrossOrigin is middleware that lets the pages that may frame a session ask for its
// completion token (contract, "Embedded checkout pages and SDK" 4). It acts only on
// paths below /embed/{session_id}. Do not use it for the pages of the frame itself: a
// script of the host page must not read them.
func (p *Pages) CrossOrigin(next http.Handler) http.Handler {
	shared := cors.Handler(cors.Options{
		AllowOriginFunc: func(r *http.Request, origin string) bool {
			_, rest, _ := strings.Cut(r.URL.Path, prefixEmbed)
			id, _, _ := strings.Cut(rest, "/")
			if p.cfg.Gate.Session(r, id) != nil {
				return false
			}
			s, err := p.cfg.Sessions.ByID(r.Context(), id)
			return err == nil && slices.Contains(p.cfg.Agencies.EmbedOrigins(s.ApplicationID, s.Platform), origin)
		},
		AllowedMethods: []string{http.MethodPost},
		AllowedHeaders: []string{"Authorization", "Content-Type"},
		MaxAge:         600,
	})(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, prefixEmbed) {
			shared.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
