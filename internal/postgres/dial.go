package postgres

import (
	"context"
	"net"
	"syscall"
	"time"
)

// aliveWithin is how long the server's machine may be silent. Then the kernel ends the connection, because the machine answers no
// keep-alive probe or does not acknowledge what was sent. Without this a query to a machine that has vanished waits for a
// quarter of an hour.
const aliveWithin = 30 * time.Second

var dialer = net.Dialer{
	KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: aliveWithin / 3, Interval: aliveWithin / 6, Count: 4},
	Control: func(network, _ string, c syscall.RawConn) (err error) {
		if network == "unix" {
			return nil
		}
		if broken := c.Control(func(fd uintptr) { err = acknowledgedWithin(fd, aliveWithin) }); broken != nil {
			return broken
		}
		return err
	},
}

func dial(ctx context.Context, network, address string) (net.Conn, error) {
	return dialer.DialContext(ctx, network, address)
}
