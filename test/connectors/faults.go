package connectors

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// Fault is a faulty behaviour of an operator.
type Fault string

// The faults.
const (
	// Error500 answers 500 with HTML and does nothing.
	Error500 Fault = "500"
	// Silent does nothing and never answers.
	Silent Fault = "silent"
	// SilentAfter executes the request and never answers.
	SilentAfter Fault = "silent after doing it"
	// CutAfter executes the request and breaks the connection.
	CutAfter Fault = "cut after doing it"
	// Garbage answers 200 with bytes that are not JSON.
	Garbage Fault = "garbage"
	// Empty answers 200 with an empty JSON object.
	Empty Fault = "empty object"
	// Twice answers 200 with two JSON objects.
	Twice Fault = "two objects"
	// Endless answers 200 with a body longer than a connector reads.
	Endless Fault = "endless"
	// Elsewhere answers with a redirect.
	Elsewhere Fault = "redirect"
)

// Match reports whether a fault applies to a request.
type Match func(*http.Request) bool

// Faults is placed in front of an operator. The zero value passes all requests on. Safe
// for concurrent use.
type Faults struct {
	mu    sync.Mutex
	rules []*rule
}

type rule struct {
	match Match
	fault Fault
	left  int

	// The answer, when fault is said.
	status int
	body   string
}

// said is the fault that Answer adds.
const said Fault = "said"

// Next applies the fault to the next n requests that match.
func (f *Faults) Next(n int, match Match, fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = append(f.rules, &rule{match: match, fault: fault, left: n})
}

// Answer answers the next n requests that match with status and body. The operator does
// not receive them.
func (f *Faults) Answer(n int, match Match, status int, body string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = append(f.rules, &rule{match: match, fault: said, left: n, status: status, body: body})
}

// Clear removes all faults.
func (f *Faults) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
}

func (f *Faults) take(r *http.Request) rule {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, rule := range f.rules {
		if rule.left > 0 && rule.match(r) {
			rule.left--
			return *rule
		}
	}
	return rule{}
}

// Handler returns the operator with the faults in front of it.
func (f *Faults) Handler(operator http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch met := f.take(r); met.fault {
		case "":
			operator.ServeHTTP(w, r)
		case Error500:
			http.Error(w, "<h1>Internal Server Error</h1>", http.StatusInternalServerError)
		case Silent:
			// The server notices the end of the connection only after the body was read.
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		case SilentAfter:
			operator.ServeHTTP(httptest.NewRecorder(), r)
			<-r.Context().Done()
		case CutAfter:
			operator.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		case Garbage:
			_, _ = w.Write([]byte("\x00\xff not json"))
		case Empty:
			_, _ = w.Write([]byte("{}"))
		case Twice:
			_, _ = w.Write([]byte("{}{}"))
		case Endless:
			_, _ = w.Write([]byte(`{"a":"` + strings.Repeat("a", 1<<20) + `"}`))
		case Elsewhere:
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		case said:
			w.WriteHeader(met.status)
			_, _ = w.Write([]byte(met.body))
		}
	})
}
