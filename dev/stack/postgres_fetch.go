package stack

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// mavenCentral is the repository of the archives with PostgreSQL's programs.
const mavenCentral = "https://repo1.maven.org/maven2"

// postgresSums has the SHA-256 of the archive for each kind of machine, as sha256sum prints it.
//
//go:embed postgres.sha256
var postgresSums string

// FetchPostgres downloads PostgreSQL's programs into dir unless they are there. Only
// `make deps` calls it. An interrupted download leaves dir unchanged.
func FetchPostgres(ctx context.Context, dir string, log *slog.Logger) error {
	if hasPostgres(dir) {
		return nil
	}
	log.LogAttrs(ctx, slog.LevelInfo, "fetching PostgreSQL", slog.String("version", PostgresVersion), slog.String("into", dir))
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("fetching PostgreSQL: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil { //nolint:gosec // the server's own user must pass
		return fmt.Errorf("fetching PostgreSQL: %w", err)
	}
	scratch, err := os.MkdirTemp(filepath.Dir(dir), "fetch-")
	if err != nil {
		return fmt.Errorf("fetching PostgreSQL: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	ports, err := FreePorts(1)
	if err != nil {
		return fmt.Errorf("fetching PostgreSQL: %w", err)
	}
	programs, cache := filepath.Join(scratch, "programs"), filepath.Join(scratch, "cache")
	if err := fetchVerified(ctx, mavenCentral, postgresSums, cache); err != nil {
		return fmt.Errorf("fetching PostgreSQL: %w", err)
	}
	// The library unpacks what it finds in its cache as the first step of a start. It has no
	// repository, so that it never unpacks what was not compared. The next steps cannot work
	// as root and are not wanted: a locale that does not exist makes them fail at once.
	// Afterwards the presence of the programs decides about success.
	var output strings.Builder
	server := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Version(embeddedpostgres.V18).
		Port(uint32(ports[0])). //nolint:gosec // a port
		CachePath(cache).
		BinaryRepositoryURL("http://127.0.0.1:1").
		RuntimePath(filepath.Join(scratch, "runtime")).
		DataPath(filepath.Join(scratch, "data")).
		BinariesPath(programs).
		Locale("none.such").
		Logger(&output))
	startErr := server.Start()
	if startErr == nil {
		_ = server.Stop()
	}
	out, err := exec.CommandContext(ctx, filepath.Join(programs, "bin", "postgres"), "--version").CombinedOutput() //nolint:gosec // just fetched
	if err != nil {
		return fmt.Errorf("fetching PostgreSQL: %w", errors.Join(startErr, fmt.Errorf("running it: %w: %s", err, out)))
	}
	if err := openToAll(programs); err != nil {
		return fmt.Errorf("fetching PostgreSQL: %w", err)
	}
	if err := os.Rename(programs, dir); err != nil {
		return fmt.Errorf("fetching PostgreSQL: %w", err)
	}
	return nil
}

// archiveOf returns the name of the archive for this machine, without its ending.
func archiveOf() string {
	machine := runtime.GOARCH
	if machine == "arm64" {
		machine += "v8"
	}
	return fmt.Sprintf("embedded-postgres-binaries-%s-%s-%s", runtime.GOOS, machine, PostgresVersion)
}

// fetchVerified downloads the archive for this machine, compares it with its sum, and writes the
// part with the programs to the folder cache, where the library looks for it.
func fetchVerified(ctx context.Context, repository, sums, cache string) error {
	name := archiveOf()
	want, ok := "", false
	for line := range strings.Lines(sums) {
		if sum, file, found := strings.Cut(strings.TrimSpace(line), "  "); found && file == name+".jar" {
			want, ok = sum, true
		}
	}
	if !ok {
		return fmt.Errorf("dev/stack/postgres.sha256 has no sum of %s.jar: compare the file with what its makers publish, and add its line, or name the programs of an installed PostgreSQL in QUITTANCE_POSTGRES_BINARIES", name)
	}
	machine := strings.TrimSuffix(name, "-"+PostgresVersion)
	address := fmt.Sprintf("%s/io/zonky/test/postgres/%s/%s/%s.jar", repository, machine, PostgresVersion, name)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req) //nolint:forbidigo // a download of `make deps`, in no role
	if err != nil {
		return fmt.Errorf("downloading: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("downloading %s: %s", address, resp.Status)
	}
	archive, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("downloading %s: %w", address, err)
	}
	if sum := sha256.Sum256(archive); hex.EncodeToString(sum[:]) != want {
		return fmt.Errorf("%s has the SHA-256 %x, and dev/stack/postgres.sha256 says %s: nothing was unpacked. A mirror or a proxy gave another file: fetch from another network; of a new version, compare with what its makers publish, and change the line", address, sum, want)
	}
	return unpack(archive, filepath.Join(cache, name+".txz"))
}

// unpack writes the one .txz of the archive to the file.
func unpack(archive []byte, file string) error {
	files, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return fmt.Errorf("opening the archive: %w", err)
	}
	for _, f := range files.File {
		if !strings.HasSuffix(f.Name, ".txz") {
			continue
		}
		from, err := f.Open()
		if err != nil {
			return fmt.Errorf("opening the archive: %w", err)
		}
		defer func() { _ = from.Close() }()
		programs, err := io.ReadAll(from)
		if err != nil {
			return fmt.Errorf("reading the archive: %w", err)
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			return err
		}
		return os.WriteFile(file, programs, 0o600)
	}
	return errors.New("the archive has no .txz with programs")
}
