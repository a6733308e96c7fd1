package journeys_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"quittance/internal/receipts"
	"quittance/test/harness"
)

// The papers of a real payment, as the service serves them: veraPDF calls them PDF/A-2b, MuPDF
// reads their words, two libraries read their codes, and that of the receipt verifies with the
// served keys alone.
func TestServedPapers(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation")
	}
	t.Parallel()
	u := harness.Shared(t)
	s := u.Create(t, "papers-"+uuid.NewString())
	page := u.URL(harness.AtService, "/c/"+s.ID)
	folder := t.TempDir()
	get := func(name, url, kind string) []byte {
		a := u.Call(t, http.MethodGet, url, "")
		if a.Status != http.StatusOK || !strings.HasPrefix(a.Header.Get("Content-Type"), kind) {
			t.Fatalf("%s: %d %v", url, a.Status, a.Header)
		}
		if err := os.WriteFile(filepath.Join(folder, name), a.Body, 0o600); err != nil {
			t.Fatal(err)
		}
		return a.Body
	}
	get("notice.pdf", page+"/notice.pdf", "application/pdf")
	u.Citizen(s.ID).Pay(t, "06 600 00 01")
	harness.Eventually(t, "the payment", func() error {
		if now := u.Session(t, s.ID); now.Status != "completed" {
			return fmt.Errorf("the session is %s", now.Status)
		}
		return nil
	})
	get("receipt.pdf", page+"/receipt.pdf", "application/pdf")
	keys, err := receipts.ParseJWKS(get("jwks.json", u.URL(harness.AtService, "/.well-known/jwks.json"), "application/"))
	if err != nil {
		t.Fatal(err)
	}
	tools, err := filepath.Abs(harness.Root + "/.deps/papers")
	if err != nil {
		t.Fatal(err)
	}
	files := []string{filepath.Join(folder, "notice.pdf"), filepath.Join(folder, "receipt.pdf")}
	sources := harness.Root + "/test/tools/papers"
	check := append([]string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", filepath.Join(tools, "java", "*"), filepath.Join(sources, "Check.java")}, files...)
	out, err := exec.CommandContext(t.Context(), "java", check...).CombinedOutput()
	if err != nil || bytes.Count(out, []byte("compliant /")) != len(files) {
		t.Errorf("veraPDF: %v\n%s", err, out)
	}
	out, err = exec.CommandContext(t.Context(), "node", append([]string{filepath.Join(sources, "read.mjs"), tools, "none"}, files...)...).Output()
	if err != nil {
		t.Fatalf("reading the papers: %v\n%s", err, out)
	}
	codes := map[string]string{}
	for line := range bytes.Lines(out) {
		var got struct {
			File, Text string
			Print      [2]*string
		}
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if got.Print[0] == nil || got.Print[1] == nil || *got.Print[0] != *got.Print[1] || !strings.Contains(got.Text, "TEST") {
			t.Fatalf("%s is read as %s", got.File, line)
		}
		codes[got.File] = *got.Print[0]
	}
	if want := strings.ToUpper(u.URL(harness.AtService, "/p/"+s.PaymentRef)); codes["notice.pdf"] != want {
		t.Errorf("the code of the notice is %s, want %s", codes["notice.pdf"], want)
	}
	host := strings.Split(page, "/")[2]
	verified, err := keys.Verify(host, codes["receipt.pdf"])
	if err != nil || !verified.Test() || verified.Claims.PaymentRef != s.PaymentRef || verified.Claims.Amount != 5000 {
		t.Errorf("the token of the receipt: %+v, %v", verified.Claims, err)
	}
}
