// Command quittance-dev is the payment orchestration service with the developer's
// options, and everything that runs it on one machine. See README.md.
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
