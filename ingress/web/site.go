package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"path"
	"strings"

	"github.com/go-chi/chi/v5"

	"quittance/ingress/problem"
)

//go:embed templates
var layout embed.FS

//go:embed assets/style.css
var style []byte

// Config of a Site. All fields are required unless stated otherwise.
type Config struct {
	// Prefix is the path of all pages of the site, such as /counter. A site that has its host alone has none.
	Prefix string
	// Files has the templates of the pages, templates/NAME.html, and perhaps
	// templates/parts.html, which all of them may use.
	Files fs.FS
	// PublicURL is where browsers reach the site.
	PublicURL string
	Log       *slog.Logger
	// Script is the only script that the policy allows, on the pages that have a use for it
	// (View.Script). Pages must work without it. May be empty.
	Script []byte
	// Style is the site's own style in place of the common one. May be empty.
	Style []byte
	// Wide lets the pages take more of a wide screen: people work with them all day.
	Wide bool
	// Policy has further directives of the Content-Security-Policy. May be empty.
	Policy string
}

// missingPage is the template of the page of an address that does not exist.
const missingPage = "missing"

// Site is one set of pages with a common layout and a common path. Safe for
// concurrent use.
type Site struct {
	cfg        Config
	base       *template.Template // layout and parts
	templates  map[string]*template.Template
	sources    hash.Hash // of all templates
	stylePath  string
	scriptPath string // empty without a script
	policy     string // of a page without a script
	sameSite   func(http.Handler) http.Handler
}

// New parses the templates. An error names a faulty template or a PublicURL that is
// not an absolute URL.
func New(cfg Config) (*Site, error) {
	if len(cfg.Style) == 0 {
		cfg.Style = style
	}
	s := &Site{
		cfg: cfg, templates: map[string]*template.Template{}, sources: sha256.New(), stylePath: assetPath(cfg.Prefix, cfg.Style, ".css"),
		policy: "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	}
	if len(cfg.Script) > 0 {
		s.scriptPath = assetPath(cfg.Prefix, cfg.Script, ".js")
	}
	if cfg.Policy != "" {
		s.policy += "; " + cfg.Policy
	}
	var err error
	if s.sameSite, err = SameSite(originOf(cfg.PublicURL), s.setHeaders); err != nil {
		return nil, errors.New("PublicURL is not an absolute URL")
	}
	if err := s.remember(layout); err != nil {
		return nil, err
	}
	base, err := template.ParseFS(layout, "templates/layout.html")
	if err != nil {
		return nil, fmt.Errorf("parsing the layout: %w", err)
	}
	if s.templates[missingPage], err = template.Must(base.Clone()).ParseFS(layout, "templates/missing.html"); err != nil {
		return nil, fmt.Errorf("parsing the page of a missing address: %w", err)
	}
	const parts = partsFile
	if _, err := fs.Stat(cfg.Files, parts); err == nil {
		if base, err = base.ParseFS(cfg.Files, parts); err != nil {
			return nil, fmt.Errorf("parsing %s: %w", parts, err)
		}
	}
	s.base = base
	return s, s.Add(cfg.Files)
}

// partsFile defines what several pages of a site share.
const partsFile = "templates/parts.html"

// Add parses the templates of a further set of pages, which share the site's layout and its parts. Call it before
// the first request. A template with the name of another one is an error.
func (s *Site) Add(files fs.FS) error {
	names, err := fs.Glob(files, "templates/*.html")
	if err == nil {
		err = s.remember(files)
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == partsFile {
			continue
		}
		t, err := template.Must(s.base.Clone()).ParseFS(files, name)
		if err != nil {
			return fmt.Errorf("parsing %s: %w", name, err)
		}
		name = strings.TrimSuffix(path.Base(name), ".html")
		if s.templates[name] != nil {
			return fmt.Errorf("two templates are called %s", name)
		}
		s.templates[name] = t
	}
	return nil
}

// remember adds templates to what tags are made of: a page of another release is another one.
func (s *Site) remember(files fs.FS) error {
	names, err := fs.Glob(files, "templates/*.html")
	for _, name := range names {
		var text []byte
		if text, err = fs.ReadFile(files, name); err != nil {
			break
		}
		s.sources.Write(text)
	}
	return err
}

// tagOf returns the ETag of a page: a hash of the templates, and of all that this one is given. The script of a page asks again and
// again, so what has not changed is not rendered.
func (s *Site) tagOf(name string, page pageView) (string, error) {
	given, err := json.Marshal(page)
	if err != nil {
		return "", err
	}
	of := sha256.New()
	_, _ = fmt.Fprintf(of, "%x %s %s\n", s.sources.Sum(nil), name, s.scriptPath)
	of.Write(given)
	return `"` + hex.EncodeToString(of.Sum(nil)[:12]) + `"`, nil
}

// Assets returns the addresses of the site's style and script.
func (s *Site) Assets() []string {
	out := []string{s.stylePath}
	if s.scriptPath != "" {
		out = append(out, s.scriptPath)
	}
	return out
}

// assetPath returns the path of a file of the site. It changes with the content.
func assetPath(prefix string, body []byte, suffix string) string {
	sum := sha256.Sum256(body)
	name := "site"
	if prefix != "" {
		name = path.Base(prefix)
	}
	return prefix + "/assets/" + name + "-" + hex.EncodeToString(sum[:6]) + suffix
}

// originOf returns scheme and host of an address.
func originOf(address string) string {
	scheme, rest, _ := strings.Cut(address, "://")
	host, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + host
}

// Routes mounts the site: its style, the pages that pages adds with paths below
// Prefix, and the forms that forms adds, which refuse posts from other sites. The address of a
// form, opened again, leads to the site's first page. Any other path is answered with 404.
func (s *Site) Routes(r chi.Router, pages, forms func(chi.Router)) {
	add := func(r chi.Router) {
		r.NotFound(s.missing)
		r.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) { s.Visit(w, r).See("") })
		r.Get(strings.TrimPrefix(s.stylePath, s.cfg.Prefix), func(w http.ResponseWriter, _ *http.Request) {
			WriteAsset(w, "text/css; charset=utf-8", s.cfg.Style)
		})
		if s.scriptPath != "" {
			r.Get(strings.TrimPrefix(s.scriptPath, s.cfg.Prefix), func(w http.ResponseWriter, _ *http.Request) {
				WriteAsset(w, "text/javascript; charset=utf-8", s.cfg.Script)
			})
		}
		pages(r)
		r.Group(func(r chi.Router) {
			r.Use(s.sameSite)
			forms(r)
		})
	}
	if s.cfg.Prefix == "" {
		add(r)
		return
	}
	r.Route(s.cfg.Prefix, add)
}

// missingView is the page of an address that does not exist.
type missingView struct {
	View
	HomeURL string
}

func (s *Site) missing(w http.ResponseWriter, r *http.Request) {
	v := s.Visit(w, r)
	l := words.In(v.Lang)
	v.Write(http.StatusNotFound, missingPage, &missingView{View: v.View(l.Service, l.Missing, ""), HomeURL: v.URL("")})
}

// setHeaders sets the headers of a page of a site without a script.
func (s *Site) setHeaders(h http.Header) {
	h.Set("Content-Type", "text/html; charset=utf-8")
	Protect(h, s.policy, "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("Permissions-Policy", "payment=(), camera=(), microphone=(), geolocation=()")
	h.Set("Vary", "Accept-Language, Cookie")
	h.Set("X-Robots-Tag", "noindex, nofollow")
}

// write answers with a page. The status 503 or 429 invites the browser to come again, after the Retry-After that is set or
// else in a moment.
func (s *Site) write(w http.ResponseWriter, r *http.Request, status int, name string, page pageView) {
	var b bytes.Buffer
	var tag string
	err := fmt.Errorf("there is no template %s", name)
	if t, ok := s.templates[name]; ok {
		err = nil
		if page.layout().Tagged && status == http.StatusOK {
			tag, err = s.tagOf(name, page)
		}
		if tag != "" && r.Header.Get("If-None-Match") == tag {
			s.setHeaders(w.Header())
			w.Header().Set("ETag", tag)
			w.WriteHeader(http.StatusNotModified)
			return
		}
		if err == nil {
			err = t.ExecuteTemplate(&b, "layout.html", page)
		}
	}
	if err != nil {
		s.cfg.Log.LogAttrs(r.Context(), slog.LevelError, "rendering a page", slog.String("site", s.cfg.Prefix), slog.String("page", name),
			slog.String("request_id", problem.RequestID(r.Context())), slog.Any("error", err))
		http.Error(w, page.layout().L.Unavailable, http.StatusInternalServerError)
		return
	}
	s.setHeaders(w.Header())
	if tag != "" {
		w.Header().Set("ETag", tag)
	}
	if v := page.layout(); v.Script != "" {
		allowed := s.policy + "; script-src 'self'"
		if v.Fetches {
			allowed += "; connect-src 'self'"
		}
		w.Header().Set("Content-Security-Policy", allowed)
	}
	if (status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests) && w.Header().Get("Retry-After") == "" {
		w.Header().Set("Retry-After", "5")
	}
	w.WriteHeader(status)
	_, _ = b.WriteTo(w)
}
