package journeys_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/go-chi/chi/v5"

	"quittance/checkout/page"
	"quittance/dev/shop"
	"quittance/money"
	"quittance/sdk"
	"quittance/test/servers"
)

// shop adds the pages of the demo shop. Its case passes through all states with the real
// SDK. The page in the frame is the test's own and sends the messages of each state.
func (g *gallery) shop(t *testing.T) {
	t.Helper()
	orders := &shopOrders{numbers: map[string]int{}}
	calls := http.NewServeMux()
	calls.HandleFunc("POST /api/v1/checkout/sessions", orders.create)
	calls.HandleFunc("POST /api/v1/checkout/sessions/verify-completion", orders.verify)
	api := httptest.NewServer(calls)
	t.Cleanup(api.Close)
	g.mux.HandleFunc("POST /orders/{number}/verified", func(_ http.ResponseWriter, r *http.Request) {
		number, _ := strconv.Atoi(r.PathValue("number"))
		close(orders.at(number))
	})
	dir := servers.Dir(t)
	newShop := func(key string) http.Handler {
		s, err := shop.New(shop.Config{Listen: "127.0.0.1:0", DataDir: dir, APIBase: api.URL, CheckoutURL: g.secure, Key: key, Log: servers.Logger(t)})
		if err != nil {
			t.Fatal(err)
		}
		return s.Handler()
	}
	open, closed := newShop("sk_test_Secret0000000000000000"), newShop("")
	g.mux.Handle("/cases/", open)
	g.mux.Handle("GET /assets/", open)
	scripts := chi.NewRouter()
	sdk.Routes(scripts)
	g.mux.Handle("GET /sdk/", scripts)
	g.mux.HandleFunc("GET /frame.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", page.ContentTypeScript)
		_, _ = w.Write(sdk.Frame())
	})
	g.mux.HandleFunc("GET /embed/{id}", g.frame(t))

	get := func(h http.Handler, path string, status int) *answered {
		p := pageOf(answerTo(t, h, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil), status))
		p.body = regexp.MustCompile(`PATENTE-[A-Z0-9]+`).ReplaceAll(p.body, []byte(shownCase))
		return p
	}
	newCase := func(h http.Handler) string {
		form := url.Values{"notice": {"patente"}}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/cases", strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		return answerTo(t, h, r, http.StatusSeeOther).Header().Get("Location")
	}
	for _, lang := range money.Languages {
		query := "?lang=" + string(lang)
		for _, row := range []struct {
			name string
			page *answered
		}{
			{"shop.list", get(open, "/"+query, http.StatusOK)},
			{"shop.list.no-key", get(closed, "/"+query, http.StatusOK)},
			{"shop.case.no-key", get(closed, newCase(closed)+query, http.StatusOK)},
			{"shop.case.unknown", get(open, "/cases/NOBODY"+query, http.StatusNotFound)},
		} {
			g.tours = append(g.tours, tour{{name: row.name + "-" + string(lang), widths: auditWidths, pictured: true, page: row.page}})
		}
		// The frame keeps the layout of the width at which it was opened.
		for _, widths := range [][]int{auditWidths[:2], auditWidths[2:]} {
			path := newCase(open)
			g.tours = append(g.tours, shopCase(g.secure+path+query, string(lang), orders.next(strings.TrimPrefix(path, "/cases/")), widths))
		}
	}
}

// shownCase replaces the random id of every case in the pictures.
const shownCase = "PATENTE-7KQ2M4XW9RTA"

// shopCase returns the states of the case at an address, which is https because the SDK
// requires it.
func shopCase(path, lang string, order int, widths []int) (out tour) {
	see := func(state string, pictured bool, v view) {
		v.name, v.widths, v.pictured = "shop.case"+state+"-"+lang, widths, pictured
		out = append(out, v)
	}
	is := func(state string) string { return `#payment[data-state="` + state + `"]` }
	const named = `document.querySelector("dd").textContent = "` + shownCase + `"`
	see("", true, view{path: path, run: named, until: "#start"})
	see(".opening", false, view{press: "#start", until: is("opening")})
	see(".slow", false, view{until: is("slow")}) // the SDK reports it after 8 s
	see(".paying", true, view{run: frameSays(page.StateChoose, "ready", `{}`), until: is("locked")})
	see(".pending", true, view{run: frameSays(page.StateWaiting, "pending", `{ reason: "card" }`), until: is("pending")})
	see(".over", true, view{run: frameSays(page.StateFailed, "ended", `{}`), until: is("over") + " #again"})
	see(".failed", true, view{press: "#again", run: frameSays(page.StateUnknown, "error", `{ code: "session_not_found", retryable: false }`), until: is("failed") + " #again"})
	see(".closed", false, view{press: "#again", run: frameSays(page.StateCancelled, "closed", `{}`), until: is("closed") + " #again"})
	see(".checking", false, view{press: "#again", run: frameSays(page.StateCompleted, "complete", fmt.Sprintf(`{ completion_token: "cpt_%d" }`, order)), until: is("checking")})
	see(".unproved", false, view{run: fmt.Sprintf(`fetch("/orders/%d/verified", { method: "POST" })`, order), until: is("unproved")})
	see(".paid", false, view{path: path, press: "#start", until: is("unlocked")})
	see(".unlocked", true, view{path: path, run: named, until: "#unlocked"})
	return out
}

// frameSays returns a script that waits for the frame's page, shows a state in it, and
// sends a message of that state to the shop.
func frameSays(state page.State, what, data string) string {
	return `(async () => {
  while (!frames[0] || !("quittanceSecret" in frames[0])) await new Promise((done) => setTimeout(done, 20));
  const doc = frames[0].document;
  const answer = await fetch(frames[0].location.href + "&state=` + string(state) + `");
  doc.body.replaceWith(new frames[0].DOMParser().parseFromString(await answer.text(), "text/html").body);
  doc.dispatchEvent(new CustomEvent("quittance:say", { detail: { type: "` + what + `", data: ` + data + ` } }));
})()`
}

// frame serves the page in the shop's frame, in the state that its address names.
func (g *gallery) frame(t *testing.T) http.HandlerFunc {
	r, err := page.New()
	if err != nil {
		t.Fatal(err)
	}
	return func(w http.ResponseWriter, req *http.Request) {
		query := req.URL.Query()
		v := everything(page.State(cmp.Or(query.Get("state"), string(page.StateChoose))), money.Language(query.Get("locale")))
		if v.State == page.StateWaiting {
			asCard(&v)
		}
		v.Embed = inFrame(query.Get("layout"))
		v.Embed.Parent, v.Embed.Script = query.Get("parent_origin"), "/frame.js"
		v.Due, v.Total = 25_000, 25_075
		var b bytes.Buffer
		if err := r.Render(&b, v); err != nil {
			t.Errorf("rendering the page in the frame: %v", err)
		}
		for _, h := range page.EmbedHeaders([]string{g.secure}) {
			w.Header().Set(h.Name, h.Value)
		}
		_, _ = b.WriteTo(w)
	}
}

// shopOrders plays the API that the shop calls. Verifying an order's payment waits until
// the test closes the channel of the order.
type shopOrders struct {
	mu       sync.Mutex
	numbers  map[string]int  // by order_id
	verified []chan struct{} // by number; closed once the order is paid
}

// next returns the number of a new order.
func (o *shopOrders) next(id string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.numbers[id] = len(o.verified)
	o.verified = append(o.verified, make(chan struct{}))
	return o.numbers[id]
}

func (o *shopOrders) at(number int) chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.verified[number]
}

func (o *shopOrders) create(w http.ResponseWriter, r *http.Request) {
	var body struct {
		OrderID string `json:"order_id"`
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	o.mu.Lock()
	number := o.numbers[body.OrderID]
	o.mu.Unlock()
	select {
	case <-o.at(number):
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"status": 409, "code": "checkout.order_paid"}`)
	default:
		_, _ = fmt.Fprintf(w, `{"id": "chs_%d", "client_secret": "chs_secret_%[1]d"}`, number)
	}
}

func (o *shopOrders) verify(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Token string `json:"completion_token"`
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	number, _ := strconv.Atoi(strings.TrimPrefix(body.Token, "cpt_"))
	select {
	case <-o.at(number):
	case <-r.Context().Done():
	}
	_, _ = io.WriteString(w, `{"order_id": "", "paid": false}`)
}
