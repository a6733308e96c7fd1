package web_test

import (
	"encoding/base64"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-chi/chi/v5"

	"quittance/ingress/web"
	"quittance/internal/secret"
	"quittance/money"
	"quittance/money/language"
)

// A page of a portal: a template, its texts, a handler.

const template = `{{define "content"}}<h1>{{.W.Hello}}</h1>{{$f := .Field "name" .W.Name .W.Hint}}{{template "field" $f}}<input id="name"{{template "described" $f}} value="{{index .Typed "name"}}">{{end}}`

type words struct{ Hello, Name, Hint string }

var texts = language.Table[*words]{
	money.French:  {Hello: "Bonjour", Name: "Nom", Hint: "Le vôtre."},
	money.English: {Hello: "Hello", Name: "Name", Hint: "Yours."},
}

type view struct {
	web.View
	W *words
}

// portal serves the page at /portal; its form always has a fault.
func portal(t *testing.T) http.Handler {
	t.Helper()
	site, err := web.New(web.Config{
		Prefix: "/portal", Files: fstest.MapFS{"templates/hello.html": {Data: []byte(template)}},
		PublicURL: "https://pay.example", Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	hello := func(w http.ResponseWriter, r *http.Request) {
		v := site.Visit(w, r)
		out := &view{View: v.View("Portal", "Greeting", "hello"), W: texts.In(v.Lang)}
		status := http.StatusOK
		if r.Method == http.MethodPost {
			status = http.StatusUnprocessableEntity
			out.Fault("name", "Too long.", v.Form.Get("name"))
		}
		v.Write(status, "hello", out)
	}
	r := chi.NewRouter()
	site.Routes(r, func(r chi.Router) { r.Get("/hello", hello) }, func(r chi.Router) { r.Post("/hello", hello) })
	return r
}

func ask(h http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func want(t *testing.T, w *httptest.ResponseRecorder, status int, parts ...string) {
	t.Helper()
	if w.Code != status {
		t.Errorf("status %d, want %d", w.Code, status)
	}
	for _, part := range parts {
		if !strings.Contains(w.Body.String(), part) {
			t.Errorf("the page lacks %q:\n%s", part, w.Body)
		}
	}
}

func TestPageOfASite(t *testing.T) {
	t.Parallel()
	h := portal(t)
	w := ask(h, http.MethodGet, "/portal/hello", "")
	want(t, w, http.StatusOK, `<html lang="fr">`, "<title>Greeting – Portal</title>", "<h1>Bonjour</h1>", `href="/portal/hello?lang=en"`,
		`<label for="name">Nom</label>`, `aria-describedby="name-hint"`)
	header := map[string]string{
		"Content-Type":               "text/html; charset=utf-8",
		"Content-Security-Policy":    "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		"Cache-Control":              "no-store",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		"Permissions-Policy": "payment=(), camera=(), microphone=(), geolocation=()",
		"Referrer-Policy":    "same-origin", "Vary": "Accept-Language, Cookie",
		"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "X-Robots-Tag": "noindex, nofollow",
	}
	got := map[string]string{}
	for name := range w.Header() {
		got[name] = w.Header().Get(name)
	}
	if !maps.Equal(got, header) {
		t.Errorf("headers %v, want %v", got, header)
	}
	want(t, ask(h, http.MethodGet, "/portal/hello", "", "Accept-Language", "en"), http.StatusOK, "<h1>Hello</h1>")
	want(t, ask(h, http.MethodPost, "/portal/hello?lang=en", url.Values{"lang": {"en"}, "name": {`"x`}}.Encode()), http.StatusUnprocessableEntity,
		"<title>Error: ", `<a href="#name">Too long.</a>`, `id="name-fault">Too long.<`, `aria-describedby="name-fault name-hint" aria-invalid="true"`, `value="&#34;x"`)
	// An unknown address answered as if there were such a page: with the first one.
	want(t, ask(h, http.MethodGet, "/portal/nothing", ""), http.StatusNotFound, "<h1>Page introuvable</h1>", `href="/portal?lang=fr"`)
	want(t, ask(h, http.MethodGet, "/portal/nothing?lang=en", ""), http.StatusNotFound, "<h1>Page not found</h1>", `href="/portal?lang=en"`)
}

func TestPostsOfOtherSites(t *testing.T) {
	t.Parallel()
	h := portal(t)
	for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"}} {
		want(t, ask(h, http.MethodPost, "/portal/hello", "", header...), http.StatusForbidden, "autre site", "another site")
	}
	want(t, ask(h, http.MethodPost, "/portal/hello", "", "Origin", "https://pay.example"), http.StatusUnprocessableEntity)

	// Pages without cookies serve browsers that send no Sec-Fetch-Site.
	open, err := web.SameSite("", func(http.Header) {})
	if err != nil {
		t.Fatal(err)
	}
	h = open(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	want(t, ask(h, http.MethodPost, "/", "", "Origin", "null"), http.StatusOK)
	want(t, ask(h, http.MethodPost, "/", "", "Origin", "null", "Sec-Fetch-Site", "cross-site"), http.StatusForbidden)
}

func TestFormIsReadWithinItsLimit(t *testing.T) {
	t.Parallel()
	for body, status := range map[string]int{"a=1": 0, "a=%zz": http.StatusUnprocessableEntity, "a=" + strings.Repeat("x", 16<<10): http.StatusRequestEntityTooLarge} {
		r := httptest.NewRequest(http.MethodPost, "/?a=2", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		form, fault := web.ReadForm(httptest.NewRecorder(), r)
		if fault != status || status == 0 && form.Get("a") != "1" || status != 0 && len(form) > 0 {
			t.Errorf("a form of %d bytes: %v, %d", len(body), form, fault)
		}
	}
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	keys := secret.GenerateKeys()
	s := &web.SignIn{
		Cookie: "portal", Label: "portal", Keys: keys, PublicURL: "https://pay.example",
		Whole: 12 * time.Hour, Now: func() time.Time { return now },
	}
	cookie := func(set func(http.ResponseWriter) error) *http.Cookie {
		w := httptest.NewRecorder()
		if err := set(w); err != nil {
			t.Fatal(err)
		}
		return w.Result().Cookies()[0]
	}
	session := func(c *http.Cookie) (id string, present, ok bool) {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		if c != nil {
			r.AddCookie(c)
		}
		return s.Session(r)
	}
	if _, present, ok := session(nil); present || ok {
		t.Error("somebody is signed in without a cookie")
	}
	c := cookie(func(w http.ResponseWriter) error { return s.Begin(w, "session-1") })
	if c.Name != "__Host-portal" || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || strings.Contains(c.Value, "session-1") {
		t.Errorf("the cookie is %+v", c)
	}
	now = now.Add(12*time.Hour - time.Nanosecond)
	if id, present, ok := session(c); id != "session-1" || !present || !ok {
		t.Errorf("the session is %q, %t, %t", id, present, ok)
	}
	now = now.Add(time.Nanosecond)
	if id, present, ok := session(c); id != "" || !present || ok {
		t.Errorf("an old cookie names %q", id)
	}
	// What an earlier release sealed names no session.
	old, err := keys.Seal("portal", []byte(`{"key_id":"k1","since":"2026-11-21T20:00:00Z","last":"2026-11-21T20:00:00Z"}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"x", strings.Repeat("A", 90), base64.RawURLEncoding.EncodeToString(old)} {
		if id, present, ok := session(&http.Cookie{Name: "__Host-portal", Value: value}); id != "" || !present || ok {
			t.Errorf("%q signs in", value)
		}
	}
	if c := cookie(func(w http.ResponseWriter) error { s.End(w); return nil }); c.MaxAge >= 0 || c.Value != "" {
		t.Errorf("signing out sets %+v", c)
	}
}

// A page that cannot be rendered is not answered in part.
func TestPageWithoutTemplate(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	site, err := web.New(web.Config{Prefix: "/p", Files: fstest.MapFS{}, PublicURL: "https://pay.example", Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	v := site.Visit(w, httptest.NewRequest(http.MethodGet, "/p", http.NoBody))
	out := v.View("P", "P", "")
	v.Write(http.StatusOK, "nothing", &out)
	want(t, w, http.StatusInternalServerError, "Le service ne répond pas")
	if !strings.Contains(log.String(), "no template nothing") {
		t.Errorf("the log says %s", log.String())
	}
	if _, err := web.New(web.Config{Prefix: "/p", Files: fstest.MapFS{}, PublicURL: "nowhere", Log: slog.New(slog.NewTextHandler(io.Discard, nil))}); err == nil {
		t.Error("a PublicURL without a host is taken")
	}
}
