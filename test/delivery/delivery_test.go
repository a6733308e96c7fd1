package delivery_test

import (
	"testing"

	"quittance/dev/bench/delivery"
	"quittance/dev/bench/installation"
	"quittance/test/servers"
)

// Every webhook reaches every endpoint that subscribes to it, signed and at least once,
// although endpoints hang or are down and processes are killed. The installation is the
// test's own, since the scenarios stop its broker, its Postgres and its worker. Nothing
// is timed here.
func TestDelivery(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation and disturbs it for a minute")
	}
	t.Parallel()
	program := servers.QuittanceDev(t)
	a, err := delivery.Open(t.Context(), installation.Config{Program: program, Log: servers.Logger(t)}, delivery.Small, delivery.Scenarios...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("\n%s", a.Output())
		}
		if err := a.Close(t.Context()); err != nil {
			t.Log(err)
		}
	})
	r := delivery.NewReport(delivery.Small, 1, func(line string) { t.Log(line) })
	try := func(t *testing.T, s delivery.Scenario) {
		t.Helper()
		faults, err := r.Try(t.Context(), s, a, 1)
		for _, fault := range faults {
			t.Error(fault)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	// Those that do not disturb the installation run at the same time.
	t.Run("calm", func(t *testing.T) {
		for _, s := range delivery.Scenarios {
			if !s.Disturbs {
				t.Run(s.Name, func(t *testing.T) {
					t.Parallel()
					try(t, s)
				})
			}
		}
	})
	for _, s := range delivery.Scenarios {
		if s.Disturbs {
			t.Run(s.Name, func(t *testing.T) { try(t, s) })
		}
	}
}
