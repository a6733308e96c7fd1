// Command prepare makes a part of the stack ready. `make deps` and `make deps/test` run it:
//
//	prepare postgres FOLDER   downloads PostgreSQL's programs into the folder
//	prepare kafka FOLDER      writes the archive of Kafka's classes beside the folder of its jars
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

var parts = map[string]func(ctx context.Context, folder string, log *slog.Logger) error{
	"postgres": func(ctx context.Context, folder string, log *slog.Logger) error {
		return stack.FetchPostgres(ctx, filepath.Join(folder, stack.PostgresVersion), log)
	},
	"kafka": func(ctx context.Context, folder string, _ *slog.Logger) error {
		return stack.ArchiveKafka(ctx, folder)
	},
}

func main() {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if len(os.Args) != 3 || parts[os.Args[1]] == nil {
		log.Error("usage: prepare postgres|kafka FOLDER")
		os.Exit(2)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := parts[os.Args[1]](ctx, os.Args[2], log); err != nil {
		log.Error("preparing a part of the stack", slog.String("part", os.Args[1]), slog.Any("error", err))
		cancel()
		os.Exit(1)
	}
}
