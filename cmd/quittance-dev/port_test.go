package main

import (
	"fmt"
	"net"
	"strings"
	"testing"
)

// The demo shop binds its port last, a minute after the start. It had been taken by then, and `up` ended after it had
// said that it is ready. All ports are bound first, and an error names the port, its part and the option.
func TestPortsAreReserved(t *testing.T) {
	t.Parallel()
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	u := &installation{broker: brokerEmbedded, port: taken.Addr().(*net.TCPAddr).Port - portShop}
	err = u.reserve(t.Context())
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%d (demo shop)", u.port+portShop)) || !strings.Contains(err.Error(), "--port") {
		t.Fatalf("with a port that is taken: %v", err)
	}
	if len(u.held) != 0 {
		t.Errorf("%d ports are still held", len(u.held))
	}
	_ = taken.Close()
	if err := u.reserve(t.Context()); err != nil {
		t.Skip("other programs use the neighbouring ports")
	}
	bind := func() error {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", local(u.port+portShop))
		if err == nil {
			_ = l.Close()
		}
		return err
	}
	if bind() == nil {
		t.Error("another program may take the port of the demo shop")
	}
	u.release(portShop)
	if err := bind(); err != nil {
		t.Errorf("the demo shop cannot have its port: %v", err)
	}
	u.releaseAll()
}

// A reserved port accepts connections, so `up` could say that it is ready while the demo shop did not serve yet.
func TestReadyComesLast(t *testing.T) {
	t.Parallel()
	var u *installation
	for range 20 { // other programs may use some of the ports
		probe, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		u = &installation{broker: brokerEmbedded, port: probe.Addr().(*net.TCPAddr).Port, hasPartner: true}
		_ = probe.Close()
		if err = u.reserve(t.Context()); err == nil {
			break
		}
		u = nil
	}
	if u == nil {
		t.Fatal("no twelve ports are free")
	}
	defer u.releaseAll()
	if u.answers(t.Context()) {
		t.Error("ready while all ports are only reserved")
	}
	left := len(u.ports())
	for name, offset := range u.ports() {
		u.release(offset)
		if u.answers(t.Context()) {
			t.Errorf("ready before the %s serves", name)
		}
		part, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", local(u.port+offset))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = part.Close() }()
		if left--; u.answers(t.Context()) != (left == 0) {
			t.Errorf("with %d parts to come: ready is %v", left, left > 0)
		}
	}
}
