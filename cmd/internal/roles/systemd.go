package roles

import (
	"context"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon" // sd_notify with abstract sockets, by systemd's own people
)

// systemdEvery is how often the supervisor is told, and how soon it learns that the role is ready.
const systemdEvery = 200 * time.Millisecond

// systemd sends a state to systemd, and reports whether there is one.
func (b *Base) systemd(state string) bool {
	sent, err := daemon.SdNotify(false, state)
	if err != nil {
		b.Log.Warn("telling systemd", slog.String("state", state), slog.Any("error", err))
	}
	return sent
}

// tellSystemd tells systemd that the role is ready, and that it lives, if the unit has a watchdog
// (Type=notify). The drain tells that it stops. Without systemd it does nothing.
func (b *Base) tellSystemd(ctx context.Context) error {
	tick := time.NewTicker(systemdEvery)
	defer tick.Stop()
	watchdog, _ := daemon.SdWatchdogEnabled(false) // an error is a malformed variable: none
	var barked time.Time
	for ready := false; ; {
		if !ready && b.Unready() == nil {
			if ready = true; !b.systemd(daemon.SdNotifyReady) {
				return nil
			}
		}
		if watchdog > 0 && time.Since(barked) > watchdog/3 && b.unhealthy() == nil {
			b.systemd(daemon.SdNotifyWatchdog)
			barked = time.Now()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
