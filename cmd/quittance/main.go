// Command quittance is the payment orchestration service: one binary, one
// subcommand per role. See README.md.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"quittance/cmd/internal/roles"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := roles.Run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
