package transport

import (
	"net"
	"net/http"
	"time"
)

// A balancer or a firewall may forget a connection without a word to either side. The next
// call on it gets no answer, and HTTP/2 keeps the connection for the call after that. So a
// connection that is silent for probeAfter is probed, and is closed when the probe has no
// answer within probeWait: calls use a new connection at most 10 seconds after the last
// sign of life.
const (
	probeAfter = 5 * time.Second
	probeWait  = 5 * time.Second

	// The kernel's probes are single packets, which a network may lose: three unanswered ones
	// end a connection.
	probeInterval = 3 * time.Second
	probes        = 3
)

// HTTP returns a transport whose connections are probed: with pings of HTTP/2, and with
// the kernel's keep-alive probes where the connection is idle and HTTP/1.1. It uses no
// proxy. The caller sets what else it needs before the first call. All HTTP calls of the
// service use such a transport. The dialer is changed; it belongs to the transport.
func HTTP(dialer *net.Dialer) *http.Transport {
	dialer.KeepAliveConfig = net.KeepAliveConfig{Enable: true, Idle: probeAfter, Interval: probeInterval, Count: probes}
	return &http.Transport{
		DialContext:       dialer.DialContext,
		ForceAttemptHTTP2: true,
		HTTP2:             &http.HTTP2Config{SendPingTimeout: probeAfter, PingTimeout: probeWait, WriteByteTimeout: probeWait},
	}
}
