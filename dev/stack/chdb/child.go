package chdb

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// envChild marks a process as the child and carries its configuration.
const envChild = "QUITTANCE_CHDB_CHILD"

// childConfig is the child's configuration, set by the parent. The listening socket is file
// descriptor 3.
type childConfig struct {
	Library string
	Dir     string
	MaxBody int64
	Users   string
}

const listenerFD = 3

// init runs the engine if Start has started this process, see the package documentation.
// Then it does not return, and main and tests do not run.
func init() {
	text := os.Getenv(envChild) //nolint:forbidigo // the parent's message, no configuration
	if text == "" {
		return
	}
	// The parent reads standard error and logs each line.
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := child(text, log); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func child(text string, log *slog.Logger) error {
	var cfg childConfig
	if err := json.Unmarshal([]byte(text), &cfg); err != nil {
		return fmt.Errorf("reading %s: %w", envChild, err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()

	unlock, err := lockDir(cfg.Dir)
	if err != nil {
		return err
	}
	defer unlock()
	begun := time.Now()
	lib, err := loadLibrary(cfg.Library)
	if err != nil {
		return err
	}
	loaded := time.Now()
	config, err := writeUsers(cfg)
	if err != nil {
		return err
	}
	engine, err := openEngine(lib, cfg.Dir, config)
	if err != nil {
		return err
	}
	log.Info("engine ready", slog.String("version", engine.version),
		slog.Duration("load", loaded.Sub(begun)), slog.Duration("open", time.Since(loaded)))

	file := os.NewFile(listenerFD, "listener")
	listener, err := net.FileListener(file)
	if err != nil {
		return fmt.Errorf("taking over the listening socket: %w", err)
	}
	_ = file.Close() // FileListener has its own copy
	server := &http.Server{
		Handler:           newBridge(engine, log, cfg.MaxBody),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	// Running queries may finish. A long query is cut off, which MergeTree survives like a
	// power cut.
	drain, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if err := server.Shutdown(drain); err != nil {
		log.Warn("ending with queries still running", slog.Any("error", err))
		return nil // closing the engine during a query would crash
	}
	engine.close()
	return nil
}

// writeUsers writes the configuration of users beside the data and returns the file that
// names it; none if there is no such configuration.
func writeUsers(cfg childConfig) (config string, err error) {
	if cfg.Users == "" {
		return "", nil
	}
	config, users := filepath.Join(cfg.Dir, "quittance-config.xml"), filepath.Join(cfg.Dir, "quittance-users.xml")
	if err := os.WriteFile(users, []byte(cfg.Users), 0o600); err != nil {
		return "", fmt.Errorf("writing the users: %w", err)
	}
	var path strings.Builder
	if err := xml.EscapeText(&path, []byte(users)); err != nil {
		return "", fmt.Errorf("writing the users: %w", err)
	}
	text := "<clickhouse><user_directories><users_xml><path>" + path.String() + "</path></users_xml></user_directories></clickhouse>"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("writing the users: %w", err)
	}
	return config, nil
}

// lockDir prevents a second engine on the folder; the library itself does not.
func lockDir(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("making the data folder: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "quittance.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the data folder: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("another engine runs on %s", dir)
		}
		return nil, fmt.Errorf("locking the data folder: %w", err)
	}
	return func() { _ = f.Close() }, nil
}
