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

// The frame of an integrator's page. Its first request is the navigation that the
// SDK begins, with the client_secret in the query (contract, "Embedded checkout
// pages and SDK"). The page's script takes it out of the address at once and sends
// it in the Authorization header from then on; a frame that was reloaded has lost
// it, and asks the SDK for another navigation.
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

// frame is what a visit within a frame has besides: who may frame it.
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
		// Whose session it is cannot be told now. That the service is away may be
		// shown in any page that is somebody's: else it would read as a refusal.
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
		// A navigation: into a frame of a configured page, or nowhere.
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
		// The same for a session that this secret does not open as for none.
		v.unknown()
		return v, false
	}
	v.known = &s
	return v, true
}

// frameOf makes the visit one within a frame that these origins may show.
func (v *visit) frameOf(parent string, origins []string) {
	v.frame = &frame{origins: origins, Embed: page.Embed{
		Parent: parent, Script: v.p.frame.Path, Layout: layoutSmall,
		TokenURL: prefixEmbed + v.id + "/completion-token", ReceiptURL: prefixHosted + v.id + "?" + page.FieldLanguage + "=" + string(v.lang),
	}}
	if v.r.URL.Query().Get(queryLayout) == layoutLarge {
		v.frame.Layout = layoutLarge
	}
}

// refuse answers what no page may frame. It tells nothing of the session.
func (v visit) refuse(status int) {
	setHeaders(v.w)
	v.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	v.w.WriteHeader(status)
	_, _ = io.WriteString(v.w, "Cette page ne s’affiche que dans le site d’un service public configuré.\n"+
		"This page is shown only inside the site of a public service that is configured for it: parent_origin must be one of its embed origins.\n")
}

// CrossOrigin lets the pages that may frame a session also ask for its completion
// token, by the same list of origins (contract, "Embedded checkout pages and SDK"
// 4). The pages of the frame are for the frame alone: what they tell a citizen no
// script of the host page may read. It looks only at paths below
// /embed/{session_id}.
func (p *Pages) CrossOrigin(next http.Handler) http.Handler {
	shared := cors.Handler(cors.Options{
		AllowOriginFunc: func(r *http.Request, origin string) bool {
			_, rest, _ := strings.Cut(r.URL.Path, prefixEmbed)
			id, _, _ := strings.Cut(rest, "/")
			if _, err := checkout.SessionPartition(id); err != nil {
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
