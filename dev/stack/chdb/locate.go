package chdb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// EnvLibrary is the environment variable that may name libchdb.so.
const EnvLibrary = "QUITTANCE_CHDB_LIB"

// ErrNoLibrary is the error of a missing libchdb.
var ErrNoLibrary = errors.New("the ClickHouse engine (libchdb) is not here: run `make deps`")

// libraryPath is the path of the engine below the folder of fetched parts, as npm installs
// it.
func libraryPath() string {
	arch := "x64"
	if runtime.GOARCH == "arm64" {
		arch = "arm64"
	}
	return filepath.Join("chdb", "node_modules", "@chdb", "lib-linux-"+arch+"-gnu", "libchdb.so")
}

// FindLibrary returns the path of libchdb.so. It looks below .deps of the
// working directory and of each folder above it, then in the user's cache
// folder (quittance/chdb/…), then at QUITTANCE_CHDB_LIB. When there is none the
// error wraps ErrNoLibrary and names the command to run.
func FindLibrary() (string, error) {
	var places []string
	if dir, err := os.Getwd(); err == nil {
		for ; ; dir = filepath.Dir(dir) {
			places = append(places, filepath.Join(dir, ".deps", libraryPath()))
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	if dir, err := os.UserCacheDir(); err == nil {
		places = append(places, filepath.Join(dir, "quittance", libraryPath()))
	}
	if named := os.Getenv(EnvLibrary); named != "" { //nolint:forbidigo // where fetched parts lie is a matter of the machine
		places = append(places, named)
	}
	for _, place := range places {
		if err := checkLibrary(place); err == nil {
			return place, nil
		}
	}
	return "", fmt.Errorf("%w (looked for .deps/%s from the working directory upwards, in the user's cache folder and at %s)",
		ErrNoLibrary, libraryPath(), EnvLibrary)
}

func checkLibrary(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", path, ErrNoLibrary)
	case err != nil:
		return fmt.Errorf("looking at libchdb: %w", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a file: %w", path, ErrNoLibrary)
	}
	return nil
}
