package attacks_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// thief is a server of somebody else. To the service it is the ERP that accepts everything, and the mobile
// money operator who says that every payment succeeded.
type thief struct {
	*httptest.Server

	mu    sync.Mutex
	asked map[string]map[string]any // requests to pay by id
	heard []string                  // credentials
}

func newThief(t *testing.T) *thief {
	t.Helper()
	th := &thief{asked: map[string]map[string]any{}}
	th.Server = httptest.NewServer(th)
	t.Cleanup(th.Close)
	return th
}

// ServeHTTP answers as the ERP and the operator do.
func (th *thief) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	th.mu.Lock()
	defer th.mu.Unlock()
	if said := r.Header.Get("Authorization"); said != "" {
		th.heard = append(th.heard, said)
	}
	const requests = "/collection/v1_0/requesttopay"
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/collection/token/"):
		answer(w, http.StatusOK, map[string]any{"access_token": "t", "token_type": "access_token", "expires_in": 3600})
	case r.Method == http.MethodPost && strings.HasSuffix(path, requests):
		var asked map[string]any
		_ = json.Unmarshal(text, &asked)
		th.asked[r.Header.Get("X-Reference-Id")] = asked
		w.WriteHeader(http.StatusAccepted)
	case strings.Contains(path, requests+"/"):
		asked := th.asked[path[strings.LastIndex(path, "/")+1:]]
		if asked == nil {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		asked["status"], asked["financialTransactionId"] = "SUCCESSFUL", "4242"
		answer(w, http.StatusOK, asked)
	default:
		answer(w, http.StatusOK, map[string]any{})
	}
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// hears reports whether a credential with a prefix came.
func (th *thief) hears(prefix string) bool {
	th.mu.Lock()
	defer th.mu.Unlock()
	for _, h := range th.heard {
		if strings.HasPrefix(h, prefix) {
			return true
		}
	}
	return false
}
