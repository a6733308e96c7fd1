package postgres

import (
	"context"
	"net"
	"syscall"
	"time"
)

// aliveWithin is how long the server's machine may be silent before its connections end: the kernel asks an idle connection, and
// one that waits for an answer, and it gives up data that nobody acknowledges. Without it a machine that vanished holds up
// queries for a quarter of an hour.
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
