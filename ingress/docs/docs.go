package docs

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

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

// New renders everything. openAPI is the description of the API in YAML: it is served as
// it is and as JSON, and the reference is made from it. The error is a fault of the description, or names
// the error codes without a page and the pages without a code.
func New(openAPI []byte) (*Handler, error) {
	root, err := parse(openAPI)
	if err != nil {
		return nil, err
	}
	codes := problemCodes(root)
	pages := problem.Catalogue(problem.Ministry)
	if err := matching(codes, pages); err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, code := range codes {
		known[code] = true
	}
	ref, err := (&reader{root: root, codes: known}).read()
	if err != nil {
		return nil, err
	}
	samples, err := readSamples()
	if err != nil {
		return nil, err
	}
	style, err := files.ReadFile("templates/style.css")
	if err != nil {
		return nil, fmt.Errorf("reading the style: %w", err)
	}
	sum := sha256.Sum256(style)
	h := &Handler{
		policy: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
			"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		resources: map[string]resource{},
	}
	render := func(name string, v view) (r resource) {
		if err == nil {
			v.Style, v.Errors = template.CSS(style), pages //nolint:gosec // our own file
			r, err = rendered(name, v)
		}
		return r
	}
	asJSON, err := root.json()
	h.resources["/openapi.yaml"] = newResource("application/yaml; charset=utf-8", openAPI)
	h.resources["/openapi.json"] = newResource("application/json", []byte(asJSON))
	h.resources["/docs"] = render("docs.html", view{Title: "Quittance API", Reference: ref, Samples: samples})
	h.resources["/docs/webhooks"] = render("webhooks.html", view{Title: "Webhooks", Reference: ref, Samples: samples})
	counter := slices.DeleteFunc(problem.Catalogue(problem.Counter), func(e problem.Entry) bool { return slices.Contains(e.In, problem.Ministry) })
	h.resources["/docs/errors/"] = render("errors.html", view{Title: "Errors", Counter: counter})
	for _, e := range problem.Catalogue(problem.Ministry, problem.Counter) {
		h.resources[errorHref(e.Code)] = render("error.html", view{Title: e.Code, Error: e})
	}
	h.missing = render("errors.html", view{Title: "No such error code", Missing: true})
	h.nowhere = render("nowhere.html", view{Title: "Not found"})
	if err != nil {
		return nil, err
	}
	return h, nil
}

//go:embed templates quickstart
var files embed.FS

// sample is a program of the quickstart.
type sample struct {
	Language, File, Run string
	Text                string
	// Receives says that it receives webhooks; the others create a session.
	Receives bool
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

// readSamples reads the programs. It leaves out the line that excludes the Go programs
// from our build.
func readSamples() ([]sample, error) {
	out := slices.Clone(samples)
	for i := range out {
		text, err := files.ReadFile("quickstart/" + out[i].File)
		if err != nil {
			return nil, fmt.Errorf("reading a quickstart: %w", err)
		}
		out[i].Text = strings.TrimPrefix(string(text), "//go:build ignore\n\n")
	}
	return out, nil
}

// view is what a page shows.
type view struct {
	Title string
	Style template.CSS
	// Errors are the codes of the integrators' API, Counter those that only the counter's
	// API has. Error is the code of the page.
	Errors    []problem.Entry
	Counter   []problem.Entry
	Error     problem.Entry
	Missing   bool
	Reference reference
	Samples   []sample
}

func rendered(name string, v view) (resource, error) {
	t, err := template.New(name).Funcs(template.FuncMap{
		"anchor": func(s string) string { return strings.NewReplacer(".", "-", "_", "-").Replace(strings.ToLower(s)) },
		"spans":  func(s string) []span { return spans(s, nil) },
		// Programs have many quotes, and quotes in text need no escape.
		"verbatim": func(s string) template.HTML {
			return template.HTML(strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)) //nolint:gosec // escaped here
		},
	}).ParseFS(files, "templates/layout.html", "templates/"+name)
	if err != nil {
		return resource{}, fmt.Errorf("reading the template %s: %w", name, err)
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, "layout.html", v); err != nil {
		return resource{}, fmt.Errorf("rendering %s: %w", v.Title, err)
	}
	return newResource("text/html; charset=utf-8", b.Bytes()), nil
}

func newResource(contentType string, body []byte) resource {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // cannot fail: the level exists, and a buffer accepts everything
	_, _ = z.Write(body)
	_ = z.Close()
	sum := sha256.Sum256(body)
	return resource{contentType: contentType, body: body, zipped: b.Bytes(), etag: hex.EncodeToString(sum[:12])}
}

// Routes adds /openapi.yaml, /openapi.json, /docs and everything below it to the router.
func (h *Handler) Routes(r chi.Router) {
	for _, pattern := range []string{"/openapi.yaml", "/openapi.json", "/docs", "/docs/*"} {
		r.Handle(pattern, http.HandlerFunc(h.serve))
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
	switch path {
	case "/docs/":
		http.Redirect(w, r, "/docs", http.StatusPermanentRedirect)
		return
	case "/docs/errors":
		http.Redirect(w, r, "/docs/errors/", http.StatusPermanentRedirect)
		return
	}
	status := http.StatusOK
	found, ok := h.resources[path]
	if !ok {
		// A cached 404 would hide a page that an update adds.
		status, found = http.StatusNotFound, h.nowhere
		header.Set("Cache-Control", "no-store")
		if strings.HasPrefix(path, "/docs/errors/") {
			found = h.missing
		}
	}
	found.write(w, r, status)
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
