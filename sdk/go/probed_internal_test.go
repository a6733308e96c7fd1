package quittance

import (
	"net/http"
	"testing"
	"time"
)

// A balancer had forgotten a connection of HTTP/2, and each call of the client on it timed out, for minutes. The
// client's own transport probes its connections; one that the program brings stays as it is.
func TestConnectionsAreProbed(t *testing.T) {
	t.Parallel()
	const key = "sk_test_TheKeyOfTheTests0000000000"
	c, err := New(Config{URL: "https://pay.example", Key: key})
	if err != nil {
		t.Fatal(err)
	}
	own, ok := c.http.Transport.(*http.Transport)
	if !ok || own == http.DefaultTransport || own.HTTP2 == nil || own.HTTP2.SendPingTimeout <= 0 || own.HTTP2.PingTimeout <= 0 || own.HTTP2.SendPingTimeout+own.HTTP2.PingTimeout > 15*time.Second {
		t.Errorf("a forgotten connection stays for longer than 15 s: %+v", c.http.Transport)
	}
	brought := &http.Transport{}
	if c, err = New(Config{URL: "https://pay.example", Key: key, HTTP: &http.Client{Transport: brought}}); err != nil || c.http.Transport != brought {
		t.Errorf("the program's own transport became %+v, %v", c, err)
	}
}
