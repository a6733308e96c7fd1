package web_test

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-chi/chi/v5"

	"quittance/ingress/web"
)

// host is a site that has its host alone: its own style, links, a search box and a command; a second set of pages
// uses the parts of the first.
func host(t *testing.T) http.Handler {
	t.Helper()
	site, err := web.New(web.Config{
		Files: fstest.MapFS{
			"templates/parts.html": {Data: []byte(`{{define "greeting"}}<p>Bonjour</p>{{end}}`)},
			"templates/first.html": {Data: []byte(`{{define "content"}}{{template "greeting"}}{{end}}`)},
		},
		PublicURL: "https://staff.example", Log: slog.New(slog.DiscardHandler), Style: []byte("p { color: red }"), Script: []byte("//"),
	})
	if err != nil {
		t.Fatal(err)
	}
	more := fstest.MapFS{"templates/second.html": {Data: []byte(`{{define "content"}}{{template "greeting"}}<p>{{.Notice}}</p>{{end}}`)}}
	if err := site.Add(more); err != nil {
		t.Fatal(err)
	}
	if err := site.Add(more); err == nil {
		t.Error("two templates of one name are taken")
	}
	r := chi.NewRouter()
	site.Routes(r, func(r chi.Router) {
		r.Get("/", func(w http.ResponseWriter, r *http.Request) {
			v := site.Visit(w, r)
			out := v.View("Staff", "First", "")
			v.Write(http.StatusOK, "first", &out)
		})
		r.Get("/ops/second", func(w http.ResponseWriter, r *http.Request) {
			v := site.Visit(w, r)
			out := v.View("Staff", "Second", "ops/second")
			out.Nav = []web.NavItem{{URL: v.URL("ops/second"), Label: "Deux", Current: true}, {URL: v.URL(""), Label: "Un"}}
			out.SearchBox = &web.Search{URL: v.URL("ops/search"), Name: "q", Label: "Rechercher un paiement", Button: "Rechercher", Value: `"x`}
			out.Command, out.Tagged, out.Notice = "quittance cases list", true, r.URL.Query().Get("notice")
			v.Write(http.StatusOK, "second", &out)
		})
	}, func(chi.Router) {})
	return r
}

func TestSiteThatHasItsHost(t *testing.T) {
	t.Parallel()
	h := host(t)
	w := ask(h, http.MethodGet, "/", "")
	want(t, w, http.StatusOK, "<p>Bonjour</p>", `href="/?lang=en"`)
	for _, part := range []string{"<nav", "<form", "command"} {
		if strings.Contains(w.Body.String(), part) {
			t.Errorf("a page without it has %s:\n%s", part, w.Body)
		}
	}
	w = ask(h, http.MethodGet, "/ops/second", "")
	want(t, w, http.StatusOK, "<p>Bonjour</p>", `<a href="/ops/second?lang=fr" aria-current="page">Deux</a>`, `<a href="/?lang=fr">Un</a>`,
		`placeholder="Rechercher un paiement" value="&#34;x"`, `<code id="command">quittance cases list</code>`)
	_, address, _ := strings.Cut(w.Body.String(), `rel="stylesheet" href="`)
	address, _, _ = strings.Cut(address, `"`)
	style := ask(h, http.MethodGet, address, "")
	if body, _ := io.ReadAll(style.Body); string(body) != "p { color: red }" {
		t.Errorf("the style at %s is %q", address, body)
	}
	want(t, ask(h, http.MethodGet, "/nothing", ""), http.StatusNotFound, "<h1>Page introuvable</h1>", `href="/?lang=fr"`)
	want(t, ask(h, http.MethodGet, "/ops/nothing", ""), http.StatusNotFound, "<h1>Page introuvable</h1>")
}

// A script that asks whether a page has changed gets 304 and no body until it has.
func TestPageWithATag(t *testing.T) {
	t.Parallel()
	h := host(t)
	tag := ask(h, http.MethodGet, "/ops/second", "").Header().Get("ETag")
	if tag == "" {
		t.Fatal("the page has no ETag")
	}
	if w := ask(h, http.MethodGet, "/ops/second", "", "If-None-Match", tag); w.Code != http.StatusNotModified || w.Body.Len() > 0 || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("the same page: %d with %d bytes, %v", w.Code, w.Body.Len(), w.Header())
	}
	if w := ask(h, http.MethodGet, "/ops/second?notice=changed", "", "If-None-Match", tag); w.Code != http.StatusOK || w.Header().Get("ETag") == tag {
		t.Errorf("a changed page: %d, %v", w.Code, w.Header())
	}
	if w := ask(h, http.MethodGet, "/", ""); w.Header().Get("ETag") != "" {
		t.Error("a page that is not tagged has an ETag")
	}
}
