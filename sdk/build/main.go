// Command build makes sdk/dist from sdk/src, and the scripts of the page that checks receipts
// from ingress/verify/script. `go generate` runs it in sdk.
//
// A released version never changes, because pages name it with its hash. If the sources
// make other bytes than dist/<version> has, build returns an error: raise sdk.Version.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"quittance/sdk"
)

func main() {
	if err := errors.Join(build("."), buildCheck("../ingress/verify", "../ingress/verify/dist")); err != nil {
		fmt.Fprintln(os.Stderr, "sdk:", err)
		os.Exit(1)
	}
}

// build makes dist in dir, the folder of package sdk.
func build(dir string) error {
	script, err := bundle(dir, "src/sdk.ts")
	if err != nil {
		return err
	}
	types, err := os.ReadFile(filepath.Join(dir, "types/quittance.d.ts"))
	if err != nil {
		return fmt.Errorf("reading the types: %w", err)
	}
	frame, err := bundle(dir, "src/frame.ts")
	if err != nil {
		return err
	}
	release := filepath.Join(dir, "dist", sdk.Version)
	if err := os.MkdirAll(release, 0o755); err != nil { //nolint:gosec // a folder of sources
		return fmt.Errorf("making the release's folder: %w", err)
	}
	return errors.Join(
		keep(filepath.Join(release, "quittance.js"), script),
		keep(filepath.Join(release, "quittance.d.ts"), types),
		write(filepath.Join(dir, "dist/frame.js"), frame),
	)
}

// keep writes a file of a release. It is an error if the file exists with other bytes.
func keep(path string, content []byte) error {
	old, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return write(path, content)
	case err != nil:
		return fmt.Errorf("reading a file of the release: %w", err)
	case !bytes.Equal(old, content):
		return fmt.Errorf("%s is released and the source now makes other bytes: raise Version in sdk/sdk.go", path)
	}
	return nil
}

func write(path string, content []byte) error {
	return os.WriteFile(path, content, 0o644) //nolint:gosec // a file of sources
}

// buildCheck makes the scripts of the page that checks receipts. Browsers of 2020 and later run
// them; for others the page has a form.
func buildCheck(dir, to string) error {
	for _, name := range []string{"check", "sw"} {
		script, err := bundle(dir, "script/"+name+".ts", func(o *api.BuildOptions) { o.Target = api.ES2020 })
		if err != nil {
			return err
		}
		if err := write(filepath.Join(to, name+".js"), script); err != nil {
			return err
		}
	}
	return nil
}

// bundle makes a minified script for browsers of 2018 and later, unless change says otherwise.
func bundle(dir, entry string, change ...func(*api.BuildOptions)) ([]byte, error) {
	options := api.BuildOptions{
		AbsWorkingDir:     absolute(dir),
		EntryPoints:       []string{entry},
		Bundle:            true,
		Format:            api.FormatIIFE,
		Target:            api.ES2018,
		Charset:           api.CharsetUTF8,
		MinifyWhitespace:  true,
		MinifyIdentifiers: true,
		MinifySyntax:      true,
		LegalComments:     api.LegalCommentsNone,
		Define:            map[string]string{"VERSION": fmt.Sprintf("%q", sdk.Version)},
		TsconfigRaw:       `{"compilerOptions": {"target": "ES2018"}}`,
		LogLevel:          api.LogLevelSilent,
	}
	for _, c := range change {
		c(&options)
	}
	result := api.Build(options)
	if len(result.Errors) > 0 || len(result.Warnings) > 0 {
		texts := append(api.FormatMessages(result.Errors, api.FormatMessagesOptions{}),
			api.FormatMessages(result.Warnings, api.FormatMessagesOptions{Kind: api.WarningMessage})...)
		return nil, fmt.Errorf("building %s: %s", entry, strings.Join(texts, ""))
	}
	return result.OutputFiles[0].Contents, nil
}

func absolute(dir string) string {
	path, err := filepath.Abs(dir)
	if err != nil {
		return dir
	}
	return path
}
