package postgres

import (
	"time"

	"golang.org/x/sys/unix"
)

// acknowledgedWithin bounds the time for which sent data may be without an acknowledgement (RFC 5482).
func acknowledgedWithin(fd uintptr, d time.Duration) error {
	return unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
}
