package stack

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An archive is unpacked only if it is the one that the tree names.
func TestFetchVerified(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create("postgres-linux-x86_64.txz")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("programs")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	served := b.Bytes()
	repository := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/"+PostgresVersion+"/"+archiveOf()+".jar") {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(served)
	}))
	t.Cleanup(repository.Close)
	right := fmt.Sprintf("%x  %s.jar\n", sha256.Sum256(served), archiveOf())
	for name, c := range map[string]struct{ sums, want string }{
		"right":      {right, ""},
		"other file": {strings.Repeat("0", 64) + "  " + archiveOf() + ".jar\n", "nothing was unpacked"},
		"not named":  {strings.Repeat("0", 64) + "  other.jar\n", "has no sum of"},
	} {
		cache := t.TempDir()
		err := fetchVerified(t.Context(), repository.URL, c.sums, cache)
		programs, _ := os.ReadFile(filepath.Join(cache, archiveOf()+".txz"))
		if c.want == "" && (err != nil || string(programs) != "programs") {
			t.Errorf("%s: %q, %v", name, programs, err)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || programs != nil) {
			t.Errorf("%s: %q, %v", name, programs, err)
		}
	}
	for _, machine := range []string{"amd64", "arm64v8"} {
		if name := fmt.Sprintf("embedded-postgres-binaries-linux-%s-%s.jar", machine, PostgresVersion); !strings.Contains(postgresSums, name) {
			t.Errorf("postgres.sha256 does not name %s", name)
		}
	}
}
