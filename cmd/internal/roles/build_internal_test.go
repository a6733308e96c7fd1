package roles

import (
	"testing"

	"quittance/internal/build"
	"quittance/test/servers"
)

// Which release an instance runs was told by nobody.
func TestBuildInfo(t *testing.T) {
	t.Parallel()
	all, err := newBase(t.Context(), Settings{}, servers.Logger(t)).Metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if f.GetName() != "quittance_build_info" {
			continue
		}
		labels := map[string]string{}
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		if is := build.Read(); labels["release"] != is.Release || labels["version"] != is.Version() || f.GetMetric()[0].GetGauge().GetValue() != 1 {
			t.Errorf("the program is %+v, and the metric says %v", is, labels)
		}
		return
	}
	t.Error("no metric says which program runs")
}
