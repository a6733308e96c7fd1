package pulse_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"quittance/internal/pulse"
)

// A sink whose loop hung answered /healthz for a week. A loop that waits for a server turns.
func TestLoops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit = 2 * time.Minute
		var m pulse.Monitor
		ctx := m.In(t.Context())
		hangs, waits := pulse.Begin(ctx, "hangs", ""), pulse.Begin(ctx, "waits", "joining its group")
		never := pulse.Begin(ctx, "never", "")
		if err := m.Unready(); err == nil || err.Error() != "waits: joining its group" {
			t.Errorf("unready: %v", err)
		}
		waits.Ready()
		if err := m.Unready(); err != nil {
			t.Errorf("unready: %v", err)
		}
		hangs.Turn()
		for range 5 {
			waits.Turn()
			time.Sleep(30 * time.Second)
		}
		if err := m.Stuck(limit); err == nil || !strings.HasPrefix(err.Error(), "hangs: it has not turned for 2m30s") {
			t.Errorf("stuck: %v", err)
		}
		hangs.End()
		never.End()
		if err := m.Stuck(limit); err != nil {
			t.Errorf("stuck: %v", err)
		}
		pulse.Begin(t.Context(), "nobody watches", "").Turn() // a part of a command
	})
}
