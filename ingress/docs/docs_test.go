package docs

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"quittance/checkout"
	guides "quittance/docs"
	"quittance/ingress/docs/quickstart"
	"quittance/ingress/problem"
	"quittance/internal/registry"
)

// explanations are the error pages of the integrators' API.
var explanations = problem.Catalogue(problem.Ministry)

// maxPage is the largest size of a page, uncompressed, in bytes. Some readers have slow
// connections.
const maxPage = 60_000

func openAPI(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("../ministry/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func counterAPI(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("../counter/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func citizenAPI(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("../citizen/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// rendered is the documentation, which does not change: tests share it.
var (
	rendered  *Handler
	rendering sync.Once
)

// manual returns the documentation.
func manual(t *testing.T) *Handler {
	t.Helper()
	rendering.Do(func() {
		var err error
		if rendered, err = New(Placeholder, openAPI(t), counterAPI(t), citizenAPI(t)); err != nil {
			t.Error(err)
		}
	})
	if rendered == nil {
		t.Fatal("the documentation is not rendered")
	}
	return rendered
}

func server(t *testing.T) http.Handler {
	t.Helper()
	r := chi.NewRouter()
	Routes(slog.New(slog.DiscardHandler), func() (*Handler, error) { return manual(t), nil })(r)
	return r
}

// Each instance rendered the documentation before it was ready, which took 0.6 s of CPU time and more.
func TestTheFirstRequestRenders(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	renders := 0
	routes := func(fault error) http.Handler {
		renders = 0
		r := chi.NewRouter()
		Routes(slog.New(slog.NewTextHandler(&said, nil)), func() (*Handler, error) { renders++; return manual(t), fault })(r)
		return r
	}
	h := routes(nil)
	if w := ask(h, http.MethodGet, "/"); renders != 0 || w.Code == http.StatusOK {
		t.Errorf("%d renderings after / is answered with %d", renders, w.Code)
	}
	for _, path := range []string{"/docs", "/openapi.yaml"} {
		if w := ask(h, http.MethodGet, path); renders != 1 || w.Code != http.StatusOK {
			t.Errorf("%d renderings after %s is answered with %d", renders, path, w.Code)
		}
	}
	h = routes(errors.New("a fault of a description"))
	for range 2 {
		if w := ask(h, http.MethodGet, "/docs"); renders != 1 || w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "fault of") || !strings.Contains(said.String(), "a fault of a description") {
			t.Errorf("%d renderings, then %d %s; the log has %s", renders, w.Code, w.Body, &said)
		}
	}
}

func ask(h http.Handler, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, http.NoBody)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func get(t *testing.T, h http.Handler, path string) string {
	t.Helper()
	r := ask(h, http.MethodGet, path)
	if r.Code != http.StatusOK {
		t.Fatalf("%s: %d", path, r.Code)
	}
	return r.Body.String()
}

// Every code has a page, and every page has a code.
func TestEveryErrorCodeHasAPage(t *testing.T) {
	t.Parallel()
	root, err := parse(openAPI(t))
	if err != nil {
		t.Fatal(err)
	}
	codes := problemCodes(root)
	if err := matching(codes, explanations); err != nil {
		t.Fatal(err)
	}
	h := server(t)
	list := get(t, h, "/docs/errors/")
	for _, e := range explanations {
		page := get(t, h, "/docs/errors/"+e.Code)
		for _, part := range []string{"<h1>" + e.Title + "</h1>", "Likely causes", "The mend", `"type": "https://pay.example/docs/errors/` + e.Code + `"`, `"code": "` + e.Code + `"`, `"status": ` + strconv.Itoa(e.Status)} {
			if !strings.Contains(page, part) {
				t.Errorf("the page of %s lacks %q", e.Code, part)
			}
		}
		if len(e.Causes) == 0 || len(e.Mend) == 0 || e.Meaning == "" || e.Detail == "" {
			t.Errorf("the page of %s is not complete", e.Code)
		}
		if !strings.Contains(list, `href="/docs/errors/`+e.Code+`"`) {
			t.Errorf("the list lacks %s", e.Code)
		}
	}

	for name, yaml := range map[string]string{
		"the error code generic.new has no page":              strings.Replace(string(openAPI(t)), "- generic.malformed_json\n", "- generic.malformed_json\n        - generic.new\n", 1),
		"the page generic.malformed_json is of no error code": strings.Replace(string(openAPI(t)), "        - generic.malformed_json\n", "", 1),
		"the schema ProblemCode lists no codes":               strings.Replace(string(openAPI(t)), "ProblemCode:", "Other:", 1),
		"reading the OpenAPI file: it is not OpenAPI 3.1":     "openapi: 3.0.3",
		"reading the OpenAPI file: it has no operations":      strings.Replace(string(openAPI(t)), "\npaths:\n", "\nx-paths:\n", 1),
		"the OpenAPI file lacks the webhook checkout.":        strings.Replace(string(openAPI(t)), "\nwebhooks:\n", "\nx-webhooks:\n", 1),
	} {
		if _, err := New(Placeholder, []byte(yaml), counterAPI(t), citizenAPI(t)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("New says %v, want %q", err, name)
		}
	}
}

// Each code's page has the status that the OpenAPI file has for the code.
func TestStatusesAgree(t *testing.T) {
	t.Parallel()
	root, err := parse(openAPI(t))
	if err != nil {
		t.Fatal(err)
	}
	ref, err := (&reader{root: root}).read()
	if err != nil {
		t.Fatal(err)
	}
	status := map[string]int{}
	for _, e := range explanations {
		status[e.Code] = e.Status
	}
	said := map[string]bool{}
	for _, o := range ref.Operations {
		for _, a := range slices.Concat(o.Answers, o.Common) {
			for _, b := range a.About {
				for _, s := range slices.Concat(b.Items...) {
					if want, ok := status[s.Text]; s.Code && ok {
						said[s.Text] = true
						if want != a.Status {
							t.Errorf("%s: %s is %d, its page says %d", o.ID, s.Text, a.Status, want)
						}
					}
				}
			}
		}
	}
	for _, e := range explanations {
		// These two answer requests that match no operation.
		if !said[e.Code] && e.Code != "generic.not_found" && e.Code != "generic.method_not_allowed" {
			t.Errorf("no answer of the OpenAPI file tells %s", e.Code)
		}
	}
}

// The example of a problem in the OpenAPI file is the same as on the page.
func TestTitlesAgree(t *testing.T) {
	t.Parallel()
	titles := map[string]string{}
	for _, e := range explanations {
		titles[e.Code] = e.Title
	}
	examples := regexp.MustCompile(`title: (.+)\n\s+status: \d+\n\s+detail: .+\n\s+code: (\S+)\n`).FindAllSubmatch(openAPI(t), -1)
	if len(examples) == 0 {
		t.Fatal("the OpenAPI file has no examples of problems")
	}
	for _, m := range examples {
		if titles[string(m[2])] != string(m[1]) {
			t.Errorf("the title of %s is %q, its page says %q", m[2], m[1], titles[string(m[2])])
		}
	}
}

// paths are the addresses of all pages.
func paths() (all []string) {
	for _, p := range pages {
		for _, lang := range []string{english, french} {
			if p.in(lang) != "" {
				all = append(all, p.path(lang))
			}
		}
	}
	for _, e := range problem.Catalogue(problem.Ministry, problem.Counter, problem.Citizen) {
		all = append(all, errorHref(e.Code))
		if _, ok := e.InFrench(); ok {
			all = append(all, frenchHref(e.Code))
		}
	}
	return all
}

// Pages are small, have each id once, and their links lead to pages and ids that exist.
func TestPages(t *testing.T) {
	t.Parallel()
	h := server(t)
	anchors, shown := map[string]bool{}, map[string]string{}
	for _, path := range paths() {
		page := get(t, h, path)
		shown[path] = page
		if len(page) > maxPage {
			t.Errorf("%s has %d bytes, at most %d are good", path, len(page), maxPage)
		}
		for _, m := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(page, -1) {
			if anchors[path+"#"+m[1]] {
				t.Errorf("%s has the id %s twice", path, m[1])
			}
			anchors[path+"#"+m[1]] = true
		}
	}
	outside := []string{"/api/v1/counter/openapi.yaml", "/api/v1/citizen/openapi.yaml", "/cashin/openapi.yaml"} // served by their packages
	for path, page := range shown {
		for _, m := range regexp.MustCompile(`href="([^"#]*)(#[^"]+)?"`).FindAllStringSubmatch(page, -1) {
			to := cmp.Or(m[1], path)
			if strings.HasPrefix(to, "https://www.") || slices.Contains(outside, to) {
				continue
			}
			if got := ask(h, http.MethodHead, to).Code; got != http.StatusOK {
				t.Errorf("%s leads to %s: %d", path, to, got)
			}
			if m[2] != "" && !anchors[to+m[2]] {
				t.Errorf("%s has a link to %s%s, which leads nowhere", path, to, m[2])
			}
		}
	}
}

// Every page is one file in each language, and the French page has the sections of the
// English one.
func TestTranslations(t *testing.T) {
	t.Parallel()
	h := server(t)
	for _, lang := range []string{english, french} {
		entries, err := os.ReadDir("pages/" + lang)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			name := strings.TrimSuffix(e.Name(), ".html")
			if !slices.ContainsFunc(pages, func(p page) bool { return p.name == name && p.in(lang) != "" }) {
				t.Errorf("pages/%s/%s is in no table", lang, e.Name())
			}
		}
	}
	for _, p := range pages {
		if p.french == "" {
			continue
		}
		inEnglish, inFrench := get(t, h, p.path(english)), get(t, h, p.path(french))
		if !strings.HasPrefix(inFrench, "<!DOCTYPE html>\n<html lang=\"fr\">") || !regexp.MustCompile(`<h1[^>]*>`+regexp.QuoteMeta(p.french)).MatchString(html.UnescapeString(inFrench)) {
			t.Errorf("%s is not in French", p.path(french))
		}
		for path, page := range map[string]string{p.path(french): inEnglish, p.path(english): inFrench} {
			if !strings.Contains(page, `class="language" href="`+path+`"`) {
				t.Errorf("no link leads to the other language, %s", path)
			}
		}
		if p.name == "analysts" || p.name == "views" { // TestGuide compares them
			continue
		}
		for _, m := range headings.FindAllStringSubmatch(inEnglish, -1) {
			if !strings.Contains(inFrench, `<h2 id="`+m[1]+`">`) {
				t.Errorf("%s lacks the section %s", p.path(french), m[1])
			}
		}
	}
}

func TestDocumentation(t *testing.T) {
	t.Parallel()
	h := server(t)
	for path, parts := range map[string][]string{
		"/docs/reference": {
			"POST</span> <code>/api/v1/checkout/sessions</code>", "GET</span> <code>/api/v1/checkout/sessions/{id}</code>",
			"<code>order_id</code> required, string, 1–200 characters",
			`<code>customer</code> optional, object, <a href="/docs/reference#customer">Customer</a>`,
			"<code>phone</code> string or null, 1–32 characters",
			"<code>metadata</code> optional, object, at most 20 keys, keys of 1–64 characters, values: string of up to 500 characters",
			`<code>currency</code> optional, string, <a href="/docs/reference#currency">Currency</a>`,
			"<code>Idempotency-Key</code> required, in header",
			"<code>page_size</code> optional, in query, integer, 1–100",
			`<code>embed_checkout_url</code> URL or null`,
			`"order_id": "DOSSIER-2026-0003"`,
			`<a href="/docs/errors/checkout.order_paid"><code>checkout.order_paid</code></a>`,
			`<a href="/docs/errors/checkout.no_channel"><code>checkout.no_channel</code></a>`,
		},
		"/docs/webhooks": {`<code>webhook-signature</code>`},
		"/docs/events":   {`<code>failure_code</code> string, <a href="/docs/reference#failurecode">FailureCode</a>`},
		"/docs/citizen":  {"POST</span> <code>/api/v1/citizen/checkout</code>", `<h3 id="dues">Dues</h3>`, `<a href="/docs/errors/citizen.due_changed"><code>citizen.due_changed</code></a>`},
		"/docs/counter":  {"POST</span> <code>/api/v1/counter/reservations</code>", `<h3 id="reservation">Reservation</h3>`, `<a href="/docs/errors/counter.day_limit"><code>counter.day_limit</code></a>`, "<ol>"},
	} {
		page := get(t, h, path)
		for _, part := range parts {
			if !strings.Contains(page, part) {
				t.Errorf("%s lacks %s", path, part)
			}
		}
	}
	samples, err := readSamples()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range samples {
		for _, prefix := range []string{"/docs", "/docs/fr"} {
			path := prefix + "/quickstart"
			if s.Receives {
				path = prefix + "/webhooks"
			}
			if strings.Contains(s.Text, "go:build") || !strings.Contains(html.UnescapeString(get(t, h, path)), s.Text) {
				t.Errorf("%s does not show %s as it is", path, s.File)
			}
		}
	}
	sdks, err := readKits()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range sdks {
		for _, path := range []string{"/docs/sdks", "/docs/fr/sdks"} {
			for _, text := range []string{k.Install, k.Create.Text, k.Receive.Text} {
				if text == "" || !strings.Contains(html.UnescapeString(get(t, h, path)), text) {
					t.Errorf("%s does not show, as it is:\n%s", path, text)
				}
			}
		}
	}
	files, err := quickstart.Programs.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	if shown := len(samples) + 3*len(sdks); len(files) != shown {
		t.Errorf("%d programs are shown, there are %d", shown, len(files))
	}
}

// The pages of events have a sample of every event that an endpoint can subscribe to, and
// every failure code.
func TestEveryEventHasASample(t *testing.T) {
	t.Parallel()
	h := server(t)
	for _, path := range []string{"/docs/events", "/docs/fr/events"} {
		page := html.UnescapeString(get(t, h, path))
		for _, name := range registry.WebhookEvents() {
			sample, err := sampleBody(name)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(page, sample) || !strings.Contains(sample, `"event": "`+name+`"`) {
				t.Errorf("%s lacks the sample of %s", path, name)
			}
		}
		for _, code := range checkout.FailureCodes() {
			if !strings.Contains(page, "<code>"+string(code)+"</code>") {
				t.Errorf("%s lacks %s", path, code)
			}
		}
	}
	// A sample of a later event has the fields of its schema, which the contract tests hold
	// against real bodies.
	for _, e := range []checkout.EventType{checkout.EventCompleted, checkout.EventReversed} {
		var body map[string]any
		sample, err := sampleBody(string(e))
		if err != nil || json.Unmarshal([]byte(sample), &body) != nil || body["transaction_id"] == "" || body["amount"] != 5000.0 {
			t.Errorf("%s: %v\n%s", e, err, sample)
		}
	}
}

// The page of tests has every number of the simulators, the page of the SDK every option
// and callback of its types, and the page of listen every flag.
func TestNothingIsLeftOut(t *testing.T) {
	t.Parallel()
	h := server(t)
	read := func(path string) string {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	names := func(text, pattern string) (found []string) {
		t.Helper()
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			found = append(found, m[1])
		}
		if len(found) < 5 {
			t.Fatalf("%s finds %q", pattern, found)
		}
		return found
	}
	digits := names(read("../../dev/simulator/payer.go"), `digits: "([0-9]{2})"`)
	var own []string
	for _, n := range testNumbers {
		own = append(own, n.Digits)
	}
	if !slices.Equal(digits, own) {
		t.Errorf("the page has the test numbers %v, the simulators have %v", own, digits)
	}
	types := read("../../sdk/types/quittance.d.ts")
	wanted := map[string][]string{
		"testing": append(names(read("../../cmd/quittance-dev/listen.go"), `Var\(&l\.\w+, "([a-z-]+)"`), digits...),
		"embed":   append(names(types, `(?m)^    (on[A-Z]\w+)\?\(`), names(types, `(?m)^    \|? ?\{? ?(layout|locale|resize|checkoutOrigin|clientSecret|fetchClientSecret)\??:`)...),
		"keys":    registry.WebhookEvents(),
	}
	for name, list := range wanted {
		for _, lang := range []string{"", "/fr"} {
			page := get(t, h, "/docs"+lang+"/"+name)
			for _, word := range list {
				if !regexp.MustCompile(`<code>(--)?` + regexp.QuoteMeta(word) + `\b`).MatchString(page) {
					t.Errorf("/docs%s/%s lacks %s", lang, name, word)
				}
			}
		}
	}
}

// The page of the SDKs names the generators of clients in the versions that test/contract runs.
func TestGenerators(t *testing.T) {
	t.Parallel()
	h := server(t)
	pinned := map[string]string{}
	for path, pattern := range map[string]string{
		"../../Makefile":                           `(OAPI_CODEGEN)_VERSION +:= v(\S+)`,
		"../../test/tools/clients/pom.xml":         `<artifactId>(openapi-generator)-cli</artifactId>\s+<version>([^<]+)</version>`,
		"../../test/tools/clients/package.json":    `"(@hey-api/openapi-ts|openapi-typescript)": "([^"]+)"`,
		"../../test/tools/clients/requirements.in": `(?m)^(openapi-python-client)==(\S+)$`,
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			pinned[strings.ReplaceAll(strings.ToLower(m[1]), "_", "-")] = m[2]
		}
	}
	if len(pinned) != len(generators) {
		t.Errorf("the page names %d generators, tests run %v", len(generators), pinned)
	}
	for _, g := range generators {
		if pinned[g.Name] != g.Version {
			t.Errorf("the page says %s %s, tests run %q", g.Name, g.Version, pinned[g.Name])
		}
		for _, path := range []string{"/docs/sdks", "/docs/fr/sdks"} {
			if !strings.Contains(get(t, h, path), "<th scope=\"row\">"+g.Name+"<td>"+g.Version+"<td>"+g.Languages) {
				t.Errorf("%s lacks %s", path, g.Name)
			}
		}
	}
}

// Each text that the pages take from the OpenAPI files and from the domain has its French,
// with the same code in it, and each French text is of such a text.
func TestEverythingIsInFrench(t *testing.T) {
	t.Parallel()
	parsed := func(text []byte) node {
		t.Helper()
		root, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return root
	}
	check := func(ministry []byte, texts string) error {
		t.Helper()
		p, err := guides.ReadPhrases([]byte(texts))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := newContent(parsed(ministry), parsed(counterAPI(t)), parsed(citizenAPI(t)), p); err != nil {
			t.Fatal(err)
		}
		return p.Check()
	}
	if err := check(openAPI(t), string(frenchTexts)); err != nil {
		t.Errorf("ingress/docs/french.yaml: %v", err)
	}
	// A text that changed, of an operation, a parameter, a field and an error.
	for _, english := range []string{"Cancels an open, unpaid session", "The page, from 1.", "The id of your case or order.", "the body is over 64 KiB."} {
		changed := bytes.ReplaceAll(openAPI(t), []byte(english), []byte(english+" Changed."))
		if err := check(changed, string(frenchTexts)); err == nil || strings.Count(err.Error(), english) != 2 || !strings.Contains(err.Error(), "no French text for") || !strings.Contains(err.Error(), "occurs nowhere") {
			t.Errorf("after a change of %q: %v", english, err)
		}
	}

	var pairs []struct{ EN, FR string }
	if err := yaml.Unmarshal(frenchTexts, &pairs); err != nil {
		t.Fatal(err)
	}
	for _, p := range pairs {
		translated := func(code string) string {
			code = strings.ReplaceAll(code, "/docs/errors/", "/docs/fr/errors/")
			return strings.ReplaceAll(code, "{body}", "{corps}")
		}
		for _, code := range codePattern.FindAllString(p.EN, -1) {
			if !strings.Contains(oneLine(p.FR), translated(oneLine(code))) {
				t.Errorf("the French of %q lacks %s", p.EN, code)
			}
		}
		for _, code := range regexp.MustCompile(`\b[1-5][0-9]{2}\b`).FindAllString(p.EN, -1) {
			if !strings.Contains(p.FR, code) {
				t.Errorf("the French of %q lacks %s", p.EN, code)
			}
		}
	}
}

// Nothing on a French page leads to an English one, except the link to the same page in English.
func TestFrenchStaysFrench(t *testing.T) {
	t.Parallel()
	h := server(t)
	for _, path := range paths() {
		if path != "/docs/fr" && !strings.HasPrefix(path, "/docs/fr/") {
			continue
		}
		page := get(t, h, path)
		for _, m := range regexp.MustCompile(`<a ([^>]*)href="(/docs[^"]*)"`).FindAllStringSubmatch(page, -1) {
			if !strings.HasPrefix(m[2]+"/", "/docs/fr/") && !strings.HasPrefix(m[2], "/docs/fr#") && !strings.Contains(m[1], `class="language"`) {
				t.Errorf("%s leads to %s", path, m[2])
			}
		}
		text := regexp.MustCompile(`(?s)<(pre|style|nav).*?</(pre|style|nav)>`).ReplaceAllString(page, "")
		text = regexp.MustCompile(`<code>.*?</code>`).ReplaceAllString(text, "`")
		if english := regexp.MustCompile("` (required|optional|string|integer|boolean|object|array)|, in (header|path|query)|(Parameters|Body|Answers|Objects)</h|\\b(characters|at most|at least|one of|always|default)\\b").FindString(text); english != "" {
			t.Errorf("%s has the words %q", path, english)
		}
	}
}

// The address of the service leads to the documentation, in the language of the browser.
func TestFirst(t *testing.T) {
	t.Parallel()
	h := server(t)
	for accept, want := range map[string]string{"": "/docs", "en-GB,en;q=0.9": "/docs", "fr-CG,fr;q=0.9,en;q=0.8": "/docs/fr"} {
		r := ask(h, http.MethodGet, "/", "Accept-Language", accept)
		if r.Code != http.StatusFound || r.Header().Get("Location") != want || r.Header().Get("Vary") != "Accept-Language" {
			t.Errorf("%q: %d to %s", accept, r.Code, r.Header().Get("Location"))
		}
	}
}

// Nothing is loaded but our own script, and the policy allows the style.
func TestPolicy(t *testing.T) {
	t.Parallel()
	h := server(t)
	style := regexp.MustCompile(`(?s)<style>(.*)</style>`)
	for _, path := range paths() {
		r := ask(h, http.MethodGet, path)
		page := r.Body.String()
		if got := r.Header().Get("Content-Type"); got != "text/html; charset=utf-8" {
			t.Errorf("%s: Content-Type %s", path, got)
		}
		if bad := regexp.MustCompile(`(?i)<(script|link|img|iframe|object|form)\b| src=| style=| on[a-z]+=`).FindString(regexp.MustCompile(`(?s)<pre.*?</pre>`).ReplaceAllString(strings.Replace(page, `<script src="/docs/docs.js" defer></script>`, "", 1), "")); bad != "" {
			t.Errorf("%s has %s", path, bad)
		}
		m := style.FindStringSubmatch(page)
		if m == nil {
			t.Fatalf("%s has no style", path)
		}
		sum := sha256.Sum256([]byte(m[1]))
		policy := r.Header().Get("Content-Security-Policy")
		if want := "style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(policy, want) || !strings.HasPrefix(policy, "default-src 'none'; ") {
			t.Errorf("%s: the policy is %s, want it with %s", path, policy, want)
		}
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	h := server(t)
	if got := get(t, h, "/openapi.yaml"); got != string(openAPI(t)) {
		t.Error("/openapi.yaml is not the file")
	}
	for _, path := range []string{"/openapi.yaml", "/openapi.json", "/docs", "/docs/errors/", "/docs/errors/generic.unavailable"} {
		plain := ask(h, http.MethodGet, path)
		body := plain.Body.String()
		etag := plain.Header().Get("ETag")
		if !regexp.MustCompile(`^"[0-9a-f]{24}"$`).MatchString(etag) || plain.Header().Get("Cache-Control") != "public, max-age=300" {
			t.Errorf("%s: ETag %s, Cache-Control %s", path, etag, plain.Header().Get("Cache-Control"))
		}
		head := ask(h, http.MethodHead, path)
		if text := head.Body.String(); text != "" || head.Code != http.StatusOK || head.Header().Get("Content-Length") != strconv.Itoa(len(body)) {
			t.Errorf("HEAD %s: %d, %q, Content-Length %s of %d", path, head.Code, text, head.Header().Get("Content-Length"), len(body))
		}
		for _, tag := range []string{etag, "W/" + etag, `"other", ` + etag, "*"} {
			if r := ask(h, http.MethodGet, path, "If-None-Match", tag); r.Code != http.StatusNotModified || r.Body.String() != "" || r.Header().Get("ETag") != etag {
				t.Errorf("%s with If-None-Match: %s: %d", path, tag, r.Code)
			}
		}
		if r := ask(h, http.MethodGet, path, "If-None-Match", `"other"`); r.Code != http.StatusOK {
			t.Errorf("%s with another ETag: %d", path, r.Code)
		}
		zipped := ask(h, http.MethodGet, path, "Accept-Encoding", "br, gzip;q=0.8")
		if zipped.Header().Get("Content-Encoding") != "gzip" || zipped.Header().Get("ETag") == etag || zipped.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s: compressed with %v", path, zipped.Header())
		}
		z, err := gzip.NewReader(strings.NewReader(zipped.Body.String()))
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(z); err != nil || !bytes.Equal(text, []byte(body)) {
			t.Errorf("%s: compressed it is another: %v", path, err)
		}
		for _, accept := range []string{"gzip;q=0", "gzip; q=0.000", "br", "identity"} {
			if r := ask(h, http.MethodGet, path, "Accept-Encoding", accept); r.Header().Get("Content-Encoding") != "" {
				t.Errorf("%s with Accept-Encoding: %s is compressed", path, accept)
			}
		}
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
			if r := ask(h, method, path); r.Code != http.StatusMethodNotAllowed || r.Header().Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %d, Allow %s", method, path, r.Code, r.Header().Get("Allow"))
			}
		}
	}
	if got := ask(h, http.MethodGet, "/openapi.yaml").Header().Get("Content-Type"); got != "application/yaml; charset=utf-8" {
		t.Errorf("/openapi.yaml is %s", got)
	}
	if got := ask(h, http.MethodGet, "/openapi.json").Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("/openapi.json is %s", got)
	}
	for path, to := range map[string]string{"/docs/": "/docs", "/docs/errors": "/docs/errors/", "/docs/fr/": "/docs/fr", "/docs/webhooks/": "/docs/webhooks"} {
		if r := ask(h, http.MethodGet, path); r.Code != http.StatusPermanentRedirect || r.Header().Get("Location") != to {
			t.Errorf("%s: %d to %s", path, r.Code, r.Header().Get("Location"))
		}
	}
	unknown := ask(h, http.MethodGet, "/docs/errors/generic.unheard_of")
	if page := unknown.Body.String(); unknown.Code != http.StatusNotFound || !strings.Contains(page, "No such error code") ||
		strings.Count(page, `href="/docs/errors/`) != 1+len(problem.Catalogue(problem.Ministry, problem.Counter, problem.Citizen)) || unknown.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("an unknown code: %d %s", unknown.Code, page)
	}
	if strings.Contains(ask(h, http.MethodGet, "/docs/errors/%3Cb%3E").Body.String(), "<b>") {
		t.Error("what was asked for is shown")
	}
	if r := ask(h, http.MethodGet, "/docs/nothing"); r.Code != http.StatusNotFound || !strings.Contains(r.Body.String(), "Not found") {
		t.Errorf("another path: %d", r.Code)
	}
}

// Code generators read the file as it is served. Some do not know YAML's aliases.
func TestTheFileHasNoAliases(t *testing.T) {
	t.Parallel()
	h := server(t)
	file, err := parser.ParseBytes([]byte(get(t, h, "/openapi.yaml")), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []ast.NodeType{ast.AnchorType, ast.AliasType, ast.MergeKeyType, ast.TagType} {
		for _, n := range ast.FilterFile(kind, file) {
			t.Errorf("line %d of openapi.yaml has %s, a %s", n.GetToken().Position.Line, n, kind)
		}
	}

	var fromYAML, fromJSON any
	plain, err := yaml.YAMLToJSON(openAPI(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(json.Unmarshal(plain, &fromYAML), json.Unmarshal([]byte(get(t, h, "/openapi.json")), &fromJSON)); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(fromYAML, fromJSON) {
		t.Error("/openapi.json differs from /openapi.yaml")
	}
}

// French has a space before some marks. A line never ends with it, and code stays as it is.
func TestFrenchMarks(t *testing.T) {
	t.Parallel()
	if got, want := unbroken("<p>a : « b » ; <code>x ? y : z</code> !</p><pre>a : b</pre>"), "<p>a\u00a0: «\u00a0b\u00a0»\u00a0; <code>x ? y : z</code>\u00a0!</p><pre>a : b</pre>"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	h := server(t)
	for _, path := range []string{"/docs/fr/reference", "/docs/fr/analysts", "/docs/fr/errors/checkout.order_open"} {
		text := regexp.MustCompile(`(?s)<(pre|style|code).*?</(pre|style|code)>`).ReplaceAllString(get(t, h, path), "")
		if found := regexp.MustCompile(`.{20} [:;?!]\s.{20}`).FindString(text); found != "" {
			t.Errorf("%s can break the line in %q", path, found)
		}
	}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestProse(t *testing.T) {
	t.Parallel()
	got := prose("One `a.b`\ntwo.\n\n- x\n  more\n- `y`\n\nlast", map[string]string{"a.b": "/docs/errors/a.b"})
	want := []block{
		{Items: [][]span{{{Text: "One "}, {Text: "a.b", Code: true, Href: "/docs/errors/a.b"}, {Text: " two."}}}},
		{List: true, Items: [][]span{{{Text: "x more"}}, {{Text: "y", Code: true}}}},
		{Items: [][]span{{{Text: "last"}}}},
	}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i].List != want[i].List || !slices.EqualFunc(got[i].Items, want[i].Items, slices.Equal[[]span]) {
			t.Errorf("block %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}
