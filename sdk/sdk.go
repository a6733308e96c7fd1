// Package sdk serves the browser SDK, which shows the checkout in a frame on an
// integrator's page, and the script of that frame (contract, "Embedded checkout pages
// and SDK"; docs/design/decisions.md § 13).
//
// The sources are in src and types. `go generate` builds dist from them; dist is
// committed and embedded. dist/<version> is a release. A release never changes,
// because pages name its script with a hash.
package sdk

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/go-chi/chi/v5"
)

//go:generate go run ./build

// Version is the newest release. /sdk/v1.js serves it.
const Version = "1.1.0"

// Cache-Control of the addresses of the newest release, and of the addresses of one
// release.
const (
	newestCacheControl  = "public, max-age=300"
	releaseCacheControl = "public, max-age=31536000, immutable"
)

const (
	scriptType = "text/javascript; charset=utf-8"
	typesType  = "application/typescript; charset=utf-8"
	jsonType   = "application/json"
	textType   = "text/plain; charset=utf-8"
)

//go:embed dist
var dist embed.FS

// Frame returns the script that the embedded page loads before its own. The script
// forwards to the SDK the messages that the page sends by the DOM event quittance:say,
// and nothing else. It removes the client_secret from the address and gives it to the
// page as window.quittanceSecret. The page's <html> has data-parent, the validated
// origin of the page around it, and data-need="navigate" when the page was requested
// without a secret. Callers must not change the bytes.
func Frame() []byte { return content("frame.js") }

// Integrity returns, for each release, the integrity value (Subresource Integrity) of
// each file that a page may load.
func Integrity() map[string]map[string]string {
	out := map[string]map[string]string{}
	for _, version := range releases() {
		sum := sha512.Sum384(content(version + "/quittance.js"))
		out[version] = map[string]string{"quittance.js": "sha384-" + base64.StdEncoding.EncodeToString(sum[:])}
	}
	return out
}

// Routes mounts everything under /sdk: the newest release as /sdk/v1.js and
// /sdk/v1.d.ts, each release as /sdk/<version>/quittance.js and quittance.d.ts,
// and /sdk/integrity.json. Any site may fetch them.
func Routes(r chi.Router) {
	h := http.HandlerFunc(serve)
	for _, pattern := range []string{"/sdk", "/sdk/*"} {
		r.Method(http.MethodGet, pattern, h)
		r.Method(http.MethodHead, pattern, h)
	}
}

func serve(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	// A browser checks the integrity of a file only when CORS lets it read the file.
	header.Set("Access-Control-Allow-Origin", "*")
	header.Set("Cross-Origin-Resource-Policy", "cross-origin")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Add("Vary", "Accept-Encoding")
	all := files()
	f, ok := all[r.URL.Path]
	if !ok {
		f = all[""]
	}
	header.Set("Content-Type", f.contentType)
	header.Set("Cache-Control", f.cacheControl)
	body, etag := f.encoded(accepted(r), header)
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		if r.Method != http.MethodHead {
			_, _ = w.Write(body) // an error means that the caller is gone
		}
		return
	}
	header.Set("ETag", etag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body)) // conditional requests, HEAD
}

// file is an answer in each encoding. It is made once.
type file struct {
	contentType, cacheControl string
	plain, gzip, brotli       []byte
	etag                      string // without quotes
}

// encoded returns the body in the shortest encoding that the request accepts, and its
// ETag.
func (f file) encoded(accepts map[string]bool, header http.Header) (body []byte, etag string) {
	switch {
	case accepts["br"]:
		header.Set("Content-Encoding", "br")
		return f.brotli, `"` + f.etag + `-br"`
	case accepts["gzip"]:
		header.Set("Content-Encoding", "gzip")
		return f.gzip, `"` + f.etag + `-gzip"`
	}
	return f.plain, `"` + f.etag + `"`
}

// files returns the answers by path. The empty path holds the answer for unknown paths.
var files = sync.OnceValue(func() map[string]file {
	out := map[string]file{}
	script, types := content(Version+"/quittance.js"), content(Version+"/quittance.d.ts")
	out["/sdk/v1.js"] = newFile(scriptType, newestCacheControl, script)
	out["/sdk/v1.d.ts"] = newFile(typesType, newestCacheControl, types)
	for _, version := range releases() {
		out["/sdk/"+version+"/quittance.js"] = newFile(scriptType, releaseCacheControl, content(version+"/quittance.js"))
		out["/sdk/"+version+"/quittance.d.ts"] = newFile(typesType, releaseCacheControl, content(version+"/quittance.d.ts"))
	}
	list, err := json.MarshalIndent(Integrity(), "", "  ")
	if err != nil {
		panic("sdk: strings have a JSON: " + err.Error())
	}
	out["/sdk/integrity.json"] = newFile(jsonType, newestCacheControl, append(list, '\n'))

	paths := make([]string, 0, len(out))
	for p := range out {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	out[""] = newFile(textType, "no-store", []byte("Nothing is here. There are:\n\n"+strings.Join(paths, "\n")+"\n"))
	return out
})

func newFile(contentType, cacheControl string, plain []byte) file {
	var zipped, smallest bytes.Buffer
	// Neither writer can fail: the output is a buffer and the level is the package's own.
	g, _ := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	_, _ = g.Write(plain)
	_ = g.Close()
	b := brotli.NewWriterLevel(&smallest, brotli.BestCompression)
	_, _ = b.Write(plain)
	_ = b.Close()
	sum := sha256.Sum256(plain)
	return file{
		contentType: contentType, cacheControl: cacheControl,
		plain: plain, gzip: zipped.Bytes(), brotli: smallest.Bytes(), etag: hex.EncodeToString(sum[:12]),
	}
}

// releases returns the versions in dist.
func releases() (out []string) {
	entries, err := dist.ReadDir("dist")
	if err != nil {
		panic("sdk: dist is embedded: " + err.Error())
	}
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, e.Name())
		}
	}
	return out
}

// content returns a file of dist.
func content(name string) []byte {
	b, err := dist.ReadFile(path.Join("dist", name))
	if err != nil {
		panic("sdk: run go generate: " + err.Error())
	}
	return b
}

// accepted reads Accept-Encoding (RFC 9110 § 12.5.3). Every weight above zero accepts.
func accepted(r *http.Request) map[string]bool {
	out := map[string]bool{}
	for _, coding := range list(r.Header.Values("Accept-Encoding")) {
		name, weight, _ := strings.Cut(coding, ";")
		q, weighted := strings.CutPrefix(strings.ReplaceAll(weight, " ", ""), "q=")
		out[strings.ToLower(strings.TrimSpace(name))] = !weighted || strings.Trim(q, "0.") != ""
	}
	return out
}

// list splits the comma-separated values of a header field.
func list(values []string) (out []string) {
	for value := range strings.SplitSeq(strings.Join(values, ","), ",") {
		if value = strings.TrimSpace(value); value != "" {
			out = append(out, value)
		}
	}
	return out
}
