package roles

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Run parses the command line and runs one role. It returns the process's exit
// code; what went wrong is on stderr, in words for whoever typed the command.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if os.Getenv("GOGC") == "" {
		// Roles keep little and allocate much: collecting at twice a heap of a few
		// megabytes took a tenth of their time.
		debug.SetGCPercent(400)
	}
	root := &cobra.Command{
		Use:           "quittance",
		Short:         "Payment orchestration for public agencies",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(up(), ingress(), processor(), sink(), migrate(), seed(), doctor(), simulate(), benchCommand(), keys(), clerks(), endpoints(), deliveries(), replay(), listen())
	if err := root.ExecuteContext(ctx); err != nil {
		_, _ = fmt.Fprintf(stderr, "quittance: %v\n", err)
		return 1
	}
	return 0
}

// command makes a subcommand whose flags come from the environment too.
func command(use, short string, s *Settings, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs, RunE: run,
		PreRunE: func(cmd *cobra.Command, _ []string) error { return fromEnvironment(cmd.Flags()) },
	}
	s.flags(cmd.Flags())
	return cmd
}
