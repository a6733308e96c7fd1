package servers

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"quittance/dev/stack"
	"quittance/dev/stack/program"
)

// StartInstallation runs the `quittance-dev up` that suites share. It has the demo registry
// with quotas that no suite reaches, and the log level debug. The address of the server is
// "PORT DIR"; DIR contains its output.
func StartInstallation(ctx context.Context, path, root, dir string, log *slog.Logger) (*Server, error) {
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
	u, err := program.StartUp(ctx, program.UpConfig{Program: path, Root: root, Dir: dir, Port: ports[0], Registry: registry, Args: []string{"--log", "debug"}})
	if err != nil {
		return nil, err
	}
	log.LogAttrs(ctx, slog.LevelInfo, "the shared installation is ready", slog.Int("port", ports[0]))
	return &Server{Env: "QUITTANCE_TEST_INSTALLATION", Addr: fmt.Sprintf("%d %s", ports[0], dir), Stop: u.Stop}, nil
}
