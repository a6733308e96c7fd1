package journeys_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	stdlog "log"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"quittance/checkout/page"
	"quittance/test/harness"
)

// auditWidths are the widths at which every page is audited. 320 px is also the width of a
// screen of 1280 px at a zoom of 400 %.
var auditWidths = []int{320, 400, 1280}

// galleryTime is the time that the pages show.
var galleryTime = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// view is a page to audit.
type view struct {
	name     string // state[.look]-language; of other services counter.page, shop.state, …
	widths   []int
	pictured bool   // `make screens` takes pictures of it
	media    string // empty for a screen, "print" for paper, "forced" for the reader's own colours, "large" for text of twice the size

	// The page or its path. Without either, the view is what the one before becomes by
	// press, run and until, see axe.mjs.
	page              *answered
	path              string
	press, run, until string
}

// serviceOf returns the service of a view's name; empty for the hosted page.
func serviceOf(name string) string {
	before, _, _ := strings.Cut(name, ".")
	before, _, _ = strings.Cut(before, "-")
	switch before {
	case "counter", "portal", "shop", "bank", "docs", "receipts", "staff":
		return before
	}
	return ""
}

// large is the medium of text of twice its size.
const large = "large"

// tour is a sequence of views in one tab.
type tour []view

// in returns a view that shows the page before it in another medium.
func (v view) in(media string) view {
	at := strings.LastIndex(v.name, "-")
	widths := pictureWidths
	if media == large {
		widths = []int{320}
	}
	return view{name: v.name[:at] + "." + media + v.name[at:], widths: widths, pictured: true, media: media}
}

// answered is the answer of a handler.
type answered struct {
	header http.Header
	body   []byte
}

// answerTo sends a request to a handler without a network.
func answerTo(t *testing.T, h http.Handler, r *http.Request, status int) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != status {
		t.Fatalf("%s %s answers %d, want %d:\n%s", r.Method, r.URL.Path, w.Code, status, w.Body)
	}
	return w
}

func pageOf(w *httptest.ResponseRecorder) *answered {
	header := w.Header().Clone()
	header.Del("Set-Cookie")
	return &answered{header, w.Body.Bytes()}
}

// gallery serves all pages with the headers, styles and scripts that the services
// send with them.
type gallery struct {
	base, secure string // the same over http and https
	tours        []tour
	mux          *http.ServeMux
}

func newGallery(t *testing.T, more ...func(*gallery, *testing.T)) *gallery {
	t.Helper()
	return galleryOf(t, append(more, (*gallery).hosted, (*gallery).counter, (*gallery).portal, (*gallery).shop, (*gallery).bank, (*gallery).docs, (*gallery).receipts)...)
}

// galleryOf serves the pages of some services.
func galleryOf(t *testing.T, services ...func(*gallery, *testing.T)) *gallery {
	t.Helper()
	g := &gallery{mux: http.NewServeMux()}
	server, secure := httptest.NewServer(g.mux), httptest.NewUnstartedServer(g.mux)
	// The browser first rejects the certificate, which the server would log.
	secure.Config.ErrorLog = stdlog.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(server.Close)
	t.Cleanup(secure.Close)
	g.base, g.secure = server.URL, secure.URL
	for _, add := range services {
		add(g, t)
	}
	for _, tour := range g.tours {
		for i, v := range tour {
			if v.page == nil {
				continue
			}
			tour[i].path = "/pages/" + v.name
			g.mux.HandleFunc("GET "+tour[i].path, func(w http.ResponseWriter, _ *http.Request) {
				maps.Copy(w.Header(), v.page.header)
				_, _ = w.Write(v.page.body)
			})
		}
	}
	return g
}

// QUITTANCE_AUDIT=full audits every view in both languages, with axe at the smallest and at the largest
// width. The short form audits each tour in one language, at every width, with axe at one of the two. The
// seed chooses; the log names it.
const (
	fullAudit = "QUITTANCE_AUDIT"
	auditSeed = "QUITTANCE_AUDIT_SEED"
)

// sample are the widths at which views are audited, and those at which axe runs, by the names of the views.
type sample struct{ widths, ruled map[string][]int }

// sample chooses what is audited.
func (g *gallery) sample(t *testing.T) sample {
	t.Helper()
	out := sample{map[string][]int{}, map[string][]int{}}
	full := os.Getenv(fullAudit) == "full" || os.Getenv("QUITTANCE_SHOTS") != ""
	seed := cmp.Or(os.Getenv(auditSeed), strconv.FormatUint(rand.Uint64(), 36))
	if !full {
		t.Logf("each page is audited in one language: %s=%s chooses the same, %s=full audits all", auditSeed, seed, fullAudit)
	}
	number := func(of string) int {
		h := fnv.New32a()
		_, _ = io.WriteString(h, seed+of)
		return int(h.Sum32() >> 8)
	}
	// Tours of one page in other languages.
	stem := func(tour tour) string { return tour[0].name[:max(0, strings.LastIndex(tour[0].name, "-"))] }
	same := map[string][]string{}
	for _, tour := range g.tours {
		same[stem(tour)] = append(same[stem(tour)], tour[0].name)
	}
	for _, tour := range g.tours {
		names := same[stem(tour)]
		if !full && names[number(stem(tour))%len(names)] != tour[0].name {
			continue
		}
		for _, v := range tour {
			out.widths[v.name], out.ruled[v.name] = v.widths, ends(v)
			if rules := ends(v); !full && len(rules) > 0 {
				out.ruled[v.name] = rules[number(v.name)%2:][:1]
			}
		}
	}
	return out
}

// ends returns the smallest and the largest width of a view.
func ends(v view) []int {
	if len(v.widths) == 0 {
		return nil
	}
	return []int{v.widths[0], v.widths[len(v.widths)-1]}
}

// task returns the task of axe.mjs: all tours, at the widths that only returns. axe runs at the widths that
// ruled returns.
func (g *gallery) task(only, ruled func(view) []int) map[string]any {
	var tours [][]map[string]any
	for _, tour := range g.tours {
		var views []map[string]any
		seen := false
		for _, v := range tour {
			widths := only(v)
			seen = seen || len(widths) > 0
			views = append(views, map[string]any{
				"name": v.name, "path": v.path, "widths": append([]int{}, widths...), "rules": append([]int{}, ruled(v)...), "press": v.press, "run": v.run, "until": v.until, "media": v.media,
			})
		}
		if seen {
			tours = append(tours, views)
		}
	}
	return map[string]any{"base": g.base, "origins": []string{g.base, g.secure}, "tours": tours}
}

func (g *gallery) hosted(t *testing.T) {
	t.Helper()
	r, err := page.New()
	if err != nil {
		t.Fatal(err)
	}
	g.tours = append(g.tours, hostedTours(t, r)...)
	g.papers(t, r.Script())
	g.mux.HandleFunc("GET /c/assets/frame.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", page.ContentTypeScript)
	})
	for _, asset := range r.Assets() {
		if strings.Contains(asset.Path, "/embed.") {
			asset.Body = []byte(`document.body.removeAttribute("inert")`) // no messages, see inFrame
		}
		g.mux.HandleFunc("GET "+asset.Path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", asset.ContentType)
			_, _ = w.Write(asset.Body)
		})
	}
	g.mux.HandleFunc("GET /c/chs_1/live", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprint(w, ": here\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
}

// ugly is the name of a page that has every fault that the audit must find.
const ugly = "ugly"

// ugly adds the pages with faults and returns them.
func (g *gallery) ugly() tour {
	g.mux.HandleFunc("GET /"+ugly, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", page.ContentType)
		_, _ = io.WriteString(w, `<!DOCTYPE html><html><head><title>x</title></head><body style="width: 2000px"><p style="color: #ccc">pale</p><p style="width: 3em"><span class="n">5 000 FCFA</span></p><button>x</button></body></html>`)
	})
	g.tours = append(g.tours, tour{{name: ugly, path: "/" + ugly, widths: auditWidths}})
	g.restless()
	return slices.Concat(g.tours[len(g.tours)-2:]...)
}

// restless is a page whose frame loads its page again and again and then the ugly one. The
// audit must be of one page of the frame.
const restless = "restless"

func (g *gallery) restless() {
	for path, body := range map[string]string{
		restless: `<iframe title="x" id="f" src="/` + restless + `/calm"></iframe><script>
			let n = 0;
			f.onload = () => { if (++n <= 20) f.contentWindow.location.href = n < 20 ? "/` + restless + `/calm?" + n : "/` + ugly + `"; };
		</script>`,
		restless + "/calm": `<p>x</p>`,
	} {
		g.mux.HandleFunc("GET /"+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", page.ContentType)
			_, _ = io.WriteString(w, `<!DOCTYPE html><html lang="fr"><head><title>x</title></head><body><h1>x</h1>`+body+`</body></html>`)
		})
	}
	g.tours = append(g.tours, tour{{name: restless, path: "/" + restless, widths: auditWidths[:1], until: "html"}})
}

// audit is the report of axe.mjs about a page.
type audit struct {
	Page     string   `json:"page"`
	Width    int      `json:"width"`
	Fault    string   `json:"fault"`
	Findings []string `json:"findings"`
	Wide     int      `json:"wide"`
	Small    []string `json:"small"`
	Broken   []string `json:"broken"`
}

// Every page that citizens and clerks see is audited in every state, in both languages (see fullAudit) and
// at every width, and with text of twice its size at the smallest width; so is the
// documentation. axe finds no fault, no page scrolls
// sideways, every target of citizens and clerks is at least 44 px wide and high, and no
// amount or reference breaks inside.
func TestPagesForEverybody(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	t.Parallel()
	g := newGallery(t)
	of := g.sample(t)
	missing, pages := map[string]bool{}, map[string]int{}
	for name, widths := range of.widths {
		for _, width := range widths {
			missing[fmt.Sprint(name, " at ", width)] = true
		}
		pages[cmp.Or(serviceOf(name), "hosted")]++
	}
	audits := len(missing)
	for _, v := range g.ugly() {
		of.widths[v.name], of.ruled[v.name] = v.widths, ends(v)
	}
	begun := time.Now()
	harness.Browse(t, 20*time.Minute, "axe.mjs", g.task(func(v view) []int { return of.widths[v.name] }, func(v view) []int { return of.ruled[v.name] }), func(line []byte) {
		var a audit
		if err := json.Unmarshal(line, &a); err != nil {
			t.Fatalf("the browser's line %q: %v", line, err)
		}
		if a.Page == ugly {
			// axe does not run at the width between.
			if strings.Contains(strings.Join(a.Findings, " "), "color-contrast") == (a.Width == auditWidths[1]) || len(a.Small) != 1 || len(a.Broken) != 1 || a.Wide <= a.Width {
				t.Errorf("the audit of the ugly page misses faults: %s", line)
			}
			return
		}
		if a.Fault != "" {
			t.Errorf("%s: %s", a.Page, a.Fault)
			return
		}
		if a.Page == restless {
			if strings.Contains(strings.Join(a.Findings, " "), "color-contrast") != (a.Wide > 1000) || a.Wide == 0 {
				t.Errorf("the audit of the restless page is of two pages of its frame: %s", line)
			}
			return
		}
		if a.Wide > 0 {
			delete(missing, fmt.Sprint(a.Page, " at ", a.Width))
		}
		for _, finding := range a.Findings {
			t.Errorf("%s at %d px: %s", a.Page, a.Width, finding)
		}
		for _, target := range a.Small {
			if serviceOf(a.Page) == "docs" {
				break // readers of the documentation have a keyboard; axe asks for 24 px
			}
			t.Errorf("%s at %d px: a target is too small: %s", a.Page, a.Width, target)
		}
		for _, number := range a.Broken {
			t.Errorf("%s at %d px: %q breaks inside", a.Page, a.Width, number)
		}
		if a.Wide > a.Width {
			t.Errorf("%s is %d px wide in a window of %d px", a.Page, a.Wide, a.Width)
		}
	})
	t.Logf("%d audits of %v pages in %v", audits, pages, time.Since(begun).Round(time.Second))
	for page := range missing {
		t.Errorf("the browser has not audited %s px", page)
	}
}
