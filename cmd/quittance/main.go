// Command quittance is the payment orchestration service: a command for each role, and the
// commands of its operators. See README.md.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	// The authorities of the web, for an image without files of a distribution; those of the system win. By Go's own people.
	_ "golang.org/x/crypto/x509roots/fallback"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/program"
	"quittance/internal/nodump"
)

func main() {
	if err := nodump.Forbid(); err != nil {
		fmt.Fprintf(os.Stderr, "quittance: %v\n", err)
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := program.New(cli.Program{Name: "quittance"}).Run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
