package simulator

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
)

// letterbox keeps the messages that the simulated providers of a channel have accepted. Safe
// for concurrent use.
type letterbox[T any] struct {
	behaviour behaviour

	mu       sync.Mutex
	messages history[T]
}

// letter is a message that a page shows.
type letter interface {
	// row returns the cells of the message in the table of its page.
	row() []string
}

// add keeps the message that number makes of its number.
func (b *letterbox[T]) add(number func(id int64) T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.messages.add(number(b.messages.next()))
}

// window copies the messages of a page of the list.
func (b *letterbox[T]) window(p page) []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.messages.window(p)
}

func (b *letterbox[T]) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.messages.clear()
}

// boxRoutes serves an inbox: as JSON, and to browsers as a page.
func boxRoutes[T letter](box *letterbox[T], title string, columns ...string) func(chi.Router) {
	return func(r chi.Router) {
		r.Get("/", func(w http.ResponseWriter, r *http.Request) {
			p, ok := readPage(w, r)
			if !ok {
				return
			}
			kept := box.window(p)
			if !strings.Contains(r.Header.Get("Accept"), "text/html") {
				writeJSON(w, http.StatusOK, kept)
				return
			}
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
			writeLetters(w, kept, title, columns)
		})
		r.Delete("/", func(w http.ResponseWriter, _ *http.Request) {
			box.clear()
			w.WriteHeader(http.StatusNoContent)
		})
	}
}

// writeLetters writes the page of an inbox, the newest message first.
func writeLetters[T letter](w io.Writer, kept []T, title string, columns []string) {
	var b strings.Builder
	fmt.Fprintf(&b, `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>%s</title>
<style>body{font:1rem/1.5 system-ui,sans-serif;margin:1rem;max-width:60rem}section{border-top:1px solid #767676;padding:.5rem 0}dt{color:#595959}dd{margin:0;white-space:pre-wrap;overflow-wrap:anywhere}</style>
<main><h1>%s</h1><p>Simulated: nothing left this machine. The newest message comes first; reload the page for more.</p>
`, html.EscapeString(title), html.EscapeString(title))
	if len(kept) == 0 {
		b.WriteString("<p>No message has come yet.</p>\n")
	}
	for i := len(kept) - 1; i >= 0; i-- {
		b.WriteString("<section><dl>")
		for n, cell := range kept[i].row() {
			if cell != "" {
				fmt.Fprintf(&b, "<dt>%s</dt><dd>%s</dd>", columns[n], html.EscapeString(cell))
			}
		}
		b.WriteString("</dl></section>\n")
	}
	b.WriteString("</main></html>\n")
	_, _ = io.WriteString(w, b.String()) // an error means that the caller has disconnected
}

// controlLetters is POST /control/sms and /control/mail: how the providers of the channel
// answer. low is the least status, and refusals are the further members with a text.
func (s *Simulator) controlLetters(set func(conduct), low int, texts map[string][]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f, ok := readForm(w, r)
		if !ok {
			return
		}
		var reset bool
		f.take("reset", &reset, "true or false")
		c, changes := readConduct(f)
		changes = f.take("hang", &c.hang, "true or false") || changes
		if c.status != 0 && c.status < low {
			f.fail("status", fmt.Sprintf("%d is not a refusal", c.status), fmt.Sprintf("send %d to 599, or 200 for normal answers", low))
		}
		for name, values := range texts {
			var text string
			expect := "one of " + strings.Join(values, ", ")
			if !f.take(name, &text, expect) {
				continue
			}
			changes = true
			if !strings.Contains(" "+strings.Join(values, " ")+" ", " "+text+" ") {
				f.fail(name, fmt.Sprintf("%q is not known", text), expect)
			}
			if name == "report" {
				c.report = text
				continue
			}
			c.refuseCode = text
		}
		if !f.accepted(w) {
			return
		}
		if reset || changes {
			set(c)
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

// spelled is a time on a page.
func spelled(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
