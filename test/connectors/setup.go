package connectors

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"quittance/dev/simulator"
	"quittance/internal/connector"
	"quittance/test/servers"
)

// Standin plays an operator.
type Standin struct {
	http.Handler
	// Path is where the operator's API begins, such as "/mtn".
	Path string
	// Collections says how many collections of this id the operator has.
	Collections func(id string) int
}

// Simulators runs the developer's simulators until the test ends, quick as tests want
// them, and returns the one of an operator. configure makes them know accounts.
func Simulators(t *testing.T, operator string, configure ...func(*simulator.Config)) Standin {
	t.Helper()
	cfg := simulator.Config{
		Now: now, Log: servers.Logger(t), ApprovalDelay: 300 * time.Millisecond, AmbiguousDelay: 300 * time.Millisecond,
		ApprovalWindow: 500 * time.Millisecond, LateDelay: 100 * time.Millisecond, Poll: 20 * time.Millisecond,
	}
	for _, f := range configure {
		f(&cfg)
	}
	s, err := simulator.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	handler := s.Handler()
	return Standin{Handler: handler, Path: "/" + operator, Collections: func(id string) int {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/control/collections?operator="+operator, http.NoBody))
		var all []struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal(answer.Body.Bytes(), &all); err != nil {
			t.Error(err)
		}
		n := 0
		for _, c := range all {
			if bare(c.ID) == bare(id) {
				n++
			}
		}
		return n
	}}
}

// bare is an id as operators have it that take no dashes.
func bare(id string) string { return strings.ReplaceAll(id, "-", "") }

// Serve lets an operator listen, behind faults, until the test ends. It returns the
// address of its API.
func Serve(t *testing.T, faults *Faults, operator Standin) connector.BaseURL {
	t.Helper()
	server := httptest.NewServer(faults.Handler(operator))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return connector.BaseURL(server.URL + operator.Path)
}

// Config is a connector's, for tests: it gives a call up after a second.
func Config() connector.Config {
	return connector.Config{Now: now, Timeout: time.Second, EnquiriesPerSecond: 100}
}

func now() time.Time { return time.Now().UTC() }
