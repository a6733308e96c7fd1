package servers

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Quittance returns the path of quittance, which is built once.
func Quittance(t testing.TB) string {
	t.Helper()
	return production.addr(t)
}

// QuittanceDev returns the path of quittance-dev, which is built once.
func QuittanceDev(t testing.TB) string {
	t.Helper()
	return developer.addr(t)
}

// Build builds quittance or quittance-dev with further flags of go build and returns its path.
func Build(t testing.TB, name string, flags ...string) string {
	t.Helper()
	path, err := build(t.Context(), name, Dir(t), flags...)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func build(ctx context.Context, name, dir string, flags ...string) (string, error) {
	out := filepath.Join(dir, name)
	args := append([]string{"build", "-buildvcs=false", "-o", out}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "quittance/cmd/"+name)...) //nolint:gosec // flags of the caller
	root, err := moduleFolder()
	if err != nil {
		return "", err
	}
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the program: %w\n%s", err, text)
	}
	return out, nil
}

func buildProduction(ctx context.Context, dir string, _ *slog.Logger) (*server, error) {
	path, err := build(context.WithoutCancel(ctx), "quittance", dir) // however long the machine needs
	return &server{addr: path}, err
}

func buildDeveloper(ctx context.Context, dir string, _ *slog.Logger) (*server, error) {
	path, err := build(context.WithoutCancel(ctx), "quittance-dev", dir)
	return &server{addr: path}, err
}

// moduleFolder returns the folder of go.mod, seen from the working directory, which for a
// test is the folder of its package.
func moduleFolder() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("looking for the module: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if filepath.Dir(dir) == dir {
			return "", fmt.Errorf("looking for the module: no go.mod above the working directory")
		}
		dir = filepath.Dir(dir)
	}
}
