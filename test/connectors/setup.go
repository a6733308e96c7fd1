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

// Standin is a handler that plays an operator.
type Standin struct {
	http.Handler
	// Path is where the operator's API begins, such as "/mtn".
	Path string
	// Collections returns the number of collections that the operator has of an id.
	Collections func(id string) int
}

// Simulators runs the developer's simulators with short delays until the test ends and
// returns the one of an operator. configure changes their configuration, such as the
// accounts that they accept.
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

// bare returns an id without dashes, as some operators use it.
func bare(id string) string { return strings.ReplaceAll(id, "-", "") }

// Serve serves an operator behind faults until the test ends. It returns the address of
// the operator's API.
func Serve(t *testing.T, faults *Faults, operator Standin) connector.BaseURL {
	t.Helper()
	server := httptest.NewServer(faults.Handler(operator))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return connector.BaseURL(server.URL + operator.Path)
}

// Config is the configuration of a connector in tests. Calls time out after a second.
func Config() connector.Config {
	return connector.Config{Now: now, Timeout: time.Second, EnquiriesPerSecond: 100}
}

func now() time.Time { return time.Now().UTC() }
