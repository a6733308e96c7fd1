package docs

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"

	checkoutpage "quittance/checkout/page"
	"quittance/ingress/docs/quickstart"
	"quittance/ingress/problem"
	"quittance/ingress/web"
)

// caching lets caches keep an answer for five minutes without asking again.
const caching = "public, max-age=300"

// Handler serves the documentation. Safe for concurrent use.
type Handler struct {
	policy string // Content-Security-Policy of the pages
	// resources by path.
	resources map[string]resource
	// missing answers an unknown code, nowhere any other unknown path.
	missing, nowhere resource
}

// resource is an answer, plain and compressed.
type resource struct {
	contentType  string
	body, zipped []byte
	etag         string // without quotes
}

// Placeholder stands in the descriptions of the APIs for the address of the service.
const Placeholder = "https://pay.example"

// New renders everything. ministry, counter and citizen are the descriptions of the APIs in YAML:
// the one of the integrators' API is served, also as JSON, and the references are made
// from all. address is that of the service, without a slash at its end; it takes the place of
// Placeholder in them. The error is a fault of a description, or names the error codes without a page
// and the pages without a code.
func New(address string, ministry, counter, citizen []byte) (*Handler, error) {
	ministry = bytes.ReplaceAll(ministry, []byte(Placeholder), []byte(address))
	root, err := parse(ministry)
	if err != nil {
		return nil, err
	}
	asJSON, err := root.json()
	if err != nil {
		return nil, err
	}
	desk, err := parse(counter)
	if err != nil {
		return nil, err
	}
	taxpayers, err := parse(citizen)
	if err != nil {
		return nil, err
	}
	if err := matching(problemCodes(root), problem.Catalogue(problem.Ministry)); err != nil {
		return nil, err
	}
	shown, err := newContents(root, desk, taxpayers)
	if err != nil {
		return nil, err
	}
	atom, err := newFeed(shown[english].Changelog)
	if err != nil {
		return nil, err
	}
	style, err := files.ReadFile("templates/style.css")
	if err != nil {
		return nil, fmt.Errorf("reading the style: %w", err)
	}
	sum := sha256.Sum256(style)
	h := &Handler{
		policy: "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
			"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		resources: map[string]resource{
			"/openapi.yaml": newResource("application/yaml; charset=utf-8", ministry),
			"/openapi.json": newResource("application/json", []byte(asJSON)),
			feedPath:        newResource("application/atom+xml; charset=utf-8", atom),
		},
	}
	if err := h.renderAll(site{address: address, style: template.CSS(style), contents: shown}); err != nil { //nolint:gosec // our own file
		return nil, err
	}
	script, err := files.ReadFile("templates/docs.js")
	if err != nil {
		return nil, fmt.Errorf("reading the script: %w", err)
	}
	h.resources[scriptPath] = newResource("text/javascript; charset=utf-8", script)
	h.resources[llmsPath] = newResource("text/plain; charset=utf-8", h.llms(address, root.get("info", "summary").text()))
	return h, h.addSearch()
}

// renderAll makes the resources of all pages.
func (h *Handler) renderAll(s site) (err error) {
	add := func(file string, v view) (r resource) {
		if err == nil {
			r, err = s.render(file, v)
		}
		return r
	}
	for _, p := range pages {
		for _, lang := range []string{english, french} {
			if p.in(lang) != "" {
				h.resources[p.path(lang)] = add("pages/"+lang+"/"+p.name+".html", s.viewOf(p, lang))
			}
		}
	}
	for _, e := range problem.Catalogue(problem.Ministry, problem.Counter, problem.Citizen) {
		v := s.viewOf(page{}, english)
		v.Title, v.Error = e.Code, e
		translated, ok := e.InFrench()
		if ok {
			v.Other = frenchHref(e.Code)
			w := s.viewOf(page{}, french)
			w.Title, w.Error, w.Other = e.Code, translated, errorHref(e.Code)
			h.resources[frenchHref(e.Code)] = add("templates/error.html", w)
		}
		h.resources[errorHref(e.Code)] = add("templates/error.html", v)
	}
	nowhere := s.viewOf(page{}, english)
	nowhere.Title = "No such error code"
	h.missing = add("templates/missing.html", nowhere)
	nowhere.Title = "Not found"
	h.nowhere = add("templates/nowhere.html", nowhere)
	return err
}

// sample is a program of the quickstart.
type sample struct {
	Language, File, Run string
	Text                string
	// Receives says that it receives webhooks; the others create a session.
	Receives bool
}

// kit is an SDK for back ends with the commands that install it and two programs that use it.
type kit struct {
	Language        string
	Install         string
	Create, Receive sample
}

var samples = []sample{
	{Language: "curl", File: "create.sh", Run: "sh create.sh"},
	{Language: "Go", File: "create.go", Run: "go run create.go"},
	{Language: "Node", File: "create.mjs", Run: "node create.mjs"},
	{Language: "PHP", File: "create.php", Run: "php create.php"},
	{Language: "Python", File: "create.py", Run: "python3 create.py"},
	{Language: "Java", File: "Create.java", Run: "java Create.java"},
	{Language: "Go", File: "receive.go", Run: "PORT=8000 go run receive.go", Receives: true},
	{Language: "Node", File: "receive.mjs", Run: "PORT=8000 node receive.mjs", Receives: true},
	{Language: "PHP", File: "receive.php", Run: "php -S 127.0.0.1:8000 receive.php", Receives: true},
	{Language: "Python", File: "receive.py", Run: "PORT=8000 python3 receive.py", Receives: true},
	{Language: "Java", File: "Receive.java", Run: "PORT=8000 java Receive.java", Receives: true},
}

// kits are the SDKs. Install is the file of the commands until readKits reads it.
var kits = []kit{
	{"Go", "sdk_install_go.sh", sample{File: "sdk_create.go", Run: "go run sdk_create.go"}, sample{File: "sdk_receive.go", Run: "PORT=8000 go run sdk_receive.go"}},
	{"Node", "sdk_install_node.sh", sample{File: "sdk_create.mjs", Run: "node sdk_create.mjs"}, sample{File: "sdk_receive.mjs", Run: "PORT=8000 node sdk_receive.mjs"}},
}

// generator makes clients from the OpenAPI file as it is served.
type generator struct{ Name, Version, Languages string }

// generators are those with which package test/contract makes clients and uses them. A test
// holds the versions against those that it runs.
var generators = []generator{
	{"openapi-generator", "7.24.0", "Java, PHP"},
	{"openapi-typescript", "7.13.0", "TypeScript"},
	{"@hey-api/openapi-ts", "0.99.0", "TypeScript"},
	{"openapi-python-client", "0.29.1", "Python"},
	{"oapi-codegen", "2.8.2", "Go"},
}

// readSamples reads the programs.
func readSamples() ([]sample, error) {
	out := slices.Clone(samples)
	for i := range out {
		if err := out[i].read(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// readKits reads the programs of the SDKs.
func readKits() ([]kit, error) {
	out := slices.Clone(kits)
	for i := range out {
		install := sample{File: out[i].Install}
		if err := errors.Join(install.read(), out[i].Create.read(), out[i].Receive.read()); err != nil {
			return nil, err
		}
		out[i].Install = install.Text
	}
	return out, nil
}

// read reads the program. It leaves out the line that excludes a Go program from our build.
func (s *sample) read() error {
	text, err := quickstart.Programs.ReadFile(s.File)
	if err != nil {
		return fmt.Errorf("reading a quickstart: %w", err)
	}
	s.Text = strings.TrimPrefix(string(text), "//go:build ignore\n\n")
	return nil
}

func newResource(contentType string, body []byte) resource {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // cannot fail: the level exists, and a buffer accepts everything
	_, _ = z.Write(body)
	_ = z.Close()
	sum := sha256.Sum256(body)
	return resource{contentType: contentType, body: body, zipped: b.Bytes(), etag: hex.EncodeToString(sum[:12])}
}

// Routes adds /, /openapi.yaml, /openapi.json, /llms.txt, /docs and everything below it to a router.
// The first request for the documentation renders it, because that takes more than half a second of
// CPU time, for which no start of an instance waits. An error is logged, and answered with status 500.
func Routes(log *slog.Logger, render func() (*Handler, error)) func(chi.Router) {
	made := sync.OnceValues(render)
	serve := func(w http.ResponseWriter, r *http.Request) {
		h, err := made()
		if err != nil {
			log.LogAttrs(r.Context(), slog.LevelError, "rendering the documentation", slog.Any("error", err))
			http.Error(w, "The documentation is not available. The log of the service says why.", http.StatusInternalServerError)
			return
		}
		h.serve(w, r)
	}
	return func(r chi.Router) {
		r.Get("/", first)
		r.Head("/", first)
		for _, pattern := range []string{"/openapi.yaml", "/openapi.json", llmsPath, "/docs", "/docs/*"} {
			r.HandleFunc(pattern, serve)
		}
	}
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	web.Protect(header, h.policy, "no-referrer")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		header.Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	header.Set("Cache-Control", caching)
	path := r.URL.Path
	status := http.StatusOK
	found, ok := h.resources[path]
	if !ok {
		if to, spelled := h.otherwise(path); spelled {
			http.Redirect(w, r, to, http.StatusPermanentRedirect) //nolint:gosec // the address of one of our pages
			return
		}
		// A cached 404 would hide a page that an update adds.
		status, found = http.StatusNotFound, h.nowhere
		header.Set("Cache-Control", "no-store")
		if strings.HasPrefix(path, "/docs/errors/") {
			found = h.missing
		}
	}
	found.write(w, r, status)
}

// otherwise finds a page whose address has, or has not, a slash at its end.
func (h *Handler) otherwise(path string) (to string, ok bool) {
	to = path + "/"
	if short, cut := strings.CutSuffix(path, "/"); cut {
		to = short
	}
	_, ok = h.resources[to]
	return to, ok
}

// first leads from the address of the service to the documentation, in French if the
// browser prefers it.
func first(w http.ResponseWriter, r *http.Request) {
	web.Protect(w.Header(), "default-src 'none'", "no-referrer")
	w.Header().Set("Vary", "Accept-Language")
	w.Header().Set("Cache-Control", caching)
	lang, asked := english, r.Header.Get("Accept-Language")
	if asked != "" {
		lang = string(checkoutpage.Negotiate("", asked))
	}
	http.Redirect(w, r, pages[0].path(lang), http.StatusFound)
}

// write answers with the resource, or with 304 when the caller has it.
func (s resource) write(w http.ResponseWriter, r *http.Request, status int) {
	header := w.Header()
	header.Set("Content-Type", s.contentType)
	header.Add("Vary", "Accept-Encoding")
	body, etag := s.body, s.etag
	if acceptsGzip(r) {
		header.Set("Content-Encoding", "gzip")
		body, etag = s.zipped, s.etag+"-gzip"
	}
	header.Set("Content-Length", fmt.Sprint(len(body)))
	if status != http.StatusOK {
		w.WriteHeader(status)
		_, _ = w.Write(body) // fails only when the caller is gone
		return
	}
	header.Set("ETag", `"`+etag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// acceptsGzip reports whether Accept-Encoding has gzip with a weight above zero (RFC
// 9110 § 12.5.3).
func acceptsGzip(r *http.Request) bool {
	for _, value := range r.Header.Values("Accept-Encoding") {
		for coding := range strings.SplitSeq(value, ",") {
			name, weight, _ := strings.Cut(coding, ";")
			if strings.EqualFold(strings.TrimSpace(name), "gzip") {
				q := strings.ReplaceAll(weight, " ", "")
				return !strings.HasPrefix(q, "q=0") || strings.Trim(q, "q=0.") != ""
			}
		}
	}
	return false
}
