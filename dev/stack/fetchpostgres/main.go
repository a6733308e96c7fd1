// Command fetchpostgres downloads PostgreSQL's programs into the folder that its
// argument names. `make deps` runs it.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"quittance/dev/stack"
)

func main() {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if len(os.Args) != 2 {
		log.Error("usage: fetchpostgres FOLDER")
		os.Exit(2)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := stack.FetchPostgres(ctx, filepath.Join(os.Args[1], stack.PostgresVersion), log); err != nil {
		log.Error("fetching PostgreSQL", slog.Any("error", err))
		cancel()
		os.Exit(1)
	}
}
