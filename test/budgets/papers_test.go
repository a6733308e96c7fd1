package budgets_test

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"quittance/test/httpclient"

	"github.com/andybalholm/brotli"
	"github.com/google/uuid"

	"quittance/test/harness"
)

// Citizens pay for each byte of a paper and of the page that checks receipts. The pages are
// counted with what they load at once, as they are sent to a browser that reads brotli, without
// headers; the files as they are.
func TestPaperSizes(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation")
	}
	t.Parallel()
	u := harness.Shared(t)
	s := u.Create(t, "sizes-"+uuid.NewString())
	page := u.URL(harness.AtService, "/c/"+s.ID)
	sizes := map[string]int{"notice": weigh(t, page+"/notice"), "notice.pdf": weigh(t, page+"/notice.pdf"), "q": weigh(t, u.URL(harness.AtService, "/q"))}
	u.Citizen(s.ID).Pay(t, "06 600 00 01")
	harness.Eventually(t, "the payment", func() error {
		if now := u.Session(t, s.ID); now.Status != "completed" {
			return fmt.Errorf("the session is %s", now.Status)
		}
		return nil
	})
	sizes["receipt"], sizes["receipt.pdf"] = weigh(t, page+"/receipt"), weigh(t, page+"/receipt.pdf")
	for name, most := range map[string]int{"notice": 7_600, "receipt": 13_300, "q": 7_400, "notice.pdf": 35_500, "receipt.pdf": 41_500} {
		t.Logf("%s: %d bytes", name, sizes[name])
		if sizes[name] > most {
			t.Errorf("%s has %d bytes, want at most %d", name, sizes[name], most)
		}
	}
}

// loaded are the addresses of scripts and styles that a page loads with itself.
var loaded = regexp.MustCompile(`(?:<script[^>]* src|<link rel="stylesheet" href)="([^"]+)"`)

// weigh returns the bytes of an answer, with those of the scripts and styles of a page.
func weigh(t *testing.T, url string) (size int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", "br")
	a, err := httpclient.Default.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	sent, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d, %v", url, a.StatusCode, err)
	}
	size = len(sent)
	if !strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") {
		return size
	}
	if a.Header.Get("Content-Encoding") != "br" {
		t.Fatalf("%s is sent as %q", url, a.Header.Get("Content-Encoding"))
	}
	text, err := io.ReadAll(brotli.NewReader(strings.NewReader(string(sent))))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range loaded.FindAllStringSubmatch(string(text), -1) {
		at, err := r.URL.Parse(m[1])
		if err != nil {
			t.Fatal(err)
		}
		size += weigh(t, at.String())
	}
	return size
}
