package main

import (
	"archive/tar"
	"compress/gzip"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// packed makes the files of a release of this test's own program.
func packed(t *testing.T) *release {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &release{tree: "../..", out: t.TempDir(), name: "quittance-2026-11-30-abc", version: "2026-11-30+abc", program: self, at: time.Date(2026, 11, 30, 1, 2, 3, 0, time.UTC)}
	if r.info, err = buildinfo.ReadFile(self); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.bom(t.Context()), r.archive(t.Context()), r.image(t.Context()), r.sums(t.Context())); err != nil {
		t.Fatal(err)
	}
	return r
}

// Two releases of one program have the same bytes, and what they should have.
func TestRelease(t *testing.T) {
	t.Parallel()
	r := packed(t)
	one, err := digests(r.out)
	if err != nil {
		t.Fatal(err)
	}
	two, err := digests(packed(t).out)
	if err != nil || one != two {
		t.Errorf("%v\n%s\n%s", err, one, two)
	}
	if n := strings.Count(one, "\n"); n != 4 {
		t.Errorf("%d files:\n%s", n, one)
	}
	t.Run("image", func(t *testing.T) { ofImage(t, r) })
	t.Run("archive", func(t *testing.T) { ofArchive(t, r) })
}

// ofImage checks that the image is a valid one of an unprivileged user, and that it has the program and its folders.
func ofImage(t *testing.T, r *release) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "layout")
	if err := unpack(r.path("-oci.tar"), folder); err != nil {
		t.Fatal(err)
	}
	img, err := imageIn(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(img); err != nil {
		t.Error(err)
	}
	config, err := img.ConfigFile()
	if err != nil || config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/quittance"}) || !config.Created.Equal(r.at) {
		t.Errorf("%+v, %v", config, err)
	}
	files := mutate.Extract(img)
	if got := strings.Join(names(t, files), " "); got != "quittance tmp/ var/ var/lib/ var/lib/quittance/" && got != "quittance tmp var var/lib var/lib/quittance" {
		t.Errorf("the image has %s", got)
	}
}

// ofArchive checks that the archive has the program, the units and what whoever runs it reads, and the list of components
// the modules.
func ofArchive(t *testing.T, r *release) {
	t.Helper()
	f, err := os.Open(r.path("-linux-amd64.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	found := names(t, z)
	// A page of operations that leads to a page which the archive lacks leaves whoever has no clone without the step.
	pages, err := filepath.Glob("../../docs/operating/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(len(pages), err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range regexp.MustCompile(`\]\((\.\./[^)#:]+\.md)`).FindAllStringSubmatch(string(text), -1) {
			if to := path.Join("docs/operating", link[1]); !slices.Contains(found, r.name+"/"+to) {
				t.Errorf("%s leads to %s, which the archive lacks", filepath.Base(page), to)
			}
		}
	}
	if i := slices.IndexFunc(found, func(name string) bool { return path.Ext(name) == ".png" || path.Ext(name) == ".go" }); i >= 0 {
		t.Errorf("the archive has %s", found[i])
	}
	for _, name := range []string{"bin/quittance", "deploy/systemd/quittance-ingress.service", "deploy/systemd/env/common.env", "deploy/monitoring/alerts.yaml", "docs/operating/install.md", "CHANGELOG.md"} {
		if !slices.Contains(found, r.name+"/"+name) {
			t.Errorf("the archive lacks %s", name)
		}
	}
	text, err := os.ReadFile(r.path("-sbom.cdx.json"))
	var bom struct {
		BOMFormat  string
		Components []struct{ Purl string }
	}
	if err == nil {
		err = json.Unmarshal(text, &bom)
	}
	if err != nil || bom.BOMFormat != "CycloneDX" || len(bom.Components) < 3 {
		t.Errorf("%+v, %v", bom, err)
	}
	if !slices.ContainsFunc(bom.Components, func(c struct{ Purl string }) bool {
		return strings.HasPrefix(c.Purl, "pkg:golang/github.com/google/go-containerregistry@")
	}) {
		t.Error("a module of the program is not in the list")
	}
}

// names returns the names in an archive, sorted.
func names(t *testing.T, archive io.Reader) (out []string) {
	t.Helper()
	for r := tar.NewReader(archive); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			slices.Sort(out)
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, h.Name)
	}
}
