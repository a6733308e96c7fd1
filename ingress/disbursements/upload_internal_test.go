package disbursements

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"quittance/test/httpclient"
)

// A body that has come more slowly than it must is cut. One that comes fast enough is read to its end.
func TestSlowBodyIsCut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		since time.Duration
		cut   bool
	}{"fast": {0, false}, "slow": {uploadGrace + time.Second, true}} {
		got := make(chan error, 1)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(&steady{r.Body, http.NewResponseController(w), time.Now().Add(-c.since), 0})
			got <- err
		}))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, bytes.NewReader(make([]byte, 1<<20)))
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := httpclient.Default.Do(req); err == nil {
			_ = resp.Body.Close()
		}
		if err := <-got; errors.Is(err, os.ErrDeadlineExceeded) != c.cut || !c.cut && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		server.Close()
	}
}
