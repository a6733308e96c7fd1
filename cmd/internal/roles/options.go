package roles

import (
	"context"
	"log/slog"
	"time"

	"quittance/internal/postgres"
)

// Options are what a program allows its roles and commands beyond production. The
// zero value is production. They are set in the source of a program: no flag and
// no environment variable changes them.
type Options struct {
	// Loopback allows webhook endpoints and ERPs at http://127.0.0.1 and
	// http://[::1].
	Loopback bool
	// PlainSecrets allows secrets in registry files, refuses accounts with real
	// money, and makes master keys in the data folder when none are configured.
	PlainSecrets bool
	// Clock opens the clock that all processes share. Nil means the machine's time.
	Clock func(ctx context.Context, pool *postgres.Pool, log *slog.Logger) (Clock, error)
	// Simulators uses the simulators at Settings.SimulatorURL for test accounts that an
	// agency does not have.
	Simulators bool
	// Profiles serves /debug/pprof at the health address.
	Profiles bool
}

// Clock is a clock that can be moved.
type Clock interface {
	Now() time.Time
	// Machine returns the machine's time at a time of the clock.
	Machine(ctx context.Context, at time.Time) (time.Time, error)
	// Run follows the clock until ctx ends.
	Run(ctx context.Context) error
}
