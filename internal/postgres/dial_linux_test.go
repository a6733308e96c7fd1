package postgres_test

import (
	"net"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"quittance/internal/postgres"
	"quittance/test/servers"
)

// The kernel ends connections to a machine that has vanished, whether they wait for an answer or have sent a query.
func TestConnectionsAreAlive(t *testing.T) {
	t.Parallel()
	pool, err := postgres.Open(t.Context(), servers.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	over := conn.Conn().PgConn().Conn()
	if _, ok := over.(*net.TCPConn); !ok {
		t.Skipf("the server is reached by %T", over)
	}
	raw, err := over.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) {
		for name, o := range map[string]struct{ level, option, want int }{
			"keep-alive": {unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1}, "idle": {unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 10},
			"interval": {unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 5}, "unacknowledged": {unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 30_000},
		} {
			if got, err := unix.GetsockoptInt(int(fd), o.level, o.option); err != nil || got != o.want {
				t.Errorf("%s: %d, %v, want %d", name, got, err, o.want)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
}
