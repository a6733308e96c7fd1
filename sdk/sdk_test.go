package sdk_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"quittance/test/httpclient"

	"github.com/andybalholm/brotli"
	"github.com/go-chi/chi/v5"

	"quittance/sdk"
)

// released has the hash of every release, because pages name them. A new release adds a
// line. No line ever changes.
var released = map[string]map[string]string{
	"1.0.0": {"quittance.js": "sha384-SC9bujAYBy3may5OVBp3xvmqu4vkRrhXwuhLp46nznWofD7Rd2yRvb2Ed7yn6MZZ"},
	"1.1.0": {"quittance.js": "sha384-oKOwtArAyVJv9INsqjJ4C92RYt+SbC6JyMfEQmlcS8SRnheWr0Z/zY8RfODctLa8"},
}

func TestReleasesNeverChange(t *testing.T) {
	t.Parallel()
	if got := sdk.Integrity(); !reflect.DeepEqual(got, released) {
		t.Errorf("the releases are %v, want %v", got, released)
	}
	if _, ok := released[sdk.Version]; !ok {
		t.Errorf("version %s is not pinned", sdk.Version)
	}
}

// Citizens pay for each byte that they load (frontends, "Rules").
func TestBudgets(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("dist/" + sdk.Version + "/quittance.js")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		script []byte
		budget int
	}{
		"SDK":   {script, 3000},
		"frame": {sdk.Frame(), 1000},
	} {
		var zipped bytes.Buffer
		w, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(c.script); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if zipped.Len() > c.budget {
			t.Errorf("%s weighs %d bytes, want %d at most", name, zipped.Len(), c.budget)
		}
		t.Logf("%s: %d bytes of %d", name, zipped.Len(), c.budget)
	}
}

// The sources agree with the published types. The types accept and refuse what
// types/usage.ts says.
func TestTypes(t *testing.T) {
	t.Parallel()
	const compiler = "../.deps/browser/node_modules/typescript/bin/tsc"
	if _, err := os.Stat(compiler); err != nil {
		t.Fatalf("TypeScript is missing, `make deps/test` fetches it: %v", err)
	}
	if out, err := exec.CommandContext(t.Context(), "node", compiler, "-p", ".").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestServes(t *testing.T) {
	t.Parallel()
	url := serve(t)
	const newest, release = "public, max-age=300", "public, max-age=31536000, immutable"
	for path, want := range map[string]struct{ contentType, cacheControl, file string }{
		"/sdk/v1.js":                {"text/javascript; charset=utf-8", newest, sdk.Version + "/quittance.js"},
		"/sdk/v1.d.ts":              {"application/typescript; charset=utf-8", newest, sdk.Version + "/quittance.d.ts"},
		"/sdk/1.0.0/quittance.js":   {"text/javascript; charset=utf-8", release, "1.0.0/quittance.js"},
		"/sdk/1.0.0/quittance.d.ts": {"application/typescript; charset=utf-8", release, "1.0.0/quittance.d.ts"},
	} {
		file, err := os.ReadFile("dist/" + want.file)
		if err != nil {
			t.Fatal(err)
		}
		for coding, decode := range map[string]func(io.Reader) (io.Reader, error){
			"":     func(r io.Reader) (io.Reader, error) { return r, nil },
			"gzip": func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
			"br":   func(r io.Reader) (io.Reader, error) { return brotli.NewReader(r), nil },
		} {
			got := get(t, http.MethodGet, url+path, "Accept-Encoding", coding)
			r, err := decode(bytes.NewReader(got.body))
			if err != nil {
				t.Fatalf("%s as %q: %v", path, coding, err)
			}
			if body, err := io.ReadAll(r); err != nil || !bytes.Equal(body, file) {
				t.Errorf("%s as %q has other bytes than %s: %v", path, coding, want.file, err)
			}
			for field, value := range map[string]string{
				"Content-Type": want.contentType, "Cache-Control": want.cacheControl, "Content-Encoding": coding,
				"Access-Control-Allow-Origin": "*", "Cross-Origin-Resource-Policy": "cross-origin", "Vary": "Accept-Encoding",
				"X-Content-Type-Options": "nosniff",
			} {
				if has := got.header.Get(field); got.status != http.StatusOK || has != value {
					t.Errorf("%s as %q: %d with %s %q, want %q", path, coding, got.status, field, has, value)
				}
			}
			tag := got.header.Get("ETag")
			if again := get(t, http.MethodGet, url+path, "Accept-Encoding", coding, "If-None-Match", `"other", W/`+tag); again.status != http.StatusNotModified || len(again.body) > 0 {
				t.Errorf("%s as %q with its ETag %s: %d", path, coding, tag, again.status)
			}
			head := get(t, http.MethodHead, url+path, "Accept-Encoding", coding)
			if head.status != http.StatusOK || len(head.body) > 0 || head.header.Get("ETag") != tag {
				t.Errorf("HEAD %s as %q: %d with %d bytes", path, coding, head.status, len(head.body))
			}
		}
	}
	if got := get(t, http.MethodGet, url+"/sdk/v1.js", "Accept-Encoding", "br;q=0, gzip;q=0.5"); got.header.Get("Content-Encoding") != "gzip" {
		t.Errorf("br is refused and %q is sent", got.header.Get("Content-Encoding"))
	}
}

func TestIntegrityList(t *testing.T) {
	t.Parallel()
	a := get(t, http.MethodGet, serve(t)+"/sdk/integrity.json")
	var got map[string]map[string]string
	if err := json.Unmarshal(a.body, &got); err != nil {
		t.Fatalf("%s: %v", a.body, err)
	}
	if !reflect.DeepEqual(got, released) || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("%s: %v, want %v", a.header.Get("Content-Type"), got, released)
	}
}

func TestUnknownAddressSaysWhatThereIs(t *testing.T) {
	t.Parallel()
	url := serve(t)
	for _, path := range []string{"/sdk", "/sdk/", "/sdk/v2.js", "/sdk/0.9.0/quittance.js", "/sdk/1.0.0/", "/sdk/frame.js", "/sdk/../sdk.go"} {
		a := get(t, http.MethodGet, url+path)
		if a.status != http.StatusNotFound || !strings.Contains(string(a.body), "\n/sdk/v1.js\n") ||
			a.header.Get("Cache-Control") != "no-store" || a.header.Get("ETag") != "" {
			t.Errorf("%s: %d %v %s", path, a.status, a.header, a.body)
		}
	}
	if a := get(t, http.MethodPost, url+"/sdk/v1.js"); a.status != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", a.status)
	}
}

func serve(t *testing.T) string {
	t.Helper()
	r := chi.NewRouter()
	sdk.Routes(r)
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	return s.URL
}

type answer struct {
	status int
	header http.Header
	length int64
	body   []byte
}

// get makes a request that accepts only the encodings that it names. Names and values of
// headers alternate.
func get(t *testing.T, method, url string, headers ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", "identity")
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i+1] != "" {
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	resp, err := httpclient.Transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, resp.ContentLength, body}
}
