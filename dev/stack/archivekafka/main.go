// Command archivekafka writes the archive of Kafka's classes beside the folder of jars that
// its argument names. `make deps/test` runs it.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"quittance/dev/stack"
)

func main() {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if len(os.Args) != 2 {
		log.Error("usage: archivekafka FOLDER")
		os.Exit(2)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := stack.ArchiveKafka(ctx, os.Args[1]); err != nil {
		log.Error("archiving Kafka's classes", slog.Any("error", err))
		cancel()
		os.Exit(1)
	}
}
