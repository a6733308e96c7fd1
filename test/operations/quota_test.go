package operations_test

import (
	"testing"

	"quittance/dev/bench/flood"
	"quittance/test/harness"
	"quittance/test/servers"
)

// However many ingress instances take part, an application gets its quota of
// creations in each UTC minute, neither more nor less; a replay takes nothing of
// it, and an application that stays below it is never refused. `make bench/quota`
// measures what the flood costs those who stay below.
func TestQuota(t *testing.T) {
	if testing.Short() {
		t.Skip("floods an installation for a minute")
	}
	t.Parallel()
	file, keys := flood.Registry()
	s := harness.NewStack(t, servers.Dir(t), harness.Shape{
		Registry: func(*harness.Stack) string { return file }, Ingresses: flood.Instances, Processors: 2,
	})
	t.Cleanup(func() {
		if t.Failed() {
			s.Outputs(t)
		}
	})
	r, err := flood.Run(t.Context(), flood.Config{Ingress: s.Ingress, Keys: keys, Flooded: 1, Say: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range r.Faults {
		t.Error(fault)
	}
	t.Log(r.Line)
}
