package servers

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"quittance/dev/stack"
	"quittance/dev/stack/program"
)

// Installation returns the first port and the folder of the `quittance-dev up` that suites
// share. It has the demo registry with quotas that no suite reaches, and the log level
// debug. Its folder contains its output. Package harness wraps it.
func Installation(t testing.TB) (port int, dir string) {
	t.Helper()
	first, dir, _ := strings.Cut(installation.addr(t), " ")
	port, err := strconv.Atoi(first)
	if err != nil {
		t.Fatalf("servers: %s is not PORT DIR: %v", installation.env(), err)
	}
	return port, dir
}

// startInstallation starts the installation. Its address is "PORT DIR".
func startInstallation(ctx context.Context, dir string, log *slog.Logger) (*server, error) {
	path, err := developer.get(ctx, log)
	if err != nil {
		return nil, err
	}
	root, err := moduleFolder()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // PostgreSQL runs as another user when we are root
		return nil, fmt.Errorf("starting the installation: %w", err)
	}
	registry, err := program.WithoutQuota(filepath.Join(root, program.DemoRegistry), dir)
	if err != nil {
		return nil, err
	}
	ports, err := stack.FreePorts(program.UpPorts)
	if err != nil {
		return nil, err
	}
	// The program may have been built just now.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	u, err := program.StartUp(ctx, program.UpConfig{Program: path, Root: root, Dir: dir, Port: ports[0], Registry: registry, Args: []string{"--log", "debug"}})
	if err != nil {
		return nil, err
	}
	return &server{addr: fmt.Sprintf("%d %s", ports[0], dir), stop: u.Stop}, nil
}
