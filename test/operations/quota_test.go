package operations_test

import (
	"testing"

	"quittance/dev/bench/flood"
	"quittance/test/harness"
	"quittance/test/servers"
)

// Several ingress instances are flooded with creations. An application gets exactly its
// quota in each UTC minute. A replay does not count, and an application below its quota is
// never refused. `make bench/quota` measures the cost of the flood for other applications.
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
